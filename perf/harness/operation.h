/* Job: the operations that systems are held against each other by: one row each, how its buffers
 *      are sized, rewritten and checked.
 * Owns: the table.
 * Never: how a system does it: each brings a function for each operation. Plain C and C++: ranks of
 *        peers read it, too. */
#ifndef PERF_OPERATION_H
#define PERF_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum operation_id {
    OP_NONE, OP_BARRIER, OP_ALL_REDUCE, OP_BROADCAST, OP_REDUCE, OP_REDUCE_SCATTER, OP_ALL_GATHER,
    OP_GATHER, OP_SCATTER, OP_ALL_TO_ALL, OP_SCAN, OP_EXSCAN, OP_SENDRECV, OP_PINGPONG, OPS,
    OPS_ALL = OP_PINGPONG       /* "all" of them are those before this one: what joins all ranks */
};

/* of a buffer: nothing, one message, one for every rank */
enum blocks { BLOCKS_NONE, BLOCKS_ONE, BLOCKS_EACH };
/* rank 0 is the root of everything, and what exscan leaves alone */
enum who { WHO_ALL, WHO_FIRST, WHO_OTHERS };

struct operation {
    const char *name, *title;              /* "all_reduce", "All_reduce" */
    enum blocks send, recv;
    enum who senders, receivers;
    /* nobody is through before all have come; else ranks may run ahead of each other */
    bool meets;
    const char *help;                      /* what a message is, for the page */
};

/* OP_NONE has no name: something of a contender's own */
extern const struct operation operations[OPS];

/* A rank of a job as the code of a system sees it. */
struct rank {
    int me, size;
    bool crowded;               /* more ranks than CPUs: references yield */
    bool placed, bound;         /* it has been put somewhere; on one CPU */
    struct tutti_comm *comm;    /* of tutti's jobs */
    struct bare *bare;
    uint64_t nth[5];                       /* how many barriers of each kind, see struct bare */
    uint64_t aligned;                      /* how many common starts */
    char *shared;                          /* bytes of all ranks, contender's own use */
    size_t bytes;                          /* of the message, where there is one */
    bool hot;
    char *send, *recv;      /* of this sample */
    char *small[2];         /* to send and to receive; NULL: small messages are in the pools, too */
    char *sends, *recvs;    /* pools of the rank */
    size_t room;            /* bytes of a pool */
    uint64_t turn;
    enum operation_id op;
    bool work;                             /* started and waited for, not blocking */
    const struct system *system;
    int late;                   /* FORM_LATE: the rank that comes late */
    /* LATE_HOLDS: by that rank, between what the others wait for and what ends their wait */
    void (*come)(struct rank *r);
    void *coming;                          /* come's own */
};

/* r->send to r->recv, r->bytes a message, f32; 0 or a negative errno */
typedef int (*operation_function)(struct rank *r);

struct system {
    operation_function run[OPS];           /* NULL: it has no such thing */
    operation_function start[OPS];         /* the same, started and then waited for */
    bool threads;                          /* its ranks are threads of one process */
};

/* A system that has them all, by functions of the operations' names, and <name>_start. C alone. */
#define SYSTEM_HAS_ALL \
    { .run = { [OP_BARRIER] = barrier, [OP_ALL_REDUCE] = all_reduce, [OP_BROADCAST] = broadcast, \
               [OP_REDUCE] = reduce, [OP_REDUCE_SCATTER] = reduce_scatter, \
               [OP_ALL_GATHER] = all_gather, [OP_GATHER] = gather, [OP_SCATTER] = scatter, \
               [OP_ALL_TO_ALL] = all_to_all, [OP_SCAN] = scan, [OP_EXSCAN] = exscan, \
               [OP_SENDRECV] = sendrecv, [OP_PINGPONG] = pingpong }, \
      .start = { [OP_BARRIER] = barrier_start, [OP_ALL_REDUCE] = all_reduce_start, \
                 [OP_BROADCAST] = broadcast_start, [OP_REDUCE] = reduce_start, \
                 [OP_REDUCE_SCATTER] = reduce_scatter_start, [OP_ALL_GATHER] = all_gather_start, \
                 [OP_GATHER] = gather_start, [OP_SCATTER] = scatter_start, \
                 [OP_ALL_TO_ALL] = all_to_all_start, [OP_SCAN] = scan_start, \
                 [OP_EXSCAN] = exscan_start, [OP_SENDRECV] = sendrecv_start, \
                 [OP_PINGPONG] = pingpong_start } }

/* Of a ping-pong: the even rank sends first. Who has no partner does nothing but a copy. */
static inline int operation_partner(const struct rank *r)
{
    return (r->me ^ 1) < r->size ? r->me ^ 1 : r->me;
}

size_t operation_send_bytes(enum operation_id op, int ranks, size_t bytes);
size_t operation_recv_bytes(enum operation_id op, int ranks, size_t bytes);
size_t operation_room(enum operation_id op, int ranks, size_t bytes);   /* of the larger buffer */
/* What all ranks together must at least read and write: every byte that is sent once, every byte
 * that is received once. */
double operation_moves(enum operation_id op, int ranks, size_t bytes);

/* Private buffers for messages of up to r->room. What is small lies on the heap, as in programs:
   whose memory a mapping is tutti has to ask anew for each operation, some 20 ns. */
bool operation_pools(struct rank *r);

/* The owner writes its contribution before each operation, as a program would; from 1 MiB on into
   the next of its buffers, so that it is not found in the caches, unless r->hot. */
void operation_rewrite(struct rank *r);
int operation_run(struct rank *r, uint64_t times);

/* Known numbers into the next buffers; how many elements of the result are wrong after
 * the operation. */
void operation_fill(struct rank *r);
uint64_t operation_wrong(const struct rank *r);

#ifdef __cplusplus
}
#endif
#endif
