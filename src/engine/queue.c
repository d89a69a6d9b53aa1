/* A comm's operations run one after another in call order, so its work is a queue, and only its
 * head is under way. A thread that holds queue_lock may pump it: one that starts, tests or waits,
 * and the progress thread. A call that starts work pumps at once, so that peers see its arrival. A
 * waiting call pumps and spins like a blocking call. If that takes too long, it leaves the queue to
 * the progress thread, which sleeps on the words of all comms with work at once. */
#include "engine/queue.h"

#include "engine/guard.h"
#include "engine/operation.h"
#include "engine/work.h"
#include "base/clock.h"
#include "watch/cycle.h"
#include "watch/drive.h"
#include "watch/journal.h"
#include "watch/verdict.h"

#include <stdlib.h>

struct queued {
    struct tutti_work work;
    struct coll c;
    struct queued *next;
    enum kind kind;
    bool begun, fence;                 /* fence: no operation, only a place in the queue */
    /* a caller gave its deadline; … and that deadline ends all ranks' operation here */
    bool given, ends;
};

bool queue_under_way(const struct tutti_comm *comm)
{
    return load_acquire32(&comm->watch.attention) & ATTENTION_WORK;
}

/* Counts the deadlines that callers gave and that end work under way here, and tells the search for
 * cycles. Called before any of that work arrives. */
static void queue_deadlines(struct tutti_comm *comm, int more)
{
    comm->engine.deadlines += (uint32_t)more;
    cycle_patient(&comm->watch, comm->engine.deadlines ? 0 : comm->seq);
}

/* Ends the head. Once `over` is set, the handle's owner may free it, and must find the comm without
 * work: so the attention word is cleared before. The lock is open while `done` runs: it may start
 * work on other comms, whose own `done` may do the same here. */
static void queue_finish(struct tutti_comm *comm, struct queued *head, int result)
{
    head->work.result = head->begun ? operation_end(&head->c, result) : result;
    if (head->c.ways)             /* it never began */
        head->c.ways->end(&head->c, result);
    comm->watch.over = false;     /* only this operation's: the next one's deadline counts again */
    comm->engine.pumping = true;
    work_call_done(&head->work, &comm->engine.queue_lock, ATTENTION_NESTED);
    comm->engine.pumping = false;
    comm->engine.queue = head->next;
    if (head->ends)
        queue_deadlines(comm, -1);
    if (!comm->engine.queue) {
        comm->engine.queue_tail = NULL;
        fetch_and32(&comm->watch.attention, ~(uint32_t)ATTENTION_WORK);
    }
    completion_signal(&head->work.completion);
}

/* A deadline counts from the call, also if the call is behind others in the queue: when it passes,
 * it ends the head. */
static void queue_hurry(struct tutti_comm *comm)
{
    struct op *head = &comm->engine.queue->c.op;
    uint64_t now = clock_ns();
    for (struct queued *h = comm->engine.queue->next; h; h = h->next) {
        struct op *op = &h->c.op;
        if (op->keep || op->timeout_ns < 0 || now - op->began_ns < (uint64_t)op->timeout_ns)
            continue;
        if (head->keep || head->timeout_ns < 0 || head->timeout_ns > op->timeout_ns) {
            head->keep = head->late = false;
            head->timeout_ns = op->timeout_ns;
        }
        return;
    }
}

uint64_t queue_slice(struct tutti_comm *comm)
{
    uint64_t now = clock_ns(), slice = UINT64_MAX;
    if (comm->watch.over)
        return slice;       /* no deadline can end the head any more, so no wake is needed */
    for (struct queued *h = comm->engine.queue; h; h = h->next) {
        struct op *op = &h->c.op;
        if (op->timeout_ns < 0 || op->late)
            continue;
        uint64_t passed = now - op->began_ns,
                 left = (uint64_t)op->timeout_ns > passed ? (uint64_t)op->timeout_ns - passed + 1
                                                          : 1;
        left = left < drive_slice_most(op->timeout_ns) ? left : drive_slice_most(op->timeout_ns);
        slice = left < slice ? left : slice;
    }
    return slice;
}

