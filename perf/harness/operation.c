/* The shape of a row says all there is to know: who gives how many messages, who gets how many.
 * From it follow the room that buffers take, the bytes that must move, and what the result has to
 * be. Numbers are small and whole, so that sums are exact in any order. */
#include "harness/operation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROTATE_FROM = 1 << 20, PERIOD = 61, OWN_MOST = 64 << 10 };

const struct operation operations[OPS] = {
    [OP_BARRIER] = {
        "barrier", "Barrier", BLOCKS_NONE, BLOCKS_NONE, WHO_ALL, WHO_ALL, true,
        "nothing but the meeting"
    },
    [OP_ALL_REDUCE] = {
        "all_reduce", "All_reduce", BLOCKS_ONE, BLOCKS_ONE, WHO_ALL,
        WHO_ALL, true, "bytes of each rank"
    },
    [OP_BROADCAST] = {
        "broadcast", "Broadcast", BLOCKS_ONE, BLOCKS_ONE, WHO_FIRST,
        WHO_OTHERS, false, "bytes of the root"
    },
    [OP_REDUCE] = {
        "reduce", "Reduce", BLOCKS_ONE, BLOCKS_ONE, WHO_ALL, WHO_FIRST, false, "bytes of each rank"
    },
    [OP_REDUCE_SCATTER] = {
        "reduce_scatter", "Reduce_scatter", BLOCKS_EACH, BLOCKS_ONE, WHO_ALL,
        WHO_ALL, true, "bytes a rank gets"
    },
    [OP_ALL_GATHER] = {
        "all_gather", "All_gather", BLOCKS_ONE, BLOCKS_EACH, WHO_ALL,
        WHO_ALL, true, "bytes a rank gives"
    },
    [OP_GATHER] = {
        "gather", "Gather", BLOCKS_ONE, BLOCKS_EACH, WHO_ALL, WHO_FIRST, false, "bytes a rank gives"
    },
    [OP_SCATTER] = {
        "scatter", "Scatter", BLOCKS_EACH, BLOCKS_ONE, WHO_FIRST,
        WHO_ALL, false, "bytes a rank gets"
    },
    [OP_ALL_TO_ALL] = {
        "all_to_all", "All_to_all", BLOCKS_EACH, BLOCKS_EACH, WHO_ALL, WHO_ALL, true,
        "bytes of each rank for each"
    },
    [OP_SCAN] = {
        "scan", "Scan", BLOCKS_ONE, BLOCKS_ONE, WHO_ALL, WHO_ALL, false, "bytes of each rank"
    },
    [OP_EXSCAN] = {
        "exscan", "Exscan", BLOCKS_ONE, BLOCKS_ONE, WHO_ALL, WHO_OTHERS, false, "bytes of each rank"
    },
    [OP_SENDRECV] = {
        "sendrecv", "Sendrecv", BLOCKS_ONE, BLOCKS_ONE, WHO_ALL, WHO_ALL, false,
        "bytes to the next rank, and from the one before"
    },
    [OP_PINGPONG] = {
        "pingpong", "Ping-pong", BLOCKS_ONE, BLOCKS_ONE, WHO_ALL, WHO_ALL, true,
        "bytes from rank 0 to 1 and as many back, 2 to 3 and back ..."
    },
};

static size_t buffer(enum blocks blocks, int ranks, size_t bytes)
{
    return blocks == BLOCKS_NONE ? 0 : blocks == BLOCKS_ONE ? bytes : bytes * (size_t)ranks;
}

static int how_many(enum who who, int ranks)
{
    return who == WHO_ALL ? ranks : who == WHO_FIRST ? 1 : ranks - 1;
}

static bool is_one(enum who who, int me)
{
    return who == WHO_ALL || (who == WHO_FIRST) == (me == 0);
}

size_t operation_send_bytes(enum operation_id op, int ranks, size_t bytes)
{
    return buffer(operations[op].send, ranks, bytes);
}

size_t operation_recv_bytes(enum operation_id op, int ranks, size_t bytes)
{
    return buffer(operations[op].recv, ranks, bytes);
}

size_t operation_room(enum operation_id op, int ranks, size_t bytes)
{
    size_t send = operation_send_bytes(op, ranks, bytes),
           recv = operation_recv_bytes(op, ranks, bytes);
    return send > recv ? send : recv;
}

double operation_moves(enum operation_id op, int ranks, size_t bytes)
{
    const struct operation *o = &operations[op];
    return (double)operation_send_bytes(op, ranks, bytes) * how_many(o->senders, ranks) +
           (double)operation_recv_bytes(op, ranks, bytes) * how_many(o->receivers, ranks);
}

