/* ctest: timeout=60 */
/* A waiter that is stopped for longer than its deadline, and comes back before any one of its
 * readings of the clock, has not waited too long. The clock and the sleep are the test's. */
#include "verdict_rig.h"

#include "watch/drive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

enum { ROUNDS = 20 };

static struct { int reading, stopped_at; } waiter;

/* Stopped for a second just before the reading of that number. */
static uint64_t now_after_stop(void *arg)
{
    (void)arg;
    rig.now += 1000;
    if (++waiter.reading == waiter.stopped_at)
        rig.now += 1000 * MS;
    return rig.now;
}

/* The peers come within the deadline, if the stop is not counted. */
static void peers_come(struct rig *r)
{
    if (r->sleeps < 4)
        return;
    arrive(1, 5);
    arrive(2, 5);
}

/* How often the waiter reads the clock. */
static int wait_once(int stopped_at, uint32_t spin_rounds)
{
    rig_open(N, NULL);
    rig.ways.now = now_after_stop;
    rig.now = 1;
    rig.during = peers_come;
    rig.watch[0].budget.spin_rounds = spin_rounds;
    rig.watch[0].budget.spin_ticks = spin_rounds ? 1 : 0;
    waiter.reading = 0;
    waiter.stopped_at = stopped_at;
    struct op op = op_of(0, 5);
    op.timeout_ns = (int64_t)(400 * MS);
    int r = drive_to_end(&op);
    if (r)
        fail_msg("stopped before reading %d of the clock: %d", stopped_at, r);
    rig_close();
    return waiter.reading;
}

static void a_stop_is_no_wait(void **state)
{
    (void)state;
    int readings = wait_once(0, 0);
    assert_in_range(readings, 12, 200);
    for (int k = 1; k <= readings; k++)
        wait_once(k, 0);
}

static void nor_in_a_long_spin(void **state)
{
    (void)state;
    int readings = wait_once(0, ROUNDS);
    assert_in_range(readings, ROUNDS, 400);
    for (int k = 1; k <= readings; k++)
        wait_once(k, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_is_no_wait), cmocka_unit_test(nor_in_a_long_spin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
