/* The consensus of agree.h. In shared memory a consensus is one word and a CAS. The rest of the
 * file decides when to propose, and sleeps meanwhile, in the slices of watch/drive.
 * Cost: about two barriers. Each rank writes one line, which all read. */
#include "group/agree.h"

#include "os/say.h"
#include "watch/death.h"
#include "watch/drive.h"
#include "watch/journal.h"
#include "watch/rollcall.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BITS = 28, ALIVE_FROM = 3, SITE_BITS = 26 };

/* One agreement while it lasts. */
struct reach {
    struct agreement *a;
    struct op op;
    uint64_t slept_ns, awake_ns, seen;
    uint32_t missing, next;
    bool stopped;
};

static uint64_t decision_make(uint64_t number, struct decision d)
{
    return (uint64_t)d.value << 32 | (uint32_t)(number << 4) | (uint32_t)d.outcome;
}

static struct decision decision_of(uint64_t word)
{
    return (struct decision){ (enum outcome)(word & 15), (uint32_t)(word >> 32) };
}

/* The word's number minus k, by signed 28-bit difference. */
static int32_t decision_after(uint64_t word, uint64_t number)
{
    return (int32_t)((uint32_t)word - (uint32_t)(number << 4)) >> 4;
}

static bool decision_by_all(uint64_t word)
{
    return decision_of(word).outcome >= OUTCOME_DONE && decision_of(word).outcome <= OUTCOME_FAIL;
}

bool agree_was_reached(const struct slot *slot)
{
    bool reached = decision_of(load_acquire64(&slot->kept)).outcome == OUTCOME_DONE;    /* E46 */
    for (int k = 0; k < DECISIONS && !reached; k++) {
        uint64_t word = load_acquire64(&slot->decision[k]);          /* E46 acquire */
        reached = decision_of(word).outcome == OUTCOME_DONE;
    }
    return reached;
}

static shared64 *agree_word(const struct agreement *a)
{
    return &a->watch->slot->decision[a->number % DECISIONS];
}

static struct vote *agree_vote(const struct agreement *a, uint32_t p)
{
    return &a->watch->members[p].vote[a->number & 1];
}

bool agree_voted(const struct agreement *a, uint32_t p)
{
    return load_acquire64(&agree_vote(a, p)->number) >= a->number;   /* E45 acquire */
}

/* To be asked before agree_voted: then "gone and not voted" stays true. */
bool agree_gone(const struct agreement *a, uint32_t p)
{
    const struct watch *w = a->watch;
    uint32_t quit = QUIT_FREED | QUIT_LEFT;
    /* E7 acquire */
    return p != w->me && (w->gone[p] != GONE_NO || (load_acquire32(&w->members[p].quit) & quit));
}

static uint64_t agree_stance(const struct agreement *a, uint32_t p)
{
    return load_relaxed64(&agree_vote(a, p)->stance);                /* relaxed: after E45 */
}

uint32_t agree_value(const struct agreement *a, uint32_t p) { return (uint32_t)agree_stance(a, p); }

static enum kind stance_kind(uint64_t stance) { return (enum kind)(stance >> 58); }

static uint32_t stance_site(uint64_t stance)
{
    return (uint32_t)(stance >> 32) & ((UINT32_C(1) << SITE_BITS) - 1);
}

static void agree_cast(struct agreement *a)
{
    struct watch *w = a->watch;
    struct vote *mine = &w->mine->vote[a->number & 1];
    /* relaxed: E45 publishes it */
    store_relaxed64(&mine->stance, (uint64_t)a->kind << 58 | (uint64_t)a->site << 32 | a->value);
    store_fence64(&mine->number, a->number);                /* E45 release, E2 fence */
    if (load_relaxed32(&w->mine->sleepers))                 /* relaxed: E2, ordered by the fence */
        w->ways->wake(w->ways->arg, low_half(&mine->number), INT32_MAX);
}

/* Keeps a decision that a slow rank has still to adopt: its word is about to be used again. */
static void agree_keep(struct slot *slot, uint64_t word)
{
    uint64_t kept = load_acquire64(&slot->kept);                     /* E46 acquire */
    while (decision_by_all(word) && (kept == 0 || decision_after(word, (uint32_t)kept >> 4) > 0))
        if (swap_if64(&slot->kept, &kept, word))                     /* E46 release */
            return;
}

