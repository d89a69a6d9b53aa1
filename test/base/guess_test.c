/* Distances by a table, and which word is meant, if any. */
#include "base/guess.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_distances(void **state)
{
    static const struct { const char *a, *b; size_t d; } table[] = {
        { "", "", 0 }, { "run", "run", 0 }, { "", "run", 3 }, { "run", "", 3 }, { "rn", "run", 1 },
        { "rnu", "run", 1 }, { "urn", "run", 1 }, { "runn", "run", 1 }, { "ran", "run", 1 },
        { "barier", "barrier", 1 }, { "bareir", "barrier", 2 }, { "abc", "cab", 2 },
        { "kitten", "sitting", 3 }, { "0123456789012345678901234567890123", "run", GUESS_MOST },
        { "run", "0123456789012345678901234567890123", GUESS_MOST },
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(guess_distance(table[i].a, table[i].b), table[i].d);
        assert_int_equal(guess_distance(table[i].b, table[i].a), table[i].d);
    }
}

static const char *meant(const char *typed)
{
    static const char *const words[] = { "run", "ps", "why", "perf", "doctor", "help" };
    struct guess g;
    guess_begin(&g, typed);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        guess_add(&g, words[i]);
    return g.best;
}

static void test_the_word_that_was_meant(void **state)
{
    (void)state;
    assert_string_equal(meant("rnu"), "run");
    assert_string_equal(meant("dotcor"), "doctor");
    assert_string_equal(meant("pref"), "perf");
    assert_string_equal(meant("halp"), "help");
    assert_string_equal(meant("wyh"), "why");
    assert_null(meant("conduct"));
    assert_null(meant(""));
    assert_null(meant("x"));             /* a word of which half is wrong is another word */
    assert_null(meant("pq"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances), cmocka_unit_test(test_the_word_that_was_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
