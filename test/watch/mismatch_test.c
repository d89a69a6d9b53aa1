/* ctest: timeout=300 labels=faults serial */
/* One rank calls something else: another kind, count, type, operation, root, or lists that
 * differ. All ranks get -EPROTO, whatever each of them called, and read who and what; the comm is
 * broken for all, and no other comm is. Each case has a comm of its own, so thousands fit into
 * one world. The last ones add a death at a random instant: then all survivors get the same of
 * the two errors. */
#include "base/clock.h"
#include "every_collective.h"
#include "support/ranks.h"
#include "support/team.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LARGE = 40000, SMALL = 3, GAVE = 0 };

/* A comm, the odd rank's call, and the others'; what all must get, and see in the report. */
static int broken(tutti_comm *world, const struct every *e, struct every_room *room,
                  const char *must_say, bool by_work)
{
    tutti_comm *comm;
    tutti_work *work = NULL;
    CHECK_IS(tutti_comm_split(world, 0, 0, &comm), 0);
    int r = every_call(e, room, comm, by_work ? &(tutti_call){ .work = &work } : NULL);
    if (by_work && r == 0)
        r = tutti_wait(work, -1);
    if (r != -EPROTO || !strstr(tutti_explain(comm), must_say)) {
        fprintf(stderr, "rank %d: %s of %zu gave %d and\n%s\nwhich should say \"%s\"\n",
                tutti_rank(comm), kind_name(e->kind), e->count, r, tutti_explain(comm), must_say);
        return 1;
    }
    CHECK_IS(tutti_barrier(comm, NULL), -ECANCELED);
    CHECK_IS(tutti_comm_free(comm), 0);
    return 0;
}

static const char differ[] = "the ranks called different things as operation #1 on comm";

static int body_kinds(tutti_comm *world, int rank)
{
    struct every_room room;
    static const size_t sizes[] = { SMALL, 2000, LARGE };
    for (int large = 0; large < 3; large++) {
        size_t count = sizes[large];
        CHECK_IS(every_open(&room, count, rank % 2, world), 0);
        for (int one = 0; one < every_kinds; one++)
            for (int other = 0; other < every_kinds; other++) {
                if (one == other || (large && (one + other) % 4))
                    continue;
                bool odd = rank == (one + other) % tutti_size(world);
                struct every e = {
                    .kind = every_kind[odd ? other : one],
                    .count = count, .nth = 1, .type = TUTTI_I32
                };
                CHECK_IS(broken(world, &e, &room, differ, one % 2), 0);
            }
        every_close(&room, rank % 2, world);
    }
    return 0;
}

static bool kind_in(enum kind kind, const enum kind *of, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (of[i] == kind)
            return true;
    return false;
}
#define KIND_IN(kind, ...) kind_in(kind, (const enum kind[]){ __VA_ARGS__ }, \
                                   sizeof((const enum kind[]){ __VA_ARGS__ }) / sizeof(enum kind))

static int body_arguments(tutti_comm *world, int rank)
{
    struct every_room room;
    static const size_t sizes[] = { SMALL, 2000, LARGE };
    for (int large = 0; large < 3; large++) {
        size_t count = sizes[large];
        CHECK_IS(every_open(&room, count + 1, rank % 2, world), 0);
        for (int i = 1; i < every_kinds; i++) {
            enum kind kind = every_kind[i];
            const struct every same = { .kind = kind, .count = count, .nth = 1, .type = TUTTI_I32 };
            bool odd = rank == i % tutti_size(world);
            bool pairs = KIND_IN(kind, KIND_GATHER_V, KIND_SCATTER_V, KIND_ALL_TO_ALL_V);
            struct every e = same;
            e.type = odd ? TUTTI_U32 : TUTTI_I32;
            if (kind != KIND_SAME)
                CHECK_IS(broken(world, &e, &room, differ, i % 2), 0);
            e = same;
            e.count += odd;
            if (!KIND_IN(kind, KIND_ALL_GATHER_V, KIND_REDUCE_SCATTER_V) && !pairs)
                CHECK_IS(broken(world, &e, &room, differ, i % 2), 0);
            e = same;
            e.oper = odd ? TUTTI_MAX : TUTTI_SUM;
            if (KIND_IN(kind, KIND_REDUCE, KIND_ALL_REDUCE, KIND_ALL_REDUCE_MANY,
                        KIND_REDUCE_SCATTER, KIND_SCAN, KIND_EXSCAN, KIND_REDUCE_SCATTER_V))
                CHECK_IS(broken(world, &e, &room, differ, i % 2), 0);
            e = same;
            e.nth += odd;
            if (KIND_IN(kind, KIND_BROADCAST, KIND_REDUCE, KIND_GATHER, KIND_SCATTER, KIND_GATHER_V,
                        KIND_SCATTER_V))
                CHECK_IS(broken(world, &e, &room, differ, i % 2), 0);
            for (int p = 0; p < (kind == KIND_ALL_REDUCE_MANY ? EVERY_BUFFERS : tutti_size(world));
                 p++) {
                e = same;
                e.skew = !odd ? 0
                    : kind == KIND_ALL_REDUCE_MANY ? 1 + p
                    : kind == KIND_REDUCE_SCATTER_V ? 1 + p
                    : 1 + p * EVERY_RANKS;
                if (KIND_IN(kind, KIND_ALL_REDUCE_MANY, KIND_ALL_GATHER_V, KIND_REDUCE_SCATTER_V))
                    CHECK_IS(broken(world, &e, &room, differ, i % 2), 0);
            }
        }
        every_close(&room, rank % 2, world);
    }
    return 0;
}

