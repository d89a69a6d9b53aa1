/* Moves blocks through the pipelines: every collective of parts.h, any size. In each round a rank
 * puts the same stretch of all the blocks it gives into its slot, unless they lie in the arena. The
 * ranks that take copy or fold that stretch. Each stretch is written once, and read once by each
 * rank that takes.
 *
 *   in(r)    licence: the ranks that take have consumed the slot. Copy in; produced = r + 1
 *   out(r)   all ranks that give me something have produced r: copy or fold;  consumed = r + 1
 *            (from the gate on the same stretch of a kept block is copied with it: take_beside)
 *   close    all ranks that give have produced everything: C(k). From then on each living rank can
 *            finish alone.
 *   exit     a rank that gave out of a buffer in the arena stays until peers have read it.
 *
 * Uneven parts whose counts only the two ranks of a block have (gather_v, scatter_v, all_to_all_v)
 * have one step more. A rank's counts are in its rows when it arrives. After the gate each rank
 * compares what it takes with what is given. The number of rounds is the most that any rank needs,
 * which the ranks learn only then. So C(k) asks for `given` instead, whose value is known before. A
 * rank raises it when its comparison held and all it gives is in the arena. A difference is a
 * mismatch that ends the operation for all.
 *
 * All or none also holds if only one rank has seen a difference. That rank never raises its
 * `given`, so C(k) never holds for any rank, and no rank has completed. It proposes the mismatch,
 * or meets a verdict that was there before, or dies, which the others find like any death before
 * the rank's part is done. All three end in one verdict for all. Here `given` comes after all that
 * a rank takes, too: when C(k) holds, no rank reads any more.
 *
 * An exit ends without a verdict: C(k) holds, so each reader can finish alone. It reads to its end
 * even if the comm breaks: a deadline, an abort or an interrupt finds that C(k) holds, and does not
 * stop it. It raises `consumed` before it returns; if it is gone instead, its owners stop waiting,
 * too. Only a reader that is stopped delays its owners, past their deadlines, until it runs again
 * or is killed. */
#include "coll/pipeline.h"
#include "coll/pipeline_chunks.h"
#include "coll/pipeline_swap.h"

#include "base/tiny.h"
#include "coll/parts.h"
#include "coll/take.h"
#include "coll/zero_copy.h"
#include "coll/nontemporal.h"
#include "watch/journal.h"

#include <errno.h>
#include <string.h>

/* of each block: the most that is read in place before this rank looks at other events again */
enum { STRETCH_BYTES = TINY(1 << 20, 1024) };

static bool move_gives(const struct coll *c, uint32_t p) { return parts_gives(c, p); }

static bool move_gives_me(const struct coll *c, uint32_t p)
{
    return parts_moves(c, p, c->comm->watch.me);
}

static bool move_takes_mine(const struct coll *c, uint32_t p)
{
    return parts_moves(c, c->comm->watch.me, p);
}

/* The place in the arena of the block that p gives to rank `to`. */
static struct place move_place(const struct coll *c, uint32_t p, uint32_t to,
                               const struct part_row *rows)
{
    unsigned how = parts_how(c);
    if (how & PARTS_UNEVEN) {
        const struct part_row *row = &rows[how & PARTS_EACH ? to : 0];
        return pipeline_known(c, (struct place){ row->at, row->lo, row->hi });
    }
    struct place place = pipeline_send_place(c, p);
    size_t before = how & PARTS_EACH ? to * c->count * c->width : 0;
    if (place.at == 0 || before >= place.hi)
        return (struct place){ 0, 0, 0 };
    return (struct place){ place.at + before, place.lo > before ? place.lo - before : 0,
                           place.hi - before };
}

static bool move_staged(const struct coll *c, uint32_t to, uint64_t round)
{
    size_t first = (size_t)round * c->pipeline.piece,
           n = parts_cut(parts_count(c, c->comm->watch.me, to), first, c->pipeline.piece);
    struct place place = move_place(c, c->comm->watch.me, to,
                                    c->pipeline.at ? pipeline_rows(c, c->pipeline.at) : NULL);
    return n && !(place.at && pipeline_in_place(&place, first * c->width, n * c->width));
}

/* True: this rank reads also its own block out of its slot to fold it, because the CPU cannot reach
 * the buffer. */
static bool move_own_staged(const struct coll *c)
{
    return c->gpu.mover && parts_takes(c)
        && (parts_how(c) & (PARTS_FOLD | PARTS_STRICT)) == PARTS_FOLD;
}

