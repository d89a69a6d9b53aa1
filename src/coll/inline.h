/* Job: carry a contribution by inline transport: in the cache line that says that its rank has
 *      arrived.
 * Owns: this rank's payload words of the operation, before it arrives.
 * Never: carries more than INLINE_BYTES; with a factor, 16 bytes. */
#ifndef TUTTI_COLL_INLINE_H
#define TUTTI_COLL_INLINE_H

#include "coll/coll.h"

#include <string.h>

/* Loads a word of 4 or 8 bytes into a register. */
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

/* Stores into this rank's line of operation seq. */
static inline void inline_store(struct watch *w, uint64_t seq, const void *send, size_t bytes)
{
    struct arrival *mine = watch_arrival(w, w->me, seq);
    /* by a register: a load of a word just after stores of its parts would wait for all of them */
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

/* After the gate: where the contributions of all ranks are. Our own line may be in a peer's cache
 * by now; our buffer holds the same bytes. */
static inline void inline_sources(const struct watch *w, uint64_t seq, const void *send,
                                  const void **from)
{
    for (uint32_t p = 0; p < w->size; p++)
        from[p] = p == w->me ? send : (const void *)watch_arrival(w, p, seq)->payload;
}

/* After the gate: folds one word of ranks 0 … ranks - 1, at least 2, `at` bytes into each line;
   `mine` is this rank's word. Two ranks are done without a loop: the length of a wait always
   differs, so after one the processor cannot predict the branches of a loop. */
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

/* Before the gate: writes all that this rank gives, c->bytes of it. 0. */
int inline_put(struct coll *c);                      /* c->send */
int inline_put_parts(struct coll *c);                /* nothing if this rank gives nothing */
/* After the gate. 0. */
int inline_fold(struct coll *c);            /* the payload of all into c->recv */
int inline_fold_at_root(struct coll *c);    /* the same at c->root; nothing elsewhere */
int inline_take(struct coll *c);            /* the blocks for this rank (c->even) */
int inline_take_folded(struct coll *c);     /* the same of a kind that folds, into one */

#endif
