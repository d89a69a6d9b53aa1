/* An operation through the staging on the devices (device_slots.h), round by round:
 *
 *   in(r)    licence: all who read this rank's slot have read round r - 2. Copy in, on the device;
 *            produced
 *   fold(r)  all that this rank folds have produced r: fold out of their slots. If all ranks get
 *            the result: into this rank's own slot, over what it read there; folded. Else: into
 *            the caller's buffer
 *   out(r)   all that this rank copies have produced r, or folded it: copy out; consumed
 *
 * The words are those of the pipeline (coll/pipeline.h), so C(k) means the same: what is still to
 * be read is in the slots, and stays there. A round here is as much as one or several rounds there:
 * a word says how many of those are over. A slot is free when the operation begins: all ranks have
 * arrived, so all have ended their part of the operation before.
 *
 * Rounds go in order and copy before they write, so buffers may be the same in place. A rank folds
 * its own elements out of the caller's buffer, unless it folds into its slot. If its own block does
 * not begin at a multiple of 16, it is brought into the slot as well: one such address would make
 * the kernel read all contributions element by element (ptx.c). */
#include "gpu/direct.h"

#include "coll/parts.h"
#include "coll/pipeline.h"
#include "gpu/kernel.h"
#include "gpu/streams.h"

static bool of_all(const struct coll *c) { return c->algorithm->kind == KIND_ALL_REDUCE; }

bool direct_brings(const struct coll *c)
{
    const struct watch *w = &c->comm->watch;
    return of_all(c)
        || (c->algorithm->kind == KIND_REDUCE ? w->me != (uint32_t)c->root : parts_gives(c, w->me));
}

bool direct_reads_staging(const struct coll *c, uint32_t p, uint32_t reader)
{
    return p != reader
        && (direct_reads(c, p, reader) || (of_all(c) && direct_has_fold(c, p)));
}

static bool reads_mine(const struct coll *c, uint32_t p)
{
    return direct_reads_staging(c, c->comm->watch.me, p);
}

static bool gives_me(const struct coll *c, uint32_t p)
{
    return direct_reads(c, p, c->comm->watch.me);
}

/* True: this rank has something to copy out. */
static bool takes(const struct coll *c)
{
    return of_all(c) || (!c->gpu.call->direct->folds && parts_takes(c));
}

/* ---- where things are ------------------------------------------------------------------------ */

static struct direct_rounds *rounds_of(const struct coll *c)
{
    return &c->gpu.call->direct->rounds;
}

/* As many rounds of the pipeline as the first n rounds here. */
static uint64_t said(const struct coll *c, uint64_t n)
{
    return c->pipeline.total * n / rounds_of(c)->total;
}

static bool each(const struct coll *c) { return parts_how(c) & PARTS_EACH; }

/* Block `block` of p's slot of this round. */
static CUdeviceptr slot(const struct coll *c, uint32_t p, uint64_t round, size_t block)
{
    const struct device_call *d = c->gpu.call;
    CUdeviceptr at = p == c->comm->watch.me ? (CUdeviceptr)(uintptr_t)d->streams->slots.at
                                            : d->direct->peers[p].staging_at;
    return at + round % DEVICE_SLOTS * DEVICE_SLOT_BYTES
        + (each(c) ? block * rounds_of(c)->pitch : 0);
}

static struct chunk chunk(const struct coll *c, uint64_t round)
{
    size_t first = (size_t)round * rounds_of(c)->piece;
    return (struct chunk){ first, parts_cut(c->count, first, rounds_of(c)->piece) };
}

static CUdeviceptr address(const void *at, size_t bytes)
{
    return (CUdeviceptr)(uintptr_t)at + bytes;
}

static size_t block_at(const struct coll *c, size_t block) { return block * c->count * c->width; }

/* True: this rank folds its own block out of its slot, where blocks begin at multiples of 64. */
static bool brings_own(const struct coll *c)
{
    return c->algorithm->kind == KIND_REDUCE_SCATTER
        && address(c->send, block_at(c, c->comm->watch.me)) % KERNEL_ALIGNED;
}

