/* A walk reads one line for each thread it meets, and the arrivals of each collective it meets:
 * microseconds, once per long slice of a sleeper whose missing peer sleeps, too. A collective that
 * only waits for a busy rank makes no walk. If the graph is too large (NODES_MAX), or anything is
 * unclear, no cycle is found, and the deadline remains. */
#include "watch/wait_graph.h"

#include "watch/death.h"
#include "watch/threads.h"

#include <stdlib.h>

/* ---- reading ---- */

struct waiter *wait_graph_waiter(const struct wait_graph *g, const struct node *node)
{
    return &g->arena->seats[node->rank].waiters[node->thread];
}

static bool node_read(const struct wait_graph *g, struct node *node)
{
    const struct waiter *w = wait_graph_waiter(g, node);
    node->stamp = load_acquire64(&w->stamp);                         /* E60 acquire */
    if (!(node->stamp & 1))
        return false;
    /* relaxed: between two loads of the same odd stamp they do not change */
    node->birth = load_relaxed64(&w->birth);
    node->seq = load_relaxed64(&w->seq);
    node->me = load_relaxed32(&w->rank);
    node->kind = load_relaxed32(&w->kind);
    node->site = load_relaxed32(&w->site);
    node->about = load_relaxed32(&w->about);
    uint32_t slot = load_relaxed32(&w->slot);
    fence_full();                                                    /* E60 fence */
    /* E60 acquire */
    if (load_acquire64(&w->stamp) != node->stamp || slot >= g->arena->header->slots)
        return false;
    node->slot = arena_slot(g->arena, slot);
    return load_acquire32(&node->slot->state) == SLOT_USED && node->slot->birth == node->birth
        && node->me < arena_slot_size(g->arena, node->slot);
}

/* The node of that thread; -1: it does not wait. */
static int wait_graph_node(struct wait_graph *g, uint32_t rank, uint32_t thread)
{
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i].rank == rank && g->node[i].thread == thread)
            return i;
    if (g->nodes == NODES_MAX) {
        g->full = true;
        return -1;
    }
    struct node node = { .rank = rank, .thread = thread, .stuck = true };
    if (!node_read(g, &node))
        return -1;
    g->node[g->nodes] = node;
    return g->nodes++;
}

/* ---- the groups ---- */

/* The threads of a rank that could act, on any comm; 0: unknown. */
static uint32_t rank_callers(const struct seat *seat)
{
    uint32_t callers = load_acquire32(&seat->threads);               /* E62 acquire */
    if (load_acquire32(&seat->promises) || (callers & THREADS_MORE))            /* E62 acquire */
        return 0;
    /* no other bits exist, whatever the word holds */
    return callers & ((UINT32_C(1) << THREADS_MAX) - 1);
}

/* True: all threads of that rank that could help wait themselves. In its own rank that may be the
 * node's thread itself. */
static bool wait_graph_add(struct wait_graph *g, int node, uint32_t rank, uint32_t member)
{
    uint32_t callers = rank == RANK_NOBODY ? 0 : rank_callers(&g->arena->seats[rank]),
             own = UINT32_C(1) << g->node[node].thread;
    if (rank == g->node[node].rank && callers != own)
        callers &= ~own;
    if (g->groups == GROUPS_MAX)
        g->full = true;
    if (!callers || g->full)
        return false;
    struct group group = { .rank = rank, .member = member };
    for (uint32_t n = 0; n < THREADS_MAX; n++) {
        if (!(callers >> n & 1))
            continue;
        int to = wait_graph_node(g, rank, n);
        if (to < 0)
            return false;
        group.to[group.n++] = (uint16_t)to;
    }
    g->group[g->groups++] = group;
    g->node[node].groups++;
    return true;
}

static bool rank_absent(const struct member *m, uint64_t seq)
{
    /* E1 acquire, E21 acquire */
    return load_acquire64(&m->arrival[seq & 1].seq) < seq && load_acquire64(&m->queued) < seq;
}

/* Drops the groups of this node: it counts as not stuck. */
static void node_forget(struct wait_graph *g, int i)
{
    g->groups = g->node[i].first;
    g->node[i].groups = 0;
}

