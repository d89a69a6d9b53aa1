/* A first exchange on the parent gives color and key of each rank to all, in the arrival lines.
 * Then each group finds or makes its slot. A second exchange tells all ranks whether each of them
 * could: so the split succeeds or fails on all ranks of the parent.
 * Cost: two barriers and a lock of microseconds. */
#include "group/directory.h"
#include "group/exchange.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pick { int key; uint32_t rank; };

static int pick_order(const void *left, const void *right)
{
    const struct pick *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The world ranks of my color in their new order; *mine: my rank there. How many, or -ENOMEM. */
static int split_members(const struct tutti_comm *parent, uint64_t seq, int color, int key,
                         uint32_t **world_rank, uint32_t *mine)
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
            picks[n++] =
                (struct pick){ p == parent->watch.me ? key : (int)exchanged(parent, seq, p, 1), p };
    qsort(picks, (size_t)n, sizeof *picks, pick_order);
    for (int i = 0; i < n; i++) {
        (*world_rank)[i] = watch_world_rank(&parent->watch, picks[i].rank);
        if (picks[i].rank == parent->watch.me)
            *mine = (uint32_t)i;
    }
    free(picks);
    return n;
}

/* A rank has failed. Frees the slot for the ranks of our group that failed, and so have no hold on
 * it, then for ourselves. */
static void split_undo(const struct tutti_comm *parent, uint64_t seq, struct tutti_comm *made)
{
    for (uint32_t p = 0; p < parent->watch.size; p++)
        for (uint32_t i = 0; exchanged(parent, seq, p, 0) && i < made->watch.size; i++)
            if (watch_world_rank(&made->watch, i) == watch_world_rank(&parent->watch, p))
                fetch_or32(&made->watch.members[i].quit, QUIT_FREED | QUIT_OVER);   /* E7 release */
    comm_drop(made);
}

int comm_split(struct tutti_comm *parent, uint32_t site, int color, int key,
               struct tutti_comm **comm)
{
    uint64_t seq;
    *comm = NULL;
    int r = comm_exchange(parent, KIND_SPLIT, site, (uint64_t)(uint32_t)color,
                          (uint64_t)(uint32_t)key, &seq);
    if (r < 0)
        return r;
    parent->splits++;
    uint32_t *world_rank = NULL, mine = 0;
    struct tutti_comm *made = NULL;
    int mended = 0;
    if (color >= 0) {
        mended = split_members(parent, seq, color, key, &world_rank, &mine);
        if (mended > 0) {
            struct directory_key name = {
                parent->birth, parent->splits, color, world_rank, (uint32_t)mended
            };
            struct slot *slot;
            mended = comm_slot(parent->world, &name, &slot);
            if (mended == 0)
                made = comm_open(parent->world, slot, mine, &mended);
            if (mended < 0 && slot)
                /* E7 release */
                fetch_or32(&arena_member(slot, mine)->quit, QUIT_FREED | QUIT_OVER);
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
                         comm_reason(r));
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