static bool move_slot_idle(const struct coll *c, uint64_t round)
{
    uint32_t me = c->comm->watch.me, size = c->comm->watch.size;
    if (c->gpu.mover)
        return false;
    if (!parts_gives(c, me))
        return true;
    if (!(parts_how(c) & PARTS_EACH))
        return !move_staged(c, parts_next(c), round);
    for (uint32_t p = 0; p < size; p++)
        if (p != me && move_staged(c, p, round))
            return false;
    return true;
}

static void move_copy_in(struct coll *c, uint32_t to, char *slot)
{
    size_t first = (size_t)c->pipeline.asked * c->pipeline.piece,
           n = parts_cut(parts_count(c, c->comm->watch.me, to), first, c->pipeline.piece);
    const char *from = parts_send(c, to) + first * c->width;
    if (!n || !move_staged(c, to, c->pipeline.asked)
        || chunks_copy_in(c, slot, from, n * c->width))
        return;
    if (c->pipeline.asked >= c->pipeline.beside && to == parts_next(c))
        take_beside(c, slot, from, first, n);
    else
        (c->swap.on ? coll_copy : coll_copy_in)(c, slot, from, n * c->width);
}

/* A device rank that folds reads its own slot itself: the slot is free when that round has been
   folded. */
static int move_hand_in(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    bool own = move_own_staged(c), gives = parts_gives(c, w->me);
    uint64_t began = c->pipeline.asked;
    for (; c->pipeline.asked < c->pipeline.mine; c->pipeline.asked++) {
        if (move_slot_idle(c, c->pipeline.asked))
            continue;
        if (c->pipeline.asked != began)
            break;                     /* publish first what is there already */
        if (c->gpu.mover
            && (!c->gpu.mover->room(c, MOVER_IN)
                || (own && c->pipeline.asked >= c->pipeline.taking + PIPELINE_DEPTH)))
            return WAITING;
        if (c->swap.on ? !pipeline_swap_free(c)
                       : pipeline_licence(c, c->pipeline.asked, move_takes_mine) == WAITING)
            return WAITING;
        char *slot = c->swap.on ? pipeline_swap_block(c, w->me, c->pipeline.asked)
            : gives || own
            ? pipeline_slot(c->pipeline.at, c, c->pipeline.asked)
            : NULL;
        if (slot && !(parts_how(c) & PARTS_EACH))
            move_copy_in(c, parts_next(c), slot);
        for (uint32_t p = 0; slot && (parts_how(c) & PARTS_EACH) && p < w->size; p++)
            if (p != w->me || own)
                move_copy_in(c, p, slot + (c->swap.on ? 0 : p * c->pipeline.piece * c->width));
        c->pipeline.asked++;
        break;
    }
    return pipeline_handed(c, MOVER_IN);
}

/* Copies in up to what this rank gives. When all is in, its word goes to the operation's end at
   once. What is in a block that may not be read after all is not said before the gate. */
static int move_in(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    int r = c->pipeline.asked < c->pipeline.mine ? move_hand_in(c) : WAITING,
        moved = pipeline_landed(c, MOVER_IN, c->pipeline.asked, &c->pipeline.in);
    uint64_t said = c->pipeline.in == c->pipeline.mine && c->pipeline.total > c->pipeline.mine
        ? c->pipeline.total
        : c->pipeline.in;
    bool early = c->swap.on && c->phase == GATE_WAIT;
    /* relaxed: our own word */
    if (!early && c->pipeline.base + said > load_relaxed64(&w->mine->produced))
        watch_raise(w, &w->mine->produced, c->pipeline.base + said); /* E16 release */
    return r < 0 || moved < 0 ? (r < 0 ? r : moved) : r == DONE || moved == DONE ? DONE : WAITING;
}

static struct spot move_at(const struct coll *c, uint32_t p, size_t first, size_t n)
{
    const struct spot nowhere = { NULL, 0 };
    uint32_t me = c->comm->watch.me;
    unsigned how = parts_how(c);
    const struct part_row *rows = how & PARTS_UNEVEN ? pipeline_rows_of(c, p) : NULL;
    if ((how & PARTS_UNEVEN) && !rows)
        return nowhere;
    struct place place = move_place(c, p, me, rows);
    uint64_t at = place.at + first * c->width;
    size_t before = (size_t)c->pipeline.taking * c->pipeline.piece;
    if (c->swap.on)
        return (struct spot){
            pipeline_swap_block(c, p, c->pipeline.taking) + (first - before) * c->width, 0
        };
    if (place.at && pipeline_in_place(&place, first * c->width, n * c->width))
        return cma_is(at) ? (struct spot){ NULL, at }
                          : (struct spot){ coll_at(c, at, n * c->width), 0 };
    char *pipeline = coll_peer(c, p, pipeline_all_slots(c));
    size_t in_slot = (how & PARTS_EACH ? me * c->pipeline.piece : 0) + first - before;
    return pipeline
        ? (struct spot){ pipeline_slot(pipeline, c, c->pipeline.taking) + in_slot * c->width, 0 }
        : nowhere;
}

