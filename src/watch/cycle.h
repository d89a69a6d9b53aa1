/* Job: end waits that can never end: a cycle of threads of which each waits for another.
 * Owns: seat.waiters of this rank but for `doomed`; waiter.doomed and seat.story of the ranks of a
 *       cycle it has found, under join.lock.
 * Never: looks at anything on the fast path: a wait is published after some 100 ms, and looked at
 *        once per long slice.
 *
 * Each sleeper says what it waits for, and after each look that was in vain raises `beats`. A walk
 * (wait_graph.h) that finds this thread in a cycle remembers stamps and, after all of these, beats.
 * A later walk that finds the same confirms it if no stamp has changed and each beats has gone up
 * by two: then all these threads have only waited since the first walk, and each has looked in vain
 * after all others were asleep. Nobody who could help is left: all threads of a rank that have ever
 * called, works under way and `done` to be called are part of the walk, each time. A rank that
 * computes, is stopped or starved has no odd stamp, or does not beat: it is in no cycle.
 *
 * A deadline that was given (timeout_given) ends a wait by itself: such a wait is not published, so
 * its thread is one that could help. In a collective it ends the wait for all, so those who have
 * come to it must each have said that they came without one (member.patient).
 *
 * A cycle that is confirmed is ended under join.lock in all its waits before the first of them
 * returns: a collective by its verdict, everything else by `doomed`. Of a collective it is known
 * that a certain rank will not arrive, which is enough to know that C(k) does not hold: the
 * proposal, the fence, the second look (at that rank) and the confirmation are those of
 * watch/verdict, by whoever found it.
 *
 * E21 queued: a rank that leaves an operation under way stores its number (release) before that
 *    call returns; a walk loads it (acquire): that rank will arrive by itself. Without it: a cycle
 *    is seen where the operation goes on.
 * E60 waits: a thread fills its waiter, then its stamp (release); a walk loads the stamp (acquire),
 *     then the rest, then the stamp again.
 * E61 beats: a thread has looked in vain, then beats (release), full fence, and looks again; a walk
 *     loads beats (acquire) after all stamps.
 * E63 doomed: the story is told, then doomed (release); the waiter loads it (acquire), takes
 *     join.lock, and reads.
 * E64 patient: a rank that leaves an operation with a given deadline under way takes patient
 *    back (release) before it arrives there or says that it is queued; a walk loads it (acquire)
 *    after these. */
#ifndef TUTTI_WATCH_CYCLE_H
#define TUTTI_WATCH_CYCLE_H

#include "watch/watch.h"

enum { CYCLE_FROM_NS = 80000000 };                   /* how old a wait is before it is published */

struct cycle_wait {
    enum kind kind;
    uint32_t site;
    uint64_t seq;               /* of a collective; 0: it is none */
    int      about;             /* else: the rank waited for; -1: any; of no meaning for KIND_GET */
};

/* This rank has no deadline that was given in any operation of this comm up to number seq, nor
 * behind it. 0: it has. */
void cycle_patient(const struct watch *w, uint64_t seq);

/* This thread has just looked, and what it waits for has not come: publishes, and looks for a
   cycle. Afterwards it sleeps at most a slice, or looks at everything again. A collective that can
   never end has its verdict then; for the others see cycle_doomed. */
void cycle_look(struct watch *w, const struct cycle_wait *wait);
/* After each sleep, before anything else is looked at: was this wait ended? Then all others of its
 * cycle were, too. */
bool cycle_doomed(const struct threads *threads);
/* The same where the comm has failed by a cycle: first, whoever found that comes to its end. */
bool cycle_ended(const struct threads *threads);
/* The wait is over, or something has moved in it. A few loads where it was not published. Of the
   world, because a handle's comm may be gone by then. */
void cycle_over(const struct threads *threads);

/* the story of the cycle that rank p of this comm was in */
void cycle_tell(const struct watch *w, uint32_t p, struct text *t);

#endif
