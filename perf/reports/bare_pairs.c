/* Where both ranks give, blocks change hands: a rank writes the block that it has read `depth`
 * pieces ago, as its lines are here already (src/coll/swap.h). So nobody waits for room. In a
 * ping-pong the answer goes into the blocks that the message came in. Where the same rank always
 * gives, blocks go round in more memory than the reader's second cache holds, and the giver waits
 * until a block has been read.
 *
 * What a rank keeps for itself it copies when there is nothing else to do, or, past the caches,
 * beside what it gives. Folds are those of the library. */
#include "reports/bare_pairs.h"
#include "reports/bare_shapes.h"

#include "base/copy.h"
#include "fold/fold.h"

#include <errno.h>
#include <string.h>

enum { RING = 2 << 20, BESIDE_FLAG = 48, FOLD_BLOCK = 8 << 10 };

struct way { size_t piece, depth; bool in_past, out_past; };

static const struct way whole = { BARE_WHOLE_MOST, 1, false, false },
                         fine = { 8 << 10, 16, false, false },
                         coarse = { 32 << 10, 4, false, false },
                         out = { 32 << 10, 4, false, true },
                         past = { 64 << 10, 4, true, true },
                         past_in = { 64 << 10, 4, true, false };

/* Of one rank. Only its owner reads `own`; the other words the peer reads, too. */
struct words {
    /* pieces in all operations, and of the last one the few bytes; two lines by turns */
    struct { _Alignas(128) shared64 nth; char data[BESIDE_FLAG]; } few[2];
    struct bare_line come, produced, consumed;
    struct { _Alignas(128) uint64_t operations, few, given, taken, swapped; } own;
};

enum { PAIR_BYTES = 2 * sizeof(struct words) + RING };

static size_t before_pairs(int ranks) { return ranks == 2 ? 0 : bare_shapes_bytes(ranks); }

size_t bare_pairs_bytes(int ranks)
{
    return before_pairs(ranks) + (size_t)(ranks / 2) * PAIR_BYTES;
}

/* Which of the two of its pair. */
static int side(const struct rank *r) { return r->me & 1; }

static char *memory(const struct rank *r)
{
    return r->shared + before_pairs(r->size) + (size_t)(r->me / 2) * PAIR_BYTES;
}

static struct words *words_of(const struct rank *r, int p)
{
    return &((struct words *)(void *)memory(r))[p];
}

struct trip {
    const struct way *way;
    struct words *mine, *theirs;
    size_t to, from, own_to, own_from;         /* in the buffers: of what is given, taken, kept */
    uint64_t in, out, kept, ins, outs, keeps;  /* pieces: done, and all */
    bool swaps, meets, seen;
};

static bool each(const struct rank *r) { return operations[r->op].send == BLOCKS_EACH; }

static bool folds(const struct rank *r)
{
    return r->op == OP_REDUCE || r->op == OP_ALL_REDUCE || r->op == OP_REDUCE_SCATTER
        || r->op == OP_SCAN;
}

static bool scans(const struct rank *r) { return r->op == OP_SCAN || r->op == OP_EXSCAN; }

static bool is_one(enum who who, int p)
{
    return who == WHO_ALL || (p == 0) == (who == WHO_FIRST);
}

static bool gives(const struct rank *r, int p)
{
    return is_one(operations[r->op].senders, p) && is_one(operations[r->op].receivers, !p)
        && !(scans(r) && p == 1);
}

static bool keeps(const struct rank *r)
{
    return ((r->op == OP_SCATTER || r->op == OP_SCAN) && r->me == 0)
        || (operations[r->op].recv == BLOCKS_EACH && is_one(operations[r->op].receivers, r->me));
}

static size_t at_of(const struct trip *t, uint64_t piece) { return (size_t)piece * t->way->piece; }

static size_t bytes_of(const struct rank *r, const struct trip *t, uint64_t piece)
{
    size_t left = r->bytes - at_of(t, piece);
    return left < t->way->piece ? left : t->way->piece;
}

