/* Job: what every collective algorithm is given, and what a row of the table of algorithms says.
 * Owns: nothing shared. An algorithm writes words of its own member only.
 * Never: waits (advance returns WAITING with the word), chooses (select does), knows devices. It
 *        only knows that a rank's buffers are a device's.
 *
 * Device memory. A rank says with its arrival that its buffers are device memory
 * (coll_publish_device). The ranks exchange the same words as for host memory. But a device can
 * fail after all else went well. So an operation in which any rank said so ends, at every rank,
 * with coll_device_complete: the result is in place here, and then everywhere.
 *
 * E70 placed: a rank puts its result where its caller looks for it, then placed = number (release).
 *    A peer loads that (acquire): this rank can fail the operation no more, and reads no staging.
 * E71 mapped: a rank has opened its peers' device memory, or could not, then mapped = 2 * number +
 *    ok (release). A rank that has loaded (acquire) the words of all knows by which road all go. */
#ifndef TUTTI_COLL_COLL_H
#define TUTTI_COLL_COLL_H

#include "base/tiny.h"
#include "fold/fold.h"
#include "fold/scalar.h"
#include "group/comm.h"
#include "group/place.h"

struct coll;
struct device_call;                    /* gpu/: the device buffers of a call */
struct disk_call;                      /* disk/: the file of a call */

/* The lists of a _v form or of all_reduce_many; NULL where a call has none. Work has a copy. */
struct vector_args {
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
    size_t most;                /* bytes of one rank's contribution it can take; SIZE_MAX: any */
    int  (*advance)(struct op *op);
    /* Only of one-phase algorithms (advance is coll_one_phase): what they do before the gate and
     * after it. 0 or -errno; NULL: nothing. */
    int  (*before)(struct coll *c);
    int  (*after)(struct coll *c);
    const char *help;                  /* what it does and costs, one line; for people */
    /* reads private memory of peers where it can (coll/cma.h): its C(k) is `given` */
    bool direct;
};

/* Copies between the caller's buffers and host memory where the CPU cannot make them. A copy is
   handed over and ends later, in order on each side. The thread that advances the operation calls
   all of this. Negative: -errno, explained. */
enum mover_side { MOVER_IN, MOVER_OUT };            /* out of the caller's buffers | into them */
struct mover {
    /* DONE: the caller's buffers may be touched. Else WAITING (watch_poll), -errno */
    int  (*ready)(struct coll *c);
    bool (*room)(const struct coll *c, int side);            /* for one more mark */
    /* mark and passed return its error, too */
    int  (*copy)(struct coll *c, int side, void *to, const void *from, size_t bytes);
    int  (*mark)(struct coll *c, int side);             /* behind all copies of that side so far */
    /* how many marks of this operation have passed: all copies before them have ended */
    int  (*passed)(struct coll *c, int side, uint64_t *marks);
    /* before the arrival: host memory for a round's results */
    int  (*reserve)(struct coll *c, size_t bytes);
    /* that memory. It holds the results for PIPELINE_DEPTH rounds */
    char *(*scratch)(struct coll *c, uint64_t round);
};

/* What a floor above adds to a call with device memory or with a file. The engine calls it. */
struct call_ways {
    /* called after number and algorithm are set; may replace op.advance */
    void (*choose)(struct coll *c);
    /* the operation outlives its caller's frame: copies what stands there. 0, -ENOMEM */
    int  (*keep)(struct coll *c);
    /* the operation has ended, or will never begin: lets go of everything. May be called twice */
    void (*end)(struct coll *c, int result);
};

