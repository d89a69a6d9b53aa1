/* ctest: timeout=300 labels=tsan needs=robust */
/* Making, using, losing and freeing comms. Data goes through each comm that is made, so that two
 * that should be apart and are not are found: a sum over the wrong ranks is a wrong sum. */
#include "group/comm.h"
#include "group/directory.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GO = 0, HERE = 1, OVER = 2 };
enum { LINE_COUNT = 1, EAGER_COUNT = 1500, PIPELINE_COUNT = 20000 };

/* The world ranks of a comm, by what its members say. */
static int members(tutti_comm *world, tutti_comm *comm, int most, int found[])
{
    for (int i = 0; i < most; i++)
        found[i] = -1;
    for (int i = 0; i < tutti_size(comm) && i < most; i++) {
        found[i] = tutti_rank(world);
        int r = tutti_broadcast(&found[i], 1, TUTTI_I32, i, comm, NULL);
        if (r < 0)
            return r;
    }
    return 0;
}

static int body_colors_and_keys(tutti_comm *world, int rank)
{
    tutti_comm *c;
    int got[6];
    /* Two colors, each in its rank order: equal keys leave the order of the parent. */
    CHECK_IS(tutti_comm_split(world, rank % 2, 0, &c), 0);
    CHECK_IS(tutti_size(c), rank % 2 ? 2 : 3);
    CHECK_IS(tutti_rank(c), rank / 2);
    CHECK_IS(members(world, c, 3, got), 0);
    for (int i = 0; i < tutti_size(c); i++)
        CHECK_IS(got[i], 2 * i + rank % 2);
    CHECK_IS(tutti_comm_free(c), 0);
    /* Keys turn it round; negative ones and the ends of int are keys like others. */
    static const int keys[] = { 0x7fffffff, 5, 0, -1, -0x7fffffff - 1 };
    CHECK_IS(tutti_comm_split(world, 7, keys[rank], &c), 0);
    CHECK_IS(tutti_rank(c), 4 - rank);
    CHECK_IS(members(world, c, 5, got), 0);
    for (int i = 0; i < 5; i++)
        CHECK_IS(got[i], 4 - i);
    CHECK_IS(tutti_comm_free(c), 0);
    /* A negative color takes part and gets nothing; the largest is a color. */
    c = (tutti_comm *)(void *)got;
    CHECK_IS(tutti_comm_split(world, rank == 3 ? -5 : 0x7fffffff, rank == 0 ? 1 : 0, &c), 0);
    if (rank == 3)
        CHECK(c == NULL);
    else {
        CHECK_IS(tutti_size(c), 4);
        CHECK_IS(tutti_rank(c), rank == 0 ? 3 : rank == 4 ? 2 : rank - 1);
        CHECK_IS(tutti_comm_free(c), 0);
    }
    /* Each alone; and nobody at all. */
    CHECK_IS(tutti_comm_split(world, rank, 0, &c), 0);
    CHECK_IS(tutti_size(c), 1);
    CHECK_IS(tutti_rank(c), 0);
    int x = rank;
    CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, c, NULL), 0);
    CHECK_IS(x, rank);
    CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_comm_split(world, -1, 0, &c), 0);
    CHECK(c == NULL);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_colors_and_keys(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(5, body_colors_and_keys), 0);
}

static int sums_right(tutti_comm *comm, int value, int expected)
{
    static const int counts[] = { LINE_COUNT, EAGER_COUNT, PIPELINE_COUNT };
    static _Thread_local int32_t x[PIPELINE_COUNT];
    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < counts[c]; i++)
            x[i] = value + i;
        int r = tutti_all_reduce(x, x, (size_t)counts[c], TUTTI_I32, TUTTI_SUM, comm, NULL);
        for (int i = 0; r == 0 && i < counts[c]; i++)
            if (x[i] != expected + i * tutti_size(comm))
                return -EILSEQ;
        if (r < 0)
            return r;
    }
    return 0;
}

/* Comms of comms of comms, all alive and in use at once, on one rank in the opposite order where
 * they do not meet. */
