/* Each name and text is that of a C library that has them. */
#include "base/system_names.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void same(const char *ours, const char *theirs)
{
    if (theirs)
        assert_string_equal(ours ? ours : "none", theirs);
    else
        assert_null(ours);
}

static void test_errors(void **state)
{
    (void)state;
    for (int code = 1; code < 300; code++) {
        same(system_error_name(code), strerrorname_np(code));
        same(system_error_text(code), strerrordesc_np(code));
    }
}

static void test_signals(void **state)
{
    (void)state;
    for (int number = -1; number < 300; number++)
        same(system_signal_name(number), sigabbrev_np(number));
}

static void test_no_such_number(void **state)
{
    (void)state;
    const int none[] = { 0, -1, 41, 58, 300, INT_MAX, INT_MIN };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_null(system_error_name(none[i]));
        assert_null(system_error_text(none[i]));
    }
    assert_null(system_signal_name(INT_MAX));
    assert_null(system_signal_name(INT_MIN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_no_such_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
