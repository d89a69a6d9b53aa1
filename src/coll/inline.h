/* Job: inline transport: a contribution travels in the cache line that says that its rank
 *      has arrived.
 * Owns: this rank's payload words of the operation, before it arrives.
 * Never: more than INLINE_BYTES; with a factor, 16 bytes. */
#ifndef TUTTI_COLL_INLINE_H
#define TUTTI_COLL_INLINE_H

#include "coll/coll.h"

#include <string.h>

/* A word of memory, of 4 bytes or 8, in a register. */
static inline uint64_t inline_word(const void *at, size_t bytes)
{
    uint32_t half;
    uint64_t word;
    if (bytes == 8) {
        memcpy(&word, at, 8);
        return word;
    }
    memcpy(&half, at, 4);
    return half;
}

static inline void inline_put_word(void *at, uint64_t word, size_t bytes)
{
    uint32_t half = (uint32_t)word;
    if (bytes == 8)
        memcpy(at, &word, 8);
    else
        memcpy(at, &half, 4);
}

/* Into this rank's line of operation seq. */
static inline void inline_store(struct watch *w, uint64_t seq, const void *send, size_t bytes)
{
    struct arrival *mine = watch_arrival(w, w->me, seq);
    /* by a register: a word put together in memory would be read before it is all there */
    if (bytes == 4 || bytes == 8) {
        store_relaxed64(&mine->payload[0], inline_word(send, bytes)); /* relaxed: E1 publishes it */
        return;
    }
    uint64_t words[PAYLOAD_WORDS] = { 0 };
    if (bytes)
        memcpy(words, send, bytes);
    for (size_t i = 0; i * 8 < bytes; i++)
        store_relaxed64(&mine->payload[i], words[i]);                /* relaxed: E1 publishes it */
}

/* Where everybody's contribution is, after the gate. Our own line may be at a peer's by now; what
 * we put into it is still in our buffer. */
static inline void inline_sources(const struct watch *w, uint64_t seq, const void *send,
                                  const void **from)
{
    for (uint32_t p = 0; p < w->size; p++)
        from[p] = p == w->me ? send : (const void *)watch_arrival(w, p, seq)->payload;
}

/* Ranks 0 … ranks - 1, at least 2 of them, each one word `at` bytes into its line, after the gate;
   `mine` is this rank's. Two ranks without a loop: how long a rank has waited is never the same,
   and after that the processor foresees no turn of a loop. */
static inline __attribute__((always_inline)) uint64_t inline_words(const struct watch *w,
                                                                   uint64_t seq, uint32_t ranks,
                                                                   size_t at, size_t bytes,
                                                                   fold_word_fn *word,
                                                                   uint64_t mine)
{
    if (w->size == 2) {
        uint64_t other = inline_word((const char *)w->first[seq & 1].payload + at, bytes);
        return w->me == 0 ? word(mine, other, 2) : word(other, mine, 2);
    }
    uint64_t acc = 0;
    for (uint32_t p = 0; p < ranks; p++) {
        uint64_t next = p == w->me
            ? mine
            : inline_word((const char *)watch_arrival(w, p, seq)->payload + at, bytes);
        acc = p == 0 ? next : word(acc, next, p + 1 == ranks ? ranks : 0);
    }
    return acc;
}

/* Before the gate: all that this rank gives, c->bytes of it. 0. */
int inline_put(struct coll *c);                      /* c->send */
int inline_put_parts(struct coll *c);                /* nothing where it gives nothing */
/* After the gate. 0. */
int inline_fold(struct coll *c);            /* everybody's into c->recv */
int inline_fold_at_root(struct coll *c);    /* the same at c->root; nothing elsewhere */
int inline_take(struct coll *c);            /* the blocks that are meant for this rank (c->even) */
int inline_take_folded(struct coll *c);     /* those of a kind that folds, into one */

#endif
