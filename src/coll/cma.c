/* A read of a peer that is gone fails at once; the peer's mark shows the reason a little later.
 * Cost: for each operation, two checks at the ends of a private buffer, some 0.5 us; once in a
 * comm's life, a read of each peer, 1 us each, and one more exchange of lines. */
#include "coll/cma.h"

#include "base/clock.h"
#include "coll/parts.h"
#include "os/vm_read.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ns from the end of a process's memory to the mark of its end: all its threads must end first */
enum { CMA_PATIENCE = 250000000 };

/* A bit beside the address: the ranks have to find out whether they can read it. */
#define CMA_ASKED UINT64_C(1)

/* With PARTS_PAIRS, payload[1] holds the number of rounds. */
static shared64 *cma_word(const struct coll *c, struct arrival *a)
{
    return parts_how(c) & PARTS_PAIRS ? &a->more[0] : &a->payload[1];
}

int cma_open(struct coll *c)
{
    struct tutti_comm *comm = c->comm;
    struct watch *w = &comm->watch;
    bool may = c->algorithm->direct && w->size > 1 && !comm->coll.devices && !c->gpu.call
        && comm->coll.cma.said != CMA_NO;
    c->cma.may = may ? (enum cma)comm->coll.cma.said : CMA_NO;
    c->cma.since = 0;
    if (may && !comm->coll.cma.window
        && posix_memalign((void **)&comm->coll.cma.window, 4096, w->size * cma_stretch_bytes(c))) {
        comm->coll.cma.window = NULL;
        return -ENOMEM;
    }
    if (c->cma.may != CMA_NO) {
        uint64_t rights = vm_rights(),
                 asks = c->cma.may == CMA_ASKS || rights != comm->coll.cma.rights ? CMA_ASKED : 0;
        comm->coll.cma.rights = rights;
        /* relaxed: E1 publishes it */
        store_relaxed64(cma_word(c, &w->mine->arrival[c->op.claim.seq & 1]),
                        (uint64_t)(uintptr_t)&comm->world->self | asks);
    }
    return 0;
}

/* True: some rank's right to read, or to be read, may have changed since the ranks found it out.
 * All ranks read the same words. */
static bool cma_asked(const struct coll *c)
{
    bool asked = false;
    for (uint32_t p = 0; p < c->comm->watch.size; p++)
        /* relaxed: after E1 */
        asked |= load_relaxed64(cma_word(c, watch_arrival(&c->comm->watch, p, c->op.claim.seq)))
            & CMA_ASKED;
    return asked;
}

struct place cma_place(const struct coll *c, const void *at, size_t bytes)
{
    if (c->cma.may == CMA_NO || bytes == 0 || vm_own(at, bytes) < 0)
        return (struct place){ 0, 0, 0 };
    return (struct place){ (uint64_t)(uintptr_t)at | CMA_BIT, 0, bytes };
}

static bool cma_reached(const struct coll *c, uint32_t p)
{
    const struct watch *w = &c->comm->watch;
    struct process_id id = w->seats[p]->id, got = { 0 };
    /* relaxed: after E1 */
    uint64_t at = load_relaxed64(cma_word(c, watch_arrival(w, p, c->op.claim.seq))) & ~CMA_ASKED;
    return vm_read(id.pid, &got, at, sizeof got) == 0 && got.pid == id.pid && got.start == id.start;
}

int cma_finish(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    if (c->cma.may == CMA_NO)
        return DONE;
    if (coll_any_device(c)) {          /* a rank with a device cannot read a peer's memory */
        c->cma.may = CMA_NO;
        return DONE;
    }
    if (c->cma.may == CMA_YES && cma_asked(c))
        c->cma.may = CMA_ASKS;
    if (c->cma.may == CMA_YES) {
        c->op.claim.whole = true;
        return DONE;
    }
    bool all = true;
    for (uint32_t p = 0;
         /* relaxed: our own word */
         p < w->size && all && load_relaxed64(&w->mine->mapped) < 2 * c->op.claim.seq; p++)
        all = p == w->me || cma_reached(c, p);
    if (load_relaxed64(&w->mine->mapped) < 2 * c->op.claim.seq)             /* relaxed: as above */
        coll_say_mapped(c, all);
    if (coll_all_mapped(c, &all) == WAITING)
        return WAITING;
    c->cma.may = c->comm->coll.cma.said = all ? CMA_YES : CMA_NO;
    c->op.claim.whole = all;
    return DONE;
}

static int cma_failed(struct coll *c, uint32_t p, int error)
{
    struct watch *w = &c->comm->watch;
    c->op.wait = (struct wait){
        .word = &w->members[p].given, .value = c->op.claim.seq, .owner = (int)p, .poll = true
    };
    int r = verdict_look(w, &c->op.claim, &c->op.wait, false);
    if (r < 0)
        return r;
    uint64_t now = w->ways->now(w->ways->arg);
    c->cma.since = c->cma.since ? c->cma.since : now;
    if (error == -ESRCH && now - c->cma.since < CMA_PATIENCE)
        return WAITING;
    comm_explain(c->comm,
                 "the memory of rank %u cannot be read any more: %s; a buffer must stay as it is "
                 "until the call has returned",
                 p, strerror(-error));
    return -EFAULT;
}

int cma_read(struct coll *c, uint32_t p, void *to, uint64_t at, size_t bytes)
{
    uint64_t began = clock_tick();
    int r = vm_read(c->comm->watch.seats[p]->id.pid, to, at & ~CMA_BIT, bytes);
    c->fold.ticks += clock_tick() - began;
    return r == 0 ? DONE : cma_failed(c, p, r);
}

int cma_given(struct coll *c)
{
    struct watch *w = &c->comm->watch;
    if (load_relaxed64(&w->mine->given) < c->op.claim.seq)           /* relaxed: our own word */
        watch_raise(w, &w->mine->given, c->op.claim.seq);            /* E22 release */
    for (uint32_t p = 0; p < w->size; p++)
        if (load_acquire64(&w->members[p].given) < c->op.claim.seq) {        /* E22 acquire */
            c->op.wait = wait_for(&w->members[p].given, c->op.claim.seq, p);
            return WAITING;
        }
    return DONE;
}
