/* The job's store: a value is whole or not there, a sum misses nothing, a dead writer stops nobody,
 * a deadline is that call's alone.
 *
 * Store buffers (MEMORY_TSO) hold the store's shared words: chains, numbers, versions, sleepers,
 * the books' flags. Its blocks are written plainly, and in here at once, which can be told from a
 * buffer by nobody: they are touched only by who holds the lock. Whoever takes it has read the word
 * that its last holder gave it back by, and gave it back after all his stores: on x86 they come out
 * in their order, on others that store is a release and this load an acquire. A holder that dies
 * does not give it back: the kernel marks it after the thread's last instruction, when its stores
 * are out; the mark is read in the same way. Words that are read without the lock are all shared
 * words. Where a block's free words become an entry, the holder's own buffer must not come out on
 * top of it: hooks/plain_entry.patch. A kill lets all stores out, so the events are searched
 * without buffers. */
#include "explore/scenarios.h"

#include "arena/store.h"
#include "explore/engine.h"

#include <errno.h>
#include <string.h>

#define EVENTS (KILL | STOP | SPURIOUS | TIMER)

static const char text_of_a[] = "a value of some length, for all to read";

void stores(int rank, tutti_comm *world)
{
    int64_t now = 0;
    if (rank == 0)
        explore_note(rank, 0, tutti_set_at("explore", "a", text_of_a, sizeof text_of_a, world));
    else {
        char got[sizeof text_of_a] = "";
        size_t len = sizeof got;
        tutti_call call = { .timeout_ms = explore_count() ? explore_count() : 1000 };
        uint64_t began = explore_now();
        int r = tutti_get_at("explore", "a", got, &len, world, &call);
        explore_came(rank, 0,
                     (r == -EOWNERDEAD && explore_killed[0])
                             || (r == -ETIMEDOUT && (engine.stops || engine.deaths))
                         ? 0
                         : r,
                     began);
        if (r == -ETIMEDOUT && explore_count()) {
            r = tutti_get_at("explore", "a", got, &len, world, NULL);
            explore_note(rank, 2, r);
        }
        if (r == 0 && (len != sizeof text_of_a || memcmp(got, text_of_a, len)))
            explore_wrong("half a value: \"%.40s\"", got);
    }
    int r = tutti_add_at("explore", "n", 1, &now, world);
    explore_note(rank, 1, r);
    explore_shared[rank] = r == 0;
    explore_whole(rank, world, r < 0);
}

/* Looked at when all is over, by the product's own functions. */
static void check_what_is_there(void)
{
    const struct arena *arena = &explore_world[0]->world->arena;
    char got[sizeof text_of_a];
    size_t len = sizeof got;
    uint64_t version;
    int64_t n = 0;
    struct store_key a = store_key("a", 1), sum = store_key("n", 1);
    world_making = 3;                  /* whoever looks is none of the ranks */
    int r = store_get(arena, &a, got, &len, &version, 1000);
    if (r != 0 && !explore_killed[0] && note[0].result[0] == 0)
        explore_wrong("the value is gone: %d", r);
    if (r == 0 && (len != sizeof text_of_a || memcmp(got, text_of_a, len)))
        explore_wrong("half a value: %d bytes", (int)len);
    int64_t least = 0, most = 0;
    for (int p = 0; p < engine.scenario->ranks; p++) {
        least += explore_shared[p] != 0;
        most += explore_shared[p] || explore_killed[p];
    }
    r = most ? store_add(arena, &sum, 0, &n, 1000) : 0;              /* which would make it */
    if (r != 0 || n < least || n > most)
        explore_wrong("a sum of %d, by %d to %d ranks: %d", (int)n, (int)least, (int)most, r);
}

void check_store(void)
{
    check_good();
    check_what_is_there();
}

static void check_store_late(void)
{
    check_alone();
    check_what_is_there();
}

static void check_store_canceled(void)
{
    check_canceled();
    check_what_is_there();
}

const struct scenario scenario_store = {
    .name = "store", .ranks = 2, .body = stores, .check = check_store, .preemptions = 2,
    .memory = MEMORY_TSO, .after = true
};
const struct scenario scenario_store_events = {
    .name = "store_events", .ranks = 2, .body = stores, .check = check_store, .preemptions = 1,
    .preemptions_event = 1, .events = EVENTS, .own_ends = true, .after = true
};
const struct scenario scenario_store_deadline = {
    .name = "store_deadline", .ranks = 2, .body = stores, .count = 1,
    .check = check_store_late, .preemptions = 1, .preemptions_event = 1,
    .events = JUMP | TIMER, .own_ends = true, .after = true
};
const struct scenario scenario_store_abort = {
    .name = "store_abort", .ranks = 2, .helpers = 1, .body = stores, .helper = aborts,
    .check = check_store_canceled, .preemptions = 2,
    .own_ends = true,
    .patience = PATIENCE_FIRST
};

/* Who waits for a key goes to sleep while it is set: with stores that are not out, to find the wake
 * that goes missing takes three preemptions. */
static void waits_first(int rank, tutti_comm *world)
{
    char got[8];
    size_t len = sizeof got;
    if (rank == 0)
        explore_note(rank, 0, tutti_get_at("explore", "a", got, &len, world, NULL));
    else
        explore_note(rank, 0, tutti_set_at("explore", "a", "it", 3, world));
}

const struct scenario scenario_store_wait_tso = {
    .name = "store_wait_tso", .ranks = 2, .body = waits_first, .check = check_good,
    .preemptions = 3, .memory = MEMORY_TSO
};

/* Nobody sets it: rank 0 does nothing but abort. */
static void waits_value(int rank, tutti_comm *world)
{
    char got[8];
    size_t len = sizeof got;
    if (rank == 1)
        explore_note(rank, 0, tutti_get_at("explore", "a", got, &len, world, NULL));
}

const struct scenario scenario_store_canceled = {
    .name = "store_canceled", .ranks = 2, .helpers = 1, .body = waits_value, .helper = aborts,
    .check = check_all_canceled, .preemptions = 3, .own_ends = true, .memory = MEMORY_TSO
};
