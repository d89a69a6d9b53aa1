/* ctest: timeout=200 labels=faults
 * Work that nobody waits for is carried on by the progress thread, however long it had nothing to
 * do before: where no CPU is to spare for it, it looks by itself for a while after there was work,
 * and must be rung for after that. Nor does a thread that has spun for one work keep it away from
 * the next. Ranks share one CPU here, so on every machine none is to spare. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/ranks.h"

#include <sched.h>
#include <time.h>

enum { ROUNDS = 12, COUNT = 3000, LONG = 50000 };

static void over(int error, void *arg) { ranks_say(*(int *)arg, error == 0 ? 1 : 2); }

/* Calls nothing of the library until both are over. */
static int carried(tutti_comm *world, int rank, int round, int word[2])
{
    static double x[COUNT];
    static char out[LONG * 4], in[LONG * 4];
    tutti_work *sum, *sent, *got;
    for (int i = 0; i < COUNT; i++)
        x[i] = rank + round;
    tutti_call call = { .work = &sum, .done = over, .done_arg = &word[0] };
    CHECK_IS(tutti_all_reduce(x, x, COUNT, TUTTI_F64, TUTTI_SUM, world, &call), 0);
    tutti_call letters = { .work = &sent };
    CHECK_IS(tutti_send(out, sizeof out, TUTTI_U8, !rank, round, world, &letters), 0);
    letters = (tutti_call){ .work = &got, .done = over, .done_arg = &word[1] };
    CHECK_IS(tutti_recv(in, sizeof in, TUTTI_U8, !rank, round, NULL, world, &letters), 0);
    CHECK_IS(ranks_await(word[0], 1), 0);
    CHECK_IS(ranks_await(word[1], 1), 0);
    CHECK_IS(tutti_wait(sum, -1), 0);
    CHECK_IS(tutti_wait(got, -1), 0);
    CHECK_IS(tutti_wait(sent, -1), 0);
    CHECK_IS(x[COUNT - 1], 1 + 2 * round);
    return 0;
}

/* Spun for by this thread, while the progress thread keeps away. */
static int waited_for(tutti_comm *world, int rank, int round)
{
    int one = rank, letter = round;
    tutti_work *work;
    tutti_call call = { .work = &work };
    CHECK_IS(tutti_all_reduce(&one, &one, 1, TUTTI_I32, TUTTI_SUM, world, &call), 0);
    CHECK_IS(tutti_wait(work, -1), 0);
    if (rank)
        CHECK_IS(tutti_recv(&letter, 1, TUTTI_I32, 0, -1, NULL, world, NULL), 0);
    else
        CHECK_IS(tutti_send(&letter, 1, TUTTI_I32, 1, round, world, NULL), 0);
    CHECK_IS(one, 1);
    return 0;
}

static int body(tutti_comm *world, int rank)
{
    for (int round = 0; round < ROUNDS; round++) {
        /* none, a few naps, until it has gone cold */
        const struct timespec idle = { 0, round % 3 * 8 * 1000000 };
        int word[2] = { 4 * round + 2 * rank, 4 * round + 2 * rank + 1 };
        nanosleep(&idle, NULL);
        CHECK_IS(waited_for(world, rank, round), 0);
        if (carried(world, rank, round, word))
            return 1;
    }
    return 0;
}

static void test_cold(void **state)
{
    (void)state;
    cpu_set_t all, one;
    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(ranks_run(2, body, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cold) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
