/* Job: one rank's view of a comm: where the words of all ranks are, what an operation asks of them,
 *      how a rank arrives and looks.
 * Owns: private flags and scratch of this rank; in the arena its own member.
 * Never: how comms are made (group/), what an operation computes (coll/), waiting (drive.h).
 *
 * E74 ended: a rank has read all that it will read of a collective, then stores ended (release). A
 *    peer whose buffer it read loads ended (acquire) and goes on. Nobody is woken by it, since E18
 *    says the same before where all goes well. */
#ifndef TUTTI_WATCH_WATCH_H
#define TUTTI_WATCH_WATCH_H

#include "arena/arena.h"
#include "sync/wait.h"
#include "watch/fingerprint.h"

struct threads;                        /* threads.h */

/* Deadlines are in ns; < 0: none. A deadline that a caller gave (to a call, a comm, the options)
   ends its wait by itself, and counts in the search for cycles. The built-in one does not. So that
   the two differ, 30 minutes that a caller gave are stored as a nanosecond more. */
#define TIMEOUT_BUILT_IN INT64_C(1800000000000)
static inline int64_t timeout_give(int ms)
{
    int64_t ns = (int64_t)ms * 1000000;
    return ms < 0 ? -1 : ns + (ns == TIMEOUT_BUILT_IN);
}

static inline bool timeout_given(int64_t timeout_ns)
{
    return timeout_ns >= 0 && timeout_ns != TIMEOUT_BUILT_IN;
}

/* What a rank does for others after each slice of a sleep. One for each world. on: there is
 * something to do. */
struct meanwhile { shared32 on; void (*run)(void *arg); void *arg; };

/* What a wait for the making of a comm looks at besides its own words, on the parent.
   ended(): the missing ranks cannot come any more, and mine->why says why. It stores what it has
   seen in news_seen and verdict_seen. */
struct beyond {
    shared32 *news;
    shared64 *verdict;
    uint32_t news_seen, verdict_seen;
    bool (*ended)(struct beyond *beyond);
};

struct watch {
    struct slot *slot;
    struct member *members;           /* [size] */
    struct member *mine;
    uint32_t me, size;
    /* [2] arrival lines of the first peer to look for: rank 0, or rank 1 on rank 0; its own where
     * it is alone */
    struct arrival *first;
    /* ATTENTION_ bits; 0 on the fast path. Written by any thread of this process */
    shared32 attention;
    struct wait_budget budget;
    uint64_t linger_ticks;            /* before a yield (drive.c); 0: not */
    uint32_t linger_at;               /* the last peer that did not allow it */
    const struct wait_ways *ways;
    const struct arena *arena;
    struct seat **seats;              /* [size]: each member's seat */
    uint32_t *seen;                   /* [size] scratch: alive words at the last look */
    uint8_t  *gone;                   /* [size] scratch: enum gone at the last look */
    /* [ranks of the world] of the world: `struct kept` of each process, opened at first use; 0:
     * none yet */
    shared64 *handles;
    /* [size] 1: found dead without a mark, for good. Written by any thread of this rank */
    shared8  *lost;
    /* scratch: at the last look for deaths without a mark the system did not show all members */
    bool     blind;
    /* at the last look the operation had succeeded: only readers of its buffers are waited for */
    bool     over;
    uint32_t pause_ticks;             /* cost of a pause, in ticks of the clock */
    uint32_t news_seen;
    /* by how much slices took too long (a suspended machine); no deadline counts it */
    uint64_t excused_ns;
    uint64_t failed;                  /* the verdict by which this rank failed; 0: none */
    /* TUTTI_VERIFY: each arrival carries `outcome` */
    bool     verify;
    /* digest of all results so far that must be the same on all ranks */
    uint64_t outcome;
    int64_t  timeout_ns, warn_ns;     /* of this rank's operations; < 0: never */
    int    (*interrupt)(void *arg);
    void    *interrupt_arg;
    const char *name;                 /* "world", "comm 3": for reports */
    const struct meanwhile *meanwhile;        /* NULL: nothing */
    /* NULL: nothing. Looked at after the quit bits and before the gone ranks: a rank that aborted
     * and left has aborted */
    struct beyond *beyond;
    /* of the world; NULL: watch/cycle does not look at waits here */
    struct threads *threads;
};