/* True: every block that this rank takes can be read in place, to its end. */
static bool move_lies(const struct coll *c)
{
    uint32_t me = c->comm->watch.me, size = c->comm->watch.size;
    for (uint32_t p = 0; p < size; p++) {
        if (!parts_moves(c, p, me))
            continue;
        const struct part_row *rows = parts_how(c) & PARTS_UNEVEN ? pipeline_rows_of(c, p) : NULL;
        size_t bytes = parts_count(c, p, me) * c->width;
        if ((parts_how(c) & PARTS_UNEVEN) && !rows)
            return false;
        struct place place = move_place(c, p, me, rows);
        if (bytes && !(place.at && pipeline_in_place(&place, 0, bytes)))
            return false;
    }
    return true;
}

/* How many rounds are taken at once. A block that is read in place has been there since its owner
   arrived; only STRETCH_BYTES limits the step, so that this rank looks at other events in time. A
   rank that still has to copy in goes round by round, because its licences wait for peers that do
   the same. */
static uint64_t move_step(const struct coll *c)
{
    uint64_t left = c->pipeline.taken - c->pipeline.taking,
             most = STRETCH_BYTES / (c->pipeline.piece * c->width);
    if (c->gpu.mover || (parts_how(c) & PARTS_FOLD) || c->pipeline.in < c->pipeline.mine || left < 2
        || most < 2 || c->pipeline.kept || !move_lies(c))
        return 1;
    return left < most ? left : most;
}

static int move_hand_out(struct coll *c)
{
    uint64_t rounds = move_step(c);
    if (rounds == 1
        && pipeline_await(c, offsetof(struct member, produced), c->pipeline.taking + 1,
                          move_gives_me)
            == WAITING)
        return WAITING;
    if (c->gpu.mover
        && (!c->gpu.mover->room(c, MOVER_OUT)
            || c->pipeline.taking >= c->pipeline.out + PIPELINE_DEPTH))
        return WAITING;
    char *scratch = c->gpu.mover && (parts_how(c) & PARTS_FOLD)
        ? c->gpu.mover->scratch(c, c->pipeline.taking)
        : NULL;
    c->kept = take_was_beside(c);
    int r = take_all(c, move_at, (size_t)c->pipeline.taking * c->pipeline.piece,
                     (size_t)rounds * c->pipeline.piece, scratch);
    if (r != DONE)
        return r;
    take_past(c, rounds);
    return pipeline_handed(c, MOVER_OUT);
}

static int move_out(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    uint64_t before = c->pipeline.out;
    /* In place, a stretch is copied in before a taken stretch overwrites it. */
    bool may = c->pipeline.taking < c->pipeline.taken
        && (c->pipeline.taking < c->pipeline.in || c->pipeline.in == c->pipeline.mine);
    int r = may ? move_hand_out(c) : WAITING,
        moved = pipeline_landed(c, MOVER_OUT, c->pipeline.taking, &c->pipeline.out);
    /* When this rank has taken all that is for it, its word goes to the operation's end, too: it
       may have much left to give, and ranks that take that would wait until it consumes blocks that
       are for others. */
    if (c->pipeline.out > before)
        /* E18 release */
        watch_raise(w, &w->mine->consumed,
                    c->pipeline.base
                        + (c->pipeline.out == c->pipeline.taken ? c->pipeline.total
                                                                : c->pipeline.out));
    return r < 0 || moved < 0 ? (r < 0 ? r : moved) : r == DONE || moved == DONE ? DONE : WAITING;
}

/* ---- opening ---- */

static uint64_t move_rounds(const struct coll *c, size_t count)
{
    return count / c->pipeline.piece + (count % c->pipeline.piece != 0);
}

/* The rounds in which there is something for this rank. There may be more in all; that number comes
 * from peers, and is not used as a bound of a loop. */
