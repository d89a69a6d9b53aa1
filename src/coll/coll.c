/* Shared by all algorithms: they publish and find each other's memory, copy, and fold under the
 * default floating-point modes. */
#include "coll/coll.h"

#include "base/clock.h"
#include "base/staged.h"
#include "coll/modes.h"
#include "watch/verdict.h"

#include <string.h>

enum { TIMED_BYTES = 4096 };         /* a smaller copy costs about as much as a read of the clock */
enum { FOLDED_BY_LOOP = 256 << 10 };   /* from here on the instruction is faster */

char *coll_at(const struct coll *c, uint64_t at, size_t bytes)
{
    return coll_place(c->comm, at, bytes);
}

char *coll_peer(const struct coll *c, uint32_t p, size_t bytes)
{
    return coll_at(c,
                   /* relaxed: after E1 */
                   load_relaxed64(&watch_arrival(&c->comm->watch, p, c->op.claim.seq)->payload[0]),
                   bytes);
}

void coll_publish_factor(struct coll *c)
{
    struct arrival *mine = &c->comm->watch.mine->arrival[c->op.claim.seq & 1];
    store_relaxed64(&mine->payload[FACTOR_WORD], c->fold.factor[0]);  /* relaxed: E1 publishes it */
    store_relaxed64(&mine->payload[FACTOR_WORD + 1], c->fold.factor[1]);    /* relaxed: as above */
}

void coll_publish(struct coll *c, const char *at)
{
    struct arrival *mine = &c->comm->watch.mine->arrival[c->op.claim.seq & 1];
    /* relaxed: E1 publishes it */
    store_relaxed64(&mine->payload[0], at ? (uint64_t)(at - c->comm->world->arena.base) : 0);
    if (fingerprint_hashed(c->op.claim.descriptor))
        /* relaxed: E1 publishes it */
        store_relaxed64(&mine->payload[COUNT_WORD], c->op.claim.count);
    if (c->fold.scaled)
        coll_publish_factor(c);
}

/* Each rank folds what the others give, while they do: with a CPU for each. Of two ranks of a scan
 * only one does. */
static bool all_fold(const struct coll *c)
{
    enum kind kind = fingerprint_kind(c->op.claim.descriptor);
    bool one = kind == KIND_REDUCE
        || (c->comm->watch.size == 2 && (kind == KIND_SCAN || kind == KIND_EXSCAN));
    return c->fold.kernel && c->bytes < FOLDED_BY_LOOP && !c->comm->crowded && !one;
}

/* Timed. By `copy`, or by a loop. */
static inline void copy_so(struct coll *c, copy_fn *copy, void *to, const void *from, size_t bytes)
{
    copy = all_fold(c) ? copy_by_loop : copy;
    if (to == from || bytes == 0)
        return;
    if (c->gpu.mover) {
        c->gpu.mover->copy(c, MOVER_IN, to, from, bytes);  /* the next mark returns its error */
        return;
    }
    if (bytes < TIMED_BYTES) {
        copy(to, from, bytes);
        return;
    }
    uint64_t began = clock_tick();
    copy(to, from, bytes);
    c->fold.ticks += clock_tick() - began;
}

void coll_copy(struct coll *c, void *to, const void *from, size_t bytes)
{
    copy_so(c, copy_plain, to, from, bytes);
}

void coll_copy_in(struct coll *c, void *to, const void *from, size_t bytes)
{
    if (!COPY_STREAMS || c->gpu.mover || bytes < STAGED_LEAST || to == from)
        copy_so(c, bytes < STAGED_LEAST ? copy_over_read : copy_plain, to, from, bytes);
    else
        c->fold.ticks += staged_copy(&c->comm->coll.staged, c->comm->world->staged_less,
                                     all_fold(c) ? copy_by_loop : copy_plain, to, from, bytes);
}

bool coll_copy_beside(struct coll *c, void *to, const void *from, void *past, const void *kept,
                      size_t bytes, bool plain)
{
    struct tuner *ways = &c->comm->coll.beside;
    bool asks = tuner_asks(ways),
         streamed = !plain && tuner_choose_less(ways, c->comm->world->staged_less);
    uint64_t began = clock_tick();
    if (streamed && !asks) {
        copy_streaming(to, from, bytes);
        c->fold.ticks += clock_tick() - began;
        return false;
    }
    if (streamed) {
        copy_unordered(to, from, bytes);
        copy_streaming(past, kept, bytes);
    } else
        copy_beside(to, from, past, kept, bytes);
    uint64_t ticks = clock_tick() - began;
    if (!plain)
        tuner_learn_mean(ways, streamed, ticks, bytes);
    c->fold.ticks += ticks;
    return true;
}

