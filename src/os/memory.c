/* A memfd and not a file in /dev/shm: it has no limit of 64 MiB in a container, leaves no name, and
 * has seals, so no peer can shrink it under the others. Where the system refuses seals it goes
 * without: a file without a name will do there. Mappings begin on a multiple of 2 MiB, for huge
 * pages: 2 MiB more of address space are reserved for a moment.
 * Cost: create and map take some tens of microseconds at any size; only populate takes memory. */
#include "os/memory.h"

#include "base/atomic.h"
#include "base/text.h"
#include "os/cgroup.h"
#include "os/checked.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <unistd.h>

/* Newer than some headers we are built with; the kernel never changes these numbers. */
enum { NOEXEC_SEAL = 0x0008, POPULATE_READ = 22, POPULATE_WRITE = 23, NO_ADVICE = 0x7ffe };

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static const uint64_t alignment = (uint64_t)2 << 20;

size_t memory_page(void)
{
    long page = sysconf(_SC_PAGESIZE);
    return page > 0 ? (size_t)page : 4096;
}

/* Tries "not executable" first: some systems refuse the plain form, older kernels this one. */
static int new_memfd(void)
{
    static const unsigned forms[] = { MFD_ALLOW_SEALING | NOEXEC_SEAL, MFD_ALLOW_SEALING, 0 };
    int fd = -1;
    errno = EINVAL;
    for (int i = 0; i < 3 && fd < 0 && errno == EINVAL; i++)
        fd = memfd_create("tutti", MFD_CLOEXEC | forms[i]);
    return fd < 0 ? -errno : fd;
}

static bool sealed(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & SEALS) == SEALS;
}

bool memory_seals(void)
{
    int fd = new_memfd();
    bool so = fd >= 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0 && sealed(fd);
    if (fd >= 0)
        close(fd);
    return so;
}

int memory_create(uint64_t bytes)
{
    struct rlimit limit;
    if (bytes == 0)
        return -EINVAL;
    if (bytes > (uint64_t)INT64_MAX)
        return -EFBIG;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
        && bytes > limit.rlim_cur)
        return -EFBIG;
    int fd = new_memfd();
    if (fd < 0)
        return fd;
    fd = file_move_up(fd);
    if (ftruncate(fd, (off_t)bytes) != 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    (void)fcntl(fd, F_ADD_SEALS, SEALS);             /* refused: memory_seals says so */
    return fd;
}

int memory_check(int fd, uint64_t *bytes)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return -EINVAL;
    if (!sealed(fd) && (st.st_nlink != 0 || memory_seals()))
        return -EINVAL;
    *bytes = (uint64_t)st.st_size;
    return 0;
}

/* Address space and not memory, whatever the program has said of locking (mlockall, MCL_FUTURE):
 * pages without any rights are not made present, and are unlocked before they get some. memcheck
 * goes through all that mprotect opens byte by byte, minutes for an arena: it gets them at once. */
static int map_empty(char *start, uint64_t bytes, int protection, int fd)
{
    const int flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
    if (checked_by_memcheck())
        return mmap(start, bytes, protection, flags, fd, 0) == MAP_FAILED ? -errno : 0;
    if (mmap(start, bytes, PROT_NONE, flags, fd, 0) == MAP_FAILED)
        return -errno;
    munlock(start, bytes);
    return mprotect(start, bytes, protection) == 0 ? 0 : -errno;
}

/* For a limit of locked memory that forbids even a mapping without pages: maps one page, unlocks it
 * and lets it grow; the grown mapping is unlocked, too. Its address is found by a first growth
 * anywhere; another thread may take that address in between. */
