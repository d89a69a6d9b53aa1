/* Every row is whole, and a wrong value is told in a sentence that names the variable and what
 * it may be. */
#include "base/knob.h"

#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(enum knob_id id, const char *set, int result, int64_t value)
{
    char why[200] = "";
    int64_t v = -77;
    setenv(knob_row(id)->name, set, 1);
    assert_int_equal(knob_int(id, &v, why, sizeof why), result);
    assert_true(v == (result == 1 ? value : -77));
    assert_true((strlen(why) > 0) == (result == -EINVAL));
    unsetenv(knob_row(id)->name);
}

static void test_rows_are_whole(void **state)
{
    (void)state;
    for (int id = 0; id < KNOB_COUNT; id++) {
        const struct knob *row = knob_row((enum knob_id)id);
        assert_non_null(row);
        assert_non_null(row->name);
        assert_int_equal(strncmp(row->name, "TUTTI_", 6), 0);
        assert_non_null(row->fallback);
        assert_true(row->help && strlen(row->help) > 10 && !strchr(row->help, '\n'));
        assert_true(row->kind == KNOB_TEXT ? row->low == 0 && row->high == 0
                                           : row->low < row->high);
        for (int other = 0; other < id; other++)
            assert_string_not_equal(row->name, knob_row((enum knob_id)other)->name);
    }
    assert_null(knob_row(KNOB_COUNT));
}

static void test_unset_and_empty_are_not_set(void **state)
{
    (void)state;
    int64_t v = 5;
    const char *s = NULL;
    unsetenv("TUTTI_RANK");
    assert_int_equal(knob_int(KNOB_RANK, &v, NULL, 0), 0);
    setenv("TUTTI_RANK", "", 1);
    assert_int_equal(knob_int(KNOB_RANK, &v, NULL, 0), 0);
    assert_int_equal(v, 5);
    setenv("TUTTI_JOB", "", 1);
    assert_int_equal(knob_text(KNOB_JOB, &s), 0);
    assert_null(s);
    unsetenv("TUTTI_RANK");
    unsetenv("TUTTI_JOB");
}

static void test_ranges_hold_at_both_ends(void **state)
{
    (void)state;
    expect(KNOB_RANK, "0", 1, 0);
    expect(KNOB_RANK, "1023", 1, 1023);
    expect(KNOB_RANK, "1024", -EINVAL, 0);
    expect(KNOB_RANK, "-1", -EINVAL, 0);
    expect(KNOB_SIZE, "0", -EINVAL, 0);
    expect(KNOB_SIZE, "1024", 1, 1024);
    expect(KNOB_SIZE, "1025", -EINVAL, 0);
    expect(KNOB_SIZE, "18446744073709551617", -EINVAL, 0);
    expect(KNOB_SPIN_US, "1000000", 1, 1000000);
    expect(KNOB_FIRST_SEQ, "4294967290", 1, 4294967290);
}

static void test_durations_take_units(void **state)
{
    (void)state;
    expect(KNOB_TIMEOUT_MS, "30s", 1, 30000);
    expect(KNOB_TIMEOUT_MS, "500ms", 1, 500);
    expect(KNOB_TIMEOUT_MS, "500", 1, 500);
    expect(KNOB_WARN_MS, "-1", 1, -1);
    expect(KNOB_TIMEOUT_MS, "2147483647", 1, INT_MAX);
    expect(KNOB_TIMEOUT_MS, "2147483648", -EINVAL, 0);
    expect(KNOB_TIMEOUT_MS, "30 parsecs", -EINVAL, 0);
}

static void test_sizes_take_units(void **state)
{
    (void)state;
    expect(KNOB_SPAN_BYTES, "16M", 1, 16 << 20);
    expect(KNOB_SPAN_BYTES, "64k", 1, 65536);
    expect(KNOB_STORE_BYTES, "64M", 1, 64 << 20);
    expect(KNOB_STORE_BYTES, "1k", -EINVAL, 0);
    expect(KNOB_SPAN_BYTES, "65535", -EINVAL, 0);
    expect(KNOB_SPAN_BYTES, "2T", -EINVAL, 0);
    expect(KNOB_SPAN_BYTES, "18446744073709551615", -EINVAL, 0);
}

static void test_the_sentence(void **state)
{
    (void)state;
    char why[200];
    int64_t v;
    setenv("TUTTI_SPIN_US", "abc", 1);
    assert_int_equal(knob_int(KNOB_SPIN_US, &v, why, sizeof why), -EINVAL);
    assert_string_equal(why, "TUTTI_SPIN_US=abc: expected an integer between 0 and 1000000");
    char small[10];
    assert_int_equal(knob_int(KNOB_SPIN_US, &v, small, sizeof small), -EINVAL);
    assert_string_equal(small, "TUTTI_SPI");
    assert_int_equal(knob_int(KNOB_SPIN_US, &v, NULL, 0), -EINVAL);
    unsetenv("TUTTI_SPIN_US");
    setenv("TUTTI_SPAN_BYTES", "1", 1);
    assert_int_equal(knob_int(KNOB_SPAN_BYTES, &v, why, sizeof why), -EINVAL);
    assert_string_equal(why,
                        "TUTTI_SPAN_BYTES=1: expected a size such as 64k or 16M between 64 KiB and "
                        "1 TiB");
    unsetenv("TUTTI_SPAN_BYTES");
    setenv("TUTTI_TIMEOUT_MS", "soon", 1);
    assert_int_equal(knob_int(KNOB_TIMEOUT_MS, &v, why, sizeof why), -EINVAL);
    assert_string_equal(why,
                        "TUTTI_TIMEOUT_MS=soon: "
                        "expected a duration such as 30s, 500ms or 500, at most 2147483647 ms, or "
                        "never");
    unsetenv("TUTTI_TIMEOUT_MS");
}

static void test_text_is_the_environment_s(void **state)
{
    (void)state;
    const char *s = NULL;
    setenv("TUTTI_FLAGS", "bind_core,no_spin", 1);
    assert_int_equal(knob_text(KNOB_FLAGS, &s), 1);
    assert_ptr_equal(s, getenv("TUTTI_FLAGS"));
    expect(KNOB_FLAGS, "3", -EINVAL, 0);
    unsetenv("TUTTI_FLAGS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_whole),
        cmocka_unit_test(test_unset_and_empty_are_not_set),
        cmocka_unit_test(test_ranges_hold_at_both_ends),
        cmocka_unit_test(test_durations_take_units),
        cmocka_unit_test(test_sizes_take_units),
        cmocka_unit_test(test_the_sentence),
        cmocka_unit_test(test_text_is_the_environment_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
