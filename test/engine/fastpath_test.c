/* ctest: timeout=60
 * What a call of a few bytes leaves behind, and what it is computed with: the second of two alike
 * goes a shorter way than the first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tutti.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { FLUSH = 0x8040 };                             /* flush to zero, and denormals are zeros */
static void flush(void) { _mm_setcsr(_mm_getcsr() | FLUSH); }
#else
static void flush(void) { }
#endif

/* words of a line; the first that is a place's */
enum { RANKS = 2, TIMES = 20, LINE = 11, PLACES = 5, MANY = 100000 };

/* 2^-149 of each rank: with either rank's modes nothing would be left. As words, for comparing
 * floats would flush, too. */
static int sum_of_denormals(tutti_comm *world, void *arg)
{
    const uint32_t least = 1;
    (void)arg;
    if (tutti_rank(world) == 1)
        flush();
    for (int i = 0; i < TIMES; i++) {
        uint32_t sum = 0;
        int r = tutti_all_reduce(&least, &sum, 1, TUTTI_F32, TUTTI_SUM, world, NULL);
        if (r < 0 || sum != RANKS)
            return 1;
    }
    return 0;
}

static void a_rank_that_flushes_denormals_gets_what_the_others_get(void **state)
{
    (void)state;
    assert_int_equal(tutti_spawn(RANKS, sum_of_denormals, NULL, NULL, NULL), 0);
}

/* 88 bytes lie where larger operations say in what part of the arena their buffers are, or at what
   address: so a place that would be believed, all over it, is left there by both parities of an
   operation's number, and then come operations that look. */
static int lines_and_larger(tutti_comm *world, void *arg)
{
    static uint32_t give[MANY], get[RANKS * MANY];
    uint64_t line[LINE], sum[LINE];
    int me = tutti_rank(world);
    (void)arg;
    for (int i = 0; i < TIMES; i++) {
        for (int k = 0; k < LINE; k++)
            line[k] = (k - PLACES) % 3 == 0 ? 4096 + (uint64_t)i * 4096
                : (k - PLACES) % 3 == 1 ? 0
                : UINT64_C(1) << 40;
        for (int parity = 0; parity < 2; parity++) {
            int r = tutti_all_reduce(line, sum, LINE, TUTTI_U64, TUTTI_MAX, world, NULL);
            if (r < 0 || memcmp(line, sum, sizeof sum) != 0)
                return 1;
        }
        size_t n = i % 4 < 2 ? MANY : 3;
        for (size_t k = 0; k < n; k++)
            give[k] = (uint32_t)(k + (size_t)(me + i));
        int r = i % 2 ? tutti_all_gather(give, get, n, TUTTI_U32, world, NULL)
                      : tutti_all_reduce(give, get, n, TUTTI_U32, TUTTI_SUM, world, NULL);
        for (size_t k = 0; k < n && r == 0; k++)
            r = i % 2 ? get[k] != k + (size_t)i || get[n + k] != k + (size_t)i + 1
                      : get[k] != 2 * (k + (size_t)i) + 1;
        if (r)
            return 2;
    }
    return 0;
}

static void what_a_line_said_is_nobodys_place(void **state)
{
    (void)state;
    assert_int_equal(tutti_spawn(RANKS, lines_and_larger, NULL, NULL, NULL), 0);
}

/* One property of the call at a time is another than the last time, now and then none, through the
 * same few buffers. */