/* ---- the stages. DONE: handed over; WAITING with op->wait; -errno ---------------------------- */

static int mark(struct coll *c, int side, uint64_t *number)
{
    int r = device_mark(c, side);
    if (r == 0 && number)
        *number = ++c->gpu.call->direct->marks;
    return r < 0 ? r : DONE;
}

static int hand_in(struct coll *c)
{
    struct direct_rounds *s = rounds_of(c);
    struct chunk now = chunk(c, s->asked);
    uint32_t blocks = each(c) ? c->comm->watch.size : 1;
    if (s->asked >= DEVICE_SLOTS
        && pipeline_read(c, said(c, s->asked - DEVICE_SLOTS + 1), reads_mine) == WAITING)
        return WAITING;
    for (uint32_t b = 0; b < blocks; b++) {
        if (each(c) && b == c->comm->watch.me && !brings_own(c))     /* nobody else reads that */
            continue;
        int r = direct_move(c, STREAM_IN, slot(c, c->comm->watch.me, s->asked, b),
                            address(c->send, block_at(c, b) + now.first * c->width),
                            now.count * c->width);
        if (r < 0)
            return r;
    }
    s->asked++;
    return mark(c, STREAM_IN, NULL);
}

static int hand_fold(struct coll *c)
{
    struct direct_rounds *s = rounds_of(c);
    uint32_t me = c->comm->watch.me, ranks = direct_fold_ranks(c);
    if (pipeline_await(c, offsetof(struct member, produced), said(c, s->folding + 1), gives_me)
        == WAITING)
        return WAITING;
    struct chunk now = chunk(c, s->folding), share = { 0, now.count };
    if (of_all(c) && !c->gpu.call->direct->leader)
        share = direct_share(c, now.count, me);
    size_t before = share.first * c->width,
           own = c->algorithm->kind == KIND_REDUCE_SCATTER ? block_at(c, me) : 0;
    struct kernel_fold fold = {
        .out = of_all(c) ? slot(c, me, s->folding, 0) + before
                         : address(c->recv, now.first * c->width),
        .count = share.count, .divisor = ranks
    };
    for (uint32_t p = 0; p < ranks; p++)
        direct_add_input(c, &fold, p,
                         p == me && !of_all(c) && !brings_own(c)
                             ? address(c->send, own + now.first * c->width)
                             : slot(c, p, s->folding, me) + before);
    int r = share.count ? direct_launch(c, &fold) : 0;
    if (r < 0)
        return r;
    uint64_t *number = &s->fold_mark[s->folding++ % DEVICE_SLOTS];
    return mark(c, STREAM_OUT, number);
}

static int copy_out(struct coll *c, struct chunk now)
{
    const struct direct_rounds *s = rounds_of(c);
    uint32_t me = c->comm->watch.me, size = c->comm->watch.size;
    int r = 0;
    for (uint32_t i = 0; i < size && r == 0; i++) {
        uint32_t p = (me + i) % size;                       /* not all from the same one at once */
        if (of_all(c)) {
            struct chunk share = c->gpu.call->direct->leader
                ? (struct chunk){ 0, p ? 0 : now.count }
                : direct_share(c, now.count, p);
            r = direct_move(c, STREAM_OUT,
                            address(c->recv, (now.first + share.first) * c->width),
                            slot(c, p, s->taking, 0) + share.first * c->width,
                            share.count * c->width);
            continue;
        }
        if (p == me ? !parts_keeps(c) : !parts_moves(c, p, me))
            continue;
        CUdeviceptr from = p == me
            ? address(c->send, (each(c) ? block_at(c, me) : 0) + now.first * c->width)
            : slot(c, p, s->taking, me);
        r = direct_move(c, STREAM_OUT, address(parts_recv(c, p), now.first * c->width), from,
                        now.count * c->width);
    }
    return r;
}

static bool has_folded(const struct coll *c, uint32_t p) { return direct_has_fold(c, p); }