static void *map_grown(int fd, uint64_t whole, int protection, int *error)
{
    enum { TRIES = 16 };
    uint64_t page = memory_page(), reserved = whole + alignment;
    *error = -EAGAIN;
    for (int i = 0; i < TRIES; i++) {
        char *at = mmap(NULL, page, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (at == MAP_FAILED)
            break;
        munlock(at, page);
        char *room = mremap(at, page, reserved, MREMAP_MAYMOVE);
        munmap(room == MAP_FAILED ? at : room, room == MAP_FAILED ? page : reserved);
        if (room == MAP_FAILED) {
            *error = -errno;
            break;
        }
        char *start = room + (alignment - (uintptr_t)room % alignment) % alignment;
        if (mmap(start, page, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0)
            != start)
            continue;
        munlock(start, page);
        if (mremap(start, page, whole, 0) == start && mprotect(start, whole, protection) == 0) {
            *error = 0;
            return start;
        }
        munmap(start, page);
    }
    return NULL;
}

static void *map_aligned(int fd, uint64_t bytes, int protection, int *error)
{
    uint64_t page = memory_page();
    if (bytes == 0 || bytes > (uint64_t)INT64_MAX - 2 * alignment) {
        *error = -EINVAL;
        return NULL;
    }
    uint64_t whole = (bytes + page - 1) / page * page;
    uint64_t reserved = whole + alignment;
    char *at = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED && errno == EAGAIN) {
        at = map_grown(fd, whole, protection, error);
        if (at)
            madvise(at, whole, MADV_DONTDUMP);
        return at;
    }
    if (at == MAP_FAILED) {
        *error = -errno;
        return NULL;
    }
    uint64_t head = (alignment - (uintptr_t)at % alignment) % alignment;
    char *start = at + head;
    *error = map_empty(start, bytes, protection, fd);
    if (*error) {
        munmap(at, reserved);
        return NULL;
    }
    if (head > 0)
        munmap(at, head);
    munmap(start + whole, alignment - head);
    /* A core file with all ranks' spans would be useless and huge. A failure of the advice is no
     * error. */
    madvise(start, whole, MADV_DONTDUMP);
    *error = 0;
    return start;
}

void *memory_map(int fd, uint64_t bytes, int *error)
{
    return map_aligned(fd, bytes, PROT_READ | PROT_WRITE, error);
}

/* memcheck's leak search reads all memory that is readable and writable, and so makes all its pages
 * present. So the memory is made write-only: on the known machines it can still be read, but
 * memcheck looks for no pointers there. Nor does it let a thread sleep there. Mapped anew and not
 * by mprotect: see map_empty. */
void memory_no_roots(int fd, void *at, uint64_t bytes, uint64_t offset)
{
    const int flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
    if (checked_by_memcheck() && mmap(at, bytes, PROT_WRITE, flags, fd, (off_t)offset) == at)
        madvise(at, bytes, MADV_DONTDUMP);
}

void *memory_map_readonly(int fd, uint64_t bytes, int *error)
{
    return map_aligned(fd, bytes, PROT_READ, error);
}

void memory_unmap(void *at, uint64_t bytes)
{
    if (at)
        munmap(at, bytes);
}

struct page_range { char *at; size_t bytes; };

static struct page_range whole_pages(void *at, size_t bytes)
{
    size_t page = memory_page();
    size_t head = (uintptr_t)at % page;
    return (struct page_range){ (char *)at - head, (bytes + head + page - 1) / page * page };
}

void memory_not_for_forks(void *at, uint64_t bytes)
{
    struct page_range s = whole_pages(at, bytes);
    madvise(s.at, s.bytes, MADV_DONTFORK);
}

void memory_dump(void *at, uint64_t bytes)
{
    struct page_range s = whole_pages(at, bytes);
    madvise(s.at, s.bytes, MADV_DODUMP);
}

/* Peers may write the same pages meanwhile, so a word is exchanged for itself. An addition of 0
 * would not do: a compiler may turn it into a fence and a load (clang does), and a load gives no
 * writable page. */
static void touch(struct page_range s)
{
    size_t page = memory_page();
    for (size_t i = 0; i < s.bytes; i += page) {
        shared32 *word = (shared32 *)(void *)(s.at + i);
        uint32_t seen = load_acquire32(word);
        while (!swap_if32(word, &seen, seen))
            ;
    }
}

/* EINVAL: a kernel without the advice, or a mapping that cannot be written. The same call on an
 * empty range tells which, unless no advice is looked at there (gVisor). */
static bool populate_known(char *at)
{
    return madvise(at, 0, POPULATE_WRITE) == 0 && madvise(at, 0, NO_ADVICE) != 0;
}

bool memory_populates(void) { return populate_known(NULL); }

int memory_populate(void *at, size_t bytes)
{
    if (bytes == 0)
        return 0;
    struct page_range s = whole_pages(at, bytes);
    int before = errno, error = 0;                   /* older kernels refuse: no call shows it */
    while (error == 0 && madvise(s.at, s.bytes, POPULATE_WRITE) != 0) {
        if (errno == EINVAL && !populate_known(s.at)) {
            touch(s);
            break;
        }
        if (errno != EINTR && errno != EAGAIN)
            error = -errno;
    }
    errno = before;
    return error;
}

void memory_look(const void *at, size_t bytes)
{
    enum { MOST = (2 << 20) / 4096 };
    unsigned char there[MOST];
    int before = errno;
    size_t page = memory_page(), first = ((uintptr_t)at + page - 1) / page,
           end = ((uintptr_t)at + bytes) / page, n = end > first ? end - first : 0;
    n = n < MOST ? n : MOST;
    if (n && mincore((void *)(first * page), n * page, there) == 0)
        for (size_t i = 0, last; i < n; i = last + 1) {
            for (last = i; last < n && there[last] & 1;)
                last++;
            if (last > i && madvise((void *)((first + i) * page), (last - i) * page, POPULATE_READ))
                break;
        }
    errno = before;
}