static uint64_t move_taken(const struct coll *c)
{
    uint32_t me = c->comm->watch.me, size = c->comm->watch.size;
    size_t most = 0;
    for (uint32_t p = 0; p < size; p++)
        if ((p == me ? parts_keeps(c) : parts_moves(c, p, me)) && parts_count(c, p, me) > most)
            most = parts_count(c, p, me);
    return move_rounds(c, most);
}

/* The largest block that this rank gives, or keeps: a kept block is copied in rounds, too. */
static size_t move_most(const struct coll *c)
{
    uint32_t me = c->comm->watch.me, size = c->comm->watch.size;
    size_t most = 0;
    for (uint32_t p = 0; p < size; p++)
        if ((p == me ? parts_keeps(c) : parts_moves(c, me, p)) && parts_count(c, me, p) > most)
            most = parts_count(c, me, p);
    return most;
}

static bool move_overwrites(const struct coll *c)
{
    return c->send == c->recv
        && (c->algorithm->kind == KIND_ALL_TO_ALL || c->algorithm->kind == KIND_SCAN
            || c->algorithm->kind == KIND_EXSCAN);
}

/* Sets sizes, staging, places, claim. */
static int move_open(struct coll *c)
{
    unsigned how = parts_how(c);
    uint32_t me = c->comm->watch.me, size = c->comm->watch.size;
    size_t most = pipeline_slot_now(c) / (how & PARTS_EACH ? size : 1) / c->width,
           bytes = c->count * c->width * (how & PARTS_EACH ? size : 1);
    bool gives = parts_gives(c, me), all_reduces = c->algorithm->kind == KIND_ALL_REDUCE;
    pipeline_swap_open(c);
    if (c->swap.agreed && most > PIPELINE_SWAP_PIECE / c->width)
        most = PIPELINE_SWAP_PIECE / c->width;
    c->sends = c->recvs = (struct place){ 0, 0, 0 };
    int r = cma_open(c);
    if (r < 0)
        return r;
    if (gives && !(how & PARTS_UNEVEN) && !move_overwrites(c))
        c->sends = pipeline_may_lie(c, c->send, bytes);
    bool may = c->algorithm->kind == KIND_SCATTER && c->comm->crowded && c->cma.may == CMA_YES
        && cma_is(c->sends.at);
    if (zero_copy_choose(c, may ? c->comm->coll.zero_copy.sends : NULL, bytes,
                         ZERO_COPY_SENDS_LEAST))
        c->sends = (struct place){ 0, 0, 0 };
    struct place results = all_reduces ? pipeline_may_lie(c, c->recv, bytes)
                                       : (struct place){ 0, 0, 0 };
    pipeline_swap_publish(c, results);
    if (c->swap.on)
        c->sends = (struct place){ 0, 0, 0 };
    c->pipeline.piece = how & PARTS_UNEVEN ? most : chunk_piece(c->count, 1, c->width, most);
    uint64_t given = move_rounds(c, move_most(c));
    r = pipeline_stage(c,
                       (how & PARTS_UNEVEN)
                           || ((gives || move_own_staged(c)) && bytes
                               && !(c->sends.lo == 0 && c->sends.hi == bytes)),
                       how & PARTS_UNEVEN ? PIPELINE_ANY : given,
                       c->pipeline.piece * c->width * (how & PARTS_EACH ? size : 1));
    if (r < 0)
        return r;
    if (how & PARTS_UNEVEN)
        pipeline_pairs_fill(c);
    else
        pipeline_publish_places(c);
    stream_choose(c, stream_bytes(c),
                  c->algorithm->kind != KIND_BROADCAST && c->send == c->recv
                      && !(how & PARTS_UNEVEN));
    c->pipeline.mine = given;
    c->pipeline.beside = UINT64_MAX;
    c->pipeline.kept = 0;
    r = c->gpu.mover && (how & PARTS_FOLD) && c->pipeline.mine
        ? c->gpu.mover->reserve(c, c->pipeline.piece * c->width)
        : 0;
    if (r < 0)
        return r;
    c->op.claim.committer = !(how & PARTS_PAIRS) && (how & PARTS_ROOT_GIVES) ? c->root : -1;
    if (how & PARTS_PAIRS) {
        struct arrival *mine = &c->comm->watch.mine->arrival[c->op.claim.seq & 1];
        store_relaxed64(&mine->payload[1], c->pipeline.mine);        /* relaxed: E1 publishes it */
        c->op.claim.commit_at = offsetof(struct member, given);
        c->op.claim.commit = c->op.claim.seq;
        return 0;
    }
    pipeline_begin(c, move_rounds(c, how & PARTS_UNEVEN ? c->lists.most : c->count));
    c->pipeline.taken = c->pipeline.total;
    if (c->algorithm->direct) {
        c->op.claim.committer = -1;
        c->op.claim.commit_at = offsetof(struct member, given);
        c->op.claim.commit = c->op.claim.seq;
        return 0;
    }
    /* Without rounds no rank raises a word, and after a broadcast or scatter the words of other
     * ranks may be behind the count: the arrival is enough. */
    c->op.claim.commit_at = c->pipeline.total ? offsetof(struct member, produced) : 0;
    c->op.claim.commit = c->pipeline.base + c->pipeline.total;
    return 0;
}

