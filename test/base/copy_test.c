/* The streaming copy moves exactly its bytes, at every alignment of both sides and every length around its lines of 64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/copy.h"

enum { GUARD = 128, LINES = 5 * 64 };

static void test_every_alignment(void **state)
{
    (void)state;
    static _Alignas(64) unsigned char from[GUARD + LINES], to[2 * GUARD + LINES];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(i * 7 + 1);
    for (size_t source = 0; source < 64; source += 3)
        for (size_t target = 0; target < 64; target++)
            for (size_t bytes = 0; bytes <= LINES - 64; bytes += bytes < 70 ? 1 : 37) {
                memset(to, 0xee, sizeof to);
                copy_streaming(to + GUARD + target, from + source, bytes);
                assert_memory_equal(to + GUARD + target, from + source, bytes);
                for (size_t i = 0; i < sizeof to; i++)
                    if (i < GUARD + target || i >= GUARD + target + bytes)
                        assert_int_equal(to[i], 0xee);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_alignment) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
