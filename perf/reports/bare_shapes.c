/* A rank gives by copying pieces into its ring, and takes by copying them out of the others'. What
 * fits into one piece takes one central barrier, as a small collective does: copy in, all have
 * come, copy out. What is larger goes piece by piece, so that who takes works while who gives does.
 * A yield is the only way to wait, but for ranks that have come from elsewhere while all on this
 * CPU have: for them a rank looks on for a while first, as in src/watch/drive.c. So the number of
 * switches is that of the shape: how often somebody has to run before somebody else can go on.
 *
 * Direct: who takes reads it where it lies in the giver's memory, as soon as that one has come, and
 * says so by arriving. So one barrier is all there is, but for the kernel's part. */
#include "reports/bare_shapes.h"

#include "base/copy.h"
#include "fold/fold.h"
#include "os/vm_read.h"

#include <string.h>
#include <unistd.h>

enum { PIECE = 64 << 10, DEPTH = 6, LINGER_NS = 3000 };

struct words {
    struct bare_line produced, consumed;                    /* by the rank, in rounds */
    struct { _Alignas(128) shared64 nth, at, pid; } offer;  /* where its message lies */
    struct { _Alignas(128) shared64 nth, cpu; } come;       /* to which operation, and where + 1 */
};

size_t bare_shapes_bytes(int ranks)
{
    return sizeof(struct words) * (size_t)ranks
        + (size_t)ranks * DEPTH * PIECE * (size_t)ranks;
}

static struct words *words_of(const struct rank *r, int p)
{
    return &((struct words *)(void *)r->shared)[p];
}

/* The block for rank q in the piece that p gives in this round. */
static char *piece_at(const struct rank *r, int p, uint64_t round, int q)
{
    char *rings = r->shared + sizeof(struct words) * (size_t)r->size;
    return rings + (((size_t)p * DEPTH + round % DEPTH) * (size_t)r->size + (size_t)q) * PIECE;
}

static bool each(const struct rank *r) { return operations[r->op].send == BLOCKS_EACH; }
static bool scans(const struct rank *r) { return r->op == OP_SCAN || r->op == OP_EXSCAN; }

static bool folds(const struct rank *r)
{
    return r->op == OP_REDUCE || r->op == OP_ALL_REDUCE || r->op == OP_REDUCE_SCATTER || scans(r);
}

bool bare_shapes_have(enum operation_id op, bool direct)
{
    struct rank r = { .op = op };
    return op != OP_BARRIER && op != OP_PINGPONG && !(direct && folds(&r));
}

static bool takes(const struct rank *r, int p)
{
    enum who who = operations[r->op].receivers;
    return who == WHO_ALL || (p == 0) == (who == WHO_FIRST);
}

/* Has p something for somebody else? What a root keeps is not given. */
static bool gives(const struct rank *r, int p)
{
    if (operations[r->op].receivers == WHO_FIRST && p == 0)
        return false;
    enum who who = operations[r->op].senders;
    return who == WHO_ALL || (p == 0) == (who == WHO_FIRST);
}

static bool moves(const struct rank *r, int p, int q)
{
    return p != q && gives(r, p) && takes(r, q) && (!scans(r) || p < q)
        && (r->op != OP_SENDRECV || q == (p + 1) % r->size);
}

struct trip {
    uint64_t base, rounds, in, out;        /* of all before; of this one: all, given, taken */
    bool all, past, come;
};

static size_t cut(const struct rank *r, uint64_t round)
{
    size_t left = r->bytes - (size_t)round * PIECE;
    return left < PIECE ? left : PIECE;
}

/* May this rank give its next piece? Behind a barrier nobody reads what one piece held before. */
static bool licence(const struct rank *r, const struct trip *t)
{
    if (t->all && t->rounds == 1)
        return true;
    for (int q = 0; q < r->size; q++)
        if (moves(r, r->me, q)
            && load_acquire64(&words_of(r, q)->consumed.word) + DEPTH < t->base + t->in + 1)
            return false;
    return true;
}

