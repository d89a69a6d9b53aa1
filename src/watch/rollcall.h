/* Job: say in words who is missing, what each rank does instead, and why an operation failed.
 * Owns: nothing; reads what is there, tolerates what changes under its eyes.
 * Never: decides anything. */
#ifndef TUTTI_WATCH_ROLLCALL_H
#define TUTTI_WATCH_ROLLCALL_H

#include "base/text.h"
#include "watch/watch.h"

/* Why the comm failed (w->failed), as this rank sees it, and the table: one line a rank, the odd
 * ones first. */
void rollcall_failure(struct text *t, struct watch *w, const struct op *op);

/* The table alone: what each rank of the comm does. `op` may be NULL (no operation of ours
 * under way). */
void rollcall_table(struct text *t, struct watch *w, const struct claim *claim);

/* What rank p does, in one line without the rank: "barrier #3 at a.c:12 for 2.0 s" … */
void rollcall_rank(struct text *t, struct watch *w, uint32_t p);

/* The same with the line's end; and where p has met a failure alone, the table, which
 * says whose. */
static inline void rollcall_whom(struct text *t, struct watch *w, uint32_t p)
{
    rollcall_rank(t, w, p);
    text_add(t, "\n");
    if (load_acquire32(&w->members[p].quit) & QUIT_ALONE)            /* E7 acquire */
        rollcall_table(t, w, NULL);
}

/* How p ended: "died, killed by signal 9 (SIGKILL)", "left", "freed the comm"; "" while
 * it lives. */
void rollcall_end(struct text *t, struct watch *w, uint32_t p);

/* A wait that has become old: the table on stderr, once for all ranks, by the lowest that waits. */
void rollcall_warn(const struct op *op, uint64_t waited_ns);

#endif
