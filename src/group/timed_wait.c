/* The waits of once, first, turn, send and recv are for one rank, or for any. They have no verdict:
 * a deadline or a death ends this call only. Slices and watched words are as in watch/drive.
 * Cost: a look at clock and slot for each slice. */
#include "group/timed_wait.h"

#include "base/error.h"
#include "base/probe.h"
#include "os/say.h"
#include "watch/cycle.h"
#include "watch/death.h"
#include "watch/drive.h"
#include "watch/rollcall.h"
#include "watch/verdict.h"

#include <errno.h>

struct timed_wait timed_wait_begin(struct tutti_comm *comm, int64_t timeout_ns)
{
    return (struct timed_wait){
        .comm = comm, .timeout_ns = timeout_ns,
        .began_ns = comm->watch.ways->now(comm->watch.ways->arg)
    };
}

bool timed_wait_lost(struct watch *w, uint32_t about, int slice)
{
    /* relaxed: sticky, and all who write it say the same */
    enum gone gone = load_relaxed8(&w->lost[about]);
    if (gone == GONE_NO)
        gone = death_of(w->seats[about]);
    if (gone == GONE_DIED)
        PROBE3(death, w->name, watch_world_rank(w, about), w->seats[about]->id.pid);
    if (gone != GONE_NO)
        return true;
    if (load_acquire32(&w->members[about].quit) & (QUIT_LEFT | QUIT_FREED))         /* E7 acquire */
        return true;
    return slice >= SLICE_FIRST && death_without_mark(w, about, slice >= SLICE_LATER);
}

/* A round of a wait asks the system only after a whole slice. It also runs when the word has come,
 * and must cost nothing then. A wait that idles asks thoroughly, some 0.2 ms of CPU, once a
 * second. */
static int timed_wait_round(const struct timed_wait *p)
{
    enum { SECOND = 1000000000 / WAIT_LONG };
    if (p->idles && p->whole % SECOND != 1)
        return p->whole ? SLICE_FIRST : SLICE_BRIEF;
    return p->whole ? SLICE_LATER : SLICE_BRIEF;
}

bool timed_wait_gone(struct timed_wait *p, uint32_t about)
{
    return timed_wait_lost(&p->comm->watch, about, timed_wait_round(p));
}

/* Adds "WHAT of rank N". */
static void timed_wait_whom(struct text *t, int about, const char *what)
{
    text_add(t, "%s", what);
    if (about >= 0)
        text_add(t, " of rank %d", about);
    else if (about == TUTTI_ANY)
        text_add(t, " of any rank");
}

struct seat *timed_wait_other(const struct timed_wait *p, uint32_t *from)
{
    const struct world *world = p->comm->world;
    int slice = timed_wait_round(p);
    for (; *from < (uint32_t)world->size; ++*from) {
        struct seat *seat = &world->arena.seats[*from];
        /* E11 acquire */
        if (*from == (uint32_t)world->rank || load_acquire32(&seat->state) == SEAT_LEFT
            || death_of(seat) != GONE_NO)
            continue;
        if (slice < SLICE_FIRST
            || !death_without_mark(&world->whole->watch, *from, slice >= SLICE_LATER))
            return seat;
    }
    return NULL;
}

static void timed_wait_warn(struct timed_wait *p, uint64_t waited, int about, const char *what)
{
    struct watch *w = &p->comm->watch;
    char line[4096];
    struct text t = TEXT_IN(line);
    text_clear(&t);
    text_add(&t, "tutti: rank %u of %s has waited ", w->me, w->name);
    text_add_duration(&t, waited);
    text_add(&t, " ");
    timed_wait_whom(&t, about, what);
    if (about >= 0) {
        text_add(&t, ": ");
        rollcall_rank(&t, w, (uint32_t)about);
    }
    text_add(&t, "\n");
    if (about == TUTTI_ANY)
        rollcall_table(&t, w, NULL);
    say(line, t.used);
    p->warned = true;
}

/* Needs no verdict: quit bits are sticky. */
int timed_wait_cause(const struct watch *w, uint64_t verdict)
{
    if (verdict_state(verdict) == VERDICT_CONFIRMED)
        return verdict_error(verdict);
    for (uint32_t p = 0; p < w->size; p++) {
        uint32_t quit = load_acquire32(&w->members[p].quit);         /* E7 acquire */
        if (quit & (QUIT_ABORT | QUIT_INTERRUPT | QUIT_DEVICE))
            return quit & QUIT_DEVICE ? -EIO : -ECANCELED;
    }
    return 0;
}

const char *timed_wait_cause_text(int cause)
{
    return cause == -EIO ? "the device of a rank failed" : error_text(cause);
}

