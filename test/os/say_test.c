/* ctest: timeout=60 needs=limit */
/* A text to stderr is whole or dropped; who says it is neither blocked nor killed, whatever
 * stderr is. */
#include "os/say.h"

#include "support/skip.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT = 6000, LONG = 30 };

static char text[TEXT];

/* A process whose stderr is `end`; it is killed by SIGALRM where it is held up. */
static int does(int end, void (*what)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(LONG);
        signal(SIGPIPE, SIG_DFL);
        dup2(end, STDERR_FILENO);
        what();
        _exit(7);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void once(void) { say(text, sizeof text); }

static void twice(void)
{
    once();
    once();
}

static void no_threads(void)
{
    struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_AS, &none);
    say(text, sizeof text);
}

static void fills(int end)
{
    char page[4096] = { 0 };
    assert_int_equal(fcntl(end, F_SETFL, O_NONBLOCK), 0);
    while (write(end, page, sizeof page) > 0) { }
    assert_int_equal(fcntl(end, F_SETFL, 0), 0);
}

static size_t lies(int end)
{
    static char got[2 * TEXT];
    assert_int_equal(fcntl(end, F_SETFL, O_NONBLOCK), 0);
    ssize_t n = read(end, got, sizeof got);
    if (n > 0)
        assert_memory_equal(got, text, (size_t)n < TEXT ? (size_t)n : TEXT);
    return n > 0 ? (size_t)n : 0;
}

static void arrives(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(pipe(p), 0);
    assert_int_equal(does(p[1], twice), 7 << 8);
    assert_int_equal(lies(p[0]), 2 * TEXT);
}

static void full(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(pipe(p), 0);
    fills(p[1]);
    assert_int_equal(does(p[1], twice), 7 << 8);
}

/* While one text hangs, the next is dropped: threads do not pile up behind a reader that sleeps. */
static void dropped(void **state)
{
    (void)state;
    int p[2], over[2], status;
    size_t filled, n = 0;
    char byte = 0;
    assert_int_equal(pipe(p), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, over), 0);
    fills(p[1]);
    filled = (size_t)fcntl(p[1], F_GETPIPE_SZ);
    const size_t room = filled + 3 * TEXT;                   /* 16 pages, which may be large */
    char *got = malloc(room);
    assert_non_null(got);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(LONG);
        dup2(p[1], STDERR_FILENO);
        close(p[0]);
        close(p[1]);
        close(over[1]);
        twice();
        /* when the reader has had the first one */
        _exit(write(over[0], &byte, 1) == 1 && read(over[0], &byte, 1) == 0 ? 7 : 8);
    }
    close(p[1]);
    close(over[0]);
    assert_int_equal(read(over[1], &byte, 1), 1);
    while (n < filled + TEXT) {
        ssize_t more = read(p[0], got + n, room - n);
        assert_true(more > 0);
        n += (size_t)more;
    }
    close(over[1]);
    for (ssize_t more; (more = read(p[0], got + n, room - n)) > 0;)
        n += (size_t)more;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 7 << 8);
    assert_int_equal(n, filled + TEXT);
    assert_memory_equal(got + filled, text, TEXT);
    free(got);
    close(p[0]);
}

static void closed(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(pipe(p), 0);
    close(p[0]);
    assert_int_equal(does(p[1], twice), 7 << 8);
    assert_int_equal(does(p[1], no_threads), 7 << 8);
}

static void without_threads(void **state)
{
    (void)state;
    int p[2];
    if (getenv("TUTTI_TEST_SANITIZED"))
        skip_because("a sanitizer needs the address space that is to end here");
    assert_int_equal(pipe(p), 0);
    assert_int_equal(does(p[1], no_threads), 7 << 8);
    assert_int_equal(lies(p[0]), 4096);
    fills(p[1]);
    assert_int_equal(does(p[1], no_threads), 7 << 8);
}

int main(void)
{
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 26);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrives), cmocka_unit_test(full), cmocka_unit_test(dropped),
        cmocka_unit_test(closed), cmocka_unit_test(without_threads)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
