/* Job: who of a comm is gone, by the kernel's mark or by asking after the process.
 * Owns: the watch's scratch `seen`, `gone`, `lost`.
 * Never: whose fault that makes an operation's end: verdict.h judges.
 *
 * E85 handle: a thread fills a `struct kept`, then puts its address into `handles` (swap, release);
 *     the others load it (acquire), then read. */
#ifndef TUTTI_WATCH_DEATH_H
#define TUTTI_WATCH_DEATH_H

#include "watch/watch.h"

/* Loads every member's alive word (E5), and notes in seen what a sleep may rely on and in gone what
 * became of its owner. */
void death_look(struct watch *w);

/* Asks the system after every member that is not known to be gone: finds what leaves no mark
   (reaped by the OOM killer, an exec by another thread, a core being dumped). thorough: looks into
   /proc, some ten microseconds a member; opens what the quick question needs, which is one system
   call for all. Returns how many are newly lost. blind: a thorough question could not be asked of
   all (another pid namespace, no /proc). */
int death_probe(struct watch *w, bool thorough);

/* The same for one member, p; 1 or 0. */
int death_probe_one(struct watch *w, uint32_t p, bool thorough);

/* Asks thoroughly after every member that has no mark, and marks those that are gone. For who is
 * about to fail for want of what a dead rank may hold. Any thread. True: somebody is gone, and may
 * have been marked just now, by this rank or another: look again. */
bool death_seek(struct watch *w);

/* Gone without a mark? Then it is lost for all looks of this rank, and its mark is set: all ranks
 * of the job learn of it. For those who wait for one rank. Any thread. */
bool death_without_mark(struct watch *w, uint32_t p, bool thorough);

/* With the world, or in a fork of its process, of each entry of `handles`. */
void death_handle_close(shared64 *handle);

/* Is this seat's rank dead or gone, by its mark? Costs two loads. A death without a mark is found
 * by those who wait for the rank, and by death_seek; they set the mark. */
enum gone death_of(struct seat *seat);

#endif
