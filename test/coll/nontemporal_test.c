/* Which stores a comm settles on follows from what both cost, and never from anything else; the
 * other gets another try now and then. */
#include "support/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/copy.h"
#include "coll/nontemporal.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 4 << 20, MANY = 640 };
static const struct algorithm every_rank_takes = { .kind = KIND_ALL_TO_ALL };

/* Operations of `bytes` that take so many ticks with plain and with streaming stores; how
 * many streamed. */
static int run(struct tutti_comm *comm, size_t bytes, uint64_t plain, uint64_t streaming, int n)
{
    int streamed = 0;
    for (int i = 0; i < n; i++) {
        struct coll c = { .comm = comm, .algorithm = &every_rank_takes };
        stream_choose(&c, bytes, false);
        c.fold.ticks = c.stream.on ? streaming : plain;
        streamed += c.stream.on;
        stream_learn(&c);
    }
    return streamed;
}

static void test_settles(void **state)
{
    (void)state;
    struct tutti_comm *comm = calloc(1, sizeof *comm);
    assert_non_null(comm);
    if (!COPY_STREAMS) {
        free(comm);
        skip_because("no streaming stores on this processor");
    }
    /* the faster, but for its tries of the other */
    assert_in_range(run(comm, BYTES, 1000000, 500000, MANY), MANY - 32, MANY - 4);
    /* another size decides for itself */
    assert_in_range(run(comm, 16 * BYTES, 500000, 1000000, MANY), 4, 32);
    /* what has become faster is found out */
    assert_int_equal(run(comm, 16 * BYTES, 500000, 1, 256) > 8, 1);
    free(comm);
}

/* A result that the caches hold: plain stores are the faster ones where the operation before made
 * plain stores, too, and the slower ones behind one that went past the caches. */
static void test_kept(void **state)
{
    (void)state;
    enum { KEPT = 1 << 20, PLAIN = 100000, STREAMED = 200000, FETCHED = 300000 };
    struct tutti_comm *comm = calloc(1, sizeof *comm);
    int streamed = 0;
    bool before = true;                              /* at first it is in no cache */
    assert_non_null(comm);
    for (int i = 0; i < MANY; i++) {
        struct coll c = { .comm = comm, .algorithm = &every_rank_takes };
        stream_choose(&c, KEPT, false);
        c.fold.ticks = c.stream.on ? STREAMED : before ? FETCHED : PLAIN;
        before = c.stream.on;
        streamed += before;
        stream_learn(&c);
    }
    assert_in_range(streamed, COPY_STREAMS, 32);
    free(comm);
}

/* The way of one rank costs the other one, too: both by plain stores is best. Each begins with
 * another way, and while they differ, each finds its own the cheaper one. In between one rank is
 * the root of gathers, in which it alone chooses. */
static void test_together(void **state)
{
    (void)state;
    enum { KEPT = 1 << 20, RANKS = 2 };
    /* [own way][the other's] */
    static const uint64_t ticks[2][2] = { { 137000, 200000 }, { 172000, 210000 } };
    static const struct algorithm gather = { .kind = KIND_GATHER };
    struct tutti_comm *comm[RANKS];
    int streamed = 0;
    for (int r = 0; r < RANKS; r++) {
        comm[r] = calloc(1, sizeof *comm[r]);
        assert_non_null(comm[r]);
        comm[r]->coll.streams[0][0] = (struct tuner){ { r ? 160 : 220, r ? 220 : 160 }, 8 };
    }
    for (int i = 0; i < MANY; i++) {
        struct coll c[RANKS], at_root = { .comm = comm[0], .algorithm = &gather };
        for (int r = 0; r < RANKS; r++) {
            c[r] = (struct coll){ .comm = comm[r], .algorithm = &every_rank_takes };
            stream_choose(&c[r], KEPT, false);
        }
        for (int r = 0; r < RANKS; r++) {
            c[r].fold.ticks = ticks[c[r].stream.on][c[!r].stream.on];
            streamed += i >= MANY / 2 && c[r].stream.on;
            stream_learn(&c[r]);
        }
        stream_choose(&at_root, KEPT, false);
        at_root.fold.ticks = 100000;
        stream_learn(&at_root);
    }
    assert_in_range(streamed, 0, 16);                /* tries only */
    for (int r = 0; r < RANKS; r++)
        free(comm[r]);
}

