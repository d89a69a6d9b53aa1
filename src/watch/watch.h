/* Job: one rank's view of a comm while it waits there: where everybody's words are, and what an
 *      operation asks of them.
 * Owns: private flags and scratch of this rank; in the arena its own member.
 * Never: how comms are made (group/), what an operation computes (coll/).
 *
 * E74 ended: a rank has read all it will ever read of a collective, then stores ended (release);
 *    who waits for it to have read loads ended (acquire) and goes on. Nobody is woken by it: where
 *    all goes well E18 has said so before. */
#ifndef TUTTI_WATCH_WATCH_H
#define TUTTI_WATCH_WATCH_H

#include "arena/arena.h"
#include "sync/wait.h"
#include "watch/fingerprint.h"

struct threads;                        /* threads.h */

/* A deadline in ns; < 0: none. One that a caller gave to a call, a comm or the options ends its
   wait by itself. The built-in one can be told from all of these: 30 minutes that a caller gave are
   a nanosecond more. */
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

/* What a rank does for others while it waits for them, after each slice of a sleep: the world's; on
 * is set once it has something to do. */
struct meanwhile { shared32 on; void (*run)(void *arg); void *arg; };

/* What a comm in the making looks at besides its own words: can those who are missing still
   come? ended: they cannot, and mine->why says why; it leaves in news_seen and verdict_seen what
   it has seen. */
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
    /* [2] of the member that this one looks for first: 0, or 1 for 0 itself; of one
     * alone its own */
    struct arrival *first;
    /* ATTENTION_ bits; 0 on the fast path. Any thread of this process, by fetch_or and fetch_and */
    shared32 attention;
    struct wait_budget budget;
    const struct wait_ways *ways;
    const struct arena *arena;
    struct seat **seats;              /* [size]: each member's seat */
    uint32_t *seen;                   /* [size] scratch: alive words at the last look */
    uint8_t  *gone;                   /* [size] scratch: enum gone at the last look */
    /* [ranks of the world] the world's: `struct kept` of their processes, opened when first asked
     * for; 0 none yet */
    shared64 *handles;
    /* [size] sticky: found dead without a mark; by any thread of this rank */
    shared8  *lost;
    /* at the last look the operation had succeeded, and only readers of its buffers were
     * waited for */
    bool     over;
    uint32_t pause_ticks;             /* what a pause costs here */
    uint32_t news_seen;
    /* time that slices took too long (a suspended machine): no deadline counts it */
    uint64_t excused_ns;
    uint64_t failed;                  /* the verdict this rank failed by; 0 none */
    /* TUTTI_VERIFY: each arrival says what has come out so far … */
    bool     verify;
    /* … by this digest of all results that all ranks must have alike */
    uint64_t outcome;
    int64_t  timeout_ns, warn_ns;     /* of this rank's operations; < 0: never */
    int    (*interrupt)(void *arg);
    void    *interrupt_arg;
    const char *name;                 /* "world", "comm 3": for reports */
    const struct meanwhile *meanwhile;        /* NULL: nothing */
    /* NULL: nothing. Looked at after the quit bits, before who is gone: one who aborted there and
     * left has aborted */
    struct beyond *beyond;
    /* the world's; NULL: what waits here is not looked at by watch/cycle */
    struct threads *threads;
};

enum attention {
    ATTENTION_BROKEN = 1, ATTENTION_WORK = 2, ATTENTION_FAULT = 4, ATTENTION_ADRIFT = 16,
    /* a thread is in `done`, of a collective, of a send or receive */
    ATTENTION_NESTED = 32, ATTENTION_NESTED_LETTER = 64
};
enum gone { GONE_NO, GONE_DIED, GONE_LEFT };

/* What operation seq asks of all ranks before it may succeed: C(k) of the protocol
 * in watch/verdict.h. */
struct claim {
    uint64_t seq, descriptor;
    uint64_t count;                   /* whole, when the descriptor holds a hash */
    /* offset in struct member of the word that a committer's last contribution raises; 0:
     * arrival is all */
    size_t   commit_at;
    uint64_t commit;                  /* … to at least this */
    int      committer;               /* that rank alone; -1: every rank */
    /* rank + 1 that this rank has found to do something else than its descriptor says; 0 none */
    uint32_t differs;
    /* what a rank gives goes when it goes: until C(k) holds it needs every rank, also one that has
     * done its part */
    bool     whole;
};

/* What a rank waits for. owner: whose word it is, -1 the comm's (sense). leave: over as well
   when its owner is gone (it will read no more). own: for a thing of this rank's own, a device
   or a disk, and for no other rank. poll: of which no word tells: advance is called again and
   again (watch_poll). */
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

/* An operation under way. An algorithm extends it (first member) and never waits: advance does what
   it can, and returns DONE or WAITING with `wait` set; a negative errno only before its arrival. */
struct op {
    struct watch *watch;
    struct claim claim;
    struct wait wait;
    int    (*advance)(struct op *op);
    uint32_t site, next;              /* next: the first rank whose arrival has not been seen */
    int64_t  timeout_ns;              /* < 0: none */
    bool     keep;                    /* the deadline breaks nothing */
    bool     late;                    /* … and has passed */
    bool     began;                   /* the fields below are set */
    int      slices, warned;
    uint64_t began_ns, excused_ns;    /* when it was called, and what had been excused by then */
    bool     waited;                  /* it went through a wait of drive.h */
    /* looks while a device or a disk was waited for; set with began */
    uint32_t polls;
    /* spent on the fast path before that: waiting too short to be worth reading the time */
    uint32_t pauses;
};