int memory_release(int fd, void *base, void *at, size_t bytes)
{
    if ((char *)at < (char *)base)
        return -EINVAL;
    if (bytes == 0)
        return 0;
    if (fd < 0)
        return madvise(at, bytes, MADV_REMOVE) == 0 ? 0 : -errno;
    off_t offset = (off_t)((char *)at - (char *)base);
    while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, (off_t)bytes) != 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

static int map_over(void *at, size_t bytes, int flags, int fd, uint64_t offset)
{
    return mmap(at, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, (off_t)offset)
            == MAP_FAILED
        ? -errno
        : 0;
}

/* mremap with an old length of 0 makes a second mapping of the same pages, with the same flags. But
 * forks must have this one. */
static int map_again(void *from, void *at, size_t bytes)
{
    if (mremap(from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
        return -errno;
    madvise(at, bytes, MADV_DOFORK);
    return 0;
}

int memory_map_over(int fd, void *base, uint64_t offset, void *at, size_t bytes)
{
    if (fd < 0)
        return base ? map_again((char *)base + offset, at, bytes) : -EBADF;
    return map_over(at, bytes, MAP_SHARED | MAP_NORESERVE, fd, offset);
}

int memory_private_over(void *at, size_t bytes)
{
    return map_over(at, bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* No limit: "max" in version 2; a number larger than any machine in version 1. */
static void look_limit(const char *dir, void *arg)
{
    static const char *const names[] = { "memory.max", "memory.limit_in_bytes" };
    uint64_t *least = arg;
    for (int i = 0; i < 2; i++) {
        long long limit;
        if (cgroup_number(dir, names[i], &limit, NULL) && limit > 0 && (uint64_t)limit < *least)
            *least = (uint64_t)limit;
    }
}

uint64_t memory_limit(void)
{
    uint64_t least = UINT64_MAX;
    cgroup_walk_own("memory", look_limit, &least);
    return least == UINT64_MAX || least >= (uint64_t)INT64_MAX / 2 ? 0 : least;
}

uint64_t memory_total(void)
{
    struct sysinfo info;
    uint64_t least = UINT64_MAX;
    if (sysinfo(&info) == 0)
        least = (uint64_t)info.totalram * info.mem_unit;
    cgroup_walk_own("memory", look_limit, &least);
    return least;
}

/* The number of a name in a file of lines "name number"; 0: not there. */
static uint64_t line_of(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at != 0)
        if (strncmp(at, name, length) == 0 && (at[length] == ' ' || at[length] == ':'))
            return strtoull(at + length + 1, NULL, 10);
    return 0;
}

/* Bytes free below the group's limit; clean file pages of the group count as free. */
static void look_room(const char *dir, void *arg)
{
    static const char *const names[][3] = { { "memory.max", "memory.current", "inactive_file" },
                                            { "memory.limit_in_bytes", "memory.usage_in_bytes",
                                              "total_inactive_file" } };
    uint64_t *least = arg;
    for (int i = 0; i < 2; i++) {
        long long limit, used;
        char path[1024], text[4096];
        if (!cgroup_number(dir, names[i][0], &limit, NULL)
            || !cgroup_number(dir, names[i][1], &used, NULL) || limit <= 0)
            continue;
        struct text t = TEXT_IN(path);
        text_add(&t, "%s/memory.stat", dir);
        file_read(path, text, sizeof text);
        uint64_t room = (limit > used ? (uint64_t)(limit - used) : 0) + line_of(text, names[i][2]);
        *least = room < *least ? room : *least;
    }
}

uint64_t memory_available(void)
{
    char text[4096];
    uint64_t least = UINT64_MAX;
    if (file_read("/proc/meminfo", text, sizeof text) > 0 && line_of(text, "MemAvailable"))
        least = (line_of(text, "MemAvailable") + line_of(text, "SwapFree")) * 1024;
    cgroup_walk_own("memory", look_room, &least);
    return least;
}

void *memory_fork_page(void)
{
    size_t page = memory_page();
    uint32_t *word = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (word == MAP_FAILED)
        return NULL;
    madvise(word, page, MADV_WIPEONFORK);
    *word = 1;
    return word;
}

bool memory_readable(const void *at)
{
    char byte;
    struct iovec here = { &byte, 1 }, there = { (void *)(uintptr_t)at, 1 };
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) >= 0 || errno != EFAULT;
}
