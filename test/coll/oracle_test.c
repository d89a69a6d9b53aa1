/* ctest: timeout=900
 * The oracle with processes as ranks: every collective x type x operation x place x size around
 * every threshold x alignment x root x kind of data x 1 ... 8 ranks x algorithm x gate, in pairs of
 * values; in ./bootstrap prove the product. One world runs all cases of its ranks, algorithm and
 * gate, in mixed order, so that every operation follows every other one; worlds start their
 * operation numbers at 0, and right below 2^30 and 2^32, where a number that is cut somewhere would
 * go round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/tiny.h"
#include "support/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { COVERS = TINY(2, 1) };           /* of all pairs, each another one */

struct group { const struct oracle_case *cases; size_t n; struct oracle_board *board; };

static const struct oracle_space everything = { 1, ORACLE_RANKS, TINY(SIZE_MAX, 20000), false };

static int body(tutti_comm *world, void *arg)
{
    const struct group *group = arg;
    return oracle_run(world, group->cases, group->n, group->board, NULL);
}

static void set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static void run_group(const struct group *group, const char *first_seq)
{
    char rules[1024];
    const struct oracle_case *c = group->cases;
    tutti_options options = { .timeout_ms = 20 * 60 * 1000 };
    set("TUTTI_ALGORITHM", oracle_rules(c, rules));
    set("TUTTI_FIRST_SEQ", first_seq);
    int failed = tutti_spawn(oracle_ranks(c), body, (void *)(uintptr_t)group, &options, NULL);
    for (uint32_t i = 0; i < load_acquire32(&group->board->used) && i < ORACLE_COMPLAINTS; i++)
        print_error("%s\n", group->board->said[i]);
    if (failed)
        fail_msg("%d of %d ranks failed; TUTTI_ALGORITHM=%s TUTTI_FIRST_SEQ=%s %s", failed,
                 oracle_ranks(c), rules, first_seq, failed < 0 ? tutti_explain(NULL) : "");
}

static void run_all(struct oracle_cases *cases, struct oracle_board *board)
{
    static const char *const first[] = { "0", "1073741819", "4294967291" };
    size_t worlds = 0;
    oracle_sort(cases);
    for (size_t i = 0, n; i < cases->used; i += n) {
        const struct oracle_case *c = &cases->at[i];
        n = oracle_world(c, cases->used - i);
        struct group group = { c, n, board };
        run_group(&group, first[(c->v[DIM_RANKS] + c->v[DIM_RULE] + 2 * c->v[DIM_GATE]) % 3]);
        worlds++;
        if (oracle_prove()) {                        /* long: it shows how far it is */
            printf("world %zu: %zu of %zu cases\n", worlds, i + n, cases->used);
            fflush(stdout);
        }
    }
    printf("%zu cases in %zu worlds\n", cases->used, worlds);
}

static void all_agree(void **state)
{
    (void)state;
    uint64_t seed = oracle_seed();
    struct oracle_cases cases = { 0 };
    struct oracle_board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(board, MAP_FAILED);
    for (enum kind kind = KIND_BARRIER; kind <= KIND_ALL_TO_ALL_V; kind++) {
        size_t before = cases.used, pairs = 0;
        if (oracle_prove())
            oracle_product(&cases, kind, &everything, &seed);
        for (int i = 0; i < COVERS && !oracle_prove(); i++)
            pairs = oracle_pairs(&cases, kind, &everything, &seed);
        printf("%s: %zu cases for %zu pairs\n", kind_name(kind), cases.used - before, pairs);
        assert_int_equal(oracle_missing(&cases, kind, &everything), 0);
    }
    run_all(&cases, board);
    oracle_free(&cases);
    munmap(board, sizeof *board);
}

/* The oracle itself: a few results that can be checked by hand. */
static void oracle_is_right(void **state)
{
    (void)state;
    struct oracle_case c = { .kind = KIND_ALL_REDUCE };
    unsigned char tile[ORACLE_PERIOD * ORACLE_WIDTH];
    c.v[DIM_RANKS] = 2;
    c.v[DIM_TYPE] = TUTTI_I32;
    c.v[DIM_OP] = TUTTI_SUM;
    int32_t got, sum = 0, given[ORACLE_PERIOD * 4];
    for (int r = 0; r < 3; r++) {
        oracle_values(given, &c, r, 0);
        sum = (int32_t)((uint32_t)sum + (uint32_t)given[5]);
    }
    oracle_fold(tile, &c, 3, 0);
    memcpy(&got, tile + 20, 4);
    assert_int_equal(got, sum);
    unsigned char many[3 * ORACLE_PERIOD];
    memset(tile, 7, sizeof tile);
    tile[3] = 8;
    tile_fill(many, sizeof many, tile, ORACLE_PERIOD);
    assert_int_equal(tile_differs(many, sizeof many, tile, ORACLE_PERIOD), SIZE_MAX);
    many[2 * ORACLE_PERIOD + 3] = 7;
    assert_int_equal(tile_differs(many, sizeof many, tile, ORACLE_PERIOD), 2 * ORACLE_PERIOD + 3);
}

int main(void)
{
    set("TUTTI_TIMEOUT_MS", "120000");
    set("TUTTI_WARN_MS", "-1");
    const struct CMUnitTest tests[] = { cmocka_unit_test(oracle_is_right),
                                        cmocka_unit_test(all_agree) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
