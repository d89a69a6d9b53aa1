/* The dummy's row replaces the algorithm's own. Only its first step differs. It is in the call's
 * device_call, because a call with .work runs long after its function has returned. */
#define TUTTI_NO_SITES
#include "support/dummy_device.h"

#include "api/check.h"
#include "engine/guard.h"
#include "engine/run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* DONE, WAITING or an error; or this rank ends here. */
static int dummy_ask(struct coll *c, unsigned *vain, bool ends)
{
    struct device_call *d = c->gpu.call;
    d->asked++;
    if (*vain) {
        --*vain;
        return WAITING;
    }
    if (!ends)
        return DONE;
    switch (d->end) {
    case DUMMY_GOOD: return DONE;
    case DUMMY_NO_MEMORY: comm_explain(c->comm, "dummyAlloc: no memory"); return -ENOMEM;
    case DUMMY_FAILS: comm_explain(c->comm, DUMMY_WORDS); return -EIO;
    case DUMMY_DIES: kill(getpid(), SIGKILL); return WAITING;
    case DUMMY_NEVER: return WAITING;
    }
    return WAITING;
}

static int dummy_place(struct coll *c)
{
    struct device_call *d = c->gpu.call;
    int r = dummy_ask(c, &d->after, !d->early);
    if (r == DONE && d->to)
        memcpy(d->to, c->recv, d->bytes);
    return r;
}

/* Continues with the algorithm itself, once the dummy has given its data. */
static int dummy_advance(struct op *op)
{
    struct coll *c = (struct coll *)op;
    int r = dummy_ask(c, &c->gpu.call->before, c->gpu.call->early);
    if (r != DONE)
        return r == WAITING ? watch_poll(op) : r;
    coll_publish_device(c, 0);
    c->algorithm = c->gpu.call->under;
    op->advance = c->algorithm->advance;
    return op->advance(op);
}

static int dummy_before(struct coll *c)
{
    coll_publish_device(c, 0);
    return c->gpu.call->under->before(c);
}

void dummy_plays(struct coll *c, struct device_call *d)
{
    c->gpu.call = d;
    c->gpu.place = dummy_place;
    d->asked = 0;
    d->under = c->algorithm;
    d->row = *c->algorithm;
    if (c->algorithm->before && !d->before && !d->early)
        d->row.before = dummy_before;                /* for the fast path */
    else {
        d->row.before = NULL;
        d->row.advance = dummy_advance;
    }
    c->algorithm = &d->row;
}

int dummy_call(tutti_comm *comm, enum kind kind, const void *send, void *recv, size_t count,
               tutti_type type, tutti_op op, int root, struct device_call *d,
               const tutti_call *call)
{
    struct coll c;
    check_describe(&c, send, recv, count, type, op, root);
    guard_clear(call);
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    uint32_t site = guard_site(comm, "dummy_device.c:1");
    r = check_data(comm, &c, kind, site, call);
    if (r == 0)
        r = check_buffers(comm, &c, kind, site);
    if (r == 0 && d)
        dummy_plays(&c, d);
    if (r == 0)
        r = run_collective(comm, &c, kind, site, call);
    return guard_leave(comm, r);
}
