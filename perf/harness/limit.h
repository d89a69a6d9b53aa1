/* Job: the moment by which a program must have measured all it can.
 * Owns: that moment.
 * Never: what is left out for its sake. */
#ifndef PERF_LIMIT_H
#define PERF_LIMIT_H

#include <stdbool.h>

/* From now on; until it is called there is no limit. */
void limit_begin(double seconds);
bool limit_set(void);
/* Seconds until then, below 0 afterwards; very many without a limit. */
double limit_left(void);
/* How much of the time is over: 0 … 1. */
double limit_over(void);
/* How long to wait for somebody who may take up to `most` seconds: no longer than a part of what is
   left, and a moment, so that one who hangs does not take it all. */
double limit_patience(double most);

#endif
