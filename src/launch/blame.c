/* The search for the rank that failed first. When one rank dies, the others fail because of it,
 * within a millisecond or so. The dead rank may even be reaped last, since a process gives its
 * memory back before it becomes a zombie. So what the ranks themselves found counts most, in this
 * order:
 *   1. the rank whose absence made the joining fail;
 *   2. the rank that a verdict in the arena names: died before left, the world before other comms;
 *   3. a rank that had joined and was killed by a signal that is not ours;
 *   4. the order in which we saw the ends; in a tie a signal counts before an exit status.
 * A rank that ended only after we had told it to is never blamed, nor one with exit status 0.
 * Cost: read once, after a failure, when all ranks have ended. */
#include "launch/children.h"

#include "watch/verdict.h"

#include <signal.h>
#include <sys/wait.h>

static bool guilty(const struct children *children, uint32_t rank)
{
    if (rank >= (uint32_t)children->size)
        return false;
    const struct child *c = &children->child[rank];
    return c->ended && c->status != 0 && !c->ours;
}

static int by_join(const struct children *children)
{
    const struct arena_join *join = children->arena->join;
    if (load_acquire32(&join->state) != JOIN_FAILED)              /* E12 acquire */
        return -1;
    uint32_t rank = load_relaxed32(&join->failed_rank) - 1;       /* relaxed: E12 has ordered it */
    return guilty(children, rank) ? (int)rank : -1;
}

static int by_verdict(const struct children *children, enum why why)
{
    uint32_t slots = load_acquire32(&children->arena->join->reached);           /* E80 acquire */
    for (uint32_t i = 0; i < slots && i < children->arena->header->slots; i++) {
        struct slot *slot = arena_slot(children->arena, i);
        uint64_t v = load_acquire64(&slot->verdict);                                /* E7 acquire */
        if (load_acquire32(&slot->state) != SLOT_USED || verdict_state(v) == 0
            || verdict_why(v) != why)
            continue;
        uint32_t rank = arena_slot_rank(children->arena, slot, verdict_who(v));
        if (guilty(children, rank))
            return (int)rank;
    }
    return -1;
}

static bool joined(const struct children *children, int rank)
{
    return load_acquire32(&children->arena->seats[rank].state) >= SEAT_JOINED;  /* E11 acquire */
}

static int by_end(const struct children *children, bool killed_member)
{
    int first = -1;
    for (int r = 0; r < children->size; r++) {
        const struct child *c = &children->child[r];
        if (!guilty(children, (uint32_t)r)
            || (killed_member && !(WIFSIGNALED(c->status) && joined(children, r))))
            continue;
        if (first < 0 || c->turn < children->child[first].turn
            || (c->turn == children->child[first].turn && WIFSIGNALED(c->status)
                && !WIFSIGNALED(children->child[first].status)))
            first = r;
    }
    return first;
}

int children_blame(const struct children *children)
{
    int rank = by_join(children);
    if (rank < 0)
        rank = by_verdict(children, WHY_DIED);
    if (rank < 0)
        rank = by_verdict(children, WHY_LEFT);
    if (rank < 0)
        rank = by_end(children, true);
    return rank < 0 ? by_end(children, false) : rank;
}

int children_exit_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void add_others(const struct children *children, int rank, struct text *t)
{
    int failed = 0, ours = 0, status = 0;
    bool same = true;
    for (int r = 0; r < children->size; r++) {
        const struct child *c = &children->child[r];
        if (r == rank || !c->ended)
            continue;
        ours += c->ours;
        if (c->ours || c->status == 0)
            continue;
        same = same && (failed == 0 || c->status == status);
        status = c->status;
        failed++;
    }
    if (failed) {
        text_add(t, "; %d other rank%s ended because of it", failed, failed > 1 ? "s" : "");
        if (same) {
            text_add(t, " (");
            process_add_status(t, status);
            text_add(t, ")");
        }
    }
    if (ours)
        text_add(t, "; %d %srank%s ended by tutti run", ours, failed ? "" : "other ",
                 ours > 1 ? "s were" : " was");
}

void children_add_blame(const struct children *children, int rank, struct text *t)
{
    const struct child *c = &children->child[rank];
    text_add(t, "rank %d (pid %d) %s ", rank, (int)c->pid,
             WIFSIGNALED(c->status) ? "was" : "ended with");
    process_add_status(t, c->status);
    add_others(children, rank, t);
}