static void queue_excuse(struct tutti_comm *comm, uint64_t now, uint64_t excess)
{
    pthread_mutex_lock(&comm->engine.queue_lock);
    for (struct queued *h = comm->engine.queue; h; h = h->next)
        h->c.op.began_ns = drive_later(h->c.op.began_ns, now, excess);
    pthread_mutex_unlock(&comm->engine.queue_lock);
}

/* Advances the head as far as it goes: WAITING, DONE, or its error. */
static int queue_advance(struct tutti_comm *comm, struct queued *h, bool look,
                         uint64_t now)
{
    if (!h->begun && (load_acquire32(&comm->watch.attention) & ATTENTION_BROKEN))
        return -ECANCELED;
    if (h->fence)
        return DONE;
    if (!h->begun) {
        h->begun = true;
        operation_begin(&h->c, clock_tick());
    }
    for (;;) {
        int r = drive_step(&h->c.op);
        if (r != WAITING || !look)
            return r;
        queue_hurry(comm);
        r = drive_look(&h->c.op, now);
        if (r <= 0)
            return r < 0 ? r : WAITING;
    }
}

/* Advances the queue as far as it goes, under queue_lock. NULL, or the head that waits.
   look: also checks all that could end the wait, and deadlines at `now`.
   While `done` runs, the lock is open, and pumps of other threads do nothing. */
static struct op *queue_move(struct tutti_comm *comm, bool look, uint64_t now)
{
    while (comm->engine.queue && !comm->engine.pumping) {
        struct queued *h = comm->engine.queue;
        int r = queue_advance(comm, h, look, now);
        if (r == WAITING)
            return &h->c.op;
        queue_finish(comm, h, r == DONE ? 0 : r);
    }
    return NULL;
}

static struct nap queue_round(struct tutti_comm *comm, uint64_t now, struct futex_word *words,
                              int room, struct drive_sleep *sleep, int *used)
{
    struct nap nap = { UINT64_MAX, UINT64_MAX };
    if (load_acquire32(&comm->engine.attended))
        return (struct nap){ PROGRESS_NAP, UINT64_MAX };
    pthread_mutex_lock(&comm->engine.queue_lock);
    struct op *head = queue_move(comm, true, now);
    if (head && room) {
        uint64_t first = queue_slice(comm);
        head->slices = wait_slice_after(drive_waited(head, now));
        nap.most = head->wait.poll ? drive_slice_most(head->timeout_ns) : drive_slice(head);
        nap.most = first < nap.most ? first : nap.most;
        *used = drive_gather(head, words, room, sleep);
    } else if (head)
        nap.most = PROGRESS_POLL;
    if (head && head->wait.poll)
        nap.sooner = drive_slice(head);
    pthread_mutex_unlock(&comm->engine.queue_lock);
    return nap;
}

const struct pump queue_pump = { queue_under_way, queue_round, queue_excuse };

static void queue_append(struct tutti_comm *comm, struct queued *h)
{
    if (comm->engine.queue_tail)
        comm->engine.queue_tail->next = h;
    else
        comm->engine.queue = h;
    comm->engine.queue_tail = h;
    fetch_or32(&comm->watch.attention, ATTENTION_WORK);
}

/* Pumps, and rings the progress thread if the queue now waits for another word than the one it
   sleeps on. Copies the head's wait, and the text of it for watch/cycle; seq 0: none. */
