/* Comms are made while ranks die: split, agree, shrink; and the job's store. */
#include "explore/scenarios.h"

#include "arena/store.h"
#include "explore/engine.h"

#include <errno.h>
#include <string.h>

#define EVENTS (KILL | STOP | SPURIOUS | TIMER)

/* ---- split: all go on together, and the new comm works ---- */

void splits(int rank, tutti_comm *world)
{
    tutti_comm *comm;
    int r = tutti_comm_split_at("explore", world, 7, -rank, &comm);
    explore_note(rank, 0, r);
    if (r < 0) {
        explore_failed(rank, world);
        return;
    }
    int n = tutti_size(world);
    if (tutti_size(comm) != n || tutti_rank(comm) != n - 1 - rank)
        explore_wrong("rank %d became %d of %d", rank, tutti_rank(comm), tutti_size(comm));
    uint64_t x = 1u << rank, y = 0;
    r = tutti_all_reduce_at("explore", &x, &y, 1, TUTTI_U64, TUTTI_SUM, comm, NULL);
    explore_note(rank, 1, r);
    if (r == 0 && y != (1u << n) - 1)
        explore_wrong("rank %d got %llu from the new comm", rank, (unsigned long long)y);
}

void check_split_death(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++)
        for (int k = 0; k < 2; k++)
            if (note[p].there[k] && note[p].result[k] != 0 && !explore_killed[p] && note[p].result[k] != -EOWNERDEAD)
                explore_wrong("rank %d: step %d gave %d", p, k, note[p].result[k]);
}

const struct scenario scenario_split = { .name = "split", .ranks = 2, .body = splits, .check = check_good, .preemptions = 2, .memory = MEMORY_TSO };
const struct scenario scenario_split_events = {
    .name = "split_events", .ranks = 2, .body = splits, .check = check_split_death, .preemptions = 1, .preemptions_event = 1, .events = EVENTS
};

/* ---- shrink: a comm breaks, or not, and those who live go on. Who comes to a new comm finds all of it there. ---- */

void shrinks(int rank, tutti_comm *world)
{
    tutti_comm *comm;
    tutti_barrier_at("explore", world, NULL);
    int r = tutti_comm_shrink_at("explore", world, &comm);
    explore_note(rank, 0, r);
    if (r < 0)
        return;
    int size = tutti_size(comm);
    uint64_t x[2] = { 1u << rank, (uint64_t)size }, y[2] = { 0, 0 };
    r = tutti_all_reduce_at("explore", x, y, 2, TUTTI_U64, TUTTI_SUM, comm, NULL);
    explore_note(rank, 1, r);
    if (r == 0 && (y[1] != (uint64_t)size * (uint64_t)size || __builtin_popcountll(y[0]) != size || !(y[0] >> rank & 1)))
        explore_wrong("rank %d: a new comm of %d ranks, made of %llx", rank, size, (unsigned long long)y[0]);
}

void check_shrink(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++) {
        const struct note *n = &note[p];
        if (explore_killed[p])
            continue;
        if (n->there[0] && n->result[0] != 0)
            explore_wrong("rank %d: shrink gave %d", p, n->result[0]);
        if (n->there[1] && n->result[1] != 0 && n->result[1] != -EOWNERDEAD)
            explore_wrong("rank %d: all_reduce on the new comm gave %d", p, n->result[1]);
    }
}

const struct scenario scenario_shrink = { .name = "shrink", .ranks = 2, .body = shrinks, .check = check_good, .preemptions = 2, .memory = MEMORY_TSO };
const struct scenario scenario_shrink_events = {
    .name = "shrink_events", .ranks = 3, .body = shrinks, .check = check_shrink, .preemptions = 1, .preemptions_event = 1, .events = KILL
};

/* ---- agree: the same answer for all who live ---- */

void agrees(int rank, tutti_comm *world)
{
    for (int k = 0; k < 2; k++) {
        int flag = 0xff & ~(1 << rank);
        explore_note(rank, k, tutti_comm_agree_at("explore", world, &flag));
        explore_shared[4 * k + rank] = (uint64_t)flag + 1;
    }
}

