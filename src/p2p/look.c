/* Deaths, deadlines and failures: they end a send or a receive without its message. A blocking call
 * watches for them in group/timed_wait. For works the progress thread looks at all of them once in
 * each of its slices. Cost: a few loads for each work and rank. */
#include "p2p/p2p.h"

#include "base/clock.h"
#include "base/error.h"
#include "group/timed_wait.h"
#include "watch/drive.h"
#include "watch/rollcall.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdio.h>

const char *post_what(const struct post *post)
{
    return post->kind == KIND_SEND ? "to send, for a receive" : "for a message";
}

static bool rank_gone(struct p2p *p, int peer, int slice)
{
    return peer != (int)p->watch->me && timed_wait_lost(p->watch, (uint32_t)peer, slice);
}

bool p2p_well(struct p2p *p, int peer)
{
    const struct watch *w = p->watch;
    /* E7 acquire */
    return (peer == TUTTI_ANY || !rank_gone(p, peer, 0)) && !load_acquire32(&w->slot->news)
        && !load_acquire64(&w->slot->verdict);
}

int p2p_check(struct p2p *p, const struct post *post)
{
    const struct watch *w = p->watch;
    /* looked at before the slot: a rank that aborted and then left counts as aborted */
    bool gone = post->kind == KIND_SEND && p2p_gone(p, post, 0);
    if (load_acquire32(&w->slot->news) || load_acquire64(&w->slot->verdict)) {      /* E7 acquire */
        struct timed_wait patience = timed_wait_begin(p->comm, -1);
        int cause = timed_wait_check(&patience, post->peer, post_what(post));
        if (cause)
            return cause;
    }
    return gone ? p2p_fail(p, post, -EOWNERDEAD) : 0;
}

/* True: the peer is gone, or lives and takes part in no message any more. Letters that it sent
 * before still come. */
static bool rank_quits(struct p2p *p, int peer, int slice)
{
    /* E7 acquire */
    return rank_gone(p, peer, slice)
        || (load_acquire32(&p->watch->members[peer].quit) & QUIT_ALONE);
}

/* A rank that the post waits for and that is gone; -1: none. */
static int gone_who(struct p2p *p, const struct post *post, int slice)
{
    int peer = post_other(post);
    if (peer != TUTTI_ANY)
        return rank_quits(p, peer, slice) ? peer : -1;
    for (uint32_t q = 0; q < p->watch->size; q++)
        if (rank_gone(p, (int)q, slice))
            return (int)q;
    return -1;
}

bool p2p_gone(struct p2p *p, const struct post *post, int slice)
{
    return gone_who(p, post, slice) >= 0;
}

bool p2p_withdraw(struct p2p *p, struct post *post, int result)
{
    if (post->moving)
        return false;
    if (post->kind == KIND_SEND && post->offer) {
        uint64_t seen = deal_word(post->offer->generation, DEAL_OFFERED);
        /* E37 release */
        if (!swap_if64(&post->offer->deal->state, &seen,
                       deal_word(post->offer->generation, DEAL_DROPPED)))
            return false;
        offer_give(p2p_lane(p, (uint32_t)post->peer), post->offer);
    }
    post_over(p, post, result);
    return true;
}

/* The deal keeps its last state and is not used again: the other side must find that state. */
void p2p_abandon(struct p2p *p, struct post *post, int result)
{
    struct deal *deal = post->kind == KIND_SEND ? (post->offer ? post->offer->deal : NULL)
                                                : (post->moving ? post->deal : NULL);
    if (deal) {
        bool send = post->kind == KIND_SEND;
        uint64_t generation = send ? post->offer->generation : post->generation,
                 seen = deal_word(generation, DEAL_OFFERED);
        uint64_t end = deal_word(generation, send ? DEAL_DROPPED : DEAL_DONE);
        if (!send || !swap_if64(&deal->state, &seen, end)) {         /* E37 release */
            seen = deal_word(generation, DEAL_GRANTED);
            swap_if64(&deal->state, &seen, end);                     /* E37 release */
        }
        fence_full();                                                /* E40 fence */
        p2p_ring(p, send ? (uint32_t)post->peer : post->sender);
    }
    post_over(p, post, result);
}

