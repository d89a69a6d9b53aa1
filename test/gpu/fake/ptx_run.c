/* Runs a kernel: block after block, and of a block as many lanes at a time as have no need of each
 * other. Memory is touched here only, and every address held against the windows that the launch
 * may touch. */
#include "fake/ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_MOST = 1024, NEVER = 0x7fffffff };
#define STEPS_MOST (UINT64_C(1) << 36)               /* of lanes: some minutes */

struct runner {
    const struct ptx_launch *launch;
    const struct ptx_function *f;
    uint64_t *rows;
    int room;                             /* lanes in a row */
    int at[BLOCK_MOST];                   /* the op that a lane comes to, NEVER: it has returned */
    bool waits[BLOCK_MOST];               /* at a barrier */
    unsigned char *shared;
    size_t shared_bytes;
    uint64_t steps;
    CUresult error;
    const struct ptx_window *last;
};

static uint64_t get(const struct runner *r, const struct ptx_value *v, int lane)
{
    return v->row < 0 ? v->constant : r->rows[v->row * r->room + lane];
}

static CUresult fails(struct runner *r, const struct ptx_op *op, CUresult error, const char *what,
                      uint64_t at)
{
    r->error = error;
    fprintf(stderr, "fake CUDA: %s, PTX line %d: %s %#llx\n", r->f->name, op->line, what,
            (unsigned long long)at);
    return error;
}

static unsigned char *see_global(struct runner *r, const struct ptx_op *op, uint64_t at,
                                 uint64_t bytes)
{
    bool write = op->code == PTX_ST;
    const struct ptx_window *w = r->last;
    if (w && at >= w->begin && at < w->end && bytes <= w->end - at && (!write || w->write))
        return w->at + (at - w->begin);
    for (int i = 0; i < r->launch->windows; i++) {
        w = &r->launch->window[i];
        if (at >= w->begin && at < w->end && bytes <= w->end - at && (!write || w->write)) {
            r->last = w;
            return w->at + (at - w->begin);
        }
    }
    fails(r, op, CUDA_ERROR_ILLEGAL_ADDRESS, write ? "writes" : "reads", at);
    return NULL;
}

static unsigned char *see(struct runner *r, const struct ptx_op *op, uint64_t at, uint64_t bytes)
{
    if (at % bytes) {
        fails(r, op, CUDA_ERROR_MISALIGNED_ADDRESS, "not aligned", at);
        return NULL;
    }
    if (op->space == PTX_GLOBAL)
        return see_global(r, op, at, bytes);
    uint64_t room = op->space == PTX_PARAM ? r->f->param_bytes : r->shared_bytes;
    if (at < room && bytes <= room - at)
        return (op->space == PTX_PARAM ? (unsigned char *)(uintptr_t)r->launch->param : r->shared)
            + at;
    fails(r, op, CUDA_ERROR_ILLEGAL_ADDRESS,
          op->space == PTX_PARAM ? "no such parameter" : "no such shared memory", at);
    return NULL;
}

