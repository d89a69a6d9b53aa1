/* Job: one plot as SVG inside a page.
 * Owns: nothing.
 * Never: colours: those are the page's, by number. */
#ifndef PERF_PLOT_H
#define PERF_PLOT_H

#include "harness/report.h"

#include <stdio.h>

void plot_write(FILE *to, const struct plot *p);
void html_text(FILE *to, const char *s);                 /* with &, < and > spelled out */

#endif