/* An operation as its algorithm gets it: the call, then a struct for each room with state here. */
struct coll {
    struct op op;                      /* first: advance is called with it */
    struct tutti_comm *comm;
    const struct algorithm *algorithm, *gate;
    const void *send;
    void *recv;
    size_t count, bytes, width;     /* elements; bytes that a rank gives at most; of an element */
    tutti_type type;
    tutti_op oper;
    int root;
    struct {                           /* exactly one of the first three where the kind reduces */
        fold_fn *kernel;
        fold_scaled_fn *scaled;
        coll_user_fn *user;
        fold_word_fn *word;            /* the same of a single element, in registers; or NULL */
        bool floats;                   /* as in struct shape */
        bool usual;                    /* the floating-point modes are the default ones (modes.h) */
        uint64_t factor[2];            /* TUTTI_PREMUL_SUM: this rank's own */
        uint64_t ticks;                /* spent in folds and copies */
    } fold;
    struct even even;                  /* of even parts that can be eager; else zeros */
    struct vector_args lists;
    uint64_t list_hash;                /* of the counts that all ranks must have alike; 0: none */
    int answer;                        /* what the call returns on success */
    struct place sends, recvs;         /* where in the arena the buffers lie */
    bool kept;                         /* this rank's own block is in its place (take_own) */
    /* eager, between 2 ranks: whether blocks may change hands; whether one is published */
    enum { HANDS_NEVER, HANDS_NONE, HANDS_PUBLISHED } hands;
    /* eager, between 2 ranks: may take before all have arrived; bytes of a block that it has taken
       so (coll/early.h) */
    bool expects;
    size_t early;
    bool lends;                        /* eager: peers read the caller's buffer (coll_returned) */
    struct {                           /* coll/nontemporal.h */
        struct tuner *tuner;
        struct stream_try *try;
        size_t bytes;
        bool on;
    } stream;
    struct {                           /* coll/zero_copy.h */
        struct tuner *ways;
        size_t bytes;
        uint64_t began;
        bool yes;
    } zero_copy;
    /* Of a call with device memory or a file: set where that was found. NULL: of neither */
    const struct call_ways *ways;
    struct disk_call *disk;            /* of load and save alone; set with `ways` */
    struct {
        struct device_call *call;      /* NULL: this rank's buffers are host memory */
        const struct mover *mover;     /* NULL: the CPU copies */
        /* Brings the result there: DONE, WAITING (watch_poll), -errno. NULL: it is there. */
        int (*place)(struct coll *c);
    } gpu;
    struct {                           /* coll/cma.h; set where a large operation opens */
        enum cma { CMA_ASKS, CMA_NO, CMA_YES } may;
        uint64_t since;                /* when memory of a peer was first found gone, 0: never */
    } cma;
    struct {                           /* coll/pipeline_swap.h */
        struct swap_class *class;      /* NULL: not in this operation */
        bool agreed;                   /* blocks change hands if no rank has device memory … */
        bool on;                       /* … and this rank has none; after the gate: they do */
        struct epochs *epochs;         /* rank 0 learns there from it; NULL: nowhere */
        uint64_t base, said;           /* rounds by blocks before it; what this rank published */
    } swap;
    int phase;
    struct {                          /* coll/pipeline.h: this rank's pipeline, and how far it is */
        char *at;                     /* its slots; NULL: this operation needs none */
        size_t piece;                 /* elements of a round from one rank to another */
        size_t slot, depth;           /* bytes of a slot; slots */
        size_t large;                 /* elements of a piece of several rounds; 0: there is none */
        uint64_t total, base;         /* rounds of this operation; of the comm before it */
        uint64_t in;                  /* rounds that this rank has given: they can be read */
        uint64_t fold;                /* steps of which this rank has folded its piece */
        uint64_t out;                 /* rounds or steps whose result is in its place */
        uint64_t beside;              /* from this round on the kept block may go with `in`, */
        uint64_t kept;                /* and did in rounds r whose bit r % 64 is set */
        uint64_t mine, taken;         /* rounds in which this rank gives, and takes */
        uint64_t steps;               /* of a fold: one for each round, or piece of `large` */
        uint64_t asked, taking;       /* as in and out: handed to a mover, not yet ended */
    } pipeline;
};

enum { GATE_START = 0, GATE_WAIT = 1, AFTER_GATE = 2, FINISHING = 3 };

/* before; the gate: arrive and wait until all have, by the comm's barrier algorithm; after. */
int coll_one_phase(struct op *op);
int coll_nothing(struct coll *c);               /* before or after, where there is nothing to do */
/* From LEND_LEAST bytes on a one-phase algorithm may lend a buffer that lies in the arena: peers
   read it there. That is one wait more and one copy less.
   coll_given: this rank has read what it reads (E22). coll_returned: DONE, or WAITING until all
   have read what this rank lends. */
enum { LEND_LEAST = TINY(8192, 64), LEND_CROWDED_LEAST = TINY(65540, 68) };
static inline void coll_given(struct coll *c)
{
    if (c->bytes >= LEND_LEAST)
        /* E22 release */
        watch_raise(&c->comm->watch, &c->comm->watch.mine->given, c->op.claim.seq);
}
int  coll_returned(struct coll *c);

/* Memory of peers; NULL if it does not lie in the arena. */
static inline char *coll_place(const struct tutti_comm *comm, uint64_t at, size_t bytes)
{
    const struct arena *arena = &comm->world->arena;
    return at && at <= arena->bytes && bytes <= arena->bytes - at ? arena->base + at : NULL;
}
char *coll_at(const struct coll *c, uint64_t at, size_t bytes);                 /* at this offset */
/* at what p published in payload[0] */
char *coll_peer(const struct coll *c, uint32_t p, size_t bytes);
/* Before the other's slot is read: once in a comm, pages of its ring are mapped ahead. */
static inline void coll_look(const struct coll *c, const char *slot)
{
    if (c->bytes >= EAGER_CHUNK && c->comm->world->flags & TUTTI_AHEAD && !c->comm->stage.looked
        && c->comm->watch.size == 2 && c->hands != HANDS_PUBLISHED)
        comm_stage_look(c->comm, slot);
}
/* Publishes this rank's staging before it arrives; with the factor, and with the count where the
 * fingerprint holds a hash of it. */
