/* Meeting under a name, messages with and without a descriptor, and all that a stranger or a dead
 * listener can do to it. */
#include "os/handover.h"

#include "child.h"
#include "support/resources.h"
#include "support/skip.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *own_name(void)
{
    static char name[40];
    snprintf(name, sizeof name, "tutti-handover-test-%d", (int)getpid());
    return name;
}

/* A connected pair, made through a name. */
static void meet(int ends[2])
{
    int listener = handover_listen(own_name());
    assert_true(listener >= 0);
    ends[0] = handover_connect(own_name());
    assert_true(ends[0] >= 0);
    ends[1] = handover_accept(listener);
    assert_true(ends[1] >= 0);
    handover_close(listener, own_name());
}

static void part(int ends[2])
{
    handover_close(ends[0], NULL);
    handover_close(ends[1], NULL);
}

static void test_a_name_has_one_listener(void **state)
{
    (void)state;
    assert_int_equal(handover_connect(own_name()), -ECONNREFUSED);
    int listener = handover_listen(own_name());
    assert_true(listener >= 0);
    assert_true(fcntl(listener, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(handover_listen(own_name()), -EADDRINUSE);
    assert_int_equal(handover_accept(listener), -EAGAIN);
    handover_close(listener, own_name());
    assert_int_equal(handover_connect(own_name()), -ECONNREFUSED);
}

static void test_names_that_cannot_be(void **state)
{
    (void)state;
    char name[120];
    memset(name, 'n', sizeof name);
    name[108] = 0;
    assert_int_equal(handover_listen(name), -ENAMETOOLONG);
    assert_int_equal(handover_connect(name), -ENAMETOOLONG);
    name[107] = 0;
    int listener = handover_listen(name);
    assert_true(listener >= 0);
    int end = handover_connect(name);
    assert_true(end >= 0);
    close(end);
    handover_close(listener, name);
    assert_int_equal(handover_listen(""), -EINVAL);
    assert_int_equal(handover_connect("/nowhere/at/all"), -ECONNREFUSED);
    assert_int_equal(handover_listen("/nowhere/at/all"), -ENOENT);
}

static void test_the_peer_shows_who_it_is(void **state)
{
    (void)state;
    int ends[2];
    struct handover_peer peer;
    meet(ends);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(handover_peer(ends[i], &peer), 0);
        assert_int_equal(peer.pid, getpid());
        assert_int_equal(peer.uid, getuid());
    }
    assert_int_equal(handover_peer(-1, &peer), -EBADF);
    part(ends);
}

static void test_messages_stay_apart(void **state)
{
    (void)state;
    int ends[2], fd;
    char room[8192], large[4097] = { 0 };
    meet(ends);
    assert_int_equal(handover_send(ends[0], "first", 5, -1, 0), 0);
    assert_int_equal(handover_send(ends[0], "second one", 10, -1, 0), 0);
    large[4095] = 'z';
    assert_int_equal(handover_send(ends[0], large, 4096, -1, 0), 0);
    assert_int_equal(handover_recv(ends[1], room, sizeof room, &fd, 0), 5);
    assert_memory_equal(room, "first", 5);
    assert_int_equal(fd, -1);
    assert_int_equal(handover_recv(ends[1], room, sizeof room, &fd, 0), 10);
    assert_memory_equal(room, "second one", 10);
    assert_int_equal(handover_recv(ends[1], room, sizeof room, &fd, 0), 4096);
    assert_int_equal(room[4095], 'z');
    assert_int_equal(handover_send(ends[0], large, 4097, -1, 0), -EMSGSIZE);
    assert_int_equal(handover_send(ends[0], large, 0, -1, 0), -EINVAL);
    assert_int_equal(handover_send(ends[0], "0123456789", 10, -1, 0), 0);
    assert_int_equal(handover_recv(ends[1], room, 4, &fd, 0), -EMSGSIZE);
    part(ends);
}

static void test_a_descriptor_comes_along(void **state)
{
    (void)state;
    int ends[2], fd = -1, sent = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    char room[16];
    struct stat a, b;
    meet(ends);
    assert_int_equal(handover_send(ends[1], "x", 1, sent, 0), 0);
    assert_int_equal(handover_recv(ends[0], room, sizeof room, &fd, 0), 1);
    assert_true(fd >= 100);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fstat(sent, &a), 0);
    assert_int_equal(fstat(fd, &b), 0);
    assert_true(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
    assert_int_equal(handover_send(ends[0], "x", 1, 9999, 0), -EBADF);
    close(fd);
    close(sent);
    part(ends);
}

/* What only a stranger sends. */
static void send_many(int end, int n)
{
    union { struct cmsghdr align; char room[CMSG_SPACE(64 * sizeof(int))]; } control;
    int fds[64];
    struct iovec iov = { (void *)(uintptr_t)"x", 1 };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room };
    memset(&control, 0, sizeof control);
    m.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
    struct cmsghdr *head = CMSG_FIRSTHDR(&m);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
    for (int i = 0; i < n; i++)
        fds[i] = end;
    memcpy(CMSG_DATA(head), fds, (size_t)n * sizeof(int));
    assert_int_equal(sendmsg(end, &m, 0), 1);
}

