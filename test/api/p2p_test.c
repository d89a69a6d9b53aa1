/* ctest: timeout=300 labels=faults needs=forks */
/* send, recv and probe as they are called: what is refused, handles, callbacks, other threads,
 * forks, and what the tables show. */
#include "group/comm.h"
#include "support/ranks.h"
#include "support/team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { GO = 0, HERE = 1, LARGE = 1 << 20 };

static char large[LARGE];

/* Nothing of all that is sent, or received. */
static int refusals(tutti_comm *world)
{
    int x = 0;
    tutti_work *work = (tutti_work *)(void *)&x;
    tutti_call with_work = { .work = &work }, odd = { .reserved = { 0, 1 } }, flag = { .flags = 8 },
               keep = { .flags = TUTTI_KEEP };
    CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 0, 0, NULL, NULL), -EINVAL);
    CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, NULL, NULL), -EINVAL);
    CHECK_IS(tutti_probe(0, 0, NULL, NULL, NULL), -EINVAL);
    CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 2, 0, world, &with_work), -EINVAL);
    CHECK(work == NULL);
    CHECK(strstr(tutti_explain(world), "to is 2; there are 0 to 1") != NULL);
    CHECK_IS(tutti_send(&x, 1, TUTTI_I32, TUTTI_ANY, 0, world, NULL), -EINVAL);
    CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 0, TUTTI_ANY, world, NULL), -EINVAL);
    CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 0, -7, world, NULL), -EINVAL);
    CHECK(strstr(tutti_explain(world), "tag -7 is negative") != NULL);
    CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, -2, 0, NULL, world, NULL), -EINVAL);
    CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 2, 0, NULL, world, NULL), -EINVAL);
    CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, -2, NULL, world, NULL), -EINVAL);
    CHECK_IS(tutti_probe(7, 0, NULL, world, NULL), -EINVAL);
    CHECK_IS(tutti_send(NULL, 1, TUTTI_I32, 0, 0, world, NULL), -EINVAL);
    CHECK_IS(tutti_recv(NULL, 1, TUTTI_I32, 0, 0, NULL, world, NULL), -EINVAL);
    CHECK_IS(tutti_send(&x, 1, (tutti_type)99, 0, 0, world, NULL), -EINVAL);
    CHECK_IS(tutti_send(&x, SIZE_MAX / 2, TUTTI_I32, 0, 0, world, NULL), -EINVAL);
    CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 0, 0, world, &odd), -EINVAL);
    CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 0, 0, world, &flag), -EINVAL);
    CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, world, &keep), -EINVAL);
    CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 0, 0, world, &(tutti_call){ .stream = &x }), -EINVAL);
    return 0;
}

static int body_refused(tutti_comm *world, int rank)
{
    int x = 0;
    CHECK_IS(refusals(world), 0);
    CHECK_IS(tutti_send(NULL, 0, TUTTI_I32, !rank, 0x7fffffff, world, NULL), 0);
    tutti_message got = { 9, 9, 9 };
    CHECK_IS(tutti_recv(NULL, 0, TUTTI_I32, TUTTI_ANY, TUTTI_ANY, &got, world, NULL), 0);
    CHECK(got.from == !rank && got.tag == 0x7fffffff && got.count == 0);
    /* through pointers, too */
    CHECK_IS((tutti_send)(&rank, 1, TUTTI_I32, !rank, 0, world, NULL), 0);
    CHECK_IS((tutti_probe)(!rank, 0, &got, world, NULL), 0);
    CHECK_IS(got.count, 1);
    CHECK_IS((tutti_recv)(&x, 1, TUTTI_I32, !rank, 0, NULL, world, NULL), 0);
    CHECK_IS(x, !rank);
    tutti_figures figures;
    CHECK_IS(tutti_stats(world, &figures), 0);
    CHECK_IS(figures.operations, 5);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_refused, 0), 0);
}

/* The same and more once small messages have gone to and fro: they go a shorter way then, as long
 * as nothing is the matter with them. */
