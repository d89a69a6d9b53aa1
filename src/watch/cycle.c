/* Cost of a long sleep: eleven stores once and two a slice. If the awaited rank sleeps, too:
 * join.lock for the microseconds of a walk. A thread keeps its memory of a walk (8 KiB) from its
 * first walk on. */
#include "watch/cycle.h"

#include "watch/wait_graph.h"
#include "watch/threads.h"
#include "watch/verdict.h"

#include <stdlib.h>
#include <string.h>

/* to look: else another rank finds the cycle, or we do in the next slice */
#define LOCK_PATIENCE_NS UINT64_C(20000000)
/* to end: the holder is ending the cycle, and may have lost its CPU */
#define STORY_PATIENCE_NS UINT64_C(2000000000)

struct seen { uint32_t rank, thread; uint64_t stamp, beats; };
struct cycle_memory { int n; struct seen seen[NODES_MAX]; };

static struct waiter *cycle_own(const struct threads *t)
{
    int n = t ? threads_number(t) : -1;
    return n < 0 ? NULL : &t->seat->waiters[n];
}

/* ---- what this thread says ---- */

static uint32_t slot_index(const struct watch *w)
{
    const struct arena_header *h = w->arena->header;
    return (uint32_t)(((uint64_t)((char *)w->slot - w->arena->base) - h->slots_at) / h->slot_bytes);
}

static uint32_t wait_about(const struct cycle_wait *wait) { return (uint32_t)(wait->about + 1); }

static bool waiter_says(const struct watch *w, const struct waiter *own,
                        const struct cycle_wait *wait)
{
    /* relaxed: our own words */
    return (load_relaxed64(&own->stamp) & 1) && load_relaxed64(&own->birth) == w->slot->birth
        && load_relaxed64(&own->seq) == wait->seq
        /* relaxed: as above */
        && load_relaxed32(&own->kind) == (uint32_t)wait->kind
        && load_relaxed32(&own->site) == wait->site
        /* relaxed: as above */
        && load_relaxed32(&own->about) == wait_about(wait);
}

static void waiter_over(struct waiter *own)
{
    uint64_t stamp = load_relaxed64(&own->stamp);                    /* relaxed: our own word */
    if (stamp & 1)
        /* E60 release, E60 fence: the fields change after it */
        store_fence64(&own->stamp, stamp + 1);
}

static void waiter_begin(const struct watch *w, struct waiter *own, const struct cycle_wait *wait)
{
    waiter_over(own);
    /* relaxed: E60 publishes them */
    store_relaxed64(&own->birth, w->slot->birth);
    store_relaxed64(&own->seq, wait->seq);
    store_relaxed32(&own->slot, slot_index(w));
    store_relaxed32(&own->rank, w->me);
    store_relaxed32(&own->kind, (uint32_t)wait->kind);
    store_relaxed32(&own->site, wait->site);
    store_relaxed32(&own->about, wait_about(wait));
    /* relaxed: our own word */
    store_release64(&own->stamp, load_relaxed64(&own->stamp) + 1);   /* E60 release */
}

static void waiter_beat(struct waiter *own)
{
    /* relaxed: our own word */
    store_fence64(&own->beats, load_relaxed64(&own->beats) + 1);     /* E61 release, E61 fence */
}

/* ---- remembering, and confirming ---- */

static void memory_keep(struct cycle_memory *memory, const struct wait_graph *g)
{
    memory->n = 0;
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i].ahead)
            memory->seen[memory->n++] = (struct seen){ g->node[i].rank, g->node[i].thread,
                                                       g->node[i].stamp, g->node[i].beats };
}

static const struct seen *memory_find(const struct cycle_memory *memory, const struct node *node)
{
    for (int i = 0; i < memory->n; i++) {
        const struct seen *s = &memory->seen[i];
        if (s->rank == node->rank && s->thread == node->thread)
            return s->stamp == node->stamp ? s : NULL;
    }
    return NULL;
}

static bool memory_confirms(struct cycle_memory *memory, const struct wait_graph *g)
{
    bool all = true;
    for (int i = 0; i < g->nodes; i++) {
        if (!g->node[i].ahead)
            continue;
        const struct seen *seen = memory_find(memory, &g->node[i]);
        if (!seen) {
            memory_keep(memory, g);
            return false;
        }
        all &= g->node[i].beats >= seen->beats + 2;
    }
    return all && wait_graph_same(g);
}

/* ---- ending them ---- */

