/* Job: a growing row of numbers and what can be said of it.
 * Owns: its memory.
 * Never: units. */
#ifndef PERF_SERIES_H
#define PERF_SERIES_H

#include <stddef.h>

struct series { double *at; size_t n, room; };

void series_add(struct series *s, double value);
void series_sort(struct series *s);
void series_free(struct series *s);
/* The value below which the share p (0 … 1) lies; 0 if empty. Any order; series_sorted_quantile is
 * for sorted ones. */
double series_quantile(const struct series *s, double p);
double series_sorted_quantile(const struct series *s, double p);
static inline double series_median(const struct series *s) { return series_quantile(s, 0.5); }

/* a[i] / b[i], pair by pair: what was measured in the same round is compared, so a machine that
 * drifts does not matter. */
/* low, high: a quarter of the rounds lie below, above */
struct ratio { double median, low, high; size_t n; };
struct ratio series_ratio(const struct series *a, const struct series *b);

#endif
