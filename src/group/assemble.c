/* A sleeper watches join.state and the marks of the ranks behind it: all of them up to 127 ranks,
 * else its neighbours. The rank that finds one gone wakes all through state.
 * An empty seat has a mark word of 0. A sleeper on 0 stays queued when a rank takes the mark, so a
 * new rank wakes nobody: N ranks join by N wakes, not by N².
 * The kernel wakes one sleeper of a mark. That one first wakes the others.
 * A death that leaves no mark is found by turns. The clock, which is one for all, gives the turn to
 * another rank every 3 ms, in the order in which they sat. That rank looks at all marks and asks
 * the system about the next few seats. Nobody is appointed: a rank that is stopped or dies in its
 * turn delays these few seats by a round. All of 1,024 are asked about in 0.2 s, and that costs a
 * tenth of a CPU, however many wait.
 * Cost: some 50 us from the last rank's CAS to the return of a sleeper. */
#include "group/assemble.h"

#include "arena/nodes.h"
#include "group/directory.h"
#include "group/seat.h"
#include "os/cpu.h"
#include "os/futex.h"
#include "sync/wait.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>

/* ranks of a launcher come within so long of each other */
enum { EXPECT_NS = 500000 };
enum { SLICE_FIRST_NS = 1000000, SLICE_LAST_NS = 50000000 };
/* turns of a round, at least; seats to ask about in a turn; what of a round a rank sleeps where the
 * kernel can watch one word only */
enum { TURN_NS = 3000000, TURNS_LEAST = 16, PROBES = 16, ALONE_PART = 10 };

static void wake_all(struct arena_join *join) { futex_wake(&join->state, INT_MAX); }

int assemble_end(const struct assembly *g)
{
    struct arena_join *join = g->arena->join;
    uint32_t state = load_acquire32(&join->state);                       /* E12 acquire */
    if (state == JOIN_GATHERING)
        return ASSEMBLE_GOING;
    if (state == JOIN_COMPLETE)
        return ASSEMBLE_DONE;
    /* relaxed: written before state, which was acquired */
    uint32_t who = load_relaxed32(&join->failed_rank);
    return who == ASSEMBLE_LATE ? -ETIMEDOUT : -EOWNERDEAD;
}

/* The first reason stands: a second finder's CAS on failed_rank finds it taken. */
static int give_up(struct assembly *g, uint32_t reason)
{
    struct arena_join *join = g->arena->join;
    uint32_t none = 0, going = JOIN_GATHERING;
    swap_if32(&join->failed_rank, &none, reason);
    if (swap_if32(&join->state, &going, JOIN_FAILED))                    /* E12 release */
        wake_all(join);
    return assemble_end(g);
}

int assemble_fail(struct assembly *g, uint32_t rank) { return give_up(g, rank + 1); }

/* CPUs that all ranks together may use: the union of their masks, at most the smallest quota. */
static uint32_t cpus_of_all(const struct arena *arena)
{
    uint64_t all[RANKS_MAX / 64] = { 0 };
    uint32_t quota = 0;
    for (uint32_t p = 0; p < arena->header->size; p++) {
        const struct seat *seat = &arena->seats[p];
        /* E11 acquire; a seat that is counted is never empty */
        if (load_acquire32(&seat->state) == SEAT_EMPTY)
            continue;
        for (int i = 0; i < RANKS_MAX / 64; i++)
            all[i] |= seat->cpu_mask[i];
        if (seat->quota && (!quota || seat->quota < quota))
            quota = seat->quota;
    }
    uint32_t cpus = (uint32_t)cpu_count_mask(all, RANKS_MAX / 64);
    if (quota && quota < cpus)
        cpus = quota;
    return cpus ? cpus : 1;
}

void assemble_seated(struct assembly *g)
{
    struct arena_join *join = g->arena->join;
    uint32_t going = JOIN_GATHERING;
    nodes_bind_span(g->arena, g->rank);
    refused_carry(&g->refused, g->arena);
    /* E11 release, acquire: the last one has seen all seats filled */
    g->turn = fetch_add32(&join->joined, 1);
    if (g->turn + 1 != g->arena->header->size)
        return;
    nodes_bind_shared(g->arena);
    /* spares the others the lock; where it fails, each of them tries, and says why */
    struct slot *world;
    directory_world(g->arena, &world);
    /* relaxed: published by the CAS on state */
    store_relaxed32(&join->cpus, cpus_of_all(g->arena));
    if (swap_if32(&join->state, &going, JOIN_COMPLETE))                  /* E12 release */
        wake_all(join);
}