static void fail_call(struct text *t, const struct p2p *p, const struct post *post)
{
    fingerprint_add(t, fingerprint_make(post->kind, post->type, 0, 0, post->count), post->count);
    text_add(t, post->kind == KIND_SEND ? " to " : " from ");
    if (post->peer == TUTTI_ANY)
        text_add(t, "any rank");
    else
        text_add(t, "rank %d", post->peer);
    if (post->tag != TUTTI_ANY)
        text_add(t, " tag %d", post->tag);
    text_add(t, " on %s, called by rank %u at %s: ", p->watch->name, p->watch->me,
             arena_site_text(p->watch->arena, post->site));
}

static void fail_peer(struct text *t, struct p2p *p, int who)
{
    text_add(t, "rank %d ", who);
    rollcall_whom(t, p->watch, (uint32_t)who);
}

/* Fails the comm: the peer may wait for a message that will never come. */
static void fail_rest(struct p2p *p, const char *reason)
{
    char words[ABORT_TEXT];
    snprintf(words, sizeof words, "no memory for messages in the arena: %s", reason);
    comm_give_up(p->comm, words);
}

int p2p_fail(struct p2p *p, const struct post *post, int error)
{
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    int who = gone_who(p, post, 0);
    if (error == -EOWNERDEAD)
        verdict_quit(p->watch, QUIT_ALONE);
    text_clear(&t);
    fail_call(&t, p, post);
    if (error == -ETIMEDOUT) {
        text_add(&t, "the deadline of ");
        text_add_duration(&t, (uint64_t)post->timeout_ns);
        text_add(&t, " passed; ");
        if (post->peer == TUTTI_ANY) {
            text_add(&t, "no rank has sent it\n");
            rollcall_table(&t, p->watch, NULL);
        } else
            fail_peer(&t, p, post->peer);
    } else if (error == DAMAGED)
        text_add(&t,
                 "what a rank has left in the arena for this message cannot be true: somebody has "
                 "written over it\n");
    else if (error == -EDEADLK)
        text_add(&t, "this rank waits here for itself; nobody else can end that\n");
    else if (error == -EOWNERDEAD)
        fail_peer(&t, p, who >= 0 ? who : post->peer >= 0 ? post->peer : (int)p->watch->me);
    else {
        const char *reason = error == -ENOSPC
            ? "the span is full; raise TUTTI_SPAN_BYTES"
            : "the system has no pages left (RAM or cgroup limit)";
        text_add(&t, "no memory for messages in the arena: %s\n", reason);
        fail_rest(p, reason);
    }
    comm_show(p->comm, &t);
    return error_told(error);
}

void p2p_expire(struct p2p *p, struct post *post, int error)
{
    if (p2p_withdraw(p, post, error_told(error)))
        p2p_fail(p, post, error);
}

struct look { uint64_t now, slice; int which; bool broken; int cause; };
typedef void look_fn(struct p2p *p, struct post *post, struct look *look);

static void each_of(struct p2p *p, struct post_list *list, look_fn *fn, struct look *look)
{
    for (struct post *post = list->head, *next; post; post = next) {
        next = post->next;
        fn(p, post, look);
    }
}

static void each(struct p2p *p, look_fn *fn, struct look *look)
{
    each_of(p, &p->posted, fn, look);
    for (struct lane *lane = p->active; lane; lane = lane->next_active) {
        each_of(p, &lane->moving, fn, look);
        each_of(p, &lane->offered, fn, look);
        each_of(p, &lane->unsent, fn, look);
    }
}

static void look_gone(struct p2p *p, struct post *post, struct look *look)
{
    post->gone = p2p_gone(p, post, look->which);
}

