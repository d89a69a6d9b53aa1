/* parts.h says who gives what, and that decides which buffers may overlap: if a rank takes as much
 * as it gives, send == recv; else the smaller buffer is this rank's block of the larger. */
#define TUTTI_NO_SITES
#include "api/check.h"

#include "api/device.h"
#include "engine/guard.h"
#include "coll/parts.h"
#include "coll/select.h"
#include "fold/scalar.h"

#include <stdlib.h>
#include <string.h>

static int check_fold(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site)
{
    const char *why = NULL;
    if ((unsigned)c->oper >= TUTTI_OP_USER && (unsigned)c->oper <= TUTTI_OP_MAX) {
        uint32_t number = (uint32_t)c->oper - TUTTI_OP_USER;
        c->fold.user = number < comm->api.ops_room ? comm->api.ops[number].fn : NULL;
        return c->fold.user
            ? 0
            : guard_refuse(comm, kind, site,
                           "operation %d is none of this comm; make it with tutti_op_create",
                           (int)c->oper);
    }
    if (c->oper == TUTTI_PREMUL_SUM)
        c->fold.scaled = fold_find_scaled(c->type, &why);
    else
        c->fold.kernel = fold_find(c->type, c->oper, &why);
    return c->fold.kernel || c->fold.scaled
        ? 0
        : guard_refuse(comm, kind, site, "%s", why ? why : "this type has no such operation");
}

static bool check_each(enum kind kind) { return parts_of(kind) & PARTS_EACH; }

/* Checks type, count, root and operation: what the stamp holds. */
static int check_shape(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site)
{
    size_t blocks = check_each(kind) || kind == KIND_ALL_GATHER || kind == KIND_GATHER
        ? comm->watch.size
        : 1;
    c->width = fold_type_size(c->type);
    if (c->width == 0)
        return guard_refuse(comm, kind, site, "%d is no tutti_type", (int)c->type);
    if (c->count > PTRDIFF_MAX / c->width / blocks)
        return guard_refuse(comm, kind, site, "count %zu of %s is more than an address space holds",
                            c->count, fold_type_name(c->type));
    if (c->root < 0 || (uint32_t)c->root >= comm->watch.size)
        return guard_refuse(comm, kind, site, "root %d is no rank of this comm; there are 0 to %u",
                            c->root, comm->watch.size - 1);
    c->bytes = c->count * c->width * (check_each(kind) ? comm->watch.size : 1);
    c->even = parts_even(kind, &comm->watch, (uint32_t)c->root, c->count * c->width);
    return kind_reduces(kind) ? check_fold(comm, c, kind, site) : 0;
}

static int check_call(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                      const tutti_call *call)
{
    if (c->fold.scaled) {
        if (!call || !call->factor)
            return guard_refuse(comm, kind, site,
                                "TUTTI_PREMUL_SUM needs call.factor: one %s, this rank's own",
                                fold_type_name(c->type));
        int r = device_refuse(comm, kind, site, "call.factor", call->factor, c->width);
        if (r < 0)
            return r;
        c->fold.factor[0] = c->fold.factor[1] = 0;
        memcpy(c->fold.factor, call->factor, c->width);
    }
    if (!call)
        return 0;
    return guard_call(comm, kind, site, call);
}

int check_data(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
               const tutti_call *call)
{
    uint64_t stamp = c->lists.n ? 0 : check_stamp(kind, c->count, c->type, c->oper, c->root);
    struct shape *shape = check_remembered(comm, stamp);
    int r = 0;
    if (stamp && shape->stamp == stamp) {
        check_shaped(c, shape);
    } else {
        r = check_shape(comm, c, kind, site);
        if (r == 0)
            c->algorithm = select_algorithm(comm->world->rules, kind, select_comms(comm),
                                            c->bytes + (c->fold.scaled ? FACTOR_BYTES : 0));
        if (r == 0 && stamp) {
            if (comm->api.again.shape == shape)
                comm->api.again.how = AGAIN_NEVER;
            if (comm->api.again_parts.shape == shape)
                comm->api.again_parts.how = AGAIN_NEVER;
            *shape = (struct shape){
                stamp, c->width, c->bytes, c->algorithm, c->fold.kernel, c->fold.scaled, NULL,
                c->type >= TUTTI_F16, c->even
            };
            if (c->fold.kernel && c->algorithm->most == INLINE_BYTES && c->count == 1
                && comm->watch.size > 1)
                shape->word = fold_word(c->type, c->oper);
        }
    }
    return r < 0 || (!call && !c->fold.scaled) ? r : check_call(comm, c, kind, site, call);
}

