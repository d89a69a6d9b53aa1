/* A rank that may lend what it gives, or what it has folded, chooses by what operations took of
 * late, from their call to their end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "coll/zero_copy.h"

#include <stdlib.h>

enum { BYTES = 8 << 20, MANY = 200 };

/* Both get their tries, what is known decides between them, and each operation leaves
 * what it took. */
static void test_chooses(void **state)
{
    (void)state;
    struct tutti_comm *comm = calloc(1, sizeof *comm);
    assert_non_null(comm);
    for (int faster = 0; faster < 2; faster++) {
        struct tuner *row = comm->coll.zero_copy.results[faster];
        int zero_copy = 0;
        for (int i = 0; i < TUNER_TRIES; i++) {
            struct coll c = { .comm = comm };
            zero_copy += zero_copy_choose(&c, row, BYTES, ZERO_COPY_RESULTS_LEAST);
            c.zero_copy.began = 0;                   /* so it took long */
            zero_copy_learn(&c);
            assert_null(c.zero_copy.ways);
        }
        struct tuner *own = tuner_of(row, BYTES, ZERO_COPY_RESULTS_LEAST);
        assert_true(zero_copy > 0 && own->cost[0] > 0 && own->cost[1] > 0);
        zero_copy = 0;
        for (int i = 0; i < MANY; i++) {
            struct coll c = { .comm = comm };
            own->cost[faster] = 1000;
            own->cost[!faster] = 2000;
            zero_copy += zero_copy_choose(&c, row, BYTES, ZERO_COPY_RESULTS_LEAST);
        }
        assert_in_range(zero_copy, faster ? MANY - 4 : 1, faster ? MANY - 1 : 4);
    }
    free(comm);
}

/* Where there is no choice, and where it is not worth one, peers read it where it lies; nothing is
 * learnt from that. */
static void test_has_none(void **state)
{
    (void)state;
    struct tuner classes[TUNER_CLASSES] = { { { 1000, 1 }, TUNER_AGAIN + 1 } };
    struct coll c = { .zero_copy = { .yes = true } };
    assert_false(zero_copy_choose(&c, NULL, BYTES, ZERO_COPY_RESULTS_LEAST));
    zero_copy_learn(&c);
    assert_false(zero_copy_choose(&c, classes, ZERO_COPY_SENDS_LEAST - 1, ZERO_COPY_SENDS_LEAST));
    zero_copy_learn(&c);
    assert_int_equal(classes[0].cost[1], 1);
    assert_true(zero_copy_choose(&c, classes, ZERO_COPY_SENDS_LEAST, ZERO_COPY_SENDS_LEAST));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_chooses),
                                        cmocka_unit_test(test_has_none) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
