/* split: one exchange over the parent (color and key travel in the arrival lines), then every group finds or makes its slot, then a
 * second exchange that tells all ranks whether everybody could: so the whole split succeeds or fails on all of the parent. Costs two
 * barriers and a lock of microseconds.
 * create: the listed ranks find or make the slot by the list, and meet in a first operation on the new comm; what goes wrong there
 * breaks only that one. */
#include "group/comm.h"

#include "base/clock.h"
#include "group/directory.h"
#include "watch/drive.h"
#include "watch/journal.h"
#include "watch/rollcall.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct exchange { struct op op; bool arrived; };

static int exchange_advance(struct op *op)
{
    struct exchange *x = (struct exchange *)op;
    if (!x->arrived) {
        watch_arrive(op->watch, &op->claim);
        x->arrived = true;
    }
    return watch_all_arrived(op);
}

/* One operation whose payload is two words; afterwards peers' words are in their arrival lines of this number until we arrive at the next. */
static int comm_exchange(struct tutti_comm *comm, enum kind kind, uint32_t site, uint64_t first, uint64_t second, uint64_t *seq)
{
    struct watch *w = &comm->watch;
    struct exchange x = { .op = { .watch = w, .advance = exchange_advance, .site = site, .timeout_ns = w->timeout_ns } };
    x.op.claim = (struct claim){ .seq = ++comm->seq, .descriptor = stamp_make(kind, 0, 0, 0, 0) };
    struct arrival *mine = &w->mine->arrival[x.op.claim.seq & 1];
    store_relaxed64(&mine->payload[0], first);                       /* relaxed: E1 publishes it */
    store_relaxed64(&mine->payload[1], second);                      /* relaxed: E1 publishes it */
    journal_begin(w, x.op.claim.seq, x.op.claim.descriptor, 0, site, clock_tick());
    int r = drive_to_end(&x.op);
    if (r < 0 && w->failed) {
        char room[REPORT_TEXT];
        struct text t = TEXT_IN(room);
        rollcall_failure(&t, w, &x.op);
        comm_show(comm, &t);
    }
    journal_end(w, r, clock_tick());
    *seq = x.op.claim.seq;
    return r;
}

static uint64_t exchanged(const struct tutti_comm *comm, uint64_t seq, uint32_t p, int word)
{
    return load_relaxed64(&watch_arrival(&comm->watch, p, seq)->payload[word]);      /* relaxed: after E1, in the exchange */
}

struct pick { int key; uint32_t rank; };