enum attention {
    ATTENTION_BROKEN = 1, ATTENTION_WORK = 2, ATTENTION_FAULT = 4, ATTENTION_ADRIFT = 16,
    /* a thread is in `done`, of a collective, of a send or receive, of a queue's call */
    ATTENTION_NESTED = 32, ATTENTION_NESTED_LETTER = 64, ATTENTION_NESTED_FEED = 128,
    ATTENTION_NESTED_ANY = ATTENTION_NESTED | ATTENTION_NESTED_LETTER | ATTENTION_NESTED_FEED
};
enum gone { GONE_NO, GONE_DIED, GONE_LEFT };

/* What operation seq asks of all ranks before it may succeed: C(k) of watch/verdict.h. */
struct claim {
    uint64_t seq, descriptor;
    uint64_t count;                   /* compared where the descriptor holds only a hash of it */
    /* offset in struct member of the word that a committer raises last; 0: the arrival is enough */
    size_t   commit_at;
    uint64_t commit;                  /* … to at least this */
    int      committer;               /* that rank alone; -1: every rank */
    /* rank + 1 of a peer that does something else than its descriptor says; 0: none found */
    uint32_t differs;
    /* what a rank gives is lost when it ends: until C(k) holds every rank must live, also one that
     * has done its part */
    bool     whole;
};

/* The claim of an operation for which the arrivals are enough. */
static inline void claim_of_arrivals(struct claim *c, uint64_t seq, uint64_t descriptor,
                                     uint64_t count)
{
    c->seq = seq;
    c->descriptor = descriptor;
    c->count = count;
    c->commit_at = 0;
    c->differs = 0;
    c->whole = false;
}

/* What a rank waits for: *word >= value.
   owner  the rank whose word it is; -1: the comm's (sense)
   leave  the wait ends as well when its owner is gone, since it reads no more then
   own    it is for a device or a disk of this rank, and for no other rank
   poll   no word tells the end: advance is called again and again (watch_poll) */
struct wait { shared64 *word; uint64_t value; int owner; bool leave, poll, own; };

/* Until p's word has reached value. */
static inline struct wait wait_for(shared64 *word, uint64_t value, uint32_t p)
{
    return (struct wait){ .word = word, .value = value, .owner = (int)p };
}
/* The same, or until p is gone. */
static inline struct wait wait_for_or_gone(shared64 *word, uint64_t value, uint32_t p)
{
    return (struct wait){ .word = word, .value = value, .owner = (int)p, .leave = true };
}

enum { WAITING = 0, DONE = 1 };

/* An operation under way. An algorithm extends it (first member) and never waits. advance does what
   it can. It returns DONE, or WAITING with `wait` set, or, only before the arrival, a negative
   errno. */
struct op {
    struct watch *watch;
    struct claim claim;
    struct wait wait;
    int    (*advance)(struct op *op);
    uint32_t site;
    uint32_t next;                    /* first rank whose arrival has not been seen */
    int64_t  timeout_ns;              /* < 0: none */
    bool     keep;                    /* the deadline breaks nothing */
    bool     late;                    /* … and has passed */
    bool     began;                   /* the fields below are set */
    int      slices;                  /* enum wait_slice of the next sleep */
    int      warned;
    uint64_t began_ns;                /* when it was called */
    uint64_t excused_ns;              /* watch.excused_ns at that time */
    bool     waited;                  /* it went through a wait of drive.h */
    uint32_t polls;                   /* looks at a device or a disk; set with began */
    uint32_t pauses;                  /* on the fast path, where the time is not read */
};

static inline void watch_meanwhile(const struct watch *w)
{
    if (w->meanwhile && load_acquire32(&w->meanwhile->on))
        w->meanwhile->run(w->meanwhile->arg);
}

/* This is the view of member `me` of `size`. */
static inline void watch_begin(struct watch *w, struct member *members, uint32_t me, uint32_t size)
{
    w->members = members;
    w->mine = &members[me];
    w->me = me;
    w->size = size;
    w->first = members[size > 1 && me == 0].arrival;
}

/* p's rank in the world. From what this rank looked up when it opened the comm, since a peer may
 * have written over the slot. */
static inline uint32_t watch_world_rank(const struct watch *w, uint32_t p)
{
    return (uint32_t)(w->seats[p] - w->arena->seats);
}