/* The block of a piece of what `writer` gives. */
static char *block(const struct rank *r, const struct trip *t, int writer, uint64_t piece)
{
    char *blocks = memory(r) + 2 * sizeof(struct words);
    size_t size = t->way->piece, depth = t->way->depth;
    if (t->swaps) {
        uint64_t nth = t->mine->own.swapped + piece;
        size_t side = ((size_t)writer ^ (size_t)(nth / depth)) & 1;
        return blocks + (side * depth + nth % depth) * size;
    }
    uint64_t before = r->op == OP_PINGPONG ? 0
        : writer == side(r) ? t->mine->own.given : t->mine->own.taken;
    return blocks + (before + piece) % (RING / size) * size;
}

static bool room(const struct trip *t)
{
    if (t->swaps)
        return t->in < t->out + t->way->depth;
    uint64_t ring = RING / t->way->piece;
    return (t->meets && t->seen && t->in < ring)
        || load_acquire64(&t->theirs->consumed.word) + ring > t->mine->own.given + t->in;
}

static void copy_out(const struct trip *t, char *to, const char *from, size_t bytes)
{
    (t->way->out_past ? copy_streaming : copy_plain)(to, from, bytes);
}

static void keep(struct rank *r, struct trip *t)
{
    size_t at = at_of(t, t->kept);
    copy_out(t, r->recv + t->own_to + at, r->send + t->own_from + at, bytes_of(r, t, t->kept));
    t->kept++;
}

static void give(struct rank *r, struct trip *t)
{
    size_t at = at_of(t, t->in), bytes = bytes_of(r, t, t->in);
    char *to = block(r, t, side(r), t->in);
    const char *from = r->send + t->to + at;
    bool beside = t->seen && t->way->out_past && !t->way->in_past && t->kept < t->keeps
        && bytes_of(r, t, t->kept) == bytes;
    if (beside) {
        size_t own = at_of(t, t->kept++);
        copy_beside(to, from, r->recv + t->own_to + own, r->send + t->own_from + own, bytes);
    } else
        (t->way->in_past ? copy_streaming : copy_plain)(to, from, bytes);
    t->in++;
    store_release64(&t->mine->produced.word, t->mine->own.given + t->in);
}

static void fold(const struct rank *r, const struct trip *t, char *to, const char *own,
                 const char *got, size_t bytes)
{
    _Alignas(64) char sums[FOLD_BLOCK];
    fold_fn *sum = fold_find(TUTTI_F32, TUTTI_SUM, NULL);
    const size_t most = t->way->out_past ? FOLD_BLOCK : bytes;
    for (size_t at = 0; at < bytes; at += most) {
        size_t n = bytes - at < most ? bytes - at : most;
        const void *from[2];
        from[side(r)] = own + at;
        from[!side(r)] = got + at;
        sum(t->way->out_past ? sums : to + at, from, 2, n / sizeof(float), 2);
        if (t->way->out_past)
            copy_streaming(to + at, sums, n);
    }
}

static void take(struct rank *r, struct trip *t, const char *from, size_t at, size_t bytes)
{
    if (folds(r))
        fold(r, t, r->recv + at, r->send + t->own_from + at, from, bytes);
    else
        copy_out(t, r->recv + t->from + at, from, bytes);
}

static void take_piece(struct rank *r, struct trip *t)
{
    take(r, t, block(r, t, !side(r), t->out), at_of(t, t->out), bytes_of(r, t, t->out));
    t->out++;
    if (!t->swaps)
        store_release64(&t->mine->consumed.word, t->mine->own.taken + t->out);
}

static bool given(const struct trip *t)
{
    return load_acquire64(&t->theirs->produced.word) > t->mine->own.taken + t->out;
}

/* Who gives has come; who only takes says so. */
static bool met(struct trip *t)
{
    if (!t->seen)
        t->seen = t->outs ? given(t)
                          : load_acquire64(&t->theirs->come.word) >= t->mine->own.operations;
    return t->seen;
}

