/* All waits of collectives. A wait first spins for its budget, then checks everything that could
 * end it (verdict_look), then sleeps in slices. It sleeps on the word, the verdict, the news and
 * the alive words at once, so that a death or an abort wakes it; 250 ms at a time. If ranks share
 * CPUs, sleeps are many and short: the first is 1 ms on the word alone (one plain futex). Before
 * each long slice the system is asked for deaths without a mark. Before the first one it is one
 * quick question. Later one rank asks thoroughly for all that wait in an operation: the first that
 * wakes when it is time. A rank that is stopped or dies while it asks needs no successor.
 * A device of this rank is polled, because no word says when it is ready: for 200 us in a row, with
 * the CPU offered to others, then every 50 us; between two polls the same words end the sleep. */
#include "watch/drive.h"

#include "os/cpu.h"
#include "watch/cycle.h"
#include "watch/death.h"
#include "watch/journal.h"
#include "watch/rollcall.h"
#include "watch/verdict.h"

#include <errno.h>
#include <limits.h>

/* ns; words before the alive words */
enum {
    LEAST_SLICE = 100000,
    EXCESS_LEAST = 1000000,
    ALIVE_FROM = 3,
    /* percent of a slice: so old are the last questions when others are asked. Below 100, so that
     * one who waits alone asks after each slice */
    ASK_AFTER = 75
};
/* ns; polls between two calls of the interrupt function, between two probes */
enum { POLL_SPIN = 200000, POLL_SLICE = 50000, POLLS_A_QUESTION = 20, POLLS_A_PROBE = 5000 };


void drive_started(struct op *op, uint64_t now)
{
    if (op->began)
        return;
    op->began = true;
    op->began_ns = now;
    op->excused_ns = op->watch->excused_ns;
    op->polls = 0;
}

uint64_t drive_waited(const struct op *op, uint64_t now)
{
    uint64_t passed = now > op->began_ns ? now - op->began_ns : 0;
    uint64_t excused = op->watch->excused_ns - op->excused_ns;
    return passed > excused ? passed - excused : 0;
}

/* Asks. A thorough question is left out if a peer has just asked it: it asks for all that wait in
 * this operation. A rank to which the system does not show all members always asks, and does not
 * speak for others. So does a rank in an agreement, which has no number. A time far in the future
 * is of another time namespace. */
static void drive_ask(struct op *op, bool thorough)
{
    struct watch *w = op->watch;
    if (!thorough) {
        death_probe(w, false);
        return;
    }
    shared64 *word = &w->slot->asked[op->claim.seq & 1];
    uint64_t period = drive_slice_most(op->timeout_ns) / 100 * ASK_AFTER;
    uint64_t now = w->ways->now(w->ways->arg);
    /* relaxed: only spares questions that a peer has just asked */
    uint64_t asked = load_relaxed64(word), age = now > asked ? now - asked : asked - now;
    bool alone = w->blind || op->claim.seq == 0;
    /* After the operation a reader's end is nobody's concern but ours: no verdict tells of it. */
    if (op->wait.leave && op->wait.owner >= 0)
        death_probe_one(w, (uint32_t)op->wait.owner, thorough);
    if (!alone && ((asked && age < period) || !swap_if64(word, &asked, now)))
        return;
    death_probe(w, thorough);
    if (w->blind && !alone)
        swap_if64(word, &now, asked);
}

void drive_probe(struct op *op)
{
    op->polls += op->wait.own;
    if (op->wait.poll) {
        op->slices = SLICE_FIRST;                    /* all words are watched */
        if (op->polls % POLLS_A_PROBE == 0)
            drive_ask(op, true);
    } else if (op->slices >= SLICE_FIRST)
        drive_ask(op, op->slices >= SLICE_LATER);
}

int drive_step(struct op *op)
{
    int step = op->advance(op);
    if (step != DONE)
        return step;
    int r = verdict_complete(op->watch, &op->claim);
    return r < 0 ? r : DONE;
}

int drive_look(struct op *op, uint64_t now)
{
    struct watch *w = op->watch;
    drive_started(op, now);
    uint64_t waited = drive_waited(op, now);
    bool late = op->timeout_ns >= 0 && waited >= (uint64_t)op->timeout_ns;
    if (late && op->keep) {
        op->late = true;
        late = false;
    }
    /* If the word has come, no rank is probed. E1 acquire, E16 acquire, E17 acquire, E18 acquire,
     * E20 acquire, E70 acquire */
    if (load_acquire64(op->wait.word) < op->wait.value)
        drive_probe(op);
    int r = verdict_look(w, &op->claim, &op->wait, late);
    if (r == 0 && w->warn_ns >= 0 && waited >= (uint64_t)w->warn_ns << (2 * op->warned)) {
        rollcall_warn(op, waited);
        op->warned++;
    }
    return r;
}

