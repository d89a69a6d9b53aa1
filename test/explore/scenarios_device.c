/* Operations in which rank 0 plays device memory: it says so, and its result is in place only after
 * it was asked a few times, or never. */
#define TUTTI_NO_SITES
#include "explore/scenarios.h"

#include "api/check.h"
#include "engine/guard.h"
#include "engine/run.h"
#include "watch/verdict.h"

#include <errno.h>
#include <string.h>

enum { CALLS = 2, SMALL = 2, LARGE = 24 };

/* What the scenario's count says: elements + 100 * times asked in vain + 1000 if the device then
 * fails in the last call. */
static unsigned elements(void) { return (unsigned)explore_count() % 100; }
static unsigned in_vain(void) { return (unsigned)explore_count() / 100 % 10; }
static bool fails(void) { return explore_count() >= 1000; }

struct device_call {
    unsigned vain;
    bool fails;
    uint64_t to[LARGE];
    const struct algorithm *under;
    struct algorithm row;
};

static int played_place(struct coll *c)
{
    struct device_call *d = c->gpu.call;
    if (d->vain) {
        d->vain--;
        return WAITING;
    }
    if (d->fails)
        return -EIO;
    memcpy(d->to, c->recv, c->bytes);
    return DONE;
}

static int played_before(struct coll *c)
{
    coll_publish_device(c, 0);
    return c->gpu.call->under->before(c);
}

static int played_advance(struct op *op)
{
    struct coll *c = (struct coll *)op;
    coll_publish_device(c, 0);
    c->algorithm = c->gpu.call->under;
    op->advance = c->algorithm->advance;
    return op->advance(op);
}

static int played(tutti_comm *world, uint64_t *x, uint64_t *y, struct device_call *d)
{
    struct coll c;
    check_describe(&c, x, y, elements(), TUTTI_U64, TUTTI_SUM, 0);
    int r = guard_enter(world);
    uint32_t site = guard_site(world, "explore");
    if (r == 0)
        r = check_data(world, &c, KIND_ALL_REDUCE, site, NULL);
    if (r == 0 && d) {
        c.gpu.call = d;
        c.gpu.place = played_place;
        d->under = c.algorithm;
        d->row = *c.algorithm;
        if (d->row.before)
            d->row.before = played_before;
        else
            d->row.advance = played_advance;
        c.algorithm = &d->row;
    }
    if (r == 0)
        r = run_collective(world, &c, KIND_ALL_REDUCE, site, NULL);
    return guard_leave(world, r);
}

void devices(int rank, tutti_comm *world)
{
    bool failed = false;
    unsigned n = (unsigned)tutti_size(world);
    for (unsigned k = 0; k < CALLS; k++) {
        uint64_t x[LARGE], y[LARGE];
        struct device_call d;
        d.vain = in_vain();
        d.fails = fails() && k + 1 == CALLS;
        for (unsigned i = 0; i < elements(); i++) {
            x[i] = (unsigned)rank + 1 + 10 * k + 100 * i;
            y[i] = d.to[i] = 0;
        }
        int r = played(world, x, y, rank == 0 ? &d : NULL);
        explore_note(rank, (int)k, r);
        failed |= r < 0;
        for (unsigned i = 0; i < elements() && r == 0; i++) {
            uint64_t got = rank == 0 ? d.to[i] : y[i];
            if (got != n * (n + 1) / 2 + n * (10 * k + 100 * i))
                explore_wrong("torn payload: rank %d, call %u, element %u: %llu", rank, k, i,
                              (unsigned long long)got);
        }
    }
    if (failed)
        explore_failed(rank, world);
}

/* The device's failure is everybody's, by that reason; a rank that was killed before may be the
 * reason instead. */
static void check_fails(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++)
        for (int k = 0; k < CALLS; k++) {
            if (!note[p].there[k] || explore_killed[p])
                continue;
            int r = note[p].result[k];
            bool dead = explore_any_killed() && (r == -EOWNERDEAD || r == -ECANCELED);
            if (!dead && r != (k + 1 == CALLS ? -EIO : 0))
                explore_wrong("rank %d: call %d gave %d", p, k, r);
        }
}

/* As check_verdict, but a rank whose device is late names itself. */
static void check_late(void)
{
    uint64_t first = 0;
    for (int p = 0; p < EXPLORE_RANKS; p++) {
        bool failed = false;
        for (int k = 0; k < CALLS; k++) {
            int r = note[p].result[k];
            if (note[p].there[k] && (failed ? r != -ECANCELED : r < 0 && r != -ETIMEDOUT))
                explore_wrong("rank %d: call %d gave %d", p, k, r);
            failed |= note[p].there[k] && r < 0;
        }
        if (!failed)
            continue;
        uint64_t v = note[p].verdict;
        if (verdict_why(v) != WHY_DEADLINE || verdict_who(v) > 1
            || (verdict_by(v) == 1 && verdict_who(v) == 1) || (first && v != first))
            explore_wrong("rank %d: the deadline of rank %u names rank %u, reason %d", p,
                          verdict_by(v), verdict_who(v), verdict_why(v));
        first = v;
    }
}

#define EVENTS (KILL | STOP | SPURIOUS | TIMER)
#define DEVICE(named, checks, ...)                                                                 \
    const struct scenario scenario_##named = {                                                     \
        .name = #named, .ranks = 2, .body = devices, .commits = true, .check = checks, __VA_ARGS__ \
    };

DEVICE(device, check_good, .count = SMALL, .preemptions = 2)
DEVICE(device_tso, check_good, .count = SMALL, .preemptions = 2, .memory = MEMORY_TSO)
DEVICE(device_weak, check_good, .count = SMALL, .preemptions = 1, .memory = MEMORY_WEAK)
DEVICE(device_central, check_good, .rules = "barrier:-inf=central", .count = SMALL,
       .preemptions = 2)
DEVICE(device_pipelined, check_good, .rules = "all_reduce:-inf=pipelined", .count = LARGE,
       .preemptions = 1)
DEVICE(device_poll, check_good, .count = SMALL + 100, .preemptions = 2, .patience = PATIENCE_ALL)
DEVICE(device_events, check_death, .count = SMALL, .preemptions = 1, .preemptions_event = 1,
       .events = EVENTS)
DEVICE(device_poll_events, check_death, .count = SMALL + 100, .preemptions = 1,
       .preemptions_event = 1, .patience = PATIENCE_ALL, .events = EVENTS)
DEVICE(device_fails, check_fails, .count = SMALL + 1000, .preemptions = 2,
       .patience = PATIENCE_FIRST)
DEVICE(device_fails_events, check_fails, .count = SMALL + 1000, .preemptions = 1,
       .preemptions_event = 1, .patience = PATIENCE_FIRST, .events = EVENTS)
DEVICE(device_deadline, check_late, .count = SMALL + 100, .preemptions = 1, .preemptions_event = 1,
       .timeout_ms = { 1, 2 }, .events = JUMP | TIMER, .patience = PATIENCE_ALL)
DEVICE(device_abort, check_abort, .count = SMALL + 100, .helpers = 1, .helper = aborts,
       .preemptions = 1, .patience = PATIENCE_ALL)
