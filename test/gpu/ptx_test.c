/* ctest: timeout=300 */
/* The text of our kernels, run by the tests' driver, against the CPU's folds, bit for bit: every
 * type and operation, from 1 to 64 contributions, aligned and not, in place; every pair of 8-bit
 * floats; every 16-bit float against the special ones. */
#include "case_device.h"
#include "device_fixture.h"

#include "kernel_check.h"
#include "gpu/kernels.h"
#include "gpu/ptx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int pairs(tutti_type from, tutti_type to)
{
    return fixture_begin(true) || kernel_check_begin(s1)
        || kernel_check_every_pair(from, to, getenv("TUTTI_PROVE") ? 132 : 22) || kernel_check_end()
        || fixture_end();
}

static int small_integers(void) { return pairs(TUTTI_I8, TUTTI_U16); }
static int integers(void) { return pairs(TUTTI_I32, TUTTI_U64); }
static int floats(void) { return pairs(TUTTI_F16, TUTTI_F64); }
static int others(void) { return pairs(TUTTI_BOOL, TUTTI_F8E5M2); }

static int all_bytes(void)
{
    return fixture_begin(true) || kernel_check_begin(s1) || kernel_check_bytes()
        || kernel_check_end() || fixture_end();
}

static int all_halves(void)
{
    return fixture_begin(true) || kernel_check_begin(s1) || kernel_check_halves()
        || kernel_check_end() || fixture_end();
}

static void every_pair_folds_as_the_cpu_does(void **unused)
{
    (void)unused;
    PASSES(small_integers, "FAKE_CUDA_DELAY_US=0", NULL);
    PASSES(integers, "FAKE_CUDA_DELAY_US=0", NULL);
    PASSES(floats, "FAKE_CUDA_DELAY_US=0", NULL);
    PASSES(others, "FAKE_CUDA_DELAY_US=0", NULL);
}

static void small_floats_fold_as_the_cpu_does(void **unused)
{
    (void)unused;
    PASSES(all_bytes, "FAKE_CUDA_DELAY_US=0", NULL);
    PASSES(all_halves, "FAKE_CUDA_DELAY_US=0", NULL);
}

/* What fold/ has, the generator has, and nothing else; a room too small is said. No text has what
 * may be contracted or flushed. */
static void texts_are_of_what_there_is(void **unused)
{
    (void)unused;
    static char room[PTX_ROOM];
    int kernels = 0;
    for (int type = -1; type <= KERNELS_TYPES; type++)
        for (int op = -1; op <= KERNELS_OPS; op++) {
            struct text text = TEXT_IN(room);
            text_clear(&text);
            int error = ptx_fold(&text, (tutti_type)type, (tutti_op)op);
            assert_int_equal(error, kernel_check_exist(type, op) ? 0 : -22);
            if (error) {
                assert_int_equal(text.used, 0);
                continue;
            }
            kernels++;
            assert_non_null(strstr(room, kernel_check_name((tutti_type)type, (tutti_op)op)));
            assert_non_null(strstr(room, ".version 6.0\n.target sm_70\n"));
            assert_true(text.used < PTX_ROOM / 2);
            static const char *const never[] = {
                "add.f", "sub.f", "mul.f", "div.f", ".ftz", ".approx", "fma",
                "mad", ".NaN", "bf16.f32", ".nc"
            };
            for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
                assert_null(strstr(room, never[i]));
            struct text small = { room, 1000, 0 };
            assert_int_equal(ptx_fold(&small, (tutti_type)type, (tutti_op)op), -28);
        }
    assert_int_equal(kernels, 150);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("runs PTX step by step"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_of_what_there_is),
        cmocka_unit_test(every_pair_folds_as_the_cpu_does),
        cmocka_unit_test(small_floats_fold_as_the_cpu_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