static int body_after_many(tutti_comm *world, int rank)
{
    float f[4] = { 0 };
    tutti_message got = { 9, 9, 9 };
    int x = 0;
    for (int i = 0; i < 10; i++) {
        CHECK_IS(tutti_send(&i, 1, TUTTI_I32, !rank, i, world, NULL), 0);
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, !rank, i % 2 ? i : TUTTI_ANY, &got, world, NULL), 0);
        CHECK(x == i && got.from == !rank && got.tag == i && got.count == 1);
    }
    CHECK_IS(refusals(world), 0);
    for (int i = 0; i < 3; i++) {
        for (int tag = 0; tag < 4; tag++) {
            f[0] = (float)(10 * i + tag);
            CHECK_IS(tutti_send(f, tag == 1 ? 4 : 1, TUTTI_F32, !rank, tag, world, NULL), 0);
        }
        /* so that all are there, and the shorter way could be gone */
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, !rank, 0, &got, world, NULL), -EPROTO);
        CHECK(strstr(tutti_explain(world), "the types differ") != NULL);
        CHECK_IS(tutti_recv(f, 3, TUTTI_F32, !rank, 1, &got, world, NULL), -EMSGSIZE);
        CHECK_IS(got.count, 4);
        CHECK_IS(tutti_recv(f, 4, TUTTI_F32, !rank, 3, &got, world, NULL), 0);
        CHECK(f[0] == (float)(10 * i + 3) && got.count == 1);
        CHECK_IS(tutti_recv(f, 4, TUTTI_F32, TUTTI_ANY, 2, &got, world, NULL), 0);
        CHECK(f[0] == (float)(10 * i + 2) && got.from == !rank && got.tag == 2 && got.count == 1);
    }
    for (int i = 0; i < 5; i++) {                                      /* to oneself */
        CHECK_IS(tutti_send(&i, 1, TUTTI_I32, rank, 0, world, NULL), 0);
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, rank, 0, &got, world, NULL), 0);
        CHECK(x == i && got.from == rank);
    }
    tutti_figures figures;
    CHECK_IS(tutti_stats(world, &figures), 0);
    CHECK_IS(figures.operations, 20 + 3 * 9 + 10);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_after_many(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_after_many, 0), 0);
}

struct calls { tutti_comm *world; int n, error, nested; };

static void count_done(int error, void *arg)
{
    struct calls *c = arg;
    int x = 0;
    c->n++;
    c->error = error;
    c->nested = tutti_send(&x, 1, TUTTI_I32, 0, 0, c->world, NULL);
}

/* `done` runs before the end is reported, once, and may not call on; nobody needs to wait for work
 * to go on. */
static int body_done(tutti_comm *world, int rank)
{
    struct calls calls = { world, 0, 1, 0 };
    tutti_work *work;
    if (rank == 1) {
        CHECK_IS(tutti_recv(large, LARGE, TUTTI_U8, 0, 0, NULL, world,
                            &(tutti_call){ .work = &work, .done = count_done, .done_arg = &calls }),
                 0);
        ranks_say(GO, 1);
        while (tutti_test(work) == -EAGAIN) { }
        CHECK_IS(calls.n, 1);
        CHECK_IS(calls.error, 0);
        CHECK_IS(calls.nested, -EDEADLK);
        CHECK_IS(tutti_test(work), 0);
        CHECK_IS(tutti_wait(work, 0), 0);
        CHECK_IS(calls.n, 1);
        /* The progress thread takes it while this one does something else. */
        CHECK_IS(tutti_recv(large, LARGE, TUTTI_U8, 0, 1, NULL, world,
                            &(tutti_call){ .work = &work, .done = count_done, .done_arg = &calls }),
                 0);
        ranks_say(GO, 2);
        CHECK_IS(ranks_await(HERE, 1), 0);
        CHECK_IS(tutti_wait(work, 0), 0);
        CHECK_IS(calls.n, 2);
    } else {
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_send(large, LARGE, TUTTI_U8, 1, 0, world, NULL), 0);
        CHECK_IS(ranks_await(GO, 2), 0);
        CHECK_IS(tutti_send(large, LARGE, TUTTI_U8, 1, 1, world, NULL), 0);
        ranks_say(HERE, 1);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_done(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_done, 0), 0);
}

/* TUTTI_KEEP: late, and yet received. And the patience of tutti_wait is not the deadline. */
static int body_keep(tutti_comm *world, int rank)
{
    int x = 0;
    tutti_work *work;
    if (rank == 0) {
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1, 0, NULL, world,
                            &(tutti_call){ .work = &work, .flags = TUTTI_KEEP, .timeout_ms = 10 }),
                 0);
        CHECK_IS(tutti_wait(work, 0), -ETIMEDOUT);
        CHECK_IS(tutti_test(work), -ETIMEDOUT);
        CHECK_IS(tutti_wait(work, 10), -ETIMEDOUT);
        ranks_say(GO, 1);
        CHECK_IS(tutti_wait(work, -1), 0);
        CHECK_IS(x, 7);
        CHECK_IS(tutti_probe(1, 1, NULL, world, &(tutti_call){ .work = &work }), 0);
        CHECK_IS(tutti_wait(work, 5), -EAGAIN);
        ranks_say(GO, 2);
        CHECK_IS(tutti_wait(work, 0), 0);
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1, 1, NULL, world, NULL), 0);
    } else {
        x = 7;
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 0, 0, world, NULL), 0);
        CHECK_IS(ranks_await(GO, 2), 0);
        CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 0, 1, world, NULL), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_keep(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_keep, 0), 0);
}

