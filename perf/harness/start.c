/* Processes started by the tutti command find the page that takes their stamps through /proc, so
 * that nothing has to be inherited through it. What the last rank has is read behind its stamp. */
#include "harness/start.h"

#include "base/atomic.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tutti.h>
#include <unistd.h>

#define PAGE_VARIABLE "PERF_START_PAGE"
#define BARE_VARIABLE "PERF_START_BARE"      /* rank of a process without tutti */

extern char **environ;

struct start_page {
    shared32 joined;                         /* +1 by each process, after its stamp */
    int ranks;
    struct start_has has;                    /* by the last rank */
    uint64_t done[START_RANKS_MAX];          /* each rank its own */
};

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "\nperf: %s: %s\n", what, why);
    exit(2);
}

static struct start_page *page_map(int fd)
{
    struct start_page *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE,
                                fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        give_up("a shared page", strerror(errno));
    return p;
}

static struct start_page *page_make(int ranks, int *fd, char *path, size_t room)
{
    *fd = memfd_create("perf", MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, sizeof(struct start_page)) < 0)
        give_up("a page for the ranks", strerror(errno));
    snprintf(path, room, "/proc/%d/fd/%d", (int)getpid(), *fd);
    struct start_page *page = page_map(*fd);
    page->ranks = ranks;
    return page;
}

static int first_barrier(tutti_comm *world, void *arg)
{
    struct start_page *page = arg;
    int error = tutti_barrier(world, NULL);
    page->done[tutti_rank(world)] = stamp_now();
    return error != 0;
}

static double last_done(const struct start_page *page, int ranks, uint64_t began)
{
    uint64_t last = 0;
    for (int r = 0; r < ranks; r++)
        last = page->done[r] > last ? page->done[r] : last;
    return stamp_ns(last - began);
}

void start_spawn(struct series *to, int ranks)
{
    struct start_page *page = page_map(-1);
    uint64_t began = stamp_now();
    if (tutti_spawn(ranks, first_barrier, page, NULL, NULL) != 0)
        give_up("tutti_spawn", tutti_explain(NULL));
    series_add(to, last_done(page, ranks, began));
    munmap(page, sizeof *page);
}

static void self_path(const char *self, char *path, size_t room)
{
    ssize_t n = readlink(self, path, room - 1);
    if (n < 0)
        give_up(self, strerror(errno));
    path[n] = 0;
}

bool start_run(struct series *to, int ranks, const char *tutti, const char *self,
               struct start_has *has)
{
    char path[64], many[16], program[4096];
    int fd, status = -1;
    self_path(self, program, sizeof program);
    struct start_page *page = page_make(ranks, &fd, path, sizeof path);
    snprintf(many, sizeof many, "%d", ranks);
    char *argv[] = { (char *)tutti, "run", "-n", many, program, NULL };
    pid_t pid = 0;
    setenv(PAGE_VARIABLE, path, 1);
    fflush(NULL);
    uint64_t began = stamp_now();
    /* as the bare program is started */
    if (posix_spawnp(&pid, tutti, NULL, NULL, argv, environ) == 0)
        waitpid(pid, &status, 0);
    unsetenv(PAGE_VARIABLE);
    bool whole = WIFEXITED(status) && WEXITSTATUS(status) == 0
        && load_acquire32(&page->joined) == (uint32_t)ranks;
    if (whole)
        series_add(to, last_done(page, ranks, began));
    else
        fprintf(stderr,
                "\n"
                "perf: %s run -n %d did not do it (wait status 0x%x); its start-up is left out\n",
                tutti, ranks, (unsigned)status);
    if (whole && has)
        *has = page->has;
    munmap(page, sizeof *page);
    close(fd);
    return whole;
}

void start_bare(struct series *to, int ranks, const char *self, struct start_has *has)
{
    char path[64], number[16], program[4096];
    int fd, status = 0, bad = 0;
    pid_t pid;
    self_path(self, program, sizeof program);
    struct start_page *page = page_make(ranks, &fd, path, sizeof path);
    char *argv[] = { program, NULL };
    pid_t *pids = calloc((size_t)ranks, sizeof *pids);
    setenv(PAGE_VARIABLE, path, 1);
    fflush(NULL);
    uint64_t began = stamp_now();
    for (int r = 0; pids && r < ranks; r++) {
        snprintf(number, sizeof number, "%d", r);
        setenv(BARE_VARIABLE, number, 1);
        int error = posix_spawn(&pid, program, NULL, NULL, argv, environ);
        if (error)
            give_up(program, strerror(error));
        pids[r] = pid;
    }
    for (int r = 0; pids && r < ranks; r++)
        bad += waitpid(pids[r], &status, 0) < 0 || status != 0;
    unsetenv(PAGE_VARIABLE);
    unsetenv(BARE_VARIABLE);
    if (!pids || bad)
        give_up(program, "not all processes of the floor ended well");
    series_add(to, last_done(page, ranks, began));
    *has = page->has;
    free(pids);
    munmap(page, sizeof *page);
    close(fd);
}

static double count_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n - 1;                            /* and the folder's own */
}

static struct start_has look_at_self(void)
{
    struct start_has has = { .descriptors = count_descriptors() };
    struct rusage used;
    char line[128];
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "RssAnon: %lf", &has.private_kib);
        sscanf(line, "RssShmem: %lf", &has.shared_kib);
    }
    if (f)
        fclose(f);
    if (getrusage(RUSAGE_SELF, &used) == 0)
        has.faults = (double)used.ru_minflt;
    return has;
}

static void child_done(const char *path, int me, uint64_t done)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        give_up(path, strerror(errno));
    struct start_page *page = page_map(fd);
    close(fd);
    page->done[me] = done;
    if (me == page->ranks - 1)
        page->has = look_at_self();
    fetch_add32(&page->joined, 1);
}

bool start_child(void)
{
    const char *path = getenv(PAGE_VARIABLE), *bare = getenv(BARE_VARIABLE);
    tutti_comm *world;
    if (!path)
        return false;
    if (bare) {
        child_done(path, atoi(bare), stamp_now());
        return true;
    }
    if (tutti_init(&world, NULL) < 0)
        give_up("tutti_init", tutti_explain(NULL));
    int error = tutti_barrier(world, NULL), me = tutti_rank(world);
    uint64_t done = stamp_now();
    if (error < 0)
        give_up("the first barrier", tutti_explain(world));
    child_done(path, me, done);
    tutti_finalize(world);
    return true;
}
