/* tutti's own roads: one job for each road and number of ranks, which TUTTI_ALGORITHM tells the
 * road; in it all operations and sizes. What is small goes through the host whatever the road is,
 * so leader and peers are told to take nothing for small; pinned is left as it is. */
#include "device/device.h"

#include "base/atomic.h"
#include "base/text.h"
#include "device/spin.h"
#include "gpu/ipc_export.h"
#include "harness/stamp.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 5 };                                 /* samples of a point, however long they take */

/* ---- the loop, for all that measure ---------------------------------------------------------- */

void point_take(struct point *p, struct series *s)
{
    p->samples = (int)s->n;
    p->median = series_median(s);
    p->low = series_quantile(s, 0.25);
    p->high = series_quantile(s, 0.75);
    p->least = series_quantile(s, 0);
}

/* Rank 0, after a barrier: all have written. */
static double slowest(const struct loop *l)
{
    uint64_t begin = l->meeting->at[0].begin, end = l->meeting->at[0].end;
    for (int r = 1; r < l->ranks; r++) {
        begin = l->meeting->at[r].begin < begin ? l->meeting->at[r].begin : begin;
        end = l->meeting->at[r].end > end ? l->meeting->at[r].end : end;
    }
    return stamp_ns(end - begin);
}

int loop_run(const struct loop *l, struct series *samples)
{
    struct meeting *m = l->meeting;
    uint64_t last = stamp_now() + stamp_ticks(m->slice_ns);
    int error = 0;
    for (int turn = 0; !error; turn++) {
        error = l->prepare(l->own, turn);
        if (l->rank == 0)               /* two of them: the slow may still read the last turn's */
            m->go[turn & 1] = turn < l->most && (turn < LEAST || stamp_now() < last);
        if (!error)
            error = tutti_barrier(l->world, NULL);
        if (error || !m->go[turn & 1])
            break;
        m->at[l->rank].begin = stamp_now();
        error = l->op(l->own, turn);
        m->at[l->rank].end = stamp_now();
        if (!error)
            error = tutti_barrier(l->world, NULL);
        if (!error && l->rank == 0 && turn > 0)      /* the first one opens memory, loads kernels */
            series_add(samples, slowest(l));
        if (!error)
            error = l->look(l->own, turn);
    }
    return error;
}

void part_refuse(const struct part *part, const char *words)
{
    for (int i = part->first; i < part->end; i++)
        if (!part->board->point[i].samples && !part->board->point[i].why[0])
            snprintf(part->board->point[i].why, sizeof part->board->point[i].why, "%s", words);
}

int part_spawn(const struct part *part, int (*body)(tutti_comm *world, void *part), char *words,
               size_t room)
{
    int status[RANKS_MOST];
    tutti_options options = { .timeout_ms = (int)(part->ns * 2 / 1e6) + 30000 };
    struct part copy = *part;
    int failed = tutti_spawn(part->ranks, body, &copy, &options, status);
    if (failed < 0)
        snprintf(words, room, failed == -ETIMEDOUT ? "it did not end in time" : "no ranks: %s",
                 tutti_strerror(failed));
    else if (failed > 0)
        snprintf(words, room, "%d of %d ranks failed", failed, part->ranks);
    return failed;
}

/* ---- tutti ----------------------------------------------------------------------------------- */

struct own { struct bench *bench; enum doing kind; size_t bytes; };

static int call(void *arg, int turn)
{
    struct own *own = arg;
    struct bench *b = own->bench;
    tutti_call call = { .stream = b->stream };
    void *send = (void *)(uintptr_t)b->send, *recv = (void *)(uintptr_t)b->recv;
    size_t count = own->bytes / sizeof(float);
    (void)turn;
    switch (own->kind) {
    case DO_ALL_REDUCE:
        return tutti_all_reduce(send, recv, count, TUTTI_F32, TUTTI_SUM, b->world, &call);
    case DO_BROADCAST: return tutti_broadcast(recv, count, TUTTI_F32, 0, b->world, &call);
    case DO_ALL_GATHER:
        return tutti_all_gather(send, recv, count / (size_t)b->ranks, TUTTI_F32, b->world, &call);
    case DOINGS: break;
    }
    return -EINVAL;
}

static int prepare(void *arg, int turn)
{
    struct own *own = arg;
    return bench_stamp(own->bench, own->kind, own->bytes, turn);
}

static int look(void *arg, int turn)
{
    struct own *own = arg;
    return bench_glance(own->bench, own->kind, own->bytes, turn);
}

/* Another road than was asked for, if the library had a reason to. */
static void note_road(struct bench *b, struct point *p)
{
    char words[WORDS - 40] = "";
    struct ipc_export *share = ipc_export_if(b->world->world);
    if (share)
        ipc_export_noted(share, words, sizeof words);
    if (p->system == SYSTEM_LEADER || p->system == SYSTEM_PEERS)
        snprintf(p->why, sizeof p->why, "%s%s",
                 words[0] ? "went by pinned: "
                     : share ? ""
                     : "went by pinned: nothing was shared",
                 words);
}

