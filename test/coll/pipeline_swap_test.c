/* ctest: timeout=300 labels=tsan */
/* Large operations of two ranks in which blocks change hands: every result, of kinds and sizes
 * mixed at random, out of private memory and out of the arena, in place and not; and a rank that
 * comes with device memory where both were to write into blocks. */
#include "coll/pipeline_swap.h"
#include "support/dummy_device.h"
#include "support/ranks.h"
#include "support/team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 800 << 10, LEAST = 200 << 10, KINDS = 5, PLACES = 4 };
static const enum kind kinds[KINDS] = { KIND_ALL_REDUCE, KIND_ALL_GATHER, KIND_ALL_TO_ALL,
                                        KIND_REDUCE_SCATTER, KIND_BROADCAST };

/* Element i of what `from` gives to `to` in operation n. */
static uint32_t word_of(uint64_t n, int from, int to, size_t i)
{
    return (uint32_t)(n * 1000003u + (uint64_t)from * 257u + (uint64_t)to * 31u + i * 7);
}

static bool each(enum kind kind) { return kind == KIND_ALL_TO_ALL || kind == KIND_REDUCE_SCATTER; }

static bool folds(enum kind kind) { return kind == KIND_ALL_REDUCE || kind == KIND_REDUCE_SCATTER; }

static int run(enum kind kind, const uint32_t *in, uint32_t *out, size_t count, tutti_comm *c)
{
    switch (kind) {
    case KIND_ALL_REDUCE: return tutti_all_reduce(in, out, count, TUTTI_U32, TUTTI_SUM, c, NULL);
    case KIND_ALL_GATHER: return tutti_all_gather(in, out, count, TUTTI_U32, c, NULL);
    case KIND_ALL_TO_ALL: return tutti_all_to_all(in, out, count, TUTTI_U32, c, NULL);
    case KIND_REDUCE_SCATTER:
        return tutti_reduce_scatter(in, out, count, TUTTI_U32, TUTTI_SUM, c, NULL);
    default: return tutti_broadcast(out, count, TUTTI_U32, 0, c, NULL);
    }
}

/* Elements of `out` that are not what they have to be. */
static size_t wrong(enum kind kind, const uint32_t *out, size_t count, uint64_t n, int me)
{
    size_t bad = 0;
    int blocks = kind == KIND_ALL_GATHER || kind == KIND_ALL_TO_ALL ? 2 : 1;
    for (int b = 0; b < blocks; b++)
        for (size_t i = 0; i < count; i++) {
            int to = each(kind) ? me : 0;
            uint32_t want = folds(kind) ? word_of(n, 0, to, i) + word_of(n, 1, to, i)
                                        : word_of(n, kind == KIND_BROADCAST ? 0 : b, to, i);
            bad += out[(size_t)b * count + i] != want;
        }
    return bad;
}

static int body(tutti_comm *world, int rank)
{
    int many = team_many("TUTTI_TEST_PIPELINE_SWAP", 300, 80);
    uint64_t state = 5, own = 77 + (uint64_t)rank;
    uint32_t *memory[PLACES / 2][2] = { { malloc(MOST), malloc(2 * MOST) },
                                        { tutti_alloc(MOST, world),
                                          tutti_alloc(2 * MOST, world) } };
    CHECK(memory[0][0] && memory[0][1] && memory[1][0] && memory[1][1]);
    for (uint64_t n = 0; n < (uint64_t)many; n++) {
        /* long stretches of one kind, each rank's own mixture of places in some of them */
        enum kind kind = kinds[n / 20 % KINDS];
        size_t bytes = MOST - team_random(&state) % (MOST - LEAST),
               count = bytes / (each(kind) ? 2 : 1) / 4;
        int place = n / 10 % 3 == 2 && team_random(&own) % 4 == 0 ? 1 : 0;
        bool in_place = kind == KIND_ALL_REDUCE && team_random(&state) % 3 == 0;
        uint32_t *in = memory[place][0], *out = in_place ? in : memory[place][1];
        for (int to = 0; to < (each(kind) ? 2 : 1); to++)
            for (size_t i = 0; i < count; i++)
                in[(size_t)to * count + i] = word_of(n, rank, to, i);
        if (kind == KIND_BROADCAST)
            memcpy(out, in, count * 4);
        CHECK_IS(run(kind, in, out, count, world), 0);
        CHECK_IS(wrong(kind, out, count, n, rank), 0);
    }
    CHECK(world->crowded || world->coll.pipeline_swap.rounds > 0);
    for (int i = 0; i < 2; i++) {
        free(memory[0][i]);
        tutti_free(memory[1][i], world);
    }
    return 0;
}