static void *call_from_aside(void *arg)
{
    tutti_comm *world = arg;
    int x = 0;
    /* two that enter within a cache miss would not notice each other, as documented */
    while (!load_relaxed32(&world->engine.busy))
        sched_yield();
    int r = tutti_send(&x, 1, TUTTI_I32, 0, 5, world, NULL);
    ranks_say(HERE, 1);
    return r == -EBUSY ? world : NULL;
}

/* A second thread is refused while the first is inside, a fork always; freeing waits for work. */
static int body_aside(tutti_comm *world, int rank)
{
    pthread_t thread;
    void *result;
    int x = 0;
    tutti_comm *half;
    tutti_work *work;
    if (rank == 0) {
        CHECK_IS(pthread_create(&thread, NULL, call_from_aside, world), 0);
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1, 9, NULL, world, NULL), 0);
        CHECK_IS(pthread_join(thread, &result), 0);
        CHECK(result == world);
        pid_t child = fork();
        if (child == 0)
            _exit(tutti_send(&x, 1, TUTTI_I32, 1, 0, world, NULL) == -ECHILD ? 0 : 1);
        int status;
        CHECK_IS(waitpid(child, &status, 0), child);
        CHECK_IS(status, 0);
    } else {
        CHECK_IS(ranks_await(HERE, 1), 0);
        CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 0, 9, world, NULL), 0);
    }
    CHECK_IS(tutti_comm_split(world, 0, 0, &half), 0);
    if (rank == 0) {
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1, 0, NULL, half, &(tutti_call){ .work = &work }), 0);
        CHECK_IS(tutti_comm_free(half), -EBUSY);
        CHECK_IS(tutti_finalize(world), -EBUSY);
        ranks_say(GO, 1);
        CHECK_IS(tutti_wait(work, 0), 0);
        CHECK_IS(tutti_comm_free(half), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        return 0;
    }
    CHECK_IS(ranks_await(GO, 1), 0);
    CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 0, 0, half, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, half, NULL), -EOWNERDEAD);
    CHECK(strstr(tutti_explain(half), "freed the comm") != NULL);
    CHECK_IS(tutti_comm_free(half), 0);
    return 0;
}

static void test_aside(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_aside, 0), 0);
}

