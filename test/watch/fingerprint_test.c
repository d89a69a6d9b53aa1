/* Fingerprints: every field exact, no two operations that differ alike, unless their counts are
 * hashed; and their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fold/fold.h"
#include "watch/fingerprint.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COUNTS = 20000 };

/* What goes in comes out, for all values of each field at the borders of the others. */
static void fields_are_exact(void **state)
{
    (void)state;
    static const int roots[] = { 0, 1, 511, 512, 1023 };
    static const uint64_t counts[] = { 0, 1, 40, 1024, STAMP_HASHED - 1 };
    for (int kind = 0; kind < KIND_COUNT; kind++)
        for (int type = 0; type <= TUTTI_F8E5M2; type++)
            for (int op = 0; op <= TUTTI_PREMUL_SUM; op++)
                for (size_t r = 0; r < 5; r++)
                    for (size_t c = 0; c < 5; c++) {
                        uint64_t s = fingerprint_make((enum kind)kind, (tutti_type)type,
                                                      (tutti_op)op, roots[r], counts[c]);
                        assert_int_equal(fingerprint_kind(s), kind);
                        assert_int_equal(fingerprint_type(s), type);
                        assert_int_equal(fingerprint_op(s), op);
                        assert_int_equal(fingerprint_root(s), roots[r]);
                        assert_false(fingerprint_hashed(s));
                        assert_true((s & (STAMP_HASHED - 1)) == counts[c]);
                    }
    assert_int_equal(fingerprint_op(fingerprint_make(KIND_REDUCE, TUTTI_F32, TUTTI_OP_USER, 0, 1)),
                     TUTTI_OP_USER);
    assert_true(KIND_COUNT <= 64);                   /* they have 6 bits */
}

static void all_ones_stay_apart(void **state)
{
    (void)state;
    /* Each field full: none runs over into the next. */
    uint64_t s = fingerprint_make((enum kind)63, (tutti_type)31, (tutti_op)8191, 1023,
                                  STAMP_HASHED - 1);
    assert_true(s == ~STAMP_HASHED);
    assert_true(fingerprint_make(KIND_NONE, (tutti_type)31, (tutti_op)0, 0, 0)
                == UINT64_C(31) << 53);
    assert_true(fingerprint_make(KIND_NONE, (tutti_type)0, (tutti_op)8191, 0, 0)
                == UINT64_C(8191) << 40);
    assert_true(fingerprint_make(KIND_NONE, (tutti_type)0, (tutti_op)0, 1023, 0)
                == UINT64_C(1023) << 30);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Large counts: always hashed, the other fields untouched, and counts that people mix up have
 * different hashes. */
static void large_counts(void **state)
{
    (void)state;
    static uint64_t stamps[MOST_COUNTS];
    for (uint64_t i = 0; i < MOST_COUNTS; i++) {
        uint64_t s = fingerprint_make(KIND_ALL_REDUCE, TUTTI_BOOL, TUTTI_LXOR, 77,
                                      STAMP_HASHED + i);
        assert_true(fingerprint_hashed(s));
        assert_int_equal(fingerprint_kind(s), KIND_ALL_REDUCE);
        assert_int_equal(fingerprint_type(s), TUTTI_BOOL);
        assert_int_equal(fingerprint_op(s), TUTTI_LXOR);
        assert_int_equal(fingerprint_root(s), 77);
        stamps[i] = s;
    }
    qsort(stamps, MOST_COUNTS, sizeof stamps[0], by_value);
    for (size_t i = 1; i < MOST_COUNTS; i++)
        assert_true(stamps[i] != stamps[i - 1]);
    assert_true(
        fingerprint_hashed(fingerprint_make(KIND_BROADCAST, TUTTI_U8, TUTTI_SUM, 0, UINT64_MAX)));
    for (int shift = 29; shift < 63; shift++)
        assert_true(fingerprint_make(KIND_BROADCAST, TUTTI_U8, 0, 0, UINT64_C(1) << shift)
                    != fingerprint_make(KIND_BROADCAST, TUTTI_U8, 0, 0, UINT64_C(2) << shift));
}

static void says(uint64_t stamp, uint64_t count, const char *expected)
{
    char room[128];
    struct text t = TEXT_IN(room);
    text_clear(&t);
    fingerprint_add(&t, stamp, count);
    assert_string_equal(room, expected);
}

static void names(void **state)
{
    (void)state;
    says(fingerprint_make(KIND_BARRIER, 0, 0, 0, 0), 0, "barrier");
    says(fingerprint_make(KIND_ALL_REDUCE, TUTTI_F32, TUTTI_SUM, 0, 1024), 99,
         "all_reduce f32 sum 1024");
    says(fingerprint_make(KIND_BROADCAST, TUTTI_F32, 0, 1, 10), 0, "broadcast f32 10 root 1");
    says(fingerprint_make(KIND_REDUCE, TUTTI_BOOL, TUTTI_LAND, 1023, 0), 0,
         "reduce bool land 0 root 1023");
    says(fingerprint_make(KIND_ALL_REDUCE, TUTTI_U8, TUTTI_MAX, 0, UINT64_C(5000000000)),
         UINT64_C(5000000000), "all_reduce u8 max 5000000000");
    says(fingerprint_make(KIND_TURN_BEGIN, 0, 0, 0, 0), 0, "turn_begin");
    says(fingerprint_make(KIND_NONE, 0, 0, 0, 0), 0, "nothing yet");
    says(fingerprint_make((enum kind)KIND_COUNT, 0, 0, 0, 0), 0, "?");
    /* Whatever a torn or foreign word says, it is printed, not followed. */
    says(~STAMP_HASHED, 0, "?");
    says((uint64_t)KIND_REDUCE << 58 | UINT64_C(0x3ffffff) << 32, 0, "reduce ? user 0 root 1020");
    assert_string_equal(kind_name((enum kind)-1), "?");
    for (int kind = 0; kind < KIND_COUNT; kind++)
        assert_true(kind_name((enum kind)kind)[0] && strcmp(kind_name((enum kind)kind), "?") != 0);
}

static void collective_or_not(void **state)
{
    (void)state;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        assert_int_equal(kind_collective((enum kind)kind),
                         (kind >= KIND_BARRIER && kind <= KIND_CREATE)
                             || kind == KIND_QUEUE_CREATE);
    assert_false(kind_collective((enum kind)KIND_COUNT));
    assert_false(kind_collective((enum kind)63));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_exact), cmocka_unit_test(all_ones_stay_apart),
        cmocka_unit_test(large_counts), cmocka_unit_test(names),
        cmocka_unit_test(collective_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
