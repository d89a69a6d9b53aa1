/* Reduce-scatter, then all-gather: each rank folds one piece of every round; each rank that wants
 * the result copies it out.
 *
 *   in(r)    licence, if the slot will be written. Copy in the others' pieces of my buffer that do
 *            not lie in the arena; produced = r + 1
 *   fold(r)  all have produced r: fold my piece of the buffers of all, in rank order, into my
 *            result; folded = r + 1
 *   out(r)   all have folded r: copy their pieces out, if I want them; consumed = r + 1
 *
 * A slot holds the N pieces that this rank gives to the others in one round (its own stays empty),
 * then the piece that it folds. If its receive buffer lies in the arena, the folded piece goes
 * there at once. C(k) asks that all ranks have folded the last round: then all of the result is in
 * the arena, and each living rank can finish alone. It stays until no rank reads its buffers any
 * more.
 *
 * Per rank and byte of the vector, N ranks: (N-1)/N copied in (nothing if it lies in the arena),
 * 1/N folded from N places, (N-1)/N copied out. Partial sums never travel, so the bits do not
 * depend on how the work was cut. A rank never copies in the piece it folds itself. The three
 * stages run as far as they can in each call of advance, oldest round first, so neighbouring rounds
 * overlap. If all buffers of all ranks lie in the arena, except their ends, the rounds between need
 * no slot. All ranks see this after the gate. Then the first and the last round stay as they are,
 * and the elements between them go in fewer steps, of larger pieces.
 * Between two ranks it may also go without the two steps, by pipeline_move.c (pipeline_swap.h).
 * In place in the arena: only I read my piece of p's buffer, and p writes there only after I have
 * folded it. */
#include "coll/pipeline.h"
#include "base/error.h"
#include "coll/pipeline_swap.h"
#include "coll/zero_copy.h"
#include "coll/nontemporal.h"
#include "watch/journal.h"

#include <errno.h>

/* Measured, 16 MiB in place, 2 ranks: pieces of 64 KiB 1.5 ms, 256 KiB 1.4 ms, 1 MiB 1.2 ms. */
enum { LARGE_PIECE_BYTES = 2 << 20 };

static struct chunk reduce_piece(const struct coll *c, uint64_t round, uint32_t p)
{
    return chunk_of(c->count, c->comm->watch.size, c->pipeline.piece, round, p);
}

/* Rounds that are over after `steps` steps; also the round of the next step, if it is one round. */
static uint64_t reduce_said(const struct coll *c, uint64_t steps)
{
    if (!c->pipeline.large || steps + 1 < c->pipeline.steps)
        return steps;
    return steps == c->pipeline.steps ? c->pipeline.total : c->pipeline.total - 1;
}

static struct chunk reduce_chunk(const struct coll *c, uint64_t step, uint32_t p)
{
    size_t size = c->comm->watch.size, round = size * c->pipeline.piece;
    if (!c->pipeline.large || step == 0 || step + 1 == c->pipeline.steps)
        return reduce_piece(c, reduce_said(c, step), p);
    struct chunk chunk = chunk_of((size_t)(c->pipeline.total - 2) * round, size, c->pipeline.large,
                                  step - 1, p);
    chunk.first += round;
    return chunk;
}

/* A call has one buffer, or many in a row. Elements from `first` on lie together for `count`
 * elements of the run, in buffer `i` from element `at` on. */
struct reduce_run { const char *send; char *recv; size_t count, i, at; };

static struct reduce_run reduce_run(const struct coll *c, size_t first, size_t count)
{
    if (!c->lists.first)
        return (struct reduce_run){
            (const char *)c->send + first * c->width,
            (char *)c->recv + first * c->width, count, 0, first
        };
    size_t low = 0, high = (size_t)c->lists.n;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (c->lists.first[middle] <= first)
            low = middle;
        else
            high = middle;
    }
    size_t at = first - c->lists.first[low], left = c->lists.first[low + 1] - first;
    return (struct reduce_run){
        (const char *)c->lists.send[low] + at * c->width,
        (char *)c->lists.recv[low] + at * c->width, left < count ? left : count, low, at
    };
}

static void reduce_copy_in(struct coll *c, char *to, struct chunk chunk)
{
    for (size_t done = 0; done < chunk.count;) {
        struct reduce_run run = reduce_run(c, chunk.first + done, chunk.count - done);
        coll_copy_in(c, to + done * c->width, run.send, run.count * c->width);
        done += run.count;
    }
}

/* Where one side of a rank's buffers lies: a place, or for many buffers a row for each. */
struct reduce_side { struct place place; const struct part_row *rows; };

