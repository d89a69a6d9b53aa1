/* Between two ranks the lines of a small slot that were written, and no others, are fetched for
 * writing before the slot is written again (coll/eager.h). Of two blocks one is another rank's. */
#include "group/comm.h"
#include "support/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCK = 1024, ROUNDS = 6 };

/* What this rank is to fetch: noted by the last operation. */
static size_t first(const tutti_comm *world)
{
    return world->coll.prefetch.first[world->seq & 1];
}

static size_t written(const tutti_comm *world)
{
    return world->coll.prefetch.written[world->seq & 1];
}

static int body(tutti_comm *world, int rank)
{
    static unsigned char in[2 * BLOCK], out[2 * BLOCK];
    for (int k = 0; k < ROUNDS; k++) {
        int root = k & 1;
        memset(in, 10 * rank + k, BLOCK);
        memset(in + BLOCK, 100 + 10 * rank + k, BLOCK);
        CHECK_IS(tutti_scatter(in, out, BLOCK, TUTTI_U8, root, world, NULL), 0);
        CHECK_IS(out[0], 100 * rank + 10 * root + k);
        CHECK_IS(out[BLOCK - 1], out[0]);
        if (rank == root && !world->crowded) {
            CHECK_IS(first(world), root == 0 ? BLOCK : 0);
            CHECK_IS(written(world), BLOCK);
        }
        CHECK_IS(tutti_all_to_all(in, out, BLOCK, TUTTI_U8, world, NULL), 0);
        for (int p = 0; p < 2; p++) {
            CHECK_IS(out[p * BLOCK], 100 * rank + 10 * p + k);
            CHECK_IS(out[(p + 1) * BLOCK - 1], out[p * BLOCK]);
        }
        if (!world->crowded) {
            CHECK_IS(first(world), rank == 0 ? BLOCK : 0);
            CHECK_IS(written(world), BLOCK);
        }
        CHECK_IS(tutti_broadcast(in, BLOCK, TUTTI_U8, root, world, NULL), 0);
        if (rank == root && !world->crowded) {
            CHECK_IS(first(world), 0);
            CHECK_IS(written(world), BLOCK);
        }
    }
    return 0;
}

static void test_lines(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
