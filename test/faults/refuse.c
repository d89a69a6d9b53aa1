/* The calls of the C library and of the kernel by which the library under test gets something: the linker sends them here (--wrap). One of
 * them fails, in one rank, in whatever thread calls it. */
#include "refuse.h"

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

static struct { shared32 armed; enum refuse_call call; uint32_t nth; int error; shared32 calls[REFUSE_CALLS]; } refuse;

const struct refuse_kind refuse_kinds[REFUSE_CALLS] = {
    [REFUSE_MALLOC] = { "malloc", { ENOMEM } },
    [REFUSE_CALLOC] = { "calloc", { ENOMEM } },
    [REFUSE_REALLOC] = { "realloc", { ENOMEM } },
    [REFUSE_POSIX_MEMALIGN] = { "posix_memalign", { ENOMEM } },
    [REFUSE_STRDUP] = { "strdup", { ENOMEM } },
    [REFUSE_STRNDUP] = { "strndup", { ENOMEM } },
    [REFUSE_ASPRINTF] = { "asprintf", { ENOMEM } },
    [REFUSE_REALPATH] = { "realpath", { ENOMEM, EACCES } },
    [REFUSE_MMAP] = { "mmap", { ENOMEM, EAGAIN, EPERM } },
    [REFUSE_MADVISE] = { "madvise", { ENOMEM, EAGAIN, EINVAL } },
    [REFUSE_MPROTECT] = { "mprotect", { ENOMEM } },
    [REFUSE_FALLOCATE] = { "fallocate", { ENOSPC, ENOMEM, EOPNOTSUPP } },
    [REFUSE_POSIX_FALLOCATE] = { "posix_fallocate", { ENOSPC, EFBIG } },
    [REFUSE_FTRUNCATE] = { "ftruncate", { ENOMEM, EFBIG } },
    [REFUSE_PTHREAD_CREATE] = { "pthread_create", { EAGAIN, EPERM } },
    [REFUSE_OPEN] = { "open", { EMFILE, ENFILE, ENOMEM, EACCES } },
    [REFUSE_FSTAT] = { "fstat", { ENOMEM, EIO } },
    [REFUSE_STAT] = { "stat", { ENOMEM, EACCES } },
    [REFUSE_FCHMOD] = { "fchmod", { EPERM } },
    [REFUSE_RENAME] = { "rename", { EACCES, ENOSPC } },
    [REFUSE_FSYNC] = { "fsync", { EIO, ENOSPC } },
    [REFUSE_PWRITE] = { "pwrite", { ENOSPC, EIO } },
    [REFUSE_PREAD] = { "pread", { EIO, ENOMEM } },
    [REFUSE_EVENTFD] = { "eventfd", { EMFILE, ENFILE, ENOMEM } },
    [REFUSE_MEMFD_CREATE] = { "memfd_create", { EMFILE, ENOMEM } },
    [REFUSE_MBIND] = { "mbind", { ENOMEM, EPERM } },
    [REFUSE_URING] = { "io_uring_queue_init", { ENOMEM, EPERM, ENOSYS } },
    [REFUSE_PIDFD_OPEN] = { "pidfd_open", { EMFILE, ENFILE, ENOMEM } },
    [REFUSE_FUTEX_WAITV] = { "futex_waitv", { ENOSYS } },
    [REFUSE_READV_OF] = { "process_vm_readv", { EPERM, ENOMEM, ENOSYS } },
};

void refuse_arm(enum refuse_call call, uint32_t nth, int error)
{
    refuse.call = call;
    refuse.nth = nth;
    refuse.error = error;
    store_release32(&refuse.armed, 1);
}

void refuse_disarm(void) { store_release32(&refuse.armed, 0); }

uint32_t refuse_calls(enum refuse_call call) { return load_acquire32(&refuse.calls[call]); }

/* The error of this call, 0: it goes its way. */
static int refused(enum refuse_call call)
{
    if (!load_acquire32(&refuse.armed))
        return 0;
    uint32_t n = fetch_add32(&refuse.calls[call], 1) + 1;
    if (refuse.nth == 0 || call != refuse.call || n != refuse.nth)
        return 0;
    errno = refuse.error;
    return refuse.error;
}

#define WRAP(type, name, call, failed, parameters, arguments) \
    type __real_##name parameters; \
    type __wrap_##name parameters; \
    type __wrap_##name parameters { return refused(call) ? (failed) : __real_##name arguments; }