uint64_t drive_slice_most(int64_t timeout_ns)
{
    uint64_t part = timeout_ns < 0 ? WAIT_LONG : (uint64_t)timeout_ns / 8;
    return part < LEAST_SLICE ? LEAST_SLICE : part < WAIT_LONG ? part : WAIT_LONG;
}

uint64_t drive_excess(uint64_t slice, uint64_t took)
{
    return took > 4 * slice && took - slice > EXCESS_LEAST ? took - slice : 0;
}

uint64_t drive_later(uint64_t began, uint64_t now, uint64_t excess)
{
    if (began >= now)
        return began;
    return now - began < excess ? now : began + excess;
}

uint64_t drive_slice(struct op *op)
{
    uint64_t slice = op->wait.poll ? POLL_SLICE : wait_slice_ns(op->slices);
    uint64_t waited = drive_waited(op, op->watch->ways->now(op->watch->ways->arg));
    if (op->timeout_ns >= 0 && !op->late && !op->watch->over) {
        uint64_t left = (uint64_t)op->timeout_ns > waited ? (uint64_t)op->timeout_ns - waited : 0,
                 most = drive_slice_most(op->timeout_ns);
        slice = most < slice ? most : slice;
        slice = left < slice ? left + 1 : slice;
    }
    uint64_t warn = op->watch->warn_ns >= 0 && op->warned < 2
        ? (uint64_t)op->watch->warn_ns << (2 * op->warned)
        : UINT64_MAX;
    if (warn > waited && warn - waited < slice)
        slice = warn - waited + 1;
    return slice;
}

/* A poll's slice is so short that a busy machine doubles it: compared with that, all the time would
 * be excused. */
void drive_slept(struct op *op, uint64_t slice, uint64_t took)
{
    if (op->wait.poll)
        slice = drive_slice_most(op->timeout_ns);
    else
        wait_slept(&op->watch->budget, took);
    op->slices += took >= slice;                     /* who was woken may sleep so long again */
    op->watch->excused_ns += drive_excess(slice, took);
    journal_count(op->watch, FIGURE_SLEEPS, 1);
}

static shared32 *drive_sleepers(const struct op *op)
{
    struct watch *w = op->watch;
    return op->wait.owner < 0 ? &w->slot->sense_sleepers : &w->members[op->wait.owner].sleepers;
}

int drive_gather(struct op *op, struct futex_word *words, int room, struct drive_sleep *sleep)
{
    struct watch *w = op->watch;
    uint64_t have = load_acquire64(op->wait.word);
    *sleep = (struct drive_sleep){ drive_sleepers(op), words, 0 };
    fetch_add32(sleep->sleepers, 1);                 /* E3: declared … */
    fence_full();               /* E3 fence: … before the word is loaded again, by the kernel */
    int n = 0;
    /* If the word has come meanwhile, the sleep returns at once. */
    words[n++] = (struct futex_word){ low_half(op->wait.word),
                                      (uint32_t)have - (have >= op->wait.value) };
    if (op->slices >= SLICE_FIRST && room >= ALIVE_FROM + 1) {
        /* Over: a verdict on a later operation, or an abort, stays for ever and does not concern
         * this one. Their present values are watched, or it would never sleep. */
        words[n++] = (struct futex_word){ low_half(&w->slot->verdict),
                                          w->over ? (uint32_t)load_acquire64(&w->slot->verdict)
                                                  : 0 };
        words[n++] = (struct futex_word){ &w->slot->news,
                                          w->over ? load_acquire32(&w->slot->news) : w->news_seen };
        if (w->beyond && room >= ALIVE_FROM + 3) {
            words[n++] = (struct futex_word){ w->beyond->news, w->beyond->news_seen };
            words[n++] = (struct futex_word){ low_half(w->beyond->verdict),
                                              w->beyond->verdict_seen };
        }
        /* Above 125 ranks each sleeper watches its neighbours: the rank that finds a death proposes
         * the verdict, which wakes the rest. */
        for (uint32_t i = 1; i < w->size && n < room; i++) {
            uint32_t p = (w->me + i) % w->size;
            if (w->gone[p] == GONE_NO)
                words[n++] = (struct futex_word){ process_mark_word(&w->seats[p]->mark),
                                                  w->seen[p] };
        }
    }
    sleep->n = n;
    return n;
}