static void test_results(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body), 0);
}

/* All buffers in the arena: they are read where they lie until rank 0 tries blocks. Then blocks
   change hands, also if one rank comes with private memory between. */
static int lying(tutti_comm *world, int rank)
{
    enum { COUNT = (300 << 10) / 4 + 5, TRIED = EPOCH_FIRST + EPOCH, CALLS = TRIED + 12 };
    uint32_t *in = tutti_alloc(COUNT * 4, world), *out = tutti_alloc(COUNT * 4, world),
             *apart = malloc(COUNT * 4);
    CHECK(in && out && apart);
    for (uint64_t n = 0; n < CALLS; n++) {
        bool in_place = n % 3 == 2,
             leaves = n > TRIED + 3 && n % 4 == 0 && rank == (int)(n / 4 % 2);
        uint32_t *to = leaves ? apart : in_place ? in : out;
        CHECK(n > TRIED || world->coll.pipeline_swap.rounds == 0);
        for (size_t i = 0; i < COUNT; i++)
            in[i] = word_of(n, rank, 0, i);
        CHECK_IS(run(KIND_ALL_REDUCE, in, to, COUNT, world), 0);
        CHECK_IS(wrong(KIND_ALL_REDUCE, to, COUNT, n, rank), 0);
    }
    CHECK(world->crowded || world->coll.pipeline_swap.rounds > 0);
    free(apart);
    tutti_free(in, world);
    tutti_free(out, world);
    return 0;
}

static void test_lying(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, lying), 0);
}

/* Blocks of half a MiB and more for each rank, too. */
static int each_large(tutti_comm *world, int rank)
{
    enum { COUNT = (600 << 10) / 4 + 1 };
    uint32_t *in = malloc(2 * COUNT * 4), *out = malloc(2 * COUNT * 4);
    CHECK(in && out);
    for (uint64_t n = 0; n < 8; n++) {
        enum kind kind = n < 4 ? KIND_ALL_TO_ALL : KIND_REDUCE_SCATTER;
        uint64_t before = world->coll.pipeline_swap.rounds;
        for (int to = 0; to < 2; to++)
            for (size_t i = 0; i < COUNT; i++)
                in[(size_t)to * COUNT + i] = word_of(n, rank, to, i);
        CHECK_IS(run(kind, in, out, COUNT, world), 0);
        CHECK_IS(wrong(kind, out, COUNT, n, rank), 0);
        CHECK_IS(world->coll.pipeline_swap.rounds > before, n % 4 && !world->crowded);
    }
    free(in);
    free(out);
    return 0;
}

static void test_each_large(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, each_large), 0);
}

/* Operation n, in which rank `odd` has device memory; -1: none has. */
static int reduces(tutti_comm *world, uint64_t n, int odd)
{
    enum { COUNT = (500 << 10) / 4 + 3 };
    int rank = tutti_rank(world);
    uint32_t *in = malloc(COUNT * 4), *out = malloc(COUNT * 4), *far = malloc(COUNT * 4);
    for (size_t i = 0; i < COUNT; i++)
        in[i] = word_of(n, rank, 0, i);
    struct device_call d = { .before = 3, .after = 5, .to = far, .bytes = COUNT * 4 };
    int r = dummy_call(world, KIND_ALL_REDUCE, in, out, COUNT, TUTTI_U32, TUTTI_SUM, 0,
                       rank == odd ? &d : NULL, NULL);
    CHECK_IS(r, 0);
    CHECK_IS(wrong(KIND_ALL_REDUCE, rank == odd ? far : out, COUNT, n, rank), 0);
    free(in);
    free(out);
    free(far);
    return 0;
}

static int odd;

static int device(tutti_comm *world, int rank)
{
    (void)rank;
    for (uint64_t n = 0; n < 5; n++)
        CHECK_IS(reduces(world, n, -1), 0);
    CHECK(world->crowded || world->coll.pipeline_swap.rounds > 0);
    uint64_t rounds = world->coll.pipeline_swap.rounds;
    CHECK_IS(reduces(world, 5, odd), 0);
    for (uint64_t n = 6; n < 9; n++)
        CHECK_IS(reduces(world, n, -1), 0);
    CHECK_IS(world->coll.pipeline_swap.rounds, rounds);
    return 0;
}

static void test_device(void **state)
{
    (void)state;
    for (odd = 0; odd < 2; odd++)
        assert_int_equal(ranks_run_either(2, device), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_results),
                                        cmocka_unit_test(test_lying),
                                        cmocka_unit_test(test_each_large),
                                        cmocka_unit_test(test_device) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