/* qemu-user keeps descriptors of a message for which it was given no room. */
static bool kernel_closes_surplus(void)
{
    union { struct cmsghdr align; char room[CMSG_SPACE(sizeof(int))]; } control;
    char byte;
    struct iovec iov = { &byte, 1 };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room,
                        .msg_controllen = sizeof control.room };
    int ends[2], fits = (int)((sizeof control.room - CMSG_LEN(0)) / sizeof(int));
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    send_many(ends[0], 64);
    int before = resources_descriptors();
    assert_int_equal(recvmsg(ends[1], &m, 0), 1);
    int came = resources_descriptors() - before;
    close(ends[0]);
    close(ends[1]);
    return came <= fits;
}

static void test_surplus_descriptors_are_closed(void **state)
{
    (void)state;
    if (!kernel_closes_surplus())
        skip_because("this kernel keeps descriptors for which there was no room");
    static const int counts[] = { 2, 5, 8, 9, 64 };
    int ends[2];
    char room[16];
    meet(ends);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int before = resources_descriptors(), fd = -1;
        send_many(ends[0], counts[i]);
        assert_int_equal(handover_recv(ends[1], room, sizeof room, &fd, 0), 1);
        assert_true(fd >= 0);
        assert_int_equal(resources_descriptors(), before + 1);
        close(fd);
    }
    /* the message does not fit: its descriptor goes with it */
    int before = resources_descriptors(), fd = -1;
    assert_int_equal(handover_send(ends[0], "0123456789", 10, ends[0], 0), 0);
    assert_int_equal(handover_recv(ends[1], room, 4, &fd, 0), -EMSGSIZE);
    assert_int_equal(fd, -1);
    assert_int_equal(resources_descriptors(), before);
    part(ends);
}

static int receives_with_a_full_table(void *arg)
{
    int end = *(int *)arg, fd;
    char room[16];
    struct rlimit limit = { (rlim_t)end + 1, (rlim_t)end + 1 };
    CHILD_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (dup(end) >= 0)
        ;
    CHILD_CHECK(handover_recv(end, room, sizeof room, &fd, 0) == -EMFILE);
    CHILD_CHECK(fd == -1);
    return 0;
}

static void test_a_full_table_is_an_error(void **state)
{
    (void)state;
    int ends[2];
    meet(ends);
    assert_int_equal(handover_send(ends[0], "x", 1, 0, 0), 0);
    assert_int_equal(child_run(receives_with_a_full_table, &ends[1]), 0);
    part(ends);
}

