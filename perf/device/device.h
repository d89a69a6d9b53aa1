/* Job: what the parts of `device` say to each other: what is measured, by which road, and
 *      what came of it.
 * Owns: struct board, in memory shared by this program and its ranks.
 * Never: CUDA in the first process: it forks all others, and CUDA does not survive that.
 *
 * A point is one operation, road, number of ranks and size. The ranks fill it in; a reader comes
 * when they have ended. */
#ifndef PERF_DEVICE_H
#define PERF_DEVICE_H

#include "gpu/driver.h"
#include "harness/series.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tutti.h>

enum {
    RANKS_MOST = 16,
    LISTS_MOST = 4,
    SIZES_MOST = 16,
    POINTS_MOST = 1024,
    SAMPLES_MOST = 1000,
    WORDS = 240
};

enum doing { DO_ALL_REDUCE, DO_BROADCAST, DO_ALL_GATHER, DOINGS };
enum system {
    SYSTEM_PINNED, SYSTEM_LEADER, SYSTEM_PEERS, SYSTEM_GLOO,
    SYSTEM_NCCL, SYSTEM_NCCL_SWITCH, SYSTEMS
};

extern const char *const doing_names[DOINGS], *const system_names[SYSTEMS];

struct point {
    enum doing kind;
    enum system system;
    int ranks, samples;
    size_t bytes;                                    /* of the result of each rank */
    /* ns, first start to last end; low, high: a quarter of the samples lie outside */
    double median, low, high, least;
    /* no samples: why. With samples: what is to be known of them */
    char why[WORDS];
};

/* What the machine does at best, measured by CUDA's events. Bytes a second, 0: not
 * measured, and why. */
struct floors {
    /* device to host, host to device, each way at once */
    double down, up, both;
    double hbm;                                      /* read and written */
    /* kernel started and waited for; the same of a copy of 4 KiB to the host */
    double launch_ns, copy_ns;
    /* of the first four: middle half of the samples, part of the median */
    double spread[4];
    size_t bytes;                                    /* of each copy over PCIe */
    char gpu[96], driver[32], why[WORDS];
};

/* What ranks of one job tell each other beside what is measured. Ordered by tutti's barriers. */
struct meeting {
    struct {
        uint64_t begin, end;
    } at[RANKS_MOST];
    int go[2];
    double slice_ns;
    unsigned char id[128];
};

/* Where a rank's buffers come from: tutti_cuda_alloc, which peers keep open; cuMemAlloc;
 * cuMemCreate piece by piece in a reservation, as PyTorch's expandable segments. */
enum memory { MEMORY_KEPT, MEMORY_PLAIN, MEMORY_VMM, MEMORIES };
extern const char *const memory_names[MEMORIES];

struct options {
    enum memory memory;                              /* of our roads */
    double busy_ms;                                  /* a rank's own kernels are so long; 0: none */
    int ranks[LISTS_MOST], lists;
    size_t sizes[SIZES_MOST];
    int size_count;
    double seconds;                                  /* for everything */
    bool quick;
    const char *out;
};

struct board {
    struct floors floors;
    struct meeting meeting;
    struct point point[POINTS_MOST];
    int points;
};

/* One job of ranks: `first` to `end` of the board's points, all of one system and number of ranks;
 * so many nanoseconds for all. */
struct part {
    struct board *board;
    int first, end, ranks;
    double ns, busy_ms;
    bool quick;
    enum memory memory;
};

/* Why the GPU cannot be measured on, in words; 0: it can. In a child. */
int floors_measure(struct floors *f, bool quick);
/* the bound of the road; 0: none is known */
double floor_ns(const struct floors *f, const struct point *p, bool *pcie);

/* Each in jobs of its own; what goes wrong stands in the points. */
void roads_measure(const struct part *part);
void nccl_measure(const struct part *part);
void gloo_measure(const struct part *part);

/* Common to all that measure. A point's samples, in ns; points that were not reached get
 * the words. */
void point_take(struct point *p, struct series *samples);
void part_refuse(const struct part *part, const char *words);

/* Runs the body as so many ranks; words for what became of them if it is not 0. The time limit is
 * the part's, and some more. */
int part_spawn(const struct part *part, int (*body)(tutti_comm *world, void *part), char *words,
               size_t room);

/* The loop of all measurements: op is called until the slice is over, between `prepare` and `look`,
 * which are not measured. */
struct loop {
    tutti_comm *world;
    struct meeting *meeting;
    int rank, ranks, most;
    void *own;
    int (*prepare)(void *own, int turn);
    int (*op)(void *own, int turn);
    int (*look)(void *own, int turn);
};
int loop_run(const struct loop *l, struct series *samples);          /* samples: of rank 0 */

/* A device's buffer and its filling and checking. All in the current context, on one stream. */
struct bench {
    const struct driver *driver;
    CUcontext context;
    CUstream stream;
    tutti_comm *world;
    int rank, ranks;
    enum memory memory;
    CUdeviceptr send, recv;
    size_t room, piece_bytes;                        /* of cuMemCreate; 0: no such memory */
    float *pattern, *piece;                          /* of all ranks; scratch */
};
int bench_open(struct bench *b, tutti_comm *world, size_t most, enum memory memory, char *why,
               size_t room);
void bench_close(struct bench *b);
/* elements differ by place and rank */
int  bench_fill(struct bench *b, enum doing kind, size_t bytes);
/* all of recv; -EBADMSG: not what it should be */
int  bench_check(struct bench *b, enum doing kind, size_t bytes);
/* rewrites send: bytes that differ by turn and rank */
int  bench_stamp(struct bench *b, enum doing kind, size_t bytes, int turn);
/* three elements of recv */
int  bench_glance(struct bench *b, enum doing kind, size_t bytes, int turn);

void write_table(const struct board *board, const struct options *o);
int  write_file(const struct board *board, const struct options *o);

#endif