void coll_copy_out(struct coll *c, void *to, const void *from, size_t bytes)
{
    if (c->gpu.mover && to != from && bytes) {
        c->gpu.mover->copy(c, MOVER_OUT, to, from, bytes);
        return;
    }
    if (!c->stream.on || bytes < TIMED_BYTES || to == from) {
        coll_copy(c, to, from, bytes);
        return;
    }
    uint64_t began = clock_tick();
    copy_streaming(to, from, bytes);
    c->fold.ticks += clock_tick() - began;
}

/* A function that cannot fold calls tutti_comm_abort. Its wrong output must not become a result:
   the verdict comes first. If all others have what they need (each folds for itself) they succeed,
   which is correct. */
static void coll_heed_abort(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    const struct wait never = {
        .word = &w->mine->placed, .value = UINT64_MAX, .owner = -1, .own = true
    };
    if (load_relaxed32(&w->mine->quit) & QUIT_ABORT)            /* relaxed: this rank's own word */
        verdict_look(w, &c->op.claim, &never, false);
}

/* Folds by the caller's own function, in rank order, through two blocks on the stack: the function
   takes the left operand in `in`, and the right one where the result goes. */
static void coll_fold_user(struct coll *c, char *to, const void *const from[], uint32_t n,
                           size_t count)
{
    enum { BLOCK = 4096 };
    _Alignas(64) char block[2][BLOCK];
    size_t most = BLOCK / c->width;
    struct tutti_comm *outer = comm_callback_begin(c->comm);
    for (size_t first = 0; first < count; first += most) {
        size_t some = count - first < most ? count - first : most, at = first * c->width;
        int in = 0;
        memcpy(block[in], (const char *)from[0] + at, some * c->width);
        for (uint32_t p = 1; p < n; p++) {
            memcpy(block[!in], (const char *)from[p] + at, some * c->width);
            c->fold.user(block[in], block[!in], some, c->type);
            in = !in;
        }
        memcpy(to + at, block[in], some * c->width);
    }
    comm_callback_end(c->comm, outer);
    coll_heed_abort(c);
}

static void coll_fold_scaled(struct coll *c, void *to, const void *const from[], uint32_t n,
                             size_t count)
{
    const struct watch *w = &c->comm->watch;
    const void *factor[RANKS_MAX];
    for (uint32_t p = 0; p < n; p++)
        factor[p] = p == w->me
            ? (const void *)c->fold.factor
            : (const void *)&watch_arrival(w, p, c->op.claim.seq)->payload[FACTOR_WORD];
    c->fold.scaled(to, from, factor, (int)n, count);
}

void coll_fold(struct coll *c, void *to, const void *const from[], uint32_t n, size_t count)
{
    if (count == 0)
        return;
    bool timed = c->bytes >= TIMED_BYTES;
    uint64_t began = timed ? clock_tick() : 0;
    unsigned modes = modes_enter_as(c->fold.usual);
    if (c->fold.kernel)
        c->fold.kernel(to, from, (int)n, count, (int)n);
    else if (c->fold.scaled)
        coll_fold_scaled(c, to, from, n, count);
    else
        coll_fold_user(c, to, from, n, count);
    modes_leave(modes);
    c->fold.ticks += timed ? clock_tick() - began : 0;
}

/* Folds in blocks that stay in the first-level cache. Each block then goes to the slot, the result
 * or both. */
static void coll_fold_blocks(struct coll *c, void *slot, bool streamed, void *result,
                             const void *const from[], uint32_t n, size_t count)
{
    _Alignas(64) char block[FOLD_BLOCK];
    size_t most = (slot ? FOLD_BLOCK : FOLD_BLOCK / 2) / c->width;
    uint64_t began = clock_tick();
    unsigned modes = modes_enter();
    for (size_t first = 0; first < count; first += most) {
        size_t some = count - first < most ? count - first : most, at = first * c->width;
        const void *part[RANKS_MAX];
        for (uint32_t p = 0; p < n; p++)
            part[p] = (const char *)from[p] + at;
        c->fold.kernel(block, part, (int)n, some, (int)n);
        if (slot && streamed)
            copy_streaming((char *)slot + at, block, some * c->width);
        else if (slot)
            copy_plain((char *)slot + at, block, some * c->width);
        if (result && c->stream.on)
            copy_streaming((char *)result + at, block, some * c->width);
        else if (result)
            copy_plain((char *)result + at, block, some * c->width);
    }
    modes_leave(modes);
    c->fold.ticks += clock_tick() - began;
}

