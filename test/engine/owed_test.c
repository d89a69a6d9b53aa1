/* ctest: timeout=120 labels=tsan,faults
 * TUTTI_LEAVE: of two ranks, the one that only gives in a collective is back before the other has
 * come. Its next call says what has become of it. Nothing is lost or overwritten meanwhile. */
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 40000, LENT = 20000 };
static const size_t counts[] = { 1, 2, 20, 22, 23, 64, 256, 1000, 4097, 20000, MOST };
enum { COUNTS = sizeof counts / sizeof counts[0] };
enum way { BROADCAST, REDUCE, GATHER, WAYS };

static uint32_t value(int rank, int call, size_t i)
{
    return (uint32_t)(rank * 1000003 + call * 4099) + (uint32_t)i;
}

/* A call of that way, of which `taker` is the only one to get something. */
static int call(enum way way, int nth, size_t n, int taker, tutti_comm *world,
                const tutti_call *how)
{
    static _Thread_local uint32_t give[MOST], get[2 * MOST];
    int me = tutti_rank(world);
    for (size_t i = 0; i < n; i++)
        give[i] = value(me, nth, i);
    memset(get, 0, sizeof *get * n * 2);
    int r = way == BROADCAST
        ? tutti_broadcast(me == taker ? get : give, n, TUTTI_U32, !taker, world, how)
        : way == REDUCE
        ? tutti_reduce(give, get, n, TUTTI_U32, TUTTI_SUM, taker, world, how)
        : tutti_gather(give, get, n, TUTTI_U32, taker, world, how);
    memset(give, 0xff, sizeof *give * n);            /* the caller's again */
    for (size_t i = 0; i < n && r == 0 && me == taker; i++) {
        uint32_t theirs = value(!me, nth, i), own = value(me, nth, i);
        CHECK_IS(get[i],
                 way == BROADCAST ? theirs : way == REDUCE ? theirs + own : value(0, nth, i));
        CHECK(way != GATHER || get[n + i] == value(1, nth, i));
    }
    return r;
}

/* Rank 1 calls only when rank 0 has said that it is back. */
static int body_leaves(tutti_comm *world, int rank)
{
    uint32_t step = 0;
    for (int way = 0; way < WAYS; way++)
        for (int k = 0; counts[k] < MOST; k++) {     /* those go in pieces */
            if (rank == 1)
                CHECK_IS(ranks_await(0, ++step), 0);
            CHECK_IS(call((enum way)way, k, counts[k], 1, world, NULL), 0);
            if (rank == 0)
                ranks_say(0, ++step);
        }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void who_only_gives_is_back_before_the_other_comes(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_leaves), 0);
}

/* Each call is counted once, with what its copies took. */
static int body_counted(tutti_comm *world, int rank)
{
    enum { CALLS = 20, WORDS = 2000 };
    tutti_figures before, after;
    CHECK_IS(tutti_stats(world, &before), 0);
    for (uint32_t i = 1; i <= CALLS; i++) {
        if (rank == 1)
            CHECK_IS(ranks_await(0, i), 0);
        CHECK_IS(call(BROADCAST, (int)i, WORDS, 1, world, NULL), 0);
        if (rank == 0)
            ranks_say(0, i);
    }
    CHECK_IS(tutti_stats(world, &after), 0);
    CHECK_IS(after.operations - before.operations, CALLS);
    CHECK_IS(after.bytes - before.bytes, CALLS * WORDS * sizeof(uint32_t));
    CHECK(after.fold_ns > before.fold_ns);
    return 0;
}

static void each_call_is_counted(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_counted), 0);
}

/* The same calls in the same order, whoever comes first: nothing is read too late or early. */
static int body_any_order(tutti_comm *world, int rank)
{
    uint64_t x = 11;                                 /* the same in both ranks */
    tutti_comm *sub = NULL;
    int one = 1, calls = ranks_many(4000, 400);
    for (int i = 0; i < calls; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        enum way way = (enum way)(x >> 8 & 3);
        size_t n = counts[(x >> 16) % COUNTS];
        int taker = (int)(x >> 32 & 1), all = 0;
        tutti_work *work = NULL;
        if (way < WAYS && x >> 40 & 7)
            CHECK_IS(call(way, i, n, taker, world, NULL), 0);
        else if (way < WAYS) {
            uint32_t word = value(rank, i, 0);
            CHECK_IS(tutti_broadcast(&word, 1, TUTTI_U32, taker, world,
                                     &(tutti_call){ .work = &work }), 0);
            CHECK_IS(tutti_wait(work, -1), 0);
            CHECK_IS(word, value(taker, i, 0));
        } else if (x >> 40 & 3) {
            CHECK_IS(tutti_all_reduce(&one, &all, 1, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
            CHECK_IS(all, 2);
        } else if (x >> 42 & 3)
            CHECK_IS(tutti_barrier(world, NULL), 0);
        else {
            CHECK_IS(tutti_comm_split(world, 0, rank, &sub), 0);
            CHECK_IS(call(GATHER, i, n, taker, sub, NULL), 0);
            CHECK_IS(tutti_comm_free(sub), 0);       /* one of them has only given there */
        }
    }
    return 0;
}

static void what_comes_next_is_right(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_any_order), 0);
}

