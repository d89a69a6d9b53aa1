/* ctest: timeout=300 labels=tsan needs=robust */
/* Fresh comms of those that are left: after every kind of failure and after none, with late comers,
 * with a death at each step of the making, with no room for it, in loops without leaks. Random
 * deaths are in recover_test. */
#include "base/clock.h"
#include "group/directory.h"
#include "group/comm.h"
#include "support/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { GO = 0, PID = 1, HERE = 10, EAGER_COUNT = 2000, PIPELINE_COUNT = 30000 };

/* Do those, in this order, make it up, and does it add up? */
static int is_comm_of(tutti_comm *c, const int *ranks, int n)
{
    static _Thread_local int32_t x[PIPELINE_COUNT];
    static const size_t counts[] = { 1, EAGER_COUNT, PIPELINE_COUNT };
    int sum = 0;
    if (tutti_size(c) != n || tutti_failed(c, NULL, 0) != 0)
        return 0;
    for (int i = 0; i < n; i++) {
        if (c->watch.slot->world_rank[i] != (uint32_t)ranks[i])
            return 0;
        sum += ranks[i] + 1;
    }
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < counts[k]; i++)
            x[i] = ranks[tutti_rank(c)] + 1;
        if (tutti_all_reduce(x, x, counts[k], TUTTI_I32, TUTTI_SUM, c, NULL) < 0)
            return 0;
        for (size_t i = 0; i < counts[k]; i++)
            if (x[i] != sum)
                return 0;
    }
    return 1;
}

static const int all4[] = { 0, 1, 2, 3 };

/* ---- nobody is gone ---- */

static int body_healthy(tutti_comm *world, int rank)
{
    tutti_comm *c, *d, *e;
    (void)rank;
    CHECK_IS(tutti_set_timeout(world, 98765), 0);
    CHECK_IS(tutti_comm_shrink(world, &c), 0);
    CHECK(is_comm_of(c, all4, 4));
    CHECK(c->watch.timeout_ns == INT64_C(98765000000));
    CHECK_IS(tutti_comm_shrink(world, &d), 0);                       /* again: another one */
    CHECK(d->birth != c->birth);
    CHECK_IS(tutti_comm_shrink(c, &e), 0);                           /* of the shrunk */
    CHECK(is_comm_of(e, all4, 4));
    CHECK(is_comm_of(d, all4, 4));
    CHECK(is_comm_of(world, all4, 4));
    CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_comm_free(d), 0);
    CHECK_IS(tutti_comm_free(e), 0);
    CHECK_IS(tutti_comm_shrink(world, NULL), -EINVAL);
    return 0;
}

/* After an abort, a mismatch, a deadline: all are there again, in the new one. */
static int body_after_failures(tutti_comm *world, int rank)
{
    tutti_comm *a, *b, *c, *d;
    CHECK_IS(tutti_comm_split(world, 0, 3 - rank, &a), 0);
    static const int turned[] = { 3, 2, 1, 0 };
    if (rank == 2)
        CHECK_IS(tutti_comm_abort(a, "for the test"), 0);
    CHECK_IS(tutti_barrier(a, NULL), -ECANCELED);
    CHECK_IS(tutti_comm_shrink(a, &b), 0);
    CHECK(is_comm_of(b, turned, 4));
    int x = 0;
    CHECK_IS(rank == 1 ? tutti_barrier(b, NULL) : tutti_broadcast(&x, 1, TUTTI_I32, 0, b, NULL),
             -EPROTO);
    CHECK_IS(tutti_comm_shrink(b, &c), 0);
    CHECK(is_comm_of(c, turned, 4));
    if (rank == 3) {
        CHECK_IS(ranks_await(GO, 3), 0);
        CHECK_IS(tutti_barrier(c, NULL), -ETIMEDOUT);
    } else {
        CHECK_IS(tutti_barrier(c, &(tutti_call){ .timeout_ms = 20 }), -ETIMEDOUT);
        ranks_count(GO);
    }
    CHECK_IS(tutti_comm_shrink(c, &d), 0);
    CHECK(is_comm_of(d, turned, 4));
    CHECK_IS(tutti_comm_free(a), 0);
    CHECK_IS(tutti_comm_free(b), 0);
    CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_comm_free(d), 0);
    CHECK(is_comm_of(world, all4, 4));
    return 0;
}

