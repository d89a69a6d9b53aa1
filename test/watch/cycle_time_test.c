/* ctest: timeout=120 labels=tsan */
/* A cycle ends within two seconds of its last wait's beginning: tutti.h promises it, and a busy
 * machine must not be able to break the test of it. So the seconds are the test's own. The ranks
 * are threads; their sleeps wait for a clock that stands still while any of them runs, and goes on
 * to the first one's waking when all of them sleep. What is counted is therefore how long they
 * slept, slice by slice, and the same each time but for who takes the lock first. (Waits for
 * handles read the system's clock, and are not here.) */
#include "group/comm.h"
#include "support/ranks.h"
#include "watch/cycle.h"
#include "watch/virtual_clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 8, PROMISED_MS = 2000, SILENT_MS = 50 };

/* ---- the clock ---- */

static struct { const shared64 *stamp; uint64_t began; } mine[MOST];   /* what each rank is about */
static uint64_t last_begin, last_end;
static int early;                               /* waits that were published before their time */

static void falls_asleep(int rank)
{
    const shared64 *stamp = mine[rank].stamp;
    early += stamp && time_here.now - mine[rank].began < SILENT_MS * MS
        && (load_acquire64(stamp) & 1);
}

static void time_note(int rank, const shared64 *stamp)
{
    pthread_mutex_lock(&time_here.lock);
    mine[rank].stamp = stamp;
    mine[rank].began = time_here.now;
    if (stamp)
        last_begin = time_here.now > last_begin ? time_here.now : last_begin;
    else {
        last_end = time_here.now > last_end ? time_here.now : last_end;
        time_leave_locked();
    }
    pthread_mutex_unlock(&time_here.lock);
}

/* ---- the waits ---- */

enum { BARRIERS, RECEIVES, TURN, KEY, GET, LARGE_SEND, SCENES };
static const char *const names[] = {
    "barriers of comms", "receives", "a turn", "a key of first",
    "a key of the store", "a send and barriers"
};
static int scene, step_ms;              /* each rank comes that much later than the one before */

static char large[1 << 20];

/* Rank r waits for rank r + 1, the last for rank 0: by its barrier on the comm of the two, or, rank
 * 0, as the scene says. */
static int waits(tutti_comm *world, tutti_comm *ahead, int rank)
{
    int x, next = (rank + 1) % tutti_size(world);
    size_t n = sizeof x;
    if (scene == BARRIERS || (rank > 0 && scene != RECEIVES))
        return tutti_barrier(ahead, NULL);
    switch (scene) {
    case TURN: return tutti_turn_begin(ahead, NULL);
    case KEY: return tutti_first_begin("key", ahead, NULL);
    case GET: return tutti_get("no such key", &x, &n, world, NULL);
    case LARGE_SEND: return tutti_send(large, sizeof large, TUTTI_U8, next, 0, world, NULL);
    default: return tutti_recv(&x, 1, TUTTI_I32, next, 0, NULL, world, NULL);
    }
}

static int body(tutti_comm *world, int rank)
{
    tutti_comm *ahead = NULL, *behind = NULL, *made;
    int size = tutti_size(world);
    /* comm r: rank r, which is 1 there, and rank r + 1, which is 0 and first in turn */
    for (int r = 0; r < size; r++) {
        int list[2] = { (r + 1) % size, r };
        if (rank != r && rank != (r + 1) % size)
            continue;
        CHECK_IS(tutti_comm_create(world, list, 2, &made), 0);
        *(rank == r ? &ahead : &behind) = made;
    }
    if (scene == KEY && rank == 1)
        CHECK_IS(tutti_first_begin("key", behind, NULL), 1);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    ahead->watch.ways = behind->watch.ways = world->watch.ways = time_ways(rank);
    if (rank && step_ms)
        time_sleep(rank, (uint64_t)(rank * step_ms) * MS);
    time_note(rank, &world->world->threads.seat->waiters[0].stamp);
    int r = waits(world, ahead, rank);
    time_note(rank, NULL);
    ahead->watch.ways = behind->watch.ways = world->watch.ways = &wait_ways_kernel;
    CHECK_IS(r, -EDEADLK);
    ranks_count(0);
    CHECK_IS(ranks_await(0, (uint32_t)size), 0);
    return 0;
}

static uint64_t worst;

static void one(int what, int ranks, int step)
{
    scene = what;
    step_ms = step;
    last_begin = last_end = 0;
    early = 0;
    time_here.falls_asleep = falls_asleep;
    time_open(1000 * MS, ranks);
    assert_int_equal(ranks_run_threads(ranks, body), 0);
    uint64_t took = last_end - last_begin;
    if (took > PROMISED_MS * MS || early)
        fail_msg("%s, %d ranks, %d ms apart: %d ms; %d waits were published early", names[what],
                 ranks, step, (int)(took / MS), early);
    worst = took > worst ? took : worst;
}

static void a_cycle_ends_in_time(void **state)
{
    static const int steps[] = { 0, 1, 30, 84, 86, 200, 334, 336, 700 };
    (void)state;
    for (int what = 0; what < SCENES; what++) {
        worst = 0;
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            one(what, 2, steps[i]);
            if (i % 3 == 0)
                one(what, 3, steps[i]);
        }
        one(what, MOST, 10);
        printf("%s: at most %d ms of sleep from the last one's coming\n", names[what],
               (int)(worst / MS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_cycle_ends_in_time) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