void check_agree(void)
{
    check_good();
    for (int k = 0; k < 2; k++)
        for (int p = 0; p < EXPLORE_RANKS; p++)
            for (int q = 0; q < p; q++) {
                uint64_t a = explore_shared[4 * k + p], b = explore_shared[4 * k + q];
                if (a && b && a != b)
                    explore_wrong("agreement %d: rank %d has %llx, rank %d has %llx", k, p, (unsigned long long)a - 1, q, (unsigned long long)b - 1);
            }
}

const struct scenario scenario_agree_events = {
    .name = "agree_events", .ranks = 2, .body = agrees, .check = check_agree, .preemptions = 1, .preemptions_event = 1, .events = EVENTS
};

static void check_agree_late(void)
{
    for (int p = 0; p < 2; p++)
        for (int k = 0; k < 2; k++)
            if (note[p].there[k] && note[p].result[k] != 0 && note[p].result[k] != -ETIMEDOUT)
                explore_wrong("rank %d: agreement %d gave %d", p, k, note[p].result[k]);
}

const struct scenario scenario_agree_late = {
    .name = "agree_late", .ranks = 2, .body = agrees, .check = check_agree_late, .preemptions = 2, .preemptions_event = 2, .timeout_ms = { 1, 0 },
    .events = JUMP | TIMER
};

/* ---- the store: a value is whole or not there, a sum misses nothing, and a dead writer stops nobody.
   Not with store buffers: its blocks are written plainly as well, and plain stores are at once. ---- */

static const char text_of_a[] = "a value of some length, for all to read";

void stores(int rank, tutti_comm *world)
{
    int64_t now = 0;
    if (rank == 0)
        explore_note(rank, 0, tutti_set_at("explore", "a", text_of_a, sizeof text_of_a, world));
    else {
        char got[sizeof text_of_a] = "";
        size_t len = sizeof got;
        tutti_call call = { .timeout_ms = 1000 };
        int r = tutti_get_at("explore", "a", got, &len, world, &call);
        explore_note(rank, 0, (r == -EOWNERDEAD && explore_killed[0]) || (r == -ETIMEDOUT && (engine.stops || engine.deaths)) ? 0 : r);
        if (r == 0 && (len != sizeof text_of_a || memcmp(got, text_of_a, len)))
            explore_wrong("half a value: \"%.40s\"", got);
    }
    int r = tutti_add_at("explore", "n", 1, &now, world);
    explore_note(rank, 1, r);
    explore_shared[rank] = r == 0;
}

/* Looked at when all is over, by the product's own functions. */
void check_store(void)
{
    check_good();
    const struct arena *arena = &explore_world[0]->world->arena;
    char got[sizeof text_of_a];
    size_t len = sizeof got;
    uint64_t version;
    int64_t n = 0;
    struct store_key a = store_key("a", 1), sum = store_key("n", 1);
    world_making = 3;                  /* whoever looks is none of the ranks */
    int r = store_get(arena, &a, got, &len, &version, 1000);
    if (r != 0 && !explore_killed[0])
        explore_wrong("the value is gone: %d", r);
    if (r == 0 && (len != sizeof text_of_a || memcmp(got, text_of_a, len)))
        explore_wrong("half a value: %d bytes", (int)len);
    r = store_add(arena, &sum, 0, &n, 1000);
    int64_t least = 0, most = 0;
    for (int p = 0; p < engine.scenario->ranks; p++) {
        least += explore_shared[p] != 0;
        most += explore_shared[p] || explore_killed[p];
    }
    if (r != 0 || n < least || n > most)
        explore_wrong("a sum of %d, by %d to %d ranks: %d", (int)n, (int)least, (int)most, r);
}

const struct scenario scenario_store = { .name = "store", .ranks = 2, .body = stores, .check = check_store, .preemptions = 2 };
const struct scenario scenario_store_events = {
    .name = "store_events", .ranks = 2, .body = stores, .check = check_store, .preemptions = 1, .preemptions_event = 1, .events = EVENTS,
    .own_ends = true, .after = true
};
