/* What moves data beyond the arrival lines: slots, queues of chunks (of 64 bytes here, two slots
 * deep: base/tiny.h), broadcasts. */
#include "explore/scenarios.h"

#include "group/comm.h"

#include <string.h>

enum { CALLS = 2, SMALL = 6, SWAPPED = 16, ROUNDS_2 = 24, ROUNDS_3 = 40, EARLY = 25 };

static uint64_t value(int rank, int i, int k)
{
    return (uint64_t)(1 + rank) * 1000000 + (uint64_t)i * 1000 + (uint64_t)k;
}

static void summed(int rank, int n, int k, const uint64_t *y, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t sum = 0;
        for (int p = 0; p < n; p++)
            sum += value(p, i, k);
        if (y[i] != sum)
            explore_wrong("torn payload: rank %d, call %d, element %d: %llu and not %llu", rank, k,
                          i, (unsigned long long)y[i], (unsigned long long)sum);
    }
}

/* x is written anew as soon as a call is over: where it lies in the arena, peers must
 * have read it. */
static void reduces_of(int rank, tutti_comm *world, uint64_t *x, int count, int calls)
{
    bool failed = false;
    for (int k = 0; k < calls; k++) {
        uint64_t y[ROUNDS_3];
        for (int i = 0; i < count; i++)
            x[i] = value(rank, i, k);
        memset(y, 0, sizeof y);
        int r = tutti_all_reduce_at("explore", x, y, (size_t)count, TUTTI_U64, TUTTI_SUM, world,
                                    NULL);
        memset(x, 0, (size_t)count * sizeof *x);
        explore_note(rank, k, r);
        failed |= r < 0;
        if (r == 0)
            summed(rank, tutti_size(world), k, y, count);
    }
    if (failed)
        explore_failed(rank, world);
}

static void reduces(int rank, tutti_comm *world, int count, int calls)
{
    uint64_t x[ROUNDS_3];
    reduces_of(rank, world, x, count, calls);
}

static void lends(int rank, tutti_comm *world)
{
    enum { COUNT = 8 };
    uint64_t *x = tutti_alloc(COUNT * sizeof *x, world);
    if (x)
        reduces_of(rank, world, x, COUNT, CALLS);
}

void eagers(int rank, tutti_comm *world) { reduces(rank, world, SMALL, CALLS); }

/* Blocks change hands: the third call writes a block for the second time. */
static void swaps(int rank, tutti_comm *world) { reduces(rank, world, SWAPPED, CALLS + 1); }

void pipelines(int rank, tutti_comm *world)
{
    reduces(rank, world, explore_count() ? explore_count() : ROUNDS_3, CALLS);
}

/* From the second call on blocks change hands, each for the second time. */
static void pipelines_swap(int rank, tutti_comm *world)
{
    reduces(rank, world, explore_count(), CALLS + 1);
}

static void one_pipeline(int rank, tutti_comm *world) { reduces(rank, world, ROUNDS_3, 1); }

/* turns: each rank is the root by turns; else rank 0 is. */
static void broadcasts_of(int rank, tutti_comm *world, bool turns)
{
    bool failed = false;
    int n = tutti_size(world), count = explore_count();
    for (int k = 0; k < CALLS; k++) {
        uint64_t x[EARLY];
        int root = turns ? k % n : 0;
        for (int i = 0; i < count; i++)
            x[i] = rank == root ? value(rank, i, k) : 0;
        int r = tutti_broadcast_at("explore", x, (size_t)count, TUTTI_U64, root, world, NULL);
        explore_note(rank, k, r);
        failed |= r < 0;
        for (int i = 0; i < count && r == 0; i++)
            if (x[i] != value(root, i, k))
                explore_wrong("torn payload: rank %d, broadcast %d, element %d: %llu", rank, k, i,
                              (unsigned long long)x[i]);
    }
    if (failed)
        explore_failed(rank, world);
}

void broadcasts(int rank, tutti_comm *world) { broadcasts_of(rank, world, true); }

