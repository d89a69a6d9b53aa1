/* Broadcast queues: check the arguments and call feed/. A queue's calls go beside the collectives
 * of the comm that it was made on. They are journaled when they wait, since a table of ranks shows
 * who waits; a call that goes straight through costs no record, and nothing of CALLER_KEPT: what of
 * a put or a get can sleep or report stands under it in feed/. */
#define TUTTI_NO_SITES
#include "engine/feed_work.h"
#include "engine/guard.h"
#include "engine/queue.h"
#include "feed/feed.h"
#include "os/caller.h"

#include <errno.h>
#include <stdlib.h>

/* ---- arguments ---- */

static int create_check(struct tutti_comm *comm, uint32_t site, int writer,
                        const tutti_queue_options *o, tutti_queue **queue)
{
    enum kind kind = KIND_QUEUE_CREATE;
    if (!queue)
        return guard_refuse(comm, kind, site, "queue is NULL; give the address of a tutti_queue *");
    *queue = NULL;
    if (writer < 0 || (uint32_t)writer >= comm->watch.size)
        return guard_refuse(comm, kind, site, "writer is %d; there are 0 to %u", writer,
                            comm->watch.size - 1);
    if (comm->watch.size > FEED_SIZE_MOST)
        return guard_refuse(comm, kind, site, "%u ranks; a queue has at most %d: split the comm",
                            comm->watch.size, FEED_SIZE_MOST);
    if (o && o->room > FEED_ROOM_MOST)
        return guard_refuse(comm, kind, site, "options.room of %zu bytes is too large", o->room);
    if (o && (o->flags & ~(unsigned)(TUTTI_QUEUE_REFUSE | TUTTI_QUEUE_GO_ON)))
        return guard_refuse(comm, kind, site, "unknown bits 0x%x in options.flags",
                            o->flags & ~(unsigned)(TUTTI_QUEUE_REFUSE | TUTTI_QUEUE_GO_ON));
    for (size_t i = 0; o && i < sizeof o->reserved / sizeof o->reserved[0]; i++)
        if (o->reserved[i])
            return guard_refuse(comm, kind, site,
                                "options.reserved[%zu] is not 0: fill it with zeros first", i);
    return 0;
}

static uint64_t create_room(const tutti_queue_options *o)
{
    uint64_t room = FEED_ROOM_LEAST;
    while (room < (o && o->room ? o->room : FEED_ROOM))
        room *= 2;
    return room;
}

int tutti_queue_create_at(const char *site, tutti_comm *comm, int writer,
                          const tutti_queue_options *options, tutti_queue **queue)
{
    CALLER_KEPT;
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    uint32_t number = guard_site(comm, site);
    r = create_check(comm, number, writer, options, queue);
    if (r == 0)
        r = guard_operation(comm, KIND_QUEUE_CREATE, number);
    if (r == 0)
        r = queue_drain(comm, KIND_QUEUE_CREATE, number);
    if (r == 0)
        r = feed_create(comm, number, (uint32_t)writer, create_room(options),
                        options ? options->flags : 0, 0, queue);
    return guard_leave(comm, r);
}

static __attribute__((noinline))
int side_refuse(struct tutti_queue *q, const struct feed_call *c)
{
    uint32_t me = q->comm->watch.me;
    return guard_refuse(q->comm, c->kind, c->site, "this rank, %u, is %s; the writer is rank %u",
                        me, me == q->writer ? "the writer" : "a reader", q->writer);
}

static __attribute__((noinline))
int call_check(struct tutti_queue *q, const struct feed_call *c, const tutti_call *call)
{
    struct tutti_comm *comm = q->comm;
    if (call->work && c->once)
        return guard_refuse(comm, c->kind, c->site,
                            "call.work: this call does not wait, so it cannot be left under way");
    tutti_call rest = *call;
    rest.flags &= ~(unsigned)TUTTI_TRY;
    return guard_call(comm, c->kind, c->site, &rest);
}

/* With tasks under way the rest is theirs. */
static int call_leave(struct tutti_queue *q, const struct feed_call *c, int result)
{
    return c->behind ? feed_out(q, result) : feed_leave(q, result);
}

/* 0: inside, and *c is filled in; call_leave when done. */
static inline __attribute__((always_inline))
int call_enter(struct tutti_queue *q, enum kind kind, const char *site, const tutti_call *call,
               struct feed_call *c)
{
    guard_clear(call);
    if (!q)
        return -EINVAL;
    if (*q->comm->fork_word != 1)
        return -ECHILD;
    int r = feed_enter(q);
    if (r < 0)
        return r;
    guard_known(q->comm);
    *c = (struct feed_call){
        .kind = kind, .site = guard_site(q->comm, site),
        .timeout_ns = call && call->timeout_ms > 0 ? timeout_give(call->timeout_ms) : -1,
        .once = (call && (call->flags & TUTTI_TRY))
            || (kind == KIND_QUEUE_PUT && (q->flags & TUTTI_QUEUE_REFUSE)),
        .behind = (call && call->work) || load_acquire32(&q->works)
    };
    if ((q->comm->watch.me == q->writer) != (kind == KIND_QUEUE_PUT))
        r = side_refuse(q, c);
    else if (call)
        r = call_check(q, c, call);
    if (r == 0)
        r = guard_operation(q->comm, kind, c->site);
    return r < 0 ? call_leave(q, c, r) : 0;
}

