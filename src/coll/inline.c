/* The fold reads the lines in place. After the gate (E1) they stay unchanged until this rank
 * arrives at the next operation, because their owners store the operation after that only then. */
#include "coll/inline.h"

#include "coll/modes.h"
#include "coll/parts.h"

int inline_put(struct coll *c)
{
    inline_store(&c->comm->watch, c->op.claim.seq, c->send, c->bytes);
    if (c->fold.scaled)
        coll_publish_factor(c);
    return 0;
}

int inline_put_parts(struct coll *c) { return c->even.gives ? inline_put(c) : 0; }

/* Folds one element of ranks 0 … `ranks` - 1, `at` bytes into their lines, if it is a word and
 * the floating-point modes are the usual ones. False: not done. */
static bool inline_fold_word(struct coll *c, uint32_t ranks, size_t at, const void *own, void *to)
{
    if (!c->fold.word || ranks < 2 || (c->fold.floats && !c->fold.usual && !modes_usual()))
        return false;
    uint64_t word = inline_words(&c->comm->watch, c->op.claim.seq, ranks, at, c->width,
                                 c->fold.word, inline_word(own, c->width));
    inline_put_word(to, word, c->width);
    return true;
}

int inline_fold(struct coll *c)
{
    const struct watch *w = &c->comm->watch;
    const void *from[RANKS_MAX];
    if (inline_fold_word(c, w->size, 0, c->send, c->recv))
        return 0;
    inline_sources(w, c->op.claim.seq, c->send, from);
    coll_fold(c, c->recv, from, w->size, c->count);
    return 0;
}

int inline_fold_at_root(struct coll *c)
{
    return (uint32_t)c->root == c->comm->watch.me ? inline_fold(c) : 0;
}

/* Copies at most a line's payload; most are a word, which goes by a register. */
static inline void inline_copy(void *to, const void *from, size_t bytes)
{
    if (bytes == 4 || bytes == 8)
        inline_put_word(to, inline_word(from, bytes), bytes);
    else
        memcpy(to, from, bytes);
}

static inline const char *inline_block(const struct coll *c, uint32_t p)
{
    return (const char *)watch_arrival(&c->comm->watch, p, c->op.claim.seq)->payload + c->even.at;
}

int inline_take(struct coll *c)
{
    const struct even *even = &c->even;
    uint32_t me = c->comm->watch.me;
    char *to = c->recv;
    const char *own = (const char *)c->send + even->at;
    if (even->keeps && to + me * even->step != own)
        inline_copy(to + me * even->step, own, even->keeps);
    if (!even->takes)
        return 0;
    if (c->comm->watch.size == 2) {
        inline_copy(to + !me * even->step, inline_block(c, !me), even->takes);
        return 0;
    }
    for (uint32_t p = even->first; p < even->end; p++)
        if (p != me)
            inline_copy(to + p * even->step, inline_block(c, p), even->takes);
    return 0;
}

int inline_take_folded(struct coll *c)
{
    const struct even *even = &c->even;
    const char *own = (const char *)c->send + even->at;
    const void *from[RANKS_MAX];
    if (even->end == 0 || inline_fold_word(c, even->end, even->at, own, c->recv))
        return 0;
    for (uint32_t p = 0; p < even->end; p++)
        from[p] = p == c->comm->watch.me ? own : inline_block(c, p);
    coll_fold(c, c->recv, from, even->end, c->count);
    return 0;
}
