/* Job: numbers for the threads of a rank that call tutti, and which of them has called on which comm.
 * Owns: seat.threads and member.callers of this rank; struct threads.
 * Never: what they wait for (cycle.h).
 *
 * E62 callers: a thread sets its bit (release) before it does anything on the comm; who looks for cycles loads it (acquire). So for the
 *    counts of works under way: raised (release) before the call that starts one returns, lowered after it and its `done` are over. */
#ifndef TUTTI_WATCH_THREADS_H
#define TUTTI_WATCH_THREADS_H

#include "arena/arena.h"

struct cycle_memory;                   /* cycle.c: what a thread saw at its last walk */

struct threads {
    struct seat *seat;
    const struct arena *arena;
    shared64 self[THREADS_MAX];        /* threads_self of each that lives, 0 none; changes under the world's lock */
    struct cycle_memory *memory[THREADS_MAX];        /* each thread's own */
};

/* Differs from that of every other living thread of the process: one instruction. */
static inline uint64_t threads_self(void) { return (uint64_t)(uintptr_t)__builtin_thread_pointer(); }

int  threads_number(const struct threads *t);        /* the calling thread's; -1: it has none */
bool threads_known(const struct threads *t, const struct member *mine);      /* it has called on that comm before */

/* All under the world's lock. */
void threads_call(struct threads *t, struct member *mine);   /* the calling thread calls on that comm */
uint32_t threads_end(struct threads *t);                     /* it ends: its bit in `callers`, 0 if it had no number. The caller clears those */
void threads_close(struct threads *t);                       /* with the world */

#endif