static int body_nested(tutti_comm *world, int rank)
{
    tutti_comm *half, *pair, *one, *again;
    CHECK_IS(tutti_comm_split(world, rank / 4, 0, &half), 0);
    CHECK_IS(tutti_comm_split(half, tutti_rank(half) / 2, -tutti_rank(half), &pair), 0);
    CHECK_IS(tutti_comm_split(pair, tutti_rank(pair), 0, &one), 0);
    CHECK_IS(tutti_comm_split(half, 0, 0, &again), 0);
    CHECK_IS(tutti_size(pair), 2);
    CHECK_IS(tutti_rank(pair), 1 - rank % 2);
    for (int i = 0; i < 5; i++) {
        CHECK_IS(sums_right(world, rank, 28), 0);
        CHECK_IS(sums_right(one, rank, rank), 0);
        CHECK_IS(sums_right(pair, rank, 2 * (rank & ~1) + 1), 0);
        CHECK_IS(sums_right(again, rank, rank / 4 ? 22 : 6), 0);
        CHECK_IS(sums_right(half, rank, rank / 4 ? 22 : 6), 0);
    }
    /* A parent may go before its children. */
    CHECK_IS(tutti_comm_free(half), 0);
    CHECK_IS(sums_right(pair, rank, 2 * (rank & ~1) + 1), 0);
    CHECK_IS(tutti_comm_free(pair), 0);
    CHECK_IS(tutti_comm_free(again), 0);
    CHECK_IS(tutti_comm_free(one), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_nested(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(8, body_nested), 0);
}

static int body_create(tutti_comm *world, int rank)
{
    static const int down[] = { 3, 1, 0 }, up[] = { 0, 1, 3 }, right[] = { 2, 3 }, mine[] = { 2 };
    tutti_comm *a = NULL, *b = NULL, *c = NULL, *again = NULL;
    int got[4];
    if (rank != 2) {            /* by the listed ranks alone, ranked by their place in the list */
        CHECK_IS(tutti_comm_create(world, down, 3, &a), 0);
        CHECK_IS(members(world, a, 3, got), 0);
        CHECK(got[0] == 3 && got[1] == 1 && got[2] == 0);
        /* the same ranks in another order: another comm */
        CHECK_IS(tutti_comm_create(world, up, 3, &b), 0);
        CHECK_IS(members(world, b, 3, got), 0);
        CHECK(got[0] == 0 && got[1] == 1 && got[2] == 3);
    }
    if (rank >= 2) {                                         /* overlapping */
        CHECK_IS(tutti_comm_create(world, right, 2, &c), 0);
        CHECK_IS(sums_right(c, rank, 5), 0);
    }
    if (rank == 2) {
        CHECK_IS(tutti_comm_create(world, mine, 1, &a), 0);
        CHECK_IS(tutti_size(a), 1);
    }
    if (rank != 2) {                            /* the same list once more is a comm of its own */
        CHECK_IS(tutti_comm_create(world, down, 3, &again), 0);
        CHECK_IS(sums_right(a, rank, 4), 0);
        CHECK_IS(sums_right(again, rank, 4), 0);
        CHECK_IS(sums_right(a, rank, 4), 0);
        CHECK_IS(tutti_comm_abort(again, "this one"), 0);
        CHECK_IS(tutti_barrier(again, NULL), -ECANCELED);
        CHECK_IS(sums_right(a, rank, 4), 0);
        CHECK_IS(tutti_comm_free(again), 0);
        CHECK_IS(tutti_comm_free(b), 0);
    }
    if (c)
        CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_comm_free(a), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static int body_create_refused(tutti_comm *world, int rank)
{
    int other[] = { 1 - rank }, twice[] = { rank, rank }, far[] = { rank, 2 },
        below[] = { rank, -1 }, both[] = { 0, 1 };
    tutti_comm *c = world;
    CHECK_IS(tutti_comm_create(world, other, 1, &c), -EINVAL);
    CHECK(c == NULL);
    CHECK(strstr(tutti_explain(world), "not in the list"));
    CHECK_IS(tutti_comm_create(world, twice, 2, &c), -EINVAL);
    CHECK(strstr(tutti_explain(world), "twice"));
    CHECK_IS(tutti_comm_create(world, far, 2, &c), -EINVAL);
    CHECK_IS(tutti_comm_create(world, below, 2, &c), -EINVAL);
    CHECK_IS(tutti_comm_create(world, both, 0, &c), -EINVAL);
    CHECK_IS(tutti_comm_create(world, both, 3, &c), -EINVAL);
    CHECK_IS(tutti_comm_create(world, both, -1, &c), -EINVAL);
    CHECK_IS(tutti_comm_create(world, NULL, 1, &c), -EINVAL);
    CHECK_IS(tutti_comm_create(world, both, 2, NULL), -EINVAL);
    CHECK_IS(tutti_comm_create(NULL, both, 2, &c), -EINVAL);
    CHECK_IS(tutti_comm_split(world, 0, 0, NULL), -EINVAL);
    CHECK_IS(tutti_comm_split(NULL, 0, 0, &c), -EINVAL);
    CHECK_IS(tutti_comm_free(NULL), -EINVAL);
    CHECK_IS(tutti_comm_free(world), -EINVAL);
    CHECK(strstr(tutti_explain(world), "finalize"));
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_comm_create(world, both, 2, &c), 0);
    CHECK_IS(tutti_finalize(c), -EINVAL);                    /* a part is no world */
    CHECK_IS(tutti_barrier(c, NULL), 0);
    CHECK_IS(tutti_comm_free(c), 0);
    return 0;
}

/* Slots that are still somebody's, the world's own among them. */
static int slots_in_use(tutti_comm *world)
{
    const struct arena *arena = &world->world->arena;
    int n = 0;
    if (arena_lock(arena, UINT64_C(10000000000)) < 0)
        return -1;
    directory_sweep(arena);
    for (uint32_t i = 0; i < arena->header->slots; i++)
        n += load_acquire32(&arena_slot(arena, i)->state) == SLOT_USED;
    arena_unlock(arena);
    return n;
}

/* The third never comes, or dies before it does: an error on the two that were listed and came; the
 * parent stays whole. */
static int body_create_deadline(tutti_comm *world, int rank)
{
    static const int list[] = { 0, 1, 2 }, rest[] = { 0, 1 };
    tutti_comm *c = world;
    CHECK_IS(tutti_set_timeout(world, 50), 0);
    if (rank < 2) {
        int r = tutti_comm_create(world, list, 3, &c);
        /* the other of us may have given up and freed it first */
        CHECK(r == -ETIMEDOUT || r == -EOWNERDEAD);
        CHECK(c == NULL);
        CHECK(strstr(tutti_explain(world), "comm_create"));
    }
    CHECK_IS(tutti_set_timeout(world, 0), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 2) {                            /* late is too late: the others are gone from it */
        CHECK(tutti_comm_create(world, list, 3, &c) < 0);
        CHECK(c == NULL);
        CHECK_IS(slots_in_use(world), 1);           /* what came to nothing has been given back */
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank < 2) {
        CHECK_IS(tutti_comm_create(world, rest, 2, &c), 0);
        CHECK_IS(sums_right(c, rank, 1), 0);
        CHECK_IS(tutti_comm_free(c), 0);
    }
    CHECK_IS(tutti_comm_create(world, list, 3, &c), 0);      /* the second time of that list */
    CHECK_IS(sums_right(c, rank, 3), 0);
    CHECK_IS(tutti_comm_free(c), 0);
    return 0;
}

static int body_create_death(tutti_comm *world, int rank)
{
    static const int list[] = { 0, 1, 2 }, rest[] = { 0, 1, 3 };
    tutti_comm *c = world;
    if (rank == 2) {
        CHECK_IS(ranks_await(HERE, 2), 0);
        ranks_die();
    }
    if (rank < 2) {
        ranks_count(HERE);
        CHECK_IS(tutti_comm_create(world, list, 3, &c), -EOWNERDEAD);
        CHECK(c == NULL);
        int who = -1;
        CHECK_IS(tutti_failed(world, &who, 1), 1);
        CHECK_IS(who, 2);
    }
    /* The parent is whole as long as nobody needs the dead one: the others make comms of it. */
    CHECK_IS(tutti_comm_create(world, rest, 3, &c), 0);
    CHECK_IS(sums_right(c, rank, 4), 0);
    CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    return 0;
}

static void test_create(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_create), 0);
    assert_int_equal(ranks_run_either(2, body_create_refused), 0);
    assert_int_equal(ranks_run_either(3, body_create_deadline), 0);
    assert_int_equal(ranks_run(4, body_create_death, 1 << 2), 0);
}