WRAP(void *, malloc, REFUSE_MALLOC, NULL, (size_t n), (n))
WRAP(void *, calloc, REFUSE_CALLOC, NULL, (size_t n, size_t each), (n, each))
WRAP(void *, realloc, REFUSE_REALLOC, NULL, (void *at, size_t n), (at, n))
WRAP(int, posix_memalign, REFUSE_POSIX_MEMALIGN, ENOMEM, (void **at, size_t align, size_t n), (at, align, n))
WRAP(char *, strdup, REFUSE_STRDUP, NULL, (const char *s), (s))
WRAP(char *, strndup, REFUSE_STRNDUP, NULL, (const char *s, size_t n), (s, n))
WRAP(char *, realpath, REFUSE_REALPATH, NULL, (const char *path, char *into), (path, into))
WRAP(void *, mmap, REFUSE_MMAP, MAP_FAILED, (void *at, size_t n, int can, int how, int fd, off_t from), (at, n, can, how, fd, from))
WRAP(int, madvise, REFUSE_MADVISE, -1, (void *at, size_t n, int what), (at, n, what))
WRAP(int, mprotect, REFUSE_MPROTECT, -1, (void *at, size_t n, int can), (at, n, can))
WRAP(int, fallocate, REFUSE_FALLOCATE, -1, (int fd, int how, off_t from, off_t n), (fd, how, from, n))
WRAP(int, posix_fallocate, REFUSE_POSIX_FALLOCATE, refuse.error, (int fd, off_t from, off_t n), (fd, from, n))
WRAP(int, ftruncate, REFUSE_FTRUNCATE, -1, (int fd, off_t n), (fd, n))
WRAP(int, pthread_create, REFUSE_PTHREAD_CREATE, refuse.error, (pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg), (t, a, run, arg))
WRAP(int, fstat, REFUSE_FSTAT, -1, (int fd, struct stat *st), (fd, st))
WRAP(int, stat, REFUSE_STAT, -1, (const char *path, struct stat *st), (path, st))
WRAP(int, fchmod, REFUSE_FCHMOD, -1, (int fd, mode_t mode), (fd, mode))
WRAP(int, rename, REFUSE_RENAME, -1, (const char *from, const char *to), (from, to))
WRAP(int, fsync, REFUSE_FSYNC, -1, (int fd), (fd))
WRAP(ssize_t, pwrite, REFUSE_PWRITE, -1, (int fd, const void *at, size_t n, off_t to), (fd, at, n, to))
WRAP(ssize_t, pread, REFUSE_PREAD, -1, (int fd, void *at, size_t n, off_t from), (fd, at, n, from))
WRAP(int, eventfd, REFUSE_EVENTFD, -1, (unsigned count, int flags), (count, flags))
WRAP(int, memfd_create, REFUSE_MEMFD_CREATE, -1, (const char *name, unsigned flags), (name, flags))
WRAP(long, mbind, REFUSE_MBIND, -1, (void *at, unsigned long n, int mode, const unsigned long *mask, unsigned long most, unsigned flags),
     (at, n, mode, mask, most, flags))
/* Weak: the library may be built without. */
int __real_io_uring_queue_init(unsigned n, struct io_uring *ring, unsigned flags) __attribute__((weak));
WRAP(int, io_uring_queue_init, REFUSE_URING, -refuse.error, (unsigned n, struct io_uring *ring, unsigned flags), (n, ring, flags))
WRAP(ssize_t, process_vm_readv, REFUSE_READV_OF, -1,
     (pid_t pid, const struct iovec *to, unsigned long tos, const struct iovec *from, unsigned long froms, unsigned long flags),
     (pid, to, tos, from, froms, flags))

int __wrap_asprintf(char **at, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **at, const char *format, ...)
{
    va_list args;
    if (refused(REFUSE_ASPRINTF))
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
    if (refused(REFUSE_OPEN))
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
    if ((number == PIDFD_OPEN && refused(REFUSE_PIDFD_OPEN)) || (number == FUTEX_WAITV && refused(REFUSE_FUTEX_WAITV)))
        return -1;
    va_start(args, number);
    for (int i = 0; i < (number == SYS_futex ? 6 : 5); i++)          /* the sixth lies on the stack: where there is none that is another's */
        a[i] = va_arg(args, long);
    va_end(args);
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
