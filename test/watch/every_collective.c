/* Element j of block (from -> to) of operation nth is a line in j, with a slope that differs by
 * rank: so a block that comes from the wrong rank, from the wrong place, or from the operation
 * before is wrong nearly everywhere, and sums over ranks are lines, too. */
#include "every_collective.h"

#include "group/comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const enum kind every_kind[] = {
    KIND_BARRIER, KIND_BROADCAST, KIND_REDUCE, KIND_ALL_REDUCE, KIND_ALL_REDUCE_MANY,
    KIND_REDUCE_SCATTER, KIND_ALL_GATHER, KIND_GATHER, KIND_SCATTER, KIND_ALL_TO_ALL, KIND_SCAN,
    KIND_EXSCAN, KIND_REDUCE_SCATTER_V, KIND_ALL_GATHER_V, KIND_GATHER_V, KIND_SCATTER_V,
    KIND_ALL_TO_ALL_V, KIND_SAME,
};
const int every_kinds = sizeof every_kind / sizeof every_kind[0];
_Static_assert(sizeof every_kind / sizeof every_kind[0] == KIND_SAME - KIND_BARRIER + 1,
               "every collective");

static void *take(size_t bytes, bool in_arena, tutti_comm *comm)
{
    int error;
    if (!in_arena)
        return malloc(bytes);
    pthread_mutex_lock(&comm->world->lock);
    void *at = span_take(comm->world->span, bytes, &error);
    pthread_mutex_unlock(&comm->world->lock);
    return at;
}

static void give(void *at, bool in_arena, tutti_comm *comm)
{
    if (!in_arena) {
        free(at);
        return;
    }
    pthread_mutex_lock(&comm->world->lock);
    if (at)
        span_give(comm->world->span, at);
    pthread_mutex_unlock(&comm->world->lock);
}

int every_open(struct every_room *room, size_t most, int in_arena, tutti_comm *comm)
{
    size_t bytes = (most ? most : 1) * EVERY_RANKS * sizeof(int32_t);
    *room = (struct every_room){ .most = most, .send = take(bytes, in_arena & 1, comm),
                                 .recv = take(bytes, in_arena == 1 || in_arena == 2, comm) };
    if (room->send && room->recv)
        return 0;
    every_close(room, in_arena, comm);
    return -ENOMEM;
}

void every_close(struct every_room *room, int in_arena, tutti_comm *comm)
{
    give(room->send, in_arena & 1, comm);
    give(room->recv, in_arena == 1 || in_arena == 2, comm);
    room->send = room->recv = NULL;
}

void every_sum(const void *in, void *inout, size_t count, tutti_type type)
{
    const uint32_t *a = in;
    uint32_t *b = inout;
    (void)type;
    for (size_t i = 0; i < count; i++)
        b[i] += a[i];
}

/* base + j * slope. */
struct line { uint32_t base, slope; };

static struct line line_of(const struct every *e, int from, int to)
{
    return (struct line){ (uint32_t)e->nth * 2654435761u + (uint32_t)from * 1000003u
                              + (uint32_t)to * 40503u,
                          (uint32_t)(from * 2 + 1) };
}

static struct line sum_of(const struct every *e, int ranks, int to)
{
    struct line sum = { 0, 0 };
    for (int p = 0; p < ranks; p++) {
        struct line one = line_of(e, p, to);
        sum.base += one.base;
        sum.slope += one.slope;
    }
    return sum;
}

static void fill(int32_t *at, size_t count, struct line l)
{
    for (size_t j = 0; j < count; j++)
        at[j] = (int32_t)(l.base + (uint32_t)j * l.slope);
}

static uint64_t differs(const int32_t *at, size_t count, struct line l)
{
    uint64_t wrong = 0;
    for (size_t j = 0; j < count; j++)
        wrong += at[j] != (int32_t)(l.base + (uint32_t)j * l.slope);
    return wrong;
}

size_t every_count(const struct every *e, int from, int to)
{
    bool by_from = e->kind == KIND_ALL_GATHER_V, by_to = e->kind == KIND_REDUCE_SCATTER_V;
    uint64_t mix = (by_to ? 0 : (uint64_t)from * 3) + (by_from ? 0 : (uint64_t)to * 5) + e->nth;
    bool longer = e->skew == 1 + (by_to ? 0 : from) * EVERY_RANKS + (by_from ? 0 : to);
    return e->count * (mix % 5) / 4 + longer;        /* none, a quarter … all of it */
}

static size_t many_count(const struct every *e, int i)
{
    return e->count * (size_t)(i + 1) / EVERY_BUFFERS + (e->skew == 1 + i);
}