/* Work under way: on a whole comm it is done first, on a broken one its handles end, and tell. */
static int body_work(tutti_comm *world, int rank)
{
    tutti_comm *c, *d;
    tutti_work *work[3];
    int x[3];
    for (int i = 0; i < 3; i++) {
        x[i] = rank + i;
        CHECK_IS(tutti_all_reduce(&x[i], &x[i], 1, TUTTI_I32, TUTTI_SUM, world,
                                  &(tutti_call){ .work = &work[i] }),
                 0);
    }
    CHECK_IS(tutti_comm_shrink(world, &c), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_IS(tutti_test(work[i]), 0);
        CHECK_IS(tutti_wait(work[i], 0), 0);
        CHECK_IS(x[i], 6 + 4 * i);
    }
    for (int i = 0; rank && i < 3; i++)
        CHECK_IS(tutti_all_reduce(&x[i], &x[i], 1, TUTTI_I32, TUTTI_SUM, c,
                                  &(tutti_call){ .work = &work[i] }),
                 0);
    if (rank)
        ranks_count(GO);
    else {
        CHECK_IS(ranks_await(GO, 3), 0);
        CHECK_IS(tutti_comm_abort(c, "no more of this"), 0);
    }
    CHECK_IS(tutti_comm_shrink(c, &d), 0);
    for (int i = 0; rank && i < 3; i++)
        CHECK_IS(tutti_wait(work[i], 0), -ECANCELED);
    CHECK(is_comm_of(d, all4, 4));
    CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_comm_free(d), 0);
    return 0;
}

static int body_late(tutti_comm *world, int rank)
{
    tutti_comm *c = world;
    for (int p = 2; rank == 0 && p < 4; p++)                /* so that rank 1 alone is missing */
        while (load_acquire64(&world->watch.members[p].vote[1].number) < 1)
            sched_yield();
    if (rank == 1)
        CHECK_IS(ranks_await(GO, 3), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_IS(tutti_set_timeout(world, rank > 1 && i == 0 ? RANKS_LIFE_MS : 5), 0);
        CHECK_IS(tutti_comm_shrink(world, &c), -ETIMEDOUT);
        CHECK(c == NULL);
        if (i == 0 && rank != 1) {
            CHECK(strstr(tutti_explain(world), "in comm_shrink on world\n  missing: rank 1\n")
                  != NULL);
            ranks_count(HERE);                   /* nobody gives the next ones up before that */
            CHECK_IS(ranks_await(HERE, 3), 0);
        }
    }
    ranks_count(GO);
    CHECK_IS(tutti_set_timeout(world, RANKS_LIFE_MS), 0);
    CHECK_IS(tutti_comm_shrink(world, &c), 0);
    CHECK(is_comm_of(c, all4, 4));
    CHECK_IS(tutti_comm_free(c), 0);
    return 0;
}

static uint32_t slots_used(tutti_comm *world)
{
    const struct arena *arena = &world->world->arena;
    uint32_t n = 0;
    for (uint32_t i = 0; i < arena->header->slots; i++)
        n += arena_slot(arena, i)->birth != 0;
    return n;
}

/* In loops: no slot is used that was not used before. */
static int body_loops(tutti_comm *world, int rank)
{
    uint32_t used = 0;
    for (int i = 0; i < ranks_many(2000, 100); i++) {
        tutti_comm *c;
        int x = rank;
        CHECK_IS(tutti_comm_shrink(world, &c), 0);
        CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, c, NULL), 0);
        CHECK_IS(x, 6);
        CHECK_IS(tutti_comm_free(c), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (i == 5)
            used = slots_used(world);
    }
    CHECK_IS(slots_used(world), used);
    return 0;
}

/* No room for the new comm on one of them, or on all: the same error for all, nothing stays behind,
 * and later there is room. */