/* A deadline of a rank that has come ends the wait for all. So does a verdict that is already
   proposed. */
static void grow_collective(struct wait_graph *g, int i)
{
    const struct node n = g->node[i];
    uint32_t size = arena_slot_size(g->arena, n.slot);
    bool ends = load_acquire64(&n.slot->verdict) != 0;               /* E7 acquire */
    for (uint32_t p = 0; p < size && !ends; p++) {
        struct member *m = arena_member(n.slot, p);
        if (p == n.me || !rank_absent(m, n.seq))
            ends = load_acquire64(&m->patient) < n.seq;              /* E64 acquire */
        else if (g->node[i].groups < WITNESSES)
            wait_graph_add(g, i, arena_slot_rank(g->arena, n.slot, p), p);
    }
    if (ends)
        node_forget(g, i);
}

static bool letters_under_way(const struct node *n, const struct member *m)
{
    if (n->kind == KIND_SEND)
        return load_acquire32(&m->letters[1]);                       /* E62 acquire */
    /* E62 acquire */
    return (n->kind == KIND_RECV || n->kind == KIND_PROBE) && load_acquire32(&m->letters[0]);
}

static bool add_peer(struct wait_graph *g, int i, uint32_t p)
{
    struct slot *slot = g->node[i].slot;
    return !letters_under_way(&g->node[i], arena_member(slot, p))
        && wait_graph_add(g, i, arena_slot_rank(g->arena, slot, p), p);
}

static bool add_any(struct wait_graph *g, int i)
{
    uint32_t size = arena_slot_size(g->arena, g->node[i].slot);
    for (uint32_t p = 0; p < size; p++)
        if ((p != g->node[i].me || size == 1) && !add_peer(g, i, p))
            return false;
    return true;
}

/* Any rank of the job could set a key of the store; in our own rank the other threads, if there are
 * any. */
static bool add_job(struct wait_graph *g, int i)
{
    for (uint32_t p = 0; p < g->arena->header->size; p++) {
        const struct seat *seat = &g->arena->seats[p];
        uint32_t own = UINT32_C(1) << g->node[i].thread;
        /* E62 acquire */
        bool alone = p == g->node[i].rank && !load_acquire32(&seat->promises)
            && load_acquire32(&seat->threads) == own;
        /* E11 acquire */
        if (alone || load_acquire32(&seat->state) == SEAT_LEFT
            || death_of(&g->arena->seats[p]) != GONE_NO)
            continue;
        if (!wait_graph_add(g, i, p, 0))
            return false;
    }
    return true;
}

static void wait_graph_grow(struct wait_graph *g, int i)
{
    struct node *n = &g->node[i];
    n->first = g->groups;
    if (n->seq) {
        grow_collective(g, i);
        return;
    }
    n->all = true;
    bool held = n->kind == KIND_GET ? add_job(g, i)
        : n->about == 0
        ? add_any(g, i)
        : n->about <= arena_slot_size(g->arena, n->slot) && add_peer(g, i, n->about - 1);
    if (!held)
        node_forget(g, i);
}

/* ---- what is stuck ---- */

bool wait_graph_group_stuck(const struct wait_graph *g, const struct group *group)
{
    for (int i = 0; i < group->n; i++)
        if (!g->node[group->to[i]].stuck)
            return false;
    return true;
}

static bool node_stuck(const struct wait_graph *g, const struct node *n)
{
    int stuck = 0;
    for (int i = 0; i < n->groups; i++)
        stuck += wait_graph_group_stuck(g, &g->group[n->first + i]);
    return n->all ? n->groups && stuck == n->groups : stuck > 0;
}

static void wait_graph_strike(struct wait_graph *g)
{
    for (bool struck = true; struck;) {
        struck = false;
        for (int i = 0; i < g->nodes; i++)
            if (g->node[i].stuck && !node_stuck(g, &g->node[i])) {
                g->node[i].stuck = false;
                struck = true;
            }
    }
}

/* True: a stuck group of n leads to a node that is marked `back`. With `ahead`: marks all nodes
 * that its stuck groups lead to; true if one was not marked before. */
