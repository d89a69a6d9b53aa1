/* Job: says what the rounds of a comparison prove, and which rounds count.
 * Owns: nothing.
 * Never: measures.
 *
 * The one statistic of `versus`: in each round the time of a peer over tutti's; the median of those
 * ratios; and its 95 % interval by order statistics, which assumes nothing of how they are spread:
 * the median lies between the k-th smallest and the k-th largest of n with a chance of
 * 1 - 2 P(B < k), where B is how often heads fall in n throws. k is the largest for which that is
 * at least 95 %; below six rounds there is none. */
#ifndef PERF_INTERVAL_H
#define PERF_INTERVAL_H

#include "harness/series.h"

#include <stdbool.h>

enum { INTERVAL_LEAST = 6 };               /* rounds */

struct interval {
    double median, low, high;
    size_t n;
    bool known;                            /* low and high are: there were INTERVAL_LEAST rounds */
};
struct interval interval_of(const struct series *s);
/* The k of n above; 0: none. */
size_t interval_rank(size_t n);

/* Of a peer's time over tutti's: behind, only if the whole interval lies below 1. */
enum verdict { VERDICT_UNKNOWN, VERDICT_BEHIND, VERDICT_LEVEL, VERDICT_AHEAD };
enum verdict interval_verdict(const struct interval *i);
const char *verdict_name(enum verdict v);  /* "behind" */

/* Where two CPUs are to each other, by the time a cache line took from one to the other before and
   after a round: a host moves the CPUs of a virtual machine within seconds. Some 55 ns are near,
   some 240 far. LINE_CHANGED: the two differ, or one is half as long again as the other, or is
   unknown (0). Such a round does not count. */
enum line_state { LINE_NEAR, LINE_FAR, LINE_CHANGED, LINE_STATES = LINE_CHANGED };
enum line_state line_state(double before_ns, double after_ns);
const char *line_state_name(enum line_state state);      /* "near" */

#endif
