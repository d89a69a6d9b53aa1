/* All_reduce. A call whose data fit an arrival line or a small slot takes the fast path, if a call
 * like it has passed the checks before. If all peers arrive soon, it takes the time of a barrier
 * and a fold. Any other call is handled like every collective. */
#define TUTTI_NO_SITES
#include "api/collective.h"
#include "engine/fastpath.h"
#include "coll/eager.h"
#include "coll/inline.h"
#include "coll/modes.h"
#include "coll/algorithms.h"

enum { FAST_BYTES = 4096 };        /* with more, the saved time is too small to notice */

static void all_reduce_describe(struct coll *c, const void *send, void *recv,
                                const struct shape *shape, size_t count, tutti_type type,
                                tutti_op op)
{
    check_describe(c, send, recv, count, type, op, 0);
    check_shaped(c, shape);
}

/* The shape of calls like this one, if they take the fast path: one element or more. NULL: they do
 * not, or there was no such call yet. */
static inline const struct shape *all_reduce_shape(struct tutti_comm *comm, uint64_t stamp)
{
    const struct shape *shape = check_remembered(comm, stamp);
    bool fast = shape->algorithm == &algorithm_table[ALGORITHM_ALL_REDUCE_INLINE]
        || (shape->algorithm == &algorithm_table[ALGORITHM_ALL_REDUCE_EAGER]
            && shape->bytes <= FAST_BYTES);
    return stamp && shape->stamp == stamp && fast && shape->fold && shape->bytes ? shape : NULL;
}

/* True: the buffers need no refusal, and are not device memory. */
static inline bool all_reduce_plain(const struct tutti_comm *comm, const void *send,
                                    const void *recv, size_t bytes)
{
    uintptr_t a = (uintptr_t)send, b = (uintptr_t)recv;
    if (!a || !b || (a != b && a < b + bytes && b < a + bytes))
        return false;
    bool one_page = (a ^ b) >> 12 == 0;              /* then both are the same kind of memory */
    return (device_host_known(comm->world, send)
            && (one_page || device_host_known(comm->world, recv)))
        || !driver_loaded();
}

/* True: the same call as the last one, found by one comparison. */
static inline bool all_reduce_again(const struct tutti_comm *comm, const void *send,
                                    const void *recv, size_t count, tutti_type type, tutti_op op)
{
    const struct again *a = &comm->api.again;
    uint64_t differs = ((uintptr_t)a->send ^ (uintptr_t)send)
        | ((uintptr_t)a->recv ^ (uintptr_t)recv) | (a->count ^ count)
        | (uint64_t)(unsigned)(a->type ^ type) | (uint64_t)(unsigned)(a->op ^ op);
    return !differs
        && (a->how == AGAIN_FIXED
            || (a->how == AGAIN_ASK && all_reduce_plain(comm, send, recv, a->shape->bytes)));
}

/* Remembers a call that differs from the last one, if it may take the fast path. False: it may
   not. */
static __attribute__((noinline)) bool all_reduce_first(struct tutti_comm *comm, const void *send,
                                                       void *recv, size_t count, tutti_type type,
                                                       tutti_op op)
{
    const struct shape *shape = all_reduce_shape(comm,
                                                 check_stamp(KIND_ALL_REDUCE, count, type, op, 0));
    if (!shape || !all_reduce_plain(comm, send, recv, shape->bytes))
        return false;
    bool fixed = device_host_fixed(comm->world, send) && device_host_fixed(comm->world, recv);
    comm->api.again = (struct again){
        send, recv, count, type, op, 0, KIND_ALL_REDUCE, fixed ? AGAIN_FIXED : AGAIN_ASK, shape
    };
    return true;
}

/* A call on the fast path, as its steps need it. */
struct reduce {
    const struct shape *shape;
    const void *send;
    void *recv;
    size_t count;
    uint64_t mine;                     /* this rank's contribution, if it is a word */
    bool usual;                        /* the floating-point modes are the default ones */
};

/* Goes on with the call that is remembered as the last one. */
static __attribute__((noinline)) int all_reduce_resume(struct tutti_comm *comm, struct fast_saved s)
{
    struct coll c;
    const struct again *a = &comm->api.again;
    all_reduce_describe(&c, a->send, a->recv, a->shape, a->count, a->type, a->op);
    return fast_resume(comm, &c, s, KIND_ALL_REDUCE, comm->watch.timeout_ns);
}

static inline __attribute__((always_inline))
int all_reduce_fast(struct tutti_comm *comm, const struct fast_op *op, uint32_t site,
                    const struct shape *shape, int algorithm, const void *send, void *recv,
                    size_t count)
{
    struct reduce d = { shape, send, recv, count, 0, true };
    struct fast s;
    fast_begin(comm, &s, KIND_ALL_REDUCE, shape->stamp, count, shape->bytes, site,
               (uint32_t)algorithm + 1);
    return fast_run(comm, op, &s, &d) == FAST_DONE ? 0 : all_reduce_resume(comm, fast_saved(&s));
}

/* A function of its own, because the array of all ranks' lines is a page of stack. */
static __attribute__((noinline)) void all_reduce_fold(const struct watch *w, uint64_t seq,
                                                      size_t count, const struct shape *shape,
                                                      const void *send, void *recv, bool usual)
{
    const void *from[RANKS_MAX];
    inline_sources(w, seq, send, from);
    coll_fold_by(shape->fold, recv, from, w->size, count, usual);
}

static inline void reduce_modes(void *data)
{
    struct reduce *d = data;
    d->usual = modes_usual();
}

static inline void reduce_modes_word(void *data)
{
    struct reduce *d = data;
    d->usual = !d->shape->floats || modes_usual();
}