static bool node_follow(struct wait_graph *g, const struct node *n, bool ahead)
{
    bool found = false;
    for (int i = 0; i < n->groups; i++) {
        const struct group *group = &g->group[n->first + i];
        if (!wait_graph_group_stuck(g, group))
            continue;
        for (int k = 0; k < group->n; k++) {
            struct node *to = &g->node[group->to[k]];
            found |= ahead ? !to->ahead : to->back;
            to->ahead |= ahead;
        }
    }
    return found;
}

static void wait_graph_mark(struct wait_graph *g)
{
    g->node[0].ahead = true;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < g->nodes; i++)
            more |= g->node[i].ahead && node_follow(g, &g->node[i], true);
    }
    g->node[0].back = true;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < g->nodes; i++)
            if (g->node[i].ahead && !g->node[i].back && node_follow(g, &g->node[i], false))
                more = g->node[i].back = true;
    }
}

/* True: it waits for itself only. */
static bool node_alone(const struct wait_graph *g, const struct node *n)
{
    return n->groups == 1 && g->group[n->first].n == 1 && &g->node[g->group[n->first].to[0]] == n;
}

bool wait_graph_walk(struct wait_graph *g, const struct arena *arena, uint32_t rank,
                     uint32_t thread)
{
    g->arena = arena;
    g->nodes = g->groups = 0;
    g->full = false;
    if (wait_graph_node(g, rank, thread) != 0)
        return false;
    for (int i = 0; i < g->nodes && !g->full; i++)
        wait_graph_grow(g, i);
    if (g->full)
        return false;
    wait_graph_strike(g);
    if (!g->node[0].stuck)
        return false;
    wait_graph_mark(g);
    int in = 0;
    for (int i = 0; i < g->nodes; i++) {
        in += g->node[i].back;
        /* E61 acquire: after all stamps */
        g->node[i].beats = load_acquire64(&wait_graph_waiter(g, &g->node[i])->beats);
    }
    return in > 1 || node_alone(g, &g->node[0]);
}

bool wait_graph_same(const struct wait_graph *g)
{
    for (int i = 0; i < g->nodes; i++)
        /* E60 acquire */
        if (g->node[i].ahead
            && load_acquire64(&wait_graph_waiter(g, &g->node[i])->stamp) != g->node[i].stamp)
            return false;
    return true;
}

/* ---- before a walk ---- */

static bool rank_waits(const struct seat *seat)
{
    uint32_t callers = rank_callers(seat);
    for (uint32_t n = 0; n < THREADS_MAX; n++)
        if ((callers >> n & 1) && !(load_acquire64(&seat->waiters[n].stamp) & 1))  /* E60 acquire */
            return false;
    return callers != 0;
}

bool wait_graph_worth(const struct watch *w, uint64_t seq)
{
    for (uint32_t p = 0; p < w->size; p++)
        if (p != w->me && rank_absent(&w->members[p], seq) && rank_waits(w->seats[p]))
            return true;
    return false;
}

/* ---- texts for people ---- */

static void tell_whom(const struct wait_graph *g, const struct node *n, struct text *t)
{
    int ranks[WITNESSES], known = 0;
    for (int i = 0; i < n->groups && known < WITNESSES; i++)
        if (wait_graph_group_stuck(g, &g->group[n->first + i]))
            ranks[known++] = (int)g->group[n->first + i].rank;
    text_add(t, known == 1 ? " waits for rank " : " waits for ranks ");
    text_add_ranks(t, ranks, known);
}

void wait_graph_tell(const struct wait_graph *g, struct text *t)
{
    for (int i = 0; i < g->nodes; i++) {
        const struct node *n = &g->node[i];
        if (!n->back)
            continue;
        text_add(t, "  rank %u in %s", n->rank, kind_name((enum kind)n->kind));
        if (n->seq)
            text_add(t, " #%llu", (unsigned long long)(n->seq - g->arena->header->first_seq));
        if (n->slot->parent)
            text_add(t, " of comm %llu", (unsigned long long)n->slot->birth);
        else
            text_add(t, " of the world");
        text_add(t, " at %s", arena_site_text(g->arena, n->site));
        tell_whom(g, n, t);
        text_add(t, "\n");
    }
}
