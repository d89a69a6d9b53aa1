/* The slow half of every operation: see the protocol in verdict.h. It costs a few loads per member
 * and look; a look happens once per slice of a sleep. The order of the loads is the protocol: do
 * not move one. */
#include "watch/verdict.h"

#include "base/error.h"
#include "base/probe.h"
#include "watch/death.h"

#include <errno.h>

/* looks for the words that a verdict on a later operation implies: one is enough in a sound
 * arena */
enum { FURTHER_MOST = 1000 };

static bool claim_committed(const struct watch *w, const struct claim *c, uint32_t p)
{
    if (!c->commit_at || (c->committer >= 0 && (uint32_t)c->committer != p))
        return true;
    const shared64 *word = (const shared64 *)(const void *)((const char *)&w->members[p]
                                                            + c->commit_at);
    return load_acquire64(word) >= c->commit;        /* E16 acquire, E17 acquire, E22 acquire */
}

/* True: a rank that has come by now gave device memory. It stored slot.devices before its arrival.
   So a reader that has seen that arrival (E1) finds devices set, and a reader that finds it 0 has
   seen no such arrival. Hence the order: load an arrival before devices. */
static bool claim_devices(const struct watch *w, const struct claim *c)
{
    if (!load_acquire32(&w->slot->devices))
        return false;
    for (uint32_t p = 0; p < w->size; p++)
        /* E1 acquire */
        if (load_acquire64(&watch_arrival(w, p, c->seq)->seq) >= c->seq
            && watch_device(w, p, c->seq))
            return true;
    return false;
}

static bool claim_came(const struct watch *w, const struct claim *c, uint32_t p)
{
    const struct arrival *a = watch_arrival(w, p, c->seq);
    /* E1 acquire */
    return load_acquire64(&a->seq) >= c->seq && claim_agrees(c, a) && claim_committed(w, c, p);
}

static bool claim_placed(const struct watch *w, const struct claim *c, uint32_t p)
{
    return load_acquire64(&w->members[p].placed) >= c->seq;          /* E70 acquire */
}

/* True: p has done its part of the operation, as far as the ranks that have come say what that is:
   a device rank that comes later asks more of all. A death that is hidden by this is found in the
   look after that arrival, which wakes every rank that waits for it. */
static bool claim_done_by(const struct watch *w, const struct claim *c, uint32_t p)
{
    return claim_came(w, c, p) && (!claim_devices(w, c) || claim_placed(w, c, p));
}

/* All arrivals first, then what they ask of all: once they are there, they never change. So C(k),
 * once true, stays true for all. */
bool claim_holds(const struct watch *w, const struct claim *c)
{
    for (uint32_t p = 0; p < w->size; p++)
        if (!claim_came(w, c, p))
            return false;
    if (!claim_devices(w, c))
        return true;
    for (uint32_t p = 0; p < w->size; p++)
        if (!claim_placed(w, c, p))
            return false;
    return true;
}

int verdict_error(uint64_t v)
{
    switch (verdict_why(v)) {
    case WHY_DIED:
    case WHY_LEFT:
    case WHY_FREED: return -EOWNERDEAD;
    case WHY_DEADLINE: return -ETIMEDOUT;
    case WHY_MISMATCH: return -EPROTO;
    case WHY_DEADLOCK: return -EDEADLK;
    case WHY_DEVICE: return -EIO;
    case WHY_ABORT:
    case WHY_INTERRUPT:
    case WHY_BEYOND:
    case WHY_NONE: break;
    }
    return -ECANCELED;
}

void verdict_note(struct watch *w, uint64_t v)
{
    uint32_t who = verdict_who(v);
    if (verdict_state(v) == VERDICT_CONFIRMED && verdict_why(v) == WHY_DIED && who < w->size
        /* relaxed: sticky, and all who write it say the same */
        && who != w->me && load_relaxed8(&w->lost[who]) == GONE_NO)
        store_relaxed8(&w->lost[who], GONE_DIED);                    /* relaxed: as above */
}

void verdict_met(struct watch *w)
{
    uint64_t v = load_acquire64(&w->slot->verdict);                  /* E7 acquire */
    verdict_note(w, v);
    if (verdict_state(v) == VERDICT_CONFIRMED)
        fetch_or32(&w->attention, ATTENTION_BROKEN);
}

static int verdict_fail(struct watch *w, uint64_t v)
{
    verdict_note(w, v);
    PROBE4(verdict, w->name, v & VERDICT_OP_MASK, verdict_error(v), verdict_who(v));
    w->failed = v;
    fetch_or32(&w->attention, ATTENTION_BROKEN);
    return verdict_error(v);
}