/* True: the rank of this seat is gone, or never came and has ended, as its launcher says. */
static bool is_gone(struct seat *seat)
{
    /* E11 acquire */
    return load_acquire32(&seat->state) == SEAT_LEFT || load_acquire32(&seat->status)
        || process_mark_died(load_acquire32(process_mark_word(&seat->mark)));       /* E5 acquire */
}

static int look_at_marks(struct assembly *g)
{
    for (uint32_t p = 0; p < g->arena->header->size; p++)
        if (p != g->rank && is_gone(&g->arena->seats[p]))
            return assemble_fail(g, p);
    return ASSEMBLE_GOING;
}

int assemble_look(struct assembly *g)
{
    int end = assemble_end(g);
    if (end == ASSEMBLE_GOING)
        end = look_at_marks(g);
    if (end == ASSEMBLE_GOING && clock_ns() >= g->end_ns)
        end = give_up(g, ASSEMBLE_LATE);
    return end;
}

/* As process_alive; 1 for a seat that nobody has. */
static int probe_one(const struct assembly *g, uint32_t p)
{
    struct seat *seat = &g->arena->seats[p];
    bool filled = p != g->rank && load_acquire32(&seat->state) == SEAT_JOINED;     /* E11 acquire */
    return filled ? process_alive(&seat->id, -1) : 1;
}

/* The ranks are not all of one pid namespace: the next few of this rank's own, which nobody else
 * may see. */
static int probe_own(struct assembly *g)
{
    struct seat *seats = g->arena->seats;
    uint32_t size = g->arena->header->size, asked = 0;
    for (uint32_t i = 0; i < size && asked < PROBES; i++) {
        uint32_t p = (g->rank + ++g->own) % size;
        if (load_acquire32(&seats[p].state) != SEAT_JOINED                      /* E11 acquire */
            || seats[p].id.pid_namespace != seats[g->rank].id.pid_namespace)
            continue;
        asked++;
        if (probe_one(g, p) == 0)
            return assemble_fail(g, p);
    }
    return ASSEMBLE_GOING;
}

static int probe(struct assembly *g)
{
    uint32_t size = g->arena->header->size, n = size < PROBES ? size : PROBES;
    uint32_t first = fetch_add32(&g->arena->join->probed, n);
    bool unseen = false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = (first + i) % size;
        int alive = probe_one(g, p);
        if (alive == 0)
            return assemble_fail(g, p);
        unseen |= alive < 0;
    }
    return unseen ? probe_own(g) : ASSEMBLE_GOING;
}

static uint64_t slice_to_end(const struct assembly *g, uint64_t slice, uint64_t now)
{
    uint64_t left = g->end_ns > now ? g->end_ns - now : 0;
    return slice < left ? slice : left;
}

uint64_t assemble_slice(struct assembly *g)
{
    uint64_t slice = g->slice_ns ? g->slice_ns : SLICE_FIRST_NS;
    g->slice_ns = 2 * slice < SLICE_LAST_NS ? 2 * slice : SLICE_LAST_NS;
    return slice_to_end(g, slice, clock_ns());
}

/* Until this rank's next turn, ns. *round: until everybody has had one. */
static uint64_t until_turn(const struct assembly *g, uint64_t now, uint64_t *round)
{
    uint32_t sit = load_acquire32(&g->arena->join->joined);                    /* E11 acquire */
    uint64_t turns = sit > TURNS_LEAST ? sit : TURNS_LEAST;
    *round = turns * TURN_NS;
    uint64_t mine = g->turn % turns * TURN_NS, at = now % *round;
    return mine > at ? mine - at : mine + *round - at;
}

/* Word 0 is state. The others are the marks of the ranks behind this one, in a circle. */
static int words_to_watch(const struct assembly *g, struct futex_word words[FUTEX_WORDS])
{
    uint32_t size = g->arena->header->size;
    int n = 1;
    words[0] = (struct futex_word){ &g->arena->join->state, JOIN_GATHERING };
    for (uint32_t i = 1; i < size && n < FUTEX_WORDS; i++) {
        shared32 *word = process_mark_word(&g->arena->seats[(g->rank + i) % size].mark);
        words[n++] = (struct futex_word){ word, load_acquire32(word) };             /* E5 acquire */
    }
    return n;
}

static void pass_on(const struct futex_word *words, int n)
{
    for (int i = 1; i < n; i++) {
        uint32_t now = load_acquire32(words[i].word);                               /* E5 acquire */
        if (now != words[i].seen && !process_mark_held(now))
            futex_wake(words[i].word, INT_MAX);
    }
}