/* CAS of k's decision word from `seen` to `d`. True: d is decided. */
static bool agree_propose(struct reach *r, struct decision d)
{
    struct watch *w = r->a->watch;
    uint64_t seen = r->seen;
    agree_keep(w->slot, seen);
    if (!swap_if64(agree_word(r->a), &seen, decision_make(r->a->number, d)))    /* E46 release */
        return false;
    w->ways->wake(w->ways->arg, low_half(agree_word(r->a)), INT32_MAX);
    return true;
}

static uint32_t agree_pair(uint32_t by, uint32_t who) { return by << 16 | who; }

/* What there is to propose now; NONE: a rank is missing. */
static struct decision agree_judge(struct reach *r)
{
    struct agreement *a = r->a;
    struct watch *w = a->watch;
    w->news_seen = load_acquire32(&w->slot->news);                   /* E7 acquire */
    death_look(w);                                                   /* E5: alive words */
    bool all = true;
    for (uint32_t p = 0; p < w->size; p++) {
        bool gone = agree_gone(a, p);
        if (agree_voted(a, p)) {
            if (stance_kind(agree_stance(a, p)) != a->kind)
                return (struct decision){ OUTCOME_MIXED, agree_pair(w->me, p) };
        } else if (!gone && all) {
            all = false;
            r->missing = p;
        }
    }
    if (all)
        return a->sum(a);
    if (r->stopped)
        return (struct decision){ OUTCOME_STOPPED, agree_pair(w->me, r->missing) };
    if (r->op.timeout_ns >= 0 && drive_waited(&r->op, r->awake_ns) >= (uint64_t)r->op.timeout_ns)
        return (struct decision){ OUTCOME_LATE, agree_pair(w->me, r->missing) };
    return (struct decision){ OUTCOME_NONE, 0 };
}

/* True: *d is decided. */
static bool agree_look(struct reach *r, struct decision *d)
{
    const struct agreement *a = r->a;
    drive_probe(&r->op);
    for (;;) {
        r->seen = load_acquire64(agree_word(a));                /* E46 acquire: before the votes */
        int32_t after = decision_after(r->seen, a->number);
        uint64_t kept = load_acquire64(&a->watch->slot->kept);  /* E46 acquire */
        if (after >= 0) {
            bool old = after > 0 && kept && decision_after(kept, a->number) == 0;
            *d = after == 0 ? decision_of(r->seen)
                : old ? decision_of(kept)
                : (struct decision){ OUTCOME_LATE, UINT32_MAX };
            return true;
        }
        *d = agree_judge(r);
        if (d->outcome == OUTCOME_NONE)
            return false;
        if (agree_propose(r, *d))
            return true;
    }
}

/* Spins on the votes in turn, without a look at deaths or deadlines. True: all have voted. */
static bool agree_spin(struct reach *r)
{
    const struct watch *w = r->a->watch;
    shared64 whole = 0;
    shared32 quiet = 0;
    for (; r->next < w->size; r->next++)
        /* E45 acquire */
        if (r->next != w->me && !agree_voted(r->a, r->next)
            && !wait_spin(&agree_vote(r->a, r->next)->number, r->a->number,
                          (struct wait_ends){ &whole, &quiet }, &w->budget, w->ways))
            return false;
    return true;
}

/* Counts the time in which the process was stopped between two sleeps. To be called before the
 * deadline is judged. */
static void agree_awake(struct reach *r)
{
    struct watch *w = r->a->watch;
    r->awake_ns = w->ways->now(w->ways->arg);
    w->excused_ns += drive_excess(0, r->awake_ns - r->slept_ns);
}