static int measure(struct bench *b, struct meeting *meeting, struct point *p)
{
    struct own own = { b, p->kind, p->bytes };
    struct loop loop = {
        b->world, meeting, b->rank, b->ranks, SAMPLES_MOST, &own, prepare, call, look
    };
    struct series samples = { NULL, 0, 0 };
    int error = bench_fill(b, p->kind, p->bytes);
    if (!error)
        error = call(&own, 0);
    if (!error)
        error = bench_check(b, p->kind, p->bytes);
    if (!error)
        error = loop_run(&loop, &samples);
    if (!error && b->rank == 0) {
        note_road(b, p);
        point_take(p, &samples);
    }
    series_free(&samples);
    return error;
}

/* ---- a program's own kernels, meanwhile ------------------------------------------------------ */

/* One is always under way, and one behind it. */
struct busy {
    double ms;                                       /* of each; 0: there are none */
    const struct bench *bench;
    pthread_t thread;
    struct spin spin;
    CUstream stream;
    shared32 stop;
    bool begun;
};

static void *be_busy(void *arg)
{
    struct busy *y = arg;
    const struct cuda_api *call = &y->bench->driver->call;
    CUevent done[2] = { NULL };
    CUresult error = call->cuCtxSetCurrent(y->bench->context);
    for (int i = 0; i < 2 && !error; i++)
        error = call->cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
    for (unsigned turn = 0; !error && !load_acquire32(&y->stop); turn++) {
        error = call->cuEventSynchronize(done[turn % 2]);
        if (!error)
            error = spin_start(&y->spin, y->ms, y->stream);
        if (!error)
            error = call->cuEventRecord(done[turn % 2], y->stream);
    }
    call->cuStreamSynchronize(y->stream);
    for (int i = 0; i < 2; i++)
        if (done[i])
            call->cuEventDestroy_v2(done[i]);
    return NULL;
}

static int busy_begin(struct busy *y, const struct bench *b, char *why, size_t room)
{
    y->bench = b;
    if (y->ms <= 0)
        return 0;
    CUresult error = b->driver->call.cuStreamCreate(&y->stream, CU_STREAM_NON_BLOCKING);
    if (!error)
        error = spin_open(&y->spin, &b->driver->call, y->stream);
    y->begun = !error && pthread_create(&y->thread, NULL, be_busy, y) == 0;
    if (!y->begun)
        snprintf(why, room, "no kernel to keep the GPU busy: CUDA error %d", error);
    return y->begun ? 0 : -EIO;
}

static void busy_end(struct busy *y)
{
    if (!y->begun)
        return;
    store_release32(&y->stop, 1);
    pthread_join(y->thread, NULL);
    spin_close(&y->spin);
    y->bench->driver->call.cuStreamDestroy_v2(y->stream);
}

static int body(tutti_comm *world, void *arg)
{
    struct part *part = arg;
    struct board *board = part->board;
    struct bench b;
    char why[WORDS] = "";
    double begin = stamp_seconds();
    struct busy busy = { .ms = part->busy_ms };
    int error = bench_open(&b, world, board->point[part->end - 1].bytes, part->memory, why,
                           sizeof why);
    if (!error)
        error = busy_begin(&busy, &b, why, sizeof why);
    if (error)
        tutti_comm_abort(world, why);
    for (int i = part->first; i < part->end && !error; i++) {
        struct point *p = &board->point[i];
        if (p->bytes > b.room) {
            snprintf(p->why, sizeof p->why, "the GPU has no room for it");
            continue;
        }
        if (b.rank == 0)    /* read by all after the first barrier of loop_run, and by itself now */
            board->meeting.slice_ns = (part->ns - (stamp_seconds() - begin) * 1e9)
                / (part->end - i);
        error = measure(&b, &board->meeting, p);
        if (error)
            snprintf(why, sizeof why, "%s %zu: %s", doing_names[p->kind], p->bytes,
                     error == -EBADMSG ? "WRONG RESULT" : tutti_explain(world));
        if (error == -EBADMSG)
            tutti_comm_abort(world, why);
    }
    if (error && error != -ECANCELED)                /* whoever comes first says what it was */
        part_refuse(part, why);
    busy_end(&busy);
    bench_close(&b);
    return error != 0;
}

void roads_measure(const struct part *part)
{
    char words[WORDS], rules[160];
    enum system system = part->board->point[part->first].system;
    snprintf(rules, sizeof rules, "%sdevice:-inf=%s",
             system == SYSTEM_PINNED
                 ? ""
                 : "all_reduce:-inf=pipelined;broadcast:-inf=pipelined;all_gather:-inf=pipelined;",
             system_names[system]);
    setenv("TUTTI_ALGORITHM", rules, 1);
    if (part_spawn(part, body, words, sizeof words) != 0)
        part_refuse(part, words);
    unsetenv("TUTTI_ALGORITHM");
}
