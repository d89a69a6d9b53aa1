/* Measures how all ranks get the bytes of one file, five ways: tutti_load; each rank reads it; each
 * maps it; rank 0 reads and broadcasts; and, as the floor, each rank reads one stripe from the disk
 * or the page cache into memory that is there. Every sample is a job of its own, so that all ways
 * pay for their memory. After the read each rank reads a byte of every page. The ways take turns,
 * cold (the cache has been told to drop the file) and warm. */
#include "base/clock.h"
#include "harness/progress.h"
#include "harness/report.h"
#include "harness/stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <tutti.h>
#include <unistd.h>

static const struct perf_program program = {
    .name = "disk",
    .question =
        "What does it take until all ranks have the bytes of one file, in time, CPU time and "
        "memory?",
    .ranks = "4",
    .seconds = 60,
    .sizes = true,
    .examples =
        "  disk --most 1G\n  disk --ranks 2,4,8 --most 256M --html disk.html\n  TMPDIR=/mnt/nvme "
        "disk\n",
};

enum { TUTTI, EACH, MAPPED, BROADCAST, FLOOR, WAYS, PIECE = 1 << 20, DEPTH = 8, PAGE = 4096 };
static const char *const names[] = {
    "tutti_load", "each rank reads", "each rank maps", "rank 0 + broadcast", "bare stripes"
};

/* Shared by the ranks of a sample and the program. */
struct rank_said { double ns, cpu_ns, bytes; int error; };
struct sample_page { struct rank_said rank[PERF_RANKS_MAX]; };
struct sample_plan {
    int way;
    bool cold;
    const char *path;
    size_t bytes;
    struct sample_page *page;
};

/* ---- the ways: all of the file's bytes at the address, or NULL ---- */

static const char *way_load(const struct sample_plan *p, tutti_comm *comm)
{
    const void *data;
    size_t bytes;
    return tutti_load(p->path, &data, &bytes, comm, NULL) == 0 && bytes == p->bytes ? data : NULL;
}

static char *read_all(const struct sample_plan *p, char *to)
{
    int fd = open(p->path, O_RDONLY | O_CLOEXEC);
    for (size_t at = 0; fd >= 0 && at < p->bytes;) {
        ssize_t n = pread(fd, to + at, p->bytes - at < PIECE ? p->bytes - at : PIECE, (off_t)at);
        if (n <= 0)
            return NULL;
        at += (size_t)n;
    }
    close(fd);
    return fd >= 0 ? to : NULL;
}