static void queue_push(struct tutti_comm *comm, struct wait *wait, struct cycle_wait *said,
                       bool attends)
{
    const shared64 *before = NULL;
    pthread_mutex_lock(&comm->engine.queue_lock);
    struct queued *first = comm->engine.queue;
    if (first && first->begun && !comm->engine.pumping)
        before = first->c.op.wait.word;
    struct op *head = queue_move(comm, false, 0);
    bool moved = head && (comm->engine.queue != first || head->wait.word != before);
    *wait = head ? head->wait : (struct wait){ .word = NULL };
    bool says = head && !comm->watch.over && !comm->engine.deadlines;
    *said = says ? (struct cycle_wait){ fingerprint_kind(head->claim.descriptor), head->site,
                                        head->claim.seq, -1 }
                 : (struct cycle_wait){ 0 };
    pthread_mutex_unlock(&comm->engine.queue_lock);
    if (moved && !attends)
        progress_kick(comm->world);
}

/* Reports to watch/cycle a wait for a handle that has lasted so long, and that no patience ends. */
static void queue_cycle(struct watch *w, const struct cycle_wait *said, uint64_t passed)
{
    if (passed < CYCLE_FROM_NS)
        return;
    if (said->seq)
        cycle_look(w, said);
    else
        cycle_over(w->threads);
}

/* Hands the work that this thread attended back to the progress thread. */
static void queue_leave(struct tutti_comm *comm, bool *attends)
{
    if (!*attends)
        return;
    *attends = false;
    fetch_sub32(&comm->engine.attended, 1);
    progress_kick(comm->world);
}

/* As work_shape.await: -EINTR: the interrupt function said stop, and the comm is aborted. */
static int queue_until_over(struct queued *h, const struct patience *patience, bool *attends)
{
    struct tutti_comm *comm = h->work.comm;
    struct watch *w = &comm->watch;
    struct wait_ends ends = { &w->slot->verdict, &w->slot->news };
    struct wait_budget budget = wait_learned_budget(&w->budget);
    uint64_t polling = 0;
    bool slept = false, given = h->work.keep_ns >= 0 && h->given;
    bool endless = patience->most_ns < 0 && !(patience->heeds_late && given);
    while (!completion_over(&h->work.completion)) {
        struct wait wait;
        struct cycle_wait said;
        queue_push(comm, &wait, &said, *attends);
        if (completion_over(&h->work.completion))
            break;
        if (work_patience_over(&h->work, patience)) {
            if (slept)
                store_relaxed64(&w->mine->waited, 0);                /* relaxed: for onlookers */
            return -EAGAIN;
        }
        if (wait.poll && drive_poll_spins(w, &polling))
            continue;
        if (!slept && wait.word && wait.value != UINT64_MAX
            && wait_spin(wait.word, wait.value, ends, &budget, w->ways))
            continue;
        if (endless)
            queue_cycle(w, &said, clock_ns() - patience->began_ns);
        queue_leave(comm, attends);
        store_relaxed64(&w->mine->waited, h->c.op.claim.seq);        /* relaxed: for onlookers */
        work_sleep(&h->work, patience);
        slept = true;
        if (!completion_over(&h->work.completion) && drive_stop_asked(w)) {
            verdict_quit(w, QUIT_INTERRUPT);
            return -EINTR;
        }
    }
    return 0;
}

static int queue_await(struct tutti_work *work, const struct patience *patience)
{
    struct tutti_comm *comm = work->comm;
    const struct threads *threads = comm->watch.threads;
    bool attends = progress_attends(comm->world);
    if (attends)
        fetch_add32(&comm->engine.attended, 1);
    int r = queue_until_over((struct queued *)(void *)work, patience, &attends);
    if (attends)
        /* the progress thread finds what is behind it in its next nap */
        fetch_sub32(&comm->engine.attended, 1);
    cycle_over(threads);
    return r;
}

static void queue_pump_once(struct tutti_work *work)
{
    struct tutti_comm *comm = work->comm;
    if (pthread_mutex_trylock(&comm->engine.queue_lock) != 0)
        return;
    struct queued *first = comm->engine.queue;
    struct op *head = queue_move(comm, false, 0);
    bool moved = head && comm->engine.queue != first;
    pthread_mutex_unlock(&comm->engine.queue_lock);
    if (moved)
        progress_tell(comm->world);
}

static pthread_mutex_t *queue_lock(struct tutti_work *work)
{
    return &work->comm->engine.queue_lock;
}

