/* The calls of the C library and of the kernel by which the library under test gets something: the
 * linker sends them here (--wrap). One of them fails, in one rank, in whatever thread calls it. */
#include "failing_call.h"

#include "base/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The same on every machine; older headers know neither. */
enum { PIDFD_OPEN = 434, FUTEX_WAITV = 449 };
struct io_uring;

static struct {
    shared32 armed;
    enum failing_call call;
    uint32_t nth;
    int error;
    shared32 calls[FAIL_CALLS];
} failing;

const struct failing_kind failing_kinds[FAIL_CALLS] = {
    [FAIL_MALLOC] = { "malloc", { ENOMEM } },
    [FAIL_CALLOC] = { "calloc", { ENOMEM } },
    [FAIL_REALLOC] = { "realloc", { ENOMEM } },
    [FAIL_POSIX_MEMALIGN] = { "posix_memalign", { ENOMEM } },
    [FAIL_STRDUP] = { "strdup", { ENOMEM } },
    [FAIL_STRNDUP] = { "strndup", { ENOMEM } },
    [FAIL_ASPRINTF] = { "asprintf", { ENOMEM } },
    [FAIL_REALPATH] = { "realpath", { ENOMEM, EACCES } },
    [FAIL_MMAP] = { "mmap", { ENOMEM, EAGAIN, EPERM } },
    [FAIL_MADVISE] = { "madvise", { ENOMEM, EAGAIN, EINVAL } },
    [FAIL_MPROTECT] = { "mprotect", { ENOMEM } },
    [FAIL_FALLOCATE] = { "fallocate", { ENOSPC, ENOMEM, EOPNOTSUPP } },
    [FAIL_POSIX_FALLOCATE] = { "posix_fallocate", { ENOSPC, EFBIG } },
    [FAIL_FTRUNCATE] = { "ftruncate", { ENOMEM, EFBIG } },
    [FAIL_PTHREAD_CREATE] = { "pthread_create", { EAGAIN, EPERM } },
    [FAIL_OPEN] = { "open", { EMFILE, ENFILE, ENOMEM, EACCES } },
    [FAIL_FSTAT] = { "fstat", { ENOMEM, EIO } },
    [FAIL_STAT] = { "stat", { ENOMEM, EACCES } },
    [FAIL_FCHMOD] = { "fchmod", { EPERM } },
    [FAIL_RENAME] = { "rename", { EACCES, ENOSPC } },
    [FAIL_FSYNC] = { "fsync", { EIO, ENOSPC } },
    [FAIL_PWRITE] = { "pwrite", { ENOSPC, EIO } },
    [FAIL_PREAD] = { "pread", { EIO, ENOMEM } },
    [FAIL_EVENTFD] = { "eventfd", { EMFILE, ENFILE, ENOMEM } },
    [FAIL_MEMFD_CREATE] = { "memfd_create", { EMFILE, ENOMEM } },
    [FAIL_MBIND] = { "mbind", { ENOMEM, EPERM } },
    [FAIL_URING] = { "io_uring_queue_init", { ENOMEM, EPERM, ENOSYS } },
    [FAIL_PIDFD_OPEN] = { "pidfd_open", { EMFILE, ENFILE, ENOMEM } },
    [FAIL_FUTEX_WAITV] = { "futex_waitv", { ENOSYS } },
    [FAIL_READV_OF] = { "process_vm_readv", { EPERM, ENOMEM, ENOSYS } },
};

void failing_arm(enum failing_call call, uint32_t nth, int error)
{
    failing.call = call;
    failing.nth = nth;
    failing.error = error;
    store_release32(&failing.armed, 1);
}

void failing_disarm(void) { store_release32(&failing.armed, 0); }

uint32_t failing_calls(enum failing_call call) { return load_acquire32(&failing.calls[call]); }

/* The error of this call, 0: it goes its way. */
static int fails(enum failing_call call)
{
    if (!load_acquire32(&failing.armed))
        return 0;
    uint32_t n = fetch_add32(&failing.calls[call], 1) + 1;
    if (failing.nth == 0 || call != failing.call || n != failing.nth)
        return 0;
    errno = failing.error;
    return failing.error;
}

#define WRAP(type, name, call, failed, parameters, arguments) \
    type __real_##name parameters; \
    type __wrap_##name parameters; \
    type __wrap_##name parameters { return fails(call) ? (failed) : __real_##name arguments; }

