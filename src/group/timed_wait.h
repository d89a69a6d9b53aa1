/* Job: sleep until one word changes, one rank is gone, or the deadline passes.
 * Owns: nothing but its count in the sleepers word that the caller names.
 * Never: waits for collectives (watch/drive does). */
#ifndef TUTTI_GROUP_TIMED_WAIT_H
#define TUTTI_GROUP_TIMED_WAIT_H

#include "group/comm.h"

struct timed_wait {
    struct tutti_comm *comm;
    int64_t timeout_ns;                /* < 0: none */
    uint64_t began_ns, excused_ns;
    uint64_t slept_ns;                 /* when the last slice ended; 0: none has */
    int slices, whole;                 /* how many have ended; those that nothing woke it from */
    bool warned;
    bool broken;                       /* the comm has failed: the report is written */
    enum kind kind;                    /* for watch/cycle, of a long wait; KIND_NONE: not told */
    uint32_t site;                     /* likewise: the call's */
    bool told;                         /* watch/cycle knows of this wait */
    bool idles;                        /* its end may be days away: it asks the system less often */
};

struct timed_wait timed_wait_begin(struct tutti_comm *comm, int64_t timeout_ns);
/* The wait is over, or something has moved: watch/cycle forgets it. */
void timed_wait_moved(struct timed_wait *p);

/* One slice of sleep while the low half of *word is `seen`. about: the rank waited for; call
   timed_wait_gone(about) afterwards. 0: look again. -ETIMEDOUT. -EINTR: the comm is aborted.
   -EDEADLK: the wait can never end (watch/cycle); the comm is whole, the report is written. If the
   comm has failed, the cause; it is broken here. */
int timed_wait_sleep(struct timed_wait *p, shared64 *word, uint64_t seen, shared32 *sleepers,
                     uint32_t about, const char *what);
bool timed_wait_gone(struct timed_wait *p, uint32_t about);

/* The same for a word that any rank of the job may change. other: the seat of one of them; its
   death ends the sleep early. what: "for key …". */
int timed_wait_sleep_any(struct timed_wait *p, shared64 *word, uint64_t seen, shared32 *sleepers,
                         struct seat *other, const char *what);

/* The first living rank of the world from *from on, but this one; NULL: none. *from moves past the
 * ranks that are gone: they stay so. */
struct seat *timed_wait_other(const struct timed_wait *p, uint32_t *from);

/* The same on a bell. Before it the caller counts itself as a listener, reads the bell and looks at
   everything once more; after it the caller takes the count back. about: TUTTI_ANY: any rank of the
   comm. */
int timed_wait_doze(struct timed_wait *p, shared32 *bell, uint32_t seen, int about,
                    const char *what);
/* Is `about` gone? Before a long slice it also finds deaths without a mark. Any thread of this
 * rank. slice: enum wait_slice of the next sleep. */
bool timed_wait_lost(struct watch *w, uint32_t about, int slice);
/* Its words say that it is not, so timed_wait_lost need not be asked before a brief sleep. */
static inline bool timed_wait_there(const struct watch *w, uint32_t about)
{
    shared32 *mark = process_mark_word(&w->seats[about]->mark);
    return process_mark_held(load_acquire32(mark))                   /* E5 acquire */
        && !load_relaxed8(&w->lost[about])           /* relaxed: sticky, all who write it agree */
        && !(load_acquire32(&w->members[about].quit) & (QUIT_LEFT | QUIT_FREED));  /* E7 acquire */
}
/* enum wait_slice of the next sleep. */
int timed_wait_slice(const struct timed_wait *p);

/* 0, or why the comm has failed: an abort, a deadlock, or an operation, by this word of the slot.
 * */
int timed_wait_cause(const struct watch *w, uint64_t verdict);
/* Its sentence. Immortal. */
const char *timed_wait_cause_text(int cause);

/* 0, or why the comm has failed; then it is broken here, so that no call begins on it. about: a
   rank, TUTTI_ANY, or PATIENCE_NOBODY: `what` says all. */
enum { PATIENCE_NOBODY = -2 };
int timed_wait_check(struct timed_wait *p, int about, const char *what);

#endif