static int pick_order(const void *left, const void *right)
{
    const struct pick *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The ranks of my color in their new order, as world ranks; *mine: my place. Returns how many, or -ENOMEM. */
static int split_members(const struct tutti_comm *parent, uint64_t seq, int color, int key, uint32_t **world_rank, uint32_t *mine)
{
    uint32_t size = parent->watch.size;
    struct pick *picks = calloc(size, sizeof *picks);
    *world_rank = calloc(size, sizeof **world_rank);
    if (!picks || !*world_rank) {
        free(picks);
        return -ENOMEM;
    }
    int n = 0;
    for (uint32_t p = 0; p < size; p++)
        if (p == parent->watch.me || (int)exchanged(parent, seq, p, 0) == color)
            picks[n++] = (struct pick){ p == parent->watch.me ? key : (int)exchanged(parent, seq, p, 1), p };
    qsort(picks, (size_t)n, sizeof *picks, pick_order);
    for (int i = 0; i < n; i++) {
        (*world_rank)[i] = watch_world_rank(&parent->watch, picks[i].rank);
        if (picks[i].rank == parent->watch.me)
            *mine = (uint32_t)i;
    }
    free(picks);
    return n;
}

/* Some rank could not: those of our group that have no hold on its slot, as they said, never had it; then our hold goes, too. */
static void split_undo(const struct tutti_comm *parent, uint64_t seq, struct tutti_comm *made)
{
    for (uint32_t p = 0; p < parent->watch.size; p++)
        for (uint32_t i = 0; exchanged(parent, seq, p, 0) && i < made->watch.size; i++)
            if (watch_world_rank(&made->watch, i) == watch_world_rank(&parent->watch, p))
                fetch_or32(&made->watch.members[i].quit, QUIT_FREED | QUIT_OVER);        /* E7 release */
    comm_drop(made);
}

int comm_split(struct tutti_comm *parent, uint32_t site, int color, int key, struct tutti_comm **comm)
{
    uint64_t seq;
    *comm = NULL;
    int r = comm_exchange(parent, KIND_SPLIT, site, (uint64_t)(uint32_t)color, (uint64_t)(uint32_t)key, &seq);
    if (r < 0)
        return r;
    parent->splits++;
    uint32_t *world_rank = NULL, mine = 0;
    struct tutti_comm *made = NULL;
    int mended = 0;
    if (color >= 0) {
        mended = split_members(parent, seq, color, key, &world_rank, &mine);
        if (mended > 0) {
            struct directory_key name = { parent->birth, parent->splits, color, world_rank, (uint32_t)mended };
            struct slot *slot;
            mended = directory_find_or_make(&parent->world->arena, &name, &slot);
            if (mended == 0)
                made = comm_open(parent->world, slot, mine, &mended);
            if (mended < 0 && slot)
                fetch_or32(&arena_member(slot, mine)->quit, QUIT_FREED | QUIT_OVER);     /* E7 release */
        }
    }
    free(world_rank);
    r = comm_exchange(parent, KIND_SPLIT_END, site, (uint64_t)(uint32_t)-mended, 0, &seq);
    bool told = r == 0;
    for (uint32_t p = 0; r == 0 && p < parent->watch.size; p++) {
        uint64_t error = exchanged(parent, seq, p, 0);
        if (error) {
            r = error < 4096 ? -(int)error : -EIO;
            comm_explain(parent, "comm_split: rank %u could not make its comm: %s", p,
                         r == -ENOSPC ? "too many comms are open; free some" : strerror(-r));
        }
    }
    if (r < 0 && made) {
        if (told)
            split_undo(parent, seq, made);
        else
            comm_drop(made);
        return r;
    }
    if (made) {
        comm_inherit(made, parent);
        *comm = made;
    }
    return r;
}

/* How-many-th creation of this very list on this parent. */
static int creation_count(struct tutti_comm *parent, uint64_t list_hash, uint64_t *nth)
{
    for (size_t i = 0; i < parent->creations_used; i++)
        if (parent->creations[i].list_hash == list_hash) {
            *nth = ++parent->creations[i].n;
            return 0;
        }
    struct creation *more = realloc(parent->creations, (parent->creations_used + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    parent->creations = more;
    parent->creations[parent->creations_used++] = (struct creation){ list_hash, 1 };
    *nth = 1;
    return 0;
}

/* This rank has no hold on a slot that others may wait in for it: they are told, as by one that frees the comm at once. */
static void create_decline(struct slot *slot, uint32_t mine)
{
    shared32 *quit = &arena_member(slot, mine)->quit;
    fetch_or32(quit, QUIT_FREED);                                    /* E7 release */
    fetch_add32(&slot->news, 1);                                     /* E7 release */
    futex_wake(&slot->news, INT32_MAX);
    fetch_or32(quit, QUIT_OVER);                                     /* E7 release: the slot may be another comm's from here on */
}

int comm_create(struct tutti_comm *parent, uint32_t site, const int *ranks, int size, struct tutti_comm **comm)
{
    *comm = NULL;
    uint32_t world_rank[RANKS_MAX], mine = 0;
    for (int i = 0; i < size; i++) {
        world_rank[i] = watch_world_rank(&parent->watch, (uint32_t)ranks[i]);
        if ((uint32_t)ranks[i] == parent->watch.me)
            mine = (uint32_t)i;
    }
    uint64_t nth;
    struct slot *slot = NULL;
    int r = creation_count(parent, text_hash(world_rank, (size_t)size * sizeof *world_rank, 0), &nth);
    if (r == 0) {
        struct directory_key name = { parent->birth, nth, -1, world_rank, (uint32_t)size };
        r = directory_find_or_make(&parent->world->arena, &name, &slot);
    }
    struct tutti_comm *made = r == 0 ? comm_open(parent->world, slot, mine, &r) : NULL;
    if (!made) {
        if (slot)
            create_decline(slot, mine);
        comm_explain(parent, "comm_create: %s", r == -ENOSPC ? "too many comms are open; free some" : strerror(-r));
        return r;
    }
    comm_inherit(made, parent);
    uint64_t seq;
    r = comm_exchange(made, KIND_CREATE, site, 0, 0, &seq);
    if (r < 0) {
        char room[REPORT_TEXT];
        comm_read(made, room);
        comm_explain(parent, "%s", room);
        comm_drop(made);
        return r;
    }
    *comm = made;
    return 0;
}