/* Comms come and go: what they held of the span comes back when all have let go. */
static int body_comms(tutti_comm *world, int rank)
{
    for (int i = 0, rounds = ranks_many(300, 40); i < rounds; i++) {
        tutti_comm *comm;
        tutti_work *work;
        CHECK_IS(tutti_comm_split(world, 0, -rank, &comm), 0);
        int me = tutti_rank(comm), x = i, y = -1;
        CHECK_IS(tutti_recv(&y, 1, TUTTI_I32, !me, 1, NULL, comm, &(tutti_call){ .work = &work }),
                 0);
        CHECK_IS(tutti_send(large, LARGE / 4, TUTTI_U8, me, 0, comm, NULL), -EDEADLK);
        CHECK_IS(tutti_send(large, 60000, TUTTI_U8, !me, 0, comm, NULL), 0);
        CHECK_IS(tutti_send(&x, 1, TUTTI_I32, !me, 1, comm, NULL), 0);
        CHECK_IS(tutti_wait(work, 0), 0);
        CHECK_IS(y, i);
        if (i % 2)
            CHECK_IS(tutti_recv(large, LARGE, TUTTI_U8, !me, 0, NULL, comm, NULL), 0);
        CHECK_IS(tutti_comm_free(comm), 0);          /* with messages unread */
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_comms(void **state)
{
    (void)state;
    setenv("TUTTI_SPAN_BYTES", "16M", 1);
    assert_int_equal(ranks_run(2, body_comms, 0), 0);
    unsetenv("TUTTI_SPAN_BYTES");
}

/* What the others read of a rank that waits in recv; and the call in a fault's count. */
static int body_table(tutti_comm *world, int rank, struct team *team)
{
    float x[10];
    if (rank == 2) {
        team->rank[2].error[0] = tutti_fault(world, "2:send#3:kill");
        for (int i = 0; i < 3; i++)
            team->rank[2].error[1] = tutti_send(x, 1, TUTTI_F32, 0, i, world, NULL);
        return 0;
    }
    if (rank == 1) {
        team_say(team, 1, 1);
        team->rank[1].error[0] = tutti_recv(x, 10, TUTTI_F32, 2, 7, NULL, world, NULL);
        team_note(team, 1, world);
        return 0;
    }
    team_await(team, 1, 1);
    for (int i = 0; i < 2; i++)
        team->rank[0].error[i] = tutti_recv(x, 10, TUTTI_F32, TUTTI_ANY, i, NULL, world, NULL);
    team->rank[0].error[2] = tutti_recv(x, 10, TUTTI_F32, 2, 2, NULL, world, NULL);
    team_note(team, 0, world);
    return 0;
}

static void test_table(void **state)
{
    (void)state;
    struct team *team = team_start(3, body_table, true);
    assert_int_equal(team_end(team), 0);
    assert_int_equal(team->rank[0].error[0], 0);
    assert_int_equal(team->rank[0].error[1], 0);
    assert_int_equal(team->rank[0].error[2], -EOWNERDEAD);
    assert_int_equal(team->rank[1].error[0], -EOWNERDEAD);
    assert_non_null(strstr(team->rank[1].report, "recv f32 10 from rank 2 tag 7 on world"));
    assert_non_null(strstr(team->rank[0].report, "rank 2 died"));
    assert_non_null(strstr(team->rank[0].report, "send f32 1 to 0 tag 1 at"));
    assert_true(WIFSIGNALED(team->status[2]));
    team_free(team);
}

static int body_row(tutti_comm *world, int rank, struct team *team)
{
    int x = 1;
    tutti_work *work;
    if (rank == 0) {
        for (int r = 1; r < 5; r++)
            if (team_await(team, r, 1) || !team_is(team, r, "sleeping"))
                return 1;
        team->rank[0].error[0] = tutti_recv(&x, 1, TUTTI_I32, TUTTI_ANY, 55, NULL, world,
                                            &(tutti_call){ .timeout_ms = 20 });
        team_note(team, 0, world);
        int wrong = tutti_send(&x, 1, TUTTI_I32, 1, 7, world, NULL)
            || tutti_send(&x, 1, TUTTI_I32, 3, 9, world, NULL)
            || tutti_send(&x, 1, TUTTI_I32, 4, 0, world, NULL);
        return wrong || tutti_barrier(world, NULL);
    }
    team_say(team, rank, 1);
    if (rank == 1)
        x = tutti_recv(&x, 1, TUTTI_I32, 0, 7, NULL, world, NULL);
    else if (rank == 2)
        x = tutti_send(large, LARGE, TUTTI_U8, 3, 8, world, NULL);
    else if (rank == 3) {
        x = tutti_probe(TUTTI_ANY, 9, NULL, world, NULL);
        x = x ? x : tutti_recv(large, LARGE, TUTTI_U8, 2, 8, NULL, world, NULL);
    } else {
        x = tutti_recv(&x, 1, TUTTI_I32, TUTTI_ANY, TUTTI_ANY, NULL, world,
                       &(tutti_call){ .work = &work });
        x = x ? x : tutti_wait(work, 0);
    }
    return x || tutti_barrier(world, NULL);
}

static void test_row(void **state)
{
    (void)state;
    struct team *team = team_start(5, body_row, true);
    assert_int_equal(team_end(team), 0);
    assert_int_equal(team->said, 0);
    assert_int_equal(team->rank[0].error[0], -ETIMEDOUT);
    assert_non_null(strstr(team->rank[0].report, "in recv i32 1 from 0 tag 7 at api/p2p_test.c:"));
    assert_non_null(
        strstr(team->rank[0].report, "in send u8 1048576 to 3 tag 8 at api/p2p_test.c:"));
    assert_non_null(strstr(team->rank[0].report, "in probe from any tag 9 at api/p2p_test.c:"));
    assert_non_null(
        strstr(team->rank[0].report, "in recv i32 1 from any tag any at api/p2p_test.c:"));
    team_free(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused), cmocka_unit_test(test_after_many),
        cmocka_unit_test(test_done), cmocka_unit_test(test_keep), cmocka_unit_test(test_aside),
        cmocka_unit_test(test_comms), cmocka_unit_test(test_table), cmocka_unit_test(test_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