static void agree_sleep(struct reach *r)
{
    struct watch *w = r->a->watch;
    struct futex_word words[FUTEX_WORDS];
    shared64 *vote = &agree_vote(r->a, r->missing)->number;
    /* E45 acquire */
    uint64_t slice = drive_slice(&r->op), before = r->awake_ns, have = load_acquire64(vote);
    struct drive_sleep sleep = { &w->members[r->missing].sleepers, words, ALIVE_FROM };
    /* the vote has come meanwhile: the futex value differs, so the sleep returns at once */
    words[0] = (struct futex_word){ low_half(vote), (uint32_t)have - (have >= r->a->number) };
    words[1] = (struct futex_word){ low_half(agree_word(r->a)), (uint32_t)r->seen };
    words[2] = (struct futex_word){ &w->slot->news, w->news_seen };
    for (uint32_t i = 0; i < w->size && sleep.n < FUTEX_WORDS; i++) {
        uint32_t p = (r->missing + i) % w->size;
        if (p != w->me && w->gone[p] == GONE_NO)
            words[sleep.n++] = (struct futex_word){ process_mark_word(&w->seats[p]->mark),
                                                    w->seen[p] };
    }
    fetch_add32(sleep.sleepers, 1);                                  /* E3 */
    fence_full();                                                    /* E3 fence */
    wait_sleep(w->ways, words, sleep.n, slice, slice);
    drive_retire(w->ways, &sleep);                                   /* E9 */
    r->slept_ns = w->ways->now(w->ways->arg);
    drive_slept(&r->op, slice, r->slept_ns - before);
    watch_meanwhile(w);
    if (w->interrupt && w->interrupt(w->interrupt_arg))
        r->stopped = true;
}

/* ---- words for people ---- */

static void agree_missing(const struct agreement *a, struct text *t, uint32_t named)
{
    int *ranks = calloc(a->watch->size, sizeof *ranks), n = 0;
    for (uint32_t p = 0; ranks && p < a->watch->size; p++)
        if (!agree_gone(a, p) && !agree_voted(a, p))
            ranks[n++] = (int)p;
    if (ranks && n == 0)
        ranks[n++] = (int)named;                               /* it has voted meanwhile */
    text_add(t, "  missing: rank%s ", n == 1 ? "" : "s");
    if (ranks)
        text_add_ranks(t, ranks, n);
    text_add(t, "\n");
    free(ranks);
}

void agree_report(struct agreement *a, struct text *t)
{
    text_add(t, "  called here, by rank %u of %u, at %s\n", a->watch->me, a->watch->size,
             arena_site_text(a->watch->arena, a->site));
    rollcall_table(t, a->watch, NULL);
}

static void agree_warn(struct reach *r)
{
    const struct watch *w = r->a->watch;
    uint64_t waited = drive_waited(&r->op, r->awake_ns);
    if (w->warn_ns < 0 || waited < (uint64_t)w->warn_ns << (2 * r->op.warned))
        return;
    r->op.warned++;
    for (uint32_t p = 0; p < w->me; p++)
        if (!agree_gone(r->a, p) && agree_voted(r->a, p))
            return;                                   /* the lowest waiting rank prints it */
    char buffer[8192];
    struct text t = TEXT_IN(buffer);
    text_clear(&t);
    text_add(&t, "tutti: rank %u has waited ", w->me);
    text_add_duration(&t, waited);
    text_add(&t, " in %s on %s\n", kind_name(r->a->kind), w->name);
    agree_missing(r->a, &t, r->missing);
    agree_report(r->a, &t);
    say(buffer, t.used);
}

/* Which rank called what, as far as the votes still say. */
static void agree_parties(const struct agreement *a, struct text *t)
{
    for (uint32_t p = 0; p < a->watch->size && p < 40; p++) {
        if (load_acquire64(&agree_vote(a, p)->number) != a->number)  /* E45 acquire */
            continue;
        uint64_t stance = agree_stance(a, p);
        text_add(t, "  rank %u: %s at %s\n", p, kind_name(stance_kind(stance)),
                 arena_site_text(a->watch->arena, stance_site(stance)));
    }
}

