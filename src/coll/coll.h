/* Job: what every collective algorithm is given, and what it hands back: a row that select can choose.
 * Owns: nothing shared; the words an algorithm writes are its own member's.
 * Never: waits (advance returns WAITING with the word), chooses (select does). */
#ifndef TUTTI_COLL_COLL_H
#define TUTTI_COLL_COLL_H

#include "fold/fold.h"
#include "group/comm.h"

struct coll;

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
    size_t count, bytes, width;        /* elements; bytes of them; bytes of one */
    tutti_type type;
    tutti_op oper;
    int root;
    fold_fn *fold;
    uint64_t fold_ticks;
    int phase;
    struct { size_t piece, slot; uint64_t total, base, in, fold, out; } ring;       /* elements, bytes, rounds */
};

enum { GATE_START = 0, GATE_WAIT = 1, AFTER_GATE = 2 };

/* before, the gate (arrive, and wait until all have: by the barrier algorithm that the rules name for this comm), after. */
int coll_one_phase(struct op *op);
int coll_nothing(struct coll *c);                            /* before or after, where there is nothing to do */

/* Memory of peers, by the offset they published in payload[0]; NULL if it does not lie in the arena. */
char *coll_peer(const struct coll *c, uint32_t p, size_t bytes);
void coll_publish(struct coll *c, const char *at);           /* this rank's, before it arrives; and the count where the stamp holds a hash */
void coll_copy(struct coll *c, void *to, const void *from, size_t bytes);            /* timed; nothing if it is the same place */
void coll_fold(struct coll *c, void *to, const void *const from[], size_t count);    /* timed; default floating-point modes */

extern const struct algorithm barrier_flags, barrier_central;
extern const struct algorithm broadcast_line, broadcast_flat, broadcast_ring;
extern const struct algorithm reduce_line, reduce_flat, reduce_ring;
extern const struct algorithm all_reduce_line, all_reduce_flat, all_reduce_ring;

enum { LINE_BYTES = PAYLOAD_WORDS * 8, FLAT_BYTES = 65536 };

#endif
