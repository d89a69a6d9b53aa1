/* The samples are kept, so that medians are exact: there are at most as many as the journals hold
 * operations, at each look. Cost: a sort of the ranks' arrivals an operation. */
#include "watch/lateness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int lateness_by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static int lateness_push(struct lateness *l, const struct late_once *once)
{
    if (l->n == l->room) {
        size_t room = l->room ? l->room * 2 : 256;
        struct late_once *at = realloc(l->at, room * sizeof *at);
        if (!at)
            return -ENOMEM;
        l->at = at;
        l->room = room;
    }
    l->at[l->n++] = *once;
    return 0;
}

bool lateness_measure(struct late_once *once, const struct history *h, const struct history_op *op,
                      uint64_t *others)
{
    uint32_t n = 0;
    *once = (struct late_once){
        .rank = (uint32_t)op->last, .site = op->site, .number = op->number,
        .descriptor = op->descriptor, .count = op->count
    };
    for (uint32_t p = 0; p < h->size; p++) {
        const struct history_op *other = history_find(&h->rank[p], op->number);
        if (p == once->rank)
            continue;
        uint64_t arrived = other ? other->arrived_ns : op->last_ns;
        others[n++] = arrived < op->last_ns ? arrived : op->last_ns;
        once->cost_ns += op->last_ns - others[n - 1];
    }
    qsort(others, n, sizeof *others, lateness_by_size);
    once->late_ns = n ? op->last_ns - others[n / 2] : 0;
    return n && op->last_ns - others[0] > HISTORY_UNCERTAIN_NS;
}

static int lateness_meeting(struct lateness *l, const struct history *h,
                            const struct history_op *op, uint64_t *others)
{
    struct late_once once;
    bool waited = lateness_measure(&once, h, op, others);
    l->until = op->number;
    l->compared++;
    if (waited)
        return lateness_push(l, &once);
    l->together++;
    return 0;
}

int lateness_add(struct lateness *l, const struct history *h)
{
    if (l->birth != h->birth || l->size != h->size) {
        lateness_drop(l);
        l->birth = h->birth;
        l->size = h->size;
    }
    if (h->size < 2)
        return 0;
    uint64_t *others = calloc(h->size, sizeof *others);
    int error = others ? 0 : -ENOMEM;
    /* whoever came last is known from any rank's record; the site is the last one's own */
    for (uint32_t i = 0; !error && i < h->rank[0].n; i++) {
        const struct history_op *op = &h->rank[0].op[i];
        if (op->number > l->until && op->last >= 0 && (uint32_t)op->last < h->size)
            error = lateness_meeting(l, h, history_find(&h->rank[op->last], op->number), others);
    }
    free(others);
    return error;
}

void lateness_drop(struct lateness *l)
{
    free(l->at);
    *l = (struct lateness){ 0 };
}

static int lateness_order(const void *left, const void *right)
{
    const struct late_once *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->late_ns < b->late_ns ? -1 : a->late_ns > b->late_ns;
}

void lateness_sort(struct lateness *l)
{
    if (l->n)
        qsort(l->at, l->n, sizeof *l->at, lateness_order);
}

struct late_rank lateness_of(const struct lateness *l, uint32_t p)
{
    struct late_rank own = { 0 };
    const struct late_once *first = NULL;
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].rank == p) {
            first = first ? first : &l->at[i];
            own.last++;
            own.cost_ns += l->at[i].cost_ns;
        }
    if (first) {
        own.median_ns = first[own.last / 2].late_ns;
        own.p99_ns = first[(own.last * 99 + 99) / 100 - 1].late_ns;
    }
    return own;
}
