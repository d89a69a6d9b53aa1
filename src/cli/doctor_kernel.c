/* The features of the kernel that tutti uses. Each is tried as a rank would: a container's filter
 * may forbid what the version has. For a missing feature the output says what is done without it.
 * Three have no replacement. Cost: two children, and a few system calls for each feature. */
#include "cli/doctor.h"

#include "os/file.h"
#include "os/futex.h"
#include "os/maps.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/vm_read.h"
#include "os/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* Newer than some headers; the numbers are the same on every architecture. */
enum { OP_FUTEX_WAIT = 51, NUMBER_OF_CACHESTAT = 451 };

static bool has_futex_waitv(void)
{
    static shared32 words[2];
    /* both have changed already */
    struct futex_word watched[] = { { &words[0], 1 }, { &words[1], 1 } };
    return futex_wait_any(watched, 2, 0) == 0;
}

static bool has_uring_futex(void) { return uring_knows(OP_FUTEX_WAIT); }

static bool has_memfd(void)
{
    uint64_t bytes;
    int fd = memory_create(memory_page());
    bool there = fd >= 0 && memory_check(fd, &bytes) == 0;
    if (fd >= 0)
        close(fd);
    return there;
}

static bool has_fork_page(void)
{
    uint64_t *page = memory_fork_page();
    if (!page)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        _exit(*page != 0);
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    munmap(page, memory_page());
    return status == 0;
}

static bool has_pidfd(void)
{
    struct process_id id;
    process_self(&id);
    int fd = process_pidfd(&id);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool has_proc(void)
{
    struct process_id id;
    return process_self(&id) == 0;
}

/* A child takes a mark and ends. True: the kernel has then changed the mark. */
static bool has_marks(void)
{
    struct process_mark *mark = mmap(NULL, sizeof *mark, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED)
        return false;
    bool died = false;
    pid_t pid = process_mark_init(mark) == 0 ? fork() : -1;
    if (pid == 0)
        _exit(process_mark_hold(mark) != 0);
    if (pid > 0) {
        int status = 0;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        died = status == 0 && process_mark_died(load_acquire32(process_mark_word(mark)));
    }
    munmap(mark, sizeof *mark);
    return died;
}

static bool has_readable(void) { return !memory_readable(NULL); }

/* A child reads its parent's memory. Yama and containers forbid that as they forbid it among
 * ranks. */
static bool has_reach(void)
{
    static uint64_t here;
    uint64_t got = 0;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        _exit(vm_read(parent, &got, (uint64_t)(uintptr_t)&here, sizeof got) != 0);
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0;
}

static bool has_cachestat(void)
{
    uint64_t range[2] = { 0, 4096 }, is[5];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool there = fd >= 0 && syscall(NUMBER_OF_CACHESTAT, fd, range, is, 0) == 0;
    if (fd >= 0)
        close(fd);
    return there;
}

static const struct feature {
    const char *name, *since;
    bool (*there)(void);
    const char *without;
    const char *remedy;                              /* NULL: there is a replacement */
} features[] = {
    { "memfd", "3.17", has_memfd, "no arena can be made",
      "let the seccomp profile allow memfd_create, and ulimit -f a file of 4 KiB: tutti cannot do "
      "without" },
    { "seals of a memfd", "3.17", memory_seals,
      "a rank that cuts the arena's file short would end the others by SIGBUS", NULL },
    { "MADV_WIPEONFORK", "4.14", has_fork_page,
      "a child by fork() knows that it is no rank, one by a bare clone() does not", NULL },
    { "robust mutexes", "2.6.17", has_marks,
      "the kernel leaves no mark where a rank dies, and its locks stay locked",
      "this is an emulator or a sandbox that is not quite Linux: let the ranks run outside it" },
    { "/proc", "1.0", has_proc, "a death that leaves no mark is found by the deadline alone",
      NULL },
    { "pidfd_open", "5.3", has_pidfd, "a rank's process is known by its number and start time",
      NULL },
    { "futex_waitv", "5.16", has_futex_waitv, "a wait for several words sleeps on one, in slices",
      NULL },
    { "futex in io_uring", "6.7", has_uring_futex, "tutti_uring_prep_wait awaits an eventfd",
      NULL },
    { "MADV_POPULATE_WRITE", "5.14", memory_populates, "pages are touched one by one", NULL },
    { "MADV_COLLAPSE", "6.1", memory_collapses, "huge pages only where shmem_enabled grants them",
      NULL },
    { "PAGEMAP_SCAN", "6.7", memory_scans, "which pages are huge is read from smaps", NULL },
    { "PROCMAP_QUERY", "6.11", maps_asks,
      "what lies at an address is read from the whole table, as text", NULL },
    { "process_vm_readv", "3.2", has_readable, "addresses are believed and not tried first", NULL },
    { "reading of peers", "3.2", has_reach,
      "algorithms of the name direct go by the arena, as pipelined does", NULL },
    { "cachestat", "6.5", has_cachestat, "a read that may not wait tells whether a file is cached",
      NULL },
};

void doctor_kernel(struct doctor *d)
{
    struct utsname name;
    bool known = uname(&name) == 0;
    doctor_say(2, "kernel: %s %s, %s", known ? name.sysname : "unknown", known ? name.release : "",
               known ? name.machine : "");
    fflush(stdout);                                  /* a child is forked below */
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        const struct feature *f = &features[i];
        if (f->there())
            doctor_say(24, "  %-20s  yes", f->name);
        else if (f->remedy)
            doctor_wrong(d, f->remedy, "%s (Linux %s): %s", f->name, f->since, f->without);
        else
            doctor_say(24, "  %-20s  no (Linux %s): %s", f->name, f->since, f->without);
    }
}