bool operation_pools(struct rank *r)
{
    r->sends = mmap(NULL, 2 * r->room, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    r->recvs = r->sends + r->room;
    r->small[0] = aligned_alloc(4096, OWN_MOST);
    r->small[1] = aligned_alloc(4096, OWN_MOST);
    for (int i = 0; i < 2 && r->small[i]; i++)
        /* the first operation is not to be the first to touch them */
        memset(r->small[i], 0, OWN_MOST);
    return r->sends != MAP_FAILED && r->small[0] && r->small[1];
}

static void next_buffers(struct rank *r)
{
    size_t room = operation_room(r->op, r->size, r->bytes),
           sets = r->bytes < ROTATE_FROM || r->hot || !room ? 1 : r->room / room;
    r->turn++;
    if (room <= OWN_MOST && r->small[0]) {
        r->send = r->small[0];
        r->recv = r->small[1];
        return;
    }
    r->send = r->sends + (sets ? r->turn % sets : 0) * room;
    r->recv = r->recvs + (sets ? r->turn % sets : 0) * room;
}

void operation_rewrite(struct rank *r)
{
    if (!r->bytes)
        return;
    next_buffers(r);
    float *x = (float *)(void *)r->send, value = (float)(r->turn & 1023);
    size_t count = is_one(operations[r->op].senders, r->me)
        ? operation_send_bytes(r->op, r->size, r->bytes) / sizeof *x
        : 0;
    for (size_t i = 0; i < count; i++)
        x[i] = value;
}

int operation_run(struct rank *r, uint64_t times)
{
    operation_function run = r->work ? r->system->start[r->op] : r->system->run[r->op];
    int error = 0;
    if (!run)
        return -ENOTSUP;
    if (!r->bytes) {
        while (times-- && error == 0)
            error = run(r);
        return error;
    }
    for (uint64_t i = 0; i < times && error == 0; i++) {
        if (i)
            operation_rewrite(r);
        error = run(r);
    }
    return error;
}

/* Element i of the message from rank `from` for rank `to`; whoever sends one message to all sends
 * that for rank 0. */
static float given(int from, int to, size_t i)
{
    return (float)((size_t)(5 * from + 3 * to) % 32 + i % PERIOD);
}

void operation_fill(struct rank *r)
{
    if (!r->bytes)
        return;
    next_buffers(r);
    const struct operation *o = &operations[r->op];
    size_t each = r->bytes / sizeof(float),
           out = operation_recv_bytes(r->op, r->size, r->bytes) / sizeof(float);
    float *send = (float *)(void *)r->send, *recv = (float *)(void *)r->recv;
    for (int to = 0; is_one(o->senders, r->me) && to < (o->send == BLOCKS_EACH ? r->size : 1); to++)
        for (size_t i = 0; i < each; i++)
            send[(size_t)to * each + i] = given(r->me, to, i);
    for (size_t i = 0; i < out; i++)
        recv[i] = -1;
}

/* Block b of the result is the sum of what the ranks first to last gave. */
static void sources(const struct rank *r, int b, int *first, int *last)
{
    *first = 0;
    *last = r->size - 1;
    switch (r->op) {
    case OP_BROADCAST: case OP_SCATTER: *last = 0; break;
    case OP_ALL_GATHER: case OP_GATHER: case OP_ALL_TO_ALL: *first = *last = b; break;
    case OP_SCAN: *last = r->me; break;
    case OP_EXSCAN: *last = r->me - 1; break;
    case OP_PINGPONG: *first = *last = operation_partner(r); break;
    case OP_SENDRECV: *first = *last = (r->me + r->size - 1) % r->size; break;
    default: break;
    }
}

uint64_t operation_wrong(const struct rank *r)
{
    const struct operation *o = &operations[r->op];
    size_t each = r->bytes / sizeof(float);
    const float *recv = (const float *)(const void *)r->recv;
    int to = o->send == BLOCKS_EACH ? r->me : 0, first, last;
    uint64_t wrong = 0;
    if (!r->bytes || !is_one(o->receivers, r->me))
        return 0;
    for (int b = 0; b < (o->recv == BLOCKS_EACH ? r->size : 1); b++) {
        sources(r, b, &first, &last);
        for (size_t i = 0; i < each; i++) {
            float want = 0;
            for (int from = first; from <= last; from++)
                want += given(from, to, i);
            wrong += recv[(size_t)b * each + i] != want;
        }
    }
    return wrong;
}
