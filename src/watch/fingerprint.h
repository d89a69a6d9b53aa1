/* Job: the fingerprint of an operation: what all ranks must agree on, in 64 bits, and its
 *      name for people.
 * Owns: nothing.
 * Never: where a rank's buffer lies: that is its own affair and part of no fingerprint.
 *
 *   kind:6 | type:5 | operation:13 | root:10 | hashed:1 | count:29
 * Everything but the count is exact. A count that does not fit is there as a hash, and the whole
 * value stands in the arrival's last payload word, where it is compared too. */
#ifndef TUTTI_WATCH_FINGERPRINT_H
#define TUTTI_WATCH_FINGERPRINT_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <tutti.h>

/* The order has a meaning: from KIND_BARRIER to KIND_SAME stand the collectives that algorithms
 * carry and that tests take one by one; from KIND_BROADCAST to KIND_ALL_TO_ALL_V those of data. */
enum kind {
    KIND_NONE, KIND_BARRIER, KIND_BROADCAST, KIND_REDUCE, KIND_ALL_REDUCE, KIND_ALL_REDUCE_MANY,
    KIND_REDUCE_SCATTER, KIND_ALL_GATHER, KIND_GATHER, KIND_SCATTER, KIND_ALL_TO_ALL, KIND_SCAN,
    KIND_EXSCAN, KIND_REDUCE_SCATTER_V, KIND_ALL_GATHER_V, KIND_GATHER_V, KIND_SCATTER_V,
    KIND_ALL_TO_ALL_V, KIND_SAME, KIND_LOAD, KIND_SAVE, KIND_OP_CREATE, KIND_SPLIT, KIND_SPLIT_END,
    KIND_CREATE, KIND_SHRINK, KIND_AGREE, KIND_ONCE, KIND_FIRST_BEGIN, KIND_FIRST_END,
    KIND_TURN_BEGIN, KIND_TURN_END, KIND_SEND, KIND_RECV, KIND_PROBE, KIND_SET, KIND_GET, KIND_ADD,
    KIND_COMPARE_SET, KIND_DELETE, KIND_WAIT, KIND_ABORT, KIND_FINALIZE, KIND_FREE,
    KIND_QUEUE_CREATE, KIND_QUEUE_PUT, KIND_QUEUE_GET, KIND_QUEUE_LOOK, KIND_COUNT
};

#define STAMP_HASHED (UINT64_C(1) << 29)
enum { STAMP_COUNT_BITS = 29 };

static inline uint64_t fingerprint_make(enum kind kind, tutti_type type, tutti_op op, int root,
                                        uint64_t count)
{
    uint64_t low = count < STAMP_HASHED
        ? count
        : STAMP_HASHED | (((count * UINT64_C(0x9e3779b97f4a7c15)) >> 35) & (STAMP_HASHED - 1));
    return (uint64_t)kind << 58 | (uint64_t)(type & 31) << 53 | (uint64_t)(op & 8191) << 40
        | (uint64_t)(root & 1023) << 30 | low;
}
/* A list of counts that all ranks must have alike: its hash. */
static inline uint64_t fingerprint_make_list(enum kind kind, tutti_type type, tutti_op op,
                                             uint64_t hash)
{
    return fingerprint_make(kind, type, op, 0, 0) | STAMP_HASHED | (hash & (STAMP_HASHED - 1));
}
static inline bool fingerprint_hashed(uint64_t stamp) { return stamp & STAMP_HASHED; }
static inline enum kind fingerprint_kind(uint64_t stamp) { return (enum kind)(stamp >> 58); }
static inline int fingerprint_type(uint64_t stamp) { return (int)(stamp >> 53 & 31); }
static inline int fingerprint_op(uint64_t stamp) { return (int)(stamp >> 40 & 8191); }
static inline int fingerprint_root(uint64_t stamp) { return (int)(stamp >> 30 & 1023); }

/* Of a kind that is one; lists, pairs: its count is of lists of counts, of counts for each peer. */
struct kind_traits { const char *name; bool collective, data, reduces, rooted, lists, pairs; };
extern const struct kind_traits kind_table[KIND_COUNT];

const char *kind_name(enum kind kind);                      /* "all_reduce"; "?" */
bool kind_collective(enum kind kind);                       /* has a number of its own */
bool kind_data(enum kind kind);                             /* its count is of elements of a type */
bool kind_reduces(enum kind kind);                          /* has an operation */
/* "all_reduce f32 sum 1024", "broadcast f32 10 root 1", "barrier". count: the whole value where the
 * stamp holds a hash, else ignored. */
void fingerprint_add(struct text *t, uint64_t stamp, uint64_t count);

#endif
