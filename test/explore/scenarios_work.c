/* Operations left under way: the caller's thread starts and waits, the progress thread (made by the
 * call itself) carries on, and a peer calls the same without. Rank 0 has two actors here, its own
 * thread and the library's, and both may stand anywhere. */
#include "explore/scenarios.h"

#include <errno.h>

enum { CALLS = 2, WORDS = 24 };

static int sum(int rank, int k, size_t n, const tutti_call *call, uint64_t *x, uint64_t *y,
               tutti_comm *world)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (uint64_t)(rank + 1) * 1000 + i + 100 * (uint64_t)k;
        y[i] = 0;
    }
    return tutti_all_reduce_at("explore", x, y, n, TUTTI_U64, TUTTI_SUM, world, call);
}

static void look(int rank, int k, size_t n, const uint64_t *y)
{
    for (size_t i = 0; i < n; i++)
        if (y[i] != 3000 + 2 * i + 200 * (uint64_t)k)
            explore_wrong("torn payload: rank %d, call %d, element %d: %llu", rank, k, (int)i,
                          (unsigned long long)y[i]);
}

/* Two, the second begun while the first is under way. */
static void works(int rank, tutti_comm *world)
{
    uint64_t x[CALLS][2], y[CALLS][2];
    tutti_work *work[CALLS] = { NULL };
    for (int k = 0; k < CALLS; k++) {
        tutti_call call = { .work = rank == 0 ? &work[k] : NULL };
        int r = sum(rank, k, 2, &call, x[k], y[k], world);
        if (!work[k])
            explore_note(rank, k, r);
    }
    bool failed = false;
    for (int k = 0; k < CALLS; k++) {
        int r = work[k] ? tutti_wait_at("explore", work[k], -1) : note[rank].result[k];
        if (work[k])
            explore_note(rank, k, r);
        if (r == 0)
            look(rank, k, 2, y[k]);
        failed |= r < 0;
    }
    if (failed)
        explore_failed(rank, world);
}

/* Rank 0's own thread waits for something else, which comes when the sum is there: nobody but the
 * progress thread carries it on. */
static void carried(int rank, tutti_comm *world)
{
    uint64_t x[WORDS], y[WORDS], letter = 0;
    tutti_work *work = NULL;
    tutti_call call = { .work = rank == 0 ? &work : NULL };
    int r = sum(rank, 0, WORDS, &call, x, y, world);
    if (rank == 1) {
        explore_note(rank, 0, r);
        if (r == 0)
            look(rank, 0, WORDS, y);
        explore_note(rank, 1, tutti_send_at("explore", &letter, 1, TUTTI_U64, 0, 0, world, NULL));
        return;
    }
    if (r == 0)
        explore_note(rank, 1,
                     tutti_recv_at("explore", &letter, 1, TUTTI_U64, 1, 0, NULL, world, NULL));
    r = work ? tutti_wait_at("explore", work, -1) : r;
    explore_note(rank, 0, r);
    if (r == 0)
        look(rank, 0, WORDS, y);
}

/* The cause once on each rank that lives, on whichever of its two calls, and that the comm is
 * broken on the other. */
static void check_carried_death(void)
{
    for (int p = 0; p < 2; p++) {
        int causes = 0, broken = 0;
        for (int k = 0; k < 2 && !explore_killed[p]; k++) {
            int r = note[p].there[k] ? note[p].result[k] : 0;
            causes += r == -EOWNERDEAD;
            broken += r == -ECANCELED;
            if (r != 0 && r != -EOWNERDEAD && r != -ECANCELED)
                explore_wrong("rank %d: call %d gave %d", p, k, r);
        }
        if ((causes || broken) && (!causes || !explore_any_killed()))
            explore_wrong("rank %d: %d causes and %d consequences, %d deaths", p, causes, broken,
                          explore_any_killed());
    }
}

#define LINE "all_reduce:-inf=inline"
#define PIPELINED "all_reduce:-inf=pipelined"

const struct scenario scenario_work = {
    .name = "work", .ranks = 2, .helpers = 1, .threads = true, .rules = LINE, .body = works,
    .check = check_good, .preemptions = 2
};
const struct scenario scenario_work_events = {
    .name = "work_events", .ranks = 2, .helpers = 1, .threads = true, .rules = LINE, .body = works,
    .check = check_death, .preemptions = 1, .preemptions_event = 1,
    .events = KILL | STOP | SPURIOUS | TIMER
};
const struct scenario scenario_work_carried = {
    .name = "work_carried", .ranks = 2, .helpers = 1, .threads = true, .rules = PIPELINED,
    .body = carried, .commits = true, .check = check_good, .preemptions = 2
};
const struct scenario scenario_work_carried_events = {
    .name = "work_carried_events", .ranks = 2, .helpers = 1, .threads = true, .rules = PIPELINED,
    .body = carried, .commits = true,
    .check = check_carried_death,
    .preemptions = 1, .preemptions_event = 1,
    .events = KILL | STOP | SPURIOUS | TIMER, .own_ends = true
};
