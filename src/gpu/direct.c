/* The device decides in which order kernels and copies of several processes run; no kernel of ours
 * waits for another rank. Ranks meet in the arena between the steps: after opening, after the fold
 * where others copy its result, and at the end. Before a peer says that it has mapped, its stream
 * has done what it had to do before the call. So the data that is read is there.
 *
 * Opening costs up to a millisecond, and closing waits for all kernels of the context. So only
 * memory that may stay open is read in place. Any other goes through the staging on the devices,
 * which is opened once (direct_staged.c). Both cost two exchanges of lines, so small operations go
 * through the arena. A rank that sees no way gives no card, which costs nobody anything. */
#include "gpu/direct.h"

#include "base/clock.h"
#include "base/error.h"
#include "coll/parts.h"
#include "coll/pipeline.h"
#include "coll/select.h"
#include "gpu/ipc_import.h"
#include "gpu/streams.h"
#include "gpu/pinned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS UINT64_C(1000000000)

CUdeviceptr direct_send(const struct coll *c, uint32_t p)
{
    return p == c->comm->watch.me ? c->gpu.call->send.pointer.address
                                  : c->gpu.call->direct->peers[p].send_at;
}

CUdeviceptr direct_recv(const struct coll *c, uint32_t p)
{
    return p == c->comm->watch.me ? c->gpu.call->recv.pointer.address
                                  : c->gpu.call->direct->peers[p].recv_at;
}

