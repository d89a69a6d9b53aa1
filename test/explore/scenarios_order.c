/* once, first, turn: who runs what, one at a time; and a runner or holder that dies is followed by another. */
#include "explore/scenarios.h"

#include <errno.h>

enum { INSIDE, DONE_BY, FINISHED, TURNS };             /* of explore_shared */

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
    explore_note(rank, 0, tutti_once_at("explore", "it", run_once, &rank, world, NULL));
    if (!explore_shared[FINISHED])
        explore_wrong("rank %d is past once, and nobody has done it", rank);
}

/* Done once; where its runner died after it had done it, and before it could say so, once more. */
void check_once(void)
{
    check_good();
    if (explore_shared[FINISHED] < 1 || explore_shared[FINISHED] > 1u + (unsigned)explore_any_killed())
        explore_wrong("done %d times", (int)explore_shared[FINISHED]);
}

void firsts(int rank, tutti_comm *world)
{
    for (int k = 0; k < 2; k++) {
        int r = tutti_first_begin_at("explore", "it", world, NULL);
        explore_note(rank, 2 * k, r < 0 ? r : 0);
        if (r == 1) {
            enter_alone(rank);
            explore_step();
            leave_alone(rank);
            explore_note(rank, 2 * k + 1, tutti_first_end_at("explore", "it", 0, world));
        }
        if (r >= 0 && explore_shared[FINISHED] < (unsigned)k + 1)
            explore_wrong("rank %d is past first %d, and it was not done", rank, k);
    }
}

void check_first(void)
{
    check_good();
    if (explore_shared[FINISHED] < 2 || explore_shared[FINISHED] > 2u + (unsigned)explore_any_killed())
        explore_wrong("two rounds were done %d times", (int)explore_shared[FINISHED]);
}

void turns(int rank, tutti_comm *world)
{
    for (int k = 0; k < 2; k++) {
        int r = tutti_turn_begin_at("explore", world, NULL);
        explore_note(rank, 2 * k, r);
        if (r < 0)
            return;
        enter_alone(rank);
        if (!explore_any_killed() && explore_shared[TURNS] != (uint64_t)(k * tutti_size(world) + rank))
            explore_wrong("rank %d has turn %d", rank, (int)explore_shared[TURNS]);
        explore_step();
        explore_shared[TURNS]++;
        leave_alone(rank);
        explore_note(rank, 2 * k + 1, tutti_turn_end_at("explore", world));
    }
}

void check_turns_death(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++)
        for (int k = 0; k < 4; k++)
            if (note[p].there[k] && note[p].result[k] != 0 && (note[p].result[k] != -EOWNERDEAD || !explore_any_killed()))
                explore_wrong("rank %d: step %d gave %d", p, k, note[p].result[k]);
}

#define EVENTS (KILL | STOP | SPURIOUS | TIMER)
#define EACH(named, does, checks, checks_events, most) \
    const struct scenario scenario_##named = { .name = #named, .ranks = 2, .body = does, .check = checks, .preemptions = most, .memory = MEMORY_TSO }; \
    const struct scenario scenario_##named##_events = { \
        .name = #named "_events", .ranks = 2, .body = does, .check = checks_events, .preemptions = 1, .preemptions_event = 1, .events = EVENTS, \
        .own_ends = true \
    };

EACH(once, onces, check_once, check_once, 2)
EACH(first, firsts, check_first, check_first, 2)
EACH(turn, turns, check_good, check_turns_death, 2)
