/* How often the progress thread looks unasked where no CPU is to spare: a row of naps after each
 * work, as long as naps find some. */
#include "engine/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* How many naps come after a work, until the thread sleeps to be rung for. */
static int naps_in_vain(struct nap_row *row)
{
    int naps = 1;
    assert_true(nap_again(row, true, false));
    while (nap_again(row, false, false))
        naps++;
    assert_false(nap_again(row, false, false));      /* asleep; only a work ends that */
    return naps;
}

static void rows_in_vain_get_shorter(void **state)
{
    (void)state;
    struct nap_row row = { NAPS, 0 };
    for (int most = NAPS; most > 0; most /= 2)
        assert_int_equal(naps_in_vain(&row), most);
    assert_int_equal(naps_in_vain(&row), 1);         /* and one is left, that may find work */
}

static void a_nap_that_finds_work_makes_the_row_whole(void **state)
{
    (void)state;
    struct nap_row row = { 1, 0 };
    assert_false(nap_again(&row, true, true));
    assert_true(nap_again(&row, true, false));
    assert_false(nap_again(&row, true, true));
    assert_int_equal(naps_in_vain(&row), NAPS);
}

/* Rung for behind a row that was over, it has learned nothing good of naps. */
static void ringing_is_no_find(void **state)
{
    (void)state;
    struct nap_row row = { NAPS, 0 };
    assert_int_equal(naps_in_vain(&row), NAPS);
    assert_int_equal(naps_in_vain(&row), NAPS / 2);
    assert_false(nap_again(&row, true, true));
    assert_false(nap_again(&row, true, true));       /* work after work, without a nap between */
    assert_int_equal(naps_in_vain(&row), NAPS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_in_vain_get_shorter),
        cmocka_unit_test(a_nap_that_finds_work_makes_the_row_whole),
        cmocka_unit_test(ringing_is_no_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