/* How many blocks this rank gives, and how long each is. */
static int fill_all(const struct every *e, struct every_room *room, int me, int size)
{
    int blocks = e->kind == KIND_ALL_REDUCE_MANY ? EVERY_BUFFERS : size;
    bool packed = e->kind == KIND_REDUCE_SCATTER || e->kind == KIND_SCATTER
        || e->kind == KIND_ALL_TO_ALL;
    bool one = e->kind == KIND_BARRIER || e->kind == KIND_REDUCE || e->kind == KIND_ALL_REDUCE
        || e->kind == KIND_ALL_GATHER || e->kind == KIND_GATHER || e->kind == KIND_ALL_GATHER_V
        || e->kind == KIND_GATHER_V || e->kind == KIND_SCAN || e->kind == KIND_EXSCAN
        || e->kind == KIND_SAME;
    memset(room->recv, 0x5a,
           room->most * (size_t)(size > EVERY_BUFFERS ? size : EVERY_BUFFERS) * sizeof(int32_t));
    if (e->kind == KIND_BROADCAST) {
        if (me == every_root(e, size))
            fill(room->recv, e->count, line_of(e, me, 0));
        return blocks;
    }
    for (int to = 0; to < (one ? 1 : blocks); to++) {
        room->sends[to] = room->send + (size_t)to * (packed ? e->count : room->most);
        room->send_counts[to] = e->kind == KIND_ALL_REDUCE_MANY ? many_count(e, to)
            : packed || one ? e->count
            : every_count(e, me, to);
        fill((int32_t *)(uintptr_t)room->sends[to], room->send_counts[to], line_of(e, me, to));
    }
    for (int from = 0; from < blocks; from++) {
        room->recvs[from] = room->recv + (size_t)from * room->most;
        room->recv_counts[from] = e->kind == KIND_ALL_REDUCE_MANY
            ? many_count(e, from)
            : every_count(e, from, e->kind == KIND_ALL_GATHER_V ? 0 : me);
    }
    return blocks;
}

int every_call(const struct every *e, struct every_room *r, tutti_comm *comm,
               const tutti_call *call)
{
    int me = tutti_rank(comm), size = tutti_size(comm), root = every_root(e, size),
        blocks = fill_all(e, r, me, size);
    size_t n = e->count;
    const tutti_type type = e->type;
    switch (e->kind) {
    case KIND_BARRIER: return tutti_barrier(comm, call);
    case KIND_BROADCAST: return tutti_broadcast(r->recv, n, type, root, comm, call);
    case KIND_REDUCE:
        return tutti_reduce(r->send, me == root ? r->recv : NULL, n, type, e->oper, root, comm,
                            call);
    case KIND_ALL_REDUCE: return tutti_all_reduce(r->send, r->recv, n, type, e->oper, comm, call);
    case KIND_ALL_REDUCE_MANY:
        return tutti_all_reduce_many(r->sends, r->recvs, r->send_counts, blocks, type, e->oper,
                                     comm, call);
    case KIND_REDUCE_SCATTER:
        return tutti_reduce_scatter(r->send, r->recv, n, type, e->oper, comm, call);
    case KIND_ALL_GATHER: return tutti_all_gather(r->send, r->recv, n, type, comm, call);
    case KIND_GATHER:
        return tutti_gather(r->send, me == root ? r->recv : NULL, n, type, root, comm, call);
    case KIND_SCATTER:
        return tutti_scatter(me == root ? r->send : NULL, r->recv, n, type, root, comm, call);
    case KIND_ALL_TO_ALL: return tutti_all_to_all(r->send, r->recv, n, type, comm, call);
    case KIND_SCAN: return tutti_scan(r->send, r->recv, n, type, e->oper, comm, call);
    case KIND_EXSCAN:
        return tutti_exscan(r->send, me ? r->recv : NULL, n, type, e->oper, comm, call);
    case KIND_REDUCE_SCATTER_V:
        return tutti_reduce_scatter_v(r->sends, r->send_counts, r->recv, type, e->oper, comm, call);
    case KIND_ALL_GATHER_V:
        return tutti_all_gather_v(r->send, every_count(e, me, 0), r->recvs, r->recv_counts, type,
                                  comm, call);
    case KIND_GATHER_V:
        return tutti_gather_v(r->send, every_count(e, me, root), me == root ? r->recvs : NULL,
                              me == root ? r->recv_counts : NULL, type, root, comm, call);
    case KIND_SCATTER_V:
        return tutti_scatter_v(me == root ? r->sends : NULL, me == root ? r->send_counts : NULL,
                               r->recv, every_count(e, root, me), type, root, comm, call);
    case KIND_ALL_TO_ALL_V:
        return tutti_all_to_all_v(r->sends, r->send_counts, r->recvs, r->recv_counts, type, comm,
                                  call);
    case KIND_SAME:                         /* every third time one rank has one bit that differs */
        for (size_t j = 0; j < n; j++)
            r->send[j] = (int32_t)j;
        if (e->nth % 3 == 0 && n && me == root)
            r->send[e->nth % n] ^= 1;
        return tutti_same(r->send, n * sizeof(int32_t), comm, call);
    default: return -EINVAL;
    }
}