int verdict_contested(struct watch *w, const struct claim *c)
{
    for (;;) {
        uint64_t v = load_acquire64(&w->slot->verdict);              /* E6 acquire, E7 acquire */
        int32_t after = verdict_after(v, c->seq);
        if (v == 0 || after > 0 || (after < 0 && verdict_state(v) == VERDICT_PROPOSED))
            return 0;
        if (verdict_state(v) == VERDICT_CONFIRMED)
            return verdict_fail(w, v);
        if (!swap_if64(&w->slot->verdict, &v, 0))                    /* E8 release */
            continue;
        return 0;
    }
}

/* A reason to give up, searched in the order of the protocol: news, alive words, quit bits, flags.
 * WHY_NONE: none. */
static enum why verdict_reason(struct watch *w, const struct claim *c, bool late, uint32_t blocker,
                               uint32_t *who)
{
    w->news_seen = load_acquire32(&w->slot->news);                   /* E7 acquire */
    death_look(w);                                                   /* E5: alive words */
    for (uint32_t p = 0; p < w->size; p++) {
        uint32_t quit = load_acquire32(&w->members[p].quit);         /* E7 acquire */
        *who = p;
        if (quit & QUIT_INTERRUPT)
            return WHY_INTERRUPT;
        if (quit & QUIT_ABORT)
            return WHY_ABORT;
        if (quit & QUIT_DEVICE)
            return WHY_DEVICE;
    }
    if (w->beyond && w->beyond->ended(w->beyond)) {
        *who = w->me;
        return WHY_BEYOND;
    }
    if (c->differs) {
        *who = c->differs - 1;
        return WHY_MISMATCH;
    }
    for (uint32_t p = 0; p < w->size; p++) {
        if (p == w->me)
            continue;
        uint32_t quit = load_acquire32(&w->members[p].quit);         /* E7 acquire */
        const struct arrival *a = watch_arrival(w, p, c->seq);
        *who = p;
        if (load_acquire64(&a->seq) >= c->seq && !claim_agrees(c, a))        /* E1 acquire */
            return WHY_MISMATCH;
        if ((w->gone[p] == GONE_NO && !(quit & (QUIT_FREED | QUIT_LEFT)))
            || (!c->whole && claim_done_by(w, c, p)))
            continue;
        return quit & QUIT_FREED ? WHY_FREED
            : (quit & QUIT_LEFT) || w->gone[p] == GONE_LEFT ? WHY_LEFT
            : WHY_DIED;
    }
    *who = blocker;
    return late ? WHY_DEADLINE : WHY_NONE;
}

static bool verdict_confirm(struct watch *w, uint64_t v)
{
    uint64_t seen = v;
    return swap_if64(&w->slot->verdict, &seen, verdict_confirmed(v));               /* E7 release */
}

/* v proposes to fail our operation. 1: look again. Negative: failed. Never 0. */
static int verdict_decide(struct watch *w, const struct claim *c, uint64_t v)
{
    fence_full();                                                    /* E4 fence */
    if (claim_holds(w, c)) {
        int r = verdict_contested(w, c);
        return r < 0 ? r : 1;
    }
    if (!verdict_confirm(w, v))
        return 1;
    w->ways->wake(w->ways->arg, low_half(&w->slot->verdict), INT32_MAX);
    return verdict_fail(w, verdict_confirmed(v));
}

static bool verdict_reached(const struct watch *w, const struct wait *wait, uint64_t seq)
{
    /* E1 acquire, E16 acquire, E17 acquire, E18 acquire, E20 acquire, E22 acquire, E70 acquire */
    if (load_acquire64(wait->word) >= wait->value)
        return true;
    return wait->leave && wait->owner >= 0 && watch_past(w, (uint32_t)wait->owner, seq);
}

/* True: the deadline may end the operation; *who: the rank it names. This rank, for its device or
   disk; else the awaited rank, if it has not done its part; else the first other rank that has not.
   If all others have, the awaited rank, unless its word has come: then no rank holds this one up,
   and it may end late. */
static bool verdict_overdue(const struct watch *w, const struct claim *c, const struct wait *wait,
                            uint32_t *who)
{
    *who = w->me;
    if (wait->own)
        return true;
    *who = (uint32_t)wait->owner;                 /* goes before the other ranks that wait for it */
    if (wait->owner >= 0 && *who != w->me && !claim_done_by(w, c, *who))
        return true;
    for (*who = 0; *who < w->size; ++*who)
        if (*who != w->me && !claim_done_by(w, c, *who))
            return true;
    *who = wait->owner >= 0 ? (uint32_t)wait->owner : w->me;
    return !verdict_reached(w, wait, c->seq);
}