static struct place reduce_place(const struct coll *c, const struct reduce_side *side, size_t i)
{
    return side->rows
        ? pipeline_known(c, (struct place){ side->rows[i].at, side->rows[i].lo, side->rows[i].hi })
        : side->place;
}

/* True: all of the chunk lies there. */
static bool reduce_lies(const struct coll *c, const struct reduce_side *side, struct chunk chunk)
{
    if (c->lists.first && !side->rows)
        return false;
    for (size_t done = 0; done < chunk.count;) {
        struct reduce_run run = reduce_run(c, chunk.first + done, chunk.count - done);
        struct place place = reduce_place(c, side, run.i);
        if (!pipeline_in_place(&place, run.at * c->width, run.count * c->width))
            return false;
        done += run.count;
    }
    return chunk.count > 0;
}

/* Where such a run lies: an offset in the arena, or, with CMA_BIT, an address. */
static uint64_t reduce_at(const struct coll *c, const struct reduce_side *side,
                          const struct reduce_run *run)
{
    return reduce_place(c, side, run->i).at + run->at * c->width;
}

/* Of p or this rank; which: 0 send, 1 receive. The rows of the send buffers come first, then those
 * of the receive buffers. */
static struct reduce_side reduce_side(const struct coll *c, uint32_t p, int which)
{
    bool mine = p == c->comm->watch.me;
    struct place own = pipeline_known(c, which ? c->recvs : c->sends);
    struct reduce_side side = { mine ? own
                                    : which ? pipeline_recv_place(c, p)
                                    : pipeline_send_place(c, p),
                                NULL };
    if (c->lists.first && side.place.hi > side.place.lo) {
        const struct part_row *rows = mine ? pipeline_rows(c, c->pipeline.at)
                                           : pipeline_rows_of(c, p);
        /* if not, p has no rows, whatever it says */
        bool fit = 2 * (size_t)c->lists.n <= pipeline_rows_count(c->comm->watch.size);
        side.rows = rows && fit ? rows + (which ? c->lists.n : 0) : NULL;
    }
    return side;
}

/* True: nothing of this round is ever written into this rank's slot. */
static bool reduce_slot_idle(const struct coll *c, uint64_t round)
{
    const struct watch *w = &c->comm->watch;
    if (c->gpu.mover)
        return false;
    struct reduce_side sends = reduce_side(c, w->me, 0), recvs = reduce_side(c, w->me, 1);
    for (uint32_t p = 0; p < w->size; p++) {
        struct chunk chunk = reduce_piece(c, round, p);
        if (chunk.count && !reduce_lies(c, p == w->me ? &recvs : &sends, chunk))
            return false;
    }
    return true;
}

/* Hands the next round to the CPU or the mover. A device rank's fold reads also its own piece in
   the slot, and the copy back to the device reads the slot. So the slot of a round is free when
   that round is out. */
static int reduce_hand_in(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    uint64_t began = c->pipeline.asked;
    for (; c->pipeline.asked < c->pipeline.total; c->pipeline.asked++) {
        if (reduce_slot_idle(c, c->pipeline.asked))
            continue;
        if (c->pipeline.asked != began)
            break;                     /* publish first what is there already */
        if (c->gpu.mover && c->pipeline.asked >= c->pipeline.out + PIPELINE_DEPTH)
            /* for our own copies, or for what the oldest round needs: out is called last */
            return WAITING;
        if (pipeline_licence(c, c->pipeline.asked, NULL) == WAITING)
            return WAITING;
        char *slot = pipeline_slot(c->pipeline.at, c, c->pipeline.asked);
        struct reduce_side sends = reduce_side(c, w->me, 0);
        for (uint32_t p = 0; p < w->size; p++) {
            struct chunk chunk = reduce_piece(c, c->pipeline.asked, p);
            if ((p != w->me || c->gpu.mover) && !reduce_lies(c, &sends, chunk))
                reduce_copy_in(c, slot + p * c->pipeline.piece * c->width, chunk);
        }
        c->pipeline.asked++;
        break;
    }
    return pipeline_handed(c, MOVER_IN);
}

static int reduce_in(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    uint64_t before = c->pipeline.in;
    int r = c->pipeline.asked < c->pipeline.total ? reduce_hand_in(c) : WAITING,
        moved = pipeline_landed(c, MOVER_IN, c->pipeline.asked, &c->pipeline.in);
    if (c->pipeline.in > before)
        watch_raise(w, &w->mine->produced, c->pipeline.base + c->pipeline.in);   /* E16 release */
    return r < 0 || moved < 0 ? (r < 0 ? r : moved) : r == DONE || moved == DONE ? DONE : WAITING;
}