static uint64_t differs_blocks(const struct every *e, const struct every_room *r, int me, int size)
{
    uint64_t wrong = 0;
    bool v = e->kind == KIND_ALL_GATHER_V || e->kind == KIND_GATHER_V
        || e->kind == KIND_ALL_TO_ALL_V;
    bool each = e->kind == KIND_ALL_TO_ALL || e->kind == KIND_ALL_TO_ALL_V;
    for (int p = 0; p < size; p++)
        wrong += differs(v ? r->recvs[p] : r->recv + (size_t)p * e->count,
                         v ? r->recv_counts[p] : e->count, line_of(e, p, each ? me : 0));
    return wrong;
}

uint64_t every_wrong(const struct every *e, const struct every_room *r, int result,
                     tutti_comm *comm)
{
    int me = tutti_rank(comm), size = tutti_size(comm), root = every_root(e, size);
    uint64_t wrong = 0;
    if (e->kind == KIND_SAME)
        return result != !(e->nth % 3 == 0 && e->count && size > 1);
    wrong += result != 0;
    switch (e->kind) {
    case KIND_BROADCAST: return wrong + differs(r->recv, e->count, line_of(e, root, 0));
    case KIND_REDUCE:
        return wrong + (me == root ? differs(r->recv, e->count, sum_of(e, size, 0)) : 0);
    case KIND_ALL_REDUCE: return wrong + differs(r->recv, e->count, sum_of(e, size, 0));
    case KIND_ALL_REDUCE_MANY:
        for (int i = 0; i < EVERY_BUFFERS; i++)
            wrong += differs(r->recvs[i], many_count(e, i), sum_of(e, size, i));
        return wrong;
    case KIND_REDUCE_SCATTER: return wrong + differs(r->recv, e->count, sum_of(e, size, me));
    case KIND_REDUCE_SCATTER_V:
        return wrong + differs(r->recv, every_count(e, 0, me), sum_of(e, size, me));
    case KIND_GATHER:
    case KIND_GATHER_V: return wrong + (me == root ? differs_blocks(e, r, me, size) : 0);
    case KIND_SCATTER: return wrong + differs(r->recv, e->count, line_of(e, root, me));
    case KIND_SCATTER_V:
        return wrong + differs(r->recv, every_count(e, root, me), line_of(e, root, me));
    case KIND_SCAN: return wrong + differs(r->recv, e->count, sum_of(e, me + 1, 0));
    case KIND_EXSCAN: return wrong + (me ? differs(r->recv, e->count, sum_of(e, me, 0)) : 0);
    case KIND_ALL_GATHER:
    case KIND_ALL_GATHER_V:
    case KIND_ALL_TO_ALL:
    case KIND_ALL_TO_ALL_V: return wrong + differs_blocks(e, r, me, size);
    default: return wrong;
    }
}

/* "rooted" is of reduce alone; "inline" of none whose blocks differ or are many. */
static bool has_algorithm(const char *operation, const char *algorithm)
{
    static const char *const never_inline[] = {
        "all_reduce_many", "reduce_scatter_v", "all_gather_v"
    };
    bool has = strcmp(algorithm, "rooted") != 0 || !strcmp(operation, "reduce");
    for (size_t i = 0; i < sizeof never_inline / sizeof never_inline[0]; i++)
        has = has && (strcmp(algorithm, "inline") != 0 || strcmp(operation, never_inline[i]) != 0);
    return has;
}

const char *every_rules(const char *algorithm, const char *gate)
{
    static char rules[1024];
    static const char *const operations[] = {
        "broadcast", "reduce", "all_reduce", "reduce_scatter", "all_gather", "gather", "scatter",
        "all_to_all", "scan", "exscan", "all_reduce_many", "reduce_scatter_v", "all_gather_v"
    };
    size_t n = (size_t)snprintf(rules, sizeof rules, "barrier:-inf=%s", gate);
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (has_algorithm(operations[i], algorithm))
            n += (size_t)snprintf(rules + n, sizeof rules - n, ";%s:-inf=%s", operations[i],
                                  algorithm);
    return rules;
}
