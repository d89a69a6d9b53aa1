/* ctest: timeout=300 labels=tsan needs=forks */
/* Operations left under way. Where a test needs that something has not happened yet, a rank holds
 * back its part until it is told; so "still under way" is certain, and nothing is measured. */
#include "support/ranks.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { GO = 0, HERE = 1, DONE_RUNS = 2, ORDER = 3, OVER = 4 };
enum { INLINE_COUNT = 8, EAGER_COUNT = 2000, PIPELINED_COUNT = 60000 };

static const int counts[] = { 1, INLINE_COUNT, EAGER_COUNT, PIPELINED_COUNT };

static int until(tutti_work *work)
{
    int r;
    while ((r = tutti_test(work)) == -EAGAIN)
        sched_yield();
    return r;
}

/* Every kind and size, three of each in flight, each waited for in another way, the
 * results right. */
static int body_all_kinds(tutti_comm *world, int rank)
{
    int size = tutti_size(world);
    for (int c = 0; c < 4; c++) {
        size_t n = (size_t)counts[c];
        int32_t *x[3], sum = 0;
        tutti_work *all[3], *from[3], *to[3], *gate[3];
        for (int i = 0; i < 3; i++) {
            x[i] = malloc(3 * n * sizeof(int32_t));
            for (size_t k = 0; k < n; k++) {
                x[i][k] = (int32_t)k + rank + i;
                x[i][n + k] = rank == i % size ? (int32_t)k + 100 * i : -1;
                x[i][2 * n + k] = rank + i;
            }
            CHECK_IS(tutti_all_reduce(x[i], x[i], n, TUTTI_I32, TUTTI_SUM, world,
                                      &(tutti_call){ .work = &all[i] }),
                     0);
            CHECK_IS(tutti_broadcast(x[i] + n, n, TUTTI_I32, i % size, world,
                                     &(tutti_call){ .work = &from[i] }),
                     0);
            CHECK_IS(tutti_reduce(x[i] + 2 * n, x[i] + 2 * n, n, TUTTI_I32, TUTTI_MAX, i % size,
                                  world, &(tutti_call){ .work = &to[i] }),
                     0);
            CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &gate[i] }), 0);
        }
        for (int p = 0; p < size; p++)
            sum += p;
        /* the last first: whatever was started before it is over then */
        CHECK_IS(tutti_wait(gate[2], 0), 0);
        for (int i = 0; i < 3; i++) {
            CHECK_IS(tutti_test(all[i]), 0);
            CHECK_IS(tutti_test(all[i]), 0);                 /* never frees */
            CHECK_IS(tutti_wait(all[i], 1000), 0);
            CHECK_IS(tutti_wait(from[i], -1), 0);
            CHECK_IS(until(to[i]), 0);
            CHECK_IS(tutti_wait(to[i], 0), 0);
            if (i < 2)
                CHECK_IS(tutti_wait(gate[i], 0), 0);
            for (size_t k = 0; k < n; k++) {
                CHECK_IS(x[i][k], size * ((int)k + i) + sum);
                CHECK_IS(x[i][n + k], (int)k + 100 * i);
                CHECK_IS(x[i][2 * n + k], rank == i % size ? size - 1 + i : rank + i);
            }
            free(x[i]);
        }
    }
    return 0;
}

static void test_all_kinds(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_all_kinds), 0);
    assert_int_equal(ranks_run_either(1, body_all_kinds), 0);
    assert_int_equal(ranks_run_threads(2, body_all_kinds), 0);
}

static void note_order(int error, void *arg)
{
    /* one rank alone notes */
    page->bytes[load_acquire32(&page->word[ORDER])] = (char)((intptr_t)arg + (error ? 100 : 0));
    ranks_count(ORDER);
}

/* They end in the order in which they were started, as `done` sees it; blocking calls take their
 * place behind. */