/* True: [a, a + more) touches [b, b + less), and b is not the allowed place. */
static bool check_overlaps(const char *a, size_t more, const char *b, size_t less,
                           const char *allowed)
{
    return b != allowed && (uintptr_t)a < (uintptr_t)b + less && (uintptr_t)b < (uintptr_t)a + more;
}

int check_buffers(struct tutti_comm *comm, const struct coll *c, enum kind kind, uint32_t site)
{
    unsigned how = parts_of(kind);
    uint32_t me = comm->watch.me, size = comm->watch.size;
    bool at_root = (uint32_t)c->root == me, sends = !(how & PARTS_ROOT_GIVES) || at_root,
         takes = kind == KIND_REDUCE || (how & PARTS_ROOT_TAKES) ? at_root : true;
    size_t block = c->count * c->width;
    size_t sent = block * (how & PARTS_EACH ? size : 1),
           taken = block
        * (kind == KIND_ALL_GATHER || kind == KIND_GATHER || kind == KIND_ALL_TO_ALL ? size : 1);
    if (kind == KIND_EXSCAN && me == 0)
        takes = false;
    if (block && sends && !c->send)
        return guard_refuse(comm, kind, site, "the %sbuffer is NULL with count %zu",
                            kind == KIND_BROADCAST ? "" : "send ", c->count);
    if (block && takes && !c->recv)
        return guard_refuse(comm, kind, site, "the receive buffer is NULL with count %zu",
                            c->count);
    if (!block || !sends || !takes || kind == KIND_BROADCAST)
        return 0;
    const char *send = c->send, *recv = c->recv;
    bool bad = sent < taken ? check_overlaps(recv, taken, send, sent, recv + me * block)
             : check_overlaps(send, sent, recv, taken, sent == taken ? send : send + me * block);
    if (!bad)
        return 0;
    if (sent == taken && size > 1)
        return guard_refuse(comm, kind, site,
                            "send and recv overlap; give the same buffer twice for in place, or "
                            "two that do not touch");
    return guard_refuse(comm, kind, site,
                        "send and recv overlap; in place, %s is block %u of the other; else they "
                        "must not touch",
                        sent < taken ? "send" : "recv", me);
}

/* ---- lists ---- */

struct buffer_range { const char *at; size_t bytes; bool taken; };

static int stretch_order(const void *left, const void *right)
{
    const struct buffer_range *a = left, *b = right;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* True: some taken byte is also given, or taken twice. */
static bool check_touch(struct buffer_range *all, size_t n)
{
    const char *given = NULL, *taken = NULL;         /* the furthest ends so far */
    qsort(all, n, sizeof *all, stretch_order);
    for (size_t i = 0; i < n; i++) {
        const char *end = all[i].at + all[i].bytes;
        if ((uintptr_t)all[i].at < (uintptr_t)taken
            || (all[i].taken && (uintptr_t)all[i].at < (uintptr_t)given))
            return true;
        if (all[i].taken)
            taken = (uintptr_t)end > (uintptr_t)taken ? end : taken;
        else
            given = (uintptr_t)end > (uintptr_t)given ? end : given;
    }
    return false;
}

static size_t stretch_add(struct buffer_range *all, size_t n, const void *at, size_t bytes,
                          bool taken)
{
    if (bytes)
        all[n++] = (struct buffer_range){ at, bytes, taken };
    return n;
}

static size_t count_of(const size_t *counts, uint32_t n, uint32_t i)
{
    return n == 1 ? counts[0] : counts[i];
}

static int check_list_overlaps(struct tutti_comm *comm, const struct coll *c, enum kind kind,
                               uint32_t site, struct sides s)
{
    struct buffer_range *all = calloc((size_t)s.gives + s.takes + 1, sizeof *all);
    size_t n = 0;
    if (!all)
        return guard_fail(comm, kind, site, -ENOMEM, "no memory to compare %u buffers",
                          s.gives + s.takes);
    for (uint32_t p = 0; p < s.takes; p++)
        n = stretch_add(all, n, c->lists.recv[p],
                        c->lists.recv_counts[s.takes == 1 && (parts_of(kind) & PARTS_FOLD)
                                                 ? comm->watch.me
                                                 : p]
                            * c->width,
                        true);
    for (uint32_t p = 0; p < s.gives; p++) {
        /* In place: the block that this rank keeps, or that the same rank gives back. */
        uint32_t twin = s.gives == s.takes ? p : s.gives > s.takes ? 0 : comm->watch.me;
        bool own = s.gives == s.takes || p == comm->watch.me || s.gives == 1;
        size_t given = c->lists.send_counts[p] * c->width, back = 0;
        if (s.takes && own && c->lists.send[p] == c->lists.recv[twin])
            back = kind == KIND_ALL_TO_ALL_V ? c->lists.recv_counts[p] * c->width : given;
        if (given > back)   /* the rest of what is given must not be touched, either */
            n = stretch_add(all, n, (const char *)c->lists.send[p] + back, given - back, false);
    }
    bool bad = check_touch(all, n);
    free(all);
    return bad ? guard_refuse(comm, kind, site,
                              "buffers overlap; receive buffers must not touch each other or what "
                              "is sent, but for a block in place")
               : 0;
}

static int check_list(struct tutti_comm *comm, const struct coll *c, enum kind kind, uint32_t site,
                      const char *what, const void *const *at, const size_t *counts, uint32_t n,
                      size_t *sum, size_t *most)
{
    *sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (counts[i] > (size_t)PTRDIFF_MAX / c->width - *sum)
            return guard_refuse(comm, kind, site,
                                "the counts add up to more than an address space holds");
        if (counts[i] && at && !at[i])
            return guard_refuse(comm, kind, site, "%s buffer %u is NULL with count %zu", what, i,
                                counts[i]);
        *sum += counts[i];
        *most = counts[i] > *most ? counts[i] : *most;
    }
    return 0;
}

