/* Job: sleep until one word changes, one rank is gone, or the patience is over.
 * Owns: nothing but its declaration in the sleepers word it is given.
 * Never: collectives: those wait by watch/drive. */
#ifndef TUTTI_GROUP_TIMED_WAIT_H
#define TUTTI_GROUP_TIMED_WAIT_H

#include "group/comm.h"

struct timed_wait {
    struct tutti_comm *comm;
    int64_t timeout_ns;                /* < 0: none */
    uint64_t began_ns, excused_ns;
    uint64_t slept_ns;                 /* when the last slice ended; 0: none has */
    int slices;
    bool warned;
    bool broken;                       /* the comm has failed: the report is written */
    /* of the call, and its site: told to watch/cycle if the wait is long; KIND_NONE: it is not */
    enum kind kind;
    uint32_t site;
    bool told;
};

struct timed_wait timed_wait_begin(struct tutti_comm *comm, int64_t timeout_ns);
/* the wait is over, or something has moved in it: what was told is taken back */
void timed_wait_moved(struct timed_wait *p);

/* One slice of sleep while *word's low half is `seen`; `about` is the rank waited for. 0: look
   again. -ETIMEDOUT, -EINTR (the comm is aborted); -EDEADLK: it can never end (watch/cycle), the
   comm is whole, the report is written;
   if the comm has failed, the cause, and it is broken here. Afterwards timed_wait_gone says whether
   `about` is gone. */
int timed_wait_sleep(struct timed_wait *p, shared64 *word, uint64_t seen, shared32 *sleepers,
                     uint32_t about, const char *what);
bool timed_wait_gone(struct timed_wait *p, uint32_t about);

/* The same for a word that no rank of the comm in particular will change. `other` is somebody who
   might, in the job: the sleep ends early when he is gone. what: "for key …". */
int timed_wait_sleep_any(struct timed_wait *p, shared64 *word, uint64_t seen, shared32 *sleepers,
                         struct seat *other, const char *what);

/* The first rank of the world from *from on that is not this one, and lives; NULL: none is left.
 * *from moves on: who is gone stays so. */
struct seat *timed_wait_other(const struct timed_wait *p, uint32_t *from);

/* The same for callers who have a bell: they have declared themselves to those who ring, read
   it, and looked at everything once more. about: TUTTI_ANY is whoever of the comm. They take their
   declaration back after it. */
int timed_wait_doze(struct timed_wait *p, shared32 *bell, uint32_t seen, int about,
                    const char *what);
/* Is `about` gone? After so many slices of a sleep also those who left no mark. For any thread of
 * this rank. */
bool timed_wait_lost(struct watch *w, uint32_t about, int slices);
/* The slice of a sleep that was preceded by so many, ns: 1 ms growing to 250 ms. */
uint64_t timed_wait_slice(int slices);

/* Somebody aborted the comm or found a deadlock, or an operation of it failed, as this word of the
 * slot says: 0 or the cause. */
int timed_wait_cause(const struct watch *w, uint64_t verdict);

/* Has the comm failed? 0, or the cause, and it is broken here: nobody begins anything on a
   comm that others have given up. about: a rank, TUTTI_ANY, or PATIENCE_NOBODY where `what`
   says it all. */
enum { PATIENCE_NOBODY = -2 };
int timed_wait_check(struct timed_wait *p, int about, const char *what);

#endif