static int body_in_order(tutti_comm *world, int rank)
{
    enum { MANY = 40 };
    tutti_work *work[MANY];
    float x[PIPELINED_COUNT] = { 1 };
    if (rank == 0)
        for (intptr_t i = 0; i < MANY; i++)
            CHECK_IS(tutti_all_reduce(x, x,
                                      i % 3 == 0 ? 1
                                          : i % 3 == 1 ? EAGER_COUNT
                                          : PIPELINED_COUNT,
                                      TUTTI_F32, TUTTI_MAX, world,
                                      &(tutti_call){ .work = &work[i],
                                                     .done = note_order,
                                                     .done_arg = (void *)i }),
                     0);
    else
        for (int i = 0; i < MANY; i++)
            CHECK_IS(tutti_all_reduce(x, x,
                                      i % 3 == 0 ? 1
                                          : i % 3 == 1 ? EAGER_COUNT
                                          : PIPELINED_COUNT,
                                      TUTTI_F32, TUTTI_MAX, world, NULL),
                     0);
    float y = (float)rank;
    CHECK_IS(tutti_all_reduce(&y, &y, 1, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    CHECK(y == 1);
    if (rank == 0)
        for (int i = 0; i < MANY; i++) {
            CHECK_IS(page->bytes[i], i);                /* all were over before the blocking call */
            CHECK_IS(tutti_test(work[i]), 0);
            CHECK_IS(tutti_wait(work[i], 0), 0);
        }
    return 0;
}

static void test_in_order(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_in_order), 0);
}

/* tutti_wait's timeout is patience only: -EAGAIN, and the handle is what it was. */
static int body_patience(tutti_comm *world, int rank)
{
    tutti_work *work;
    if (rank == 1) {
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        return 0;
    }
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &work }), 0);
    CHECK_IS(tutti_test(work), -EAGAIN);
    for (int i = 0; i < 3; i++)
        CHECK_IS(tutti_wait(work, 5), -EAGAIN);
    CHECK_IS(tutti_test(work), -EAGAIN);
    ranks_say(GO, 1);
    CHECK_IS(tutti_wait(work, 0), 0);
    return 0;
}

static void test_patience(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_patience), 0);
}

static void done_count(int error, void *arg)
{
    if (error == 0)
        fetch_add32(arg, 1);
}

/* Work on several comms at once, more than one sleep of the progress thread can watch, started in
 * different orders by the ranks. */