static inline void watch_meanwhile(const struct watch *w)
{
    if (w->meanwhile && load_acquire32(&w->meanwhile->on))
        w->meanwhile->run(w->meanwhile->arg);
}

/* Whose view this is: member `me` of so many. */
static inline void watch_begin(struct watch *w, struct member *members, uint32_t me, uint32_t size)
{
    w->members = members;
    w->mine = &members[me];
    w->me = me;
    w->size = size;
    w->first = members[size > 1 && me == 0].arrival;
}

/* By what this rank looked up when it opened the comm: not by the slot, over which a peer may have
 * written since. */
static inline uint32_t watch_world_rank(const struct watch *w, uint32_t p)
{
    return (uint32_t)(w->seats[p] - w->arena->seats);
}

static inline struct arrival *watch_arrival(const struct watch *w, uint32_t p, uint64_t seq)
{
    return &w->members[p].arrival[seq & 1];
}

/* Does p read nothing more of operation seq's buffers? It is gone, or has freed the comm, or come
   to a later operation; or it has left this one without a word of what it read: by an error that
   only it has met, or because somebody wrote over that word. */
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

/* An arrival has three steps. L1: say that this rank is there. L2: wake who sleeps for that.
   L3: look whether all others are there. This is L1. True: somebody may sleep until then, and
   watch_wake is to be called before anything is waited for. Its payload has been written
   before. The descriptor goes right before seq, and nothing else with it: a peer that spins on
   this line takes it away between two stores, and each time costs a transfer. (The site is in
   the journal.) */
static inline __attribute__((always_inline)) bool watch_say(struct watch *w, const struct claim *c)
{
    struct arrival *a = &w->mine->arrival[c->seq & 1];
    if (w->verify)
        store_relaxed64(&a->more[OUTCOME_WORD], w->outcome);         /* relaxed: E1 publishes it */
    store_relaxed64(&a->descriptor, c->descriptor);                  /* relaxed: E1 publishes it */
    store_fence64(&a->seq, c->seq);                                  /* E1 release, E2 fence */
    return load_relaxed32(&w->mine->sleepers);              /* relaxed: E2, ordered by the fence */
}

static inline void watch_wake(struct watch *w, uint64_t seq)
{
    w->ways->wake(w->ways->arg, low_half(&w->mine->arrival[seq & 1].seq), INT32_MAX);
}

/* L1 and L2. */
static inline void watch_arrive(struct watch *w, const struct claim *c)
{
    if (watch_say(w, c))
        watch_wake(w, c->seq);
}

/* Raises a word of this rank that peers may sleep on: E1's manner for the words of later phases. */
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

/* The first look of L3, at the first peer: its number, which is on its way for as long as it takes,
   so that who has something else to do does it between this and watch_arrived_soon. `steps`: how
   long the peer's line is left alone before that. */
static inline uint64_t watch_first(const struct watch *w, const struct claim *c, uint32_t steps)
{
    return watch_seq((const struct arrival *)(const void *)((const char *)&w->first[c->seq & 1]
                                                            + cpu_later(steps)));
}

/* Is it there, or soon? there: its number, as just seen. One who looked too early looks again soon,
   a few times: after a whole pause it would itself be what the other waits for, and then the other,
   for ever. */
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

/* L3 on the fast path, with a short spin for each peer, where ranks have CPUs to spin on: true if
   all have arrived and agree. `next` is the first who has not; *pauses: how often it had to pause.
   `first`: as watch_first saw it.
   Two transfers of a line are all that ranks cost each other who come at the same time: each takes
   its own line away from its reader to write into it, and reads the other's. There is a third where
   one looks while the other is about to write: the line goes to the reader once more, with the old
   number in it. And the first can be had beforehand: when all have arrived at this operation,
   nobody reads the line of the next. */
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
            continue;       /* our own line may be at a peer's by now: no reason to fetch it back */
        struct arrival *a = watch_arrival(w, p, c->seq);
        *next = p;
        if (!watch_soon(w, c, a, watch_seq(a), spins, pauses))
            return false;
    }
    *next = w->size;
    cpu_own_all(&w->mine->arrival[(c->seq + 1) & 1], LINE);
    return true;
}

/* Is what p said in operation seq of device memory? p has arrived at it. */
static inline bool watch_device(const struct watch *w, uint32_t p, uint64_t seq)
{
    /* relaxed: read after an acquire of seq (E1), stored last */
    return load_relaxed64(&watch_arrival(w, p, seq)->more[DEVICE_WORD]) == seq;
}

/* A wait for this rank's own device or disk: asked again soon, and every look at what could end the
 * operation is made as ever. */
static inline int watch_poll(struct op *op)
{
    op->wait = (struct wait){
        .word = &op->watch->mine->placed, .value = UINT64_MAX, .owner = (int)op->watch->me,
        .poll = true, .own = true
    };
    return WAITING;
}

/* The same, where this process has a word that tells. */
static inline int watch_own(struct op *op, shared64 *word, uint64_t value)
{
    op->wait = (struct wait){
        .word = word, .value = value, .owner = (int)op->watch->me, .own = true
    };
    return WAITING;
}

/* L3: has everybody arrived, with what we call? Else op->wait is the first who has not. */
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
            /* One who is there but calls something else is waited for in vain: straight to
             * the verdict. */
            uint64_t value = there ? UINT64_MAX : op->claim.seq;
            op->wait = wait_for(&a->seq, value, p);
            return WAITING;
        }
    }
    op->next = w->size;
    return DONE;
}

#endif
