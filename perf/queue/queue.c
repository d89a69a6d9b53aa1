/* A broadcast queue beside the bare line under it: put to get of 48 bytes, there and back, two
 * ranks that poll; and messages a second, counted to the last one of the reader. In rounds by
 * turns, ABBA: medians and the spread of the middle half.
 *
 *     perf/queue [ROUNDS [LAPS]]   the ranks are its children, one on each of the first two CPUs */
#include "base/atomic.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <tutti.h>

enum { ROUNDS_MOST = 101, BYTES = 48 };

static int rounds = 21, laps = 20000;

struct line { _Alignas(128) _Atomic uint64_t seq; char bytes[BYTES]; };
static struct line *lines;              /* shared by both: [there, back] */

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void line_put(struct line *line, uint64_t n)
{
    memset(line->bytes, (int)n, BYTES);
    atomic_store_explicit(&line->seq, n, memory_order_release);
}

static void line_get(struct line *line, uint64_t n, char *bytes)
{
    while (atomic_load_explicit(&line->seq, memory_order_acquire) != n)
        cpu_pause();
    memcpy(bytes, line->bytes, BYTES);
}

static double lap_line(int rank)
{
    static uint64_t n;
    char bytes[BYTES];
    double began = now_ns();
    for (int i = 0; i < laps; i++) {
        n++;
        if (rank == 0)
            line_put(&lines[0], n);
        line_get(&lines[rank == 0], n, bytes);
        if (rank == 1)
            line_put(&lines[1], n);
    }
    return (now_ns() - began) / laps / 2;
}

/* started: each call is left under way, and waited for at once. */
static void put(tutti_queue *q, const char *bytes, bool started)
{
    tutti_work *work;
    tutti_call call = { .work = &work };
    tutti_queue_put(q, bytes, BYTES, started ? &call : NULL);
    if (started && tutti_wait(work, -1) < 0)
        exit(1);
}

static void get(tutti_queue *q, char *bytes, bool started)
{
    tutti_work *work;
    tutti_call call = { .work = &work };
    size_t room = BYTES;
    int r = tutti_queue_get(q, bytes, &room, started ? &call : NULL);
    if (r < 0 || (started && tutti_wait(work, -1) < 0))
        exit(1);
}

static double lap_queue(int rank, tutti_queue *q[2], bool started)
{
    char bytes[BYTES] = { 0 };
    double began = now_ns();
    for (int i = 0; i < laps; i++) {
        if (rank == 0)
            put(q[0], bytes, started);
        get(q[rank == 0], bytes, started);
        if (rank == 1)
            put(q[1], bytes, started);
    }
    return (now_ns() - began) / laps / 2;
}

/* Of the reader: until it has the last one. */
static double stream(int rank, tutti_queue *q, size_t bytes, tutti_comm *world)
{
    static char data[1 << 20];
    int count = bytes > 4096 ? laps / 100 : laps;
    tutti_barrier(world, NULL);
    double began = now_ns();
    for (int i = 0; i < count; i++) {
        size_t room = sizeof data;
        int r = rank == 0 ? tutti_queue_put(q, data, bytes, NULL)
                          : tutti_queue_get(q, data, &room, NULL);
        if (r < 0)
            exit(1);
    }
    tutti_barrier(world, NULL);
    return (now_ns() - began) / count;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void say(const char *what, double *v)
{
    qsort(v, (size_t)rounds, sizeof *v, by_value);
    printf("%-34s %9.1f ns  (%.1f to %.1f)\n", what, v[rounds / 2], v[rounds / 4],
           v[rounds * 3 / 4]);
}

static int body(tutti_comm *world, void *arg)
{
    (void)arg;
    int rank = tutti_rank(world);
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET((size_t)rank, &cpu);
    sched_setaffinity(0, sizeof cpu, &cpu);
    tutti_queue *q[2];
    double line[ROUNDS_MOST], queue[ROUNDS_MOST], ratio[ROUNDS_MOST], small[ROUNDS_MOST],
           large[ROUNDS_MOST], work[ROUNDS_MOST];
    if (tutti_queue_create(world, 0, NULL, &q[0]) || tutti_queue_create(world, 1, NULL, &q[1]))
        return 1;
    for (int r = 0; r < rounds; r++) {
        for (int half = 0; half < 2; half++)
            if (half == r % 2)
                line[r] = lap_line(rank);
            else
                queue[r] = lap_queue(rank, q, false);
        ratio[r] = queue[r] / line[r];
        work[r] = lap_queue(rank, q, true);
        small[r] = stream(rank, q[0], 1024, world);
        large[r] = stream(rank, q[0], 1 << 20, world);
    }
    if (rank == 0) {
        say("line, one way, 48 B", line);
        say("queue, one way, 48 B", queue);
        qsort(ratio, (size_t)rounds, sizeof *ratio, by_value);
        printf("%-34s %9.2f     (%.2f to %.2f)\n", "queue / line, by rounds", ratio[rounds / 2],
               ratio[rounds / 4], ratio[rounds * 3 / 4]);
        say("the same, each call as work", work);
        say("a message back to back, 1 KiB", small);
        say("a message back to back, 1 MiB", large);
    }
    return tutti_queue_free(q[0]) || tutti_queue_free(q[1]);
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? atoi(argv[1]) : rounds;
    laps = argc > 2 ? atoi(argv[2]) : laps;
    if (rounds < 1 || rounds > ROUNDS_MOST || laps < 100) {
        fprintf(stderr, "usage: %s [ROUNDS from 1 to %d [LAPS from 100]]\n", argv[0], ROUNDS_MOST);
        return 2;
    }
    lines = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return tutti_spawn(2, body, NULL, NULL, NULL);
}