static int body_many_comms(tutti_comm *world, int rank)
{
    enum { COMMS = 40 };
    static _Thread_local int32_t x[COMMS][PIPELINED_COUNT / 4];
    tutti_comm *comm[COMMS];
    tutti_work *work[COMMS];
    shared32 ended = 0;
    for (int i = 0; i < COMMS; i++)
        CHECK_IS(tutti_comm_split(world, 0, 0, &comm[i]), 0);
    for (int n = 0; n < 2; n++) {
        for (int k = 0; k < COMMS; k++) {
            int i = rank ? COMMS - 1 - k : k;
            x[i][0] = x[i][PIPELINED_COUNT / 4 - 1] = i + n;
            CHECK_IS(tutti_all_reduce(x[i], x[i],
                                      i % 10 == 0 ? PIPELINED_COUNT / 4
                                          : i % 2 ? EAGER_COUNT
                                                  : 1,
                                      TUTTI_I32, TUTTI_SUM, comm[i],
                                      &(tutti_call){ .work = &work[i],
                                                     .done = done_count,
                                                     .done_arg = (void *)&ended }),
                     0);
        }
        /* Nobody calls anything meanwhile: the progress threads alone have to do it all. */
        for (long i = 0; load_acquire32(&ended) < (uint32_t)(n + 1) * COMMS && i < 100000000; i++)
            sched_yield();
        for (int i = 0; i < COMMS; i++) {
            CHECK_IS(tutti_wait(work[i], 0), 0);
            CHECK_IS(x[i][0], 2 * (i + n));
            if (i % 10 == 0)
                CHECK_IS(x[i][PIPELINED_COUNT / 4 - 1], 2 * (i + n));
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    for (int i = 0; i < COMMS; i++)
        CHECK_IS(tutti_comm_free(comm[i]), 0);
    return 0;
}

struct deeds {
    tutti_comm *world, *other;
    tutti_work *own, *inner;
    shared32 runs;
    int error, wrong;
};

static int done_forbidden(struct deeds *d)
{
    tutti_comm *world = d->world, *made = NULL;
    int list[1] = { tutti_rank(world) };
    tutti_work *none = (tutti_work *)(void *)d;
    CHECK_IS(tutti_barrier(world, NULL), -EDEADLK);
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &none }), -EDEADLK);
    CHECK(none == NULL);
    CHECK_IS(tutti_comm_split(world, 0, 0, &made), -EDEADLK);
    CHECK_IS(tutti_comm_create(world, list, 1, &made), -EDEADLK);
    CHECK_IS(tutti_first_begin("k", world, NULL), -EDEADLK);
    CHECK_IS(tutti_first_end("k", 0, world), -EDEADLK);
    CHECK_IS(tutti_turn_begin(world, NULL), -EDEADLK);
    CHECK_IS(tutti_turn_end(world), -EDEADLK);
    CHECK_IS(tutti_finalize(world), -EDEADLK);
    CHECK_IS(tutti_comm_free(d->other), -EDEADLK);
    CHECK_IS(tutti_wait(d->own, 0), -EDEADLK);
    CHECK_IS(tutti_test(d->own), -EAGAIN);              /* not over: it is being told just now */
    CHECK_IS(tutti_failed(world, NULL, 0), 0);
    return 0;
}

static void done_deeds(int error, void *arg)
{
    struct deeds *d = arg;
    d->error = error;
    d->wrong = done_forbidden(d);
    if (d->wrong == 0)
        /* starting work elsewhere is fine */
        d->wrong = tutti_barrier(d->other, &(tutti_call){ .work = &d->inner });
    fetch_add32(&d->runs, 1);
}

/* `done` on the progress thread: nobody calls anything until it has run. */
static int body_done(tutti_comm *world, int rank)
{
    struct deeds d = { .world = world };
    CHECK_IS(tutti_comm_split(world, 0, 0, &d.other), 0);
    tutti_call call = { .work = &d.own, .done = done_deeds, .done_arg = &d };
    if (rank == 0)
        CHECK_IS(ranks_await(GO, 1), 0);
    CHECK_IS(tutti_barrier(world, &call), 0);
    if (rank == 1)
        ranks_say(GO, 1);
    for (long i = 0; load_acquire32(&d.runs) == 0 && i < 100000000; i++)
        sched_yield();
    CHECK_IS(load_acquire32(&d.runs), 1);
    CHECK_IS(d.error, 0);
    CHECK_IS(d.wrong, 0);
    CHECK_IS(tutti_wait(d.own, 0), 0);
    CHECK_IS(tutti_wait(d.inner, 0), 0);
    CHECK_IS(load_acquire32(&d.runs), 1);                    /* once */
    CHECK_IS(tutti_barrier(world, NULL), 0);                 /* the comm is unharmed */
    CHECK_IS(tutti_comm_free(d.other), 0);
    return 0;
}

static void done_flag(int error, void *arg)
{
    int *told = arg;
    told[0]++;
    told[1] = error;
}

/* Whatever reports the end, done has run before: a plain int is enough to see it. */
static int body_done_before_report(tutti_comm *world, int rank)
{
    for (int i = 0; i < ranks_many(2000, 300); i++) {
        int told[2] = { 0, -1 };
        tutti_work *work;
        CHECK_IS(tutti_barrier(world,
                               &(tutti_call){ .work = &work, .done = done_flag, .done_arg = told }),
                 0);
        if (i % 2)
            CHECK_IS(until(work), 0);
        else
            CHECK_IS(tutti_wait(work, i % 4 ? 0 : -1), 0);
        CHECK_IS(told[0], 1);
        CHECK_IS(told[1], 0);
        if (i % 2)
            CHECK_IS(tutti_wait(work, 0), 0);
        CHECK_IS(told[0], 1);
    }
    (void)rank;
    return 0;
}

