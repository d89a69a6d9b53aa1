/* ctest: timeout=120
 * A rank that takes little, or nothing, gives much, in many more rounds than a pipeline has slots:
 * the others need not wait for it to take what there is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "coll/pipeline.h"
#include "support/ranks.h"

#include <stdlib.h>

enum { RANKS = 3, LITTLE = 5 };

static size_t least;                    /* what the last rank takes of each */

static size_t count_of(int to)
{
    return to == RANKS - 1 ? least
        : (3 * pipeline_depth(RANKS) + 1) * pipeline_slot_bytes(RANKS) / RANKS;
}

static unsigned char value(int from, int to, size_t i)
{
    return (unsigned char)(i * 7 + i / 251 + (size_t)(from * 31 + to * 11));
}

static int body(tutti_comm *world, int rank)
{
    unsigned char *give[RANKS], *get[RANKS];
    size_t gives[RANKS], gets[RANKS];
    for (int p = 0; p < RANKS; p++) {
        gives[p] = count_of(p);
        gets[p] = count_of(rank);
        CHECK((give[p] = malloc(gives[p] + 1)) && (get[p] = calloc(1, gets[p] + 1)));
        for (size_t i = 0; i < gives[p]; i++)
            give[p][i] = value(rank, p, i);
    }
    const void *const from[RANKS] = { give[0], give[1], give[2] };
    void *const to[RANKS] = { get[0], get[1], get[2] };
    CHECK_IS(tutti_all_to_all_v(from, gives, to, gets, TUTTI_U8, world, NULL), 0);
    for (int p = 0; p < RANKS; p++) {
        for (size_t i = 0; i < gets[p]; i++)
            CHECK_IS(get[p][i], value(p, rank, i));
        free(give[p]);
        free(get[p]);
    }
    return 0;
}

static void takes_little(void **state)
{
    (void)state;
    least = LITTLE;
    assert_int_equal(ranks_run(RANKS, body, 0), 0);
}

static void takes_nothing(void **state)
{
    (void)state;
    least = 0;
    assert_int_equal(ranks_run(RANKS, body, 0), 0);
}

int main(void)
{
    setenv("TUTTI_TIMEOUT_MS", "20000", 1);
    const struct CMUnitTest tests[] = { cmocka_unit_test(takes_little),
                                        cmocka_unit_test(takes_nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
