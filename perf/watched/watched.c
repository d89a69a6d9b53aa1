/* What it costs a job that somebody looks at it: ranks that do nothing but collectives, in windows
 * with `tutti ps JOB --watch=100ms` and without, in turns (without, with, with, without, …), in one
 * run; without: it is stopped. Shown are the operations a second of both, the median of the pairs'
 * ratios with the interval that holds it in 95 of 100 runs (by order statistics), quartiles, and
 * the CPU time of looking: where no CPU is free, the job loses that and more.
 *
 *   watched TUTTI [RANKS [PAIRS [WINDOW-MS [STEP-US]]]]
 *
 * STEP-US: each rank computes for so long between two operations. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <tutti.h>
#include <unistd.h>

enum { START_MS = 500, SETTLE_MS = 20, PAIRS_MOST = 1000, BETWEEN = 64 };

struct shared { _Atomic int stop, up; _Atomic uint64_t done; };

static struct shared *shared;
static char job[64];
static int ranks = 2, pairs = 100, window_ms = 300, step_us;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pass(int ms)
{
    struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };
    nanosleep(&t, NULL);
}

/* One all_reduce of 4 bytes for BETWEEN barriers, which says whether to stop. */
static int work(int rank)
{
    const tutti_options options = { .job = job, .rank = rank, .size = ranks };
    tutti_comm *world;
    uint64_t done = 0;
    int stop = 0;
    if (tutti_init(&world, &options) < 0) {
        fprintf(stderr, "watched: %s\n", tutti_explain(NULL));
        return 1;
    }
    atomic_fetch_add(&shared->up, 1);
    while (!stop) {
        for (int i = 0; i < BETWEEN; i++) {
            for (double until = step_us ? now() + step_us / 1e6 : 0; step_us && now() < until;)
                ;
            if (tutti_barrier(world, NULL) < 0)
                return 1;
            /* relaxed: a number; each one counts, since a window has few */
            if (rank == 0)
                atomic_store_explicit(&shared->done, ++done, memory_order_relaxed);
        }
        stop = atomic_load(&shared->stop);
        if (tutti_all_reduce(&stop, &stop, 1, TUTTI_I32, TUTTI_MAX, world, NULL) < 0)
            return 1;
    }
    return tutti_finalize(world) < 0;
}

static pid_t watch(const char *tutti)
{
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDOUT_FILENO);
        execl(tutti, tutti, "ps", job, "--watch=100ms", (char *)NULL);
        perror("watched: tutti");
        _exit(127);
    }
    return pid;
}

/* Operations a second in a window. */
static double window(pid_t watcher, bool with, double *watched_s)
{
    double from = now();
    kill(watcher, with ? SIGCONT : SIGSTOP);
    pass(SETTLE_MS);
    double began = now();
    uint64_t was = atomic_load(&shared->done);
    pass(window_ms);
    double rate = (double)(atomic_load(&shared->done) - was) / (now() - began);
    *watched_s += with ? now() - from : 0;
    return rate;
}

/* Its CPU time, seconds. */
static double dismiss(pid_t watcher)
{
    struct rusage used;
    int status;
    kill(watcher, SIGTERM);
    kill(watcher, SIGCONT);
    wait4(watcher, &status, 0, &used);
    if (WIFEXITED(status) && WEXITSTATUS(status) >= 64)
        fprintf(stderr, "watched: it could not look: %d\n", WEXITSTATUS(status));
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec)
        + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void measure(const char *tutti)
{
    static double ratio[PAIRS_MOST], plain[PAIRS_MOST], seen[PAIRS_MOST];
    double watched_s = START_MS / 1e3;
    pid_t watcher = watch(tutti);
    pass(START_MS);
    for (int k = 0; k < pairs; k++) {
        bool first = k % 2;
        for (int turn = 0; turn < 2; turn++) {
            bool with = (turn == 0) == first;
            double *to = with ? &seen[k] : &plain[k];
            *to = window(watcher, with, &watched_s);
        }
        ratio[k] = plain[k] / seen[k];
    }
    double cpu_s = dismiss(watcher), middle = 0;
    int tenth = pairs / 10;
    qsort(ratio, (size_t)pairs, sizeof *ratio, by_size);
    qsort(plain, (size_t)pairs, sizeof *plain, by_size);
    qsort(seen, (size_t)pairs, sizeof *seen, by_size);
    printf("%d ranks, %d us between barriers, %ld CPUs\n", ranks, step_us,
           sysconf(_SC_NPROCESSORS_ONLN));
    printf("alone     %12.0f operations/s\n", plain[pairs / 2]);
    printf("watched   %12.0f operations/s\n", seen[pairs / 2]);
    for (int k = tenth; k < pairs - tenth; k++)
        middle += ratio[k] / (pairs - 2 * tenth);
    int apart = (int)(.98 * sqrt(pairs) + .5), low = pairs / 2 - apart, high = pairs / 2 + apart;
    low = low < 0 ? 0 : low;
    high = high < pairs ? high : pairs - 1;
    printf("ratio     %12.4f  95 %% within %.4f to %.4f, quartiles %.4f and %.4f, %d pairs\n",
           ratio[pairs / 2], ratio[low], ratio[high], ratio[pairs / 4], ratio[pairs * 3 / 4],
           pairs);
    printf("mean      %12.4f  without the lowest and the highest tenth\n", middle);
    printf("a watcher %12.2f %% of a CPU\n", 100 * cpu_s / watched_s);
}

int main(int argc, char **argv)
{
    int *numbers[] = { &ranks, &pairs, &window_ms, &step_us }, failed = 0, status;
    if (argc < 2) {
        fprintf(stderr, "usage: watched TUTTI [RANKS [PAIRS [WINDOW-MS [STEP-US]]]]\n");
        return 2;
    }
    for (int i = 2; i < argc && i < 6; i++)
        *numbers[i - 2] = atoi(argv[i]);
    pairs = pairs < 1 ? 1 : pairs < PAIRS_MOST ? pairs : PAIRS_MOST;
    snprintf(job, sizeof job, "watched-%d", (int)getpid());
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (int r = 0; r < ranks; r++)
        if (fork() == 0)
            _exit(work(r));
    while (atomic_load(&shared->up) < ranks)
        pass(10);
    measure(argv[1]);
    atomic_store(&shared->stop, 1);
    for (int r = 0; r < ranks; r++)
        failed |= wait(&status) < 0 || status != 0;
    return failed;
}