void drive_retire(const struct wait_ways *ways, const struct drive_sleep *sleep)
{
    fetch_sub32(sleep->sleepers, 1);
    for (int i = ALIVE_FROM; i < sleep->n; i++)
        if (load_acquire32(sleep->words[i].word) != sleep->words[i].seen)           /* E5 acquire */
            ways->wake(ways->arg, sleep->words[i].word, INT_MAX);                   /* E9 */
}

bool drive_stop_asked(struct watch *w)
{
    watch_meanwhile(w);
    /* once is enough: the operation may have succeeded, and wait only for its readers */
    bool said = load_acquire32(&w->mine->quit) & QUIT_INTERRUPT;
    return w->interrupt && !said && w->interrupt(w->interrupt_arg);
}

/* The interrupt function said stop. A verdict ends the operation, as for any other reason, so that
   all or none holds: if all ranks have done their part by now, it succeeds here as on the others,
   and the next operation meets the abort. */
static int drive_interrupted(struct op *op)
{
    struct watch *w = op->watch;
    verdict_quit(w, QUIT_INTERRUPT);
    int r = verdict_look(w, &op->claim, &op->wait, false);
    if (r >= 0)
        return 0;
    return verdict_why(w->failed) == WHY_INTERRUPT && verdict_who(w->failed) == w->me ? -EINTR : r;
}

/* What is left until the deadline, for onlookers. */
static void drive_tell(struct op *op, uint64_t now)
{
    uint64_t waited = drive_waited(op, now), most = (uint64_t)op->timeout_ns;
    op->watch->mine->left = op->timeout_ns < 0 || op->late ? 0
        : waited < most ? most - waited + 1
                        : 1;
}

static void drive_cycle(struct op *op, uint64_t now)
{
    struct cycle_wait wait = { fingerprint_kind(op->claim.descriptor), op->site, op->claim.seq,
                               -1 };
    if (op->watch->over || timeout_given(op->timeout_ns) || drive_waited(op, now) < CYCLE_FROM_NS)
        return;
    cycle_patient(op->watch, op->claim.seq);
    cycle_look(op->watch, &wait);
}

/* Sleeps until the word has come (0) or the operation has failed. slept: up to when stops have been
 * excused. */
static int drive_sleep(struct op *op, uint64_t slept)
{
    struct watch *w = op->watch;
    struct futex_word words[FUTEX_WORDS];
    /* With a CPU of its own a rank seldom sleeps, and then long: it sleeps on all words from the
     * first slice on, because short slices cost as much as the sleep. */
    op->slices = wait_first_slice(&w->budget);
    for (bool first = true;; first = false) {
        uint64_t before = w->ways->now(w->ways->arg);
        /* the process may be stopped between two sleeps; before the deadline is judged */
        w->excused_ns += drive_excess(0, before - slept);
        int r = drive_look(op, before);
        if (r != 0)
            return r < 0 ? r : 0;
        drive_cycle(op, before);
        drive_tell(op, before);
        uint64_t slice = drive_slice(op);
        struct drive_sleep sleep;
        int n = drive_gather(op, words, FUTEX_WORDS, &sleep);
        r = w->ways->sleep(w->ways->arg, words, n, slice);
        if (r == -ENOSYS) {                     /* one word at a time: then with the short slices */
            op->slices = first ? SLICE_BRIEF : op->slices;
            slice = drive_slice(op);
            w->ways->sleep(w->ways->arg, words, 1, slice);
        }
        drive_retire(w->ways, &sleep);
        slept = w->ways->now(w->ways->arg);
        drive_slept(op, slice, slept - before);
        if (drive_stop_asked(w))
            return drive_interrupted(op);
    }
}

/* The process may be stopped in a round. */
static uint64_t drive_round(const struct op *op, uint64_t last)
{
    struct watch *w = op->watch;
    uint64_t now = w->ways->now(w->ways->arg);
    w->excused_ns += drive_excess(drive_slice_most(op->timeout_ns), now - last);
    return now;
}

/* A caller that asked for a long spin gets it in rounds, with a look after each. 1: go on; 0:
 * sleep; negative: the operation's error. *last: up to when stops have been excused. */
