/* The killer is a process of its own, as it would be in life; it takes the time right before the
 * system call. */
#include "harness/death.h"

#include "base/atomic.h"
#include "harness/options.h"

#include <errno.h>
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

struct page {
    /* pid, by the last rank after the first barrier; the killer waits for it */
    shared32 victim;
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

static struct page *page_map(void)
{
    struct page *p = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                          0);
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
    struct page *page = page_map();
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
