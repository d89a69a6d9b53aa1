/* A digest must differ wherever two buffers of one length differ in one place, and practically
 * always elsewhere: every single bit, every length of a tail, every alignment, swapped words, zeros
 * of different lengths, seeds. */
#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 300 };

static void fill(unsigned char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)(i * 151 + 7);
}

static void every_bit_counts(void **state)
{
    (void)state;
    unsigned char bytes[MOST];
    fill(bytes, sizeof bytes);
    for (size_t n = 1; n <= MOST; n += n < 100 ? 1 : 37) {
        uint64_t whole = digest(bytes, n, 1);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            assert_true(digest(bytes, n, 1) != whole);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        assert_true(digest(bytes, n, 1) == whole);
    }
}

/* What lies behind the end is no part of it, and neither is where it begins. */
static void only_the_bytes_count(void **state)
{
    (void)state;
    unsigned char bytes[MOST + 64], moved[MOST + 64];
    fill(bytes, sizeof bytes);
    for (size_t n = 0; n <= 100; n++)
        for (size_t shift = 0; shift < 33; shift++) {
            memset(moved, (int)shift, sizeof moved);
            memcpy(moved + shift, bytes, n);
            assert_true(digest(moved + shift, n, 9) == digest(bytes, n, 9));
        }
    assert_true(digest(NULL, 0, 3) == digest(bytes, 0, 3));
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Lengths, seeds, single bytes and pairs of bits set in zeros: all of them apart. */
static void no_two_alike(void **state)
{
    (void)state;
    enum { MANY = 60000, BYTES = 43 };
    uint64_t *all = malloc(MANY * sizeof *all);
    unsigned char zeros[1024] = { 0 };
    size_t n = 0;
    assert_non_null(all);
    for (size_t bytes = 0; bytes <= sizeof zeros; bytes++)
        all[n++] = digest(zeros, bytes, 0);
    for (uint64_t seed = 1; seed < 1000; seed++)
        all[n++] = digest(zeros, 40, seed);
    for (size_t one = 0; one < 8 * BYTES; one++)
        for (size_t two = 0; two < one && n < MANY; two++) {
            zeros[one / 8] ^= (unsigned char)(1 << one % 8);
            zeros[two / 8] ^= (unsigned char)(1 << two % 8);
            all[n++] = digest(zeros, BYTES, 5);
            memset(zeros, 0, BYTES);
        }
    qsort(all, n, sizeof *all, by_value);
    for (size_t i = 1; i < n; i++)
        assert_true(all[i] != all[i - 1]);
    free(all);
}

/* Differences of two to five bits, in any words: none takes another one back. */
static void tail_bits_apart(void **state)
{
    (void)state;
    enum { MANY = 200000, BYTES = 72 };
    uint64_t *all = malloc(MANY * sizeof *all), random = 1;
    assert_non_null(all);
    for (size_t n = 0; n < MANY; n++) {
        unsigned char zeros[BYTES] = { 0 };
        uint64_t bits = 2 + n % 4;
        memcpy(zeros, &n, 3);                        /* so that no two buffers are alike */
        for (uint64_t i = 0; i < bits; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            uint64_t bit = 64 + (random >> 33) % (8 * (BYTES - 8));
            zeros[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        all[n] = digest(zeros, BYTES, 7);
    }
    qsort(all, MANY, sizeof *all, by_value);
    for (size_t i = 1; i < MANY; i++)
        assert_true(all[i] != all[i - 1]);
    free(all);
}

static void order_counts(void **state)
{
    (void)state;
    uint64_t words[16], whole;
    for (size_t i = 0; i < 16; i++)
        words[i] = i * 1000003 + 1;
    whole = digest(words, sizeof words, 0);
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < i; j++) {
            uint64_t keep = words[i];
            words[i] = words[j];
            words[j] = keep;
            assert_true(digest(words, sizeof words, 0) != whole);
            words[j] = words[i];
            words[i] = keep;
        }
    assert_true(digest(words, sizeof words, 0) == whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_counts), cmocka_unit_test(only_the_bytes_count),
        cmocka_unit_test(no_two_alike), cmocka_unit_test(tail_bits_apart),
        cmocka_unit_test(order_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