/* Rank 1 folds what rank 0 gives, while rank 0 writes it. */
static void scans(int rank, tutti_comm *world)
{
    bool failed = false;
    for (int k = 0; k < CALLS; k++) {
        uint64_t x[EARLY], y[EARLY] = { 0 };
        for (int i = 0; i < explore_count(); i++)
            x[i] = value(rank, i, k);
        int r = tutti_scan_at("explore", x, y, (size_t)explore_count(), TUTTI_U64, TUTTI_SUM, world,
                              NULL);
        memset(x, 0, sizeof x);
        explore_note(rank, k, r);
        failed |= r < 0;
        if (r == 0)
            summed(rank, rank + 1, k, y, explore_count());
    }
    if (failed)
        explore_failed(rank, world);
}

static void nothing_beside(void *arg) { (void)arg; }

/* Rank 0 leaves each broadcast when it has given, and has its 0: so what counts of a failure is
 * that no rank comes through the barrier behind it. As where other communication goes on, its fence
 * comes later. */
static void lefts(int rank, tutti_comm *world)
{
    int count = explore_count(), first = 0, r;
    world->world->flags |= TUTTI_LEAVE;
    world->world->beside.run = nothing_beside;
    for (int k = 0; k < CALLS + 1; k++) {
        uint64_t x[EARLY];
        for (int i = 0; i < count; i++)
            x[i] = rank ? 0 : value(0, i, k);
        r = tutti_broadcast_at("explore", x, (size_t)count, TUTTI_U64, 0, world, NULL);
        first = first ? first : r;
        for (int i = 0; i < count && r == 0; i++)
            if (x[i] != value(0, i, k))
                explore_wrong("torn payload: rank %d, broadcast %d, element %d: %llu", rank, k, i,
                              (unsigned long long)x[i]);
    }
    r = tutti_barrier_at("explore", world, NULL);
    explore_note(rank, 0, first ? first : r);
    if (first || r < 0)
        explore_failed(rank, world);
}

/* Both from one root, in chunks: the words that say where they are are written twice. */
static void earlies(int rank, tutti_comm *world) { broadcasts_of(rank, world, false); }

/* Of some rounds a rank's own block goes along with what it gives, of others it does not: each
 * reader has to ask by round. Rank 1 gives out of the arena, so rank 0 may take many of its rounds
 * at once. */
static void besides(int rank, tutti_comm *world)
{
    enum { RANKS = 2, KNOWN = TUNER_AGAIN + 1 };
    int count = explore_count();
    uint64_t own[RANKS * ROUNDS_3],
        *x = rank ? tutti_alloc((size_t)(RANKS * count) * sizeof *x, world) : own;
    bool failed = false;
    for (int k = 0; x && k < CALLS; k++) {
        uint64_t y[RANKS * ROUNDS_3] = { 0 };
        for (int i = 0; i < RANKS * count; i++)
            x[i] = value(rank, i, k);
        for (int i = 0; i < TUNER_CLASSES; i++)
            world->coll.streams[0][i] = (struct tuner){ { 1 << 20, 1 }, KNOWN };
        world->coll.beside = (struct tuner){ { 1 << 20, 1 }, TUNER_AGAIN + 1 - (uint32_t)k };
        int r = tutti_all_to_all_at("explore", x, y, (size_t)count, TUTTI_U64, world, NULL);
        explore_note(rank, k, r);
        failed |= r < 0;
        for (int i = 0; i < RANKS * count && r == 0; i++)
            if (y[i] != value(i / count, rank * count + i % count, k))
                explore_wrong("torn payload: rank %d, call %d, element %d: %llu", rank, k, i,
                              (unsigned long long)y[i]);
    }
    if (failed)
        explore_failed(rank, world);
}

#define EAGER "all_reduce:-inf=eager"
#define PIPELINED "all_reduce:-inf=pipelined"
#define EVENTS (KILL | STOP | SPURIOUS | TIMER)