void coll_publish(struct coll *c, const char *at);
void coll_publish_factor(struct coll *c);
/* timed; nothing if it is the same place */
void coll_copy(struct coll *c, void *to, const void *from, size_t bytes);
/* the same into what peers will read */
void coll_copy_in(struct coll *c, void *to, const void *from, size_t bytes);
/* coll_copy_in, or coll_copy if `plain`, and a result as large past the caches beside it. false:
   not that. Where both go past the caches nothing is gained, and peers would wait for both. */
bool coll_copy_beside(struct coll *c, void *to, const void *from, void *past, const void *kept,
                      size_t bytes, bool plain);
/* the same for results, past the caches if c->stream.on */
void coll_copy_out(struct coll *c, void *to, const void *from, size_t bytes);
/* Folds from[0 … n-1], the contributions of ranks 0 … n-1, in that order. Timed. In the default
 * floating-point modes. */
void coll_fold(struct coll *c, void *to, const void *const from[], uint32_t n, size_t count);
/* The same for results too large for a cache: past the caches if c->stream.on and the operation has
   at least `least` bytes. */
enum { FOLD_STREAM_LEAST = 64 << 20 };
void coll_fold_out(struct coll *c, void *to, const void *const from[], uint32_t n, size_t count,
                   size_t least);
/* The same into a slot that peers have read, and, where there is one, into a result; by the fastest
 * of three ways (base/tuner.h). */
enum { FOLD_BLOCK = 16384, FOLD_STAGED_LEAST = TINY(16385, 32) };
void coll_fold_staged(struct coll *c, void *slot, void *result, const void *const from[],
                      uint32_t n, size_t count);
/* The same into a receive buffer out of which peers copy. A fold fetches the lines that they have
   read, before it overwrites them; a copy by one instruction (base/copy.h) does not. So by blocks
   where that saves an eighth of STAGED_LESS. Measured on a Zen 5, 2 ranks far apart, all_reduce of
   512 KiB, 1, 2, 4 MiB: 44 -> 28 us, 87 -> 58, 168 -> 108, 315 -> 228; near 512 KiB 12.8 and 13.5,
   1 MiB the same. In place nothing is gained: the owner has written the lines just before.
   Nor where ranks share CPUs. */
enum { SHARED_LESS = 8 };
void coll_fold_shared(struct coll *c, void *to, const void *const from[], uint32_t n, size_t count);
/* The same by a kernel, not timed; usual: as modes_usual found them in this call. */
void coll_fold_by(fold_fn *fold, void *to, const void *const from[], uint32_t n, size_t count,
                  bool usual);

/* A rank with device memory: before it arrives. card: an offset in the arena, 0 none. */
void coll_publish_device(struct coll *c, uint64_t card);
/* After the gate. Has any arrival of this operation said device memory? One load on
 * comms without. */
bool coll_any_device(const struct coll *c);
/* where p's lies; 0: none, or p's buffers are host memory */
uint64_t coll_card(const struct coll *c, uint32_t p);
/* Whether this rank has opened what it needs; asked of all: DONE with *all, or WAITING. Only where
 * all have a card. */
void coll_say_mapped(struct coll *c, bool ok);
int  coll_all_mapped(struct coll *c, bool *all);
/* The end of every algorithm, again and again until DONE: what this operation's devices ask for;
 * nothing where there are none. */
int  coll_device_complete(struct coll *c);

/* Puts a copy in the place of the caller's lists; *block is the caller's to free. 0 or -ENOMEM. */
int coll_keep_lists(struct coll *c, enum kind kind, void **block);

enum { INLINE_BYTES = PAYLOAD_WORDS * 8, EAGER_BYTES = 65536 };
/* Of kinds that gain by it between two ranks; of all blocks together, where a rank gives each rank
 * another one. */
enum { EAGER_EACH_BYTES = 4 * EAGER_BYTES, EAGER_TWO_BYTES = 4 * EAGER_BYTES };
/* What travels beside the data of PREMUL_SUM: the factor, in payload[2 … 3]. So its lines hold 16
 * bytes of data. */
enum { FACTOR_WORD = 2, FACTOR_BYTES = INLINE_BYTES - 16 };

#endif