static int body_free(tutti_comm *world, int rank)
{
    tutti_comm *c;
    CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
    CHECK_IS(sums_right(c, rank, 3), 0);
    if (rank == 1) {
        CHECK_IS(ranks_await(HERE, 1), 0);              /* one waits already, one comes later */
        CHECK_IS(tutti_comm_free(c), 0);
        ranks_say(GO, 1);
    } else {
        if (rank == 0)
            ranks_say(HERE, 1);
        else
            CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_barrier(c, NULL), -EOWNERDEAD);
        CHECK(strstr(tutti_explain(c), "freed the comm"));
        CHECK_IS(tutti_barrier(c, NULL), -ECANCELED);
        int who = -1;
        CHECK(tutti_failed(c, &who, 1) >= 1);
        CHECK_IS(tutti_failed(world, NULL, 0), 0);      /* from that comm alone */
        CHECK(strstr(tutti_explain(c), "freed the comm"));
        /* What works on a broken comm. */
        tutti_figures figures;
        CHECK_IS(tutti_rank(c), rank);
        CHECK_IS(tutti_size(c), 3);
        CHECK_IS(tutti_set_timeout(c, 5), 0);
        CHECK_IS(tutti_stats(c, &figures), 0);
        CHECK_IS(tutti_comm_abort(c, "again"), 0);
        tutti_comm *none = c;
        CHECK_IS(tutti_comm_split(c, 0, 0, &none), -ECANCELED);
        CHECK(none == NULL);
        CHECK_IS(tutti_comm_free(c), 0);
    }
    CHECK_IS(sums_right(world, rank, 3), 0);            /* a child's failure is not its parent's */
    return 0;
}