static int timed_wait_broken(struct timed_wait *p, int cause, int about, const char *what)
{
    struct watch *w = &p->comm->watch;
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    verdict_note(w, load_acquire64(&w->slot->verdict));              /* E7 acquire */
    text_clear(&t);
    text_add(&t, "the comm failed while this rank waited ");
    timed_wait_whom(&t, about, what);
    text_add(&t, ": %s\n", timed_wait_cause_text(cause));
    for (uint32_t q = 0; q < w->size; q++) {
        uint32_t quit = load_acquire32(&w->members[q].quit);         /* E7 acquire */
        if (quit & (QUIT_ABORT | QUIT_DEVICE))
            text_add(&t,
                     (quit & QUIT_DEVICE) && (cause == -EIO || !(quit & QUIT_ABORT))
                         ? "the device of rank %u failed: %.*s\n"
                         : "rank %u aborted: %.*s\n",
                     q, ABORT_TEXT - 1, w->members[q].why);
    }
    rollcall_table(&t, w, NULL);
    comm_show(p->comm, &t);
    fetch_or32(&w->attention, ATTENTION_BROKEN);
    p->broken = true;
    return cause;
}

int timed_wait_check(struct timed_wait *p, int about, const char *what)
{
    const struct watch *w = &p->comm->watch;
    uint64_t verdict = load_acquire64(&w->slot->verdict);            /* E7 acquire */
    /* E7 acquire */
    int cause = load_acquire32(&w->slot->news) || verdict ? timed_wait_cause(w, verdict) : 0;
    return cause ? timed_wait_broken(p, cause, about, what) : 0;
}

/* ---- waits that can never end ---- */

static void timed_wait_untell(struct timed_wait *p)
{
    if (p->told)
        cycle_over(p->comm->watch.threads);
    p->told = false;
}

void timed_wait_moved(struct timed_wait *p)
{
    struct member *mine = p->comm->watch.mine;
    if (mine->left)                                  /* its line is the senders', too */
        mine->left = 0;
    timed_wait_untell(p);
    p->whole = 0;
}

/* Tells watch/cycle of a long wait. Not if a given deadline ends the wait: its thread then goes on,
 * and may end others' waits. */
static void timed_wait_tell(struct timed_wait *p, uint64_t waited, int about)
{
    struct watch *w = &p->comm->watch;
    struct cycle_wait wait = { p->kind, p->site, 0, about };
    if (p->kind == KIND_NONE || waited < CYCLE_FROM_NS || timeout_given(p->timeout_ns)
        || about == (int)w->me) {
        timed_wait_untell(p);
        return;
    }
    p->told = true;
    cycle_look(w, &wait);
}

static int timed_wait_stuck(struct timed_wait *p, int about, const char *what)
{
    struct watch *w = &p->comm->watch;
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    text_clear(&t);
    text_add(&t, "a wait that can never end: this rank waits ");
    timed_wait_whom(&t, about, what);
    text_add(&t, " on %s; by ranks of the world:\n", w->name);
    cycle_tell(w, w->me, &t);
    verdict_met(w);
    rollcall_table(&t, w, NULL);
    comm_show(p->comm, &t);
    return -EDEADLK;
}

int timed_wait_slice(const struct timed_wait *p)
{
    return SLICE_FIRST + p->whole;                   /* it sleeps on several words in any case */
}

/* One slice: its begin and length, ns; slot words as loaded at its begin. */
struct slice { uint64_t began, length, verdict; uint32_t news; };

/* 0: sleep. 1: the word has changed, also if the comm has failed since. -errno: the wait is over.
 * word NULL: there is no word. */
static int slice_begin(struct timed_wait *p, struct slice *s, const shared64 *word, uint64_t seen,
                       int about, const char *what)
{
    const struct watch *w = &p->comm->watch;
    s->began = w->ways->now(w->ways->arg);
    /* a stop may come between two slices */
    p->excused_ns += drive_excess(0, s->began - (p->slept_ns ? p->slept_ns : p->began_ns));
    uint64_t waited = s->began - p->began_ns - p->excused_ns;
    s->news = load_acquire32(&w->slot->news);                        /* E7 acquire */
    s->verdict = load_acquire64(&w->slot->verdict);                  /* E7 acquire */
    int cause = s->news || s->verdict ? timed_wait_cause(w, s->verdict) : 0;
    /* E15 acquire, E19 acquire, E31 acquire: after E7 */
    if (cause && word && load_acquire64(word) != seen)
        return 1;
    if (cause == -EDEADLK && p->told && cycle_ended(w->threads))
        return timed_wait_stuck(p, about, what);
    if (cause)
        return timed_wait_broken(p, cause, about, what);
    if (p->timeout_ns >= 0 && waited >= (uint64_t)p->timeout_ns)
        return -ETIMEDOUT;
    if (w->warn_ns >= 0 && waited >= (uint64_t)w->warn_ns && !p->warned)
        timed_wait_warn(p, waited, about, what);
    s->length = wait_slice_ns(timed_wait_slice(p));
    s->length = s->length < drive_slice_most(p->timeout_ns) ? s->length
                                                            : drive_slice_most(p->timeout_ns);
    if (p->timeout_ns >= 0 && (uint64_t)p->timeout_ns - waited < s->length)
        s->length = (uint64_t)p->timeout_ns - waited + 1;
    w->mine->left = p->timeout_ns >= 0 ? (uint64_t)p->timeout_ns - waited + 1 : 0;
    timed_wait_tell(p, waited, about);
    return p->told && cycle_doomed(w->threads) ? timed_wait_stuck(p, about, what) : 0;
}