void coll_fold_out(struct coll *c, void *to, const void *const from[], uint32_t n, size_t count,
                   size_t least)
{
    if (COPY_STREAMS && c->stream.on && c->fold.kernel && c->bytes >= least)
        coll_fold_blocks(c, NULL, false, to, from, n, count);
    else
        coll_fold(c, to, from, n, count);
}

void coll_fold_shared(struct coll *c, void *to, const void *const from[], uint32_t n, size_t count)
{
    size_t bytes = count * c->width;
    if (!COPY_STREAMS || !c->fold.kernel || bytes < FOLD_STAGED_LEAST || c->stream.on
        || c->send == c->recv || c->comm->crowded) {
        coll_fold_out(c, to, from, n, count, FOLD_STREAM_LEAST);
        return;
    }
    struct tuner *ways = tuner_of(c->comm->coll.folds_shared, c->bytes, FOLD_STAGED_LEAST);
    bool blocks = tuner_choose_less(ways, c->comm->world->staged_less / SHARED_LESS);
    uint64_t began = c->fold.ticks;
    if (blocks)
        coll_fold_blocks(c, NULL, false, to, from, n, count);
    else
        coll_fold(c, to, from, n, count);
    tuner_learn(ways, blocks, c->fold.ticks - began, bytes);
}

static void coll_fold_plain(struct coll *c, void *slot, void *result, const void *const from[],
                            uint32_t n, size_t count)
{
    coll_fold(c, slot, from, n, count);
    if (result)
        coll_copy_out(c, result, slot, count * c->width);
}

void coll_fold_staged(struct coll *c, void *slot, void *result, const void *const from[],
                      uint32_t n, size_t count)
{
    size_t bytes = count * c->width;
    if (!c->fold.kernel || c->gpu.mover || bytes < FOLD_STAGED_LEAST) {
        coll_fold_plain(c, slot, result, from, n, count);
        return;
    }
    bool streamed = COPY_STREAMS
        && tuner_choose_less(&c->comm->coll.folds_streamed, c->comm->world->staged_less);
    bool blocks = streamed || tuner_choose(&c->comm->coll.folded, 1);
    uint64_t began = c->fold.ticks;
    if (blocks)
        coll_fold_blocks(c, slot, streamed, result, from, n, count);
    else
        coll_fold_plain(c, slot, result, from, n, count);
    uint64_t ticks = c->fold.ticks - began;
    tuner_learn_mean(&c->comm->coll.folds_streamed, streamed, ticks, bytes);
    if (!streamed)
        tuner_learn(&c->comm->coll.folded, blocks, ticks, bytes);
}

void coll_fold_by(fold_fn *fold, void *to, const void *const from[], uint32_t n, size_t count,
                  bool usual)
{
    unsigned modes = modes_enter_as(usual);
    fold(to, from, (int)n, count, (int)n);
    modes_leave(modes);
}

int coll_nothing(struct coll *c)
{
    (void)c;
    return 0;
}

int coll_returned(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    for (uint32_t p = 0; p < w->size; p++)
        /* E22 acquire */
        if (p != w->me && load_acquire64(&w->members[p].given) < c->op.claim.seq
            && !watch_past(w, p, c->op.claim.seq)) {
            c->op.wait = wait_for_or_gone(&w->members[p].given, c->op.claim.seq, p);
            return WAITING;
        }
    return DONE;
}

/* What a rank keeps that would have looked for its peer's chunks: here nobody looks (early.h). */
static void coll_keep_early(struct coll *c)
{
    if (!c->expects || !c->even.keeps)
        return;
    coll_copy(c, (char *)c->recv + c->comm->watch.me * c->even.step,
              (const char *)c->send + c->even.at, c->even.keeps);
    c->kept = true;
}

int coll_one_phase(struct op *op)
{
    struct coll *c = (struct coll *)op;
    if (c->phase == GATE_START) {
        int r = c->algorithm->before(c);
        if (r < 0)
            return r;
        coll_keep_early(c);
    }
    if (c->phase != FINISHING) {
        if (c->gate->advance(op) == WAITING)
            return WAITING;
        int r = c->algorithm->after(c);
        coll_given(c);
        if (r < 0)
            return r;
        c->phase = FINISHING;
    }
    int r = coll_device_complete(c);
    return r == DONE && c->lends ? coll_returned(c) : r;
}