static void give(struct rank *r, struct trip *t)
{
    size_t at = (size_t)t->in * PIECE, some = cut(r, t->in);
    for (int q = 0; q < (each(r) ? r->size : 1); q++)
        if (!each(r) || q != r->me)
            (t->past ? copy_streaming : copy_plain)(piece_at(r, r->me, t->base + t->in, q),
                                                    r->send + (each(r) ? (size_t)q * r->bytes : 0)
                                                        + at,
                                                    some);
    t->in++;
    if (!t->all || t->rounds > 1)
        store_release64(&words_of(r, r->me)->produced.word, t->base + t->in);
}

static bool given(const struct rank *r, const struct trip *t)
{
    if (t->all && t->rounds == 1)
        return true;
    for (int p = 0; p < r->size; p++)
        if (moves(r, p, r->me)
            && load_acquire64(&words_of(r, p)->produced.word) < t->base + t->out + 1)
            return false;
    return true;
}

/* By the library's kernel. */
static void fold(struct rank *r, const struct trip *t, size_t at, size_t some)
{
    const void *from[PERF_RANKS_MAX];
    int n = 0;
    for (int p = 0; p < r->size; p++)
        if (p == r->me && r->op != OP_EXSCAN)
            from[n++] = r->send + (each(r) ? (size_t)r->me * r->bytes : 0) + at;
        else if (moves(r, p, r->me))
            from[n++] = piece_at(r, p, t->base + t->out, each(r) ? r->me : 0);
    if (n)
        fold_find(TUTTI_F32, TUTTI_SUM, NULL)(r->recv + at, from, n, some / sizeof(float), n);
}

static void take(struct rank *r, struct trip *t)
{
    size_t at = (size_t)t->out * PIECE, some = cut(r, t->out);
    bool one = operations[r->op].recv == BLOCKS_ONE;
    if (folds(r))
        fold(r, t, at, some);
    /* each begins with its neighbour, so that not all read the same piece at once */
    for (int i = 1; i < r->size && !folds(r); i++) {
        int p = (r->me + i) % r->size;
        if (moves(r, p, r->me))
            copy_plain(r->recv + (one ? 0 : (size_t)p * r->bytes) + at,
                       piece_at(r, p, t->base + t->out, each(r) ? r->me : 0), some);
    }
    t->out++;
    store_release64(&words_of(r, r->me)->consumed.word, t->base + t->out);
}

/* What it keeps for itself. */
static void keep(struct rank *r)
{
    if ((r->op == OP_SCATTER || r->op == OP_SCAN) && r->me == 0)
        memcpy(r->recv, r->send, r->bytes);
    else if (operations[r->op].recv == BLOCKS_EACH && takes(r, r->me))
        memcpy(r->recv + (size_t)r->me * r->bytes,
               r->send + (each(r) ? (size_t)r->me * r->bytes : 0), r->bytes);
}

static void arrive(struct rank *r)
{
    store_release64(&words_of(r, r->me)->come.nth, r->nth[0] + 1);
    if (fetch_add64(&r->bare->count.word, 1) + 1 == ++r->nth[0] * (uint64_t)r->size)
        store_release64(&r->bare->sense.word, r->nth[0]);
}

static bool come(const struct rank *r)
{
    return load_acquire64(&r->bare->sense.word) >= r->nth[0];
}

/* All who share this CPU have come, so that a yield would only go round among them. */
static bool all_here(const struct rank *r)
{
    uint64_t here = (uint64_t)sched_getcpu() + 1;
    int others = 0;
    if (load_relaxed64(&words_of(r, r->me)->come.cpu) != here)           /* relaxed: a hint */
        store_relaxed64(&words_of(r, r->me)->come.cpu, here);            /* relaxed: a hint */
    for (int p = 0; p < r->size; p++) {
        if (p == r->me || load_relaxed64(&words_of(r, p)->come.cpu) != here)    /* relaxed: hint */
            continue;
        others++;
        if (load_acquire64(&words_of(r, p)->come.nth) < r->nth[0])
            return false;
    }
    return others > 0;
}

