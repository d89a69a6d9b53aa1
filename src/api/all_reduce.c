/* All_reduce. What fits an arrival line goes in a straight line where a call like it has passed the checks before and everybody is there soon:
 * the time of a barrier and of a fold. All else is a collective like any other. */
#define TUTTI_NO_SITES
#include "api/collective.h"
#include "api/straight.h"
#include "coll/line.h"
#include "coll/modes.h"

static void all_reduce_describe(struct coll *c, const void *send, void *recv, const struct shape *shape, size_t count, tutti_type type, tutti_op op)
{
    check_describe(c, send, recv, count, type, op, 0);
    c->width = shape->width;
    c->bytes = shape->bytes;
    c->algorithm = shape->algorithm;
    c->fold = shape->fold;
}

/* The shape of calls like this one, if they go by lines: one element or more. NULL: they do not, or there was none yet. */
static inline const struct shape *all_reduce_shape(struct tutti_comm *comm, uint64_t stamp)
{
    const struct shape *shape = check_remembered(comm, stamp);
    return stamp && shape->stamp == stamp && shape->algorithm == &all_reduce_line && shape->fold && shape->bytes ? shape : NULL;
}

/* Nothing is the matter with the buffers that needs words, or a device. */
static inline bool all_reduce_plain(const struct tutti_comm *comm, const void *send, const void *recv, size_t bytes)
{
    uintptr_t a = (uintptr_t)send, b = (uintptr_t)recv;
    if (!a || !b || (a != b && a < b + bytes && b < a + bytes))
        return false;
    bool one_page = (a ^ b) >> 12 == 0;              /* then they are of one kind of memory */
    return (device_host_known(comm->world, send) && (one_page || device_host_known(comm->world, recv))) || !driver_loaded();
}

static __attribute__((noinline)) int all_reduce_on(struct tutti_comm *comm, struct straight s, const struct shape *shape, const void *send, void *recv)
{
    struct coll c;
    uint64_t stamp = s.claim.descriptor;
    all_reduce_describe(&c, send, recv, shape, s.claim.count, (tutti_type)stamp_type(stamp), (tutti_op)stamp_op(stamp));
    return straight_on(comm, &c, s, KIND_ALL_REDUCE, comm->watch.timeout_ns);
}

/* A function of its own, as the places of all ranks' lines are a page of stack. */
static __attribute__((noinline)) void all_reduce_fold(const struct watch *w, uint64_t seq, size_t count, const struct shape *shape, const void *send,
                                                      void *recv)
{
    const void *from[RANKS_MAX];
    line_sources(w, seq, send, from);
    coll_fold_by(shape->fold, recv, from, w->size, count);
}

/* A single element that is a word, under the usual modes. */
static inline void all_reduce_word(const struct watch *w, uint64_t seq, const struct shape *shape, const void *send, void *recv)
{
    uint64_t acc = 0;
    for (uint32_t p = 0; p < w->size; p++) {
        /* relaxed: after E1 */
        uint64_t word = p == w->me ? line_word(send, shape->bytes) : load_relaxed64(&watch_arrival(w, p, seq)->payload[0]);
        acc = p == 0 ? word : shape->word(acc, word, p + 1 == w->size ? w->size : 0);
    }
    line_put_word(recv, acc, shape->bytes);
}

static inline __attribute__((always_inline)) int all_reduce(struct tutti_comm *comm, uint32_t site, uint64_t stamp, const struct shape *shape,
                                                            const void *send, void *recv, size_t count)
{
    struct straight s;
    straight_begin(comm, &s, KIND_ALL_REDUCE, stamp, count, site);
    line_store(&comm->watch, s.claim.seq, send, shape->bytes);
    straight_arrive(comm, &s, shape->bytes);
    bool word = shape->word && modes_usual();        /* to read the modes takes as long as to fold a word */
    if (!straight_met(comm, &s, SETTLE_READY))
        return all_reduce_on(comm, s, shape, send, recv);
    if (word)
        all_reduce_word(&comm->watch, s.claim.seq, shape, send, recv);
    else
        all_reduce_fold(&comm->watch, s.claim.seq, count, shape, send, recv);
    return straight_end(comm, &s);
}

static __attribute__((noinline)) int all_reduce_any(struct tutti_comm *comm, uint32_t site, const void *send, void *recv, size_t count, tutti_type type,
                                                    tutti_op op, const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, recv, count, type, op, 0);
    return collective_entered(comm, &c, KIND_ALL_REDUCE, site, call);
}

int tutti_all_reduce_at(const char *site, const void *send, void *recv, size_t count, tutti_type type, tutti_op op,
                        tutti_comm *comm, const tutti_call *call)
{
    enter_clear(call);
    int r = enter(comm);
    if (r < 0)
        return r;
    uint32_t number = comm_site(comm, site);
    bool may = !call && count <= LINE_BYTES && straight_may(comm);           /* what is too long for a line is looked up once, by check_data */
    uint64_t stamp = may ? check_stamp(KIND_ALL_REDUCE, count, type, op, 0) : 0;
    const struct shape *shape = may ? all_reduce_shape(comm, stamp) : NULL;
    if (shape && all_reduce_plain(comm, send, recv, shape->bytes))
        return enter_leave(comm, all_reduce(comm, number, stamp, shape, send, recv, count));
    return all_reduce_any(comm, number, send, recv, count, type, op, call);
}

int tutti_all_reduce(const void *send, void *recv, size_t count, tutti_type type, tutti_op op, tutti_comm *comm, const tutti_call *call)
{
    return tutti_all_reduce_at(NULL, send, recv, count, type, op, comm, call);
}
