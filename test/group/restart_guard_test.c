/* ctest: timeout=60 */
/* Who comes when the world is full: refused while its seat is held, the first of the next
 * generation when it is not. */
#include "join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void world(int size)
{
    for (int p = 0; p < size; p++)
        start_rank(p, p, size);
    for (int p = 0; p < size; p++)
        expect_report(p, 0);
}

static void test_full(void **state)
{
    (void)state;
    char who[160];
    world(3);
    for (int p = 0; p < 3; p++) {
        start_rank(3 + p, p, 3);
        snprintf(who, sizeof who, "the job '%s' is full: rank %d is pid %d (", job_name, p,
                 (int)joiners.pid[p]);
        expect_text(3 + p, -EEXIST, who);
    }
}

/* One rank is killed in a world that lives on; its successor opens the next generation, where the
 * others come as they end. */
static void test_next_generation(void **state)
{
    (void)state;
    world(3);
    uint64_t first = joiners.report[0].birth;
    joiners_kill(&joiners, 2);
    start_rank(2, 2, 3);
    assert_true(joiners_sits(&joiners, 2, 2));
    /* the meeting is open again: whoever comes belongs to the new generation */
    start_rank(3, 1, 3);
    joiners_kill(&joiners, 0);
    start_rank(0, 0, 3);
    expect_report(0, 0);
    expect_report(2, 0);
    expect_report(3, 0);
    assert_true(joiners.report[0].birth != first);
    assert_int_equal(joiners.report[0].birth, joiners.report[2].birth);
}

static void test_same_name_again_and_again(void **state)
{
    (void)state;
    for (int i = 0; i < joiners_prove(30, 2000); i++) {
        world(2 + i % 3);
        joiners_let_go(&joiners);
    }
}

/* The next generation begins while the last one is still leaving: no rank is caught
 * between the two. */
static void test_generations_overlap(void **state)
{
    (void)state;
    for (int i = 0; i < joiners_prove(30, 2000); i++) {
        enum { N = 3 };
        world(N);
        for (int p = 0; p < N; p++) {
            joiners_kill(&joiners, p);      /* one by one; each rank's successor comes at once */
            start_rank(p, p, N);
        }
        for (int p = 0; p < N; p++)
            expect_report(p, 0);
        joiners_let_go(&joiners);
    }
}

int main(void)
{
#define OF(test) cmocka_unit_test_setup_teardown(test, join_setup, join_teardown)
    const struct CMUnitTest tests[] = { OF(test_full), OF(test_next_generation),
                                        OF(test_same_name_again_and_again),
                                        OF(test_generations_overlap) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