static int nearly_alike(tutti_comm *world, void *arg)
{
    enum { BUFFERS = 2, MOST = 1100, CALLS = 4000 };
    static union { uint32_t u[MOST]; float f[MOST]; } give[BUFFERS], get[BUFFERS];
    const size_t counts[] = { 1, 2, 22, 23, 256, 1000, MOST, 3 };
    int me = tutti_rank(world), size = tutti_size(world), send = 0, recv = 0, floats = 0,
        largest = 0, which = 0;
    uint32_t seed = 7;                               /* the same in all ranks */
    (void)arg;
    for (int i = 0; i < CALLS; i++) {
        seed = seed * 1664525 + 1013904223;
        switch (seed >> 28) {
        case 0: send ^= 1; break;
        case 1: recv ^= 1; break;
        case 2: floats ^= 1; break;
        case 3: largest ^= 1; break;
        case 4: which = (int)(seed >> 8) & 7; break;
        default: break;
        }
        size_t n = counts[which];
        for (size_t k = 0; k < n; k++) {
            uint32_t x = (uint32_t)i + (uint32_t)k + (uint32_t)me;
            if (floats)
                give[send].f[k] = (float)x;
            else
                give[send].u[k] = x;
        }
        int r = tutti_all_reduce(&give[send], &get[recv], n, floats ? TUTTI_F32 : TUTTI_U32,
                                 largest ? TUTTI_MAX : TUTTI_SUM, world, NULL);
        for (size_t k = 0; k < n && r == 0; k++) {
            uint32_t first = (uint32_t)i + (uint32_t)k, last = first + (uint32_t)size - 1,
                     sum = (first + last) * (uint32_t)size / 2;
            uint32_t expected = largest ? last : sum;
            r = floats ? get[recv].f[k] != (float)expected : get[recv].u[k] != expected;
        }
        if (r)
            return 1;
    }
    return 0;
}

static void calls_nearly_like_the_last_are_taken_for_what_they_are(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 3; ranks++)
        assert_int_equal(tutti_spawn(ranks, nearly_alike, NULL, NULL, NULL), 0);
    /* also of one element, which goes by a line by itself */
    setenv("TUTTI_ALGORITHM", "all_reduce:-inf=eager", 1);
    for (int ranks = 1; ranks <= 3; ranks++)
        assert_int_equal(tutti_spawn(ranks, nearly_alike, NULL, NULL, NULL), 0);
    unsetenv("TUTTI_ALGORITHM");
}

enum { KINDS = 9, WORDS = 600, WIDEST = 3 };

/* Element k of block b of what rank p gives in call i. */
static uint32_t given(int i, int p, size_t b, size_t k)
{
    return (uint32_t)(i * 31 + p * 7 + (int)b * 3) + (uint32_t)k;
}

/* What of ranks 0 … ranks - 1 comes out of their block b. */
static uint32_t folded(int i, int ranks, size_t b, size_t k, bool largest)
{
    uint32_t all = 0;
    for (int p = 0; p < ranks; p++) {
        uint32_t x = given(i, p, b, k);
        all = largest ? (x > all ? x : all) : all + x;
    }
    return all;
}

struct alike { int kind, root; size_t n; bool largest; };

static int alike_call(tutti_comm *world, const struct alike *a, uint32_t *give, uint32_t *get)
{
    tutti_op op = a->largest ? TUTTI_MAX : TUTTI_SUM;
    switch (a->kind) {
    case 0: return tutti_broadcast(give, a->n, TUTTI_U32, a->root, world, NULL);
    case 1: return tutti_reduce(give, get, a->n, TUTTI_U32, op, a->root, world, NULL);
    case 2: return tutti_gather(give, get, a->n, TUTTI_U32, a->root, world, NULL);
    case 3: return tutti_scatter(give, get, a->n, TUTTI_U32, a->root, world, NULL);
    case 4: return tutti_all_gather(give, get, a->n, TUTTI_U32, world, NULL);
    case 5: return tutti_all_to_all(give, get, a->n, TUTTI_U32, world, NULL);
    case 6: return tutti_reduce_scatter(give, get, a->n, TUTTI_U32, op, world, NULL);
    case 7: return tutti_scan(give, get, a->n, TUTTI_U32, op, world, NULL);
    default: return tutti_exscan(give, get, a->n, TUTTI_U32, op, world, NULL);
    }
}