/* Checks that this rank gives itself as much as it takes from itself. */
static int check_own(struct tutti_comm *comm, const struct coll *c, enum kind kind, uint32_t site,
                     struct sides s)
{
    if (!s.gives || !s.takes || kind == KIND_ALL_REDUCE_MANY || (parts_of(kind) & PARTS_FOLD))
        return 0;
    uint32_t me = comm->watch.me;
    size_t gives = count_of(c->lists.send_counts, s.gives, me),
           takes = count_of(c->lists.recv_counts, s.takes, me);
    return gives == takes
        ? 0
        : guard_refuse(comm, kind, site, "this rank, %u, gives itself %zu elements but takes %zu",
                       me, gives, takes);
}

int check_lists(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site)
{
    unsigned how = parts_of(kind);
    struct sides s = parts_sides(comm, c, kind);
    size_t sent = 0, taken = 0, most = 0;
    c->lists.most = 0;
    if ((s.gives && (!c->lists.send || !c->lists.send_counts))
        || (s.takes && (!c->lists.recv || !c->lists.recv_counts)))
        return guard_refuse(comm, kind, site, "a list of buffers or of counts is NULL");
    int r = check_list(comm, c, kind, site, "send", c->lists.send, c->lists.send_counts, s.gives,
                       &sent, &c->lists.most);
    bool counts_of_all = (how & PARTS_FOLD) && (how & PARTS_UNEVEN);
    if (r == 0 && !counts_of_all)
        r = check_list(comm, c, kind, site, "receive", (const void *const *)c->lists.recv,
                       c->lists.recv_counts, s.takes, &taken, &most);
    if (r == 0 && counts_of_all && c->lists.recv_counts[comm->watch.me] && !c->lists.recv[0])
        r = guard_refuse(comm, kind, site, "the receive buffer is NULL with count %zu",
                         c->lists.recv_counts[comm->watch.me]);
    if (r == 0)
        r = check_own(comm, c, kind, site, s);
    if (r == 0)
        r = check_list_overlaps(comm, c, kind, site, s);
    if (r < 0)
        return r;
    if (kind == KIND_ALL_GATHER_V)
        c->lists.most = most;
    c->count = sent > taken ? sent : taken;
    c->bytes = (kind == KIND_ALL_GATHER_V ? most : c->count) * c->width;
    if (!(how & PARTS_PAIRS)) {
        const size_t *counts = kind == KIND_ALL_REDUCE_MANY ? c->lists.send_counts
                                                            : c->lists.recv_counts;
        c->list_hash = text_hash(counts, (size_t)c->lists.n * sizeof *counts, (uint64_t)c->lists.n)
            | 1;
    } else
        c->count = 0;                      /* each rank has its own count: not in the fingerprint */
    c->algorithm = select_algorithm(comm->world->rules, kind, select_comms(comm),
                                    c->bytes + (c->fold.scaled ? FACTOR_BYTES : 0));
    return 0;
}