/* Pairs, after the gate: whether all that this rank takes is what is given. */
static bool move_compared(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    if (!pipeline_pairs_agree(c))
        return false;
    c->pipeline.taken = move_taken(c);
    /* A rank that takes nothing has taken all. It says so here, because it never comes to move_out,
     * and givers in a circle would wait for it. */
    if (c->pipeline.taken == 0)
        watch_raise(w, &w->mine->consumed, c->pipeline.base + c->pipeline.total);  /* E18 release */
    return true;
}

static int move_close(struct coll *c)
{
    pipeline_close(c);
    stream_learn(c);
    pipeline_swap_learn(c);
    if ((parts_how(c) & PARTS_PAIRS) || c->algorithm->direct) {
        if (cma_given(c) == WAITING)
            return WAITING;
    } else if (c->pipeline.total
               && pipeline_await(c, offsetof(struct member, produced), c->pipeline.total,
                                 c->op.claim.committer < 0 ? NULL : move_gives)
                   == WAITING)
        return WAITING;
    int r = coll_device_complete(c);
    if (r == DONE && c->sends.hi > c->sends.lo)
        r = pipeline_exit(c, move_takes_mine);
    if (r == DONE)
        zero_copy_learn(c);
    return r;
}

/* One pass over the stages. DONE: something has moved. */
static int move_stages(struct coll *c, bool takes)
{
    int moved = c->pipeline.in < c->pipeline.mine ? move_in(c) : WAITING;
    if (moved >= 0 && takes && c->pipeline.out < c->pipeline.taken
        && (c->gpu.mover || c->pipeline.out < c->pipeline.in
            || c->pipeline.in == c->pipeline.mine)) {
        int r = move_out(c);
        moved = r < 0 ? r : r | moved;
    }
    return moved;
}

int pipeline_move_advance(struct op *op)
{
    struct coll *c = (struct coll *)op;
    if (c->phase == GATE_START) {
        int r = move_open(c);
        if (r < 0)
            return r;
        journal_arrive(op->watch, &op->claim);
        c->phase = GATE_WAIT;
    }
    int r = c->gpu.mover && c->phase != FINISHING ? c->gpu.mover->ready(c) : DONE;
    if (r == DONE && c->phase == GATE_WAIT) {
        /* The first rounds can be copied in before any other rank is there. */
        while ((c->cma.may == CMA_NO || c->zero_copy.yes) && c->pipeline.in < c->pipeline.mine
               && (r = move_in(c)) == DONE
               && (!take_may_beside(c) || watch_all_arrived(op) == WAITING)) {
        }
        if (r >= 0 && (watch_all_arrived(op) == WAITING || cma_finish(c) == WAITING))
            return pipeline_waits(c);
        r = r < 0 ? r : DONE;
        if (r == DONE && (op->claim.differs || ((parts_how(c) & PARTS_PAIRS) && !move_compared(c))))
            return WAITING;            /* for the verdict */
        c->phase = AFTER_GATE;
        if (r == DONE && !pipeline_swap_gate(c))
            c->pipeline.asked = c->pipeline.in = 0;              /* once more, into the slots */
        c->pipeline.beside = take_may_beside(c) ? c->pipeline.asked : UINT64_MAX;
        int moved = r == DONE ? move_in(c) : WAITING;   /* a rank that gives nothing says so */
        r = moved < 0 ? moved : r;
    }
    if (r == WAITING)
        return WAITING;
    bool takes = parts_takes(c);
    if (r > 0)
        chunks_take(c);
    while (
        r > 0
        && (c->pipeline.in < c->pipeline.mine || (takes && c->pipeline.out < c->pipeline.taken))) {
        r = move_stages(c, takes);
        if (r == WAITING)
            return pipeline_waits(c);  /* for what the oldest round needs: out was called last */
    }
    if (r < 0) {
        pipeline_close(c);
        return r;
    }
    c->phase = FINISHING;
    return move_close(c);
}
