/* Job: a report as one HTML page that needs nothing from anywhere else.
 * Owns: how it looks.
 * Never: what is in it. */
#ifndef PERF_PAGE_H
#define PERF_PAGE_H

#include "harness/report.h"

#include <stdio.h>

void write_page(FILE *to, const struct report *r);

#endif
