/* Job: say of the operations of a comm which ranks came last: how often, by how much, and what that
 *      cost the others.
 * Owns: what it has added up; nothing of the arena.
 * Never: reads an arena (history does).
 *
 * An operation counts if all ranks' arrivals are known. It is `together` if all of them are one
 * moment (HISTORY_UNCERTAIN_NS): nobody had to wait, and nobody came last. Of any other the last
 * one is late by the time since the middle one of the others' arrivals; it cost each of the others
 * the time since their own. */
#ifndef TUTTI_WATCH_LATENESS_H
#define TUTTI_WATCH_LATENESS_H

#include "watch/history.h"

/* A rank of the comm that was last, once. */
struct late_once {
    uint32_t rank, site;              /* site: where it called; any number */
    uint64_t number, descriptor, count, late_ns, cost_ns;
};

struct lateness {
    uint32_t size;                    /* ranks of the comm */
    uint64_t birth;                   /* the comm's */
    uint64_t until;                   /* number of the last operation that was looked at */
    uint64_t compared, together;
    size_t n, room;
    struct late_once *at;             /* [n] */
};

/* What a rank's own share of it is. */
struct late_rank { uint64_t last, median_ns, p99_ns, cost_ns; };

/* The operation of which `op` is the last one's record: fills in *once. others: room for the
   arrivals of all but it. True: others waited for it. */
bool lateness_measure(struct late_once *once, const struct history *h, const struct history_op *op,
                      uint64_t *others);

/* Begins with all zeros. Adds what has come since the last time; of another comm it begins anew.
   0 or -ENOMEM. */
int  lateness_add(struct lateness *l, const struct history *h);
void lateness_drop(struct lateness *l);

/* Of rank p. Sorts l->at by rank and lateness: once is enough for all. */
void lateness_sort(struct lateness *l);
struct late_rank lateness_of(const struct lateness *l, uint32_t p);          /* after that */

#endif
