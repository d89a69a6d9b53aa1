/* The floors of two ranks are tested by ranks that are threads: that they give right results, in
 * one piece and in more than the blocks hold, whatever went through the same blocks before; and
 * that of a collective nobody is through, and no result is touched, before both have come. */
#include "reports/bare_pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 2, CROWD = 4, TIMES = 3, MOST = (4 << 20) + 4, FORMS = 5 };

typedef int (*pair_function)(struct rank *r, uint64_t times);

static const pair_function forms[FORMS] = {
    bare_pairs_whole, bare_pairs_fine, bare_pairs_coarse, bare_pairs_out, bare_pairs_past
};
static struct rank ranks[CROWD];
static pthread_t threads[CROWD];
static pair_function now;
static shared64 wrong;
static shared32 begun, gone;

static int open_ranks(void **state)
{
    size_t bytes = (bare_pairs_bytes(CROWD) + 4095) / 4096 * 4096;
    char *shared = aligned_alloc(4096, bytes);
    (void)state;
    assert_non_null(shared);
    memset(shared, 0, bytes);
    for (int p = 0; p < CROWD; p++) {
        size_t room = RANKS * (size_t)MOST;
        ranks[p] = (struct rank){
            .me = p, .size = RANKS, .crowded = true, .shared = shared, .hot = true, .room = room,
            .sends = malloc(room), .recvs = malloc(room)
        };
        assert_true(ranks[p].sends && ranks[p].recvs);
    }
    return 0;
}

static int close_ranks(void **state)
{
    (void)state;
    free(ranks[0].shared);
    for (int p = 0; p < CROWD; p++) {
        free(ranks[p].sends);
        free(ranks[p].recvs);
    }
    return 0;
}

static void *live(void *arg)
{
    struct rank *r = arg;
    for (int i = 0; i < TIMES; i++) {
        if (i)
            operation_fill(r);
        fetch_add32(&begun, 1);
        now(r, 1);
        fetch_add64(&wrong, operation_wrong(r));
        fetch_add32(&gone, 1);
    }
    return NULL;
}

static void begin(int p)
{
    assert_int_equal(pthread_create(&threads[p], NULL, live, &ranks[p]), 0);
}

static void prepare(enum operation_id op, size_t bytes, pair_function form)
{
    now = form;
    store_release64(&wrong, 0);
    store_release32(&begun, 0);
    store_release32(&gone, 0);
    for (int p = 0; p < CROWD; p++) {
        ranks[p].op = op;
        ranks[p].bytes = bytes;
        operation_fill(&ranks[p]);
    }
}

static void end(int size)
{
    for (int p = 0; p < size; p++)
        pthread_join(threads[p], NULL);
    assert_int_equal(load_acquire64(&wrong), 0);
}

/* One after the other in the same words and blocks: both give, one gives, the other gives. */
static void test_results_are_right(void **state)
{
    static const size_t sizes[] = { 4, 48, 52, (32 << 10) + 4, 512 << 10, 600 << 10, MOST };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int form = 0; form < FORMS; form++)
            for (int op = OP_ALL_REDUCE; op < OPS; op++) {
                prepare((enum operation_id)op, sizes[i], forms[form]);
                for (int p = 0; p < RANKS; p++)
                    begin(p);
                end(RANKS);
            }
}

/* Of each collective either rank comes first, and stays, and its result is as it was. */
static void test_all_or_none(void **state)
{
    static const size_t sizes[] = { 4, 16 << 10, 256 << 10 };
    (void)state;
    for (int op = OP_ALL_REDUCE; op < OP_SENDRECV; op++)
        for (int form = 0; form < FORMS; form++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                for (int first = 0; first < RANKS; first++) {
                    struct rank *r = &ranks[first];
                    prepare((enum operation_id)op, sizes[i], forms[form]);
                    size_t room = operation_recv_bytes(r->op, RANKS, r->bytes);
                    char *before = malloc(room);
                    assert_non_null(before);
                    memcpy(before, r->recv, room);
                    begin(first);
                    while (load_acquire32(&begun) == 0)
                        sched_yield();
                    for (int k = 0; k < 20; k++)
                        sched_yield();
                    assert_int_equal(load_acquire32(&gone), 0);
                    assert_memory_equal(before, r->recv, room);
                    begin(!first);
                    end(RANKS);
                    free(before);
                }
}

/* Several pairs, each in words and blocks of its own; who has no partner is done at once. */
static void test_pairs(void **state)
{
    static const size_t sizes[] = { 4, 52, (32 << 10) + 4, 600 << 10 };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int form = 0; form < FORMS; form++)
            for (int size = CROWD - 1; size <= CROWD; size++) {
                for (int p = 0; p < size; p++)
                    ranks[p].size = size;
                prepare(OP_PINGPONG, sizes[i], forms[form]);
                for (int p = 0; p < size; p++)
                    begin(p);
                end(size);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_are_right),
        cmocka_unit_test(test_all_or_none),
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, open_ranks, close_ranks);
}