const struct scenario scenario_eager = {
    .name = "eager", .ranks = 2, .rules = EAGER, .body = eagers, .check = check_good,
    .preemptions = 3, .memory = MEMORY_TSO
};
const struct scenario scenario_eager_events = {
    .name = "eager_events", .ranks = 2, .rules = EAGER, .body = eagers, .check = check_death,
    .preemptions = 1, .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_eager_weak = {
    .name = "eager_weak", .ranks = 2, .rules = EAGER, .body = eagers, .check = check_good,
    .preemptions = 2, .memory = MEMORY_WEAK
};
const struct scenario scenario_eager_lent = {
    .name = "eager_lent", .ranks = 2, .rules = EAGER, .body = lends, .check = check_good,
    .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_eager_lent_events = {
    .name = "eager_lent_events", .ranks = 2, .rules = EAGER, .body = lends, .check = check_death,
    .preemptions = 1, .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_swap = {
    .name = "swap", .ranks = 2, .rules = EAGER, .body = swaps, .check = check_good,
    .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_swap_events = {
    .name = "swap_events", .ranks = 2, .rules = EAGER, .body = swaps, .check = check_death,
    .preemptions = 1, .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_pipelined = {
    .name = "pipelined", .ranks = 2, .rules = PIPELINED, .body = pipelines, .commits = true,
    .check = check_good, .preemptions = 2
};
const struct scenario scenario_pipelined_events = {
    .name = "pipelined_events", .ranks = 2, .rules = PIPELINED, .body = pipelines,
    .count = ROUNDS_2, .commits = true, .check = check_death, .preemptions = 1,
    .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_pipelined_rounds_events = {   /* a slot is written a second time */
    .name = "pipelined_rounds_events", .ranks = 2, .rules = PIPELINED,
    .body = one_pipeline, .commits = true, .check = check_death, .preemptions = 1,
    .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_pipelined_tso = {
    .name = "pipelined_tso", .ranks = 2, .rules = PIPELINED, .body = pipelines, .commits = true,
    .check = check_good, .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_pipelined_swap = {
    .name = "pipelined_swap", .ranks = 2, .rules = PIPELINED, .body = pipelines_swap,
    .count = ROUNDS_2, .commits = true, .check = check_good, .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_beside = {
    .name = "beside", .ranks = 2, .rules = "all_to_all:-inf=pipelined", .body = besides,
    .count = 32, .commits = true, .check = check_good, .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_broadcast_inline = {
    .name = "broadcast_inline", .ranks = 2, .rules = "broadcast:-inf=inline", .body = broadcasts,
    .count = 5, .check = check_good, .preemptions = 3
};
const struct scenario scenario_broadcast_eager = {
    .name = "broadcast_eager", .ranks = 2, .rules = "broadcast:-inf=eager", .body = broadcasts,
    .count = 6, .check = check_good, .preemptions = 3, .memory = MEMORY_TSO
};
const struct scenario scenario_early = {                       /* three chunks and a rest */
    .name = "early", .ranks = 2, .rules = "broadcast:-inf=eager", .body = earlies,
    .count = EARLY, .check = check_good, .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_early_weak = {
    .name = "early_weak", .ranks = 2, .rules = "broadcast:-inf=eager", .body = earlies,
    .count = EARLY, .check = check_good, .preemptions = 2, .memory = MEMORY_WEAK
};
const struct scenario scenario_early_events = {
    .name = "early_events", .ranks = 2, .rules = "broadcast:-inf=eager", .body = earlies,
    .count = EARLY, .check = check_death, .preemptions = 1, .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_early_pieces = {          /* two chunks a piece: by the pipeline */
    .name = "early_pieces", .ranks = 2, .rules = "broadcast:-inf=pipelined", .body = earlies,
    .count = EARLY, .commits = true, .check = check_good, .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_early_pieces_events = {
    .name = "early_pieces_events", .ranks = 2, .rules = "broadcast:-inf=pipelined",
    .body = earlies, .count = EARLY, .commits = true, .check = check_death, .preemptions = 1,
    .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_early_scan = {
    .name = "early_scan", .ranks = 2, .rules = "scan:-inf=eager", .body = scans, .count = EARLY,
    .check = check_good, .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_early_scan_events = {
    .name = "early_scan_events", .ranks = 2, .rules = "scan:-inf=eager", .body = scans,
    .count = EARLY, .check = check_death, .preemptions = 1, .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_left_inline = {
    .name = "left_inline", .ranks = 2, .rules = "broadcast:-inf=inline", .body = lefts,
    .count = 5, .check = check_good, .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_left_eager = {
    .name = "left_eager", .ranks = 2, .rules = "broadcast:-inf=eager", .body = lefts,
    .count = 6, .check = check_good, .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_left_events = {
    .name = "left_events", .ranks = 2, .rules = "broadcast:-inf=eager", .body = lefts,
    .count = 6, .check = check_death, .preemptions = 1, .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_broadcast_pipelined = {
    .name = "broadcast_pipelined", .ranks = 2, .rules = "broadcast:-inf=pipelined",
    .body = broadcasts, .count = 20, .commits = true, .check = check_good,
    .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_broadcast_inline_events = {
    .name = "broadcast_inline_events", .ranks = 2, .rules = "broadcast:-inf=inline",
    .body = broadcasts, .count = 5, .check = check_death, .preemptions = 1,
    .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_broadcast_eager_events = {
    .name = "broadcast_eager_events", .ranks = 2, .rules = "broadcast:-inf=eager",
    .body = broadcasts, .count = 6, .check = check_death, .preemptions = 1,
    .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_broadcast_events = {
    .name = "broadcast_events", .ranks = 2, .rules = "broadcast:-inf=pipelined",
    .body = broadcasts, .count = 20, .commits = true, .check = check_death, .preemptions = 1,
    .preemptions_event = 1, .events = EVENTS
};

/* ---- deadlines that pass, and aborts, at any step ---- */

#define DEADLINE(named, does, ...) \
    const struct scenario scenario_##named##_deadline = { \
        .name = #named "_deadline", .ranks = 2, .body = does, .check = check_verdict, \
        .preemptions = 1, .preemptions_event = 1, .timeout_ms = { 1, 2 }, .events = JUMP | TIMER, \
        .patience = PATIENCE_FIRST, __VA_ARGS__ \
    };
#define ABORT(named, does, ...) \
    const struct scenario scenario_##named##_abort = { \
        .name = #named "_abort", .ranks = 2, .helpers = 1, .body = does, .helper = aborts, \
        .check = check_abort, .preemptions = 2, .patience = PATIENCE_FIRST, __VA_ARGS__ \
    };

DEADLINE(inline, inlines, .rules = NULL)
DEADLINE(eager, eagers, .rules = EAGER)
DEADLINE(pipelined, pipelines, .rules = PIPELINED, .count = ROUNDS_2)
DEADLINE(broadcast, broadcasts, .rules = "broadcast:-inf=pipelined", .count = 20)
DEADLINE(broadcast_inline, broadcasts, .rules = "broadcast:-inf=inline", .count = 5)
DEADLINE(broadcast_eager, broadcasts, .rules = "broadcast:-inf=eager", .count = 6)
DEADLINE(left, lefts, .rules = "broadcast:-inf=eager", .count = 6)
ABORT(inline, inlines, .rules = NULL)
ABORT(eager, eagers, .rules = EAGER)
ABORT(pipelined, pipelines, .rules = PIPELINED, .count = ROUNDS_2)
ABORT(broadcast, broadcasts, .rules = "broadcast:-inf=pipelined", .count = 20)
ABORT(broadcast_inline, broadcasts, .rules = "broadcast:-inf=inline", .count = 5)
ABORT(broadcast_eager, broadcasts, .rules = "broadcast:-inf=eager", .count = 6)
