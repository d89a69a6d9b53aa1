/* Cutting a vector: whatever the sizes, the pieces of all rounds are disjoint, in order, whole, and
 * within their limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pattern/chunk.h"

#include <string.h>

enum { MOST_COUNT = 700 };

/* Small vectors, whole: each element lies in exactly one piece, and in the one that the
 * map says. */
static void each_element_once(void **state)
{
    (void)state;
    for (size_t count = 0; count < MOST_COUNT; count += count < 70 ? 1 : 37)
        for (size_t parts = 1; parts <= 9; parts++)
            for (size_t piece = 1; piece <= 96; piece += piece < 10 ? 1 : 17) {
                unsigned char seen[MOST_COUNT] = { 0 };
                size_t next = 0;
                uint64_t rounds = chunk_rounds(count, parts, piece);
                for (uint64_t r = 0; r < rounds; r++)
                    for (size_t p = 0; p < parts; p++) {
                        struct chunk c = chunk_of(count, parts, piece, r, p);
                        assert_true(c.count <= piece && c.first + c.count <= count);
                        if (c.count)
                            /* filled from the front, without a hole */
                            assert_int_equal(c.first, next);
                        next += c.count;
                        for (size_t i = 0; i < c.count; i++)
                            seen[c.first + i]++;
                    }
                assert_int_equal(next, count);
                for (size_t i = 0; i < count; i++)
                    assert_int_equal(seen[i], 1);
                assert_int_equal(rounds, (count + parts * piece - 1) / (parts * piece));
            }
}

static void the_last_round_may_be_short(void **state)
{
    (void)state;
    /* 10 elements, rounds of 2 x 3: the second has 3 and 1. */
    assert_int_equal(chunk_rounds(10, 2, 3), 2);
    assert_int_equal(chunk_of(10, 2, 3, 1, 0).first, 6);
    assert_int_equal(chunk_of(10, 2, 3, 1, 0).count, 3);
    assert_int_equal(chunk_of(10, 2, 3, 1, 1).first, 9);
    assert_int_equal(chunk_of(10, 2, 3, 1, 1).count, 1);
    /* 6 elements, rounds of 3 x 4: 4, 2 and none; an empty piece lies at the end. */
    assert_int_equal(chunk_of(6, 3, 4, 0, 2).first, 6);
    assert_int_equal(chunk_of(6, 3, 4, 0, 2).count, 0);
    assert_int_equal(chunk_rounds(0, 3, 4), 0);
    assert_int_equal(chunk_of(0, 3, 4, 0, 0).count, 0);
}

/* A piece is whole cache lines, so that two ranks never write one; no more than asked for; and one
 * round where that is enough. */
static void pieces(void **state)
{
    (void)state;
    static const size_t widths[] = { 1, 2, 4, 8, 16, 64, 128 }, mosts[] = { 4096, 32768, 65536 };
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
        for (size_t m = 0; m < sizeof mosts / sizeof mosts[0]; m++)
            for (size_t parts = 1; parts <= 64; parts = parts < 8 ? parts + 1 : parts * 2)
                for (size_t count = 0; count < 600000;
                     count = count < 200 ? count + 1 : count * 2 + 1) {
                    size_t width = widths[w], most = mosts[m] / width,
                           piece = chunk_piece(count, parts, width, most);
                    assert_true(piece >= 1 && piece <= most);
                    if (count && piece * width % 64 != 0)
                        fail_msg("a piece of %zu x %zu bytes is no whole number of lines", piece,
                                 width);
                    if (count && count <= parts * most)
                        assert_int_equal(chunk_rounds(count, parts, piece), 1);
                    /* as small as it can be: with a line less in each it would take two rounds */
                    if (count && piece < most)
                        assert_true(parts * (piece - (width < 64 ? 64 / width : 1)) < count);
                }
    assert_int_equal(chunk_piece(0, 4, 4, 1000), 1);
}

/* More than 2^32 elements: nothing is cut to 32 bits. */
static void large(void **state)
{
    (void)state;
    size_t count = ((size_t)9 << 32) + 12345, piece = 65536, parts = 3;
    uint64_t rounds = chunk_rounds(count, parts, piece);
    assert_true(rounds == (count + parts * piece - 1) / (parts * piece));
    size_t sum = 0;
    for (uint64_t r = rounds - 2; r < rounds; r++)
        for (size_t p = 0; p < parts; p++)
            sum += chunk_of(count, parts, piece, r, p).count;
    assert_true(sum == count - (rounds - 2) * parts * piece);
    struct chunk last = chunk_of(count, parts, piece, rounds - 1, 0);
    assert_true(last.first == (rounds - 1) * parts * piece && last.first > ((size_t)8 << 32));
    assert_true(chunk_piece(count, 2, 1, SIZE_MAX) >= count / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_element_once), cmocka_unit_test(the_last_round_may_be_short),
        cmocka_unit_test(pieces), cmocka_unit_test(large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
