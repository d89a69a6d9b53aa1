/* Job: run the world's progress thread, which carries on work that no thread waits for.
 * Owns: struct progress.
 * Never: spins; knows what it carries on: world.pumps do.
 *
 * It sleeps on the words of all comms with work at once, and on its bell. */
#ifndef TUTTI_ENGINE_PROGRESS_H
#define TUTTI_ENGINE_PROGRESS_H

#include "group/comm.h"
#include "watch/drive.h"

int  progress_start(struct world *world);            /* once; 0 or -errno */
/* as progress_kick, but a delay of a millisecond is allowed if ranks need all CPUs */
void progress_tell(struct world *world);
/* True: there is no spare CPU, so a thread that spins for work pumps it alone, and the progress
 * thread keeps away meanwhile (attended). */
bool progress_attends(const struct world *world);
void progress_kick(struct world *world);             /* there is something to wait for */

/* Called before a comm's memory is freed: returns when the thread has left it. */
void progress_quiesce(struct world *world);
void progress_stop(struct world *world);             /* ends the thread */

/* ns between its polls without a spare CPU; and between polls of waits for which there is no
   room */
enum { PROGRESS_NAP = 1000000, PROGRESS_POLL = 2000000 };

/* Polls without a bell, in a row. Each costs as much as a bell: if all of a row are in vain, the
   next row is half as long. A poll that finds work makes the row whole. */
struct nap_row {
    int most;                          /* naps of a row now */
    int vain;                          /* naps of this row so far; -1: it is over */
};
enum { NAPS = 8 };
/* work: a round has had some; left: some is under way. True: a nap comes next. False: a sleep until
   the bell. */
bool nap_again(struct nap_row *row, bool work, bool left);

/* How long the thread may sleep, ns; UINT64_MAX: no limit. */
struct nap {
    uint64_t most;                     /* a longer sleep means that the process was stopped */
    uint64_t sooner;                   /* a device is waited for, which wakes no thread */
};

/* One kind of work under way. The world is opened with a list of them (world.pumps). */
struct pump {
    bool (*under_way)(const struct tutti_comm *comm);        /* under the world's lock */
    /* Advances it. If there is room, appends the words to sleep on and declares a sleeper. */
    /* Deadlines are judged at `now`, before which all stops have been excused. */
    struct nap (*round)(struct tutti_comm *comm, uint64_t now, struct futex_word *words, int room,
                        struct drive_sleep *sleep, int *used);
    /* This process was stopped for `excess` until now: no deadline under way counts that time. */
    void (*excuse)(struct tutti_comm *comm, uint64_t now, uint64_t excess);
};

#endif