/* One pair that differs: the report names both ranks and both counts, on every rank. */
static int body_pairs(tutti_comm *world, int rank)
{
    static const enum kind kinds[] = { KIND_GATHER_V, KIND_SCATTER_V, KIND_ALL_TO_ALL_V };
    static const size_t sizes[] = { SMALL + 1, 2000, LARGE };
    struct every_room room;
    int size = tutti_size(world);
    for (int i = 0; i < 9; i++) {
        struct every e = {
            .kind = kinds[i % 3], .count = sizes[i / 3], .nth = (uint64_t)i, .type = TUTTI_I32
        };
        int root = every_root(&e, size);
        CHECK_IS(every_open(&room, e.count + 1, i % 2, world), 0);
        for (int from = 0; from < size; from++)
            for (int to = 0; to < size; to++) {
                if (from == to || (e.kind == KIND_GATHER_V && to != root)
                    || (e.kind == KIND_SCATTER_V && from != root)
                    || (size > 4 && (from * 3 + to) % 4))
                    continue;
                char must[80];
                bool taker = (from + to) % 2;        /* who of the two is wrong */
                struct every mine = e;
                mine.skew = rank == (taker ? to : from) ? 1 + from * EVERY_RANKS + to : 0;
                size_t right = every_count(&e, from, to);
                snprintf(must, sizeof must, "rank %d gives rank %d %zu elements, which takes %zu",
                         from, to, right + !taker, right + taker);
                CHECK_IS(broken(world, &mine, &room, must, (from + to) % 3 == 0), 0);
            }
        every_close(&room, i % 2, world);
    }
    return 0;
}

/* Everybody's row is wrong: whoever is first names a pair, and it is the same on all ranks. */
static int body_all_wrong(tutti_comm *world, int rank)
{
    struct every_room room;
    int size = tutti_size(world);
    CHECK_IS(every_open(&room, LARGE + 1, false, world), 0);
    for (int i = 0; i < 30; i++) {
        struct every e = {
            .kind = KIND_ALL_TO_ALL_V, .count = i % 2 ? LARGE : 5,
            .nth = (uint64_t)i, .type = TUTTI_I32
        };
        tutti_comm *comm;
        e.skew = 1 + rank * EVERY_RANKS + (rank + 1) % size;
        CHECK_IS(tutti_comm_split(world, 0, 0, &comm), 0);
        CHECK_IS(every_call(&e, &room, comm, NULL), -EPROTO);
        const char *said = strstr(tutti_explain(comm), "  rank ");
        CHECK(said && strstr(said, "elements, which takes"));
        snprintf(page->bytes + rank * 256, 256, "%.*s", (int)strcspn(said, "\n"), said);
        CHECK_IS(tutti_comm_free(comm), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK(!strcmp(page->bytes, page->bytes + rank * 256));
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    every_close(&room, false, world);
    return 0;
}

/* Two different kinds at 7 ranks, one of which dies about then. */
static uint64_t random_state;

static void *dies_soon(void *arg)
{
    team_spin(*(uint64_t *)arg);
    ranks_die();
    return NULL;
}

static int body_with_a_death(tutti_comm *world, int rank)
{
    struct every_room room;
    pthread_t thread;
    uint64_t random = random_state;
    struct every e = {
        .kind = KIND_ALL_TO_ALL_V, .count = team_random(&random) % 2 ? LARGE / 4 : 5, .nth = 1,
        .type = TUTTI_I32
    };
    uint64_t delay = team_random(&random) % 300000;
    if (team_random(&random) % 3 == 0)
        /* found at the gate, not behind it */
        e.kind = rank == 1 ? KIND_ALL_TO_ALL : KIND_ALL_TO_ALL_V;
    else
        e.skew = rank == 1 ? 1 + 1 * EVERY_RANKS + 4 : 0;
    CHECK_IS(every_open(&room, LARGE / 4 + 1, rank % 2, world), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 3)
        CHECK_IS(pthread_create(&thread, NULL, dies_soon, &delay), 0);
    int r = every_call(&e, &room, world, NULL);
    store_release64(&page->number[rank], (uint64_t)-r);
    if (rank == 3)
        for (;;)
            sched_yield();
    CHECK(r == -EPROTO || r == -EOWNERDEAD);
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    ranks_count(GAVE);
    CHECK_IS(ranks_await(GAVE, (uint32_t)tutti_size(world) - 1), 0);
    for (int p = 0; p < tutti_size(world); p++)    /* the dead one may have got something as well */
        CHECK((p == 3 && load_acquire64(&page->number[p]) == 0)
              || load_acquire64(&page->number[p]) == (uint64_t)-r);
    return 0;
}

static void kinds(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_kinds), 0);
}

static void arguments(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_arguments), 0);
    assert_int_equal(ranks_run_either(2, body_arguments), 0);
}

static void pairs(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_pairs), 0);
    assert_int_equal(ranks_run_either(3, body_pairs), 0);
    assert_int_equal(ranks_run_either(7, body_pairs), 0);
}

static void all_wrong(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_all_wrong), 0);
    assert_int_equal(ranks_run_either(7, body_all_wrong), 0);
}

static void with_a_death(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    for (int i = 0, many = team_many("TUTTI_KILLS", 240, 40) / 8; i < many; i++) {
        random_state = team_random(&random);
        assert_int_equal(ranks_run(7, body_with_a_death, 1u << 3), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds), cmocka_unit_test(arguments), cmocka_unit_test(pairs),
        cmocka_unit_test(all_wrong), cmocka_unit_test(with_a_death),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