static const char *way_map(const struct sample_plan *p)
{
    int fd = open(p->path, O_RDONLY | O_CLOEXEC);
    const char *at = mmap(NULL, p->bytes, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

static const char *way_broadcast(const struct sample_plan *p, tutti_comm *comm)
{
    char *to = malloc(p->bytes);
    if (!to || (tutti_rank(comm) == 0 && !read_all(p, to)))
        return NULL;
    return tutti_broadcast(to, p->bytes, TUTTI_U8, 0, comm, NULL) == 0 ? to : NULL;
}

/* Reads one stripe, eight pieces under way; past the cache if it is cold. No check, no sharing, no
 * message to peers. */
static const char *way_bare(const struct sample_plan *p, tutti_comm *comm, char *memory)
{
    size_t size = (size_t)tutti_size(comm), me = (size_t)tutti_rank(comm),
           pieces = (p->bytes + PIECE - 1) / PIECE;
    size_t next = pieces * me / size, to = pieces * (me + 1) / size, busy = 0;
    struct io_uring ring;
    int fd = open(p->path, O_RDONLY | O_CLOEXEC | (p->cold ? O_DIRECT : 0));
    if (fd < 0 || io_uring_queue_init(DEPTH, &ring, 0) < 0)
        return NULL;
    while (next < to || busy) {
        for (; next < to && busy < DEPTH; next++, busy++)
            io_uring_prep_read(io_uring_get_sqe(&ring), fd, memory + next * PIECE, PIECE,
                               next * PIECE);
        struct io_uring_cqe *cqe;
        if (io_uring_submit_and_wait(&ring, 1) < 0 || io_uring_wait_cqe(&ring, &cqe) < 0
            || cqe->res < 0)
            return NULL;
        io_uring_cqe_seen(&ring, cqe);
        busy--;
    }
    io_uring_queue_exit(&ring);
    close(fd);
    return memory;
}

/* ---- one sample ---- */

static double cpu_ns(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return ((double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec) * 1e9
        + ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec) * 1e3;
}

/* Counts a page once among the processes that share it. */
static double memory_share(void)
{
    char line[128];
    double kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Pss: %lf kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib * 1024;
}

static int run(tutti_comm *comm, void *arg)
{
    const struct sample_plan *p = arg;
    struct rank_said *said = &p->page->rank[tutti_rank(comm)];
    size_t room = (p->bytes + PIECE - 1) / PIECE * PIECE;
    char *memory = NULL;
    if (p->way == FLOOR) {                           /* the memory of its stripe is there */
        memory = mmap(NULL, room, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        size_t share = room / (size_t)tutti_size(comm);
        memset(memory + share * (size_t)tutti_rank(comm), 1, share);
    }
    double before = memory_share();
    tutti_barrier(comm, NULL);
    uint64_t began = clock_ns();
    double burnt = cpu_ns();
    const char *at = p->way == TUTTI ? way_load(p, comm)
        : p->way == EACH ? read_all(p, malloc(p->bytes))
        : p->way == MAPPED ? way_map(p)
        : p->way == BROADCAST ? way_broadcast(p, comm)
        : way_bare(p, comm, memory);
    unsigned sum = 0;
    for (size_t i = 0; at && p->way != FLOOR && i < p->bytes; i += PAGE)
        sum += (unsigned char)at[i];
    __asm__ volatile("" : : "r"(sum));
    *said = (struct rank_said){ (double)(clock_ns() - began), cpu_ns() - burnt, 0, at ? 0 : -EIO };
    tutti_barrier(comm, NULL);
    said->bytes = memory_share() - before;
    tutti_barrier(comm, NULL);                       /* all have counted while all have it */
    return 0;
}

static void forget(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    fdatasync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static void sample(const struct sample_plan *p, int ranks, struct series *time, struct series *cpu,
                   struct series *memory)
{
    struct rank_said all = { 0 };
    if (p->cold)
        forget(p->path);
    memset(p->page, 0, sizeof *p->page);
    int r = tutti_spawn(ranks, run, (void *)(uintptr_t)p, NULL, NULL);
    for (int i = 0; i < ranks; i++) {
        const struct rank_said *one = &p->page->rank[i];
        r = r ? r : one->error;
        all.ns = one->ns > all.ns ? one->ns : all.ns;
        all.cpu_ns += one->cpu_ns;
        all.bytes += one->bytes;
    }
    if (r) {
        progress_clear();
        fprintf(stderr, "disk: %s failed with %d ranks on %s (%d)\n", names[p->way], ranks, p->path,
                r);
        exit(1);
    }
    series_add(time, all.ns);
    series_add(cpu, all.cpu_ns);
    series_add(memory, all.bytes);
}

/* ---- the whole ---- */

static void show(struct report *report, int ranks, bool cold, size_t bytes, struct series (*s)[3])
{
    static const char *const heads[] = {
        "", "time", "/ floor", "rate", "CPU, all", "memory", "samples"
    };
    static const int width[] = { -19, 9, 8, 11, 10, 10, 8 };
    char text[6][32], size[32];
    struct table *t = report_table(report, 7, heads, width);
    snprintf(t->title, sizeof t->title, "%d ranks, %s, %s", ranks,
             unit_short(size, sizeof size, UNIT_BYTES, (double)bytes), cold ? "cold" : "warm");
    snprintf(t->note, sizeof t->note,
             "time: until the last rank has looked at a byte of every page; median. CPU: of all "
             "ranks. memory: what they have more "
             "than before, shared pages once (Pss). The floor's ranks have a stripe each, into "
             "memory that was there.");
    for (int way = 0; way < WAYS; way++) {
        struct figure *f = report_figure(report, cold ? "cold" : "warm", names[way], UNIT_NS,
                                         ranks);
        figure_single(f, &s[way][0]);
        f->bytes = bytes;
        f->ratio = series_ratio(&s[way][0], &s[FLOOR][0]);
        snprintf(f->against, sizeof f->against, "%s", names[FLOOR]);
        const char *cells[] = {
            names[way], unit_text(text[0], 32, UNIT_NS, f->median),
            unit_text(text[1], 32, UNIT_RATIO, f->ratio.median),
            unit_text(text[2], 32, UNIT_RATE, (double)bytes / f->median * 1e9),
            unit_text(text[3], 32, UNIT_NS, series_median(&s[way][1])),
            unit_text(text[4], 32, UNIT_BYTES, series_median(&s[way][2])),
            unit_text(text[5], 32, UNIT_COUNT, (double)f->samples)
        };
        table_row(t, way == TUTTI, cells);
    }
    char what[80];
    if (cold) {
        snprintf(what, sizeof what, "%d ranks, cold: tutti_load / bare stripes", ranks);
        report_promise(report, what, series_ratio(&s[TUTTI][0], &s[FLOOR][0]).median, 1.15,
                       UNIT_RATIO);
    } else {
        snprintf(what, sizeof what, "%d ranks, warm: tutti_load / each rank reads", ranks);
        report_promise(report, what, series_ratio(&s[TUTTI][0], &s[EACH][0]).median, 0.5,
                       UNIT_RATIO);
    }
    snprintf(what, sizeof what, "%d ranks, %s: CPU, tutti_load / each rank reads", ranks,
             cold ? "cold" : "warm");
    report_promise(report, what, series_ratio(&s[TUTTI][1], &s[EACH][1]).median, 4.0 / 3 / ranks,
                   UNIT_RATIO);
    snprintf(what, sizeof what, "%d ranks, %s: memory, tutti_load / each rank reads", ranks,
             cold ? "cold" : "warm");
    report_promise(report, what, series_ratio(&s[TUTTI][2], &s[EACH][2]).median, 1.02 / ranks,
                   UNIT_RATIO);
}

static void compare(struct report *report, const struct perf_options *o, int k, const char *path,
                    size_t bytes)
{
    struct series s[2][WAYS][3] = { 0 };
    struct sample_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double began = stamp_seconds();
    for (int round = 0; round < 1 || (!o->quick && stamp_seconds() - began < o->seconds); round++)
        for (int i = 0; i < 2 * WAYS; i++) {
            struct sample_plan plan = { i % WAYS, i >= WAYS, path, bytes, page };
            double share = (stamp_seconds() - began) / o->seconds;
            progress_show((k + (share < 1 ? share : 1)) / o->lists, "%d ranks: %s, %s", o->ranks[k],
                          names[plan.way], plan.cold ? "cold" : "warm");
            if (!plan.cold && i == 0)
                read_all(&plan, malloc(bytes));      /* makes it warm */
            sample(&plan, o->ranks[k], &s[plan.cold][plan.way][0], &s[plan.cold][plan.way][1],
                   &s[plan.cold][plan.way][2]);
        }
    munmap(page, sizeof *page);
    for (int cold = 0; cold < 2; cold++) {
        show(report, o->ranks[k], cold, bytes, s[cold]);
        for (int way = 0; way < WAYS; way++)
            for (int n = 0; n < 3; n++)
                series_free(&s[cold][way][n]);
    }
}

static void make(const char *path, int fd, size_t bytes)
{
    char *block = malloc(PIECE);
    bool well = fd >= 0 && block;
    for (size_t i = 0; well && i < PIECE; i++)
        block[i] = (char)(i * 2654435761u >> 7);
    for (size_t at = 0; well && at < bytes; at += PIECE)
        well = write(fd, block, bytes - at < PIECE ? bytes - at : PIECE) > 0;
    if (!well || close(fd) < 0) {
        fprintf(stderr, "disk: no file of %zu bytes could be made: %s: %s; TMPDIR says where\n",
                bytes, path, strerror(errno));
        unlink(path);
        exit(1);
    }
    free(block);
}

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    char path[512];
    perf_options(&options, &program, argc, argv);
    size_t bytes = options.quick ? 4 << 20 : options.most;
    snprintf(path, sizeof path, "%.400s/tutti-disk-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/var/tmp");
    int fd = mkstemp(path);
    make(path, fd, bytes);
    stamp_calibrate();
    report_begin(&report, &program);
    for (int k = 0; k < options.lists; k++)
        compare(&report, &options, k, path, bytes);
    unlink(path);
    return report_end(&report, &options);
}