/* What a rank writes counts, not what a root gives. */
static void test_bytes(void **state)
{
    (void)state;
    enum { COUNT = 1000, WIDTH = 8, BLOCK = COUNT * WIDTH, RANKS = 4 };
    static const struct { enum kind kind; size_t root, other; } kinds[] = {
        { KIND_SCATTER, BLOCK, BLOCK },
        { KIND_BROADCAST, 0, BLOCK },
        { KIND_GATHER, BLOCK, 0 },
        { KIND_ALL_GATHER, BLOCK, BLOCK },
        { KIND_ALL_TO_ALL, RANKS * BLOCK, RANKS * BLOCK },
        { KIND_ALL_REDUCE, BLOCK, BLOCK },
        { KIND_REDUCE, BLOCK, 0 },
        { KIND_REDUCE_SCATTER, 0, 0 },
        { KIND_SCAN, 0, 0 },
    };
    struct tutti_comm *comm = calloc(1, sizeof *comm);
    assert_non_null(comm);
    comm->watch.size = RANKS;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (comm->watch.me = 0; comm->watch.me < RANKS; comm->watch.me++) {
            struct algorithm its = { .kind = kinds[i].kind };
            struct coll c = { .comm = comm, .algorithm = &its, .count = COUNT, .width = WIDTH };
            assert_int_equal(stream_bytes(&c), comm->watch.me ? kinds[i].other : kinds[i].root);
        }
    free(comm);
}

static void test_never(void **state)
{
    (void)state;
    struct tutti_comm *comm = calloc(1, sizeof *comm);
    assert_non_null(comm);
    for (int i = 0; i < 100; i++) {
        struct coll c = { .comm = comm, .algorithm = &every_rank_takes, .stream.on = true };
        stream_choose(&c, BYTES, true);              /* in place: the lines are in the caches */
        assert_false(c.stream.on);
        c.stream.on = true;
        stream_choose(&c, 1000, false);              /* too small to be asked about */
        assert_false(c.stream.on);
        stream_learn(&c);
    }
    free(comm);
}

/* Into a buffer that peers read. Both ways are tried, and give the same bits. In place, and past
 * the caches, there is no choice. */
static void test_folds_shared(void **state)
{
    (void)state;
    enum { COUNT = 20001, ROOM = COUNT * 4 + 64 };
    static unsigned char given[2][ROOM], plain[ROOM], shared[ROOM];
    struct world world = { .staged_less = 1 };
    struct tutti_comm *comm = calloc(1, sizeof *comm);
    const void *from[2] = { given[0] + 4, given[1] };
    const char *why;
    assert_non_null(comm);
    if (!COPY_STREAMS) {
        free(comm);
        skip_because("no choice on this processor");
    }
    comm->world = &world;
    for (size_t i = 0; i < ROOM; i++)
        for (int p = 0; p < 2; p++)
            given[p][i] = (unsigned char)(i * 31 + i / 251 + (size_t)p * 7);
    struct coll c = {
        .comm = comm, .width = 4, .fold.kernel = fold_find(TUTTI_I32, TUTTI_SUM, &why),
        .bytes = COUNT * 4, .send = given[0], .recv = shared
    };
    struct tuner *ways = tuner_of(comm->coll.folds_shared, c.bytes, FOLD_STAGED_LEAST);
    memset(plain, 0xee, ROOM);
    coll_fold(&c, plain + 8, from, 2, COUNT);
    for (uint32_t i = 0; i < 3 * TUNER_TRIES; i++) {
        bool in_place = i / TUNER_TRIES == 1;
        c.stream.on = i / TUNER_TRIES == 2;
        c.recv = in_place ? given[0] : shared;
        memset(shared, 0xee, ROOM);
        coll_fold_shared(&c, shared + 8, from, 2, COUNT);
        assert_memory_equal(plain, shared, ROOM);
        assert_int_equal(ways->n, i < TUNER_TRIES ? i + 1 : TUNER_TRIES);
    }
    assert_true(ways->cost[0] && ways->cost[1]);
    free(comm);
}

/* The same bits as by plain stores, and not one byte beside them. */
static void test_folds(void **state)
{
    (void)state;
    enum { MOST = 40000, ROOM = MOST * 8 + 64, RANKS = 3 };
    static const tutti_type types[] = { TUTTI_I8, TUTTI_BF16, TUTTI_F32, TUTTI_F64 };
    static const size_t counts[] = { 1, 1023, 1024, 2049, 8192, 8193, MOST };
    static unsigned char given[RANKS][ROOM], plain[ROOM], streamed[ROOM];
    const void *from[RANKS] = { given[0], given[1] + 8, given[2] + 16 };
    const char *why;
    for (size_t i = 0; i < ROOM; i++)
        for (int p = 0; p < RANKS; p++)
            given[p][i] = (unsigned char)(i * 31 + i / 251 + (size_t)p * 7);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
            struct coll c = {
                .width = fold_type_size(types[t]),
                .fold.kernel = fold_find(types[t], TUTTI_AVG, &why), .bytes = FOLD_STREAM_LEAST
            };
            memset(plain, 0xee, ROOM);
            memset(streamed, 0xee, ROOM);
            coll_fold(&c, plain + 8, from, RANKS, counts[n]);
            c.stream.on = true;
            coll_fold_out(&c, streamed + 8, from, RANKS, counts[n], FOLD_STREAM_LEAST);
            assert_memory_equal(plain, streamed, ROOM);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_settles),
                                        cmocka_unit_test(test_kept),
                                        cmocka_unit_test(test_together),
                                        cmocka_unit_test(test_bytes), cmocka_unit_test(test_never),
                                        cmocka_unit_test(test_folds),
                                        cmocka_unit_test(test_folds_shared) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
