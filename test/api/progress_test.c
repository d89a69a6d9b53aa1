/* ctest: timeout=300 */
/* options.progress: a rank that waits lets other communication of the program go on, whatever it
 * waits in; and none of its waits is part of a cycle. Here the other communication is a word that
 * only a turn of `progress` on the waiting rank raises, and without which the other never comes. */
#include "base/clock.h"
#include "support/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TURNS = 20, LARGE = 1 << 20, CYCLE_NS = 2000000000 };
static const char *job;
static _Thread_local int turns, step;
static _Thread_local uint64_t from_ns;

/* Says step `step` when it has been called often enough, or late enough. */
static void turn(void *arg)
{
    (void)arg;
    turns++;
    if (step && (from_ns ? clock_ns() - from_ns > CYCLE_NS : turns >= TURNS))
        ranks_say(step, 1);
}

static int open_world(tutti_comm **world, int rank)
{
    const tutti_options o = {
        .job = job, .rank = rank, .size = 2, .progress = turn, .timeout_ms = -1
    };
    return tutti_init(world, &o);
}

/* One call of each kind of wait. */
static int wait_in(int which, tutti_comm *world, tutti_comm *made[1], float *x)
{
    int flag = 1, both[] = { 0, 1 }, rank = tutti_rank(world);
    size_t n = 1;
    switch (which) {
    case 1:
        return tutti_barrier(world, NULL);
    case 2:
        return tutti_all_reduce(x, x, 1, TUTTI_F32, TUTTI_SUM, world, NULL);
    case 3:
        return tutti_all_reduce(x, x, LARGE, TUTTI_F32, TUTTI_SUM, world, NULL);
    case 4:
        return tutti_comm_create(world, both, 2, made);
    case 5:
        return tutti_comm_agree(world, &flag);
    case 6:
        return rank ? tutti_send(x, 1, TUTTI_F32, 0, 7, world, NULL)
                    : tutti_recv(x, 1, TUTTI_F32, 1, 7, NULL, world, NULL);
    case 7:
        return rank ? tutti_set("key", "v", 1, world)
                    : tutti_get("key", (char[1]){ 0 }, &n, world, NULL);
    default:
        return -ENOENT;
    }
}

static int body_each(tutti_comm *none, int rank)
{
    (void)none;
    tutti_comm *world = NULL, *made = NULL;
    float *x = calloc(LARGE, sizeof *x);
    CHECK(x);
    CHECK_IS(open_world(&world, rank), 0);
    int which = 1;
    for (;; which++) {
        turns = 0;
        step = rank == 0 ? which : 0;
        if (rank == 1 && which <= 7)
            CHECK_IS(ranks_await(which, 1), 0);      /* rank 0 is in its wait, and turns */
        int r = wait_in(which, world, &made, x);
        if (r == -ENOENT)
            break;
        CHECK_IS(r, 0);
    }
    CHECK_IS(which, 8);
    CHECK_IS(tutti_comm_free(made), 0);
    CHECK_IS(tutti_finalize(world), 0);
    free(x);
    return 0;
}

/* A thread of rank 1 that has never called will help. */
static void *helper(void *comm)
{
    if (ranks_await(1, 1))
        return comm;
    return tutti_barrier(comm, NULL) ? comm : NULL;
}

static int body_no_cycle(tutti_comm *none, int rank)
{
    (void)none;
    tutti_comm *world = NULL, *other = NULL;
    pthread_t thread;
    void *wrong = NULL;
    CHECK_IS(open_world(&world, rank), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &other), 0);
    if (rank == 1)
        CHECK_IS(pthread_create(&thread, NULL, helper, world), 0);
    step = rank == 0;
    from_ns = clock_ns();
    CHECK_IS(tutti_barrier(rank ? other : world, NULL), 0);
    if (rank == 0)
        CHECK_IS(tutti_barrier(other, NULL), 0);
    else
        CHECK_IS(pthread_join(thread, &wrong), 0);
    CHECK(!wrong);
    CHECK_IS(tutti_comm_free(other), 0);
    CHECK_IS(tutti_finalize(world), 0);
    return 0;
}

static void goes_on_in_every_wait(void **state)
{
    (void)state;
    job = ranks_job();
    assert_int_equal(ranks_run_either(2, body_each), 0);
}

static void no_wait_is_part_of_a_cycle(void **state)
{
    (void)state;
    job = ranks_job();
    assert_int_equal(ranks_run_either(2, body_no_cycle), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_in_every_wait), cmocka_unit_test(no_wait_is_part_of_a_cycle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
