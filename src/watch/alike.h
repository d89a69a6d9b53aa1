/* Job: which ranks have arrived at an operation, and which of them have called the same thing.
 * Owns: nothing; it reads arrival lines, which stay as they are until this rank returns.
 * Never: what is said of it (rollcall.c). */
#ifndef TUTTI_WATCH_ALIKE_H
#define TUTTI_WATCH_ALIKE_H

#include "watch/fingerprint.h"
#include "watch/watch.h"

/* Has p arrived? */
static inline bool alike_there(const struct watch *w, const struct claim *c, uint32_t p)
{
    return load_acquire64(&watch_arrival(w, p, c->seq)->seq) >= c->seq;      /* E1 acquire */
}

/* The count of a call whose descriptor holds only its hash. */
static inline uint64_t alike_count(const struct arrival *a)
{
    /* relaxed: after E1 */
    return load_relaxed64(&a->payload[COUNT_WORD]);
}

/* Have p and q called the same thing? Both are there. */
static inline bool alike(const struct watch *w, const struct claim *c, uint32_t p, uint32_t q)
{
    const struct arrival *a = watch_arrival(w, p, c->seq), *b = watch_arrival(w, q, c->seq);
    uint64_t stamp = load_relaxed64(&a->descriptor);                 /* relaxed: after E1 */
    /* relaxed: after E1 */
    return stamp == load_relaxed64(&b->descriptor)
        && (!fingerprint_hashed(stamp) || alike_count(a) == alike_count(b));
}

/* How many ranks stand where p stands, itself among them. */
static inline uint32_t alike_company(const struct watch *w, const struct claim *c, uint32_t p)
{
    bool there = alike_there(w, c, p);
    uint32_t n = 0;
    for (uint32_t q = 0; q < w->size; q++)
        n += there == alike_there(w, c, q) && (!there || alike(w, c, p, q));
    return n;
}

/* Are all there, and have all called the same thing? */
static inline bool alike_all(const struct watch *w, const struct claim *c)
{
    for (uint32_t p = 0; p < w->size; p++)
        if (!alike_there(w, c, p) || alike_company(w, c, p) != w->size)
            return false;
    return true;
}

#endif
