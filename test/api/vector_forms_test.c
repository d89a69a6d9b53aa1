/* ctest: timeout=120 labels=tsan
 * The general forms beside their results: what is refused, and what all ranks get when two do not
 * agree on a block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3 };

static bool says(tutti_comm *comm, const char *what) { return strstr(tutti_explain(comm), what); }

/* ---- counts ---- */

/* Rank 2 takes one element more from rank 1 than that gives: all ranks hear of it, by
 * whichever road. */
static int all_to_all_differs(tutti_comm *world, int rank)
{
    int32_t in[RANKS][4] = { { 0 } }, out[RANKS][4] = { { 0 } };
    const void *send[RANKS] = { in[0], in[1], in[2] };
    void *recv[RANKS] = { out[0], out[1], out[2] };
    size_t gives[RANKS] = { 2, 2, 2 }, takes[RANKS] = { 2, 2, 2 };
    CHECK_IS(tutti_all_to_all_v(send, gives, recv, takes, TUTTI_I32, world, NULL), 0);
    if (rank == 2)
        takes[1] = 3;
    CHECK_IS(tutti_all_to_all_v(send, gives, recv, takes, TUTTI_I32, world, NULL), -EPROTO);
    CHECK(says(world, "rank 1 gives rank 2 2 elements, which takes 3"));
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    return 0;
}

static int gather_differs(tutti_comm *world, int rank)
{
    int32_t mine[4] = { 0 }, out[RANKS][4] = { { 0 } };
    void *recv[RANKS] = { out[0], out[1], out[2] };
    size_t takes[RANKS] = { 1, 2, 3 };
    void *const *to = rank == 1 ? recv : NULL;
    const size_t *counts = rank == 1 ? takes : NULL;
    CHECK_IS(tutti_gather_v(mine, (size_t)rank + 1, to, counts, TUTTI_I32, 1, world, NULL), 0);
    CHECK_IS(tutti_gather_v(mine, rank == 2 ? 0 : (size_t)rank + 1, to, counts, TUTTI_I32, 1, world,
                            NULL),
             -EPROTO);
    CHECK(says(world, "rank 2 gives rank 1 0 elements, which takes 3"));
    return 0;
}

static int scatter_differs(tutti_comm *world, int rank)
{
    int32_t in[RANKS][4] = { { 0 } }, mine[4] = { 0 };
    const void *send[RANKS] = { in[0], in[1], in[2] };
    size_t gives[RANKS] = { 1, 2, 3 };
    const void *const *from = rank == 0 ? send : NULL;
    const size_t *counts = rank == 0 ? gives : NULL;
    CHECK_IS(tutti_scatter_v(from, counts, mine, (size_t)rank + 1, TUTTI_I32, 0, world, NULL), 0);
    CHECK_IS(tutti_scatter_v(from, counts, mine, rank == 1 ? 0 : (size_t)rank + 1, TUTTI_I32, 0,
                             world, NULL),
             -EPROTO);
    CHECK(says(world, "rank 0 gives rank 1 2 elements, which takes 0"));
    return 0;
}

static int lists_differ(tutti_comm *world, int rank)
{
    int32_t mine[4] = { 0 }, out[RANKS][4] = { { 0 } };
    void *recv[RANKS] = { out[0], out[1], out[2] };
    size_t counts[RANKS] = { 1, 1, 1 };
    CHECK_IS(tutti_all_gather_v(mine, 1, recv, counts, TUTTI_I32, world, NULL), 0);
    counts[2] += rank == 0;
    CHECK_IS(tutti_all_gather_v(mine, 1, recv, counts, TUTTI_I32, world, NULL), -EPROTO);
    return 0;
}

static void counts_that_differ(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(RANKS, all_to_all_differs), 0);
    assert_int_equal(ranks_run_either(RANKS, gather_differs), 0);
    assert_int_equal(ranks_run_either(RANKS, scatter_differs), 0);
    assert_int_equal(ranks_run_either(RANKS, lists_differ), 0);
}

/* ---- buffers ---- */

/* In place with more given than taken: what is given beyond must not be where another
 * block lands. */
static int a_tail_is_overwritten(tutti_comm *world, int rank)
{
    int32_t in[8] = { 0, 1, 2, 3, 4, 5, 6, 7 }, out[8] = { 0 };
    const void *send[2] = { in, out };
    void *recv[2] = { in, in + 2 };
    size_t gives[2] = { 2, 2 }, takes[2] = { 2, 2 };
    if (rank == 1) {
        /* in[0 … 3]; what comes back from rank 0 are two, and rank 1's own lands on in[2 … 3] */
        gives[0] = 4;
        send[0] = in;
        CHECK_IS(tutti_all_to_all_v(send, gives, recv, takes, TUTTI_I32, world, NULL), -EINVAL);
        CHECK(says(world, "overlap"));
        recv[1] = in + 4;
        CHECK_IS(tutti_all_to_all_v(send, gives, recv, takes, TUTTI_I32, world, NULL), 0);
        return 0;
    }
    takes[1] = 4;
    recv[0] = out + 4;
    recv[1] = in + 4;
    send[1] = in + 2;
    CHECK_IS(tutti_all_to_all_v(send, gives, recv, takes, TUTTI_I32, world, NULL), 0);
    CHECK_IS(in[4], 0);
    CHECK_IS(in[7], 3);
    return 0;
}

static int no_buffers(tutti_comm *world, int rank)
{
    tutti_work *work;
    (void)rank;
    for (int i = 0; i < 10; i++) {
        CHECK_IS(tutti_all_reduce_many(NULL, NULL, NULL, 0, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
        CHECK_IS(tutti_all_reduce_many(NULL, NULL, NULL, 0, TUTTI_I32, TUTTI_SUM, world,
                                       &(tutti_call){ .work = &work }),
                 0);
        CHECK_IS(tutti_wait(work, -1), 0);
    }
    CHECK_IS(tutti_all_reduce_many(NULL, NULL, NULL, -1, TUTTI_I32, TUTTI_SUM, world, NULL),
             -EINVAL);
    return 0;
}

static void blocks_that_touch(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, a_tail_is_overwritten), 0);
}

static void nothing_to_reduce(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(RANKS, no_buffers), 0);
    assert_int_equal(setenv("TUTTI_ALGORITHM", "all_reduce_many:-inf=pipelined", 1), 0);
    assert_int_equal(ranks_run_either(RANKS, no_buffers), 0);
    assert_int_equal(unsetenv("TUTTI_ALGORITHM"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_that_differ), cmocka_unit_test(blocks_that_touch),
        cmocka_unit_test(nothing_to_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