/* Where p's chunk of this round is: in the slot, or, if it lies in p's buffers, slot NULL and the
   side. A slot's part holds one piece, so a larger chunk is never read there, whatever p now says
   about its buffers. */
struct source { const char *slot; struct reduce_side side; };

static int reduce_source(const struct coll *c, uint32_t p, int which, struct chunk chunk,
                         uint64_t round, uint32_t part, struct source *source)
{
    *source = (struct source){ NULL, reduce_side(c, p, which) };
    if (reduce_lies(c, &source->side, chunk))
        return 0;
    char *pipeline = chunk.count <= c->pipeline.piece ? coll_peer(c, p, pipeline_all_slots(c))
                                                      : NULL;
    source->slot = pipeline
        ? pipeline_slot(pipeline, c, round) + part * c->pipeline.piece * c->width
        : NULL;
    return pipeline ? 0 : DAMAGED;
}

/* The address where the CPU reads a run of p's. Private memory of p is first read into p's stretch
 * of the window. DONE with *at, WAITING, -errno. */
static int reduce_from(struct coll *c, uint32_t p, const struct source *source,
                       const struct reduce_run *run, size_t done, const void **at)
{
    uint64_t lies = source->slot ? 0 : reduce_at(c, &source->side, run);
    if (cma_is(lies)) {
        *at = cma_stretch(c, p);
        return cma_read(c, p, cma_stretch(c, p), lies, run->count * c->width);
    }
    *at = source->slot ? source->slot + done * c->width : coll_at(c, lies, run->count * c->width);
    return *at ? DONE : DAMAGED;
}

static int reduce_fold(struct coll *c, bool wants)
{
    struct watch *w = &c->comm->watch;
    if (pipeline_await(c, offsetof(struct member, produced), reduce_said(c, c->pipeline.fold + 1),
                       NULL)
        == WAITING)
        return WAITING;
    struct chunk chunk = reduce_chunk(c, c->pipeline.fold, w->me);
    struct source source[RANKS_MAX];
    for (uint32_t p = 0; p < w->size && chunk.count; p++)
        if (p != w->me
            && reduce_source(c, p, 0, chunk, reduce_said(c, c->pipeline.fold), w->me, &source[p])
                < 0)
            return DAMAGED;
    struct reduce_side recvs = reduce_side(c, w->me, 1);
    bool lies = reduce_lies(c, &recvs, chunk);
    size_t most = c->cma.may == CMA_YES ? cma_stretch_bytes(c) / c->width : SIZE_MAX;
    char *slot = c->pipeline.at ? pipeline_slot(c->pipeline.at, c, reduce_said(c, c->pipeline.fold))
            + w->size * c->pipeline.piece * c->width
                                : NULL;
    /* a device rank's own piece, where the CPU can reach it */
    const char *own = slot ? slot - (w->size - w->me) * c->pipeline.piece * c->width : NULL;
    for (size_t done = 0; done < chunk.count;) {
        const void *from[RANKS_MAX];
        struct reduce_run run = reduce_run(c, chunk.first + done,
                                           chunk.count - done < most ? chunk.count - done : most);
        for (uint32_t p = 0; p < w->size; p++) {
            int r = p == w->me ? DONE : reduce_from(c, p, &source[p], &run, done, &from[p]);
            if (r != DONE)
                return r;
        }
        from[w->me] = c->gpu.mover ? own + done * c->width : run.send;
        if (lies)
            coll_fold_shared(c, run.recv, from, w->size, run.count);
        else
            coll_fold_staged(c, slot + done * c->width, wants ? run.recv : NULL, from, w->size,
                             run.count);
        done += run.count;
    }
    c->pipeline.fold++;
    /* E17 release */
    watch_raise(w, &w->mine->folded, c->pipeline.base + reduce_said(c, c->pipeline.fold));
    return DONE;
}

