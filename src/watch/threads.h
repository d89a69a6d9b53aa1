/* Job: numbers for the threads of a rank that call tutti.
 * Owns: seat.threads of this rank; struct threads.
 * Never: what they wait for (cycle.h).
 *
 * E62 callers: a thread sets its bit (release) before it does anything else; who looks for cycles
 *    loads it (acquire). So for the counts of works under way: raised (release) before the call
 *    that starts one returns, lowered after it and its `done` are over. */
#ifndef TUTTI_WATCH_THREADS_H
#define TUTTI_WATCH_THREADS_H

#include "arena/arena.h"

struct cycle_memory;                   /* cycle.c: what a thread saw at its last walk */

struct threads {
    struct seat *seat;
    const struct arena *arena;
    /* threads_self of each that lives, 0 none; changes under the world's lock */
    shared64 self[THREADS_MAX];
    struct cycle_memory *memory[THREADS_MAX];        /* each thread's own */
};

/* Differs from that of every other living thread of the process: one instruction. */
static inline uint64_t threads_self(void)
{
    return (uint64_t)(uintptr_t)__builtin_thread_pointer();
}

int  threads_number(const struct threads *t);        /* the calling thread's; -1: it has none */
bool threads_known(const struct threads *t);         /* it has called before */

/* The library's own thread, which calls for a caller: `done` is all it does on its own, and that is
   counted by itself (seat.promises). */
extern _Thread_local bool threads_serves;

/* All under the world's lock. */
void threads_call(struct threads *t);             /* the calling thread calls for the first time */
bool threads_end(struct threads *t);              /* it ends; false: it had no number */
void threads_close(struct threads *t);                       /* with the world */

#endif
