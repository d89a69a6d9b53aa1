/* Sequenced packets: a message arrives whole or not at all, with its descriptor, and the end of the
 * other side is seen. An abstract name ends with its socket. A name on disk outlives a killed
 * listener. So a listener on a path first tries to connect there, under a lock on the directory
 * (which leaves no file), and removes a dead socket.
 * Cost: a connection and a message each way, some 20 us; once per rank. */
#include "os/handover.h"

#include "base/clock.h"
#include "base/text.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_MOST = 4096, BACKLOG = 4096, FDS_READ = 8 };

struct address { struct sockaddr_un un; socklen_t len; };

static int make_address(const char *name, struct address *address)
{
    size_t n = strlen(name), most = sizeof address->un.sun_path;
    bool on_disk = name[0] == '/';
    if (n == 0)
        return -EINVAL;
    if (n + 1 > most)                    /* a byte 0 before an abstract name, or behind a path */
        return -ENAMETOOLONG;
    memset(address, 0, sizeof *address);
    address->un.sun_family = AF_UNIX;
    memcpy(address->un.sun_path + (on_disk ? 0 : 1), name, n);
    address->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    return 0;
}

static int new_socket(int type)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}

static int bind_and_listen(const struct address *address)
{
    int fd = new_socket(SOCK_SEQPACKET);
    if (fd < 0)
        return fd;
    if (bind(fd, (const struct sockaddr *)&address->un, address->len) != 0
        || listen(fd, BACKLOG) != 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

static int connect_to(const struct address *address, int type)
{
    int fd = new_socket(type);
    if (fd < 0)
        return fd;
    if (connect(fd, (const struct sockaddr *)&address->un, address->len) != 0) {
        int error = errno == ENOENT ? -ECONNREFUSED : -errno;
        close(fd);
        return error;
    }
    return fd;
}

/* The descriptor that holds the lock, or -errno. It does not wait: a rank that finds it locked
 * tries the whole meeting again. */
static int lock_directory(const char *path)
{
    char directory[sizeof(struct sockaddr_un)];
    size_t n = (size_t)(strrchr(path, '/') - path);
    memcpy(directory, path, n);
    directory[n] = 0;
    int fd = open(n > 0 ? directory : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int error = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
        close(fd);
        return error;
    }
    return fd;
}

/* connect gives the same error for a plain file as for a dead socket. A plain file is not ours: it
 * stays. */
static bool is_socket(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Every listener holds the lock from bind to listen, so a name that refuses under the lock is
 * dead. */
static int listen_on_path(const char *path, const struct address *address)
{
    int lock = lock_directory(path);
    if (lock < 0)
        return lock;
    int fd = bind_and_listen(address);
    if (fd == -EADDRINUSE) {
        int other = connect_to(address, SOCK_SEQPACKET);
        if (other >= 0) {
            close(other);
        } else if (other == -ECONNREFUSED && is_socket(path)) {
            unlink(path);
            fd = bind_and_listen(address);
        }
    }
    close(lock);
    return fd;
}

/* A directory in which no other user can bind or remove a name. */
static const char *own_directory(void)
{
    static const char *const variables[] = { "XDG_RUNTIME_DIR", "HOME" };
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        struct stat st;
        const char *directory = getenv(variables[i]);
        bool there = directory && directory[0] == '/' && stat(directory, &st) == 0
            && S_ISDIR(st.st_mode);
        if (there && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH))
            && access(directory, W_OK | X_OK) == 0)
            return directory;
    }
    return NULL;
}

int handover_private(const char *name, char *path, size_t room)
{
    char boot[64];
    struct stat net = { 0 };
    const char *directory = own_directory();
    if (!directory)
        return -ENOENT;
    int n = file_read("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    stat("/proc/thread-self/ns/net", &net);
    uint64_t hash = text_hash(name, strlen(name), (uint64_t)net.st_ino);
    hash = text_hash(boot, n > 0 ? (size_t)n : 0, hash);
    struct text t = { path, room, 0 };
    text_clear(&t);
    text_add(&t, "%s/.tutti-%016llx", directory, (unsigned long long)hash);
    return t.used + 1 < sizeof((struct sockaddr_un *)0)->sun_path && t.used + 1 < room
        ? 0
        : -ENAMETOOLONG;
}

int handover_listen(const char *name)
{
    struct address address;
    int error = make_address(name, &address);
    if (error)
        return error;
    return name[0] == '/' ? listen_on_path(name, &address) : bind_and_listen(&address);
}

int handover_connect(const char *name)
{
    struct address address;
    int error = make_address(name, &address);
    return error ? error : connect_to(&address, SOCK_SEQPACKET);
}

int handover_box(const char *name)
{
    struct address address;
    int error = make_address(name, &address), fd = error ? error : new_socket(SOCK_DGRAM), yes = 1;
    if (fd < 0)
        return fd;
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0
        && bind(fd, (const struct sockaddr *)&address.un, address.len) == 0)
        return fd;
    error = -errno;
    close(fd);
    return error;
}

