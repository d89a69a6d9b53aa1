/* From a wait to the ranks that it is for: of a collective those that have not arrived, of a
 * message the peer, of a turn the ranks whose turns come before, of a key of the store whoever is
 * free to set it, else whom the waiting thread has published (watch/cycle). As long as all of these
 * wait themselves, the oldest of their waits is followed.
 * Cost: a look at each member of a comm a step, at most as many steps as ranks. */
#include "cli/blockers.h"

#include <string.h>

static enum kind blockers_kind(const struct rank_state *s)
{
    return fingerprint_kind(s->doing.operation.descriptor);
}

static bool blockers_free(const struct rank_state *s)
{
    return !rank_state_waits(s) || s->doing.stopped;
}

/* The comm's rank that a published wait of this rank is for; -1: none, or any. */
static int blockers_published(const struct seat *seat, const struct rank_state *s)
{
    enum kind kind = blockers_kind(s);
    for (int i = 0; i < THREADS_MAX; i++) {
        const struct waiter *w = &seat->waiters[i];
        /* relaxed: a private copy, in all of this file */
        bool waits = load_relaxed64(&w->stamp) & 1;
        uint64_t seq = load_relaxed64(&w->seq);
        /* relaxed: as above */
        uint32_t slot = load_relaxed32(&w->slot), of = load_relaxed32(&w->kind);
        if (waits && slot == s->slot && of == (uint32_t)kind && seq == 0)
            return (int)(load_relaxed32(&w->about) & INT32_MAX) - 1; /* relaxed: as above */
    }
    return -1;
}

/* Turn n of a rank comes after turn n of all lower ones, of rank 0 after turn n - 1 of all. */
static int blockers_turns(const struct arena *arena, const struct rank_states *m,
                          const struct rank_state *s, int *missing)
{
    struct slot *slot = arena_slot(arena, s->slot);
    uint32_t size = arena_slot_size(arena, slot), lower = s->member ? s->member : size;
    /* relaxed: as above */
    uint64_t done = load_relaxed64(&arena_member(slot, s->member)->turns) + (s->member ? 1 : 0);
    int n = 0;
    for (uint32_t p = 0; p < lower && p < size; p++) {
        uint32_t rank = arena_slot_rank(arena, slot, p);
        /* relaxed: as above */
        uint64_t turns = load_relaxed64(&arena_member(slot, p)->turns);
        if (rank < m->size && rank != s->rank && turns < done && n < RANKS_MAX)
            missing[n++] = (int)rank;
    }
    return n;
}

/* Ranks of the world that this wait is for. -1: not known. */
static int blockers_missing(const struct arena_copy *g, const struct rank_states *m,
                            const struct rank_state *s, int *missing)
{
    const struct arena *arena = &g->arena;
    struct slot *slot = arena_slot(arena, s->slot);
    uint32_t size = arena_slot_size(arena, slot);
    enum kind kind = blockers_kind(s);
    int n = 0;
    if (kind_collective(kind) && s->seq) {
        for (uint32_t p = 0; p < size; p++) {
            const struct member *member = arena_member(slot, p);
            uint32_t rank = arena_slot_rank(arena, slot, p);
            /* relaxed: as above */
            uint64_t seq = load_relaxed64(&member->arrival[s->seq & 1].seq);
            if (rank < m->size && rank != s->rank && seq < s->seq && n < RANKS_MAX)
                missing[n++] = (int)rank;
        }
        return n;
    }
    if (kind == KIND_TURN_BEGIN)
        return blockers_turns(arena, m, s, missing);
    int peer = s->doing.operation.became && s->doing.operation.about
        ? (int)(s->doing.operation.about & INT32_MAX) - 1
        : blockers_published(&arena->seats[s->rank], s);
    uint32_t rank = peer >= 0 ? arena_slot_rank(arena, slot, (uint32_t)peer) : RANK_NOBODY;
    if (rank >= m->size)
        return -1;
    missing[0] = (int)rank;
    return 1;
}

static const struct rank_state *blockers_oldest(const struct rank_states *m, const int *ranks,
                                                int n)
{
    const struct rank_state *oldest = NULL;
    for (int i = 0; i < n; i++) {
        const struct rank_state *s = &m->rank[ranks ? ranks[i] : i];
        if (rank_state_waits(s) && (!oldest || s->doing.age_ns > oldest->doing.age_ns))
            oldest = s;
    }
    return oldest;
}

