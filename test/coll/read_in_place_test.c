/* A small collective out of the arena is read where it lies: so its owner stays until its peers
 * have read it, and goes on if they die. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "support/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 131072, COUNT = MOST / 8 };            /* bytes, i32 */
enum { GONE, READING };                              /* words of the page */
/* for a lender that leaves too early: one that is right costs a test that long */
enum { PATIENCE_NS = 50000000 };

static int last_one, dies;

static int value(int rank, size_t i) { return (int)(i * 7) + (rank + 1) * 1000003; }

/* The last rank reads slowly: the lender has all the time that it needs to leave, and to write its
 * buffer anew; or it dies of it. */
static void add_slowly(const void *in, void *inout, size_t count, tutti_type type)
{
    (void)type;
    if (last_one && ranks_count(READING) == 0) {
        if (dies)
            ranks_die();
        for (uint64_t began = clock_ns();
             !load_acquire32(&page->word[GONE]) && clock_ns() - began < PATIENCE_NS;) {
        }
    }
    for (size_t i = 0; i < count; i++) {
        int a, b;
        memcpy(&a, (const char *)in + i * sizeof a, sizeof a);
        memcpy(&b, (char *)inout + i * sizeof b, sizeof b);
        a += b;
        memcpy((char *)inout + i * sizeof a, &a, sizeof a);
    }
}

/* No expectations here: the program of a rank that is to die has to come to that first. */
static int reduce_slowly(tutti_comm *world, int rank, int *result)
{
    int size = tutti_size(world), *send = tutti_alloc(MOST, world), wrong = 0;
    static int recv[COUNT];
    tutti_op op;
    last_one = rank == size - 1;
    CHECK(send != NULL);
    CHECK_IS(tutti_op_create(add_slowly, 1, &op, world), 0);
    for (size_t i = 0; i < COUNT; i++)
        send[i] = value(rank, i);
    *result = tutti_all_reduce(send, recv, COUNT, TUTTI_I32, op, world, NULL);
    memset(send, 0, MOST);
    if (rank == 0)
        ranks_say(GONE, 1);
    for (size_t i = 0; i < COUNT; i++) {
        int sum = 0;
        for (int p = 0; p < size; p++)
            sum += value(p, i);
        wrong += recv[i] != sum;
    }
    CHECK_IS(wrong, 0);
    return 0;
}

static int body_stays(tutti_comm *world, int rank)
{
    int r;
    if (reduce_slowly(world, rank, &r))
        return 1;
    CHECK_IS(r, 0);
    return 0;
}

static int body_dies(tutti_comm *world, int rank)
{
    int r;
    dies = 1;
    if (reduce_slowly(world, rank, &r))
        return 1;
    CHECK_IS(r, 0);                             /* everybody had arrived: all who live have it */
    CHECK(tutti_barrier(world, NULL) < 0);
    return 0;
}

/* Every kind, of sizes on both sides of where lending begins, with a CPU each and without; what is
 * given is written anew as soon as a call is over. */