/* What element k of block b of the result must be; false: no matter. */
static bool alike_wants(const struct alike *a, int i, int me, int size, size_t b, size_t k,
                        uint32_t *wanted)
{
    bool root = me == a->root;
    switch (a->kind) {
    case 0: *wanted = given(i, a->root, 0, k); return b == 0;
    case 1: *wanted = folded(i, size, 0, k, a->largest); return b == 0 && root;
    case 2: *wanted = given(i, (int)b, 0, k); return root;
    case 3: *wanted = given(i, a->root, (size_t)me, k); return b == 0;
    case 4: *wanted = given(i, (int)b, 0, k); return true;
    case 5: *wanted = given(i, (int)b, (size_t)me, k); return true;
    case 7: *wanted = folded(i, me + 1, 0, k, a->largest); return b == 0;
    case 8: *wanted = folded(i, me, 0, k, a->largest); return b == 0 && me > 0;
    default: *wanted = folded(i, size, (size_t)me, k, a->largest); return b == 0;
    }
}

static int alike_judge(const struct alike *a, int i, int me, int size, const uint32_t *get)
{
    for (size_t b = 0; b < (size_t)size; b++)
        for (size_t k = 0; k < a->n; k++) {
            uint32_t wanted = 0;
            if (alike_wants(a, i, me, size, b, k, &wanted) && get[b * a->n + k] != wanted)
                return 1;
        }
    return 0;
}

/* As above, for all collectives of even parts: kind, root, count and operation change now and then,
 * the buffers hardly ever. */
static int every_kind(tutti_comm *world, void *arg)
{
    static uint32_t give[2][WIDEST * WORDS], get[2][WIDEST * WORDS];
    const size_t counts[] = { 1, 2, 4, 7, 16, 22, 64, WORDS };
    int me = tutti_rank(world), size = tutti_size(world), with = 0;
    struct alike a = { .n = 1 };
    uint32_t seed = 11;
    (void)arg;
    for (int i = 0; i < 6000; i++) {
        seed = seed * 1664525 + 1013904223;
        switch (seed >> 28) {
        case 0: with ^= 1; break;
        case 1: a.root = (a.root + 1) % size; break;
        case 2: a.largest = !a.largest; break;
        case 3: a.n = counts[seed >> 8 & 7]; break;
        case 4: a.kind = (int)(seed >> 8 & 0xff) % KINDS; break;
        default: break;
        }
        for (size_t b = 0; b < (size_t)size; b++)
            for (size_t k = 0; k < a.n; k++)
                give[with][b * a.n + k] = given(i, me, b, k);
        if (alike_call(world, &a, give[with], get[with]) < 0
            || alike_judge(&a, i, me, size, a.kind ? get[with] : give[with]))
            return 1;
    }
    return 0;
}

static void calls_of_every_kind_nearly_like_the_last_are_taken_for_what_they_are(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= WIDEST; ranks++)
        assert_int_equal(tutti_spawn(ranks, every_kind, NULL, NULL, NULL), 0);
}

/* After many that were alike, one rank wants something else with the same buffers: nobody gets
 * a result. */
static int then_another(tutti_comm *world, void *arg)
{
    static float give[1024], get[1024];
    size_t n = *(const size_t *)arg;
    int r = 0;
    for (int i = 0; i < TIMES && r == 0; i++)
        r = tutti_all_reduce(give, get, n, TUTTI_F32, TUTTI_SUM, world, NULL);
    if (r < 0)
        return 1;
    r = tutti_all_reduce(give, get, n, TUTTI_F32, tutti_rank(world) ? TUTTI_MAX : TUTTI_SUM, world,
                         NULL);
    return r < 0 ? 0 : 2;
}

static void another_operation_with_the_same_buffers_is_a_mismatch(void **state)
{
    (void)state;
    size_t counts[] = { 1, 20, 200, 1024 };
    for (int i = 0; i < 4; i++)
        assert_int_equal(tutti_spawn(RANKS, then_another, &counts[i], NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_flushes_denormals_gets_what_the_others_get),
        cmocka_unit_test(what_a_line_said_is_nobodys_place),
        cmocka_unit_test(calls_nearly_like_the_last_are_taken_for_what_they_are),
        cmocka_unit_test(calls_of_every_kind_nearly_like_the_last_are_taken_for_what_they_are),
        cmocka_unit_test(another_operation_with_the_same_buffers_is_a_mismatch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