static void test_waiting_ends(void **state)
{
    (void)state;
    int ends[2], fd = 5, error;
    char room[4096] = { 0 };
    meet(ends);
    assert_int_equal(handover_recv(ends[1], room, sizeof room, &fd, 0), -EAGAIN);
    assert_int_equal(fd, -1);
    assert_int_equal(handover_recv(ends[1], room, sizeof room, &fd, 2), -ETIMEDOUT);
    while ((error = handover_send(ends[0], room, sizeof room, -1, 0)) == 0)
        ;
    assert_int_equal(error, -EAGAIN);
    assert_int_equal(handover_send(ends[0], room, sizeof room, -1, 2), -ETIMEDOUT);
    part(ends);
}

static void test_the_other_end_s_end_is_seen(void **state)
{
    (void)state;
    int ends[2], fd;
    char room[16];
    meet(ends);
    assert_int_equal(handover_send(ends[0], "last", 4, -1, 0), 0);
    handover_close(ends[0], NULL);
    assert_int_equal(handover_recv(ends[1], room, sizeof room, &fd, -1), 4);
    assert_int_equal(handover_recv(ends[1], room, sizeof room, &fd, -1), -ECONNRESET);
    assert_int_equal(handover_send(ends[1], "x", 1, -1, -1), -EPIPE);
    handover_close(ends[1], NULL);
}

static int answers(void *arg)
{
    int fd, got, *ends = arg;
    char room[16];
    close(ends[0]);
    got = handover_recv(ends[1], room, sizeof room, &fd, -1);
    CHILD_CHECK(got == 4 && fd >= 0);
    CHILD_CHECK(handover_send(ends[1], "pong", 4, fd, -1) == 0);
    return 0;
}

static void test_a_wait_ends_with_the_answer(void **state)
{
    (void)state;
    int ends[2], fd;
    char room[16];
    meet(ends);
    pid_t pid = child_start(answers, ends);
    handover_close(ends[1], NULL);
    assert_int_equal(handover_send(ends[0], "ping", 4, 0, -1), 0);
    assert_int_equal(handover_recv(ends[0], room, sizeof room, &fd, PATIENCE_S * 1000), 4);
    assert_memory_equal(room, "pong", 4);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(child_reap(pid), 0);
    handover_close(ends[0], NULL);
}

static void test_a_path_is_there_while_listened_to(void **state)
{
    (void)state;
    struct tree tree;
    char path[100];
    tree_begin(&tree);
    snprintf(path, sizeof path, "%s/meet", tree.root);
    int listener = handover_listen(path);
    assert_true(listener >= 0);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(handover_listen(path), -EADDRINUSE);
    int end = handover_connect(path);
    assert_true(end >= 0);
    close(end);
    handover_close(listener, path);
    assert_int_equal(access(path, F_OK), -1);
    tree_end(&tree);
}

struct listening { const char *path; struct child_pipe here, go; };

static int listens(void *arg)
{
    struct listening *l = arg;
    CHILD_CHECK(handover_listen(l->path) >= 0);
    CHILD_CHECK(child_say(&l->here) == 0);
    return child_hear(&l->go);
}

static void test_a_killed_listener_s_path_is_taken_over(void **state)
{
    (void)state;
    struct tree tree;
    char path[100];
    struct listening l = { .path = path };
    tree_begin(&tree);
    child_pipe_open(&l.here);
    child_pipe_open(&l.go);
    snprintf(path, sizeof path, "%s/meet", tree.root);
    pid_t pid = child_start(listens, &l);
    assert_int_equal(child_hear(&l.here), 0);
    assert_int_equal(handover_listen(path), -EADDRINUSE);
    child_kill(pid);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(handover_connect(path), -ECONNREFUSED);
    int listener = handover_listen(path);
    assert_true(listener >= 0);
    handover_close(listener, path);
    child_pipe_close(&l.here);
    child_pipe_close(&l.go);
    tree_end(&tree);
}

static void test_what_is_no_socket_is_left_alone(void **state)
{
    (void)state;
    struct tree tree;
    char path[100];
    tree_begin(&tree);
    tree_file(&tree, "meet", "precious");
    snprintf(path, sizeof path, "%s/meet", tree.root);
    assert_int_equal(handover_listen(path), -EADDRINUSE);
    assert_int_equal(access(path, F_OK), 0);
    tree_end(&tree);
}

