/* What a rank does that waits 100 ms for a late one, whatever it waits in: how often it yields and
 * sleeps. The time is the test's own but in waits for handles, whose sleeps the kernel counts:
 * there a slower machine is allowed more of them. */
#include "base/clock.h"
#include "group/comm.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

enum { LATE_NS = 100000000, YIELDS = 80, ROUNDS = 6, LONG_LATELY = 3 };
enum { HOLDS, GO };                    /* words of the page: the late rank holds it; may go on */
enum { BARRIER, ALL_REDUCE, RECEIVE, GET, TURN, ONCE, FIRST, WAITS };

/* The time of one wait. vain: sleeps that ended before anything came. */
struct own_time { uint64_t now; uint32_t step; int yields, vain; };

static uint64_t own_now(void *arg) { return ((struct own_time *)arg)->now; }
static void own_yield(void *arg) { ((struct own_time *)arg)->yields++; }

static int own_wake(void *arg, shared32 *word, int n)
{
    (void)arg;
    return wait_ways_kernel.wake(NULL, word, n);
}

static int own_sleep(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    struct own_time *time = arg;
    if (time->now + ns < LATE_NS) {
        time->now += ns;
        time->vain++;
        return -ETIMEDOUT;
    }
    time->now = time->now < LATE_NS ? LATE_NS : time->now;
    ranks_say(GO, time->step);
    return wait_ways_kernel.sleep(NULL, words, n, 250000000);
}

static int holds(void *arg)
{
    uint32_t step = *(uint32_t *)arg;
    ranks_say(HOLDS, step);
    return ranks_await(GO, step);
}

static int sends(tutti_comm *world, uint32_t step)
{
    int x = (int)step;
    return tutti_send(&x, 1, TUTTI_I32, 0, 0, world, NULL);
}

/* Rank 1 in step number `step`: late, or late with the end. */
static int comes_late(tutti_comm *world, int what, uint32_t step, const char *key)
{
    int x = 1;
    bool first = what == ONCE || what == FIRST, last = what == TURN && step % ROUNDS == 0;
    /* rank 0 waits for this turn in its next step; after the last one it waits no more */
    if (!first && !last)
        CHECK_IS(ranks_await(GO, what == TURN ? step + 1 : step), 0);
    switch (what) {
    case BARRIER: CHECK_IS(tutti_barrier(world, NULL), 0); break;
    case ALL_REDUCE:
        CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
        break;
    case RECEIVE: CHECK_IS(sends(world, step), 0); break;
    case GET: CHECK_IS(tutti_set(key, "x", 1, world), 0); break;
    case TURN:
        CHECK_IS(tutti_turn_begin(world, NULL), 0);
        CHECK_IS(tutti_turn_end(world), 0);
        break;
    case ONCE: CHECK_IS(tutti_once(key, holds, &step, world, NULL), 0); break;
    case FIRST:
        CHECK_IS(tutti_first_begin(key, world, NULL), 1);
        CHECK_IS(tutti_first_end(key, holds(&step), world), 0);
        break;
    }
    return 0;
}

static int never(void *arg) { (void)arg; return -EIO; }

/* Rank 0. In turns it is behind rank 1 from the second on. */
static int waits(tutti_comm *world, int what, uint32_t step, const char *key)
{
    int x = 1;
    char value[1];
    size_t n = sizeof value;
    if (what == ONCE || what == FIRST)
        CHECK_IS(ranks_await(HOLDS, step), 0);
    switch (what) {
    case BARRIER: CHECK_IS(tutti_barrier(world, NULL), 0); break;
    case ALL_REDUCE:
        CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
        CHECK_IS(x, 2);
        break;
    case RECEIVE:
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, step & 1 ? 1 : TUTTI_ANY, 0, NULL, world, NULL), 0);
        CHECK_IS(x, step);
        break;
    case GET: CHECK_IS(tutti_get(key, value, &n, world, NULL), 0); break;
    case TURN:
        CHECK_IS(tutti_turn_begin(world, NULL), 0);
        CHECK_IS(tutti_turn_end(world), 0);
        break;
    case ONCE: CHECK_IS(tutti_once(key, never, NULL, world, NULL), 0); break;
    case FIRST: CHECK_IS(tutti_first_begin(key, world, NULL), 0); break;
    }
    return 0;
}

/* Rank 0 waits so: one brief sleep in vain where a collective is on CPUs that are shared, none
 * elsewhere, nor behind three long sleeps. Yields are all in vain, and get fewer. */
static int counted(tutti_comm *world, int what, int round, uint32_t step, const char *key)
{
    struct own_time time = { .step = step };
    struct wait_ways ways = { own_now, own_sleep, own_wake, own_yield, &time };
    const struct wait_ways *before = world->watch.ways;
    bool brief = what == BARRIER || what == ALL_REDUCE;
    world->watch.ways = &ways;
    int failed = waits(world, what, step, key);
    world->watch.ways = before;
    if (failed)
        return failed;
    if (what == TURN && round == 0)
        return 0;                                    /* the first turn is rank 0's */
    CHECK_IS(time.vain, brief && round < LONG_LATELY);
    if (round == 1)
        CHECK(time.yields > 0 && time.yields <= YIELDS);
    if (round == ROUNDS - 1)
        CHECK(time.yields > 0 && time.yields <= YIELDS / 16);
    return 0;
}

static int body_counted(tutti_comm *world, int rank)
{
    for (int what = 0; what < WAITS; what++) {
        world->watch.budget = (struct wait_budget){ .yields = YIELDS };
        for (int round = 0; round < ROUNDS; round++) {
            uint32_t step = (uint32_t)(what * ROUNDS + round + 1);
            char key[32];
            snprintf(key, sizeof key, "key %u", what == FIRST ? 0 : step);
            if (rank == 0 ? counted(world, what, round, step, key)
                          : comes_late(world, what, step, key))
                return 1;
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    return 0;
}

static void waits_sleep_once_or_twice(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_counted), 0);
}

/* ---- handles ---- */

static long sleeps_so_far(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static int starts(tutti_comm *world, int rank, bool message, tutti_work **work)
{
    static int x[2];
    tutti_call call = { .work = work };
    *work = NULL;
    return !message ? tutti_barrier(world, &call)
        : rank == 0 ? tutti_recv(&x[0], 1, TUTTI_I32, 1, 0, NULL, world, &call)
                    : tutti_send(&x[1], 1, TUTTI_I32, 0, 0, world, NULL);
}

/* Apart from one sleep there may be a few for locks, and one more for each quarter of a second. */
static int body_handle(tutti_comm *world, int rank)
{
    enum { LOCKS = 3, SLICE_NS = 250000000 };
    for (int round = 0; round < ROUNDS; round++) {
        const struct timespec pause = { .tv_nsec = LATE_NS };
        tutti_work *work;
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (rank)
            nanosleep(&pause, NULL);
        CHECK_IS(starts(world, rank, round & 1, &work), 0);
        long before = sleeps_so_far();
        uint64_t began = clock_ns();
        if (work)
            CHECK_IS(tutti_wait(work, -1), 0);
        long slept = sleeps_so_far() - before;
        CHECK(rank || slept <= 1 + LOCKS + (long)((clock_ns() - began) / SLICE_NS));
    }
    return 0;
}

static void waits_for_handles_sleep_once(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_handle), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_sleep_once_or_twice),
        cmocka_unit_test(waits_for_handles_sleep_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
