/* once, first, turn: who runs what, one at a time; and a runner or holder that dies is followed by
 * another. A deadline ends that call alone, and the comm stays whole: a barrier afterwards shows
 * it. After an abort nothing of the comm goes on. */
#include "explore/scenarios.h"

#include <errno.h>

enum { INSIDE, DONE_BY, FINISHED, TURNS };             /* of explore_shared */
enum { LAST = NOTES - 1 };                             /* the note of the barrier afterwards */

/* A call's result. With a deadline (the scenario's count, in ms) it may be that, but not before it
 * has passed. */
int explore_came(int rank, int which, int r, uint64_t began)
{
    explore_note(rank, which, r);
    if (r == -ETIMEDOUT && explore_now() - began < (uint64_t)explore_count() * 1000000)
        explore_wrong("rank %d: call %d ended %d us before its deadline", rank, which,
                      explore_count() * 1000 - (int)(explore_now() - began) / 1000);
    return r;
}

void explore_whole(int rank, tutti_comm *world, bool failed)
{
    if (!explore_count() && !explore_aborts())
        return;
    int r = tutti_barrier_at("explore", world, NULL);
    explore_note(rank, LAST, r);
    if (failed && explore_aborts() && r != -ECANCELED)
        explore_wrong("rank %d: a barrier on a comm that was aborted gave %d", rank, r);
}

/* Each call has an end of its own: 0, or its deadline; and then all go on. */
void check_alone(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++)
        for (int k = 0; k < NOTES; k++)
            if (note[p].there[k] && note[p].result[k] != 0
                && (k == LAST || note[p].result[k] != -ETIMEDOUT))
                explore_wrong("rank %d: call %d gave %d, where there were but deadlines", p, k,
                              note[p].result[k]);
}

void check_canceled(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++)
        for (int k = 0; k < NOTES; k++)
            if (note[p].there[k] && note[p].result[k] != 0 && note[p].result[k] != -ECANCELED)
                explore_wrong("rank %d: call %d gave %d after an abort", p, k, note[p].result[k]);
}

/* Nobody else is in here: but for who was killed inside. */
static void enter_alone(int rank)
{
    uint64_t inside = explore_shared[INSIDE];
    if (inside && !explore_killed[inside - 1])
        explore_wrong("ranks %d and %d run it both", rank, (int)inside - 1);
    explore_shared[INSIDE] = (uint64_t)rank + 1;
}

static void leave_alone(int rank)
{
    explore_shared[INSIDE] = 0;
    explore_shared[DONE_BY] += UINT64_C(1) << (8 * rank);
    explore_shared[FINISHED]++;
}

static int run_once(void *arg)
{
    int rank = *(int *)arg;
    enter_alone(rank);
    explore_step();
    leave_alone(rank);
    return 0;
}

void onces(int rank, tutti_comm *world)
{
    tutti_call call = { .timeout_ms = explore_count() };
    uint64_t began = explore_now();
    int r = explore_came(rank, 0, tutti_once_at("explore", "it", run_once, &rank, world, &call),
                         began);
    if (r == -ETIMEDOUT)
        r = explore_came(rank, 1, tutti_once_at("explore", "it", run_once, &rank, world, NULL),
                         began);
    if (r == 0 && !explore_shared[FINISHED])
        explore_wrong("rank %d is past once, and nobody has done it", rank);
    explore_whole(rank, world, r < 0);
}

/* Done once; where its runner died after it had done it, and before it could say so, once more. */
static void check_once_done(void)
{
    if (explore_shared[FINISHED] < 1
        || explore_shared[FINISHED] > 1u + (unsigned)explore_any_killed())
        explore_wrong("done %d times", (int)explore_shared[FINISHED]);
}

void check_once(void)
{
    check_good();
    check_once_done();
}

static void check_once_late(void)
{
    check_alone();
    check_once_done();
}

