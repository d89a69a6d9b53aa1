/* What comes out of an outlet: whole lines, each behind its own, and nothing lost behind a reader
 * that takes its time. */
#include "launch/output_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char a, b;                  /* two who write */

struct fixture { int ends[2]; struct output_stream out; };

static void begin(struct fixture *f)
{
    assert_int_equal(pipe2(f->ends, O_NONBLOCK | O_CLOEXEC), 0);
    output_stream_open(&f->out, f->ends[1]);
}

static void end(struct fixture *f)
{
    output_stream_close(&f->out);
    close(f->ends[0]);
    if (f->ends[1] >= 0)
        close(f->ends[1]);
}

static void put(struct fixture *f, const void *by, const char *tag, const char *text)
{
    output_stream_put(&f->out, by, tag, text, strlen(text), text[strlen(text) - 1] == '\n');
}

static void comes_out(struct fixture *f, const char *text)
{
    char got[256] = { 0 };
    output_stream_write(&f->out);
    assert_false(output_stream_waits(&f->out));
    ssize_t n = read(f->ends[0], got, sizeof got - 1);
    assert_int_equal(n, (ssize_t)strlen(text));
    assert_string_equal(got, text);
}

static void test_lines(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    put(&f, &a, "[0] ", "one\n");
    put(&f, &b, "", "two\n");
    put(&f, &a, NULL, "three\n");
    comes_out(&f, "[0] one\ntwo\nthree\n");
    end(&f);
}

static void test_unfinished(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    put(&f, &a, "[0] ", "half");
    comes_out(&f, "[0] half");           /* not ended by us while nobody follows */
    put(&f, &a, "[0] ", " a line\n");    /* its own goes on, without a second tag */
    comes_out(&f, " a line\n");
    put(&f, &a, "[0] ", "half");
    put(&f, &b, "[1] ", "whole\n");      /* another's does not stick to it */
    put(&f, &a, "[0] ", "rest\n");
    comes_out(&f, "[0] half\n[1] whole\n[0] rest\n");
    end(&f);
}

static void test_slow_reader(void **state)
{
    struct fixture f;
    char line[1000], got[4096];
    size_t put_in = 0, taken = 0;
    (void)state;
    begin(&f);
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    while (output_stream_has_room(&f.out)) {
        output_stream_put(&f.out, &a, "", line, sizeof line, true);
        output_stream_write(&f.out);     /* must come back though nobody reads */
        put_in += sizeof line;
        assert_true(put_in < 10000000);
    }
    assert_true(output_stream_waits(&f.out));
    for (ssize_t n; (n = read(f.ends[0], got, sizeof got)) > 0; output_stream_write(&f.out)) {
        for (ssize_t i = 0; i < n; i++, taken++)
            assert_int_equal(got[i], taken % sizeof line == sizeof line - 1 ? '\n' : 'x');
    }
    assert_int_equal(taken, put_in);
    assert_true(output_stream_has_room(&f.out));
    end(&f);
}

static void test_no_reader(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    close(f.ends[0]);
    put(&f, &a, "", "line\n");
    output_stream_write(&f.out);
    assert_int_equal(f.out.error, EPIPE);
    assert_false(output_stream_waits(&f.out));
    for (int i = 0; i < 100000; i++)
        put(&f, &a, "", "dropped, and never in anybody's way\n");
    assert_true(output_stream_has_room(&f.out));
    output_stream_write_all(&f.out);     /* nothing to wait for */
    f.ends[0] = f.ends[1];
    f.ends[1] = -1;
    end(&f);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines), cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_slow_reader), cmocka_unit_test(test_no_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