/* The operation has succeeded. This rank only waits until others have read its buffers or are gone:
   no deadline and no abort ends that, because peers may still read. 1: go on; 0: sleep. */
static int verdict_over(struct watch *w, const struct wait *wait, uint64_t seq)
{
    if (!wait->leave)
        return 1;
    death_look(w);                                                   /* E5: alive words */
    w->over = !verdict_reached(w, wait, seq);
    return !w->over;
}

int verdict_look(struct watch *w, const struct claim *c, const struct wait *wait, bool late)
{
    int further = 0;
    w->over = false;
    for (;;) {
        if (claim_holds(w, c)) {
            int r = verdict_contested(w, c);
            return r < 0 ? r : verdict_over(w, wait, c->seq);
        }
        uint64_t v = load_acquire64(&w->slot->verdict);              /* E7 acquire */
        int32_t after = verdict_after(v, c->seq);
        if (v && after > 0) {           /* a rank is further: C(k) holds, and we shall see it … */
            if (++further > FURTHER_MOST)
                return DAMAGED;            /* … or the word was written over */
            continue;
        }
        if (v && verdict_state(v) == VERDICT_CONFIRMED)
            return verdict_fail(w, v);
        if (v && after < 0) {
            swap_if64(&w->slot->verdict, &v, 0);                     /* E8 release */
            continue;
        }
        if (v) {
            int r = verdict_decide(w, c, v);
            if (r < 0)
                return r;
            continue;
        }
        uint32_t who, blocker;
        bool overdue = verdict_overdue(w, c, wait, &blocker);
        enum why why = verdict_reason(w, c, late && overdue, blocker, &who);
        if (why == WHY_NONE)
            return verdict_reached(w, wait, c->seq);
        v = verdict_make(c->seq, why, w->me, who);
        uint64_t none = 0;
        if (!swap_if64(&w->slot->verdict, &none, v))                 /* E4 release */
            continue;
        int r = verdict_decide(w, c, v);
        if (r < 0)
            return r;
    }
}

static bool verdict_all_came(const struct watch *w, uint64_t seq)
{
    for (uint32_t p = 0; p < w->size; p++)
        if (load_acquire64(&watch_arrival(w, p, seq)->seq) < seq)    /* E1 acquire */
            return false;
    return true;
}

/* This rank aborts while it is in an operation at which a peer has not arrived: the operation fails
   at once. Else a rank that arrives after the abort could complete it before this rank's waiting
   thread looks. The steps are those of give up and decide, without a claim: while a rank has not
   arrived, C(k) does not hold. */
static void verdict_give_up(struct watch *w, enum why why)
{
    uint64_t a = load_acquire64(&w->mine->arrival[0].seq),
             b = load_acquire64(&w->mine->arrival[1].seq), seq = a > b ? a : b;
    uint64_t v = load_acquire64(&w->slot->verdict), proposal = verdict_make(seq, why, w->me, w->me);
    if (verdict_all_came(w, seq))
        return;
    if (v && verdict_after(v, seq) < 0 && verdict_state(v) == VERDICT_PROPOSED)
        swap_if64(&w->slot->verdict, &v, 0);                         /* E8 release */
    v = 0;
    /* E4 release: else another rank was first, and decides */
    if (!swap_if64(&w->slot->verdict, &v, proposal))
        return;
    fence_full();                                                    /* E4 fence */
    if (verdict_all_came(w, seq))
        swap_if64(&w->slot->verdict, &proposal, 0);                  /* E8 release */
    else if (verdict_confirm(w, proposal))
        w->ways->wake(w->ways->arg, low_half(&w->slot->verdict), INT32_MAX);
}

void verdict_quit(struct watch *w, uint32_t bit)
{
    if (bit & (QUIT_ABORT | QUIT_INTERRUPT | QUIT_DEVICE | QUIT_ALONE))
        fetch_or32(&w->attention, ATTENTION_BROKEN);
    fetch_or32(&w->mine->quit, bit);                                 /* E7 release */
    fetch_add32(&w->slot->news, 1);                                  /* E7 release */
    w->ways->wake(w->ways->arg, &w->slot->news, INT32_MAX);
    if (bit & (QUIT_ABORT | QUIT_INTERRUPT))
        verdict_give_up(w, bit & QUIT_ABORT ? WHY_ABORT : WHY_INTERRUPT);
    if (bit & QUIT_FREED)
        /* E7 release: the slot may be another comm's from here on */
        fetch_or32(&w->mine->quit, QUIT_OVER);
}
