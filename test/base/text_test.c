/* Building and parsing, each by a table of what people would expect to read or to be allowed
 * to write. */
#include "base/text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_a_message_grows(void **state)
{
    (void)state;
    char room[32];
    struct text t = TEXT_IN(room);
    text_clear(&t);
    assert_string_equal(room, "");
    text_add(&t, "rank %d", 3);
    text_add(&t, "%s", " died");
    assert_string_equal(room, "rank 3 died");
    assert_int_equal(t.used, 11);
    text_clear(&t);
    assert_int_equal(t.used, 0);
    assert_string_equal(room, "");
}

/* For every size of the buffer: nothing behind it is touched, and what is in it is a beginning of
 * the whole. */
static void test_a_full_buffer_cuts(void **state)
{
    (void)state;
    for (size_t size = 1; size < 16; size++) {
        char room[20];
        memset(room, '#', sizeof room);
        struct text t = { room, size, 0 };
        text_clear(&t);
        text_add(&t, "%s", "abcde");
        text_add(&t, "%s", "fghij");
        size_t wanted = size - 1 < 10 ? size - 1 : 10;
        assert_int_equal(t.used, wanted);
        assert_int_equal(strlen(room), wanted);
        assert_memory_equal(room, "abcdefghij", wanted);
        for (size_t i = size; i < sizeof room; i++)
            assert_int_equal(room[i], '#');
    }
}

