/* The listed ranks find or make the slot by the list, and meet in a first operation on the new
 * comm. A failure there breaks the new comm only.
 * A waiting rank looks at the parent, too. A listed rank will not come if it has declined
 * (decline.h), has freed the parent or left, or if the parent has failed.
 * Cost: a lock of microseconds and one barrier. */
#include "group/decline.h"
#include "group/directory.h"
#include "group/exchange.h"
#include "group/timed_wait.h"

#include "base/error.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdlib.h>

struct making {
    struct beyond beyond;
    struct tutti_comm *parent, *made;
    const int *ranks;
    uint64_t list, nth;
};

/* *nth: the number of this creation among those of the same list on this parent. -ENOMEM: it cannot
 * be counted; this rank declines, and the decline counts it. */
static int creation_count(struct tutti_comm *parent, uint64_t list, uint64_t *nth)
{
    for (size_t i = 0; i < parent->creations_used; i++)
        if (parent->creations[i].list == list) {
            *nth = ++parent->creations[i].n;
            return 0;
        }
    *nth = decline_last(&parent->watch, list) + 1;
    struct creation *more = realloc(parent->creations, (parent->creations_used + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    parent->creations = more;
    parent->creations[parent->creations_used++] = (struct creation){ list, *nth, 0 };
    return 0;
}

static void creation_made(struct tutti_comm *parent, uint64_t list, uint64_t nth)
{
    for (size_t i = 0; i < parent->creations_used; i++)
        if (parent->creations[i].list == list)
            parent->creations[i].made = nth;
}

/* This rank declines. It has no hold on the slot, and says its last word there first: after the
 * decline the slot may be another comm's. */
static void create_decline(const struct making *m, struct slot *slot, uint32_t mine, int error)
{
    struct watch *w = &m->parent->watch;
    if (slot)
        fetch_or32(&arena_member(slot, mine)->quit, QUIT_OVER);      /* E7 release */
    comm_explain(m->parent, "comm_create: %s", comm_reason(error));
    if (!decline_say(m->parent, m->list, m->nth, error, slot != NULL)) {
        comm_give_up(m->parent, comm_reason(error));
        return;
    }
    fetch_add32(&w->slot->news, 1);                                  /* E7 release */
    w->ways->wake(w->ways->arg, &w->slot->news, INT32_MAX);
}

/* True: a missing rank will never come; the reason is in mine->why. Loads `quit` before the
 * arrival: a rank that freed the parent after it came has come. */
static bool making_ended(struct beyond *beyond)
{
    const struct making *m = (const struct making *)(const void *)beyond;
    const struct watch *parent = &m->parent->watch, *made = &m->made->watch;
    struct text why = TEXT_IN(made->mine->why);
    bool held;
    text_clear(&why);
    beyond->news_seen = load_acquire32(beyond->news);                /* E7 acquire */
    uint64_t verdict = load_acquire64(beyond->verdict);              /* E7 acquire */
    beyond->verdict_seen = (uint32_t)verdict;
    for (uint32_t i = 0; i < made->size; i++) {
        /* E7 acquire */
        uint32_t p = (uint32_t)m->ranks[i], quit = load_acquire32(&parent->members[p].quit);
        int error = p == parent->me ? 0 : decline_of(parent, p, m->list, m->nth, &held);
        /* E1 acquire */
        bool came = load_acquire64(&watch_arrival(made, i, m->made->seq)->seq) >= m->made->seq;
        if (error)
            text_add(&why, "rank %u of %s could not make its comm: %s", p, parent->name,
                     comm_reason(error));
        else if (!came && (quit & (QUIT_FREED | QUIT_LEFT)))
            text_add(&why, "rank %u of %s has freed that comm, or left, and cannot come", p,
                     parent->name);
        else
            continue;
        return true;
    }
    int cause = timed_wait_cause(parent, verdict);
    for (uint32_t p = 0; cause && p < parent->size; p++)
        if (load_acquire32(&parent->members[p].quit) & QUIT_ABORT) { /* E7 acquire */
            text_add(&why, "rank %u aborted %s: %.*s", p, parent->name, ABORT_TEXT - 1,
                     parent->members[p].why);
            return true;
        }
    if (cause && verdict_state(verdict) == VERDICT_CONFIRMED && verdict_names(verdict)
        && verdict_who(verdict) < parent->size)
        text_add(&why, "%s has failed: rank %u: %s", parent->name, verdict_who(verdict),
                 timed_wait_cause_text(cause));
    else if (cause)
        text_add(&why, "%s has failed: %s", parent->name, timed_wait_cause_text(cause));
    return cause != 0;
}

/* Frees the slot for the ranks that declined without a hold on it; our own hold still stands.
 * Returns the first one's reason, or 0. */
static int making_declined(const struct making *m, uint32_t *who)
{
    int first = 0;
    for (uint32_t i = 0; i < m->made->watch.size; i++) {
        uint32_t p = (uint32_t)m->ranks[i];
        bool held = true;
        int error = p == m->parent->watch.me
            ? 0
            : decline_of(&m->parent->watch, p, m->list, m->nth, &held);
        if (error && !held)
            fetch_or32(&m->made->watch.members[i].quit, QUIT_FREED | QUIT_OVER);    /* E7 release */
        *who = error && !first ? p : *who;
        first = first ? first : error;
    }
    return first;
}

static int making_failed(const struct making *m, int r)
{
    struct watch *w = &m->parent->watch;
    uint32_t who = 0;
    int declined = making_declined(m, &who);
    bool beyond = m->made->watch.failed && verdict_why(m->made->watch.failed) == WHY_BEYOND;
    char room[REPORT_TEXT];
    if (declined) {
        comm_explain(m->parent, "comm_create: rank %u could not make its comm: %s", who,
                     comm_reason(declined));
        return declined;
    }
    comm_read(m->made, room);
    comm_explain(m->parent, "%s", room);
    if (!beyond)
        return r;
    int cause = timed_wait_cause(w, load_acquire64(&w->slot->verdict));      /* E7 acquire */
    if (!cause)
        return -EOWNERDEAD;                          /* a rank has freed it */
    fetch_or32(&w->attention, ATTENTION_BROKEN);
    return cause;
}

int comm_create(struct tutti_comm *parent, uint32_t site, const int *ranks, int size,
                struct tutti_comm **comm)
{
    *comm = NULL;
    uint32_t world_rank[RANKS_MAX], mine = 0;
    for (int i = 0; i < size; i++) {
        world_rank[i] = watch_world_rank(&parent->watch, (uint32_t)ranks[i]);
        if ((uint32_t)ranks[i] == parent->watch.me)
            mine = (uint32_t)i;
    }
    struct making m = {
        .beyond = { .news = &parent->watch.slot->news, .verdict = &parent->watch.slot->verdict,
                    .ended = making_ended },
        .parent = parent, .ranks = ranks,
        .list = text_hash(world_rank, (size_t)size * sizeof *world_rank, 0)
    };
    struct slot *slot = NULL;
    int r = creation_count(parent, m.list, &m.nth);
    if (r == 0) {
        struct directory_key name = { parent->birth, m.nth, -1, world_rank, (uint32_t)size };
        r = comm_slot(parent->world, &name, &slot);
    }
    m.made = r == 0 ? comm_open(parent->world, slot, mine, &r) : NULL;
    if (!m.made) {
        create_decline(&m, slot, mine, r);
        return r;
    }
    comm_inherit(m.made, parent);
    m.made->watch.beyond = &m.beyond;
    uint64_t seq;
    r = comm_exchange(m.made, KIND_CREATE, site, 0, 0, &seq);
    m.made->watch.beyond = NULL;
    if (r < 0) {
        r = making_failed(&m, r);
        comm_drop(m.made);
        return r;
    }
    creation_made(parent, m.list, m.nth);
    *comm = m.made;
    return 0;
}
