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

struct tutti_work {
    const struct work_shape *shape;    /* first: every handle begins with it */
    struct coll c;
    struct tutti_work *next;
    void *lists;                       /* a copy of the caller's lists, if the call has lists */
    struct completion completion;                  /* over: result may be read */
    int result;
    enum kind kind;
    bool begun, blocking, fence;       /* fence: no operation, only a place in the queue */
    /* a caller gave its deadline; … and that deadline ends all ranks' operation here */
    bool given, ends;
    int64_t keep_ns;                   /* TUTTI_KEEP: it is late from then on; -1: never */
    void (*done)(int error, void *arg);
    void *done_arg;
};

bool queue_under_way(const struct tutti_comm *comm)
{
    return load_acquire32(&comm->watch.attention) & ATTENTION_WORK;
}

/* Calls `done` outside of the lock: it may start work on other comms, whose own `done` may do the
 * same here. */
static void queue_call_done(struct tutti_comm *comm, struct tutti_work *work)
{
    comm->engine.pumping = true;
    pthread_mutex_unlock(&comm->engine.queue_lock);
    struct tutti_comm *outer = comm_callback_begin(comm);
    work->done(work->result, work->done_arg);
    comm_callback_end(comm, outer);
    pthread_mutex_lock(&comm->engine.queue_lock);
    comm->engine.pumping = false;
}

/* Counts the deadlines that callers gave and that end work under way here, and tells the search for
 * cycles. Called before any of that work arrives. */
static void queue_deadlines(struct tutti_comm *comm, int more)
{
    comm->engine.deadlines += (uint32_t)more;
    cycle_patient(&comm->watch, comm->engine.deadlines ? 0 : comm->seq);
}

/* Ends the head. Once `over` is set, the handle's owner may free it, and must find the comm without
 * work: so the attention word is cleared before. */
static void queue_finish(struct tutti_comm *comm, struct tutti_work *work, int result)
{
    work->result = work->begun ? operation_end(&work->c, result) : result;
    if (work->c.ways)             /* it never began */
        work->c.ways->end(&work->c, result);
    comm->watch.over = false;     /* only this operation's: the next one's deadline counts again */
    if (work->done) {
        queue_call_done(comm, work);
        fetch_sub32(&comm->world->threads.seat->promises, 1);        /* E62 release */
    }
    comm->engine.queue = work->next;
    if (work->ends)
        queue_deadlines(comm, -1);
    if (!comm->engine.queue) {
        comm->engine.queue_tail = NULL;
        fetch_and32(&comm->watch.attention, ~(uint32_t)ATTENTION_WORK);
    }
    completion_signal(&work->completion);
}

/* A deadline counts from the call, also if the call is behind others in the queue: when it passes,
 * it ends the head. */
