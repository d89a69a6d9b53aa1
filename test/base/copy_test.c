/* Each copy moves exactly its bytes: the streaming one at every alignment of both sides and
 * every length around its lines of 64, all wherever the two lie to each other within their pages,
 * and around the lengths from which on one instruction and the C library copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/copy.h"
#include "base/staged.h"

#include <stdlib.h>

enum { GUARD = 128, LINES = 5 * 64, PAGE = 4096, LONG = 2300 };

static unsigned char *filled(unsigned char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        from[i] = (unsigned char)(i * 7 + i / 251 + 1);
    return from;
}

static void check(const unsigned char *to, size_t room, const unsigned char *at,
                  const unsigned char *from, size_t bytes)
{
    assert_memory_equal(at, from, bytes);
    for (const unsigned char *p = to; p < to + room; p++)
        if (p < at || p >= at + bytes)
            assert_int_equal(*p, 0xee);
}

static void test_every_alignment(void **state)
{
    (void)state;
    static _Alignas(64) unsigned char from[GUARD + LINES], to[2 * GUARD + LINES];
    filled(from, sizeof from);
    for (size_t source = 0; source < 64; source += 3)
        for (size_t target = 0; target < 64; target++)
            for (size_t bytes = 0; bytes <= LINES - 64; bytes += bytes < 70 ? 1 : 37) {
                memset(to, 0xee, sizeof to);
                copy_streaming(to + GUARD + target, from + source, bytes);
                check(to, sizeof to, to + GUARD + target, from + source, bytes);
            }
}

static void test_beside(void **state)
{
    (void)state;
    static _Alignas(64) unsigned char from[LONG + 64], kept[LONG + 64], to[2 * GUARD + LONG + 64],
        past[2 * GUARD + LONG + 64];
    filled(from, sizeof from);
    filled(kept, sizeof kept);
    memset(kept, 0x5a, 100);
    const size_t lengths[] = { 0, 1, 63, 511, 512, 1023, 1055, 1056, 1057, 1100, 2079, 2080, LONG };
    for (size_t at = 0; at < 64; at += 5)
        for (size_t other = 0; other < 64; other += 7)
            for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
                memset(to, 0xee, sizeof to);
                memset(past, 0xee, sizeof past);
                copy_beside(to + GUARD + at, from + other, past + GUARD + other, kept + at,
                            lengths[k]);
                check(to, sizeof to, to + GUARD + at, from + other, lengths[k]);
                check(past, sizeof past, past + GUARD + other, kept + at, lengths[k]);
            }
}

static void test_every_distance(void **state)
{
    enum { MOST = 4200 };
    (void)state;
    static _Alignas(4096) unsigned char from[2 * PAGE], to[3 * PAGE];
    filled(from, sizeof from);
    const size_t sources[] = { 0, 1, 15, 16, 40 },
                 lengths[] = { 511, 512, 2047, 2048, 2049, 2111, 2176, LONG, 4096, 4097, MOST };
    copy_fn *const copies[] = { copy_plain, copy_by_loop, copy_over_read, copy_streaming };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        for (size_t behind = 0; behind < PAGE; behind += behind < 66 ? 1 : 509)
            for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
                unsigned char *at = to + sources[i] + behind;
                for (size_t c = 0; c < sizeof copies / sizeof *copies; c++) {
                    memset(to, 0xee, sizeof to);
                    copies[c](at, from + sources[i], lengths[k]);
                    check(to, sizeof to, at, from + sources[i], lengths[k]);
                }
            }
}

static void test_long(void **state)
{
    (void)state;
    enum { MOST = (1 << 20) + 200 };
    static unsigned char from[MOST + GUARD], to[MOST + 2 * GUARD];
    filled(from, sizeof from);
    for (size_t i = 0; i < 24; i++) {
        size_t target = 5 * i % 67, source = 11 * i % 64, bytes = MOST - 17 * i;
        memset(to, 0xee, sizeof to);
        copy_plain(to + target, from + source, bytes);
        check(to, sizeof to, to + target, from + source, bytes);
    }
}

/* Staging goes past the caches by trial, but not where the plain copy takes lines over unread: its
 * first times, in pages that are new, would decide for the other way. */
static void staging_tries_only_what_may_win(void **state)
{
    enum { MOST = 2 << 20 };
    char *from = malloc(MOST), *to = malloc(MOST);
    (void)state;
    assert_true(from && to);
    assert_false(copy_takes_over(STAGED_LEAST / 4));
    assert_false(copy_takes_over(MOST));
    assert_int_equal(copy_takes_over(MOST / 2), copy_takes_over(STAGED_LEAST));
    for (size_t bytes = STAGED_LEAST; bytes <= MOST; bytes *= 2)
        for (int loop = 0; loop < 2; loop++) {
            struct tuner ways = { 0 };
            for (int i = 0; i < TUNER_TRIES; i++) {
                memset(from, i + loop + 1, bytes);
                staged_copy(&ways, 0, loop ? copy_by_loop : copy_plain, to, from, bytes);
                assert_memory_equal(to, from, bytes);
            }
            uint32_t tries = COPY_STREAMS && (loop || !copy_takes_over(bytes)) ? TUNER_TRIES : 0;
            assert_int_equal(ways.n, tries);
        }
    free(from);
    free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_alignment),
                                        cmocka_unit_test(test_every_distance),
                                        cmocka_unit_test(test_beside),
                                        cmocka_unit_test(test_long),
                                        cmocka_unit_test(staging_tries_only_what_may_win) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