static int body_no_room(tutti_comm *world, int rank)
{
    struct world *w = world->world;
    tutti_comm *c;
    CHECK_IS(tutti_comm_shrink(world, &c), 0);
    CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    uint32_t used = slots_used(world), real = w->arena.header->slots;
    for (int i = 0; i < 6; i++) {
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (rank == 0) {
            CHECK_IS(arena_lock(&w->arena, 1000000000), 0);
            w->arena.header->slots = 1;                     /* the world's own is all there is */
            arena_unlock(&w->arena);
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_comm_shrink(world, &c), -ENOSPC);
        CHECK(c == NULL);
        CHECK(strstr(tutti_explain(world),
                     "could not make the new comm: too many comms are open; free some")
              != NULL);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (rank == 0)
            w->arena.header->slots = real;
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_comm_shrink(world, &c), 0);
        CHECK_IS(tutti_comm_free(c), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(slots_used(world), used);
    return 0;
}

/* One rank alone finds no room: by a mapping of its own of the header's page. Its place in the
 * others' slot is given up for it. */
static int body_one_has_no_room(tutti_comm *world, int rank)
{
    struct world *w = world->world;
    struct arena_header *own = malloc(sizeof *own), *real = w->arena.header;
    CHECK(own != NULL);
    tutti_comm *c;
    uint32_t used = 0;
    for (int i = 0; i < 30; i++) {
        *own = *real;
        own->slots = 1;
        if (rank == i % 4)
            w->arena.header = own;
        int r = tutti_comm_shrink(world, &c);
        w->arena.header = real;
        CHECK_IS(r, -ENOSPC);
        CHECK(strstr(tutti_explain(world), "could not make the new comm") != NULL);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (i == 5)
            used = slots_used(world);
    }
    CHECK_IS(slots_used(world), used);
    CHECK_IS(tutti_comm_shrink(world, &c), 0);
    CHECK(is_comm_of(c, all4, 4));
    free(own);
    CHECK_IS(tutti_comm_free(c), 0);
    return 0;
}

static void test_healthy(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_healthy), 0);
}

static void test_after_failures(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_after_failures), 0);
}

static void test_work(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_work), 0);
}

static void test_late(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_late), 0);
}

static void test_loops(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_loops), 0);
}

static void test_no_room(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(4, body_no_room, 0), 0);
}

static void test_one_has_no_room(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(4, body_one_has_no_room, 0), 0);
}

/* ---- deaths ---- */

static int body_death(tutti_comm *world, int rank)
{
    static const int left[] = { 0, 2, 3, 4 }, fewer[] = { 0, 2, 4 };
    tutti_comm *c, *d;
    if (rank == 1)
        ranks_die();
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    CHECK_IS(tutti_comm_shrink(world, &c), 0);
    CHECK(is_comm_of(c, left, 4));
    CHECK_IS(tutti_rank(c), rank ? rank - 1 : 0);
    if (rank == 3)
        ranks_die();
    CHECK_IS(tutti_barrier(c, NULL), -EOWNERDEAD);
    CHECK_IS(tutti_comm_shrink(c, &d), 0);
    CHECK(is_comm_of(d, fewer, 3));
    CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_comm_shrink(world, &c), 0);                  /* the old one knows both by now */
    CHECK(is_comm_of(c, fewer, 3));
    CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_comm_free(d), 0);
    return 0;
}

static void test_death(void **state)
{
    (void)state;
    for (int i = 0; i < ranks_many(10, 2); i++)
        assert_int_equal(ranks_run(5, body_death, 1u << 1 | 1u << 3), 0);
}

static void *kills_in_the_second(void *arg)
{
    const shared64 *number = arg;
    while (load_acquire64(number) < 2)
        sched_yield();
    kill((pid_t)load_acquire32(&page->word[PID + 2]), SIGKILL);
    return NULL;
}

/* A rank is killed when it is known to have voted for the list (step 1), or that it has opened the
 * new comm (step 2). */