static void test_done(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_done), 0);
    assert_int_equal(ranks_run_either(2, body_done_before_report), 0);
}

/* -EBUSY with work under way, nothing done; a split waits for its place behind it. */
static int body_busy(tutti_comm *world, int rank)
{
    tutti_comm *sub, *more;
    tutti_work *work;
    CHECK_IS(tutti_comm_split(world, 0, 0, &sub), 0);
    if (rank == 0) {
        CHECK_IS(tutti_barrier(sub, &(tutti_call){ .work = &work }), 0);
        CHECK_IS(tutti_comm_free(sub), -EBUSY);
        CHECK_IS(tutti_finalize(world), -EBUSY);
        ranks_say(GO, 1);
        CHECK_IS(tutti_comm_split(sub, 0, 0, &more), 0);
        CHECK_IS(tutti_test(work), 0);
    } else {
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_barrier(sub, NULL), 0);
        CHECK_IS(tutti_comm_split(sub, 0, 0, &more), 0);
    }
    CHECK_IS(tutti_barrier(more, NULL), 0);
    CHECK_IS(tutti_comm_free(more), 0);
    CHECK_IS(tutti_comm_free(sub), 0);
    if (rank == 0)
        CHECK_IS(tutti_wait(work, 0), 0);                    /* what is over outlives its comm */
    return 0;
}

/* The instant a wait has returned, the comm is free of work: whichever thread ended it. */
static int body_free_after_wait(tutti_comm *world, int rank)
{
    for (int i = 0; i < ranks_many(500, 100); i++) {
        tutti_comm *sub;
        tutti_work *work;
        CHECK_IS(tutti_comm_split(world, 0, 0, &sub), 0);
        shared32 ended = 0;
        CHECK_IS(tutti_barrier(sub,
                               &(tutti_call){
                                   .work = &work, .done = done_count, .done_arg = (void *)&ended }),
                 0);
        while (i % 2 && load_acquire32(&ended) == 0)
            sched_yield();
        CHECK_IS(tutti_wait(work, 0), 0);
        CHECK_IS(tutti_comm_free(sub), 0);
    }
    (void)rank;
    return 0;
}

static void test_busy(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_busy), 0);
    assert_int_equal(ranks_run_either(2, body_free_after_wait), 0);
}

static int threads_here(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2;
}

/* The progress thread is there from the first .work on, and one for all comms. */
static int body_thread(tutti_comm *world, int rank)
{
    tutti_comm *sub;
    tutti_work *work;
    int before = threads_here();
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &sub), 0);
    CHECK_IS(tutti_barrier(sub, NULL), 0);
    CHECK_IS(threads_here(), before);
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &work }), 0);
    CHECK_IS(tutti_wait(work, 0), 0);
    CHECK_IS(threads_here(), before + 1);
    CHECK_IS(tutti_barrier(sub, &(tutti_call){ .work = &work }), 0);
    CHECK_IS(tutti_wait(work, 0), 0);
    CHECK_IS(threads_here(), before + 1);
    (void)rank;
    return 0;
}

/* A rank that starts and never looks again still does its part: its peers end, several operations
 * and phases on. */