static inline struct arrival *watch_arrival(const struct watch *w, uint32_t p, uint64_t seq)
{
    return &w->members[p].arrival[seq & 1];
}

/* True: p reads nothing more of operation seq's buffers. It is gone, has freed the comm, or has
   come to a later operation. Or it has ended this one without saying what it read (E74): by an
   error that only it has met, or because somebody wrote over that word. */
static inline bool watch_past(const struct watch *w, uint32_t p, uint64_t seq)
{
    /* E7 acquire */
    return w->gone[p] != GONE_NO || (load_acquire32(&w->members[p].quit) & (QUIT_FREED | QUIT_LEFT))
        || load_acquire64(&watch_arrival(w, p, seq + 1)->seq) > seq                 /* E1 acquire */
        || load_acquire64(&w->members[p].ended) >= seq;                         /* E74 acquire */
}

static inline bool claim_agrees(const struct claim *c, const struct arrival *a)
{
    /* relaxed: read after an acquire of a->seq (E1), which its owner stored last */
    return load_relaxed64(&a->descriptor) == c->descriptor
        && (!fingerprint_hashed(c->descriptor)
            /* relaxed: as above */
            || load_relaxed64(&a->payload[COUNT_WORD]) == c->count);
}

/* An arrival has three steps.
   L1: say that this rank is there.
   L2: wake the ranks that sleep for that.
   L3: look whether all others are there.
   This is L1. The payload has been written before. True: a rank may sleep for it, and watch_wake is
   to be called before this rank waits for anything.
   Only the descriptor is stored right before seq. A peer that spins on this line takes it away
   between two stores, which costs a transfer each time. So the site stands in the journal. */
static inline __attribute__((always_inline)) bool watch_say(struct watch *w, const struct claim *c)
{
    struct arrival *a = &w->mine->arrival[c->seq & 1];
    if (w->verify)
        store_relaxed64(&a->more[OUTCOME_WORD], w->outcome);         /* relaxed: E1 publishes it */
    store_relaxed64(&a->descriptor, c->descriptor);                  /* relaxed: E1 publishes it */
    store_fence64(&a->seq, c->seq);                                  /* E1 release, E2 fence */
    return load_relaxed32(&w->mine->sleepers);              /* relaxed: E2, ordered by the fence */
}

/* The same of a rank that waits for nobody now: its stores need not be seen yet, so the fence of E2
 * is left to its next call (watch_heard). True: a rank sleeps for it for sure. */
static inline __attribute__((always_inline)) bool watch_say_soon(struct watch *w,
                                                                 const struct claim *c)
{
    struct arrival *a = &w->mine->arrival[c->seq & 1];
    store_relaxed64(&a->descriptor, c->descriptor);                  /* relaxed: E1 publishes it */
    store_release64(&a->seq, c->seq);                                /* E1 release */
    return load_relaxed32(&w->mine->sleepers);     /* relaxed: who is missed is found by E2 later */
}

/* What watch_say_soon has left. True: as watch_say. */
static inline bool watch_heard(const struct watch *w)
{
    fence_full();                                                    /* E2 fence */
    return load_relaxed32(&w->mine->sleepers);              /* relaxed: E2, ordered by the fence */
}

static inline void watch_wake(struct watch *w, uint64_t seq)
{
    w->ways->wake(w->ways->arg, low_half(&w->mine->arrival[seq & 1].seq), INT32_MAX);
}

/* Raises a word of a later phase, as E1 does for the arrival. Wakes the peers that sleep on it. */
static inline void watch_raise(struct watch *w, shared64 *word, uint64_t value)
{
    store_fence64(word, value);   /* E16 release, E17 release, E18 release, E19 release, E2 fence */
    if (load_relaxed32(&w->mine->sleepers))           /* relaxed: E2, ordered by the fence */
        w->ways->wake(w->ways->arg, low_half(word), INT32_MAX);
}

static inline uint64_t watch_seq(const struct arrival *a)
{
    return load_acquire64(&a->seq);                                  /* E1 acquire */
}

/* The first look of L3: the number in the first peer's line. The load takes a transfer of the line.
   The caller does other things between this and watch_arrived_soon.
   later: 0, after a delay (cpu_later), so that the peer can write first. */
