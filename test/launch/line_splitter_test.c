/* Cutting into lines: whatever the pieces in which the bytes come, the same lines come out. */
#include "launch/line_splitter.h"

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
    struct output_stream out;
    struct line_splitter l = { .out = &out };
    output_stream_open(&out, -1);
    snprintf(l.tag, sizeof l.tag, "%s", tag);
    for (size_t at = 0, n = strlen(bytes); at < n; at += piece)
        line_splitter_take(&l, bytes + at, n - at < piece ? n - at : piece);
    line_splitter_end(&l);
    assert_int_equal(out.to, strlen(wanted));
    assert_memory_equal(out.bytes, wanted, out.to);
    output_stream_close(&out);
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
    struct output_stream out;
    struct line_splitter l = { .out = &out, .tag = "[0] " };
    char *line = malloc(LENGTH);
    (void)state;
    assert_non_null(line);
    memset(line, 'x', LENGTH);
    output_stream_open(&out, -1);
    for (size_t at = 0; at < LENGTH; at += 1000)
        line_splitter_take(&l, line + at, 1000);
    assert_true(out.to > 0);        /* passed on before its end, and not all of it is kept here */
    assert_true(l.used <= 64 * 1024);
    line_splitter_take(&l, "\n", 1);
    assert_int_equal(out.to, 4 + LENGTH + 1);    /* one tag, one end */
    assert_memory_equal(out.bytes + 4, line, LENGTH);
    line_splitter_end(&l);
    output_stream_close(&out);
    free(line);
}

/* An unfinished line that is shown goes on behind itself, but not behind another's. */
static void test_two(void **state)
{
    struct output_stream out;
    struct line_splitter a = { .out = &out, .tag = "[0] " }, b = { .out = &out, .tag = "[1] " };
    static const char wanted[] = "[0] how many? 3\n[1] x\n[0] and\n[1] y\n[0]  so on\n";
    (void)state;
    output_stream_open(&out, -1);
    line_splitter_take(&a, "how many? ", 10);
    line_splitter_show(&a);
    line_splitter_take(&a, "3\n", 2);
    line_splitter_take(&b, "x\n", 2);
    line_splitter_take(&a, "and", 3);
    line_splitter_show(&a);
    line_splitter_take(&b, "y\n", 2);
    line_splitter_take(&a, " so on\n", 7);
    assert_int_equal(out.to, strlen(wanted));
    assert_memory_equal(out.bytes, wanted, out.to);
    line_splitter_end(&a);
    line_splitter_end(&b);
    output_stream_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_long_line), cmocka_unit_test(test_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