static int body_never_waits(tutti_comm *world, int rank)
{
    static _Thread_local int32_t x[3][PIPELINED_COUNT];
    tutti_work *work[3];
    for (int i = 0; i < 3; i++) {
        x[i][PIPELINED_COUNT - 1] = i + 1;
        if (rank == 0)
            CHECK_IS(tutti_all_reduce(x[i], x[i], i == 1 ? EAGER_COUNT : PIPELINED_COUNT, TUTTI_I32,
                                      TUTTI_SUM, world, &(tutti_call){ .work = &work[i] }),
                     0);
    }
    if (rank == 0)
        CHECK_IS(ranks_await(OVER, 1), 0);
    else {
        for (int i = 0; i < 3; i++)
            CHECK_IS(tutti_all_reduce(x[i], x[i], i == 1 ? EAGER_COUNT : PIPELINED_COUNT, TUTTI_I32,
                                      TUTTI_SUM, world, NULL),
                     0);
        CHECK_IS(x[2][PIPELINED_COUNT - 1], 6);
        ranks_say(OVER, 1);
    }
    for (int i = 0; rank == 0 && i < 3; i++)
        CHECK_IS(tutti_wait(work[i], 0), 0);
    return 0;
}

static void test_progress_thread(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_thread, 0), 0);
    assert_int_equal(ranks_run_either(2, body_never_waits), 0);
    assert_int_equal(ranks_run_either(2, body_many_comms), 0);
}

static void *wait_elsewhere(void *work)
{
    return (void *)(intptr_t)tutti_wait(work, 0);
}

/* A handle is waited for by another thread than the one that started it, while that one goes on
 * with the comm. */
static int body_other_thread(tutti_comm *world, int rank)
{
    for (int i = 0; i < 50; i++) {
        tutti_work *work[2];
        pthread_t thread[2];
        void *result[2];
        int x = rank;
        for (int k = 0; k < 2; k++) {
            CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &work[k] }), 0);
            CHECK_IS(pthread_create(&thread[k], NULL, wait_elsewhere, work[k]), 0);
        }
        CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
        CHECK_IS(x, 1);
        for (int k = 0; k < 2; k++) {
            pthread_join(thread[k], &result[k]);
            CHECK_IS((intptr_t)result[k], 0);
        }
    }
    return 0;
}

static void test_other_thread(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_other_thread), 0);
}

/* Work under way on other comms is not hurt by a death elsewhere, nor by a broken comm in the same
 * progress thread. */
static int body_comms_apart(tutti_comm *world, int rank)
{
    tutti_comm *pair;
    tutti_work *broken, *whole;
    CHECK_IS(tutti_comm_split(world, rank == 2 ? -1 : 0, 0, &pair), 0);
    if (rank == 2) {
        CHECK_IS(ranks_await(HERE, 2), 0);
        ranks_die();
    }
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &broken }), 0);
    if (rank == 0)
        CHECK_IS(tutti_barrier(pair, &(tutti_call){ .work = &whole }), 0);
    ranks_count(HERE);
    CHECK_IS(tutti_wait(broken, 0), -EOWNERDEAD);
    if (rank == 1)
        CHECK_IS(tutti_barrier(pair, &(tutti_call){ .work = &whole }), 0);
    CHECK_IS(tutti_wait(whole, 0), 0);
    CHECK_IS(tutti_barrier(pair, NULL), 0);
    CHECK_IS(tutti_comm_free(pair), 0);
    return 0;
}

static void test_comms_apart(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_comms_apart, 1 << 2), 0);
}

/* A child that was forked meanwhile is told that it is no rank. */
static int body_fork(tutti_comm *world, int rank)
{
    tutti_work *work;
    if (rank == 1) {
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        return 0;
    }
    CHECK_IS(tutti_barrier(world, &(tutti_call){ .work = &work }), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(tutti_test(work) == -ECHILD && tutti_wait(work, 0) == -ECHILD ? 0 : 1);
    int status = -1;
    CHECK_IS(waitpid(child, &status, 0), child);
    CHECK_IS(status, 0);
    ranks_say(GO, 1);
    CHECK_IS(tutti_wait(work, 0), 0);
    return 0;
}

static void test_fork(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_fork, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_kinds),
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_done),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_progress_thread),
        cmocka_unit_test(test_other_thread),
        cmocka_unit_test(test_comms_apart),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
