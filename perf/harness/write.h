/* Job: a report as text: tables of 80 columns, CSV, JSON.
 * Owns: nothing.
 * Never: HTML (page.h). */
#ifndef PERF_WRITE_H
#define PERF_WRITE_H

#include "harness/report.h"

#include <stdio.h>

void write_tables(FILE *to, const struct report *r);
void write_csv(FILE *to, const struct report *r);
void write_json(FILE *to, const struct report *r);
const char *unit_name(enum unit unit);                  /* in CSV and JSON */

#endif