static int agree_fail(struct agreement *a, struct decision d, int64_t timeout_ns)
{
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    const char *name = kind_name(a->kind);
    uint32_t by = d.value >> 16, who = d.value & 0xffff;
    int error = d.outcome == OUTCOME_LATE ? -ETIMEDOUT
        : d.outcome == OUTCOME_MIXED ? -EPROTO
        : by == a->watch->me ? -EINTR
        : -ECANCELED;
    text_clear(&t);
    if (d.value == UINT32_MAX)
        text_add(&t, "this rank came to %s on %s long after the others had given it up\n", name,
                 a->watch->name);
    else if (d.outcome == OUTCOME_LATE) {
        text_add(&t, "the deadline ");
        if (by == a->watch->me) {
            text_add(&t, "of ");
            text_add_duration(&t, (uint64_t)timeout_ns);
            text_add(&t, " ");
        }
        text_add(&t, "of rank %u passed in %s on %s\n", by, name, a->watch->name);
        agree_missing(a, &t, who);
    } else if (d.outcome == OUTCOME_MIXED) {
        text_add(&t,
                 "the ranks called different things on %s: ranks %u and %u do not agree on what it "
                 "is about\n",
                 a->watch->name, by < who ? by : who, by < who ? who : by);
        agree_parties(a, &t);
    } else
        text_add(&t,
                 "rank %u was interrupted in %s on %s while it waited for rank %u; this ended it "
                 "for all\n",
                 by, name, a->watch->name, who);
    agree_report(a, &t);
    comm_show(a->comm, &t);
    return error;
}

/* Takes the comm's watch; beside work under way a copy: the work's thread uses the scratch. */
static void agree_watch(struct agreement *a)
{
    struct tutti_comm *comm = a->comm;
    a->watch = &comm->watch;
    if (!(load_acquire32(&comm->watch.attention) & ATTENTION_WORK))
        return;
    const struct watch *w = &comm->watch;
    a->view = (struct watch){
        .slot = w->slot, .members = w->members, .mine = w->mine, .me = w->me, .size = w->size,
        .first = w->first, .budget = w->budget, .ways = w->ways, .arena = w->arena,
        .seats = w->seats, .handles = w->handles, .pause_ticks = w->pause_ticks,
        .timeout_ns = w->timeout_ns, .warn_ns = w->warn_ns, .interrupt = w->interrupt,
        .interrupt_arg = w->interrupt_arg, .name = w->name, .seen = comm->aside.seen,
        .gone = comm->aside.gone, .lost = comm->aside.lost
    };
    a->watch = &a->view;
}

int agree_reach(struct agreement *a, struct decision *decided)
{
    a->number = ++a->comm->agreements;
    agree_watch(a);
    struct reach r = {
        .a = a, .op = { .watch = a->watch, .site = a->site, .timeout_ns = a->watch->timeout_ns,
                          .slices = SLICE_FIRST }
    };
    drive_started(&r.op, a->watch->ways->now(a->watch->ways->arg));
    agree_cast(a);
    agree_spin(&r);
    r.slept_ns = r.op.began_ns;
    while (agree_awake(&r), !agree_look(&r, decided)) {
        agree_warn(&r);
        agree_sleep(&r);
    }
    return decided->outcome <= OUTCOME_FAIL ? 0 : agree_fail(a, *decided, r.op.timeout_ns);
}

/* ---- tutti_comm_agree ---- */

static struct decision flags_sum(const struct agreement *a)
{
    uint32_t all = UINT32_MAX;
    for (uint32_t p = 0; p < a->watch->size; p++)
        if (agree_voted(a, p))
            all &= agree_value(a, p);
    return (struct decision){ OUTCOME_DONE, all };
}

int comm_agree(struct tutti_comm *comm, uint32_t site, int *flag)
{
    struct agreement a = {
        .comm = comm, .kind = KIND_AGREE, .site = site, .value = (uint32_t)*flag, .sum = flags_sum
    };
    struct decision d;
    /* with work under way the journal belongs to the thread of the work */
    bool work = load_acquire32(&comm->watch.attention) & ATTENTION_WORK;
    if (!work)
        journal_begin(&comm->watch, 0, fingerprint_make(KIND_AGREE, 0, 0, 0, 0), 0, site,
                      clock_tick());
    int r = agree_reach(&a, &d);
    if (r == 0)
        *flag = (int)d.value;
    if (!work)
        journal_end(&comm->watch, r, clock_tick());
    return r;
}