static void look_end(struct p2p *p, struct post *post, struct look *look)
{
    if (look->broken)
        return;
    if (post->gone) {
        p2p_abandon(p, post, p2p_fail(p, post, -EOWNERDEAD));
        look->broken = true;
        return;
    }
    if (post->timeout_ns < 0 || post->moving || post->late)
        return;
    uint64_t passed = look->now > post->began_ns ? look->now - post->began_ns : 0,
             left = (uint64_t)post->timeout_ns > passed ? (uint64_t)post->timeout_ns - passed + 1
                                                        : 0;
    left = left < drive_slice_most(post->timeout_ns) ? left : drive_slice_most(post->timeout_ns);
    if (left)
        look->slice = left < look->slice ? left : look->slice;
    else if (post->keep)
        post->late = true;
    else
        p2p_expire(p, post, -ETIMEDOUT);
}

/* The first post ends with the cause, all others with -ECANCELED: the comm is broken. */
static void look_break(struct p2p *p, struct post *post, struct look *look)
{
    p2p_abandon(p, post, look->cause);
    look->cause = -ECANCELED;
}

uint64_t p2p_look(struct p2p *p, uint64_t now)
{
    struct watch *w = p->watch;
    if (!p->still_ns)
        p->still_ns = now;
    uint64_t still = now > p->still_ns ? now - p->still_ns : 0;
    struct look look = { now, WAIT_LONG, wait_slice_after(still),
                         load_acquire32(&w->attention) & ATTENTION_BROKEN, -ECANCELED };
    for (uint32_t q = 0; q < w->size; q++)
        p->seen[q] = load_acquire32(process_mark_word(&w->seats[q]->mark));         /* E5 acquire */
    if (!look.broken)
        each(p, look_gone, &look);      /* before the slot: aborted, then left, is aborted */
    p->news = load_acquire32(&w->slot->news);                        /* E7 acquire */
    p->verdict = load_acquire64(&w->slot->verdict);                  /* E7 acquire */
    if (!look.broken && (p->news || p->verdict)) {
        struct timed_wait patience = timed_wait_begin(p->comm, -1);
        int cause = timed_wait_check(&patience, TUTTI_ANY, "with sends and receives under way");
        look.broken = cause != 0;
        look.cause = cause ? cause : look.cause;
    }
    if (!look.broken) {
        if (p2p_pump(p)) {              /* E5: letters of a gone rank: after its alive word */
            p->still_ns = 0;
            return 0;
        }
        each(p, look_end, &look);
    }
    if (look.broken)
        each(p, look_break, &look);
    return look.slice;
}

/* Works only: a post whose thread waits in a timed_wait is excused there. */
static void look_excuse(struct p2p *p, struct post *post, struct look *look)
{
    (void)p;
    if (post->work)
        post->began_ns = drive_later(post->began_ns, look->now, look->slice);
}

void p2p_excuse(struct p2p *p, uint64_t now, uint64_t excess)
{
    struct look look = { now, excess, 0, false, 0 };
    each(p, look_excuse, &look);
}

int p2p_gather(struct p2p *p, struct futex_word *words, int room, struct drive_sleep *sleep)
{
    struct watch *w = p->watch;
    *sleep = (struct drive_sleep){ &w->mine->listeners, words, 0 };
    fetch_add32(&w->mine->listeners, 1);             /* E40 */
    fence_full();                                    /* E40 fence */
    /* E40 acquire */
    words[0] = (struct futex_word){ &w->mine->bell, load_acquire32(&w->mine->bell) };
    if (p2p_pump(p)) {
        p->still_ns = 0;
        return 0;
    }
    int n = 1;
    if (room >= 4) {
        words[n++] = (struct futex_word){ low_half(&w->slot->verdict), (uint32_t)p->verdict };
        words[n++] = (struct futex_word){ &w->slot->news, p->news };
        for (uint32_t i = 1; i < w->size && n < room; i++) {
            uint32_t q = (w->me + i) % w->size;
            words[n++] = (struct futex_word){ process_mark_word(&w->seats[q]->mark), p->seen[q] };
        }
    }
    sleep->n = n;
    return n;
}