static void test_freed(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_free), 0);
}

/* A parent's failure is not its children's: neither an abort nor a death hurts a comm without
 * the dead. */
static int body_unharmed(tutti_comm *world, int rank)
{
    tutti_comm *c, *d;
    CHECK_IS(tutti_comm_split(world, rank == 3 ? 1 : 0, 0, &c), 0);
    CHECK_IS(tutti_comm_split(world, rank == 2 ? 1 : 0, 0, &d), 0);
    if (rank == 3) {
        CHECK_IS(ranks_await(HERE, 3), 0);
        ranks_die();
    }
    ranks_count(HERE);
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    if (rank != 2)
        /* each comm with the dead one in it meets it by itself */
        CHECK_IS(tutti_barrier(d, NULL), -EOWNERDEAD);
    for (int i = 0; i < 20; i++)
        CHECK_IS(sums_right(c, rank, 3), 0);
    tutti_comm *more;
    CHECK_IS(tutti_comm_split(c, 0, -rank, &more), 0);       /* and goes on having children */
    CHECK_IS(sums_right(more, rank, 3), 0);
    CHECK_IS(tutti_comm_free(more), 0);
    CHECK_IS(tutti_failed(c, NULL, 0), 0);
    CHECK_IS(tutti_barrier(c, NULL), 0);                     /* nobody has left before that look */
    return 0;
}

static void test_unharmed(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(4, body_unharmed, 1 << 3), 0);
}

/* One dies in the split, before, between or after its exchanges: the survivors all get a comm or
   all get the same error. Where it dies is by the fault hook and by its own clock: before the call,
   or as soon as it has arrived at the first exchange. */
static int body_split_death(tutti_comm *world, int rank)
{
    tutti_comm *c = NULL;
    uint64_t before = world->seq;
    if (rank == 1) {
        CHECK_IS(tutti_fault(world, "1:comm_split#1:kill"), 0);
        tutti_comm_split(world, 0, 0, &c);
        return 1;
    }
    int r = tutti_comm_split(world, 0, 0, &c);
    CHECK_IS(r, -EOWNERDEAD);
    CHECK(c == NULL);
    CHECK(world->seq > before);
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    return 0;
}

