/* Works of sends and receives stand in p2p's own lists, not in the comm's queue: they end in the
 * order of their messages. A thread that starts, tests or waits pumps all of them under p2p's lock.
 * No thread sleeps under it. A waiter that spun in vain leaves them to the progress thread, which
 * sleeps on this rank's bell; the waiter sleeps on its handle only. */
#include "engine/request.h"

#include "engine/guard.h"
#include "engine/work.h"
#include "base/clock.h"
#include "watch/cycle.h"
#include "watch/rollcall.h"
#include "watch/journal.h"
#include "watch/drive.h"
#include "watch/verdict.h"

struct request {
    struct tutti_work work;
    struct post post;
    bool started;                                    /* not a blocking call */
};

/* Peers read the bell's line with each message. */
_Static_assert(offsetof(struct member, letters) / LINE != offsetof(struct member, bell) / LINE, "");
static shared32 *handle_letters(const struct request *h)
{
    return &h->work.comm->watch.mine->letters[h->post.kind == KIND_SEND ? 0 : 1];
}

static struct request *handle_of(struct post *post)
{
    return (struct request *)(void *)((char *)post - offsetof(struct request, post));
}

/* Called under the lock, which is open while `done` runs. Once `over` is set, the handle's owner
   may free it, and must find no work under way: so the counts are lowered before. One thread at a
   time. */
static void request_tell(struct p2p *p)
{
    if (p->calling)
        return;
    p->calling = true;
    while (p->ended) {
        /* The last one that ended is first in the list; `done` is called in the order in which they
           ended. */
        struct post *first = p->ended, **at = &p->ended;
        while (first->next) {
            at = &first->next;
            first = first->next;
        }
        *at = NULL;
        struct request *h = handle_of(first);
        h->work.result = first->result;
        work_call_done(&h->work, &p->lock, ATTENTION_NESTED_LETTER);
        if (h->started)
            fetch_sub32(handle_letters(h), 1);       /* E62 release */
        fetch_sub32(&p->works, 1);
        completion_signal(&h->work.completion);
    }
    p->calling = false;
}

/* Pumps only with work under way: without, the lists belong to a blocking caller, who takes no
   lock. */
static bool request_move(struct p2p *p)
{
    if (!load_acquire32(&p->works))
        return false;
    bool moved = p2p_pump(p);
    if (moved) {
        p->still_ns = 0;
        p2p_pump(p);                                 /* a message to ourselves has two sides */
    }
    request_tell(p);
    return moved;
}

/* Appends the words to sleep on and declares a sleeper, if there is room for them. Returns how long
   to sleep at most. */
static uint64_t request_watch(struct tutti_comm *comm, uint64_t now, struct futex_word *words,
                              int room, struct drive_sleep *sleep, int *used)
{
    struct p2p *p = comm->p2p;
    pthread_mutex_lock(&p->lock);
    if (!load_acquire32(&p->works)) {
        pthread_mutex_unlock(&p->lock);
        return UINT64_MAX;
    }
    uint64_t slice = p2p_look(p, now);
    *used = room ? p2p_gather(p, words, room, sleep) : 0;
    request_tell(p);
    bool moved = room && !*used, idle = !load_acquire32(&p->works);
    if (moved || (idle && *used)) {   /* a sleeper without work is rung in vain */
        fetch_sub32(sleep->sleepers, 1);             /* E40 */
        *used = 0;
    }
    slice = moved ? 0 : idle ? UINT64_MAX : slice;
    pthread_mutex_unlock(&p->lock);
    return slice;
}

static struct nap request_round(struct tutti_comm *comm, uint64_t now, struct futex_word *words,
                                int room, struct drive_sleep *sleep, int *used)
{
    if (load_acquire32(&comm->p2p->attended))
        return (struct nap){ PROGRESS_NAP, UINT64_MAX };
    uint64_t slice = request_watch(comm, now, words, room, sleep, used);
    return (struct nap){ room || slice < PROGRESS_POLL ? slice : PROGRESS_POLL, UINT64_MAX };
}

static void request_excuse(struct tutti_comm *comm, uint64_t now, uint64_t excess)
{
    struct p2p *p = comm->p2p;
    pthread_mutex_lock(&p->lock);
    if (load_acquire32(&p->works))
        p2p_excuse(p, now, excess);
    pthread_mutex_unlock(&p->lock);
}

