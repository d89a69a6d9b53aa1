/* One rank's part of a list of cases. The rank folds the expected result itself, from what all
 * ranks give. So it need not meet the others between cases, and ranks that are an operation early
 * or late stay so. */
#include "support/oracle.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { FLUSH = 0x8040 };                             /* flush to zero, and denormals are zeros */
static unsigned modes_get(void) { return _mm_getcsr() & ~0x3fu; }
static void modes_set(unsigned modes) { _mm_setcsr(modes); }
#else
enum { FLUSH = 0 };
static unsigned modes_get(void) { return 0; }
static void modes_set(unsigned modes) { (void)modes; }
#endif

struct run {
    const struct oracle_case *c;
    tutti_comm *comm;
    struct oracle_board *board;
    const struct oracle_device *device;
    int me;
    size_t nth;
    tutti_op user[OPS - OP_TAKE];
};

__attribute__((format(printf, 2, 3))) static int complain(const struct run *run, const char *format,
                                                          ...)
{
    uint32_t n = fetch_add32(&run->board->used, 1);
    if (n >= ORACLE_COMPLAINTS)
        return 1;
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    struct text t = { run->board->said[n], sizeof run->board->said[n], 0 };
    text_add(&t, "rank %d, case %zu: ", run->me, run->nth);
    if (run->c)
        oracle_describe(run->c, &t);
    text_add(&t, ": %s", what);
    return 1;
}

/* Checks what a user's function is promised besides its data. */
static shared32 promises_broken;

static void user_promised(const void *in, const void *inout, size_t count, tutti_type type)
{
    if (((uintptr_t)in | (uintptr_t)inout) % 64 || count == 0
        || count * oracle_width((int)type) > 4096 || (modes_get() & FLUSH))
        store_release32(&promises_broken, 1);
}

static void user_take(const void *in, void *inout, size_t count, tutti_type type)
{
    user_promised(in, inout, count, type);
    oracle_user_take(in, inout, count, type);
}

static void user_affine(const void *in, void *inout, size_t count, tutti_type type)
{
    user_promised(in, inout, count, type);
    oracle_user_affine(in, inout, count, type);
}

static int call_lists(const struct oracle_part *p, tutti_type type, tutti_op op, tutti_comm *comm,
                      const tutti_call *call)
{
    const struct oracle_case *c = p->c;
    const void *gives[ORACLE_RANKS];
    void *gets[ORACLE_RANKS];
    size_t give_counts[ORACLE_RANKS], get_counts[ORACLE_RANKS];
    int root = oracle_root(c);
    bool takes = p->get_n, has = p->give_n;
    memcpy(gives, p->give, sizeof gives);       /* end with this function, as the contract allows */
    memcpy(gets, p->get, sizeof gets);
    memcpy(give_counts, p->gives, sizeof give_counts);
    memcpy(get_counts, p->gets, sizeof get_counts);
    switch (c->kind) {
    case KIND_ALL_REDUCE_MANY:
        return tutti_all_reduce_many(has ? gives : NULL, has ? gets : NULL,
                                     has ? give_counts : NULL, p->give_n, type, op, comm, call);
    case KIND_REDUCE_SCATTER_V:
        return tutti_reduce_scatter_v(gives, give_counts, gets[0], type, op, comm, call);
    case KIND_ALL_GATHER_V:
        return tutti_all_gather_v(gives[0], give_counts[0], gets, get_counts, type, comm, call);
    case KIND_GATHER_V:
        return tutti_gather_v(gives[0], give_counts[0], takes ? gets : NULL,
                              takes ? get_counts : NULL, type, root, comm, call);
    case KIND_SCATTER_V:
        return tutti_scatter_v(has ? gives : NULL, has ? give_counts : NULL, gets[0], get_counts[0],
                               type, root, comm, call);
    default: return tutti_all_to_all_v(gives, give_counts, gets, get_counts, type, comm, call);
    }
}

/* If a rank gives or gets nothing, that pointer may have any value: NULL, or memory that must stay
 * unchanged. */