static int body_split_abort(tutti_comm *world, int rank)
{
    tutti_comm *c = NULL;
    for (int i = 0; i < 200; i++) {
        if (rank == 2 && i == 100)
            CHECK_IS(tutti_comm_abort(world, "while they split"), 0);
        int r = tutti_comm_split(world, 0, 0, &c);
        CHECK(r == 0 || r == -ECANCELED);
        CHECK_IS(c != NULL, r == 0);
        if (r < 0)
            break;
        ranks_count(10 + i % 50);
        CHECK_IS(tutti_comm_free(c), 0);
    }
    ranks_count(OVER);
    CHECK_IS(ranks_await(OVER, 3), 0);
    for (int i = 0; i < 50; i++)
        CHECK_IS(load_acquire32(&page->word[10 + i]) % 3, 0);        /* on all or on none */
    return 0;
}

static void test_split_fails(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_split_death, 1 << 1), 0);
    assert_int_equal(ranks_run_either(3, body_split_abort), 0);
}

static int body_deadline_inherited(tutti_comm *world, int rank)
{
    tutti_comm *c;
    CHECK_IS(tutti_set_timeout(world, 40), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
    if (rank == 0) {
        CHECK_IS(tutti_barrier(c, NULL), -ETIMEDOUT);
        CHECK(strstr(tutti_explain(c), "rank 1"));
        ranks_say(GO, 1);
    }
    CHECK_IS(ranks_await(GO, 1), 0);
    CHECK_IS(tutti_set_timeout(world, 0), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_comm_free(c), 0);
    return 0;
}

static void test_deadline_inherited(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_deadline_inherited), 0);
}

/* Comms come and go, each with staging of both kinds, more of them than there are slots and with
   more staging than a span has room for: what is freed must come back. One rank is always the last
   to free, so that slots and staging are given back late, too. */
static int body_come_and_go(tutti_comm *world, int rank)
{
    int list[] = { 2, 0, 1 };
    for (int i = 0; i < ranks_many(1500, 150); i++) {
        tutti_comm *c, *d;
        CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
        CHECK_IS(tutti_comm_create(world, list, 3, &d), 0);
        if (i % 5 == 0) {
            CHECK_IS(sums_right(c, rank, 3), 0);
            CHECK_IS(sums_right(d, rank, 3), 0);
        }
        if (i % 3 == rank)
            CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_comm_free(d), 0);
        CHECK_IS(tutti_comm_free(c), 0);
        if (i % 3 != rank)
            CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    return 0;
}

static void test_come_and_go(void **state)
{
    (void)state;
    setenv("TUTTI_SPAN_BYTES", "16M", 1);
    assert_int_equal(ranks_run_either(3, body_come_and_go), 0);
    if (!getenv("TUTTI_TEST_SANITIZED"))
        unsetenv("TUTTI_SPAN_BYTES");
}

/* More comms than there are slots: an error on all ranks that leaves the parent whole; a freed one
 * makes room. */
static int body_too_many(tutti_comm *world, int rank)
{
    tutti_comm **all = calloc(SLOTS_MAX + 1, sizeof(tutti_comm *));
    int n = 0, r = 0;
    while (n <= SLOTS_MAX && (r = tutti_comm_split(world, 0, 0, &all[n])) == 0)
        n++;
    CHECK_IS(r, -ENOSPC);
    CHECK(all[n] == NULL);
    CHECK(strstr(tutti_explain(world), "too many"));
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_comm_free(all[n / 2]), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &all[n / 2]), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &all[n]), -ENOSPC);
    for (int i = 0; i < n; i++)
        CHECK_IS(tutti_comm_free(all[i]), 0);
    free(all);
    (void)rank;
    return 0;
}

static void test_too_many(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_too_many), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_colors_and_keys),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_freed),
        cmocka_unit_test(test_unharmed),
        cmocka_unit_test(test_split_fails),
        cmocka_unit_test(test_deadline_inherited),
        cmocka_unit_test(test_come_and_go),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
