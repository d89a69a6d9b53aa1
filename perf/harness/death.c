/* The killer is a process of its own, as it would be in life; it takes the time right before the
 * system call. Processes started by the tutti command find the page that takes their stamps through
 * /proc, so that nothing has to be inherited through it. */
#include "harness/death.h"

#include "base/atomic.h"
#include "harness/options.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tutti.h>
#include <unistd.h>

enum { ASLEEP_MS = 30, BUSY_MS = 3, PAGE_BYTES = 8192 };
#define PAGE_VARIABLE "PERF_START_PAGE"

struct page {
    /* pid, by the last rank after the first barrier; the killer waits for it */
    shared32 victim;
    /* +1 by each rank started by the command, after its stamp */
    shared32 joined;
    uint64_t struck, exited;               /* by the killer */
    uint64_t done[PERF_RANKS_MAX];         /* each rank its own */
    int error[PERF_RANKS_MAX];
    bool asleep;
};
_Static_assert(sizeof(struct page) <= PAGE_BYTES, "the page holds it");

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "\nperf: %s: %s\n", what, why);
    exit(2);
}

static struct page *page_map(int fd)
{
    struct page *p = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE,
                          fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        give_up("a shared page", strerror(errno));
    return p;
}

static void nap(double ms)
{
    struct timespec t = { .tv_nsec = (long)(ms * 1e6) };
    nanosleep(&t, NULL);
}

static int doomed(tutti_comm *world, void *arg)
{
    struct page *page = arg;
    int me = tutti_rank(world), error = tutti_barrier(world, NULL);
    bool victim = me == tutti_size(world) - 1;
    if (victim)
        store_release32(&page->victim, (uint32_t)getpid());
    while (victim && page->asleep)
        cpu_pause();
    while (error == 0)
        error = tutti_barrier(world, NULL);
    page->done[me] = stamp_now();
    page->error[me] = error;
    return 0;
}

static _Noreturn void killer(struct page *page, unsigned seed)
{
    uint32_t pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!(pid = load_acquire32(&page->victim)))
        nap(0.2);
    nap(page->asleep ? ASLEEP_MS : BUSY_MS * (double)(rand_r(&seed) % 1000) / 1000);
    struct pollfd gone = { (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), POLLIN, 0 };
    page->struck = stamp_now();
    kill((pid_t)pid, SIGKILL);
    if (gone.fd >= 0 && poll(&gone, 1, 1000) == 1)
        page->exited = stamp_now();
    _exit(0);
}

void death_strike(struct series *to, struct series *exits, int ranks, bool asleep, unsigned seed)
{
    struct page *page = page_map(-1);
    page->asleep = asleep;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        killer(page, seed);
    if (pid < 0)
        give_up("fork", strerror(errno));
    int failed = tutti_spawn(ranks, doomed, page, NULL, NULL);
    waitpid(pid, NULL, 0);
    if (failed != 1)
        give_up("a job with one killed rank",
                failed < 0 ? tutti_explain(NULL) : "not one rank ended badly");
    for (int r = 0; r < ranks - 1; r++) {
        if (page->error[r] != -EOWNERDEAD)
            give_up("a survivor of a killed rank got", tutti_strerror(page->error[r]));
        series_add(to, stamp_ns(page->done[r] - page->struck));
    }
    if (page->exited)
        series_add(exits, stamp_ns(page->exited - page->struck));
    munmap(page, PAGE_BYTES);
}

static int first_barrier(tutti_comm *world, void *arg)
{
    struct page *page = arg;
    int error = tutti_barrier(world, NULL);
    page->done[tutti_rank(world)] = stamp_now();
    return error != 0;
}

static double last_done(const struct page *page, int ranks, uint64_t began)
{
    uint64_t last = 0;
    for (int r = 0; r < ranks; r++)
        last = page->done[r] > last ? page->done[r] : last;
    return stamp_ns(last - began);
}

void start_spawn(struct series *to, int ranks)
{
    struct page *page = page_map(-1);
    uint64_t began = stamp_now();
    if (tutti_spawn(ranks, first_barrier, page, NULL, NULL) != 0)
        give_up("tutti_spawn", tutti_explain(NULL));
    series_add(to, last_done(page, ranks, began));
    munmap(page, PAGE_BYTES);
}

bool start_run(struct series *to, int ranks, const char *tutti, const char *self)
{
    char path[64], many[16], program[4096];
    ssize_t n = readlink(self, program, sizeof program - 1);
    int fd = memfd_create("perf", MFD_CLOEXEC), status = -1;
    if (n < 0 || fd < 0 || ftruncate(fd, PAGE_BYTES) < 0)
        give_up("a page for the ranks", strerror(errno));
    program[n] = 0;
    struct page *page = page_map(fd);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
    snprintf(many, sizeof many, "%d", ranks);
    fflush(NULL);
    uint64_t began = stamp_now();
    pid_t pid = fork();
    if (pid == 0) {
        setenv(PAGE_VARIABLE, path, 1);
        execlp(tutti, tutti, "run", "-n", many, program, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    bool whole = WIFEXITED(status) && WEXITSTATUS(status) == 0
        && load_acquire32(&page->joined) == (uint32_t)ranks;
    if (whole)
        series_add(to, last_done(page, ranks, began));
    else
        fprintf(stderr,
                "\n"
                "perf: %s run -n %d did not do it (wait status 0x%x); its start-up is left out\n",
                tutti, ranks, (unsigned)status);
    munmap(page, PAGE_BYTES);
    close(fd);
    return whole;
}

bool start_child(void)
{
    const char *path = getenv(PAGE_VARIABLE);
    tutti_comm *world;
    if (!path)
        return false;
    if (tutti_init(&world, NULL) < 0)
        give_up("tutti_init", tutti_explain(NULL));
    int error = tutti_barrier(world, NULL), me = tutti_rank(world);
    uint64_t done = stamp_now();
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (error < 0 || fd < 0)
        give_up("the first barrier", error < 0 ? tutti_explain(world) : strerror(errno));
    struct page *page = page_map(fd);
    page->done[me] = done;
    fetch_add32(&page->joined, 1);
    tutti_finalize(world);
    return true;
}
