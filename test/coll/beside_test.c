/* ctest: timeout=300 labels=tsan */
/* Large operations in which a rank copies its own block past the caches beside what it gives: every
 * byte of the result and none next to it, among two and three ranks, of kinds and sizes mixed at
 * random, in place and not,
 * out of private memory and of the arena's, whoever comes late. */
#include "base/copy.h"
#include "group/comm.h"
#include "support/ranks.h"
#include "support/team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 3, MOST = 640 << 10, LEAST = 500 << 10, GUARD = 64, KINDS = 3 };
enum { ALL_GATHER, ALL_TO_ALL, SCATTER };

static unsigned char byte_of(uint64_t n, int from, int to, size_t i)
{
    return (unsigned char)(n * 7 + (uint64_t)from * 41 + (uint64_t)to * 101 + i + i / 253);
}

static void fill(unsigned char *at, size_t bytes, uint64_t n, int from, int to)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = byte_of(n, from, to, i);
}

/* Comes late by some work. */
static void linger(unsigned char *at, size_t bytes)
{
    for (int i = 0; i < 4; i++)
        memset(at, i, bytes);
}

/* memory: of what is given, private and in the arena; of results. */
static int once(tutti_comm *world, int rank, uint64_t n, uint64_t *state, unsigned char *memory[3])
{
    int ranks = tutti_size(world), kind = (int)(n / 20 % KINDS), root = (int)(n % (uint64_t)ranks);
    size_t bytes = MOST - team_random(state) % (MOST - LEAST), all = bytes * (size_t)ranks;
    bool in_place = kind != SCATTER && team_random(state) % 4 == 0;
    bool gives = kind != SCATTER || rank == root;
    int late = (int)(team_random(state) % 4);
    /* some byte behind the begin of a line */
    unsigned char *in = memory[(team_random(state) >> rank) % 3 == 0] + team_random(state) % GUARD,
                  *out = memory[2] + GUARD + team_random(state) % GUARD;
    size_t got = kind == SCATTER ? bytes : all;
    memset(memory[2], 0xee, got + 4 * GUARD);
    if (in_place)
        in = kind == ALL_GATHER ? out + bytes * (size_t)rank : out;
    for (int to = 0; gives && to < (kind == ALL_GATHER ? 1 : ranks); to++)
        fill(in + bytes * (size_t)to, bytes, n, rank, to);
    if (n % 2)                       /* of some rounds the own block goes along, of others not */
        world->coll.beside = (struct tuner){ { 1 << 20, 1 }, 2 * TUNER_AGAIN - (uint32_t)(n % 6) };
    if (late == rank)
        linger(memory[2] + 2 * RANKS * MOST, MOST);
    int r = kind == ALL_GATHER ? tutti_all_gather(in, out, bytes, TUTTI_U8, world, NULL)
        : kind == ALL_TO_ALL   ? tutti_all_to_all(in, out, bytes, TUTTI_U8, world, NULL)
                               : tutti_scatter(in, out, bytes, TUTTI_U8, root, world, NULL);
    CHECK_IS(r, 0);
    size_t bad = 0;
    for (size_t i = 0; i < got; i++) {
        int from = kind == SCATTER ? root : (int)(i / bytes);
        bad += out[i] != byte_of(n, from, kind == ALL_GATHER ? 0 : rank, i % bytes);
    }
    CHECK_IS(bad, 0);
    for (unsigned char *at = memory[2]; at < memory[2] + got + 4 * GUARD; at++)
        bad += (at < out || at >= out + got) && *at != 0xee;
    CHECK_IS(bad, 0);
    return 0;
}

static int body(tutti_comm *world, int rank)
{
    int many = team_many("TUTTI_TEST_BESIDE", 240, 60);
    uint64_t state = 9;
    unsigned char *memory[3] = { malloc(RANKS * MOST + 4 * GUARD),
                                 tutti_alloc(RANKS * MOST + 4 * GUARD, world),
                                 malloc((2 * RANKS + 1) * MOST + 4 * GUARD) };
    CHECK(memory[0] && memory[1] && memory[2]);
    for (uint64_t n = 0; n < (uint64_t)many; n++)
        CHECK_IS(once(world, rank, n, &state, memory), 0);
    CHECK(!COPY_STREAMS || world->coll.beside.n > 0);
    free(memory[0]);
    free(memory[2]);
    return 0;
}

static void test_two(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body), 0);
}

static void test_three(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(RANKS, body), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_two), cmocka_unit_test(test_three) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