static void test_two_do_not_take_over_at_once(void **state)
{
    (void)state;
    struct tree tree;
    char path[100];
    tree_begin(&tree);
    snprintf(path, sizeof path, "%s/meet", tree.root);
    int lock = open(tree.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    assert_int_equal(handover_listen(path), -EADDRINUSE);
    close(lock);
    int listener = handover_listen(path);
    assert_true(listener >= 0);
    handover_close(listener, path);
    tree_end(&tree);
}

/* ---- boxes ---- */

static void test_a_box_keeps_what_comes(void **state)
{
    (void)state;
    int got_fd, before = resources_descriptors(), message = 0, sent = 0;
    assert_int_equal(handover_into(own_name()), -ECONNREFUSED);
    int box = handover_box(own_name());
    assert_true(box >= 0);
    assert_int_equal(handover_box(own_name()), -EADDRINUSE);
    assert_int_equal(handover_recv(box, &message, sizeof message, &got_fd, 0), -EAGAIN);
    int way = handover_into(own_name()), passed = open("/dev/zero", O_RDONLY | O_CLOEXEC), r;
    assert_true(way >= 0 && passed >= 0);
    while ((r = handover_send(way, &sent, sizeof sent, passed, 0)) == 0)
        sent++;
    assert_int_equal(r, -EAGAIN);
    assert_true(sent >= 10);
    handover_close(way, NULL);                       /* what has been sent stays */
    close(passed);
    for (int i = 0; i < sent; i++) {
        char byte = 1;
        assert_int_equal(handover_recv(box, &message, sizeof message, &got_fd, 0), sizeof message);
        assert_int_equal(message, i);
        assert_true(got_fd >= 0 && read(got_fd, &byte, 1) == 1 && byte == 0);
        close(got_fd);
    }
    assert_int_equal(handover_recv(box, &message, sizeof message, &got_fd, 0), -EAGAIN);
    handover_close(box, NULL);
    assert_int_equal(resources_descriptors(), before);
}

static char stranger_name[64];

static int stranger(void *arg)
{
    if (setgid(65534) != 0 || setuid(65534) != 0)
        return 77;
    int way = handover_into(stranger_name);
    return way < 0 ? 1 : handover_send(way, arg, 1, STDIN_FILENO, 0) != 0;
}

static void test_a_box_refuses_strangers(void **state)
{
    (void)state;
    int got_fd, before = resources_descriptors();
    char byte = 7;
    snprintf(stranger_name, sizeof stranger_name, "%s", own_name());
    int box = handover_box(stranger_name);
    assert_true(box >= 0);
    int status = child_run(stranger, &byte);
    if (status == 77) {
        handover_close(box, NULL);
        skip_because("only root can become another user");
    }
    assert_int_equal(status, 0);
    assert_int_equal(handover_recv(box, &byte, 1, &got_fd, 0), -EPERM);
    assert_int_equal(got_fd, -1);
    handover_close(box, NULL);
    assert_int_equal(resources_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_has_one_listener),
        cmocka_unit_test(test_names_that_cannot_be),
        cmocka_unit_test(test_the_peer_shows_who_it_is),
        cmocka_unit_test(test_messages_stay_apart),
        cmocka_unit_test(test_a_descriptor_comes_along),
        cmocka_unit_test(test_surplus_descriptors_are_closed),
        cmocka_unit_test(test_a_full_table_is_an_error),
        cmocka_unit_test(test_waiting_ends),
        cmocka_unit_test(test_the_other_end_s_end_is_seen),
        cmocka_unit_test(test_a_wait_ends_with_the_answer),
        cmocka_unit_test(test_a_path_is_there_while_listened_to),
        cmocka_unit_test(test_a_killed_listener_s_path_is_taken_over),
        cmocka_unit_test(test_what_is_no_socket_is_left_alone),
        cmocka_unit_test(test_two_do_not_take_over_at_once),
        cmocka_unit_test(test_a_box_keeps_what_comes),
        cmocka_unit_test(test_a_box_refuses_strangers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