static void queue_hurry(struct tutti_comm *comm)
{
    struct op *head = &comm->engine.queue->c.op;
    uint64_t now = clock_ns();
    for (struct tutti_work *work = comm->engine.queue->next; work; work = work->next) {
        struct op *op = &work->c.op;
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
    for (struct tutti_work *work = comm->engine.queue; work; work = work->next) {
        struct op *op = &work->c.op;
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
    for (struct tutti_work *work = comm->engine.queue; work; work = work->next)
        work->c.op.began_ns = drive_later(work->c.op.began_ns, now, excess);
    pthread_mutex_unlock(&comm->engine.queue_lock);
}

/* Advances the head as far as it goes: WAITING, DONE, or its error. */
static int queue_advance(struct tutti_comm *comm, struct tutti_work *work, bool look,
                         uint64_t now)
{
    if (!work->begun && (load_acquire32(&comm->watch.attention) & ATTENTION_BROKEN))
        return -ECANCELED;
    if (work->fence)
        return DONE;
    if (!work->begun) {
        work->begun = true;
        operation_begin(&work->c, clock_tick());
    }
    for (;;) {
        int r = drive_step(&work->c.op);
        if (r != WAITING || !look)
            return r;
        queue_hurry(comm);
        r = drive_look(&work->c.op, now);
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
        struct tutti_work *work = comm->engine.queue;
        int r = queue_advance(comm, work, look, now);
        if (r == WAITING)
            return &work->c.op;
        queue_finish(comm, work, r == DONE ? 0 : r);
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

static void queue_append(struct tutti_comm *comm, struct tutti_work *work)
{
    if (comm->engine.queue_tail)
        comm->engine.queue_tail->next = work;
    else
        comm->engine.queue = work;
    comm->engine.queue_tail = work;
    fetch_or32(&comm->watch.attention, ATTENTION_WORK);
}

static bool queue_late(const struct tutti_work *work)
{
    return work->keep_ns >= 0 && clock_ns() >= (uint64_t)work->keep_ns;
}

/* Pumps, and rings the progress thread if the queue now waits for another word than the one it
   sleeps on. Copies the head's wait, and the text of it for watch/cycle; seq 0: none. */
static void queue_push(struct tutti_comm *comm, struct wait *wait, struct cycle_wait *said,
                       bool attends)
{
    const shared64 *before = NULL;
    pthread_mutex_lock(&comm->engine.queue_lock);
    struct tutti_work *first = comm->engine.queue;
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

/* How long to sleep now: at most until the end of the patience or of the work's own deadline. */
static uint64_t queue_nap(const struct tutti_work *work, int64_t patience_ns, uint64_t passed,
                          bool heed_late)
{
    uint64_t left = patience_ns >= 0 ? (uint64_t)patience_ns - passed + 1 : UINT64_MAX,
             now = clock_ns();
    if (heed_late && work->keep_ns >= 0) {
        uint64_t late = (uint64_t)work->keep_ns > now ? (uint64_t)work->keep_ns - now + 1 : 1;
        left = late < left ? late : left;
    }
    return left < WAIT_LONG ? left : WAIT_LONG;
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

/* Waits until the work is over: 0. -EAGAIN: the patience has ended. -EINTR: the interrupt function
 * said stop, and the comm is aborted. */
static int queue_until_over(struct tutti_comm *comm, struct tutti_work *work, int64_t patience_ns,
                            bool heed_late, bool *attends)
{
    struct watch *w = &comm->watch;
    struct wait_ends ends = { &w->slot->verdict, &w->slot->news };
    uint64_t began = clock_ns(), polling = 0;
    bool slept = false;
    while (!completion_over(&work->completion)) {
        struct wait wait;
        struct cycle_wait said;
        queue_push(comm, &wait, &said, *attends);
        if (completion_over(&work->completion))
            break;
        uint64_t passed = clock_ns() - began;
        if ((patience_ns >= 0 && passed >= (uint64_t)patience_ns)
            || (heed_late && queue_late(work))) {
            if (slept)
                store_relaxed64(&w->mine->waited, 0);                /* relaxed: for onlookers */
            return -EAGAIN;
        }
        if (wait.poll && drive_poll_spins(w, &polling))
            continue;
        if (!slept && wait.word && wait.value != UINT64_MAX
            && wait_spin(wait.word, wait.value, ends, &w->budget, w->ways))
            continue;
        if (patience_ns < 0 && !(heed_late && work->keep_ns >= 0 && work->given))
            queue_cycle(w, &said, passed);
        queue_leave(comm, attends);
        store_relaxed64(&w->mine->waited, work->c.op.claim.seq);     /* relaxed: for onlookers */
        completion_sleep(&work->completion, queue_nap(work, patience_ns, passed, heed_late));
        slept = true;
        if (!completion_over(&work->completion) && drive_stop_asked(w)) {
            verdict_quit(w, QUIT_INTERRUPT);
            return -EINTR;
        }
    }
    return 0;
}

static int queue_await(struct tutti_comm *comm, struct tutti_work *work, int64_t patience_ns,
                       bool heed_late)
{
    const struct threads *threads = comm->watch.threads;
    bool attends = progress_attends(comm->world);
    if (attends)
        fetch_add32(&comm->engine.attended, 1);
    int r = queue_until_over(comm, work, patience_ns, heed_late, &attends);
    if (attends)
        /* the progress thread finds what is behind it in its next nap */
        fetch_sub32(&comm->engine.attended, 1);
    cycle_over(threads);
    return r;
}

/* The result of work that is over or will be soon. After an interrupt the abort ends the work: its
 * buffers are in use until then. */
static int queue_end(struct tutti_work *work, int interrupted)
{
    while (!completion_over(&work->completion))
        queue_await(work->c.comm, work, -1, false);
    /* all or none: if it succeeded for the others, it succeeded here */
    int r = interrupted && work->result < 0 ? interrupted : work->result;
    completion_drop(&work->completion);
    return r;
}

/* As queue_end, and frees it. */
static int queue_take(struct tutti_work *work, int interrupted)
{
    int r = queue_end(work, interrupted);
    free(work->lists);
    free(work);
    return r;
}

/* Work that is over does not need its comm, which may have been freed. */
static int queue_check(const struct tutti_work *work)
{
    if (completion_over(&work->completion))
        return 0;
    return *work->c.comm->fork_word == 1 ? 0 : -ECHILD;
}

/* Waits for the caller's timeout; TUTTI_KEEP's deadline also ends the wait when it passes. */
static int queue_wait(struct tutti_work *work, int timeout_ms)
{
    int r = queue_check(work);
    if (r < 0)
        return r;
    if (!completion_over(&work->completion))
        guard_known(work->c.comm);
    if (comm_callback == work->c.comm)
        return -EDEADLK;
    bool heed_late = timeout_ms == 0 || (timeout_ms > 0 && !queue_late(work));
    if (!completion_over(&work->completion))
        r = queue_await(work->c.comm, work, timeout_ms > 0 ? (int64_t)timeout_ms * 1000000 : -1,
                        heed_late);
    if (r == -EAGAIN && !completion_over(&work->completion))
        return queue_late(work) ? -ETIMEDOUT : -EAGAIN;
    return queue_take(work, r == -EINTR ? r : 0);
}

static int queue_test(struct tutti_work *work)
{
    int r = queue_check(work);
    if (r < 0)
        return r;
    struct tutti_comm *comm = work->c.comm;
    if (!completion_over(&work->completion))
        guard_known(comm);
    if (!completion_over(&work->completion) && comm_callback != comm
        && pthread_mutex_trylock(&comm->engine.queue_lock) == 0) {
        struct tutti_work *first = comm->engine.queue;
        struct op *head = queue_move(comm, false, 0);
        bool moved = head && comm->engine.queue != first;
        pthread_mutex_unlock(&comm->engine.queue_lock);
        if (moved)
            progress_tell(comm->world);
    }
    if (completion_over(&work->completion))
        return work->result;
    return queue_late(work) ? -ETIMEDOUT : -EAGAIN;
}

static struct work_completion queue_completion(struct tutti_work *work)
{
    return (struct work_completion){ &work->completion, work->c.comm,
                                     &work->c.comm->engine.queue_lock };
}

static const struct work_shape queue_shape = { queue_wait, queue_test, queue_completion };

/* Appends it to the queue, and pumps. The handle may be gone when this returns: another thread may
 * have waited for it. */
static void queue_enter(struct tutti_comm *comm, struct tutti_work *work)
{
    pthread_mutex_lock(&comm->engine.queue_lock);
    if (work->fence)
        work->c.op.claim.seq = comm->seq;
    else
        operation_number(comm, &work->c, work->kind, work->c.op.site, work->c.op.timeout_ns);
    drive_started(&work->c.op, clock_ns());
    if (work->c.op.keep && work->c.op.timeout_ns >= 0)
        work->keep_ns = (int64_t)work->c.op.began_ns + work->c.op.timeout_ns;
    work->given = timeout_given(work->c.op.timeout_ns);
    work->ends = work->given && !work->c.op.keep;
    queue_deadlines(comm, work->ends);
    store_release64(&comm->watch.mine->queued, comm->seq);           /* E21 release */
    queue_append(comm, work);
    struct op *head = queue_move(comm, false, 0);
    pthread_mutex_unlock(&comm->engine.queue_lock);
    if (head)
        progress_tell(comm->world);
}

static void queue_describe(struct tutti_comm *comm, struct tutti_work *work, const struct coll *c,
                           enum kind kind, uint32_t site, int64_t timeout_ns)
{
    *work = (struct tutti_work){ .shape = &queue_shape, .kind = kind, .keep_ns = -1 };
    work->blocking = true;
    if (c)
        work->c = *c;
    work->c.comm = comm;
    work->c.op.watch = &comm->watch;
    work->c.op.site = site;
    work->c.op.timeout_ns = timeout_ns;
    work->c.op.keep = work->c.op.late = work->c.op.began = false;
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
static struct tutti_work *queue_make(struct tutti_comm *comm, struct coll *c, enum kind kind,
                                     uint32_t site, int64_t timeout_ns, int *error)
{
    struct tutti_work *work = malloc(sizeof *work);
    *error = work ? progress_start(comm->world) : -ENOMEM;
    if (*error == 0) {
        queue_describe(comm, work, c, kind, site, timeout_ns);
        *error = coll_keep_lists(&work->c, kind, &work->lists);
        if (*error == 0 && work->c.ways && (*error = work->c.ways->keep(&work->c)) < 0)
            free(work->lists);
    }
    if (*error < 0) {
        free(work);
        guard_fail(comm, kind, site, *error, "no memory or no thread for work under way");
        return NULL;
    }
    queue_owns(c);
    return work;
}

/* Runs an operation that its call waits for. It needs no memory and starts no thread: the work
 * under way before it has started the progress thread. c NULL: a fence. */
static int queue_run(struct tutti_comm *comm, struct coll *c, enum kind kind, uint32_t site,
                     int64_t timeout_ns)
{
    struct tutti_work work;
    queue_describe(comm, &work, c, kind, site, timeout_ns);
    work.fence = !c;
    if (c)
        queue_owns(c);
    queue_enter(comm, &work);
    return queue_end(&work, queue_await(comm, &work, -1, false));
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
    struct tutti_work *work = queue_make(comm, c, kind, site, guard_timeout(comm, call), &r);
    if (!work)
        return r;
    work->blocking = false;
    work->done = call->done;
    work->done_arg = call->done_arg;
    work->c.op.keep = call->flags & TUTTI_KEEP;
    *call->work = work;
    if (work->done)
        fetch_add32(&comm->world->threads.seat->promises, 1);        /* E62 release */
    queue_enter(comm, work);
    return 0;
}
