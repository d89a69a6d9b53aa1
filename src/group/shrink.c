/* A new comm of the survivors. A round is two agreements. The first one is on the survivors: the
 * list of the rank that decided, in the arena. The second one is on whether all on the list have
 * opened the new comm and live. If one died meanwhile, a new round begins without it: there are at
 * most as many rounds as ranks. No rank uses the new comm before the second agreement.
 *
 * No slot leaks: a slot can be made anew when all members have freed it. After a failure a rank
 * frees the slot first for ranks without a hold on it (they voted an error, or are at a later
 * agreement and have dropped theirs), then for itself: while its own hold stands the slot cannot
 * become another comm's. A rank that votes an error does not touch the slot any more.
 * Cost: four barriers or so a round. */
#include "group/agree.h"

#include "base/clock.h"
#include "group/directory.h"
#include "watch/journal.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COLOR_SHRINK = -2, GO_ROUND = 1 };

struct shrinking {
    struct tutti_comm *old, *made;
    uint32_t site;
    uint32_t *world_rank, *old_rank;
    uint32_t size, mine;
};

static uint32_t error_pair(uint32_t error, uint32_t who) { return error << 16 | who; }

/* The survivors: ranks that have voted and live. A rank without memory for this votes its errno. */
static struct decision list_sum(const struct agreement *a)
{
    const struct watch *w = a->watch;
    uint64_t words[RANKS_MAX / 64] = { 0 };
    for (uint32_t p = 0; p < w->size; p++) {
        if (agree_gone(a, p) || !agree_voted(a, p))
            continue;
        if (agree_value(a, p))
            return (struct decision){ OUTCOME_FAIL, error_pair(agree_value(a, p), p) };
        words[p / 64] |= UINT64_C(1) << p % 64;
    }
    for (uint32_t i = 0; i < RANKS_MAX / 64; i++)
        store_relaxed64(&w->mine->listed[i], words[i]);              /* relaxed: E46 publishes it */
    return (struct decision){ OUTCOME_DONE, w->me };
}

/* DONE: all on the list have opened the comm and live. AGAIN: one is gone. FAIL: one could not. */
static struct decision opened_sum(const struct agreement *a)
{
    const struct shrinking *s = a->about;
    for (uint32_t i = 0; i < s->size; i++)
        if (agree_gone(a, s->old_rank[i]) || !agree_voted(a, s->old_rank[i]))
            return (struct decision){ OUTCOME_AGAIN, s->old_rank[i] };
    for (uint32_t i = 0; i < s->size; i++)
        if (agree_value(a, s->old_rank[i]))
            return (struct decision){ OUTCOME_FAIL,
                                      error_pair(agree_value(a, s->old_rank[i]), s->old_rank[i]) };
    return (struct decision){ OUTCOME_DONE, 0 };
}

/* Reads the list of rank `by`, in the old comm's order. False: this rank is not on it. */
static bool shrink_list(struct shrinking *s, uint32_t by)
{
    const struct watch *w = &s->old->watch;
    bool listed = false;
    s->size = 0;
    if (by >= w->size)
        return false;
    for (uint32_t p = 0; p < w->size; p++) {
        /* relaxed: after E46 */
        if (!(load_relaxed64(&w->members[by].listed[p / 64]) >> p % 64 & 1))
            continue;
        if (p == w->me) {
            s->mine = s->size;
            listed = true;
        }
        s->old_rank[s->size] = p;
        s->world_rank[s->size++] = watch_world_rank(w, p);
    }
    return listed;
}

static int shrink_open(struct shrinking *s, uint64_t number)
{
    struct world *world = s->old->world;
    struct directory_key key = { s->old->birth, number, COLOR_SHRINK, s->world_rank, s->size };
    struct slot *slot;
    int r = comm_slot(world, &key, &slot);
    if (r < 0)
        return r;
    s->made = comm_open(world, slot, s->mine, &r);
    if (!s->made)
        fetch_or32(&arena_member(slot, s->mine)->quit, QUIT_FREED | QUIT_OVER);  /* E7 release */
    return r;
}

static void shrink_drop(struct shrinking *s, const struct agreement *a)
{
    if (!s->made)
        return;
    const struct watch *w = a->watch;
    for (uint32_t i = 0; i < s->size; i++) {
        uint32_t p = s->old_rank[i];
        const struct vote *vote = w->members[p].vote;
        /* E45 acquire */
        bool over = load_acquire64(&vote[0].number) > a->number
            || load_acquire64(&vote[1].number) > a->number;
        if (i != s->mine && (over || (agree_voted(a, p) && agree_value(a, p))))
            fetch_or32(&s->made->watch.members[i].quit, QUIT_FREED | QUIT_OVER); /* E7 release */
    }
    comm_drop(s->made);
    s->made = NULL;
}

static int shrink_failed(struct agreement *a, struct decision d)
{
    int error = -(int)(d.value >> 16);
    error = error ? error : -EIO;                   /* no rank says so: the word was written over */
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    text_clear(&t);
    text_add(&t, "comm_shrink: rank %u could not make the new comm: %s\n", d.value & 0xffff,
             comm_reason(error));
    agree_report(a, &t);
    comm_show(a->comm, &t);
    return error;
}

/* 0: all have opened the comm. GO_ROUND: a rank died meanwhile. Negative: failed, with a report. */
static int shrink_round(struct shrinking *s, int error)
{
    struct agreement who = {
        .comm = s->old, .kind = KIND_SHRINK, .site = s->site,
        .value = (uint32_t)-error, .sum = list_sum
    };
    struct decision d;
    int r = agree_reach(&who, &d);
    if (r < 0)
        return r;
    if (d.outcome == OUTCOME_FAIL || error)
        return d.outcome == OUTCOME_FAIL ? shrink_failed(&who, d) : error;
    if (!shrink_list(s, d.value)) {
        comm_explain(s->old,
                     "comm_shrink: the others go on without this rank: it has freed the comm or "
                     "left");
        return -ECANCELED;
    }
    int opened = shrink_open(s, who.number);
    struct agreement all = {
        .comm = s->old, .kind = KIND_SHRINK, .site = s->site, .value = (uint32_t)-opened,
        .sum = opened_sum, .about = s
    };
    r = agree_reach(&all, &d);
    if (r == 0 && d.outcome == OUTCOME_DONE)
        return 0;
    shrink_drop(s, &all);
    return r < 0 ? r : d.outcome == OUTCOME_AGAIN ? GO_ROUND : shrink_failed(&all, d);
}

int comm_shrink(struct tutti_comm *old, uint32_t site, struct tutti_comm **comm)
{
    uint32_t size = old->watch.size;
    struct shrinking s = {
        .old = old, .site = site, .world_rank = calloc(size, sizeof *s.world_rank),
        .old_rank = calloc(size, sizeof *s.old_rank)
    };
    int error = s.world_rank && s.old_rank ? 0 : -ENOMEM, r;
    *comm = NULL;
    journal_begin(&old->watch, 0, fingerprint_make(KIND_SHRINK, 0, 0, 0, 0), 0, site, clock_tick());
    r = GO_ROUND;
    for (uint32_t rounds = 0; r == GO_ROUND && rounds <= size; rounds++)     /* each loses a rank */
        r = shrink_round(&s, error);
    if (r == GO_ROUND) {                /* more ranks died than there are */
        r = -EIO;
        comm_explain(old, "comm_shrink: %s", comm_reason(r));
    }
    if (r == 0) {
        comm_inherit(s.made, old);
        *comm = s.made;
    }
    journal_end(&old->watch, r, clock_tick());
    free(s.world_rank);
    free(s.old_rank);
    return r;
}
