/* ctest: timeout=600 labels=tsan */
/* Comms by the hundred: made and freed in loops, open all at once, overlapping, used in turns,
 * until there are no more slots and after. What the arena holds is asked of the system, as blocks
 * of its file: it does not grow once things repeat themselves. What a comm costs is printed. */
#include "base/clock.h"
#include "group/comm.h"
#include "group/directory.h"
#include "support/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { GO = 0, HERE = 10, SMALL = 300, MIDDLE = 4000, FLAT = 12000, RING = 40000 };

/* What the arena holds now, all ranks together. */
static uint64_t arena_bytes(tutti_comm *world)
{
    struct stat st;
    return fstat(world->world->arena.fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static int32_t *numbers(void)
{
    static _Thread_local int32_t *x;
    if (!x)
        x = malloc(RING * sizeof *x);
    if (!x)
        abort();
    return x;
}

/* A sum whose right result only this comm has: of the members' world ranks and a salt. */
static int sum_right(tutti_comm *c, int world_rank, size_t count, int salt)
{
    int32_t *x = numbers(), expected = 0;
    for (int i = 0; i < tutti_size(c); i++)
        expected += (int32_t)c->watch.slot->world_rank[i] * 1000 + salt;
    for (size_t i = 0; i < count; i++)
        x[i] = world_rank * 1000 + salt + (int32_t)i;
    int r = tutti_all_reduce(x, x, count, TUTTI_I32, TUTTI_SUM, c, NULL);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (x[i] != expected + (int32_t)i * tutti_size(c))
            return -EILSEQ;
    return r;
}

static int broadcast_right(tutti_comm *c, int root, size_t count, int salt)
{
    int32_t *x = numbers();
    for (size_t i = 0; i < count; i++)
        x[i] = tutti_rank(c) == root ? salt + (int32_t)i : -1;
    int r = tutti_broadcast(x, count, TUTTI_I32, root, c, NULL);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (x[i] != salt + (int32_t)i)
            return -EILSEQ;
    return r;
}

/* ---- what a comm costs ---- */

static int body_cost(tutti_comm *world, int rank)
{
    enum { COMMS = 60 };
    static const struct { const char *what; size_t count; } uses[] = {
        { "opened", 0 }, { "40 B", 10 }, { "1 KiB", SMALL }, { "16 KB", MIDDLE },
        { "48 KB", FLAT }, { "160 KB", RING },
    };
    tutti_comm *c[COMMS];
    CHECK_IS(tutti_barrier(world, NULL), 0);
    uint64_t before = arena_bytes(world);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int i = 0; i < COMMS; i++)
        CHECK_IS(tutti_comm_split(world, 0, 0, &c[i]), 0);
    for (size_t u = 0; u < sizeof uses / sizeof uses[0]; u++) {
        for (int k = 0; k < 2 && uses[u].count; k++)
            for (int i = 0; i < COMMS; i++)
                CHECK_IS(sum_right(c[i], rank, uses[u].count, i), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (rank == 0)
            printf("%d comms of %d ranks, after %s: %.1f KiB each, all ranks together\n", COMMS,
                   tutti_size(world), uses[u].what,
                   (double)(arena_bytes(world) - before) / 1024 / COMMS);
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    for (int i = 0; i < COMMS; i++)
        CHECK_IS(tutti_comm_free(c[i]), 0);
    return 0;
}

static void test_cost(void **state)
{
    (void)state;
    setenv("TUTTI_SPAN_BYTES", "256M", 1);
    if (!getenv("TUTTI_TEST_SANITIZED"))
        assert_int_equal(ranks_run(4, body_cost, 0), 0);
    unsetenv("TUTTI_SPAN_BYTES");
}

/* ---- loops ---- */

/* After a while nothing new is taken, whatever is made and freed. */
static int body_loops(tutti_comm *world, int rank)
{
    enum { SLACK = 65536 };            /* which slot is taken next does depend on it */
    int many = ranks_many(getenv("TUTTI_PROVE") ? 20000 : 5000, 400), warm = many / 4;
    int size = tutti_size(world);
    uint64_t held = 0;
    for (int i = 0; i < many; i++) {
        tutti_comm *c;
        CHECK_IS(tutti_comm_split(world, i % 3 ? 0 : rank % 2, i % 2 ? -rank : rank, &c), 0);
        CHECK_IS(sum_right(c, rank,
                           i % 100 == 0 ? RING
                               : i % 10 == 0 ? MIDDLE
                               : i % 5 == 0 ? FLAT / 8
                               : 1,
                           i),
                 0);
        CHECK_IS(tutti_comm_free(c), 0);
        /* so that what is in use at once does not depend on who runs ahead */
        CHECK_IS(tutti_barrier(world, NULL), 0);
        int pair[2] = { rank & ~1, rank | 1 };
        if (pair[1] < size) {
            CHECK_IS(tutti_comm_create(world, pair, 2, &c), 0);
            CHECK_IS(sum_right(c, rank, i % 50 ? SMALL : RING, i), 0);
            CHECK_IS(tutti_comm_free(c), 0);
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);                     /* as above */
        if (i == warm) {
            held = arena_bytes(world);
            CHECK_IS(tutti_barrier(world, NULL), 0);
        }
    }
    if (arena_bytes(world) > held + SLACK)
        CHECK_IS(arena_bytes(world), held);
    uint32_t slots = 0;
    while (arena_slot(&world->world->arena, slots)->birth)
        slots++;
    CHECK(slots < 24);
    if (rank == 0)
        printf("%d splits and creations of %d ranks: the arena holds %.1f MiB, after %d it was "
               "%.1f\n",
               many, size, (double)arena_bytes(world) / 1048576, warm, (double)held / 1048576);
    return 0;
}

static void test_loops(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_loops), 0);
}

/* ---- hundreds at once ---- */

enum { MANY = 500, MANY_RANKS = 4 };

static uint64_t shuffle(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 33;
}

static void permute(int *order, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(shuffle(&seed) % (uint64_t)(i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

/* The ranks of group i: every subset of two and more, again and again. */
static int group_of(int i, int ranks[])
{
    static const int subsets[] = { 3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15 };
    int n = 0, set = subsets[i % 11];
    for (int r = 0; r < MANY_RANKS; r++)
        if (set >> r & 1)
            ranks[n++] = r;
    return n;
}

static int body_many(tutti_comm *world, int rank)
{
    static _Thread_local tutti_comm *c[MANY];
    static _Thread_local tutti_work *work[MANY];
    static _Thread_local int32_t x[MANY], order[MANY];
    int many = ranks_many(MANY, 60);
    for (int i = 0; i < many; i++) {
        int ranks[MANY_RANKS], n = group_of(i, ranks);
        c[i] = NULL;
        for (int k = 0; k < n; k++)
            if (ranks[k] == rank)
                CHECK_IS(tutti_comm_create(world, ranks, n, &c[i]), 0);
    }
    /* The same order on all ranks: inline, eager, pipelined, whose memory moves from one to
     * the next. */
    for (uint64_t round = 1; round <= 3; round++) {
        permute(order, many, round);
        for (int i = 0; i < many; i++) {
            tutti_comm *one = c[order[i]];
            size_t count = i % 7 == 0 ? RING : i % 3 == 0 ? FLAT : i % 3 == 1 ? MIDDLE : 1;
            if (one && i % 14 == 0)
                CHECK_IS(broadcast_right(one, i % tutti_size(one), RING, i), 0);
            if (one)
                CHECK_IS(sum_right(one, rank, count, i), 0);
        }
    }
    /* Each rank in an order of its own, all under way at once. */
    permute(order, many, (uint64_t)rank + 77);
    for (int i = 0; i < many; i++) {
        int k = order[i];
        x[k] = rank + k;
        if (c[k])
            CHECK_IS(tutti_all_reduce(&x[k], &x[k], 1, TUTTI_I32, TUTTI_SUM, c[k],
                                      &(tutti_call){ .work = &work[k] }),
                     0);
    }
    for (int k = 0; k < many; k++) {
        int ranks[MANY_RANKS], n = group_of(k, ranks), expected = 0;
        for (int i = 0; i < n; i++)
            expected += ranks[i] + k;
        if (c[k]) {
            CHECK_IS(tutti_wait(work[k], 0), 0);
            CHECK_IS(x[k], expected);
        }
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0)
        printf("%d comms of 2 to 4 ranks, open and used at once: the arena holds %.1f MiB\n", many,
               (double)arena_bytes(world) / 1048576);
    permute(order, many, (uint64_t)rank + 7);
    for (int i = 0; i < many; i++)
        if (c[order[i]])
            CHECK_IS(tutti_comm_free(c[order[i]]), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_many(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(MANY_RANKS, body_many), 0);
}

/* Up to the last slot: then -ENOSPC on all, in words; what is freed can be had again. */
static int body_full(tutti_comm *world, int rank)
{
    static _Thread_local tutti_comm *c[SLOTS_MAX];
    for (int turn = 0; turn < 3; turn++) {
        int n = 0, r = 0;
        while (r == 0 && n < SLOTS_MAX)
            r = turn % 2 ? tutti_comm_create(world, (const int[]){ 0, 1, 2 }, 3, &c[n++])
                         : tutti_comm_split(world, 0, 0, &c[n++]);
        CHECK_IS(r, -ENOSPC);
        CHECK_IS(n, SLOTS_MAX);                                      /* the world's own is one */
        CHECK(c[n - 1] == NULL);
        CHECK(strstr(tutti_explain(world), "too many comms are open; free some") != NULL);
        CHECK_IS(tutti_barrier(world, NULL), 0);                     /* nothing broke */
        CHECK_IS(sum_right(c[0], rank, SMALL, 5), 0);
        CHECK_IS(sum_right(c[n - 2], rank, SMALL, 6), 0);
        for (int i = 10; i < 20; i++)
            CHECK_IS(tutti_comm_free(c[i]), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        for (int i = 10; i < 20; i++)
            CHECK_IS(tutti_comm_split(world, 0, -rank, &c[i]), 0);
        tutti_comm *more;
        CHECK_IS(tutti_comm_split(world, 0, 0, &more), -ENOSPC);
        for (int i = 0; i < n - 1; i++)
            CHECK_IS(tutti_comm_free(c[i]), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    return 0;
}

static void test_full(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_full), 0);
}

/* Colors that find room and colors that do not: all fail, and those who had found some leave
 * nothing behind. */
static int body_half_full(tutti_comm *world, int rank)
{
    static _Thread_local tutti_comm *c[SLOTS_MAX];
    tutti_comm *one;
    for (int i = 0; i < SLOTS_MAX - 2; i++)                          /* one slot is left */
        CHECK_IS(tutti_comm_split(world, 0, 0, &c[i]), 0);
    for (int k = 0; k < 5; k++) {
        CHECK_IS(tutti_comm_split(world, rank / 2, 0, &one), -ENOSPC);
        CHECK(one == NULL);
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    CHECK_IS(tutti_comm_split(world, 0, 0, &one), 0);
    CHECK_IS(tutti_comm_free(one), 0);
    for (int i = 0; i < SLOTS_MAX - 2; i++)
        CHECK_IS(tutti_comm_free(c[i]), 0);
    return 0;
}

static void test_half_full(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_half_full), 0);
}

/* ---- staging grows, and no byte of it belongs to two ---- */

struct stretch { const char *at; size_t bytes; };

static int stretches_of(tutti_comm *c, struct stretch to[])
{
    const struct stage *s = &c->stage;
    to[0] = (struct stretch){ s->eager[0], s->eager_bytes[0] };
    to[1] = (struct stretch){ s->eager[1], s->eager_bytes[1] };
    to[2] = (struct stretch){ s->pipeline, s->pipeline ? s->pipeline_bytes : 0 };
    to[3] = (struct stretch){ s->ring, s->ring ? EAGER_MOST : 0 };
    return 4;
}

static int body_grows(tutti_comm *world, int rank)
{
    enum { COMMS = 8 };
    static const size_t sizes[] = {
        1, 20, SMALL, 1024, 1025, MIDDLE, 4096, 4097, FLAT, 16384, RING
    };
    tutti_comm *c[COMMS];
    struct stretch all[4 * COMMS];
    uint64_t random = 5;
    for (int i = 0; i < COMMS; i++)
        CHECK_IS(tutti_comm_split(world, 0, 0, &c[i]), 0);
    for (int k = 0; k < 400; k++) {
        int i = (int)(shuffle(&random) % COMMS);
        CHECK_IS(sum_right(c[i], rank,
                           sizes[shuffle(&random)
                                 % (k < 100 ? 5
                                        : k < 200 ? 8
                                        : 11)],
                           k),
                 0);
        int n = 0;
        for (int j = 0; j < COMMS; j++)
            n += stretches_of(c[j], all + n);
        for (int a = 0; a < n; a++)
            for (int b = 0; b < a; b++)
                CHECK(!all[a].bytes || !all[b].bytes || all[a].at + all[a].bytes <= all[b].at
                      || all[b].at + all[b].bytes <= all[a].at);
        if (k % 50 == 49) {
            CHECK_IS(tutti_comm_free(c[i]), 0);
            CHECK_IS(tutti_comm_split(world, 0, 0, &c[i]), 0);
        }
    }
    for (int i = 0; i < COMMS; i++)
        CHECK_IS(tutti_comm_free(c[i]), 0);
    return 0;
}

static void test_grows(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_grows), 0);
}

/* ---- some free it, others go on ---- */

static int body_freed(tutti_comm *world, int rank)
{
    for (int i = 0; i < ranks_many(200, 20); i++) {
        tutti_comm *c, *d;
        CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
        CHECK_IS(sum_right(c, rank, i % 2 ? RING : MIDDLE, i), 0);
        if (rank == i % 3)
            CHECK_IS(tutti_comm_free(c), 0);
        else {
            int r = 0;
            while (r == 0)
                r = i % 4 < 2 ? sum_right(c, rank, i % 2 ? RING : 1, i) : tutti_barrier(c, NULL);
            CHECK_IS(r, -EOWNERDEAD);
            CHECK(strstr(tutti_explain(c), "freed the comm") != NULL);
            CHECK_IS(tutti_comm_shrink(c, &d), 0);
            CHECK_IS(tutti_size(d), 2);
            CHECK_IS(sum_right(d, rank, RING, i), 0);
            CHECK_IS(tutti_comm_free(d), 0);
            CHECK_IS(tutti_comm_free(c), 0);
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    return 0;
}

static void test_freed(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_freed), 0);
}

/* ---- pipelines that move while other threads use theirs ---- */

enum { THREADS = 2, COMMS_EACH = 5 };
struct user { tutti_comm **comms; int rank, first, result; };

static int user_rounds(const struct user *u)
{
    int many = ranks_many(150, 15);
    for (int i = 0; i < many; i++)
        for (int k = 0; k < COMMS_EACH; k++) {
            tutti_comm *c = u->comms[k];
            int r = (i + k) % 3 ? sum_right(c, u->rank, RING, u->first + i)
                                : broadcast_right(c, (i + k) % tutti_size(c), RING, i * k);
            if (r < 0)
                return r;
        }
    return 0;
}

static void *user_run(void *arg)
{
    struct user *u = arg;
    u->result = user_rounds(u);
    free(numbers());
    return NULL;
}

static int body_threads(tutti_comm *world, int rank)
{
    tutti_comm *c[THREADS * COMMS_EACH];
    struct user users[THREADS];
    pthread_t other;
    for (int i = 0; i < THREADS * COMMS_EACH; i++)
        CHECK_IS(tutti_comm_split(world, 0, 0, &c[i]), 0);
    for (int t = 0; t < THREADS; t++)
        users[t] = (struct user){ c + t * COMMS_EACH, rank, t * 1000, 0 };
    CHECK_IS(pthread_create(&other, NULL, user_run, &users[1]), 0);
    users[0].result = user_rounds(&users[0]);
    CHECK_IS(pthread_join(other, NULL), 0);
    CHECK_IS(users[0].result, 0);
    CHECK_IS(users[1].result, 0);
    int held = 0;
    for (int i = 0; i < THREADS * COMMS_EACH; i++)
        held += c[i]->stage.pipeline != NULL;
    CHECK(held >= 1 && held < THREADS * COMMS_EACH);                 /* they were lent on */
    for (int i = 0; i < THREADS * COMMS_EACH; i++)
        CHECK_IS(tutti_comm_free(c[i]), 0);
    return 0;
}

static void test_threads(void **state)
{
    (void)state;
    for (int i = 0; i < ranks_many(getenv("TUTTI_PROVE") ? 5 : 1, 2); i++)
        assert_int_equal(ranks_run_either(3, body_threads), 0);
}

/* A root that is done while others still read: its pipeline is not lent on before they are. */
static int body_slow_reader(tutti_comm *world, int rank)
{
    enum { COMMS = 8 };
    tutti_comm *c[COMMS];
    static _Thread_local int32_t y[RING];
    for (int i = 0; i < COMMS; i++)
        CHECK_IS(tutti_comm_split(world, 0, 0, &c[i]), 0);
    for (int k = 0; k < ranks_many(100, 10); k++)
        for (int i = 0; i < COMMS; i++) {
            /* The root goes from comm to comm and is never waited for; the reader of this one
             * comes late. */
            for (int n = 0; n < RING; n++)
                y[n] = rank == 0 ? k * COMMS + i + n : -1;
            if (rank == 1 + i % 2)
                for (int s = 0; s < 20; s++)
                    sched_yield();
            CHECK_IS(tutti_broadcast(y, RING, TUTTI_I32, 0, c[i], NULL), 0);
            for (int n = 0; n < RING; n++)
                CHECK_IS(y[n], k * COMMS + i + n);
        }
    for (int i = 0; i < COMMS; i++)
        CHECK_IS(tutti_comm_free(c[i]), 0);
    return 0;
}

static void test_slow_reader(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_slow_reader), 0);
}

/* A comm that is freed while others still read out of it: its staging is not another comm's before
 * they are done. */
static int body_freed_early(tutti_comm *world, int rank)
{
    static const int first[] = { 0, 1 };
    static _Thread_local int32_t y[RING];
    tutti_comm *pair = NULL, *c;
    if (rank < 2)
        CHECK_IS(tutti_comm_create(world, first, 2, &pair), 0);
    for (int k = 0; k < ranks_many(1000, 50); k++) {
        size_t count = k % 2 ? RING : FLAT / 2;
        CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
        for (size_t n = 0; n < count; n++)
            y[n] = rank == 0 ? k + (int32_t)n : -1;
        CHECK_IS(tutti_broadcast(y, count, TUTTI_I32, 0, c, NULL), 0);
        CHECK_IS(tutti_comm_free(c), 0);
        if (rank < 2) {    /* what these two do next must not be seen in what the third one reads */
            CHECK_IS(tutti_comm_split(pair, 0, 0, &c), 0);
            CHECK_IS(sum_right(c, rank, count, k * 7), 0);
            CHECK_IS(tutti_comm_free(c), 0);
        }
        for (size_t n = 0; rank == 2 && n < count; n++)
            CHECK_IS(y[n], k + (int32_t)n);
    }
    if (pair)
        CHECK_IS(tutti_comm_free(pair), 0);
    return 0;
}

static void test_freed_early(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_freed_early), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost), cmocka_unit_test(test_loops), cmocka_unit_test(test_many),
        cmocka_unit_test(test_full), cmocka_unit_test(test_half_full),
        cmocka_unit_test(test_grows), cmocka_unit_test(test_freed), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_slow_reader), cmocka_unit_test(test_freed_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
