/* Single elements folded in registers: the bits of the kernels that walk over memory, for every
 * pair that has one, any number of ranks, and the elements that go wrong first. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "fold/fold.h"
#include "fold/scalar.h"
#include "model.h"

enum { RANKS = 9, ROUNDS = 20000, TYPES = TUTTI_F8E5M2 + 1, OPS = TUTTI_PREMUL_SUM + 1 };

static void a_word_has_the_bits_of_a_walk(tutti_type type, tutti_op op)
{
    fold_word_fn *word = fold_word(type, op);
    fold_fn *walk = fold_find(type, op, NULL);
    size_t size = fold_type_size(type);
    assert_non_null(walk);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t element[RANKS], acc = 0, expected = 0;
        const void *src[RANKS];
        unsigned n = 2 + (unsigned)round % (RANKS - 1);
        for (unsigned r = 0; r < n; r++) {
            element[r] = model_any(type);
            src[r] = &element[r];
            acc = r ? word(acc, element[r], r + 1 == n ? n : 0) : element[r];
        }
        walk(&expected, src, (int)n, 1, (int)n);
        if (memcmp(&acc, &expected, size) != 0)
            fail_msg("%s %s of %u: %#llx, the walk says %#llx", fold_type_name(type),
                     fold_op_name(op), n, (unsigned long long)acc, (unsigned long long)expected);
    }
}

static void every_word_has_the_bits_of_a_walk(void **state)
{
    int found = 0;
    (void)state;
    for (int type = 0; type < TYPES; type++)
        for (int op = 0; op < OPS; op++)
            if (fold_word((tutti_type)type, (tutti_op)op)) {
                a_word_has_the_bits_of_a_walk((tutti_type)type, (tutti_op)op);
                found++;
            }
    assert_true(found > 30);
}

static void what_is_not_there_is_null(void **state)
{
    (void)state;
    assert_null(fold_word(TUTTI_F16, TUTTI_SUM));
    assert_null(fold_word(TUTTI_F32, TUTTI_BAND));
    assert_null(fold_word(TUTTI_C128, TUTTI_SUM));
    assert_null(fold_word(TUTTI_I64, TUTTI_AVG));
    assert_null(fold_word((tutti_type)-1, TUTTI_SUM));
    assert_null(fold_word(TUTTI_F32, TUTTI_OP_USER));
    assert_null(fold_word(TUTTI_F32, (tutti_op)-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_has_the_bits_of_a_walk),
        cmocka_unit_test(what_is_not_there_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