const struct pump request_pump = { p2p_under_way, request_round, request_excuse };

void request_journal(struct watch *w, const struct post *post, uint64_t tick)
{
    const struct note note = {
        .peer = post->peer, .tag = post->tag, .type = post->type, .site = post->site
    };
    request_journal_note(w, post->kind, &note, post->count, tick);
}

/* Pumps while the budget of a wait lasts. The budget begins again with each piece once its message
   has been matched: no deadline counts from then on. Before that, messages of others do not prolong
   it, because the progress thread checks the deadlines. */
static void handle_spin(struct p2p *p, struct request *h)
{
    const struct watch *w = p->watch;
    struct wait_budget budget = wait_learned_budget(&w->budget);
    struct wait_turns turns = { 0 };
    while (!completion_over(&h->work.completion)) {
        bool moved = false;
        if (pthread_mutex_trylock(&p->lock) == 0) {
            moved = request_move(p) && h->post.moving;
            pthread_mutex_unlock(&p->lock);
        }
        if (moved)
            turns = (struct wait_turns){ 0 };
        else if (!wait_turn(&turns, &budget, w->ways))
            return;
    }
}

/* Spins. Without a spare CPU the progress thread keeps away meanwhile. If the work is not over
 * then, this thread rings it. */
static void handle_attend(struct p2p *p, struct request *h)
{
    bool attends = progress_attends(p->comm->world);
    if (attends)
        fetch_add32(&p->attended, 1);
    handle_spin(p, h);
    if (attends)
        fetch_sub32(&p->attended, 1);
    if (attends && !completion_over(&h->work.completion))
        progress_kick(p->comm->world);
}

static bool post_given(const struct post *post)
{
    return !post->keep && timeout_given(post->timeout_ns);
}

/* True: its message moves, or it has a deadline that a caller gave, or such a send is in front of
 * it in the channel: when that ends, there may be room. */
static bool post_hopes(const struct post *post)
{
    bool hopes = post->moving || post_given(post);
    for (const struct post *first = post->kind == KIND_SEND && post->in ? post->prev : NULL;
         first && !hopes; first = first->prev)
        hopes = post_given(first);
    return hopes;
}

/* Pumps once more. If that is in vain, tells watch/cycle of the wait. A deadline that a caller gave
 * ends the wait and breaks nothing. */
static void handle_cycle(struct request *h)
{
    struct watch *w = &h->work.comm->watch;
    struct p2p *p = h->work.comm->p2p;
    const struct post *post = &h->post;
    pthread_mutex_lock(&p->lock);
    bool moved = request_move(p);
    bool ends = post_hopes(post);
    struct cycle_wait said = { post->kind, post->site, 0, post->peer };
    pthread_mutex_unlock(&p->lock);
    if (moved || ends || completion_over(&h->work.completion))
        cycle_over(w->threads);
    if (!ends && !completion_over(&h->work.completion))
        cycle_look(w, &said);
}

/* This wait can never end. If its message has been matched meanwhile, the request is not withdrawn.
 * If other ranks of the cycle are gone by now, they are not the cause. */
static int handle_stuck(struct request *h)
{
    struct tutti_comm *comm = h->work.comm;
    struct watch *w = &comm->watch;
    char room[REPORT_TEXT];
    struct text t = TEXT_IN(room);
    pthread_mutex_lock(&comm->p2p->lock);
    if (!h->post.over)
        p2p_withdraw(comm->p2p, &h->post, -EDEADLK);
    request_tell(comm->p2p);
    pthread_mutex_unlock(&comm->p2p->lock);
    text_clear(&t);
    text_add(&t,
             "a wait that can never end: this rank waits for the work of a %s on %s; by ranks of "
             "the world:\n",
             kind_name(h->post.kind), w->name);
    cycle_tell(w, w->me, &t);
    verdict_met(w);
    rollcall_table(&t, w, NULL);
    comm_show(comm, &t);
    return -EDEADLK;
}

/* As work_shape.await: -EINTR: the interrupt function said stop, and the comm is aborted.
 * -EDEADLK. */
