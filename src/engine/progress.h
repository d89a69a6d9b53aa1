/* Job: the world's progress thread: carries on what nobody waits for.
 * Owns: struct progress.
 * Never: spins, or knows what it carries on: world.pumps do.
 *
 * It sleeps on the words of all comms with work at once, and on its bell. */
#ifndef TUTTI_ENGINE_PROGRESS_H
#define TUTTI_ENGINE_PROGRESS_H

#include "group/comm.h"
#include "watch/drive.h"

int  progress_start(struct world *world);            /* once; 0 or -errno */
/* the same, and within a millisecond is soon enough where ranks need all CPUs */
void progress_tell(struct world *world);
/* Is a thread that spins for work to pump it alone, and the progress thread to keep away meanwhile
 * (attended)? Where no CPU is to spare. */
bool progress_attends(const struct world *world);
void progress_kick(struct world *world);             /* there is something to wait for */

/* Before a comm's memory goes: the thread leaves it. */
void progress_quiesce(struct world *world);
void progress_stop(struct world *world);             /* ends the thread */

/* How soon it looks unasked where no CPU is to spare; and at what it has no room to watch. ns */
enum { PROGRESS_NAP = 1000000, PROGRESS_POLL = 2000000 };

/* How long the thread may sleep, ns; UINT64_MAX: as long as it likes. */
struct nap {
    uint64_t most;                     /* whoever sleeps longer than that was stopped */
    uint64_t sooner;                   /* a device is waited for, which wakes nobody */
};

/* One sort of work under way. The world is opened with a list of them (world.pumps). */
struct pump {
    bool (*under_way)(const struct tutti_comm *comm);        /* under the world's lock */
    /* Advances it. With room for them, appends the words to sleep on and declares a listener. */
    struct nap (*round)(struct tutti_comm *comm, struct futex_word *words, int room,
                        struct drive_sleep *sleep, int *used);
    /* This process was stopped for so long, until now: no deadline under way counts that. */
    void (*excuse)(struct tutti_comm *comm, uint64_t now, uint64_t excess);
};

#endif