int handover_into(const char *name)
{
    struct address address;
    int error = make_address(name, &address);
    return error ? error : connect_to(&address, SOCK_DGRAM);
}

int handover_accept(int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            return fd;
        if (errno == EINVAL)                         /* deafened, and no connection is left */
            return -EAGAIN;
        if (errno != EINTR && errno != ECONNABORTED)
            return -errno;
    }
}

/* Unlinks a path: a socket there that refuses would count as dead. */
void handover_deafen(int listener, const char *name)
{
    if (name[0] == '/')
        unlink(name);
    else
        shutdown(listener, SHUT_RD);
}

void handover_close(int fd, const char *name_or_null)
{
    if (name_or_null && name_or_null[0] == '/')
        unlink(name_or_null);
    if (fd >= 0)
        close(fd);
}

int handover_peer(int fd, struct handover_peer *peer)
{
    struct ucred cred;
    socklen_t len = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
        return -errno;
    *peer = (struct handover_peer){ cred.pid, cred.uid };
    return 0;
}

/* Waits for `events` until end_ns at most. 0 or -errno. A signal is no error: its handler has run.
 * */
static int wait_for(int fd, short events, int timeout_ms, uint64_t end_ns)
{
    for (;;) {
        int left_ms = -1;
        if (timeout_ms == 0)
            return -EAGAIN;
        if (timeout_ms > 0) {
            uint64_t now = clock_ns();
            if (now >= end_ns)
                return -ETIMEDOUT;
            left_ms = (int)((end_ns - now + 999999u) / 1000000u);
        }
        struct pollfd p = { fd, events, 0 };
        int ready = poll(&p, 1, left_ms);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return -errno;
    }
}

static uint64_t end_of(int timeout_ms)
{
    return timeout_ms > 0 ? clock_ns() + (uint64_t)timeout_ms * 1000000u : 0;
}

/* Room for descriptors, aligned as the macros of cmsg(3) want it. */
union control {
    struct cmsghdr align;
    char room[CMSG_SPACE(FDS_READ * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

int handover_send(int fd, const void *bytes, size_t n, int pass_fd, int timeout_ms)
{
    union control control;
    struct iovec part = { (void *)(uintptr_t)bytes, n };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    uint64_t end_ns = end_of(timeout_ms);
    if (n == 0)                          /* would read as the end of the stream */
        return -EINVAL;
    if (n > MESSAGE_MOST)
        return -EMSGSIZE;
    if (pass_fd >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &pass_fd, sizeof pass_fd);
    }
    for (;;) {
        if (sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
            return 0;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return -errno;
        int error = wait_for(fd, POLLOUT, timeout_ms, end_ns);
        if (error)
            return error;
    }
}

/* The first descriptor in the message, moved up. The others are closed: a stranger could fill our
 * table. */
static int take_descriptor(struct msghdr *message)
{
    int first = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int got;
            memcpy(&got, CMSG_DATA(c) + i * sizeof got, sizeof got);
            if (first < 0)
                first = got;
            else
                close(got);
        }
    }
    return first < 0 ? -1 : file_move_up(first);
}

/* The sender of a message in a box. A connection's other end is known before. */
static bool is_stranger(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        struct ucred cred;
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
            continue;
        memcpy(&cred, CMSG_DATA(c), sizeof cred);
        if (cred.uid != geteuid() && cred.uid != 0)
            return true;
    }
    return false;
}

int handover_recv(int fd, void *bytes, size_t room, int *got_fd, int timeout_ms)
{
    union control control;
    struct iovec part = { bytes, room };
    struct msghdr message;
    ssize_t got;
    uint64_t end_ns = end_of(timeout_ms);
    *got_fd = -1;
    for (;;) {
        message = (struct msghdr){ .msg_iov = &part, .msg_iovlen = 1 };
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (got >= 0)
            break;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return -errno;
        int error = wait_for(fd, POLLIN, timeout_ms, end_ns);
        if (error)
            return error;
    }
    int passed = take_descriptor(&message);
    int error = 0;
    if (got == 0)
        error = -ECONNRESET;
    else if (is_stranger(&message))
        error = -EPERM;
    else if (message.msg_flags & MSG_TRUNC)
        error = -EMSGSIZE;
    else if (passed < 0 && (message.msg_flags & MSG_CTRUNC))
        error = -EMFILE;                 /* it was sent, and our table had no place for it */
    if (error) {
        if (passed >= 0)
            close(passed);
        return error;
    }
    *got_fd = passed;
    return (int)got;
}