static void test_a_cut_leaves_no_half_character(void **state)
{
    (void)state;
    /* of 1, 2, 3 and 4 bytes */
    static const char whole[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\xB5";
    static const size_t borders[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10 };
    for (size_t fit = 0; fit <= 10; fit++) {
        char room[11];
        struct text t = { room, fit + 1, 0 };
        text_clear(&t);
        text_add(&t, "%s", whole);
        assert_int_equal(t.used, borders[fit]);
        assert_int_equal(strlen(room), borders[fit]);
    }
}

static void test_no_room_at_all(void **state)
{
    (void)state;
    char byte = '#';
    struct text t = { &byte, 0, 0 };
    text_clear(&t);
    text_add(&t, "x");
    assert_int_equal(byte, '#');
}

static void test_durations_read_well(void **state)
{
    (void)state;
    static const struct { uint64_t ns; const char *text; } rows[] = {
        { 0, "0 ns" }, { 850, "850 ns" }, { 999, "999 ns" }, { 1000, "1 us" }, { 12345, "12.3 us" },
        { 999999, "999.9 us" }, { 4100000, "4.1 ms" }, { 999999999, "999.9 ms" },
        { 12300000000, "12.3 s" }, { 30000000000, "30 s" }, { 59999999999, "59.9 s" },
        { 60000000000, "1 min" }, { 250000000000, "4 min 10 s" }, { 3600000000000, "1 h" },
        { 7500000000000, "2 h 5 min" }, { UINT64_MAX, "5124095 h 34 min" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char room[40];
        struct text t = TEXT_IN(room);
        text_add_duration(&t, rows[i].ns);
        assert_string_equal(room, rows[i].text);
    }
}

static void test_sizes_read_well(void **state)
{
    (void)state;
    static const struct { uint64_t bytes; const char *text; } rows[] = {
        { 0, "0 B" }, { 512, "512 B" }, { 1023, "1023 B" }, { 1024, "1 KiB" }, { 65536, "64 KiB" },
        { 1047552, "1023 KiB" }, { 1048575, "1023.9 KiB" }, { 1610612736, "1.5 GiB" },
        { (uint64_t)1 << 40, "1 TiB" }, { UINT64_MAX, "15.9 EiB" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char room[40];
        struct text t = TEXT_IN(room);
        text_add_bytes(&t, rows[i].bytes);
        assert_string_equal(room, rows[i].text);
    }
}

static void expect_ranks(const int *ranks, int n, const char *wanted)
{
    char room[64];
    struct text t = TEXT_IN(room);
    text_clear(&t);
    text_add_ranks(&t, ranks, n);
    assert_string_equal(room, wanted);
}

static void test_ranks_are_put_together(void **state)
{
    (void)state;
    expect_ranks((int[]){ 0, 2, 3, 4, 5, 7 }, 6, "0, 2-5, 7");
    expect_ranks((int[]){ 3 }, 1, "3");
    expect_ranks((int[]){ 3, 4 }, 2, "3, 4");
    expect_ranks((int[]){ 3, 4, 5 }, 3, "3-5");
    expect_ranks((int[]){ 1, 2, 4, 5, 6 }, 5, "1, 2, 4-6");
    expect_ranks((int[]){ 5, 4, 3 }, 3, "5, 4, 3");
    expect_ranks(NULL, 0, "");
}

static void test_columns_hold_characters(void **state)
{
    (void)state;
    char room[64];
    struct text t = TEXT_IN(room);
    text_add_padded(&t, "ab", 4);
    text_add_padded(&t, "\xC3\xA9", 3);
    text_add_padded(&t, "toolong", 3);
    text_add_padded(&t, "", 1);
    text_add(&t, "|");
    assert_string_equal(room, "ab  \xC3\xA9  toolong |");
}

static void test_durations_are_understood(void **state)
{
    (void)state;
    static const struct { const char *text; int64_t ms; } rows[] = {
        { "0", 0 }, { "500", 500 }, { "500ms", 500 }, { "30s", 30000 }, { "2min", 120000 },
        { "1h", 3600000 }, { "-1", -1 }, { "never", -1 }, { "none", -1 },
        { "9223372036854", 9223372036854 }, { "9223372036s", 9223372036000 },
        { "2562047h", 9223369200000 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ms = -7;
        assert_int_equal(text_parse_duration_ms(rows[i].text, &ms), 0);
        assert_true(ms == rows[i].ms);
    }
    static const char *const wrong[] = {
        "", "s", "-2", "-", "30 s", " 30s", "30s ", "30sec", "3x", "1.5s", "never!",
        "9223372036855", "9223372037s", "2562048h", "9223372036854775808", "9223372036854775807",
        "9223372036854776s", "18446744073709551616", "99999999999999999999h", "0x10",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t ms = -7;
        assert_int_equal(text_parse_duration_ms(wrong[i], &ms), -EINVAL);
        assert_int_equal(ms, -7);
    }
}

static void test_sizes_are_understood(void **state)
{
    (void)state;
    static const struct { const char *text; uint64_t bytes; } rows[] = {
        { "0", 0 }, { "4096", 4096 }, { "64k", 65536 }, { "64K", 65536 }, { "64kb", 65536 },
        { "64KiB", 65536 }, { "16M", 16777216 }, { "1GiB", 1073741824 }, { "1g", 1073741824 },
        { "2T", (uint64_t)2 << 40 }, { "15E", (uint64_t)15 << 60 }, { "7B", 7 },
        { "18446744073709551615", UINT64_MAX },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t bytes = 77;
        assert_int_equal(text_parse_bytes(rows[i].text, &bytes), 0);
        assert_true(bytes == rows[i].bytes);
    }
    static const char *const wrong[] = {
        "", "k", "-1", "1 k", "1kk", "1x", "1ib", "1Ki", "1.5G", "16E", "18446744073709551616"
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint64_t bytes = 77;
        assert_int_equal(text_parse_bytes(wrong[i], &bytes), -EINVAL);
        assert_int_equal(bytes, 77);
    }
}

static void test_integers_are_understood(void **state)
{
    (void)state;
    int64_t v = 0;
    assert_int_equal(text_parse_int("42", 0, 100, &v), 0);
    assert_int_equal(v, 42);
    assert_int_equal(text_parse_int("-42", -42, 100, &v), 0);
    assert_int_equal(v, -42);
    assert_int_equal(text_parse_int("9223372036854775807", 0, INT64_MAX, &v), 0);
    assert_true(v == INT64_MAX);
    assert_int_equal(text_parse_int("-9223372036854775808", INT64_MIN, 0, &v), 0);
    assert_true(v == INT64_MIN);
    static const char *const wrong[] = {
        "", "-", "+1", " 1", "1 ", "1a", "--1", "9223372036854775808", "-9223372036854775809"
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(text_parse_int(wrong[i], INT64_MIN, INT64_MAX, &v), -EINVAL);
    assert_int_equal(text_parse_int("101", 0, 100, &v), -EINVAL);
    assert_int_equal(text_parse_int("-1", 0, 100, &v), -EINVAL);
    assert_true(v == INT64_MIN);
}

/* However long it is: within its room, the same for the same name, and another one for each
 * other name. */
static void test_long_names_stay_apart(void **state)
{
    (void)state;
    char name[400], room[2][64], whole[64];
    for (size_t n = 1; n < sizeof name; n++) {
        memset(name, 'n', n);
        name[n] = 0;
        for (int i = 0; i < 2; i++) {
            struct text t = TEXT_IN(room[i]);
            text_clear(&t);
            name[n - 1] = i ? 'b' : 'a';
            text_add_name(&t, name, 48);
            assert_int_equal(t.used, n < 48 ? n : 48);
        }
        assert_string_not_equal(room[0], room[1]);
        assert_int_equal(strcmp(room[1], name) == 0, n <= 48);
    }
    struct text t = TEXT_IN(whole);
    text_clear(&t);
    /* the cut lies within a letter */
    text_add_name(&t, "kölnkölnkölnkölnkölnkölnkölnkölnkölnköln", 35);
    assert_true(!strncmp(whole, "kölnkölnkölnk~", strlen("kölnkölnkölnk~"))
                || !strncmp(whole, "kölnkölnkölnkö~", strlen("kölnkölnkölnkö~")));
}

/* Ranks built by different compilers must agree on a hash: these numbers are for ever. */
static void test_hashes_are_the_same_everywhere(void **state)
{
    (void)state;
    assert_true(text_hash("", 0, 0) == UINT64_C(0xEFD01F60BA992926));
    assert_true(text_hash("tutti", 5, 0) != text_hash("tutti", 5, 1));
    assert_true(text_hash("ab", 2, 0) != text_hash("ba", 2, 0));
    assert_true(text_hash("a", 1, 0) != text_hash("a\0", 2, 0));
    int ones = 0;
    for (int bit = 0; bit < 8; bit++) {
        unsigned char a = 0, b = (unsigned char)(1u << bit);
        ones += __builtin_popcountll(text_hash(&a, 1, 0) ^ text_hash(&b, 1, 0));
    }
    assert_in_range(ones, 8 * 16, 8 * 48);
}

static void test_foreign_text_acts_on_no_terminal(void **state)
{
    static const struct { const char *said, *shown; } rows[] = {
        { "train.py:39", "train.py:39" },
        { "k\xc3\xb6ln \xe2\x82\xac \xf0\x9f\x98\x80",
          "k\xc3\xb6ln \xe2\x82\xac \xf0\x9f\x98\x80" },
        { "\033[31mred\n", "\\x1b[31mred\\x0a" },
        { "a\\b", "a\\x5cb" },
        { "\x7f", "\\x7f" },
        { "\xc2\x9b" "31m", "\\xc2\\x9b31m" },                   /* an escape of one character */
        { "\xe2\x80\xae" "evil", "\\xe2\\x80\\xaeevil" },       /* turns the direction */
        { "\xc3", "\\xc3" }, { "\xc0\xaf", "\\xc0\\xaf" },       /* cut; overlong */
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" },                  /* half a pair */
        { "\xf8\x88\x80\x80", "\\xf8\\x88\\x80\\x80" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char room[128];
        struct text t = TEXT_IN(room);
        text_clear(&t);
        text_add_foreign(&t, rows[i].said, 64);
        assert_string_equal(room, rows[i].shown);
    }
    char room[16];
    struct text t = TEXT_IN(room);
    text_clear(&t);
    text_add_foreign(&t, "abcdef", 3);
    assert_string_equal(room, "abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_grows),
        cmocka_unit_test(test_a_full_buffer_cuts),
        cmocka_unit_test(test_a_cut_leaves_no_half_character),
        cmocka_unit_test(test_no_room_at_all),
        cmocka_unit_test(test_durations_read_well),
        cmocka_unit_test(test_sizes_read_well),
        cmocka_unit_test(test_ranks_are_put_together),
        cmocka_unit_test(test_columns_hold_characters),
        cmocka_unit_test(test_durations_are_understood),
        cmocka_unit_test(test_sizes_are_understood),
        cmocka_unit_test(test_integers_are_understood),
        cmocka_unit_test(test_long_names_stay_apart),
        cmocka_unit_test(test_foreign_text_acts_on_no_terminal),
        cmocka_unit_test(test_hashes_are_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