WRAP(void *, malloc, FAIL_MALLOC, NULL, (size_t n), (n))
WRAP(void *, calloc, FAIL_CALLOC, NULL, (size_t n, size_t each), (n, each))
WRAP(void *, realloc, FAIL_REALLOC, NULL, (void *at, size_t n), (at, n))
WRAP(int, posix_memalign, FAIL_POSIX_MEMALIGN, ENOMEM, (void **at, size_t align, size_t n),
     (at, align, n))
WRAP(char *, strdup, FAIL_STRDUP, NULL, (const char *s), (s))
WRAP(char *, strndup, FAIL_STRNDUP, NULL, (const char *s, size_t n), (s, n))
WRAP(char *, realpath, FAIL_REALPATH, NULL, (const char *path, char *into), (path, into))
WRAP(void *, mmap, FAIL_MMAP, MAP_FAILED,
     (void *at, size_t n, int can, int how, int fd, off_t from), (at, n, can, how, fd, from))
WRAP(int, madvise, FAIL_MADVISE, -1, (void *at, size_t n, int what), (at, n, what))
WRAP(int, mprotect, FAIL_MPROTECT, -1, (void *at, size_t n, int can), (at, n, can))
WRAP(int, fallocate, FAIL_FALLOCATE, -1, (int fd, int how, off_t from, off_t n), (fd, how, from, n))
WRAP(int, posix_fallocate, FAIL_POSIX_FALLOCATE, failing.error, (int fd, off_t from, off_t n),
     (fd, from, n))
WRAP(int, ftruncate, FAIL_FTRUNCATE, -1, (int fd, off_t n), (fd, n))
WRAP(int, pthread_create, FAIL_PTHREAD_CREATE, failing.error,
     (pthread_t * t, const pthread_attr_t *a, void *(*run)(void *), void *arg), (t, a, run, arg))
WRAP(int, fstat, FAIL_FSTAT, -1, (int fd, struct stat *st), (fd, st))
WRAP(int, stat, FAIL_STAT, -1, (const char *path, struct stat *st), (path, st))
WRAP(int, fchmod, FAIL_FCHMOD, -1, (int fd, mode_t mode), (fd, mode))
WRAP(int, rename, FAIL_RENAME, -1, (const char *from, const char *to), (from, to))
WRAP(int, fsync, FAIL_FSYNC, -1, (int fd), (fd))
WRAP(ssize_t, pwrite, FAIL_PWRITE, -1, (int fd, const void *at, size_t n, off_t to),
     (fd, at, n, to))
WRAP(ssize_t, pread, FAIL_PREAD, -1, (int fd, void *at, size_t n, off_t from), (fd, at, n, from))
WRAP(int, eventfd, FAIL_EVENTFD, -1, (unsigned count, int flags), (count, flags))
WRAP(int, memfd_create, FAIL_MEMFD_CREATE, -1, (const char *name, unsigned flags), (name, flags))
/* Weak: the library may be built without. */
int __real_io_uring_queue_init(unsigned n, struct io_uring *ring, unsigned flags)
    __attribute__((weak));
WRAP(int, io_uring_queue_init, FAIL_URING, -failing.error,
     (unsigned n, struct io_uring *ring, unsigned flags), (n, ring, flags))
WRAP(ssize_t, process_vm_readv, FAIL_READV_OF, -1,
     (pid_t pid, const struct iovec *to, unsigned long tos, const struct iovec *from,
      unsigned long froms, unsigned long flags),
     (pid, to, tos, from, froms, flags))

int __wrap_asprintf(char **at, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **at, const char *format, ...)
{
    va_list args;
    if (fails(FAIL_ASPRINTF))
        return -1;
    va_start(args, format);
    int n = vasprintf(at, format, args);
    va_end(args);
    return n;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    if (fails(FAIL_OPEN))
        return -1;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return __real_open(path, flags, mode);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    long a[6] = { 0 };
    va_list args;
    if ((number == PIDFD_OPEN && fails(FAIL_PIDFD_OPEN))
        || (number == FUTEX_WAITV && fails(FAIL_FUTEX_WAITV))
        || (number == SYS_mbind && fails(FAIL_MBIND)))
        return -1;
    va_start(args, number);
    /* the sixth lies on the stack: where there is none that is another's */
    for (int i = 0; i < (number == SYS_futex ? 6 : 5); i++)
        a[i] = va_arg(args, long);
    va_end(args);
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
