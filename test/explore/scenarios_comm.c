/* Comms are made while ranks die, deadlines pass, or somebody aborts: split, agree, shrink. */
#include "explore/scenarios.h"

#include "explore/engine.h"
#include "watch/verdict.h"

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
            if (note[p].there[k] && note[p].result[k] != 0 && !explore_killed[p]
                && note[p].result[k] != -EOWNERDEAD)
                explore_wrong("rank %d: step %d gave %d", p, k, note[p].result[k]);
    for (int p = 0; p < EXPLORE_RANKS; p++) {
        uint32_t who = verdict_who(note[p].verdict);
        if (note[p].verdict && !explore_killed[p] && (who >= EXPLORE_RANKS || !explore_killed[who]))
            explore_wrong("rank %d: split failed because of rank %u, which lives", p, who);
    }
}

const struct scenario scenario_split = {
    .name = "split", .ranks = 2, .body = splits, .check = check_good,
    .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_split_events = {
    .name = "split_events", .ranks = 2, .body = splits, .check = check_split_death,
    .preemptions = 1, .preemptions_event = 1, .events = EVENTS
};

/* Deadlines: of the split all have the same end; and so with what is done on the new comm, which
 * has inherited them. */
static void check_late(void)
{
    for (int p = 0; p < 2; p++)
        for (int k = 0; k < 2; k++)
            if (note[p].there[k] && note[p].result[k] != 0 && note[p].result[k] != -ETIMEDOUT)
                explore_wrong("rank %d: step %d gave %d", p, k, note[p].result[k]);
    if (note[0].verdict && note[1].verdict && note[0].verdict != note[1].verdict)
        explore_wrong("two verdicts: %llx and %llx", (unsigned long long)note[0].verdict,
                      (unsigned long long)note[1].verdict);
}

/* The comm is aborted, and the new one, if there is one, is whole. */
static void check_child(void)
{
    for (int p = 0; p < 2; p++)
        if (note[p].result[0] != 0 && note[p].result[0] != -ECANCELED)
            explore_wrong("rank %d: %d after an abort", p, note[p].result[0]);
        else if (note[p].there[1] && note[p].result[1] != 0)
            explore_wrong("rank %d: the new comm gave %d, and its parent was aborted", p,
                          note[p].result[1]);
}

#define LATE(named, does, ...) \
    const struct scenario scenario_##named##_deadline = { \
        .name = #named "_deadline", .ranks = 2, .body = does, .check = check_late, \
        .preemptions = 1, .preemptions_event = 1, .timeout_ms = { 1, 2 }, .events = JUMP | TIMER, \
        .patience = PATIENCE_FIRST, __VA_ARGS__ \
    };
#define ABORTED(named, does, checks, ...) \
    const struct scenario scenario_##named##_abort = { \
        .name = #named "_abort", .ranks = 2, .helpers = 1, .body = does, .helper = aborts, \
        .check = checks, .preemptions = 2, .patience = PATIENCE_FIRST, __VA_ARGS__ \
    };

LATE(split, splits, .rules = NULL)
ABORTED(split, splits, check_child, .rules = NULL)

/* ---- shrink: a comm breaks, or not, and those who live go on. Who comes to a new comm finds all
 * of it there. ---- */

void shrinks(int rank, tutti_comm *world)
{
    tutti_comm *comm;
    if (!explore_count())
        tutti_barrier_at("explore", world, NULL);
    int r = tutti_comm_shrink_at("explore", world, &comm);
    explore_note(rank, 0, r);
    if (r < 0)
        return;
    int size = tutti_size(comm);
    uint64_t x[2] = { 1u << rank, (uint64_t)size }, y[2] = { 0, 0 };
    r = tutti_all_reduce_at("explore", x, y, 2, TUTTI_U64, TUTTI_SUM, comm, NULL);
    explore_note(rank, 1, r);
    if (r == 0
        && (y[1] != (uint64_t)size * (uint64_t)size || __builtin_popcountll(y[0]) != size
            || !(y[0] >> rank & 1)))
        explore_wrong("rank %d: a new comm of %d ranks, made of %llx", rank, size,
                      (unsigned long long)y[0]);
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

const struct scenario scenario_shrink = {
    .name = "shrink", .ranks = 2, .body = shrinks, .check = check_good,
    .preemptions = 2, .memory = MEMORY_TSO
};
const struct scenario scenario_shrink_events = {
    .name = "shrink_events", .ranks = 2, .body = shrinks, .check = check_shrink, .preemptions = 1,
    .preemptions_event = 1, .events = EVENTS
};
const struct scenario scenario_shrink_kill3 = {
    .name = "shrink_kill3", .ranks = 3, .body = shrinks, .count = 1, .check = check_shrink,
    .preemptions = 1, .preemptions_event = 1, .events = KILL
};

LATE(shrink, shrinks, .count = 1)
ABORTED(shrink, shrinks, check_shrink, .rules = NULL)

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
                    explore_wrong("agreement %d: rank %d has %llx, rank %d has %llx", k, p,
                                  (unsigned long long)a - 1, q, (unsigned long long)b - 1);
            }
}

const struct scenario scenario_agree_events = {
    .name = "agree_events", .ranks = 2, .body = agrees, .check = check_agree, .preemptions = 1,
    .preemptions_event = 1, .events = EVENTS
};

ABORTED(agree, agrees, check_agree, .rules = NULL)

static void check_agree_late(void)
{
    for (int p = 0; p < 2; p++)
        for (int k = 0; k < 2; k++)
            if (note[p].there[k] && note[p].result[k] != 0 && note[p].result[k] != -ETIMEDOUT)
                explore_wrong("rank %d: agreement %d gave %d", p, k, note[p].result[k]);
}

const struct scenario scenario_agree_late = {
    .name = "agree_late", .ranks = 2, .body = agrees, .check = check_agree_late, .preemptions = 2,
    .preemptions_event = 2, .timeout_ms = { 1, 0 }, .events = JUMP | TIMER
};