static inline int reduce_put_word(struct tutti_comm *comm, const struct fast *s, void *data)
{
    struct reduce *d = data;
    struct arrival *a = &comm->watch.mine->arrival[s->claim.seq & 1];
    d->mine = inline_word(d->send, d->shape->bytes);
    store_relaxed64(&a->payload[0], d->mine);                        /* relaxed: E1 publishes it */
    return 0;
}

static inline bool reduce_take_word(struct tutti_comm *comm, struct fast *s, void *data)
{
    const struct reduce *d = data;
    const struct watch *w = &comm->watch;
    size_t bytes = d->shape->bytes;
    uint64_t seq = s->claim.seq;
    if (d->usual)
        inline_put_word(d->recv, inline_words(w, seq, w->size, 0, bytes, d->shape->word, d->mine),
                        bytes);
    else
        all_reduce_fold(w, seq, 1, d->shape, d->send, d->recv, false);
    return true;
}

static inline int reduce_put_line(struct tutti_comm *comm, const struct fast *s, void *data)
{
    const struct reduce *d = data;
    inline_store(&comm->watch, s->claim.seq, d->send, d->shape->bytes);
    return 0;
}

static inline bool reduce_take_line(struct tutti_comm *comm, struct fast *s, void *data)
{
    const struct reduce *d = data;
    all_reduce_fold(&comm->watch, s->claim.seq, d->count, d->shape, d->send, d->recv, d->usual);
    return true;
}

static inline int reduce_put_slot(struct tutti_comm *comm, const struct fast *s, void *data)
{
    const struct reduce *d = data;
    eager_store(comm, s->claim.seq, d->send, d->shape->bytes);
    return 0;
}

static inline size_t reduce_reads_slot(const void *data, size_t *from)
{
    const struct reduce *d = data;
    *from = 0;
    return d->shape->bytes;
}

static inline __attribute__((always_inline))
bool reduce_take_slot(struct tutti_comm *comm, struct fast *s, void *data)
{
    const struct reduce *d = data;
    const void *from[RANKS_MAX];
    if (!eager_sources(comm, s->claim.seq, d->send, d->shape->bytes, from))
        return false;
    coll_fold_by(d->shape->fold, d->recv, from, comm->watch.size, d->count, d->usual);
    return true;
}

/* A single element that is a word. */
static inline __attribute__((always_inline)) int all_reduce_word(struct tutti_comm *comm,
                                                                 uint32_t site,
                                                                 const struct shape *shape,
                                                                 const void *send, void *recv)
{
    static const struct fast_op op = {
        .put = reduce_put_word, .meanwhile = reduce_modes_word, .take = reduce_take_word
    };
    return all_reduce_fast(comm, &op, site, shape, ALGORITHM_ALL_REDUCE_INLINE, send, recv, 1);
}

static __attribute__((noinline)) int all_reduce_few(struct tutti_comm *comm, uint32_t site,
                                                    const struct shape *shape, const void *send,
                                                    void *recv, size_t count)
{
    static const struct fast_op op = {
        .put = reduce_put_line, .meanwhile = reduce_modes, .take = reduce_take_line
    };
    return all_reduce_fast(comm, &op, site, shape, ALGORITHM_ALL_REDUCE_INLINE, send, recv, count);
}

static __attribute__((noinline)) int all_reduce_slots(struct tutti_comm *comm, uint32_t site,
                                                      const struct shape *shape, const void *send,
                                                      void *recv, size_t count)
{
    static const struct fast_op op = {
        .put = reduce_put_slot, .meanwhile = reduce_modes, .reads = reduce_reads_slot,
        .take = reduce_take_slot
    };
    return all_reduce_fast(comm, &op, site, shape, ALGORITHM_ALL_REDUCE_EAGER, send, recv, count);
}

static __attribute__((noinline)) int all_reduce_any(struct tutti_comm *comm, uint32_t site,
                                                    const void *send, void *recv, size_t count,
                                                    tutti_type type, tutti_op op,
                                                    const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, recv, count, type, op, 0);
    return collective_entered(comm, &c, KIND_ALL_REDUCE, site, call);
}

int tutti_all_reduce_at(const char *site, const void *send, void *recv, size_t count,
                        tutti_type type, tutti_op op, tutti_comm *comm, const tutti_call *call)
{
    guard_clear(call);
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    uint32_t number = guard_site(comm, site);
    /* check_data looks up longer calls, once */
    if (call || count > FAST_BYTES || !fast_may(comm))
        return all_reduce_any(comm, number, send, recv, count, type, op, call);
    if (!all_reduce_again(comm, send, recv, count, type, op)
        && !all_reduce_first(comm, send, recv, count, type, op))
        return all_reduce_any(comm, number, send, recv, count, type, op, call);
    const struct shape *shape = comm->api.again.shape;
    if (shape->word)
        r = all_reduce_word(comm, number, shape, send, recv);
    else if (shape->algorithm == &algorithm_table[ALGORITHM_ALL_REDUCE_INLINE])
        r = all_reduce_few(comm, number, shape, send, recv, count);
    else if (eager_ready(comm, comm->seq + 1, shape->bytes))
        r = all_reduce_slots(comm, number, shape, send, recv, count);
    else
        return all_reduce_any(comm, number, send, recv, count, type, op, call);
    return guard_leave(comm, r);
}

int tutti_all_reduce(const void *send, void *recv, size_t count, tutti_type type, tutti_op op,
                     tutti_comm *comm, const tutti_call *call)
{
    return tutti_all_reduce_at(NULL, send, recv, count, type, op, comm, call);
}
