/* ctest: timeout=120 labels=faults,tsan */
/* Where ranks share CPUs: who waits for arrivals looks on while all on its CPU have come, and
 * yields at once to one that has not. A look ends here by the word alone, so a wrong one hangs. */
#include "verdict_rig.h"

#include "os/cpu.h"
#include "watch/drive.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int yields;
static shared32 go;

/* What others do when they get the CPU. */
static void yield_to_all(void *arg)
{
    (void)arg;
    yields++;
    arrive(1, 5);
    arrive(2, 5);
    store_release64(&rig.members[2].consumed, 9);
}

static void *comes_from_elsewhere(void *arg)
{
    (void)arg;
    while (!load_acquire32(&go))
        sched_yield();
    arrive(2, 5);
    return NULL;
}

/* Rank 1 and rank 2: whether they run on this CPU. */
static struct op open_at(bool first, bool second)
{
    rig_open(N, NULL);
    rig.ways.yield = yield_to_all;
    yields = 0;
    store_release32(&go, 0);
    struct watch *w = &rig.watch[0];
    w->budget.yields = 100;
    w->linger_ticks = UINT64_MAX;
    uint32_t here = (uint32_t)cpu_here() + 1;
    store_release32(&rig.members[1].cpu, first ? here : here + 1);
    store_release32(&rig.members[2].cpu, second ? here : here + 1);
    return op_of(0, 5);
}

static void who_is_here_gets_the_cpu(void **state)
{
    (void)state;
    struct op op = open_at(true, false);
    arrive(2, 5);
    assert_int_equal(drive_to_end(&op), 0);
    assert_int_equal(yields, 1);
    assert_int_equal(load_acquire32(&rig.members[0].cpu), cpu_here() + 1);
    rig_close();
    op = open_at(true, true);
    arrive(1, 5);                                    /* one of two is not enough */
    assert_int_equal(drive_to_end(&op), 0);
    assert_int_equal(yields, 1);
    rig_close();
}

static void who_is_elsewhere_is_looked_for(void **state)
{
    (void)state;
    struct op op = open_at(true, false);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, comes_from_elsewhere, NULL), 0);
    arrive(1, 5);
    store_release32(&go, 1);
    assert_int_equal(drive_to_end(&op), 0);
    assert_int_equal(yields, 0);
    pthread_join(thread, NULL);
    rig_close();
}

/* To nobody: that costs no switch. */
static void who_is_alone_yields(void **state)
{
    (void)state;
    struct op op = open_at(false, false);
    assert_int_equal(drive_to_end(&op), 0);
    assert_int_equal(yields, 1);
    rig_close();
}

static int waits_for_a_reader(struct op *op)
{
    op->wait = wait_for(&rig.members[2].consumed, 9, 2);
    return load_acquire64(op->wait.word) >= 9 ? DONE : WAITING;
}

/* Who has arrived may have much to do. */
static void for_more_than_arrivals_all_yield(void **state)
{
    (void)state;
    struct op op = open_at(true, false);
    op.advance = waits_for_a_reader;
    arrive(0, 5);
    arrive(1, 5);
    arrive(2, 5);
    assert_int_equal(drive_to_end(&op), 0);
    assert_int_equal(yields, 1);
    rig_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_here_gets_the_cpu),
        cmocka_unit_test(who_is_elsewhere_is_looked_for),
        cmocka_unit_test(who_is_alone_yields),
        cmocka_unit_test(for_more_than_arrivals_all_yield),
    };
    return cpu_bind(0) < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
