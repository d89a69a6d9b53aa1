/* The pages of staging: an operation touches those that it needs, and was given before it arrived.
 * So what the system has of a block or a pipeline is what its comm's books say: a page too many
 * was touched behind their back, in the middle of an operation, where its want could be no error
 * any more. */
#include "support/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "coll/pipeline.h"
#include "support/pages.h"
#include "support/ranks.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = PAGE_BYTES, MOST = 2 << 20, KINDS = 9, PAGES_MOST = 8192 };

static int kind;                       /* one in each job, so that nothing is there before */

static int call(tutti_comm *world, const void *send, void *recv, size_t bytes, int root)
{
    size_t n = bytes / 4;
    switch (kind) {
    case 0: return tutti_broadcast(recv, n, TUTTI_I32, root, world, NULL);
    case 1: return tutti_all_reduce(send, recv, n, TUTTI_I32, TUTTI_SUM, world, NULL);
    case 2: return tutti_reduce(send, recv, n, TUTTI_I32, TUTTI_SUM, root, world, NULL);
    case 3: return tutti_all_gather(send, recv, n, TUTTI_I32, world, NULL);
    case 4: return tutti_reduce_scatter(send, recv, n, TUTTI_I32, TUTTI_SUM, world, NULL);
    case 5: return tutti_gather(send, recv, n, TUTTI_I32, root, world, NULL);
    case 6: return tutti_scatter(send, recv, n, TUTTI_I32, root, world, NULL);
    case 7: return tutti_all_to_all(send, recv, n, TUTTI_I32, world, NULL);
    default: return tutti_scan(send, recv, n, TUTTI_I32, TUTTI_SUM, world, NULL);
    }
}

/* Pages that are there and that the books do not know of; *in: how many they know. -1: the system
 * does not say. */
static int unknown(const struct stage *s, const char *at, size_t bytes, int *in)
{
    static unsigned char seen[PAGES_MOST];
    int wrong = 0;
    *in = 0;
    if (!at)
        return 0;
    if (bytes > (size_t)PAGE * PAGES_MOST || !pages_seen(at, bytes, seen))
        return -1;
    for (size_t k = 0; k < (bytes + PAGE - 1) / PAGE; k++) {
        bool known = at == s->pipeline ? s->pipeline_whole
            : at == s->ring            ? k * PAGE < s->ring_bytes
                                       : k * PAGE < s->eager_bytes[at == s->eager[1]];
        for (uint32_t i = 0; at == s->pipeline && i < PIPELINE_SLOTS; i++)
            known = known
                || (k * PAGE + PAGE > i * s->pipeline_slot
                    && k * PAGE < i * s->pipeline_slot + s->pipeline_there[i]);
        wrong += (seen[k] & 1) && !known;
        *in += known;
    }
    return wrong;
}

static int look(tutti_comm *world, int *pipeline)
{
    const struct stage *s = &world->stage;
    int eager;
    CHECK_IS(unknown(s, s->eager[0], s->eager_room[0], &eager), 0);
    CHECK_IS(unknown(s, s->eager[1], s->eager_room[1], &eager), 0);
    CHECK_IS(unknown(s, s->ring, EAGER_MOST, &eager), 0);
    CHECK_IS(unknown(s, s->pipeline, s->pipeline_bytes, pipeline), 0);
    return 0;
}

/* Of sizes on both sides of where pipelines begin. */
static int body(tutti_comm *world, int rank)
{
    static const size_t sizes[] = { 20000, 65536, 70000, 131072, 200000, 1 << 20, MOST };
    int size = tutti_size(world), pipeline = 0;
    char *send = calloc((size_t)size, MOST), *recv = calloc((size_t)size, MOST);
    CHECK(send && recv);
    for (size_t i = 0; i < 3 * sizeof sizes / sizeof sizes[0]; i++) {
        CHECK_IS(call(world, send, recv, sizes[i / 3], (int)i % size), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (look(world, &pipeline))
            return 1;
        if (kind == 0 && i < 9)     /* 70,000 bytes: of a slot each time that much, and no more */
            CHECK(pipeline <= 3 * (70000 / PAGE + 2));
    }
    CHECK(pipeline > 0 || rank > 0);  /* in a scan the last gives to nobody */
    free(send);
    free(recv);
    return 0;
}

static void all_kinds(int size)
{
    if (!pages_single())
        skip_because("this machine tells nothing of single pages");
    for (kind = 0; kind < KINDS; kind++)
        assert_int_equal(ranks_run(size, body, 0), 0);
}

static void test_two(void **state)
{
    (void)state;
    all_kinds(2);
}

static void test_three(void **state)
{
    (void)state;
    all_kinds(3);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_two), cmocka_unit_test(test_three) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