/* False: the operation has moved after all, or a rank ends it for another reason. */
static bool doom_collective(const struct watch *w, const struct wait_graph *g, const struct node *n)
{
    const struct group *lacks = &g->group[n->first];
    while (!wait_graph_group_stuck(g, lacks))
        lacks++;
    uint64_t none = 0, v = verdict_make(n->seq, WHY_DEADLOCK, n->me, lacks->member);
    /* E4 release: else it may be the verdict for another rank there */
    if (!swap_if64(&n->slot->verdict, &none, v))
        return verdict_why(none) == WHY_DEADLOCK && verdict_after(none, n->seq) == 0;
    fence_full();                                                    /* E4 fence */
    const shared64 *arrived = &arena_member(n->slot, lacks->member)->arrival[n->seq & 1].seq;
    uint64_t seen = v;
    if (load_acquire64(arrived) >= n->seq) {                         /* E1 acquire */
        swap_if64(&n->slot->verdict, &seen, 0);                      /* E8 release */
        return false;
    }
    if (swap_if64(&n->slot->verdict, &seen, verdict_confirmed(v)))                  /* E7 release */
        w->ways->wake(w->ways->arg, low_half(&n->slot->verdict), INT32_MAX);
    return true;
}

static void cycle_doom(const struct watch *w, const struct wait_graph *g)
{
    char story[STORY_TEXT];
    struct text t = TEXT_IN(story);
    text_clear(&t);
    wait_graph_tell(g, &t);
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i].back)
            memcpy(g->arena->seats[g->node[i].rank].story, story, sizeof story);
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i].back && g->node[i].seq && !doom_collective(w, g, &g->node[i]))
            return;
    for (int i = 0; i < g->nodes; i++)
        if (g->node[i].back && !g->node[i].seq)
            /* E63 release */
            store_release64(&wait_graph_waiter(g, &g->node[i])->doomed, g->node[i].stamp);
}

static void cycle_walk(struct watch *w, uint32_t thread)
{
    struct cycle_memory **memory = &w->threads->memory[thread];
    struct wait_graph *g = malloc(sizeof *g);
    if (!*memory)
        *memory = calloc(1, sizeof **memory);
    if (g && *memory && arena_lock(w->arena, LOCK_PATIENCE_NS) == 0) {
        if (!wait_graph_walk(g, w->arena, watch_world_rank(w, w->me), thread))
            (*memory)->n = 0;
        else if (memory_confirms(*memory, g))
            cycle_doom(w, g);
        arena_unlock(w->arena);
    }
    free(g);
}

void cycle_look(struct watch *w, const struct cycle_wait *wait)
{
    struct waiter *own = cycle_own(w->threads);
    if (!own)
        return;
    if (!waiter_says(w, own, wait))
        waiter_begin(w, own, wait);
    waiter_beat(own);
    if (!wait->seq || wait_graph_worth(w, wait->seq))
        cycle_walk(w, (uint32_t)(own - w->threads->seat->waiters));
}

static bool waiter_doomed(const struct waiter *own)
{
    /* relaxed: our own word */
    uint64_t stamp = own ? load_relaxed64(&own->stamp) : 0;
    return (stamp & 1) && load_acquire64(&own->doomed) == stamp;     /* E63 acquire */
}

/* Waits until the rank that found the cycle has ended all its waits. */
static void cycle_decide(const struct threads *t)
{
    if (arena_lock(t->arena, STORY_PATIENCE_NS) == 0)
        arena_unlock(t->arena);
}

bool cycle_doomed(const struct threads *t)
{
    if (!waiter_doomed(cycle_own(t)))
        return false;
    cycle_decide(t);
    return true;
}

bool cycle_ended(const struct threads *t)
{
    if (!cycle_own(t))
        return false;
    cycle_decide(t);
    return waiter_doomed(cycle_own(t));
}

void cycle_patient(const struct watch *w, uint64_t seq)
{
    if (w->threads)
        store_release64(&w->mine->patient, seq);                     /* E64 release */
}

void cycle_over(const struct threads *t)
{
    struct waiter *own = cycle_own(t);
    if (own)
        waiter_over(own);
}

void cycle_tell(const struct watch *w, uint32_t p, struct text *t)
{
    if (arena_lock(w->arena, STORY_PATIENCE_NS) < 0)
        return;
    text_add(t, "%.*s", STORY_TEXT - 1, w->seats[p]->story);
    arena_unlock(w->arena);
}
