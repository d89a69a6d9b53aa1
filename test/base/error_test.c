/* The contract's sentences, word for word: programs and people know them. */
#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_the_contract_s_sentences(void **state)
{
    (void)state;
    assert_string_equal(error_text(0), "success");
    assert_string_equal(error_text(-EOWNERDEAD), "a rank died or left");
    assert_string_equal(error_text(-ETIMEDOUT), "the deadline passed");
    assert_string_equal(error_text(-EPROTO), "the ranks called different things");
    assert_string_equal(error_text(-ECANCELED),
                        "a rank aborted, or the comm is broken by an earlier failure");
    assert_string_equal(error_text(-EXDEV), "the ranks are not on one host");
}

static void test_sign_does_not_matter(void **state)
{
    (void)state;
    assert_ptr_equal(error_text(EPROTO), error_text(-EPROTO));
    assert_string_equal(error_name(EOWNERDEAD), "EOWNERDEAD");
    assert_string_equal(error_name(-EOWNERDEAD), "EOWNERDEAD");
}

static void test_the_system_s_own_are_the_system_s(void **state)
{
    (void)state;
    assert_string_equal(error_text(-ENOENT), strerrordesc_np(ENOENT));
    assert_string_equal(error_name(-ENOENT), "ENOENT");
    assert_string_equal(error_name(-ENOSPC), "ENOSPC");
}

static void test_every_number_has_an_answer(void **state)
{
    (void)state;
    for (int code = -5000; code <= 5000; code++) {
        assert_true(strlen(error_text(code)) > 0);
        assert_true(strlen(error_name(code)) > 0);
    }
    assert_string_equal(error_text(-4999), "unknown error");
    assert_string_equal(error_name(4999), "E?");
    assert_string_equal(error_text(INT_MIN), "unknown error");
    assert_string_equal(error_name(INT_MIN), "E?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_contract_s_sentences),
        cmocka_unit_test(test_sign_does_not_matter),
        cmocka_unit_test(test_the_system_s_own_are_the_system_s),
        cmocka_unit_test(test_every_number_has_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
