/* Samples are kept, not binned: thousands of doubles are cheap, and every quantile is exact. */
#include "harness/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void series_add(struct series *s, double value)
{
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 64;
        s->at = realloc(s->at, s->room * sizeof *s->at);
        if (!s->at) {
            perror("series");
            abort();
        }
    }
    s->at[s->n++] = value;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void series_sort(struct series *s)
{
    if (s->n)
        qsort(s->at, s->n, sizeof *s->at, compare);
}

void series_free(struct series *s)
{
    free(s->at);
    *s = (struct series){ 0 };
}

double series_sorted_quantile(const struct series *s, double p)
{
    if (!s->n)
        return 0;
    double at = p * (double)(s->n - 1);
    size_t i = (size_t)at, j = i + 1 < s->n ? i + 1 : i;
    return s->at[i] + (s->at[j] - s->at[i]) * (at - (double)i);
}

double series_quantile(const struct series *s, double p)
{
    struct series copy = { 0 };
    for (size_t i = 0; i < s->n; i++)
        series_add(&copy, s->at[i]);
    series_sort(&copy);
    double q = series_sorted_quantile(&copy, p);
    series_free(&copy);
    return q;
}

struct ratio series_ratio(const struct series *a, const struct series *b)
{
    struct series r = { 0 };
    for (size_t i = 0; i < a->n && i < b->n; i++)
        if (b->at[i] > 0)
            series_add(&r, a->at[i] / b->at[i]);
    series_sort(&r);
    struct ratio ratio = { series_sorted_quantile(&r, 0.5), series_sorted_quantile(&r, 0.25),
                           series_sorted_quantile(&r, 0.75), r.n };
    series_free(&r);
    return ratio;
}