void firsts(int rank, tutti_comm *world)
{
    int r = 0;
    for (int k = 0; k < 2 && r >= 0; k++) {
        tutti_call call = { .timeout_ms = explore_count() };
        uint64_t began = explore_now();
        r = tutti_first_begin_at("explore", "it", world, &call);
        explore_came(rank, 2 * k, r < 0 ? r : 0, began);
        if (r == -ETIMEDOUT) {  /* the round is still to be done, and this rank asks for it again */
            r = tutti_first_begin_at("explore", "it", world, NULL);
            explore_came(rank, 4 + k, r < 0 ? r : 0, began);
        }
        if (r == 1) {
            enter_alone(rank);
            explore_step();
            leave_alone(rank);
            explore_note(rank, 2 * k + 1, tutti_first_end_at("explore", "it", 0, world));
        }
        if (r >= 0 && explore_shared[FINISHED] < (unsigned)k + 1)
            explore_wrong("rank %d is past first %d, and it was not done", rank, k);
    }
    explore_whole(rank, world, r < 0);
}

static void check_first_done(void)
{
    if (explore_shared[FINISHED] < 2
        || explore_shared[FINISHED] > 2u + (unsigned)explore_any_killed())
        explore_wrong("two rounds were done %d times", (int)explore_shared[FINISHED]);
}

void check_first(void)
{
    check_good();
    check_first_done();
}

static void check_first_late(void)
{
    check_alone();
    check_first_done();
}

void turns(int rank, tutti_comm *world)
{
    int r = 0;
    for (int k = 0; k < 2 && (r >= 0 || r == -ETIMEDOUT); k++) {
        tutti_call call = { .timeout_ms = explore_count() };
        uint64_t began = explore_now();
        r = explore_came(rank, 2 * k, tutti_turn_begin_at("explore", world, &call), began);
        if (r < 0)
            continue;                  /* a turn that was taken */
        enter_alone(rank);
        if (!explore_any_killed() && !explore_count() && !explore_aborts()
            && explore_shared[TURNS] != (uint64_t)(k * tutti_size(world) + rank))
            explore_wrong("rank %d has turn %d", rank, (int)explore_shared[TURNS]);
        explore_step();
        explore_shared[TURNS]++;
        leave_alone(rank);
        explore_note(rank, 2 * k + 1, tutti_turn_end_at("explore", world));
    }
    explore_whole(rank, world, r < 0 && r != -ETIMEDOUT);
}

void check_turns_death(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++)
        for (int k = 0; k < 4; k++)
            if (note[p].there[k] && note[p].result[k] != 0
                && (note[p].result[k] != -EOWNERDEAD || !explore_any_killed()))
                explore_wrong("rank %d: step %d gave %d", p, k, note[p].result[k]);
}

#define EVENTS (KILL | STOP | SPURIOUS | TIMER)
#define EACH(named, does, checks, checks_events, checks_late, most) \
    const struct scenario scenario_##named = { \
        .name = #named, .ranks = 2, .body = does, .check = checks, \
        .preemptions = most, .memory = MEMORY_TSO \
    }; \
    const struct scenario scenario_##named##_events = { \
        .name = #named "_events", .ranks = 2, .body = does, .check = checks_events, \
        .preemptions = 1, .preemptions_event = 1, .events = EVENTS, .own_ends = true \
    }; \
    const struct scenario scenario_##named##_deadline = { \
        .name = #named "_deadline", .ranks = 2, .body = does, .count = 1, .check = checks_late, \
        .preemptions = 1, .preemptions_event = 1, .events = JUMP | TIMER, .own_ends = true \
    }; \
    const struct scenario scenario_##named##_abort = { \
        .name = #named "_abort", .ranks = 2, .helpers = 1, .body = does, .helper = aborts, \
        .check = check_canceled, .preemptions = 2, \
        .own_ends = true, \
        .patience = PATIENCE_FIRST \
    };

EACH(once, onces, check_once, check_once, check_once_late, 2)
EACH(first, firsts, check_first, check_first, check_first_late, 2)
EACH(turn, turns, check_good, check_turns_death, check_alone, 2)

/* Rank 0 does nothing but abort: who waits for it hears that, and at once. */
static void waits_turn(int rank, tutti_comm *world)
{
    if (rank == 1)
        explore_note(rank, 0, tutti_turn_begin_at("explore", world, NULL));
}

void check_all_canceled(void)
{
    if (note[1].result[0] != -ECANCELED)
        explore_wrong("rank 1: %d, and rank 0 has aborted", note[1].result[0]);
}

const struct scenario scenario_turn_canceled = {
    .name = "turn_canceled", .ranks = 2, .helpers = 1, .body = waits_turn, .helper = aborts,
    .check = check_all_canceled, .preemptions = 3,
    .own_ends = true,
    .memory = MEMORY_TSO
};