/* A buffer that the other one reads in place is not the caller's before that. */
static int body_lent(tutti_comm *world, int rank)
{
    uint32_t *x = tutti_alloc(LENT * sizeof *x, world);
    CHECK(x);
    for (int i = 0; i < 50; i++) {
        for (size_t k = 0; k < LENT; k++)
            x[k] = value(rank, i, k);
        CHECK_IS(tutti_broadcast(x, LENT, TUTTI_U32, 0, world, NULL), 0);
        for (size_t k = 0; k < LENT; k++)
            CHECK_IS(x[k], value(0, i, k));
        memset(x, 0xff, LENT * sizeof *x);
    }
    return 0;
}

static void a_buffer_that_is_lent_is_waited_for(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_lent, 0), 0);
}

static int body_killed(tutti_comm *world, int rank)
{
    tutti_comm *rest;
    if (rank == 1) {
        ranks_await(0, 1);
        ranks_die();
    }
    CHECK_IS(call(BROADCAST, 0, 20, 1, world, NULL), 0);
    ranks_say(0, 1);
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    CHECK(ranks_explain(world, "broadcast"));
    CHECK(ranks_explain(world, "rank 1"));
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    CHECK_IS(tutti_comm_shrink(world, &rest), 0);
    CHECK_IS(tutti_size(rest), 1);
    return tutti_comm_free(rest);
}

static int body_killed_then_shrink(tutti_comm *world, int rank)
{
    tutti_comm *rest;
    if (rank == 1) {
        ranks_await(0, 1);
        ranks_die();
    }
    CHECK_IS(call(REDUCE, 0, 2000, 1, world, NULL), 0);
    ranks_say(0, 1);
    CHECK_IS(tutti_comm_shrink(world, &rest), 0);
    CHECK_IS(tutti_size(rest), 1);
    return tutti_comm_free(rest);
}

static void a_death_is_told_by_the_next_call(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_killed, 2), 0);
    assert_int_equal(ranks_run(2, body_killed_then_shrink, 2), 0);
}

/* What rank 0 has given is there when it is dead. */
static int body_giver_dies(tutti_comm *world, int rank)
{
    if (rank == 1)
        CHECK_IS(ranks_await(0, 1), 0);
    int r = call(BROADCAST, 0, 1000, 1, world, NULL);
    if (rank == 0) {
        ranks_say(0, 1);
        ranks_die();
    }
    CHECK_IS(r, 0);
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    return 0;
}

static void what_a_dead_rank_gave_arrives(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_giver_dies, 1), 0);
}

static int body_mismatch(tutti_comm *world, int rank)
{
    for (int nth = 0; nth < 3; nth++) {
        tutti_comm *comm;
        int all, one = 1;
        CHECK_IS(tutti_comm_split(world, 0, rank, &comm), 0);
        if (rank == 0)
            CHECK_IS(call(BROADCAST, 0, 20, 1, comm, NULL), 0);
        int r = rank == 0 ? nth == 0 ? tutti_barrier(comm, NULL)
                : nth == 1 ? tutti_all_reduce(&one, &all, 1, TUTTI_I32, TUTTI_SUM, comm, NULL)
                           : call(BROADCAST, 0, 20, 1, comm, NULL)
            : nth ? call(BROADCAST, 0, 21, 1, comm, NULL) : tutti_barrier(comm, NULL);
        CHECK_IS(r, -EPROTO);
        CHECK(ranks_explain(comm, "the ranks called different things"));
        CHECK_IS(tutti_barrier(comm, NULL), -ECANCELED);
        CHECK_IS(tutti_comm_free(comm), 0);
    }
    return 0;
}

static void another_call_is_told_by_the_next_call(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_mismatch), 0);
}

static int body_deadline(tutti_comm *world, int rank)
{
    if (rank == 1)
        return ranks_await(0, 1);
    tutti_set_timeout(world, 50);
    CHECK_IS(call(GATHER, 0, 20, 1, world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), -ETIMEDOUT);
    ranks_say(0, 1);
    return 0;
}

static void a_deadline_is_told_by_the_next_call(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_deadline), 0);
}

int main(void)
{
    setenv("TUTTI_FLAGS", "leave", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_only_gives_is_back_before_the_other_comes),
        cmocka_unit_test(each_call_is_counted),
        cmocka_unit_test(what_comes_next_is_right),
        cmocka_unit_test(a_buffer_that_is_lent_is_waited_for),
        cmocka_unit_test(a_death_is_told_by_the_next_call),
        cmocka_unit_test(what_a_dead_rank_gave_arrives),
        cmocka_unit_test(another_call_is_told_by_the_next_call),
        cmocka_unit_test(a_deadline_is_told_by_the_next_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
