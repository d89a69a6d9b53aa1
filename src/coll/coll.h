/* Job: what every collective algorithm is given, and what it hands back: a row that select can choose.
 * Owns: nothing shared; the words an algorithm writes are its own member's.
 * Never: waits (advance returns WAITING with the word), chooses (select does). */
#ifndef TUTTI_COLL_COLL_H
#define TUTTI_COLL_COLL_H

#include "fold/fold.h"
#include "group/comm.h"
#include "group/place.h"

struct coll;

/* The lists of a _v form or of all_reduce_many; NULL where a call has none. In work they are a copy. */
struct lists {
    int n;                             /* ranks, or buffers of all_reduce_many */
    const void *const *send;
    const size_t *send_counts;
    void *const *recv;
    const size_t *recv_counts;
    const size_t *first;               /* all_reduce_many: elements before each buffer, [n + 1] */
    size_t most;                       /* the largest count that concerns this rank */
};

typedef void coll_user_fn(const void *in, void *inout, size_t count, tutti_type type);

struct algorithm {
    const char *name;
    enum kind kind;
    size_t most;                       /* bytes of one rank's contribution it can take; SIZE_MAX: any */
    int  (*advance)(struct op *op);
    /* One-phase algorithms (advance is coll_one_phase) are all in what they do before the gate and after it: 0 or -errno; NULL: nothing. */
    int  (*before)(struct coll *c);
    int  (*after)(struct coll *c);
    const char *help;                  /* what it does and costs, one line; for people */
};

struct coll {
    struct op op;                      /* first: advance is called with it */
    struct tutti_comm *comm;
    const struct algorithm *algorithm, *gate;
    const void *send;
    void *recv;
    size_t count, bytes, width;        /* elements; bytes that one rank contributes, the most of all ranks; bytes of one element */
    tutti_type type;
    tutti_op oper;
    int root;
    fold_fn *fold;                     /* exactly one of these where the kind reduces */
    fold_scaled_fn *scaled;
    coll_user_fn *user;
    uint64_t factor[2];                /* TUTTI_PREMUL_SUM: this rank's own */
    struct lists lists;
    uint64_t list_hash;                /* of the counts that all ranks must have alike; 0: none */
    int answer;                        /* what the call returns on success */
    struct place sends, recvs;         /* where in the arena the buffers lie */
    uint64_t fold_ticks;
    struct streams *stream;            /* coll/stream.h */
    size_t stream_bytes;
    bool streams;
    int phase;
    struct { char *at; size_t piece, slot, large; uint64_t total, base, in, fold, out, mine, taken, steps; } ring;
                                       /* elements, bytes, rounds; mine, taken: of what this rank gives, and takes */
};

enum { GATE_START = 0, GATE_WAIT = 1, AFTER_GATE = 2 };

/* before, the gate (arrive, and wait until all have: by the barrier algorithm that the rules name for this comm), after. */
int coll_one_phase(struct op *op);
int coll_nothing(struct coll *c);                            /* before or after, where there is nothing to do */

/* Memory of peers; NULL if it does not lie in the arena. */
char *coll_at(const struct coll *c, uint64_t at, size_t bytes);                      /* at this offset */
char *coll_peer(const struct coll *c, uint32_t p, size_t bytes);                     /* at what p published in payload[0] */
/* This rank's staging, before it arrives; with the factor, and the count where the stamp holds a hash. */
void coll_publish(struct coll *c, const char *at);
void coll_publish_factor(struct coll *c);
void coll_copy(struct coll *c, void *to, const void *from, size_t bytes);            /* timed; nothing if it is the same place */
void coll_copy_out(struct coll *c, void *to, const void *from, size_t bytes);        /* the same for results, past the caches if c->streams */
/* from[0 … n-1], the contributions of ranks 0 … n-1, in that order; timed; default floating-point modes. */
void coll_fold(struct coll *c, void *to, const void *const from[], uint32_t n, size_t count);

/* Puts a copy in the place of the caller's lists; *block is the caller's to free. 0 or -ENOMEM. */
int coll_keep_lists(struct coll *c, enum kind kind, void **block);

extern const struct algorithm barrier_flags, barrier_central;
extern const struct algorithm broadcast_line, broadcast_flat, broadcast_ring;
extern const struct algorithm reduce_line, reduce_flat, reduce_ring;
extern const struct algorithm all_reduce_line, all_reduce_flat, all_reduce_ring;
extern const struct algorithm all_reduce_many_flat, all_reduce_many_ring;
extern const struct algorithm reduce_scatter_line, reduce_scatter_flat, reduce_scatter_ring;
extern const struct algorithm reduce_scatter_v_flat, reduce_scatter_v_ring;
extern const struct algorithm all_gather_line, all_gather_flat, all_gather_ring;
extern const struct algorithm all_gather_v_flat, all_gather_v_ring;
extern const struct algorithm gather_line, gather_flat, gather_ring, gather_v_ring;
extern const struct algorithm scatter_line, scatter_flat, scatter_ring, scatter_v_ring;
extern const struct algorithm all_to_all_line, all_to_all_flat, all_to_all_ring, all_to_all_v_ring;
extern const struct algorithm same_line, op_create_line;
extern const struct algorithm scan_line, scan_flat, scan_ring;
extern const struct algorithm exscan_line, exscan_flat, exscan_ring;

enum { LINE_BYTES = PAYLOAD_WORDS * 8, FLAT_BYTES = 65536 };
/* What travels beside the data of PREMUL_SUM: the factor, in payload[2 … 3]. So its lines hold 16 bytes of data. */
enum { FACTOR_WORD = 2, FACTOR_BYTES = 24 };

#endif