static void memory(struct runner *r, const struct ptx_op *op, const uint16_t *lanes, int n)
{
    size_t bytes = op->type.bits / 8u;
    for (int j = 0; j < n; j++) {
        int lane = lanes[j];
        unsigned char *at = see(r, op, get(r, &op->source[0], lane) + (uint64_t)op->offset,
                                bytes * (size_t)op->vector);
        if (!at)
            return;
        for (int v = 0; v < op->vector; v++) {
            uint64_t value = op->code == PTX_ST ? get(r, &op->to[v], lane) : 0;
            if (op->code == PTX_ST) {
                memcpy(at + (size_t)v * bytes, &value, bytes);
                continue;
            }
            memcpy(&value, at + (size_t)v * bytes, bytes);
            if (op->type.kind == 's' && bytes < 4)       /* into a wider register, with its sign */
                value = (uint64_t)((int64_t)(value << (64 - op->type.bits)) >> (64 - op->type.bits))
                    & UINT32_MAX;
            r->rows[op->to[v].row * r->room + lane] = value;
        }
    }
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Those of the list whose predicate holds come first in `yes`, others in `no`. */
static int choose(const struct runner *r, const struct ptx_op *op, const uint16_t *lanes, int n,
                  uint16_t *yes, uint16_t *no)
{
    int y = 0, o = 0;
    const uint64_t *row = r->rows + op->guard * r->room;
    for (int j = 0; j < n; j++)
        if ((row[lanes[j]] != 0) != op->guard_not)
            yes[y++] = lanes[j];
        else
            no[o++] = lanes[j];
    return y;
}

static void put(struct runner *r, const uint16_t *lanes, int n, int at)
{
    for (int j = 0; j < n; j++)
        r->at[lanes[j]] = at;
}

/* These lanes together from `at` on, until they part, wait, end, or come to `stop`, where
 * others are. */
static void go(struct runner *r, uint16_t *lanes, int n, int at, int stop)
{
    uint16_t yes[BLOCK_MOST], no[BLOCK_MOST];
    while (at < stop) {
        if (at >= r->f->ops_n) {
            put(r, lanes, n, NEVER);                 /* the closing brace returns */
            return;
        }
        const struct ptx_op *op = &r->f->ops[at];
        const uint16_t *who = lanes;
        int m = n;
        r->steps += (uint64_t)n;
        if (op->guard >= 0) {
            m = choose(r, op, lanes, n, yes, no);
            who = yes;
        }
        if (op->code == PTX_BRA && m == n) {
            at = op->target;
            if (r->steps > STEPS_MOST && !r->error)
                fails(r, op, CUDA_ERROR_LAUNCH_TIMEOUT, "does not end", 0);
        } else if (op->code == PTX_BRA && m) {
            put(r, yes, m, op->target);
            put(r, no, n - m, at + 1);
            return;
        } else if ((op->code == PTX_RET || op->code == PTX_BAR) && m) {
            for (int j = 0; j < m; j++)
                r->waits[who[j]] = op->code == PTX_BAR;
            put(r, who, m, op->code == PTX_BAR ? at + 1 : NEVER);
            if (m < n)
                put(r, no, n - m, at + 1);
            return;
        } else {
            if (op->code == PTX_LD || op->code == PTX_ST)
                memory(r, op, who, m);
            else if (op->code != PTX_BRA && op->code != PTX_RET && op->code != PTX_BAR && m)
                ptx_exec(op, r->rows, r->room, who, m);
            at++;
        }
        if (r->error)
            return;
    }
    put(r, lanes, n, at);
}

static void vector_run(struct runner *r, int n)
{
    uint16_t lanes[BLOCK_MOST];
    for (int i = 0; i < n; i++) {
        r->at[i] = 0;
        r->waits[i] = false;
    }
    while (!r->error) {
        int first = NEVER, next = NEVER, m = 0, waiting = 0;
        for (int i = 0; i < n; i++) {
            waiting += r->waits[i];
            if (!r->waits[i] && r->at[i] < first)
                first = r->at[i];
        }
        for (int i = 0; i < n; i++)
            if (!r->waits[i] && r->at[i] == first)
                lanes[m++] = (uint16_t)i;
            else if (!r->waits[i] && r->at[i] < next)
                next = r->at[i];
        if (first != NEVER)
            go(r, lanes, m, first, next);
        else if (waiting)
            memset(r->waits, 0, sizeof r->waits);    /* all that have not returned are there */
        else
            return;
    }
}

/* Registers hold no zeroes at the beginning: nobody may count on them. */
static void begin(struct runner *r, const unsigned block[3], unsigned first, int n)
{
    const struct ptx_launch *l = r->launch;
    for (int i = PTX_ROWS * r->room; i < r->f->rows * r->room; i++)
        r->rows[i] = 0xd00dfeedu;
    for (int i = 0; i < n; i++) {
        unsigned thread = first + (unsigned)i;
        unsigned tid[3] = { thread % l->block[0], thread / l->block[0] % l->block[1],
                            thread / l->block[0] / l->block[1] };
        for (int d = 0; d < 3; d++) {
            r->rows[(PTX_TID + d) * r->room + i] = tid[d];
            r->rows[(PTX_NTID + d) * r->room + i] = l->block[d];
            r->rows[(PTX_CTAID + d) * r->room + i] = block[d];
            r->rows[(PTX_NCTAID + d) * r->room + i] = l->grid[d];
        }
        r->rows[PTX_LANEID * r->room + i] = thread % 32;
    }
}

static void block_run(struct runner *r, const unsigned block[3])
{
    unsigned threads = r->launch->block[0] * r->launch->block[1] * r->launch->block[2];
    if (r->shared_bytes)
        memset(r->shared, 0xcd, r->shared_bytes);
    for (unsigned first = 0; first < threads && !r->error; first += (unsigned)r->room) {
        unsigned left = threads - first;
        int n = left < (unsigned)r->room ? (int)left : r->room;
        begin(r, block, first, n);
        vector_run(r, n);
    }
}

CUresult ptx_run(const struct ptx_launch *l)
{
    unsigned threads = l->block[0] * l->block[1] * l->block[2];
    struct runner *r = calloc(1, sizeof *r);
    if (!r || threads > BLOCK_MOST)
        abort();
    r->launch = l;
    r->f = l->function;
    bool together = r->f->barriers || r->f->shared_bytes || l->shared_bytes;
    r->room = together || threads < PTX_LANES ? (int)threads : PTX_LANES;
    r->shared_bytes = r->f->shared_bytes + l->shared_bytes;
    r->rows = malloc((size_t)r->f->rows * (size_t)r->room * sizeof *r->rows);
    r->shared = malloc(r->shared_bytes + 1);
    if (!r->rows || !r->shared)
        abort();
    unsigned at[3];
    for (at[2] = 0; at[2] < l->grid[2] && !r->error; at[2]++)
        for (at[1] = 0; at[1] < l->grid[1] && !r->error; at[1]++)
            for (at[0] = 0; at[0] < l->grid[0] && !r->error; at[0]++)
                block_run(r, at);
    CUresult error = r->error;
    free(r->rows);
    free(r->shared);
    free(r);
    return error;
}
