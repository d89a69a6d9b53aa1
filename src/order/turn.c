/* Each rank counts its turns, so no token is passed. Turn n of rank r begins when turn n of all
 * lower ranks is over; of rank 0 when turn n - 1 of all ranks is over. A begin that fails counts as
 * a turn, so the ranks behind get theirs.
 * Cost: a look at the words of the ranks before it. */
#include "order/order.h"

#include "base/clock.h"
#include "group/timed_wait.h"
#include "watch/journal.h"
#include "watch/rollcall.h"
#include "watch/verdict.h"

#include <errno.h>

/* False: with work under way the journal belongs to the thread of the work; this call is not in
 * it. */
static bool turn_journal(struct tutti_comm *comm, enum kind kind, uint32_t site)
{
    if (load_acquire32(&comm->watch.attention) & ATTENTION_WORK)
        return false;
    journal_begin(&comm->watch, 0, fingerprint_make(kind, 0, 0, 0, 0), 0, site, clock_tick());
    return true;
}

static int turn_failed(struct tutti_comm *comm, uint32_t about, int error,
                       const struct timed_wait *p)
{
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    struct watch *w = &comm->watch;
    if (!p->broken && (error == -ETIMEDOUT || error == -EOWNERDEAD)) {
        text_clear(&t);
        text_add(&t, "turn %llu of rank %u: ", (unsigned long long)comm->order.turns, w->me);
        if (error == -ETIMEDOUT) {
            text_add(&t, "the deadline of ");
            text_add_duration(&t, (uint64_t)p->timeout_ns);
            text_add(&t, " passed; ");
        }
        text_add(&t, "waiting for the turn of rank %u: ", about);
        rollcall_whom(&t, w, about);
        comm_show(comm, &t);
    }
    if (error == -EOWNERDEAD)
        verdict_quit(w, QUIT_ALONE);
    watch_raise(w, &w->mine->turns, comm->order.turns);              /* E19 release */
    return error;
}

static int turn_await(struct tutti_comm *comm, uint32_t about, uint64_t turns, struct timed_wait *p)
{
    struct watch *w = &comm->watch;
    shared64 *word = &w->members[about].turns;
    struct wait_ends ends = { &w->slot->verdict, &w->slot->news };
    for (;;) {
        bool gone = timed_wait_gone(p, about)        /* E5: before its word */
            /* E7 acquire: it lives, and begins no turn any more */
            || (load_acquire32(&w->members[about].quit) & QUIT_ALONE);
        uint64_t seen = load_acquire64(word);                        /* E19 acquire */
        if (seen >= turns)
            return 0;
        if (gone)
            return -EOWNERDEAD;
        if (p->slices == 0 && wait_spin(word, turns, ends, &w->budget, w->ways))
            return 0;
        int r = timed_wait_sleep(p, word, seen, &w->members[about].sleepers, about, "for the turn");
        if (r < 0)
            return r;
    }
}

int order_turn_begin(struct tutti_comm *comm, uint32_t site, int64_t timeout_ns)
{
    struct watch *w = &comm->watch;
    if (comm->order.in_turn) {
        comm_explain(comm, "turn_begin twice: this rank has its turn; call turn_end before");
        return -EDEADLK;
    }
    comm->order.turns++;
    struct timed_wait p = timed_wait_begin(comm, timeout_ns);
    p.kind = KIND_TURN_BEGIN;
    p.site = site;
    bool journal = turn_journal(comm, KIND_TURN_BEGIN, site);
    int r = 0;
    uint32_t lower = w->me ? w->me : w->size, about = 0;
    uint64_t turns = w->me ? comm->order.turns : comm->order.turns - 1;
    for (uint32_t i = 1; i <= lower && r == 0; i++) {
        about = lower - i;
        if (about != w->me)
            r = turn_await(comm, about, turns, &p);
    }
    timed_wait_moved(&p);
    if (r < 0)
        r = turn_failed(comm, about, r, &p);
    comm->order.in_turn = r == 0;
    if (journal)
        journal_end(w, r, clock_tick());
    return r;
}

int order_turn_end(struct tutti_comm *comm, uint32_t site)
{
    struct watch *w = &comm->watch;
    if (!comm->order.in_turn) {
        comm_explain(comm, "turn_end: this rank does not have its turn; call turn_begin before");
        return -EPERM;
    }
    comm->order.in_turn = false;
    bool journal = turn_journal(comm, KIND_TURN_END, site);
    watch_raise(w, &w->mine->turns, comm->order.turns);    /* E19 release */
    if (journal)
        journal_end(w, 0, clock_tick());
    return 0;
}
