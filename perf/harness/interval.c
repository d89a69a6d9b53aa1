/* Order statistics, and not a bootstrap: the same rounds give the same interval every time, to the
 * last digit, and it costs a sort. Rounds of one visit to a size follow each other and are not
 * quite independent, so rounds are collected in several visits. */
#include "harness/interval.h"

#include <math.h>

/* The geometric middle of 55 and 240 ns. */
static const double FAR_NS = 115, CHANGED = 1.5, TAIL = 0.025;

size_t interval_rank(size_t n)
{
    /* P(B < k) grows by P(B = k - 1) = n! / (k - 1)! (n - k + 1)! / 2^n */
    double below = 0, all = lgamma((double)n + 1) - (double)n * log(2);
    size_t k = 0;
    for (; k < n / 2; k++) {
        below += exp(all - lgamma((double)k + 1) - lgamma((double)(n - k) + 1));
        if (below > TAIL)
            break;
    }
    return k;
}

struct interval interval_of(const struct series *s)
{
    struct series sorted = { 0 };
    struct interval i = { .n = s->n };
    size_t k = interval_rank(s->n);
    for (size_t at = 0; at < s->n; at++)
        series_add(&sorted, s->at[at]);
    series_sort(&sorted);
    i.median = series_sorted_quantile(&sorted, 0.5);
    i.known = k > 0;
    i.low = k ? sorted.at[k - 1] : 0;
    i.high = k ? sorted.at[s->n - k] : 0;
    series_free(&sorted);
    return i;
}

enum verdict interval_verdict(const struct interval *i)
{
    if (!i->known)
        return VERDICT_UNKNOWN;
    return i->high < 1 ? VERDICT_BEHIND : i->low > 1 ? VERDICT_AHEAD : VERDICT_LEVEL;
}

const char *verdict_name(enum verdict v)
{
    static const char *const names[] = { "unknown", "behind", "level", "ahead" };
    return names[v];
}

enum line_state line_state(double before, double after)
{
    double low = before < after ? before : after, high = before < after ? after : before;
    if (!(low > 0) || high > CHANGED * low || (low < FAR_NS) != (high < FAR_NS))
        return LINE_CHANGED;
    return low < FAR_NS ? LINE_NEAR : LINE_FAR;
}

const char *line_state_name(enum line_state state)
{
    static const char *const names[] = { "near", "far", "changed" };
    return names[state];
}