static int reduce_hand_out(struct coll *c, bool wants)
{
    struct watch *w = &c->comm->watch;
    if (pipeline_await(c, offsetof(struct member, folded), reduce_said(c, c->pipeline.taking + 1),
                       NULL)
        == WAITING)
        return WAITING;
    if (c->gpu.mover && !c->gpu.mover->room(c, MOVER_OUT))
        return WAITING;
    for (uint32_t i = 1; wants && i < w->size; i++) {
        uint32_t p = (w->me + i) % w->size;
        struct chunk chunk = reduce_chunk(c, c->pipeline.taking, p);
        struct source source;
        if (chunk.count
            && reduce_source(c, p, 1, chunk, reduce_said(c, c->pipeline.taking), w->size, &source)
                < 0)
            return DAMAGED;
        for (size_t done = 0; done < chunk.count;) {
            struct reduce_run run = reduce_run(c, chunk.first + done, chunk.count - done);
            uint64_t at = source.slot ? 0 : reduce_at(c, &source.side, &run);
            const char *from = source.slot ? source.slot + done * c->width
                                           : coll_at(c, at, run.count * c->width);
            int r = cma_is(at) ? cma_read(c, p, run.recv, at, run.count * c->width)
                : from ? DONE
                : DAMAGED;
            if (r != DONE)
                return r;
            if (from)
                coll_copy_out(c, run.recv, from, run.count * c->width);
            done += run.count;
        }
    }
    c->pipeline.taking++;
    return pipeline_handed(c, MOVER_OUT);
}

static int reduce_out(struct coll *c, bool wants)
{
    struct watch *w = &c->comm->watch;
    uint64_t before = c->pipeline.out;
    int r = c->pipeline.taking < c->pipeline.fold ? reduce_hand_out(c, wants) : WAITING,
        moved = pipeline_landed(c, MOVER_OUT, c->pipeline.taking, &c->pipeline.out);
    if (c->pipeline.out > before)
        /* E18 release */
        watch_raise(w, &w->mine->consumed, c->pipeline.base + reduce_said(c, c->pipeline.out));
    return r < 0 || moved < 0 ? (r < 0 ? r : moved) : r == DONE || moved == DONE ? DONE : WAITING;
}

/* Many buffers: fills in a row for each, if there is room for the rows. */
static void reduce_fill_rows(struct coll *c)
{
    struct part_row *rows = pipeline_rows(c, c->pipeline.at);
    size_t n = (size_t)c->lists.n;
    if (2 * n > pipeline_rows_count(c->comm->watch.size) || c->comm->watch.size == 1)
        return;
    for (size_t i = 0; i < 2 * n; i++) {
        size_t bytes = c->lists.send_counts[i % n] * c->width;
        struct place place = pipeline_may_lie(c, i < n ? c->lists.send[i] : c->lists.recv[i - n],
                                              bytes);
        rows[i] = (struct part_row){ bytes, place.at, place.lo, place.hi };
        struct place *side = i < n ? &c->sends : &c->recvs;
        if (place.hi > place.lo)
            /* there are rows; some memory is read where it lies */
            *side = (struct place){ 1, 0, 1 };
    }
}

/* If peers would take this rank's part of the result out of its receive buffer, its pipeline may be
 * faster: chooses one of them. */
static void reduce_pipeline_results(struct coll *c, size_t bytes)
{
    bool may = c->algorithm->kind == KIND_ALL_REDUCE && !c->comm->crowded && c->send != c->recv
        && c->sends.lo == 0 && c->sends.hi == bytes && !cma_is(c->recvs.at) && c->recvs.lo == 0
        && c->recvs.hi == bytes && c->comm->watch.size > 1;
    if (zero_copy_choose(c, may ? c->comm->coll.zero_copy.results[c->stream.on] : NULL, bytes,
                         ZERO_COPY_RESULTS_LEAST))
        c->recvs = (struct place){ 0, 0, 0 };
}

static int reduce_open(struct coll *c, bool all_want)
{
    uint32_t size = c->comm->watch.size;
    size_t most = pipeline_slot_now(c) / (size + 1) / c->width, bytes = c->count * c->width;
    pipeline_swap_open(c);
    c->sends = c->recvs = (struct place){ 0, 0, 0 };
    int r = cma_open(c);
    if (r < 0)
        return r;
    if (!c->lists.first && size > 1) {
        c->sends = pipeline_may_lie(c, c->send, bytes);
        c->recvs = all_want ? pipeline_may_lie(c, c->recv, bytes) : c->recvs;
    } else if (!c->lists.first && !c->gpu.mover)
        /* no other rank reads them, wherever they lie */
        c->sends = c->recvs = (struct place){ 0, 0, bytes };
    stream_choose(c, bytes, c->send == c->recv || c->lists.first);
    pipeline_swap_publish(c, c->recvs);
    reduce_pipeline_results(c, bytes);
    bool whole = c->sends.lo == 0 && c->sends.hi == bytes && c->recvs.lo == 0
        && c->recvs.hi == bytes;
    c->pipeline.piece = chunk_piece(c->count, size, c->width, most);
    uint64_t rounds = chunk_rounds(c->count, size, c->pipeline.piece);
    r = pipeline_stage(c, !whole && c->count, c->lists.first ? PIPELINE_ANY : rounds,
                       c->pipeline.piece * c->width * (size + 1));
    if (r < 0)
        return r;
    if (c->lists.first && c->count)
        reduce_fill_rows(c);
    pipeline_begin(c, rounds);
    c->pipeline.steps = c->pipeline.total;
    c->pipeline.large = 0;
    c->op.claim.commit_at = c->algorithm->direct ? offsetof(struct member, given)
        : c->pipeline.total ? offsetof(struct member, folded)
        : 0;
    c->op.claim.commit = c->algorithm->direct ? c->op.claim.seq
                                              : c->pipeline.base + c->pipeline.total;
    c->op.claim.committer = -1;
    pipeline_publish_places(c);
    return 0;
}