/* Reads the words before the look: a change after the look ends the sleep at once. */
int assemble_wait(struct assembly *g)
{
    struct futex_word words[FUTEX_WORDS];
    int n = words_to_watch(g, words);
    int end = assemble_look(g);
    if (end != ASSEMBLE_GOING)
        return end;
    uint64_t now = clock_ns(), round, turn = until_turn(g, now, &round);
    uint64_t slice = slice_to_end(g, g->slice_ns ? g->slice_ns : turn, now);
    uint64_t alone = round / ALONE_PART;
    struct wait_ways ways = wait_ways_with(&(struct wait_progress){ .run = NULL });
    int slept = wait_sleep(&ways, words, n, slice, slice < alone ? slice : alone);
    pass_on(words, n);
    return slept == -ETIMEDOUT && assemble_end(g) == ASSEMBLE_GOING ? probe(g) : ASSEMBLE_GOING;
}

void assemble_expect(const struct assembly *g)
{
    const struct seat *mine = &g->arena->seats[g->rank];
    uint32_t cpus = (uint32_t)cpu_count_mask(mine->cpu_mask, RANKS_MAX / 64);
    if (cpus < g->arena->header->size || (mine->quota && mine->quota < g->arena->header->size))
        return;
    uint64_t end = clock_ns() + EXPECT_NS;
    while (assemble_end(g) == ASSEMBLE_GOING && clock_ns() < end)
        sched_yield();
}

static void add_timeout(const struct assembly *g, struct text *why)
{
    if (clock_ns() < g->end_ns)
        text_add(why, " in the time that another rank allowed");
    else if (g->timeout_ms % 1000 == 0)
        text_add(why, " within %d s", g->timeout_ms / 1000);
    else
        text_add(why, " within %d ms", g->timeout_ms);
}

void assemble_again(struct assembly *g)
{
    for (uint32_t p = 0; p < g->arena->header->size; p++)
        /* E11 acquire */
        if (p != g->rank && load_acquire32(&g->arena->seats[p].state) != SEAT_EMPTY)
            g->came[p / 64] |= UINT64_C(1) << p % 64;
    refused_keep(&g->refused, g->arena);
    g->slice_ns = 0;
}

static void explain_late(const struct assembly *g, struct text *why)
{
    int came[RANKS_MAX], missing[RANKS_MAX], before[RANKS_MAX], n_came = 0, n_missing = 0,
                                                                n_before = 0;
    for (uint32_t p = 0; p < g->arena->header->size; p++) {
        if (load_acquire32(&g->arena->seats[p].state) != SEAT_EMPTY)            /* E11 acquire */
            came[n_came++] = (int)p;
        else if (g->came[p / 64] >> p % 64 & 1)
            before[n_before++] = (int)p;
        else
            missing[n_missing++] = (int)p;
    }
    if (n_missing == 0)
        text_add(why, "the ranks did not all come%s", n_before ? " at one time" : "");
    else {
        text_add(why, n_missing == 1 ? "rank " : "ranks ");
        text_add_ranks(why, missing, n_missing);
        text_add(why, " did not come");
    }
    add_timeout(g, why);
    text_add(why, " (joined: ");
    text_add_ranks(why, came, n_came);
    text_add(why, " of %u", g->arena->header->size);
    if (n_before) {
        text_add(why, n_before == 1 ? "; given up before: rank " : "; given up before: ranks ");
        text_add_ranks(why, before, n_before);
    }
    text_add(why, ")");
    struct refused refused = g->refused;
    refused_keep(&refused, g->arena);
    refused_explain(&refused, g->arena, why);
}

static void explain_gone(const struct assembly *g, struct text *why)
{
    /* relaxed: it was written before state, which was acquired */
    uint32_t who = load_relaxed32(&g->arena->join->failed_rank) - 1;
    if (who >= g->arena->header->size) {
        text_add(why, "a rank died while the ranks were joining");
        return;
    }
    struct seat *seat = &g->arena->seats[who];
    /* E11 acquire */
    uint32_t state = load_acquire32(&seat->state), status = load_acquire32(&seat->status);
    text_add(why, "rank %u", who);
    seat_add_who(seat, why);
    if (state == SEAT_EMPTY)
        text_add(why, " ended before it joined");
    else
        text_add(why, " %s while the ranks were joining", state == SEAT_LEFT ? "left" : "died");
    if (status) {
        text_add(why, ": ");
        process_add_status(why, (int)(status >> 1));
    }
}

void assemble_explain(const struct assembly *g, int error, struct text *why)
{
    if (error == -ETIMEDOUT)
        explain_late(g, why);
    else
        explain_gone(g, why);
}