/* What does not wait does not wait for those before it, either. */
static __attribute__((noinline))
int put_behind(struct tutti_queue *q, const struct feed_call *c, const struct feed_put *put,
               int parts, const tutti_call *call)
{
    const struct feed_task task = { .call = *c, .put = *put };
    return c->once ? -EAGAIN : feed_work_run(q, &task, parts, call);
}

static __attribute__((noinline))
int get_behind(struct tutti_queue *q, const struct feed_call *c, const struct feed_get *get,
               const tutti_call *call)
{
    const struct feed_task task = { .call = *c, .get = *get };
    return c->once ? -EAGAIN : feed_work_run(q, &task, 0, call);
}

/* To its end, or left under way. */
static inline __attribute__((always_inline))
int call_put(struct tutti_queue *q, const struct feed_call *c, struct feed_put *put, int parts,
             const tutti_call *call)
{
    return c->behind ? put_behind(q, c, put, parts, call) : feed_put(q, put, c);
}

static inline __attribute__((always_inline))
int call_get(struct tutti_queue *q, const struct feed_call *c, const struct feed_get *get,
             const tutti_call *call)
{
    return c->behind ? get_behind(q, c, get, call) : feed_get(q, get, c);
}

/* The books of loans are the tasks', too. */
static void books_open(struct tutti_queue *q, const struct feed_call *c)
{
    if (c->behind)
        pthread_mutex_lock(&q->engine.lock);
}

static void books_close(struct tutti_queue *q, const struct feed_call *c)
{
    if (c->behind)
        pthread_mutex_unlock(&q->engine.lock);
}

/* ---- calls ---- */

int tutti_queue_put_v_at(const char *site, tutti_queue *queue, const void *const part[],
                         const size_t bytes[], int parts, const tutti_call *call)
{
    struct feed_call c;
    int r = call_enter(queue, KIND_QUEUE_PUT, site, call, &c);
    if (r < 0)
        return r;
    if (parts < 0 || (parts && (!part || !bytes)))
        r = guard_refuse(queue->comm, c.kind, c.site, parts < 0 ? "%d parts" : "%d parts of NULL",
                         parts);
    size_t all = 0;
    for (int i = 0; i < parts && r == 0; i++) {
        if (bytes[i] && !part[i])
            r = guard_refuse(queue->comm, c.kind, c.site, "part %d is NULL with %zu bytes", i,
                             bytes[i]);
        else if (bytes[i] > PTRDIFF_MAX - all)
            r = guard_refuse(queue->comm, c.kind, c.site, "%zu bytes are too many", bytes[i]);
        else
            all += bytes[i];
    }
    if (r == 0) {
        struct feed_put put = { .part = part, .bytes = bytes, .all = all, .left = all };
        r = call_put(queue, &c, &put, parts, call);
    }
    return call_leave(queue, &c, r);
}

int tutti_queue_put_at(const char *site, tutti_queue *queue, const void *data, size_t bytes,
                       const tutti_call *call)
{
    return tutti_queue_put_v_at(site, queue, &data, &bytes, 1, call);
}

int tutti_queue_get_at(const char *site, tutti_queue *queue, void *buf, size_t *bytes,
                       const tutti_call *call)
{
    struct feed_call c;
    int r = call_enter(queue, KIND_QUEUE_GET, site, call, &c);
    if (r < 0)
        return r;
    if (!bytes || (*bytes && !buf))
        r = guard_refuse(queue->comm, c.kind, c.site, "%s is NULL", bytes ? "buf" : "bytes");
    const struct feed_get get = { .buf = buf, .bytes = bytes };
    return call_leave(queue, &c, r < 0 ? r : call_get(queue, &c, &get, call));
}

int tutti_queue_look_at(const char *site, tutti_queue *queue, tutti_queue_message *message,
                        const tutti_call *call)
{
    CALLER_KEPT;
    struct feed_call c;
    int r = call_enter(queue, KIND_QUEUE_LOOK, site, call, &c);
    if (r < 0)
        return r;
    if (!message)
        r = guard_refuse(queue->comm, c.kind, c.site, "message is NULL");
    const struct feed_get get = { .message = message };
    return call_leave(queue, &c, r < 0 ? r : call_get(queue, &c, &get, call));
}

/* ---- loans ---- */

int tutti_queue_loan_at(const char *site, tutti_queue *queue, size_t bytes, void **block)
{
    struct feed_call c;
    int r = call_enter(queue, KIND_QUEUE_PUT, site, NULL, &c);
    if (r < 0)
        return r;
    if (!block || bytes > PTRDIFF_MAX)
        r = block ? guard_refuse(queue->comm, c.kind, c.site, "%zu bytes are too many", bytes)
                  : guard_refuse(queue->comm, c.kind, c.site, "block is NULL");
    else
        *block = NULL;
    if (r == 0) {
        books_open(queue, &c);
        r = feed_loan(queue, bytes, block, &c);
        books_close(queue, &c);
    }
    return call_leave(queue, &c, r);
}