/* Until the others come, or not for now. */
static void look_on(const struct rank *r)
{
    uint64_t until = stamp_now() + stamp_ticks(LINGER_NS);
    bool lingers = all_here(r);
    while (lingers && !come(r) && stamp_now() < until)
        cpu_pause();
    if (!come(r))
        sched_yield();
}

static void one(struct rank *r, bool all, bool past)
{
    struct trip t = {
        .base = r->nth[1], .rounds = (r->bytes + PIECE - 1) / PIECE, .all = all, .past = past
    };
    uint64_t mine = 0, theirs = 0;
    for (int p = 0; p < r->size; p++) {
        mine = moves(r, r->me, p) ? t.rounds : mine;
        theirs = moves(r, p, r->me) ? t.rounds : theirs;
    }
    while (t.in < mine && licence(r, &t))
        give(r, &t);
    if (all)
        arrive(r);
    keep(r);
    t.come = !all;
    while (t.in < mine || t.out < theirs || !t.come) {
        bool moved = false;
        if (!t.come)
            moved = t.come = come(r);
        if (t.in < mine && licence(r, &t)) {
            give(r, &t);
            moved = true;
        }
        if (t.come && t.out < theirs && given(r, &t)) {
            take(r, &t);
            moved = true;
        }
        if (!moved && t.come)
            sched_yield();
        else if (!moved)
            look_on(r);
    }
    struct words *w = words_of(r, r->me);
    store_release64(&w->produced.word, t.base + t.rounds);
    store_release64(&w->consumed.word, t.base + t.rounds);
    for (int p = 0; all && t.rounds > 1 && p < r->size; p++)
        if (gives(r, p))
            bare_wait(&words_of(r, p)->produced.word, t.base + t.rounds, true);
    r->nth[1] = t.base + t.rounds;
}

static int one_direct(struct rank *r)
{
    bool to_one = operations[r->op].recv == BLOCKS_ONE;
    uint64_t nth = ++r->nth[2];
    int error = 0;
    if (gives(r, r->me)) {
        struct words *mine = words_of(r, r->me);
        /* relaxed, both: nth publishes them */
        store_relaxed64(&mine->offer.at, (uint64_t)(uintptr_t)r->send);
        store_relaxed64(&mine->offer.pid, (uint64_t)getpid());
        store_release64(&mine->offer.nth, nth);
    }
    keep(r);
    for (int i = 1; i < r->size && !error; i++) {
        int p = (r->me + i) % r->size;
        struct words *its = words_of(r, p);
        if (!moves(r, p, r->me))
            continue;
        bare_wait(&its->offer.nth, nth, true);
        error = vm_read((pid_t)load_relaxed64(&its->offer.pid),
                        r->recv + (to_one ? 0 : (size_t)p * r->bytes),
                        load_relaxed64(&its->offer.at) + (each(r) ? (size_t)r->me * r->bytes : 0),
                        r->bytes);
    }
    arrive(r);
    while (!come(r))
        look_on(r);
    return error;
}

int bare_shapes_direct(struct rank *r, uint64_t times)
{
    int error = 0;
    for (uint64_t i = 0; i < times && !error; i++) {
        if (i)
            operation_rewrite(r);
        error = one_direct(r);
    }
    return error;
}

static int times_of(struct rank *r, uint64_t times, bool all, bool past)
{
    for (uint64_t i = 0; i < times; i++) {
        if (i)
            operation_rewrite(r);
        one(r, all, past);
    }
    return 0;
}

int bare_shapes_all(struct rank *r, uint64_t times) { return times_of(r, times, true, false); }
int bare_shapes_all_past(struct rank *r, uint64_t times) { return times_of(r, times, true, true); }
int bare_shapes_loose(struct rank *r, uint64_t times) { return times_of(r, times, false, false); }
int bare_shapes_loose_past(struct rank *r, uint64_t times)
{
    return times_of(r, times, false, true);
}