static int drive_spin_on(struct op *op, uint64_t *last)
{
    struct watch *w = op->watch;
    struct wait_ends ends = { &w->slot->verdict, &w->slot->news };
    const struct wait_budget round = { .spin_ticks = w->budget.spin_ticks };
    if (op->wait.value == UINT64_MAX || !round.spin_ticks)
        return 0;
    for (uint32_t i = 1; i < w->budget.spin_rounds; i++) {
        *last = drive_round(op, *last);
        int r = drive_look(op, *last);
        if (r == 0 && wait_spin(op->wait.word, op->wait.value, ends, &round, w->ways))
            r = 1;
        if (r == 0 && drive_stop_asked(w) && (r = drive_interrupted(op)) == 0)
            r = 1;
        if (r != 0)
            return r;
    }
    *last = drive_round(op, *last);
    return 0;
}

static int drive_wait(struct op *op)
{
    uint64_t last = op->watch->ways->now(op->watch->ways->arg);
    drive_started(op, last);
    int r = drive_spin_on(op, &last);
    if (r == 0)
        r = drive_sleep(op, last);
    r = r > 0 ? 0 : r;
    op->watch->mine->left = 0;
    cycle_over(op->watch->threads);
    return r;
}

bool drive_poll_spins(const struct watch *w, uint64_t *began)
{
    const struct wait_ways *ways = w->ways;
    uint64_t now = ways->now(ways->arg);
    if (!*began)
        *began = now;
    if (!w->budget.yields || now - *began >= POLL_SPIN)
        return false;
    ways->yield(ways->arg);
    return true;
}

/* One look, and a short sleep. 0, or the operation's error. *last: when the previous poll ended. */
static int drive_poll(struct op *op, uint64_t *last)
{
    struct watch *w = op->watch;
    struct futex_word words[FUTEX_WORDS];
    struct drive_sleep sleep;
    uint64_t before = w->ways->now(w->ways->arg);
    if (*last)
        /* the process may be stopped between two polls */
        w->excused_ns += drive_excess(drive_slice_most(op->timeout_ns), before - *last);
    int r = drive_look(op, before);
    if (r < 0)
        return r;
    uint64_t slice = drive_slice(op);
    int n = drive_gather(op, words, FUTEX_WORDS, &sleep);
    wait_sleep(w->ways, words, n, slice, slice);
    drive_retire(w->ways, &sleep);
    *last = w->ways->now(w->ways->arg);
    drive_slept(op, slice, *last - before);
    return op->polls % POLLS_A_QUESTION == 0 && drive_stop_asked(w) ? drive_interrupted(op) : 0;
}

/* A wait for arrivals, and all ranks on this CPU have arrived. A rank that is alone there yields to
 * nobody, so it may as well. Where a rank runs is a hint: a wrong one costs a few us. */
static bool drive_may_linger(void *arg)
{
    const struct op *op = arg;
    struct watch *w = op->watch;
    uint64_t seq = op->claim.seq;
    uint32_t here = (uint32_t)cpu_here() + 1, others = 0;
    if (load_relaxed32(&w->mine->cpu) != here)                           /* relaxed: a hint */
        store_relaxed32(&w->mine->cpu, here);                            /* relaxed: a hint */
    if (op->wait.owner >= 0
        && op->wait.word != &watch_arrival(w, (uint32_t)op->wait.owner, seq)->seq)
        return false;
    for (uint32_t i = 0, p = w->linger_at; i < w->size; i++, p = p + 1 < w->size ? p + 1 : 0) {
        if (p == w->me || load_relaxed32(&w->members[p].cpu) != here)    /* relaxed: a hint */
            continue;
        others++;
        if (watch_seq(watch_arrival(w, p, seq)) < seq) {
            w->linger_at = p;
            return false;
        }
    }
    return others > 0;
}

int drive_to_end(struct op *op)
{
    struct watch *w = op->watch;
    struct wait_ends ends = { &w->slot->verdict, &w->slot->news };
    const struct wait_linger linger = { w->linger_ticks, drive_may_linger, op };
    uint64_t polling = 0, polled = 0;
    int r;
    for (;;) {
        r = drive_step(op);
        if (r != WAITING)
            break;
        op->waited = true;
        if (op->wait.poll) {
            r = drive_poll_spins(w, &polling) ? 0 : drive_poll(op, &polled);
            if (r < 0)
                break;
            continue;
        }
        polling = polled = 0;
        if (op->wait.value != UINT64_MAX
            && wait_spin_or_linger(op->wait.word, op->wait.value, ends, &w->budget, w->ways,
                                   &linger))
            continue;
        r = drive_wait(op);
        if (r < 0)
            break;
    }
    return r == DONE ? 0 : r;
}