static void in_pieces(struct rank *r, struct trip *t)
{
    t->seen = !t->meets;
    if (t->meets && ++t->mine->own.operations && !t->ins)
        store_release64(&t->mine->come.word, t->mine->own.operations);
    while (t->in < t->ins || t->out < t->outs || t->kept < t->keeps || !t->seen) {
        bool may = met(t);            /* before the first piece is taken */
        if (t->in < t->ins && room(t))
            give(r, t);
        else if (may && t->out < t->outs && given(t))
            take_piece(r, t);
        else if (may && t->kept < t->keeps)
            keep(r, t);
        else if (r->crowded)
            sched_yield();
        else
            cpu_pause();
    }
    if (t->swaps)
        store_release64(&t->mine->consumed.word, t->mine->own.taken + t->outs);
    t->mine->own.given += t->ins;
    t->mine->own.taken += t->outs;
    t->mine->own.swapped += t->swaps ? t->ins : 0;
}

/* A line by turns of two: who writes it again has seen the other in the operation between. */
static void beside_flag(struct rank *r, struct trip *t, bool says, bool hears)
{
    uint64_t nth = ++t->mine->own.few, odd = nth & 1;
    if (t->ins)
        memcpy(t->mine->few[odd].data, r->send + t->to, r->bytes);
    if (says)
        store_release64(&t->mine->few[odd].nth, nth);
    if (hears)
        bare_wait(&t->theirs->few[odd].nth, nth, r->crowded);
    if (t->outs)
        take(r, t, t->theirs->few[odd].data, 0, r->bytes);
    if (t->keeps)
        keep(r, t);
}

static void one(struct rank *r, const struct way *way)
{
    size_t mine = (size_t)side(r) * r->bytes, other = (size_t)!side(r) * r->bytes;
    uint64_t pieces = (r->bytes + way->piece - 1) / way->piece;
    bool to = gives(r, side(r)), from = gives(r, !side(r));
    struct trip t = {
        .way = way, .mine = words_of(r, side(r)), .theirs = words_of(r, !side(r)),
        .to = each(r) ? other : 0, .own_from = each(r) ? mine : 0,
        .from = operations[r->op].recv == BLOCKS_EACH ? other : 0,
        .own_to = operations[r->op].recv == BLOCKS_EACH ? mine : 0,
        .ins = to ? pieces : 0, .outs = from ? pieces : 0, .keeps = keeps(r) ? pieces : 0,
        .swaps = to && from && r->op != OP_PINGPONG,
        .meets = r->op != OP_SENDRECV && r->op != OP_PINGPONG
    };
    bool few = r->bytes <= BESIDE_FLAG;
    if (r->op != OP_PINGPONG) {
        if (few)
            beside_flag(r, &t, true, true);
        else
            in_pieces(r, &t);
        return;
    }
    for (int turn = 0; turn < 2; turn++) {
        struct trip leg = t;
        bool sends = turn == side(r);
        leg.ins = sends ? pieces : 0;
        leg.outs = sends ? 0 : pieces;
        if (few)
            beside_flag(r, &leg, sends, !sends);
        else
            in_pieces(r, &leg);
    }
}

static int times_of(struct rank *r, uint64_t times, const struct way *way)
{
    bool alone = operation_partner(r) == r->me;
    if (r->size != 2 && r->op != OP_PINGPONG)
        return -EINVAL;
    for (uint64_t i = 0; i < times; i++) {
        if (i)
            operation_rewrite(r);
        if (alone)
            memcpy(r->recv, r->send, r->bytes);
        else
            one(r, way);
    }
    return 0;
}

int bare_pairs_whole(struct rank *r, uint64_t times) { return times_of(r, times, &whole); }
int bare_pairs_fine(struct rank *r, uint64_t times) { return times_of(r, times, &fine); }
int bare_pairs_coarse(struct rank *r, uint64_t times) { return times_of(r, times, &coarse); }
int bare_pairs_out(struct rank *r, uint64_t times) { return times_of(r, times, &out); }
int bare_pairs_past(struct rank *r, uint64_t times)
{
    return times_of(r, times, r->bytes < BARE_OUT_LEAST ? &past_in : &past);
}
