/* A kept descriptor is what it was, or nobody's business: of every kind of file, each of them in
 * the place of each other one and of another of its own kind. */
#include "os/kept.h"

#include "child.h"
#include "os/process.h"
#include "support/skip.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t other_process;

static int make_memory(void) { return memfd_create("kept", MFD_CLOEXEC); }
static int make_socket(void) { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }
static int make_event(void) { return eventfd(0, EFD_CLOEXEC); }
static int make_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }
static int make_null(void) { return open("/dev/null", O_RDWR | O_CLOEXEC); }
static int make_zero(void) { return open("/dev/zero", O_RDWR | O_CLOEXEC); }
static int make_folder(void) { return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }
static int make_self(void) { return (int)syscall(SYS_pidfd_open, getpid(), 0); }
static int make_other(void) { return (int)syscall(SYS_pidfd_open, other_process, 0); }
static int make_pipe(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    close(ends[1]);
    return ends[0];
}

/* renewed: another one of the kind is another file. */
static const struct kind { int (*make)(void); bool renewed; } kinds[] = {
    { make_memory, true }, { make_socket, true }, { make_event, true }, { make_pipe, true },
    { make_epoll, false }, { make_null, false }, { make_zero, false }, { make_folder, false },
    { make_self, false }, { make_other, false },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int waits(void *arg) { return child_hear(arg) == 0 ? 0 : 1; }

static void test_each_in_the_place_of_each(void **state)
{
    (void)state;
    struct child_pipe go;
    child_pipe_open(&go);
    other_process = child_start(waits, &go);
    for (int i = 0; i < KINDS; i++)
        for (int k = 0; k < KINDS; k++) {
            int first = kinds[i].make(), fd = first < 0 ? -1 : fcntl(first, F_DUPFD_CLOEXEC, 200);
            if (fd < 0)
                continue;                            /* a system without it */
            close(first);
            struct kept kept = kept_of(fd);
            assert_true(kept_is(&kept));
            assert_int_equal(kept_fd(&kept), fd);
            int second = kinds[k].make();
            if (second < 0 || (i == k && !kinds[i].renewed)) {
                kept_close(&kept);
                assert_int_equal(fcntl(fd, F_GETFD), -1);
                continue;
            }
            assert_int_equal(dup3(second, fd, O_CLOEXEC), fd);
            assert_false(kept_is(&kept));
            assert_int_equal(kept_fd(&kept), -EBADF);
            kept_close(&kept);
            assert_true(fcntl(fd, F_GETFD) >= 0);
            assert_int_equal(kept.fd, -1);
            close(fd);
            close(second);
        }
    assert_int_equal(child_say(&go), 0);
    child_reap(other_process);
    child_pipe_close(&go);
}

static void test_what_is_closed_or_never_was(void **state)
{
    (void)state;
    struct kept none = kept_of(-1), kept = kept_of(make_memory());
    assert_false(kept_is(&none));
    assert_int_equal(kept_fd(&none), -EBADF);
    kept_close(&none);
    close(kept.fd);
    assert_false(kept_is(&kept));
    kept_close(&kept);
    assert_int_equal(kept_fd(&kept), -EBADF);
}

/* The end of a process changes nothing of what its descriptor is: it is ours to close. */
static void test_a_process_that_ended(void **state)
{
    (void)state;
    struct child_pipe go;
    child_pipe_open(&go);
    other_process = child_start(waits, &go);
    struct kept kept = kept_of(make_other());
    int fd = kept.fd;
    child_kill(other_process);
    child_pipe_close(&go);
    if (fd < 0)
        skip_because("no descriptor of a process (pidfd) can be had here");
    assert_true(kept_is(&kept));
    kept_close(&kept);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_in_the_place_of_each),
        cmocka_unit_test(test_what_is_closed_or_never_was),
        cmocka_unit_test(test_a_process_that_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