static int call_kind(const struct run *run, const struct oracle_part *p, const tutti_call *call)
{
    const struct oracle_case *c = p->c;
    size_t n = p->count;
    tutti_type type = (tutti_type)c->v[DIM_TYPE];
    tutti_op op = c->v[DIM_OP] >= OP_TAKE ? run->user[c->v[DIM_OP] - OP_TAKE]
                                          : (tutti_op)c->v[DIM_OP];
    bool null = run->nth % 2;
    void *unused = null ? NULL : p->recv.mem;
    const void *send = p->give_n ? p->give[0] : unused;
    void *recv = p->get_n ? p->get[0] : unused;
    if (n == 0 && null)
        send = recv = NULL;
    switch (c->kind) {
    case KIND_BARRIER: return tutti_barrier(run->comm, call);
    case KIND_BROADCAST: return tutti_broadcast(recv, n, type, oracle_root(c), run->comm, call);
    case KIND_REDUCE: return tutti_reduce(send, recv, n, type, op, oracle_root(c), run->comm, call);
    case KIND_ALL_REDUCE: return tutti_all_reduce(send, recv, n, type, op, run->comm, call);
    case KIND_REDUCE_SCATTER: return tutti_reduce_scatter(send, recv, n, type, op, run->comm, call);
    case KIND_ALL_GATHER: return tutti_all_gather(send, recv, n, type, run->comm, call);
    case KIND_GATHER: return tutti_gather(send, recv, n, type, oracle_root(c), run->comm, call);
    case KIND_SCATTER: return tutti_scatter(send, recv, n, type, oracle_root(c), run->comm, call);
    case KIND_ALL_TO_ALL: return tutti_all_to_all(send, recv, n, type, run->comm, call);
    case KIND_SCAN: return tutti_scan(send, recv, n, type, op, run->comm, call);
    case KIND_EXSCAN: return tutti_exscan(send, recv, n, type, op, run->comm, call);
    default: return call_lists(p, type, op, run->comm, call);
    }
}

static int await(tutti_work *work, bool by_test)
{
    while (by_test && tutti_test(work) == -EAGAIN)
        sched_yield();
    return tutti_wait(work, -1);
}

static int call(const struct run *run, struct oracle_part *p)
{
    const struct oracle_case *c = run->c;
    int flusher = c->v[DIM_MODES] == MODES_FIRST_FLUSHES ? 0
        : c->v[DIM_MODES] == MODES_LAST_FLUSHES ? oracle_ranks(c) - 1
        : -1;
    bool flushes = run->me == flusher;
    unsigned before = modes_get(), during = flushes ? before | FLUSH : before;
    tutti_work *work = NULL;
    tutti_call how = {
        .work = c->v[DIM_HOW] == HOW_WORK ? &work : NULL,
        .factor = c->v[DIM_OP] == TUTTI_PREMUL_SUM ? p->factor : NULL
    };
    if (run->device && !run->device->ready(run->device->arg, p, &how))
        return complain(run, "the data did not come to the device");
    modes_set(during);
    int r = call_kind(run, p, how.work || how.factor || how.stream || run->nth % 2 ? &how : NULL);
    memset(p->factor, 0, sizeof p->factor);
    if (r == 0 && how.work)
        r = await(work, run->nth % 4 < 2);
    unsigned after = modes_get();
    modes_set(before);
    if (r != 0)
        return complain(run, "%d: %s", r, tutti_explain(run->comm));
    return after == during
        ? 0
        : complain(run, "the floating-point modes were 0x%x and are 0x%x", during, after);
}

static int run_case(struct run *run)
{
    struct oracle_part part;
    char what[256];
    struct text why = TEXT_IN(what);
    if (!oracle_take(&part, run->c, run->me, run->comm, run->device))
        return complain(run, "no memory");
    text_clear(&why);
    int r = call(run, &part);
    if (r == 0 && run->device && !run->device->done(run->device->arg, &part, &why))
        r = complain(run, "%s", what);
    if (r == 0 && !oracle_judge(&part, &why))
        r = complain(run, "%s", what);
    if (r == 0 && load_acquire32(&promises_broken))
        r = complain(run, "an operation of the user's was not called as promised");
    oracle_give(&part, run->comm, run->device);
    if (r == 0 && run->device && !run->device->left(run->device->arg, &part, run->comm))
        r = complain(run, "between two cases: %s", tutti_explain(run->comm));
    return r;
}

enum { AGAIN_MOST = 4096 };          /* bytes */

int oracle_run(tutti_comm *comm, const struct oracle_case *cases, size_t n,
               struct oracle_board *board, const struct oracle_device *device)
{
    struct run run = { .comm = comm, .board = board, .device = device, .me = tutti_rank(comm) };
    int r = tutti_op_create(user_take, 0, &run.user[0], comm);
    if (r == 0)
        r = tutti_op_create(user_affine, 1, &run.user[1], comm);
    if (r < 0)
        return complain(&run, "op_create: %d %s", r, tutti_explain(comm));
    for (size_t i = 0; i < n && !r; i++) {
        run.c = &cases[i];
        run.nth = i;
        r = run_case(&run);
        /* a blocking call may go a shorter way if it is like one before it */
        run.nth = i & ~(size_t)1;
        if (r == 0 && oracle_count(run.c) * oracle_width(run.c->v[DIM_TYPE]) <= AGAIN_MOST)
            r = run_case(&run);
    }
    return r;
}