static int handle_until_over(struct request *h, const struct patience *patience)
{
    struct tutti_comm *comm = h->work.comm;
    struct watch *w = &comm->watch;
    bool given = h->work.keep_ns >= 0 && timeout_given(h->post.timeout_ns);
    bool endless = patience->most_ns < 0 && !(patience->heeds_late && given);
    if (!completion_over(&h->work.completion))
        handle_attend(comm->p2p, h);
    while (!completion_over(&h->work.completion)) {
        if (work_patience_over(&h->work, patience))
            return -EAGAIN;
        bool told = endless && clock_ns() - patience->began_ns >= CYCLE_FROM_NS;
        if (told)
            handle_cycle(h);
        work_sleep(&h->work, patience);
        if (told && cycle_doomed(w->threads))
            return handle_stuck(h);
        if (w->interrupt && !completion_over(&h->work.completion)
            && w->interrupt(w->interrupt_arg)) {
            verdict_quit(w, QUIT_INTERRUPT);
            progress_kick(comm->world);
            return -EINTR;
        }
    }
    return 0;
}

static int handle_await(struct tutti_work *work, const struct patience *patience)
{
    struct request *h = (struct request *)(void *)work;
    struct watch *w = &work->comm->watch;
    const struct threads *threads = w->threads;
    bool journal = patience->told && !(load_acquire32(&w->attention) & ATTENTION_WORK);
    if (journal)
        request_journal(w, &h->post, clock_tick());
    int r = handle_until_over(h, patience);
    cycle_over(threads);
    if (journal)
        journal_end(w, completion_over(&work->completion) ? work->result : r, clock_tick());
    return r;
}

static void handle_move(struct tutti_work *work)
{
    struct p2p *p = work->comm->p2p;
    if (pthread_mutex_trylock(&p->lock) != 0)
        return;
    request_move(p);
    pthread_mutex_unlock(&p->lock);
}

static pthread_mutex_t *handle_lock(struct tutti_work *work) { return &work->comm->p2p->lock; }

static const struct work_shape request_shape = { handle_await, handle_move, handle_lock };

static void handle_describe(struct request *h, struct tutti_comm *comm, const struct post *post)
{
    *h = (struct request){ .work = { .shape = &request_shape, .comm = comm, .keep_ns = -1 },
                           .post = *post };
    h->post.work = true;
    h->post.began_ns = clock_ns();
}

static void handle_start(struct request *h, const tutti_call *call)
{
    h->started = true;
    fetch_add32(handle_letters(h), 1);               /* E62 release */
    h->post.keep = call->flags & TUTTI_KEEP;
    if (h->post.keep && h->post.timeout_ns >= 0)
        h->work.keep_ns = (int64_t)h->post.began_ns + h->post.timeout_ns;
    work_give(&h->work, call);
}

/* Adds it to the works under way, and pumps. The handle of a started one may be gone when this
 * returns. */
static void handle_enter(struct request *h)
{
    struct tutti_comm *comm = h->work.comm;
    struct p2p *p = comm->p2p;
    int64_t timeout_ns = h->post.timeout_ns;
    bool started = h->started;
    pthread_mutex_lock(&p->lock);
    bool alone = fetch_add32(&p->works, 1) == 0;
    p2p_begin(p, &h->post);
    request_move(p);
    if (!started && !h->post.over && p2p_stuck(p, &h->post)) {
        p2p_expire(p, &h->post, -EDEADLK);
        request_tell(p);
    }
    /* The progress thread watches the bell for all of them. It must be told only of the first one,
     * or of a deadline that may pass while it sleeps. */
    bool kick = load_acquire32(&p->works)
        && (alone || (timeout_ns >= 0 && timeout_ns < WAIT_LONG));
    pthread_mutex_unlock(&p->lock);
    if (kick)
        progress_tell(comm->world);
}

/* Runs a request that its call waits for. It needs no memory and starts no thread: the work under
 * way before it has started the progress thread. */
static int handle_run(struct tutti_comm *comm, const struct post *post)
{
    struct request h;
    handle_describe(&h, comm, post);
    handle_enter(&h);
    struct patience endless = patience_endless();
    return work_end(&h.work, handle_await(&h.work, &endless));
}

int request_start(struct tutti_comm *comm, const struct post *post, const tutti_call *call)
{
    if (!call || !call->work)
        return handle_run(comm, post);
    int r;
    struct request *h = work_make(comm, sizeof *h, &r);
    if (!h)
        return guard_fail(comm, post->kind, post->site, r,
                          "no memory or no thread for work under way");
    handle_describe(h, comm, post);
    handle_start(h, call);
    handle_enter(h);
    return 0;
}