static inline uint64_t watch_first(const struct watch *w, const struct claim *c, size_t later)
{
    return watch_seq((const struct arrival *)(const void *)((const char *)&w->first[c->seq & 1]
                                                            + later));
}

/* True: the peer of line a is there, or comes within `spins` looks, and agrees.
   there: its number as just seen. A rank that looked too early looks again after a short delay, a
   few times. With a whole pause the two ranks could miss each other in turns, for ever. */
static inline __attribute__((always_inline)) bool watch_soon(const struct watch *w,
                                                             const struct claim *c,
                                                             const struct arrival *a,
                                                             uint64_t there, uint32_t spins,
                                                             uint32_t *pauses)
{
    enum { SOON = 4, SOON_STEPS = 16 };
    for (uint32_t i = 0; there < c->seq; i++) {
        if (i >= spins || !w->budget.spin_ticks)
            return false;
        *pauses += i == 0 || i >= SOON;                 /* the soon ones are one pause together */
        if (i < SOON)
            cpu_steps(SOON_STEPS);
        else
            cpu_pause();
        there = watch_seq(a);
    }
    return claim_agrees(c, a);
}

/* L3 on the fast path, with a short spin for each peer. True: all have arrived and agree.
   first    what watch_first saw
   *next    out: the first peer that has not arrived
   *pauses  out: how often this rank paused
   Cost: two transfers of a line for ranks that come at the same time. Each takes its own line back
   from its reader to write it, and reads the other's. A third is paid where a rank looks while the
   peer is about to write: the line travels once with the old number. The first is paid beforehand:
   when all have arrived here, nobody reads the line of the next operation, so it is fetched now. */
static inline __attribute__((always_inline)) bool watch_arrived_soon(const struct watch *w,
                                                                     const struct claim *c,
                                                                     uint64_t first, uint32_t spins,
                                                                     uint32_t *next,
                                                                     uint32_t *pauses)
{
    *pauses = 0;
    *next = w->me == 0;
    if (!watch_soon(w, c, &w->first[c->seq & 1], first, spins, pauses))
        return false;
    for (uint32_t p = *next + 1; p < w->size; p++) {
        if (p == w->me)
            continue;       /* our own line may be in a peer's cache: do not fetch it back */
        struct arrival *a = watch_arrival(w, p, c->seq);
        *next = p;
        if (!watch_soon(w, c, a, watch_seq(a), spins, pauses))
            return false;
    }
    *next = w->size;
    cpu_own_all(&w->mine->arrival[(c->seq + 1) & 1], LINE);
    return true;
}

/* True: p, which has arrived at operation seq, gave device memory there. */
static inline bool watch_device(const struct watch *w, uint32_t p, uint64_t seq)
{
    /* relaxed: read after an acquire of seq (E1), stored last */
    return load_relaxed64(&watch_arrival(w, p, seq)->more[DEVICE_WORD]) == seq;
}

/* Waits for this rank's own device or disk by asking it again soon. Deaths, deadlines and aborts
 * are looked at as in every wait. */
static inline int watch_poll(struct op *op)
{
    op->wait = (struct wait){
        .word = &op->watch->mine->placed, .value = UINT64_MAX, .owner = (int)op->watch->me,
        .poll = true, .own = true
    };
    return WAITING;
}

/* The same, where a word of this process tells the end. */
static inline int watch_own(struct op *op, shared64 *word, uint64_t value)
{
    op->wait = (struct wait){
        .word = word, .value = value, .owner = (int)op->watch->me, .own = true
    };
    return WAITING;
}

/* L3: DONE if all ranks have arrived with the same call. Else op->wait is for the first that has
 * not. */
static inline int watch_all_arrived(struct op *op)
{
    struct watch *w = op->watch;
    for (uint32_t p = op->next; p < w->size; p++) {
        struct arrival *a = watch_arrival(w, p, op->claim.seq);
        if (p == w->me)
            continue;
        bool there = watch_seq(a) >= op->claim.seq;
        if (!there || !claim_agrees(&op->claim, a)) {
            op->next = p;
            /* A peer that calls something else will never agree: the wait goes straight to the
             * verdict. */
            uint64_t value = there ? UINT64_MAX : op->claim.seq;
            op->wait = wait_for(&a->seq, value, p);
            return WAITING;
        }
    }
    op->next = w->size;
    return DONE;
}

#endif
