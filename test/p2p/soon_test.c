/* ctest: timeout=100 labels=tsan */
/* A receive yields for its letter before it takes the long way, where there are no spins. Whatever
 * comes of that, it is one call with one record, which is there while it waits. */
#include "p2p/p2p.h"
#include "support/ranks.h"
#include "watch/journal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { YIELDS = 20, OTHER = 5, MINE = 6 };
enum step { ASKS = 1, SENT };

/* What comes to pass at which yield; 0: not at all. */
struct course { int other, mine, abort; };

struct hook {
    tutti_comm *world;
    struct course course;
    int yields, unrecorded;
    uint32_t asked;
};

/* Of the rank that receives: it asks for a message, and goes on when that has been sent. */
static void yield(void *arg)
{
    struct hook *h = arg;
    const struct record *r = journal_hand(h->world->watch.mine);
    int nth = ++h->yields, tag = nth == h->course.other ? OTHER : nth == h->course.mine ? MINE : 0;
    /* relaxed, both: our own record */
    h->unrecorded += load_relaxed64(&r->ended) != 0
        || fingerprint_kind(load_relaxed64(&r->descriptor)) != KIND_RECV;
    if (nth == h->course.abort)
        tutti_comm_abort(h->world, "at a yield");
    if (tag) {
        store_release64(&page->number[0], (uint64_t)tag);
        ranks_say(ASKS, ++h->asked);
        ranks_await(SENT, h->asked);
    }
}

static int receive(tutti_comm *world, struct course course, int result, int yields, uint32_t *asked)
{
    struct watch *w = &world->watch;
    struct wait_ways ways = *w->ways;
    const struct wait_ways *before = w->ways;
    struct wait_budget budget = w->budget;
    struct hook hook = { .world = world, .course = course, .asked = *asked };
    tutti_figures was, is;
    ways.yield = yield;
    ways.arg = &hook;
    CHECK_IS(tutti_stats(world, &was), 0);
    uint64_t head = load_acquire64(&w->mine->head), calls = world->engine.calls[KIND_RECV];
    w->ways = &ways;
    w->budget.spin_ticks = 0;
    w->budget.yields = YIELDS;
    w->budget.yield_ticks = UINT64_MAX / 2;
    int got = 0;
    CHECK_IS(tutti_recv(&got, 1, TUTTI_I32, 0, MINE, NULL, world, NULL), result);
    w->ways = before;
    w->budget = budget;
    CHECK_IS(got, result ? 0 : MINE);
    CHECK_IS(hook.yields, yields);
    CHECK_IS(hook.unrecorded, 0);
    CHECK_IS(load_acquire64(&w->mine->head), head + 1);
    CHECK_IS(world->engine.calls[KIND_RECV], calls + 1);
    const struct record *r = journal_hand(w->mine);
    CHECK_IS(record_ended_result(load_acquire64(&r->ended)), result);
    if (result == 0) {
        CHECK_IS(tutti_stats(world, &is), 0);
        CHECK_IS(is.operations, was.operations + 1);
        CHECK_IS(is.bytes, was.bytes + sizeof got);
        CHECK_IS(is.waits, was.waits + 1);
        CHECK(is.wait_ns > was.wait_ns);
    }
    *asked = hook.asked;
    return 0;
}

static int body(tutti_comm *world, int rank)
{
    enum { ASKED = 5 };
    int sent = 0, got;
    uint32_t asked = 0;
    /* the first letter makes the channel */
    if (rank == 0)
        CHECK_IS(tutti_send(&sent, 1, TUTTI_I32, 1, 0, world, NULL), 0);
    else
        CHECK_IS(tutti_recv(&got, 1, TUTTI_I32, 0, 0, NULL, world, NULL), 0);
    for (uint32_t k = 1; k <= ASKED && rank == 0; k++) {
        CHECK_IS(ranks_await(ASKS, k), 0);
        sent = (int)load_acquire64(&page->number[0]);
        CHECK_IS(tutti_send(&sent, 1, TUTTI_I32, 1, sent, world, NULL), 0);
        ranks_say(SENT, k);
    }
    if (rank == 0)
        return 0;
    if (receive(world, (struct course){ .mine = 1 }, 0, 1, &asked)
        || receive(world, (struct course){ .mine = 3 }, 0, 3, &asked)
        /* behind the short way's yields */
        || receive(world, (struct course){ .mine = 11 }, 0, 11, &asked)
        || receive(world, (struct course){ .other = 2, .mine = 4 }, 0, 4, &asked))
        return 1;
    CHECK_IS(asked, ASKED);
    CHECK_IS(tutti_recv(&got, 1, TUTTI_I32, 0, OTHER, NULL, world, NULL), 0);
    return receive(world, (struct course){ .abort = 2 }, -ECANCELED, 8, &asked);
}

static void test_one_call_one_record(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_call_one_record) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
