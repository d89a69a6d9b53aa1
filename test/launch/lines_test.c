/* Cutting into lines: whatever the pieces in which the bytes come, the same lines come out. */
#include "launch/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void gives(const char *tag, size_t piece, const char *bytes, const char *wanted)
{
    struct outlet out;
    struct lines l = { .out = &out };
    outlet_open(&out, -1);
    snprintf(l.tag, sizeof l.tag, "%s", tag);
    for (size_t at = 0, n = strlen(bytes); at < n; at += piece)
        lines_take(&l, bytes + at, n - at < piece ? n - at : piece);
    lines_end(&l);
    assert_int_equal(out.to, strlen(wanted));
    assert_memory_equal(out.bytes, wanted, out.to);
    outlet_close(&out);
}

static void test_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 20; piece++) {
        gives("", piece, "one\n\ntwo\nthree", "one\n\ntwo\nthree");
        gives("[3] ", piece, "one\n\ntwo\nthree", "[3] one\n[3] \n[3] two\n[3] three");
        gives("[3] ", piece, "10%\r20%\rdone\r\nend\n", "[3] 10%\r[3] 20%\r[3] done\r\n[3] end\n");
        gives("", piece, "10%\r20%\rdone\r\nend\n", "10%\r20%\rdone\r\nend\n");
    }
}

static void test_long_line(void **state)
{
    enum { LENGTH = 300000 };
    struct outlet out;
    struct lines l = { .out = &out, .tag = "[0] " };
    char *line = malloc(LENGTH);
    (void)state;
    assert_non_null(line);
    memset(line, 'x', LENGTH);
    outlet_open(&out, -1);
    for (size_t at = 0; at < LENGTH; at += 1000)
        lines_take(&l, line + at, 1000);
    assert_true(out.to > 0);                     /* passed on before its end, and not all of it is kept here */
    assert_true(l.used <= 64 * 1024);
    lines_take(&l, "\n", 1);
    assert_int_equal(out.to, 4 + LENGTH + 1);    /* one tag, one end */
    assert_memory_equal(out.bytes + 4, line, LENGTH);
    lines_end(&l);
    outlet_close(&out);
    free(line);
}

/* An unfinished line that is shown goes on behind itself, but not behind another's. */
static void test_two(void **state)
{
    struct outlet out;
    struct lines a = { .out = &out, .tag = "[0] " }, b = { .out = &out, .tag = "[1] " };
    static const char wanted[] = "[0] how many? 3\n[1] x\n[0] and\n[1] y\n[0]  so on\n";
    (void)state;
    outlet_open(&out, -1);
    lines_take(&a, "how many? ", 10);
    lines_show(&a);
    lines_take(&a, "3\n", 2);
    lines_take(&b, "x\n", 2);
    lines_take(&a, "and", 3);
    lines_show(&a);
    lines_take(&b, "y\n", 2);
    lines_take(&a, " so on\n", 7);
    assert_int_equal(out.to, strlen(wanted));
    assert_memory_equal(out.bytes, wanted, out.to);
    lines_end(&a);
    lines_end(&b);
    outlet_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_long_line), cmocka_unit_test(test_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
