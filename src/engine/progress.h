/* Job: the world's progress thread: carries on what nobody waits for.
 * Owns: struct progress.
 * Never: spins. It sleeps on the words of all comms with work at once, and on its bell. */
#ifndef TUTTI_ENGINE_PROGRESS_H
#define TUTTI_ENGINE_PROGRESS_H

#include "group/comm.h"

int  progress_start(struct world *world);            /* once; 0 or -errno */
void progress_tell(struct world *world);             /* the same, and within a millisecond is soon enough where ranks need all CPUs */
/* Is a thread that spins for work to pump it alone, and the progress thread to keep away meanwhile (attended)? Where no CPU is to spare. */
bool progress_attends(const struct world *world);
void progress_kick(struct world *world);             /* there is something to wait for */

/* work.c: under queue_lock, advances a comm's queue; the head that waits, or NULL. look: also everything that could end the wait.
   While `done` runs the lock is open, and other threads' pumps do nothing. */
struct op *work_pump(struct tutti_comm *comm, bool look);
uint64_t work_slice(struct tutti_comm *comm);        /* ns until the first deadline in the queue, or less; under queue_lock */
/* This process was stopped for so long, until now: no deadline of what is under way counts that. Under queue_lock. */
void work_excuse(struct tutti_comm *comm, uint64_t now, uint64_t excess);

#endif