static const struct work_shape queue_shape = { queue_await, queue_pump_once, queue_lock };

/* Appends it to the queue, and pumps. The handle may be gone when this returns: another thread may
 * have waited for it. */
static void queue_enter(struct tutti_comm *comm, struct queued *h)
{
    pthread_mutex_lock(&comm->engine.queue_lock);
    if (h->fence)
        h->c.op.claim.seq = comm->seq;
    else
        operation_number(comm, &h->c, h->kind, h->c.op.site, h->c.op.timeout_ns);
    drive_started(&h->c.op, clock_ns());
    if (h->c.op.keep && h->c.op.timeout_ns >= 0)
        h->work.keep_ns = (int64_t)h->c.op.began_ns + h->c.op.timeout_ns;
    h->given = timeout_given(h->c.op.timeout_ns);
    h->ends = h->given && !h->c.op.keep;
    queue_deadlines(comm, h->ends);
    store_release64(&comm->watch.mine->queued, comm->seq);           /* E21 release */
    queue_append(comm, h);
    struct op *head = queue_move(comm, false, 0);
    pthread_mutex_unlock(&comm->engine.queue_lock);
    if (head)
        progress_tell(comm->world);
}

static void queue_describe(struct tutti_comm *comm, struct queued *h, const struct coll *c,
                           enum kind kind, uint32_t site, int64_t timeout_ns)
{
    *h = (struct queued){ .work = { .shape = &queue_shape, .comm = comm, .keep_ns = -1 },
                          .kind = kind };
    if (c)
        h->c = *c;
    h->c.comm = comm;
    h->c.op.watch = &comm->watch;
    h->c.op.site = site;
    h->c.op.timeout_ns = timeout_ns;
    h->c.op.keep = h->c.op.late = h->c.op.began = false;
}

/* The work now owns the call's device and file. */
static void queue_owns(struct coll *c)
{
    if (!c->ways)
        return;
    c->ways = NULL;
    c->gpu.call = NULL;
}

/* Makes a handle that outlives the call. NULL: it failed, and the peers are told. */
static struct queued *queue_make(struct tutti_comm *comm, struct coll *c, enum kind kind,
                                 uint32_t site, int64_t timeout_ns, int *error)
{
    struct queued *h = work_make(comm, sizeof *h, error);
    if (h) {
        queue_describe(comm, h, c, kind, site, timeout_ns);
        *error = coll_keep_lists(&h->c, kind, &h->work.lists);
        if (*error == 0 && h->c.ways && (*error = h->c.ways->keep(&h->c)) < 0)
            free(h->work.lists);
    }
    if (*error < 0) {
        free(h);
        guard_fail(comm, kind, site, *error, "no memory or no thread for work under way");
        return NULL;
    }
    queue_owns(c);
    return h;
}

/* Runs an operation that its call waits for. It needs no memory and starts no thread: the work
 * under way before it has started the progress thread. c NULL: a fence. */
static int queue_run(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                     int64_t timeout_ns)
{
    struct queued h;
    queue_describe(comm, &h, c, kind, site, timeout_ns);
    h.fence = !c;
    if (c)
        queue_owns(c);
    queue_enter(comm, &h);
    struct patience endless = patience_endless();
    return work_end(&h.work, queue_await(&h.work, &endless));
}

int queue_drain(struct tutti_comm *comm, enum kind kind, uint32_t site)
{
    return queue_under_way(comm) ? queue_run(comm, NULL, kind, site, comm->watch.timeout_ns) : 0;
}

int queue_collective(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                     const tutti_call *call)
{
    int r;
    if (!call || !call->work)
        return queue_run(comm, c, kind, site, guard_timeout(comm, call));
    struct queued *h = queue_make(comm, c, kind, site, guard_timeout(comm, call), &r);
    if (!h)
        return r;
    h->c.op.keep = call->flags & TUTTI_KEEP;
    work_give(&h->work, call);
    queue_enter(comm, h);
    return 0;
}