static int slice_end(struct timed_wait *p, const struct slice *s, int about, const char *what)
{
    struct watch *w = &p->comm->watch;
    p->slept_ns = w->ways->now(w->ways->arg);
    wait_slept(&w->budget, p->slept_ns - s->began);
    p->excused_ns += drive_excess(s->length, p->slept_ns - s->began);
    p->slices++;
    p->whole += p->slept_ns - s->began >= s->length;
    if (p->told && cycle_doomed(w->threads))
        return timed_wait_stuck(p, about, what);
    watch_meanwhile(w);
    if (w->interrupt && w->interrupt(w->interrupt_arg)) {
        char room[REPORT_TEXT];
        struct text t = TEXT_IN(room);
        verdict_quit(w, QUIT_INTERRUPT);
        text_clear(&t);
        text_add(&t, "interrupted while waiting ");
        timed_wait_whom(&t, about, what);
        text_add(&t, "; the comm is aborted");
        comm_show(p->comm, &t);
        return -EINTR;
    }
    return 0;
}

static int timed_wait_nap(struct timed_wait *p, shared64 *word, uint64_t seen, shared32 *sleepers,
                          struct seat *seat, int about, const char *what)
{
    struct watch *w = &p->comm->watch;
    struct slice s;
    shared32 *alive = process_mark_word(&seat->mark);
    uint32_t held = load_acquire32(alive);                           /* E5 acquire */
    int r = slice_begin(p, &s, word, seen, about, what);
    if (r)
        return r < 0 ? r : 0;
    struct futex_word words[4] = { { low_half(word), (uint32_t)seen },
                                   { &w->slot->news, s.news },
                                   { alive, held },
                                   { low_half(&w->slot->verdict), (uint32_t)s.verdict } };
    fetch_add32(sleepers, 1);                           /* E3 */
    fence_full();                                       /* E3 fence */
    /* E97 fence, E99 fence: the same */
    /* E15 acquire, E19 acquire, E31 acquire, E97 acquire, E99 acquire */
    bool moved = load_acquire64(word) != seen;
    /* E11 acquire */
    bool marked = !process_mark_held(held) && load_acquire32(&seat->state) != SEAT_ADRIFT;
    if (!moved && !marked)
        wait_sleep(w->ways, words, 4, s.length, s.length);
    fetch_sub32(sleepers, 1);
    if (load_acquire32(alive) != held)                               /* E5 acquire */
        w->ways->wake(w->ways->arg, alive, INT32_MAX);               /* E9 */
    return slice_end(p, &s, about, what);
}

int timed_wait_sleep(struct timed_wait *p, shared64 *word, uint64_t seen, shared32 *sleepers,
                     uint32_t about, const char *what)
{
    struct watch *w = &p->comm->watch;
    if (p->slices == 0 && timed_wait_lost(w, about, SLICE_FIRST))
        return 0;                                    /* timed_wait_gone says it, too */
    return timed_wait_nap(p, word, seen, sleepers, w->seats[about], (int)about, what);
}

int timed_wait_sleep_any(struct timed_wait *p, shared64 *word, uint64_t seen, shared32 *sleepers,
                         struct seat *other, const char *what)
{
    return timed_wait_nap(p, word, seen, sleepers, other, PATIENCE_NOBODY, what);
}

int timed_wait_doze(struct timed_wait *p, shared32 *bell, uint32_t seen, int about,
                    const char *what)
{
    struct watch *w = &p->comm->watch;
    struct futex_word words[FUTEX_WORDS] = { { bell, seen } };
    int n = 3;
    bool marked = false;
    for (uint32_t i = 0; i < w->size && n < FUTEX_WORDS; i++) {
        uint32_t q = about >= 0 ? (uint32_t)about : (w->me + i) % w->size;
        if (q != w->me || about >= 0) {
            uint32_t held = load_acquire32(process_mark_word(&w->seats[q]->mark));  /* E5 acquire */
            /* E11 acquire */
            marked |= !process_mark_held(held)
                && load_acquire32(&w->seats[q]->state) != SEAT_ADRIFT;
            words[n++] = (struct futex_word){ process_mark_word(&w->seats[q]->mark), held };
        }
        if (about >= 0)
            break;
    }
    struct slice s;
    int r = slice_begin(p, &s, NULL, 0, about, what);
    if (r < 0)
        return r;
    words[1] = (struct futex_word){ &w->slot->news, s.news };
    words[2] = (struct futex_word){ low_half(&w->slot->verdict), (uint32_t)s.verdict };
    if (!marked)
        wait_sleep(w->ways, words, n, s.length, s.length);
    for (int i = 3; i < n; i++)
        if (load_acquire32(words[i].word) != words[i].seen)          /* E5 acquire */
            w->ways->wake(w->ways->arg, words[i].word, INT32_MAX);   /* E9 */
    return slice_end(p, &s, about, what);
}