static int body_kinds(tutti_comm *world, int rank)
{
    static const size_t counts[] = { 2047, 2048, 2049, 4100, COUNT / 4, COUNT / 2, COUNT + 1 };
    int size = tutti_size(world), *x = tutti_alloc((size_t)size * MOST, world),
        *y = tutti_alloc((size_t)size * MOST, world);
    CHECK(x != NULL && y != NULL);
    for (int round = 0; round < 448; round++) {
        size_t n = counts[round % 7];
        int root = round % size, wrong = 0, r = 0, kind = round / 7 % 8;
        for (size_t i = 0; i < n * (size_t)size; i++)
            x[i] = value(rank, i) + round;
        switch (kind) {
        case 0: r = tutti_all_gather(x, y, n, TUTTI_I32, world, NULL); break;
        case 1: r = tutti_reduce_scatter(x, y, n, TUTTI_I32, TUTTI_SUM, world, NULL); break;
        case 2: r = tutti_scan(x, y, n, TUTTI_I32, TUTTI_SUM, world, NULL); break;
        case 3: r = tutti_all_to_all(x, y, n, TUTTI_I32, world, NULL); break;
        case 4: r = tutti_gather(x, y, n, TUTTI_I32, root, world, NULL); break;
        case 5: r = tutti_scatter(x, y, n, TUTTI_I32, root, world, NULL); break;
        case 6: r = tutti_reduce(x, y, n, TUTTI_I32, TUTTI_SUM, root, world, NULL); break;
        default:
            memcpy(y, x, n * 4);
            r = tutti_broadcast(y, n, TUTTI_I32, root, world, NULL);
            break;
        }
        memset(x, 0, (size_t)size * MOST);
        CHECK_IS(r, 0);
        for (size_t i = 0; i < n; i++) {
            int sum = 0, below = 0, all = 0;
            for (int p = 0; p < size; p++) {
                sum += value(p, (size_t)rank * n + i) + round;
                below += p <= rank ? value(p, i) + round : 0;
                all += value(p, i) + round;
                wrong += kind == 0 && y[(size_t)p * n + i] != value(p, i) + round;
                wrong += kind == 3
                    && y[(size_t)p * n + i] != value(p, (size_t)rank * n + i) + round;
                wrong += kind == 4 && rank == root && y[(size_t)p * n + i] != value(p, i) + round;
            }
            wrong += (kind == 1 && y[i] != sum) || (kind == 2 && y[i] != below)
                || (kind == 5 && y[i] != value(root, (size_t)rank * n + i) + round)
                || (kind == 6 && rank == root && y[i] != all)
                || (kind == 7 && y[i] != value(root, i) + round);
        }
        CHECK_IS(wrong, 0);
    }
    return 0;
}

/* Blocks of different lengths, the shortest at the very end of the arena: where the longest
 * would not fit. */
enum { SPAN = 8 << 20 };
static int body_end(tutti_comm *world, void *arg)
{
    enum { BLOCK = 8192 };
    int size = tutti_size(world), rank = tutti_rank(world), *send = NULL, wrong = 0;
    (void)arg;
    size_t counts[2] = { COUNT, BLOCK / 4 };
    int *recv[2] = { malloc(MOST), malloc(MOST) };
    CHECK(size == 2 && recv[0] && recv[1]);
    if (rank == 0)
        send = tutti_alloc(MOST, world);
    int *all[SPAN / BLOCK], n = 0;
    /* what there is; the last of it */
    while (rank == 1 && n < SPAN / BLOCK && (all[n] = tutti_alloc(BLOCK, world)) != NULL) {
        send = all[n] > send ? all[n] : send;
        n++;
    }
    while (n-- > 0)
        if (all[n] != send)
            tutti_free(all[n], world);
    CHECK(send != NULL);
    for (size_t i = 0; i < counts[rank]; i++)
        send[i] = value(rank, i);
    CHECK_IS(tutti_all_gather_v(send, counts[rank], (void *const *)recv, counts, TUTTI_I32, world,
                                NULL),
             0);
    for (int p = 0; p < 2; p++)
        for (size_t i = 0; i < counts[p]; i++)
            wrong += recv[p][i] != value(p, i);
    CHECK_IS(wrong, 0);
    free(recv[0]);
    free(recv[1]);
    return 0;
}

static void test_a_lender_at_the_end(void **state)
{
    (void)state;
    const tutti_options small = { .span_bytes = SPAN };
    int status[2];
    assert_int_equal(tutti_spawn(2, body_end, NULL, &small, status), 0);
}

static void test_a_lender_stays(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_stays, 0), 0);
}

static void test_a_lender_goes_when_its_reader_is_dead(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_dies, 1u << 1), 0);
}

static void test_every_kind(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_kinds, 0), 0);
    assert_int_equal(ranks_run(3, body_kinds, 0), 0);
    assert_int_equal(ranks_run(4, body_kinds, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lender_stays),
        cmocka_unit_test(test_a_lender_goes_when_its_reader_is_dead),
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_a_lender_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