static int loan_refuse(tutti_queue *queue, const struct feed_call *c, const void *block,
                       size_t bytes, int error)
{
    return error == -EMSGSIZE
        ? guard_refuse(queue->comm, c->kind, c->site, "%zu bytes: the loan is smaller", bytes)
        : guard_refuse(queue->comm, c->kind, c->site,
                       "0x%zx is not the beginning of a loan of this queue that is not put yet",
                       (size_t)block);
}

int tutti_queue_put_loan_at(const char *site, tutti_queue *queue, void *block, size_t bytes,
                            const tutti_call *call)
{
    struct feed_call c;
    int r = call_enter(queue, KIND_QUEUE_PUT, site, call, &c);
    if (r < 0)
        return r;
    struct feed_put put;
    books_open(queue, &c);
    r = feed_put_loan_of(queue, &put, block, bytes);
    books_close(queue, &c);
    r = r < 0 ? loan_refuse(queue, &c, block, bytes, r) : call_put(queue, &c, &put, 0, call);
    return call_leave(queue, &c, r);
}

int tutti_queue_drop_loan_at(const char *site, tutti_queue *queue, void *block)
{
    struct feed_call c;
    int r = call_enter(queue, KIND_QUEUE_PUT, site, NULL, &c);
    if (r < 0)
        return r;
    books_open(queue, &c);
    r = feed_loan_drop(queue, block);
    books_close(queue, &c);
    return call_leave(queue, &c, r < 0 ? loan_refuse(queue, &c, block, 0, r) : 0);
}

/* 0: a call without a site may go on. */
static int queue_check(const tutti_queue *queue)
{
    return !queue ? -EINVAL : *queue->comm->fork_word != 1 ? -ECHILD : 0;
}

int tutti_queue_release(tutti_queue *queue, tutti_queue_message *message)
{
    CALLER_KEPT;
    int r = message ? queue_check(queue) : -EINVAL;
    if (r == 0)
        feed_release(queue, message);
    return r;
}

int tutti_queue_close(tutti_queue *queue)
{
    CALLER_KEPT;
    int r = queue_check(queue);
    if (r < 0)
        return r;
    if (comm_callback == queue->comm)
        return -EDEADLK;
    feed_close(queue, feed_works_end);
    return 0;
}

int tutti_queue_free(tutti_queue *queue)
{
    CALLER_KEPT;
    int r = queue_check(queue);
    if (r < 0)
        return r;
    struct tutti_comm *comm = queue->comm;
    if (guard_nested(comm))
        return -EDEADLK;
    if (load_acquire32(&comm->engine.busy) || queue_under_way(comm))
        return -EBUSY;
    feed_close(queue, feed_works_end);
    feed_works_leave(queue);
    feed_forget(comm);
    return tutti_comm_free(comm);
}

tutti_comm *tutti_queue_comm(const tutti_queue *queue) { return queue ? queue->comm : NULL; }

int tutti_queue_stats(const tutti_queue *queue, tutti_queue_figures *figures)
{
    CALLER_KEPT;
    int r = figures ? queue_check(queue) : -EINVAL;
    if (r == 0)
        feed_figures(queue, figures);
    return r;
}

/* ---- the same without a site ---- */

int tutti_queue_create(tutti_comm *comm, int writer, const tutti_queue_options *options,
                       tutti_queue **queue)
{
    return tutti_queue_create_at(NULL, comm, writer, options, queue);
}

int tutti_queue_put(tutti_queue *queue, const void *data, size_t bytes, const tutti_call *call)
{
    return tutti_queue_put_at(NULL, queue, data, bytes, call);
}

int tutti_queue_put_v(tutti_queue *queue, const void *const part[], const size_t bytes[], int parts,
                      const tutti_call *call)
{
    return tutti_queue_put_v_at(NULL, queue, part, bytes, parts, call);
}

int tutti_queue_get(tutti_queue *queue, void *buf, size_t *bytes, const tutti_call *call)
{
    return tutti_queue_get_at(NULL, queue, buf, bytes, call);
}

int tutti_queue_look(tutti_queue *queue, tutti_queue_message *message, const tutti_call *call)
{
    return tutti_queue_look_at(NULL, queue, message, call);
}

int tutti_queue_loan(tutti_queue *queue, size_t bytes, void **block)
{
    return tutti_queue_loan_at(NULL, queue, bytes, block);
}

int tutti_queue_put_loan(tutti_queue *queue, void *block, size_t bytes, const tutti_call *call)
{
    return tutti_queue_put_loan_at(NULL, queue, block, bytes, call);
}

int tutti_queue_drop_loan(tutti_queue *queue, void *block)
{
    return tutti_queue_drop_loan_at(NULL, queue, block);
}