static int hand_out(struct coll *c)
{
    struct direct_rounds *s = rounds_of(c);
    bool folded = of_all(c);
    if (pipeline_await(c,
                       folded ? offsetof(struct member, folded) : offsetof(struct member, produced),
                       said(c, s->taking + 1), folded ? has_folded : gives_me)
        == WAITING)
        return WAITING;
    int r = copy_out(c, chunk(c, s->taking));
    if (r < 0)
        return r;
    uint64_t *number = &s->out_mark[s->taking++ % DEVICE_SLOTS];
    return mark(c, STREAM_OUT, number);
}

/* ---- the rounds ------------------------------------------------------------------------------ */

bool direct_begin_rounds(struct coll *c)
{
    struct direct_rounds *s = rounds_of(c);
    size_t line = c->width < 64 ? 64 / c->width : 1,
           most = DEVICE_SLOT_BYTES / (each(c) ? c->comm->watch.size : 1) / c->width;
    *s = (struct direct_rounds){ .piece = most / line * line };
    if (!s->piece)
        return false;
    s->pitch = s->piece * c->width;
    s->total = c->count / s->piece + (c->count % s->piece != 0);
    if (s->total > c->pipeline.total)
        return false;
    if (!direct_brings(c))
        s->asked = s->in = s->total;
    if (!direct_has_fold(c, c->comm->watch.me))
        s->folding = s->folded = s->total;
    if (!takes(c))
        s->taking = s->out = s->total;
    return true;
}

static void raise_to(struct coll *c, shared64 *word, uint64_t n)
{
    uint64_t now = c->pipeline.base + said(c, n);
    if (load_relaxed64(word) < now)                                  /* relaxed: our own word */
        watch_raise(&c->comm->watch, word, now);    /* E16 release, E17 release, E18 release */
}

/* Sees how far the device has come, and says so. */
static int look(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    struct direct_rounds *s = rounds_of(c);
    uint64_t in = 0, out = 0;
    int r = s->in < s->asked ? device_passed(c, STREAM_IN, &in) : 0;
    if (r == 0 && (s->folded < s->folding || s->out < s->taking))
        r = device_passed(c, STREAM_OUT, &out);
    if (r < 0)
        return r;
    s->in = s->in < s->asked ? in : s->in;
    while (s->folded < s->folding && s->fold_mark[s->folded % DEVICE_SLOTS] <= out)
        s->folded++;
    while (s->out < s->taking && s->out_mark[s->out % DEVICE_SLOTS] <= out)
        s->out++;
    raise_to(c, &w->mine->produced, s->in);
    if (of_all(c) || c->algorithm->kind == KIND_REDUCE)
        raise_to(c, &w->mine->folded, s->folded);
    raise_to(c, &w->mine->consumed, s->folded < s->out ? s->folded : s->out);
    return 0;
}

int direct_step_rounds(struct coll *c)
{
    struct direct_rounds *s = rounds_of(c);
    int r = DONE;
    while (r == DONE) {
        r = look(c);
        if (r < 0)
            return r;
        if (s->in == s->total && s->folded == s->total && s->out == s->total)
            return DONE;
        r = WAITING;
        /* the last one that waits has what the oldest round needs */
        if (s->asked < s->total && s->asked < s->out + DEVICE_SLOTS
            && s->asked < s->folded + DEVICE_SLOTS)
            r = hand_in(c);
        if (r >= 0 && s->folding < s->in && s->folding < s->out + DEVICE_SLOTS
            && s->folding < s->folded + DEVICE_SLOTS) {
            int folds = hand_fold(c);
            r = folds < 0 ? folds : r | folds;
        }
        if (r >= 0 && s->taking < s->folded && s->taking < s->in
            && s->taking < s->out + DEVICE_SLOTS) {
            int copies = hand_out(c);
            r = copies < 0 ? copies : r | copies;
        }
    }
    bool busy = s->in < s->asked || s->folded < s->folding || s->out < s->taking;
    return r < 0 ? r : busy ? watch_poll(&c->op) : WAITING;
}