static void blockers_waiters(struct blockers *k, const struct rank_states *m,
                             const struct rank_state *s)
{
    bool collective = kind_collective(blockers_kind(s));
    bool turn = blockers_kind(s) == KIND_TURN_BEGIN;
    for (uint32_t r = 0; r < m->size; r++) {
        const struct rank_state *o = &m->rank[r];
        bool beside = rank_state_waits(o) && o->slot == s->slot
            && (collective ? o->seq == s->seq : turn && blockers_kind(o) == KIND_TURN_BEGIN);
        if (o == s || beside)
            k->waiters[k->waiters_n++] = (int)r;
    }
}

/* Of n ranks those that wait for nobody. */
static void blockers_keep(struct blockers *k, const struct rank_states *m, const int *ranks, int n)
{
    for (int i = 0; i < n; i++)
        if (blockers_free(&m->rank[ranks[i]]))
            k->keepers[k->keepers_n++] = ranks[i];
}

/* Of all others those that live and wait for nobody: each may set the key. */
static void blockers_key(struct blockers *k, const struct rank_states *m,
                         const struct rank_state *s)
{
    k->kind = BLOCKED_KEY;
    k->key = (int)s->rank;
    for (uint32_t r = 0; r < m->size; r++) {
        const struct rank_state *o = &m->rank[r];
        if (o != s && o->condition != RANK_DEAD && o->condition != RANK_LEFT && blockers_free(o))
            k->keepers[k->keepers_n++] = (int)r;
    }
}

static void blockers_follow(struct blockers *k, const struct arena_copy *g,
                            const struct rank_states *m, const struct rank_state *s)
{
    uint8_t seen[RANKS_MAX] = { 0 };
    int missing[RANKS_MAX];
    for (int i = 0; i < k->waiters_n; i++)
        seen[k->waiters[i]] = 1;
    for (int step = 0; step < RANKS_MAX; step++) {
        seen[s->rank] = 1;
        if (blockers_kind(s) == KIND_GET) {
            blockers_key(k, m, s);
            return;
        }
        int n = blockers_missing(g, m, s, missing);
        if (n <= 0) {
            k->kind = n < 0 ? BLOCKED_OPEN : BLOCKED_THERE;
            return;
        }
        blockers_keep(k, m, missing, n);
        k->kind = BLOCKED_KEPT;
        const struct rank_state *next = blockers_oldest(m, missing, n);
        bool elsewhere = next && !seen[next->rank]
            && (next->slot != s->slot || blockers_kind(next) != blockers_kind(s));
        if (k->keepers_n && elsewhere)
            k->over[k->over_n++] = (int)next->rank;
        if (k->keepers_n || !next)
            return;
        if (seen[next->rank]) {
            k->kind = BLOCKED_CIRCLE;
            memcpy(k->keepers, missing, (size_t)n * sizeof *missing);
            k->keepers_n = n;
            return;
        }
        s = next;
        k->over[k->over_n++] = (int)s->rank;
    }
}

void blockers_find(struct blockers *k, const struct arena_copy *g, const struct rank_states *m)
{
    const struct rank_state *s = blockers_oldest(m, NULL, (int)m->size);
    memset(k, 0, sizeof *k);
    if (m->gathering)
        for (uint32_t r = 0; r < m->size; r++)
            if (m->rank[r].condition == RANK_ABSENT)
                k->keepers[k->keepers_n++] = (int)r;
    if (k->keepers_n) {
        k->kind = BLOCKED_JOIN;
        return;
    }
    if (s) {
        blockers_waiters(k, m, s);
        blockers_follow(k, g, m, s);
    }
    if (k->keepers_n || k->kind == BLOCKED_KEY)
        return;
    /* whoever is stopped or dead keeps it, too */
    for (uint32_t r = 0; r < m->size; r++)
        if (m->rank[r].doing.stopped || m->rank[r].condition == RANK_DEAD)
            k->keepers[k->keepers_n++] = (int)r;
    if (k->keepers_n)
        k->kind = BLOCKED_KEPT;
}