/* Called after the gate. All ranks read the same words, and come to the same result. */
static void reduce_enlarge(struct coll *c)
{
    uint32_t size = c->comm->watch.size;
    size_t round = size * c->pipeline.piece * c->width;
    if (c->lists.first || c->pipeline.total < 4)
        return;
    for (uint32_t p = 0; p < 2 * size; p++) {
        struct place place = reduce_side(c, p / 2, (int)(p % 2)).place;
        if (place.lo > round || place.hi < (size_t)(c->pipeline.total - 1) * round)
            return;
    }
    size_t middle = (size_t)(c->pipeline.total - 2) * size * c->pipeline.piece,
           large = chunk_piece(middle, size, c->width, LARGE_PIECE_BYTES / c->width);
    if (large <= c->pipeline.piece)
        return;
    c->pipeline.large = large;
    c->pipeline.steps = 2 + chunk_rounds(middle, size, large);
}

/* One pass over the stages. DONE: something has moved. */
static int reduce_stages(struct coll *c, bool wants)
{
    int moved = c->pipeline.in < c->pipeline.total ? reduce_in(c) : WAITING;
    if (moved >= 0 && c->pipeline.fold < c->pipeline.steps
        && reduce_said(c, c->pipeline.fold) < c->pipeline.in) {
        int r = reduce_fold(c, wants);
        moved = r < 0 ? r : r | moved;
    }
    if (moved >= 0 && c->pipeline.out < c->pipeline.fold) {
        int r = reduce_out(c, wants);
        moved = r < 0 ? r : r | moved;
    }
    return moved;
}

static int reduce_advance(struct coll *c, bool wants)
{
    if (c->phase == GATE_START) {
        int r = reduce_open(c, c->algorithm->kind != KIND_REDUCE);
        if (r < 0)
            return r;
        journal_arrive(&c->comm->watch, &c->op.claim);
        c->phase = GATE_WAIT;
    }
    int r = c->gpu.mover && c->phase != FINISHING ? c->gpu.mover->ready(c) : DONE;
    if (r == DONE && c->phase == GATE_WAIT) {
        /* The first rounds can be copied in before any other rank is there. */
        while (c->cma.may == CMA_NO && c->pipeline.in < c->pipeline.total
               && (r = reduce_in(c)) == DONE) {
        }
        if (r >= 0 && (watch_all_arrived(&c->op) == WAITING || cma_finish(c) == WAITING))
            return pipeline_waits(c);
        r = r < 0 ? r : DONE;
        c->phase = AFTER_GATE;
        pipeline_swap_gate(c);
        reduce_enlarge(c);
    }
    if (r == WAITING)
        return WAITING;
    while (r > 0 && c->pipeline.out < c->pipeline.steps) {
        r = reduce_stages(c, wants);
        if (r == WAITING)
            /* for what the oldest round needs: that stage was called last */
            return pipeline_waits(c);
    }
    if (r < 0) {
        pipeline_close(c);
        return r;
    }
    c->phase = FINISHING;
    pipeline_close(c);
    stream_learn(c);
    pipeline_swap_learn(c);
    zero_copy_learn(c);
    if (c->algorithm->direct && cma_given(c) == WAITING)
        return WAITING;
    r = coll_device_complete(c);
    return r == DONE && (c->sends.hi > c->sends.lo || c->recvs.hi > c->recvs.lo)
        ? pipeline_exit(c, NULL)
        : r;
}

int pipeline_all_reduce_advance(struct op *op)
{
    struct coll *c = (struct coll *)op;
    if (c->phase == GATE_START)
        pipeline_swap_open(c);
    return c->swap.agreed ? pipeline_move_advance(op) : reduce_advance(c, true);
}

int pipeline_reduce_advance(struct op *op)
{
    struct coll *c = (struct coll *)op;
    return reduce_advance(c, (uint32_t)c->root == op->watch->me);
}