static struct ipc_import *ipc_import_of(const struct coll *c)
{
    return ipc_export_handles(ipc_export_if(c->comm->world));
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* Goes over to the pipeline. What was lent is remembered until the end: peers must have closed it
 * then. */
static void give_up(struct coll *c, const char *words)
{
    char unsaid[64];
    struct text why = TEXT_IN(unsaid);
    text_clear(&why);
    struct ipc_export *share = words ? share_of(c->comm->world, &why) : NULL;
    if (share)
        ipc_export_note(share, words);
    c->gpu.call->direct->state = DIRECT_OVER;
    c->gpu.mover = &pinned_mover;
}

/* ---- opening --------------------------------------------------------------------------------- */

const struct card *direct_card(const struct coll *c, uint32_t p)
{
    uint64_t at = coll_card(c, p);
    const struct card *card = at % _Alignof(struct card)
        ? NULL
        : (const struct card *)(const void *)coll_at(c, at, sizeof *card);
    /* relaxed: after E1 */
    return card && load_relaxed64(&card->number) == c->op.claim.seq ? card : NULL;
}

const unsigned char *direct_device(const struct coll *c, const struct card *card)
{
    return c->gpu.call->direct->staged ? card->staging.device : card->send.device;
}

int direct_take(struct coll *c, uint32_t p, const struct lent *lent, size_t least,
                CUdeviceptr *at, bool *open, struct text *why)
{
    struct gpu *gpu = c->gpu.call->gpu;
    struct ipc_import_at where = { gpu_api(gpu), gpu_context(gpu), gpu_ordinal(gpu) };
    if (lent->length < least) {
        text_add(why, "it lends less than the operation needs");
        return DAMAGED;
    }
    int r = ipc_import_take(ipc_import_of(c), &where, watch_world_rank(&c->comm->watch, p), lent,
                            at, why);
    *open = r == 0;
    return r;
}

/* One rank folds for all only if all are on one GPU; else each GPU folds its share. All ranks see
 * the same cards, so all decide alike. */
static bool on_one_gpu(const struct coll *c)
{
    const unsigned char *first = NULL;
    for (uint32_t p = 0; p < c->comm->watch.size; p++) {
        const struct card *card = direct_card(c, p);
        const unsigned char *device = card ? direct_device(c, card) : NULL;
        if (!device || (first && memcmp(device, first, sizeof card->send.device) != 0))
            return false;
        first = device;
    }
    return true;
}

/* What all ranks can do, by their cards; each sees the same. */
static uint64_t ways_of_all(const struct coll *c)
{
    uint64_t ways = CARD_PLACE | CARD_STAGING;
    for (uint32_t p = 0; p < c->comm->watch.size; p++) {
        const struct card *card = direct_card(c, p);
        ways &= card ? card->ways : 0;
    }
    return ways;
}

static int open_staging(struct coll *c, uint32_t p, const struct card *card, struct text *why)
{
    struct direct_peer *peer = &c->gpu.call->direct->peers[p];
    peer->staging = card->staging;
    int r = direct_take(c, p, &peer->staging, (size_t)DEVICE_SLOTS * DEVICE_SLOT_BYTES,
                        &peer->staging_at, &peer->staging_open, why);
    return r < 0 ? r
                 : device_slots_opened(&c->gpu.call->streams->slots, c->comm, p,
                                       peer->staging.buffer);
}

/* True: this rank reads what p lends for this operation. */
static bool reads(const struct coll *c, uint32_t p)
{
    return c->gpu.call->direct->staged ? direct_reads_staging(c, p, c->comm->watch.me)
                                       : direct_reads_send(c, p) || direct_reads_recv(c, p);
}

/* The default rules leave alone what PCIe carries across the host bridge. */
static bool too_far(const struct coll *c, const struct card *card)
{
    bool staged = c->gpu.call->direct->staged;
    return !select_road_named(c->comm->world->rules, staged ? ROAD_STAGED : ROAD_PLACE)
        && proof_far(c->comm->world, c->gpu.call->gpu, direct_device(c, card));
}

/* -EXDEV: it is on a GPU that cannot be read here, by whatever road, or not by default. */
static int open_peer(struct coll *c, uint32_t p, struct text *why)
{
    struct direct_peer *peer = &c->gpu.call->direct->peers[p];
    bool each = c->algorithm->kind == KIND_REDUCE_SCATTER
        || (!c->gpu.call->direct->folds && (parts_how(c) & PARTS_EACH));
    size_t bytes = c->count * c->width;
    const struct card *card = direct_card(c, p);
    if (!card) {
        text_add(why, "its card is not there");
        return DAMAGED;
    }
    if (!reads(c, p))
        return 0;
    if (proof_known(c->comm->world, c->gpu.call->gpu, direct_device(c, card), why) < 0)
        return -EXDEV;
    if (too_far(c, card)) {
        text_add(why,
                 "its GPU is behind the host bridge, without NVLink; the clauses \"device\" and "
                 "\"staged\" of TUTTI_ALGORITHM choose another way");
        return -EXDEV;
    }
    if (c->gpu.call->direct->staged)
        return open_staging(c, p, card, why);
    peer->send = card->send;
    peer->recv = card->recv;
    int r = 0;
    if (direct_reads_send(c, p))
        r = direct_take(c, p, &peer->send, each ? bytes * c->comm->watch.size : bytes,
                        &peer->send_at, &peer->send_open, why);
    if (r == 0 && direct_reads_recv(c, p))
        r = direct_take(c, p, &peer->recv, bytes, &peer->recv_at, &peer->recv_open, why);
    return r;
}

static void close_all(struct coll *c)
{
    struct direct *direct = c->gpu.call->direct;
    for (uint32_t p = 0; p < c->comm->watch.size; p++) {
        struct direct_peer *peer = &direct->peers[p];
        uint32_t owner = watch_world_rank(&c->comm->watch, p);
        if (peer->send_open)
            ipc_import_give(ipc_import_of(c), owner, peer->send.buffer);
        if (peer->recv_open)
            ipc_import_give(ipc_import_of(c), owner, peer->recv.buffer);
        if (peer->staging_open)
            ipc_import_give(ipc_import_of(c), owner, peer->staging.buffer);
        peer->send_open = peer->recv_open = peer->staging_open = false;
    }
}

static int open_all(struct coll *c, struct text *why)
{
    for (uint32_t p = 0; p < c->comm->watch.size; p++) {
        if (p == c->comm->watch.me)
            continue;
        text_clear(why);
        text_add(why, "rank %u's memory: ", p);
        int r = open_peer(c, p, why);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool all_offer(struct coll *c, struct text *why)
{
    for (uint32_t p = 0; p < c->comm->watch.size; p++)
        if (!coll_card(c, p)) {
            text_add(why, "rank %u's buffers are host memory, or it sees no way", p);
            return false;
        }
    return true;
}

/* ---- the operation --------------------------------------------------------------------------- */

static int mark(struct coll *c, enum direct_state next)
{
    struct direct *p = c->gpu.call->direct;
    p->state = next;
    p->marks++;
    int r = device_mark(c, STREAM_OUT);
    return r < 0 ? r : 0;
}

static int passed(struct coll *c)
{
    uint64_t marks;
    int r = device_passed(c, STREAM_OUT, &marks);
    if (r < 0)
        return r;
    return marks >= c->gpu.call->direct->marks ? DONE : watch_poll(&c->op);
}

static void say(struct coll *c, shared64 *word)
{
    uint64_t all = c->pipeline.base + c->pipeline.total;
    if (load_relaxed64(word) < all)                                  /* relaxed: our own word */
        watch_raise(&c->comm->watch, word, all);                     /* E16 release, E17 release */
}

/* Sets what the pipeline would have set by now, so that it has no round left. */
static int over(struct coll *c)
{
    close_all(c);
    c->gpu.call->direct->state = DIRECT_OVER;
    say(c, &c->comm->watch.mine->produced);
    c->gpu.mover = NULL;                   /* nothing is handed over any more */
    c->pipeline.in = c->pipeline.asked = c->pipeline.fold = c->pipeline.taking = c->pipeline.out =
        c->pipeline.mine = c->pipeline.taken = c->pipeline.steps = c->pipeline.total;
    return DONE;
}

/* Does the next step. MORE: there may be more to do. DONE; WAITING with op->wait; -errno. */
static int step(struct coll *c)
{
    enum { MORE = 2 };
    struct watch *w = &c->comm->watch;
    struct direct *p = c->gpu.call->direct;
    bool of_all = c->algorithm->kind == KIND_ALL_REDUCE;
    int r = DONE;
    switch (p->state) {
    case DIRECT_SAID:
        r = direct_has_fold(c, w->me) ? direct_fold(c) : 0;
        return r < 0 || (r = mark(c, DIRECT_FOLDING)) < 0 ? r : MORE;
    case DIRECT_FOLDING:
        r = passed(c);
        if (r != DONE)
            return r;
        if (of_all || c->algorithm->kind == KIND_REDUCE)
            say(c, &w->mine->folded);
        p->state = DIRECT_FOLDED;
        return MORE;
    case DIRECT_FOLDED:
        if (of_all
            && pipeline_await(c, offsetof(struct member, folded), c->pipeline.total,
                              direct_has_fold)
                == WAITING)
            return WAITING;
        r = direct_copy(c);
        return r < 0 || (r = mark(c, DIRECT_COPYING)) < 0 ? r : MORE;
    case DIRECT_COPYING:
        r = passed(c);
        return r == DONE ? over(c) : r;
    default: return DONE;
    }
}

/* In place, or through the staging? False: there is nothing that all ranks can do now. From the
 * next operation on, all offer their staging. */
static bool choose_memory(struct coll *c)
{
    struct direct *p = c->gpu.call->direct;
    uint64_t ways = ways_of_all(c);
    p->staged = !(ways & CARD_PLACE);
    c->comm->gpu.stages |= !ways;
    p->leader = select_road(c->comm->world->rules, p->staged ? ROAD_STAGED : ROAD_PLACE, c->bytes)
            == ROAD_LEADER
        && on_one_gpu(c);
    return ways && (!p->staged || direct_begin_rounds(c));
}

/* After the gate: chooses between this road and the pipeline. DONE: it has chosen. */
static int choose(struct coll *c)
{
    char words[300];
    struct text why = TEXT_IN(words);
    struct direct *p = c->gpu.call->direct;
    text_clear(&why);
    if (p->state == DIRECT_OFFERED) {
        if (watch_all_arrived(&c->op) == WAITING)
            return WAITING;
        if (!all_offer(c, &why)) {
            give_up(c, words);
            return DONE;
        }
        if (!choose_memory(c)) {
            give_up(c, "some ranks' buffers stay open at peers, others' do not");
            return DONE;
        }
        int opened = open_all(c, &why);
        p->could = opened == 0;
        c->comm->gpu.no_place |= opened == -ENOTSUP && !p->staged;
        p->state = DIRECT_OPENED;
    }
    if (p->state == DIRECT_OPENED) {
        int proved = p->could ? direct_prove(c, &why) : 0;
        if (proved == DIRECT_WAITS)
            return watch_poll(&c->op);
        if (proved < 0) {
            comm_explain(c->comm, "%s", words);
            return proved;
        }
        bool ok = proved > 0;
        int lives = ok ? 0 : streams_lives(c->gpu.call->streams);
        if (lives < 0)                              /* a broken context has no other road, either */
            return device_failed(c, lives);
        if (!ok) {
            close_all(c);
            ipc_export_note(ipc_export_if(c->comm->world), words);
        }
        coll_say_mapped(c, ok);
        p->state = DIRECT_TRIED;
        p->could = ok;
    }
    if (p->state == DIRECT_TRIED) {
        bool all;
        if (coll_all_mapped(c, &all) == WAITING)
            return WAITING;
        if (all) {
            p->state = DIRECT_SAID;
            return DONE;
        }
        close_all(c);
        give_up(c, p->could ? "another rank could not open what it needs" : NULL);
    }
    return DONE;
}

/* The pipeline calls it from the arrival on until it returns DONE, and then does what is left. */
static int direct_ready(struct coll *c)
{
    int r = device_ready(c);
    if (r == DONE && c->gpu.call->direct->state < DIRECT_SAID)
        r = choose(c);
    if (r != DONE || c->gpu.mover == &pinned_mover)
        return r;
    if (c->gpu.call->direct->staged && c->gpu.call->direct->state == DIRECT_SAID) {
        r = direct_step_rounds(c);
        return r == DONE ? over(c) : r;
    }
    while ((r = step(c)) > DONE) { }
    return r;
}

static int direct_reserve(struct coll *c, size_t bytes) { return pinned_mover.reserve(c, bytes); }

static const struct mover direct_mover = { .ready = direct_ready, .reserve = direct_reserve };

static int direct_step(struct op *op)
{
    struct coll *c = (struct coll *)op;
    struct device_call *d = c->gpu.call;
    if (d->state == DEVICE_NEW) {
        char words[300];
        struct text why = TEXT_IN(words);
        text_clear(&why);
        int r = device_open(c);
        if (r < 0)
            return r;
        uint64_t card = direct_offer(c, &why);
        if (!card && (r = streams_lives(d->streams)) < 0)
            return device_failed(c, r);
        if (!card)
            give_up(c, words);
        coll_publish_device(c, card);
        d->state = DEVICE_READY;
    }
    return c->algorithm->advance(op);
}

static int direct_advance(struct op *op) { return device_advance(op, direct_step); }

void direct_choose(struct coll *c)
{
    struct direct *p = calloc(1, sizeof *p);
    struct direct_peer *peers = calloc(c->comm->watch.size, sizeof *peers);
    enum kind kind = c->algorithm->kind;
    pinned_choose(c);
    if (!p || !peers || !c->count || c->comm->watch.size == 1) {
        free(p);
        free(peers);
        return;
    }
    p->peers = peers;
    p->folds = kind == KIND_ALL_REDUCE || kind == KIND_REDUCE || (parts_of(kind) & PARTS_FOLD);
    c->gpu.call->direct = p;
    c->op.advance = direct_advance;
    c->gpu.mover = &direct_mover;
}

void direct_end(struct coll *c, int result)
{
    struct device_call *d = c->gpu.call;
    struct direct *p = d->direct;
    if (!p)
        return;                     /* the operation may have no number and no comm yet */
    struct ipc_export *share = ipc_export_if(c->comm->world);
    direct_prove_end(c);
    if (!d->streams || !d->streams->given_up)           /* else what the copies read stays open */
        close_all(c);
    uint64_t deadline = clock_ns() + PATIENCE_NS;
    struct lent *lent[2] = { &p->mine.send, &p->mine.recv };
    for (int i = 0; i < 2 && result < 0 && share; i++) {
        uint64_t now = clock_ns();
        if (lent[i]->bytes)
            ipc_export_take_back(share, lent[i], now < deadline ? deadline - now : 0);
    }
    free(p->peers);
    free(p);
    d->direct = NULL;
}