static int body_death_on_the_way(tutti_comm *world, int rank)
{
    static const int left[] = { 0, 1, 3 };
    uint64_t step = load_acquire32(&page->word[HERE]);
    tutti_comm *c, *d;
    CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
    ranks_say(PID + rank, (uint32_t)getpid());
    if (rank == 0 && step == 1) {
        const shared64 *number = &c->watch.members[2].vote[1].number;
        while (load_acquire64(number) < 1)
            sched_yield();
        kill((pid_t)load_acquire32(&page->word[PID + 2]), SIGKILL);
        while (tutti_failed(c, NULL, 0) == 0)
            sched_yield();
    }
    if (rank == 0 && step == 2) {
        /* This rank's part of the first agreement, by hand: the others go on to the second and
         * wait there. */
        pthread_t killer;
        CHECK_IS(pthread_create(&killer, NULL, kills_in_the_second,
                                &c->watch.members[2].vote[0].number),
                 0);
        pthread_detach(killer);
    }
    CHECK_IS(tutti_comm_shrink(c, &d), 0);
    if (tutti_size(d) == 3)
        CHECK(is_comm_of(d, left, 3));
    else {                              /* it came through the second agreement, and dies then */
        int r = 0;
        while (r == 0)
            r = tutti_barrier(d, NULL);
        CHECK_IS(r, -EOWNERDEAD);
    }
    CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_comm_free(d), 0);
    return 0;
}

static int step_of_death;
static int body_step(tutti_comm *world, int rank)
{
    ranks_say(HERE, (uint32_t)step_of_death);
    return body_death_on_the_way(world, rank);
}

static void test_death_on_the_way(void **state)
{
    (void)state;
    for (step_of_death = 1; step_of_death <= 2; step_of_death++)
        for (int i = 0; i < ranks_many(20, 3); i++)
            assert_int_equal(ranks_run(4, body_step, 1u << 2), 0);
}

/* Who has freed the comm or left is not missed. */
static int body_freed(tutti_comm *world, int rank)
{
    static const int left[] = { 1, 3 };
    tutti_comm *c, *d;
    CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
    if (rank == 0) {
        CHECK_IS(tutti_comm_free(c), 0);
        CHECK_IS(ranks_await(GO, 2), 0);
        return 0;
    }
    if (rank == 2)
        return 0;
    CHECK_IS(tutti_comm_shrink(c, &d), 0);
    CHECK(is_comm_of(d, left, 2));
    ranks_count(GO);
    CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_comm_free(d), 0);
    return 0;
}

static void test_freed(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_freed), 0);
}

/* A function of the fault list: the call is counted and named as others are. */
static int body_fault(tutti_comm *world, int rank)
{
    tutti_comm *c;
    CHECK_IS(tutti_fault(world, "1:comm_agree#2:kill"), 0);
    CHECK_IS(tutti_fault(world, "2:comm_shrink#1:kill"), 0);
    int flag = 1;
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    if (rank == 1)
        CHECK_IS(tutti_failed(world, NULL, 0), 0);          /* it has come through its first */
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    CHECK(tutti_failed(world, NULL, 0) >= 1);               /* the other may be gone by now, too */
    CHECK_IS(tutti_comm_shrink(world, &c), 0);
    CHECK_IS(tutti_size(c), 2);
    CHECK_IS(tutti_comm_free(c), 0);
    return 0;
}

static void test_fault(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(4, body_fault, 1u << 1 | 1u << 2), 0);
}

int main(void)
{
    static const struct CMUnitTest threads[] = {
        cmocka_unit_test(test_healthy), cmocka_unit_test(test_after_failures),
        cmocka_unit_test(test_work), cmocka_unit_test(test_late), cmocka_unit_test(test_loops),
        cmocka_unit_test(test_freed),
    };
    static const struct CMUnitTest processes[] = {
        cmocka_unit_test(test_no_room), cmocka_unit_test(test_one_has_no_room),
        cmocka_unit_test(test_death), cmocka_unit_test(test_death_on_the_way),
        cmocka_unit_test(test_fault),
    };
    int failed = cmocka_run_group_tests_name("shrinking", threads, NULL, NULL);
#if !defined(TUTTI_TSAN)
    failed += cmocka_run_group_tests_name("shrinking and deaths", processes, NULL, NULL);
#else
    (void)processes;
#endif
    return failed;
}
