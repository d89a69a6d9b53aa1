/* tutti_stats says who came last: the rank that all others had waited for, and nobody else. A rank
 * that is late on purpose arrives when it sees that all others have. */
/* ctest: timeout=120 labels=tsan */
#include "support/ranks.h"

#include "base/clock.h"
#include "group/comm.h"
#include "watch/history.h"
#include "watch/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>

enum { RANKS = 3, OPERATIONS = 40 };

static bool is_there(const struct watch *w, uint32_t p, uint64_t seq)
{
    const struct record *r = journal_hand(&w->members[p]);
    /* relaxed: after journal_hand */
    return load_relaxed64(&r->seq) == seq && load_relaxed64(&r->arrived);
}

/* All others wait in this rank's next operation, and have said when they came; since more than the
 * clocks may differ by. */
static void await_all_others(const tutti_comm *world)
{
    const struct watch *w = &world->watch;
    for (uint32_t p = 0; p < w->size; p++)
        while (p != w->me && !is_there(w, p, world->seq + 1))
            sched_yield();
    for (uint64_t now = clock_ns(); clock_ns() < now + 10 * HISTORY_UNCERTAIN_NS;) {
    }
}

/* All others have waited for this rank: each sleeps until it comes, at its word or at the central
 * gate's. */
static void await_all_sleepers(const tutti_comm *world)
{
    const struct watch *w = &world->watch;
    while (load_acquire32(&w->mine->sleepers) + load_acquire32(&w->slot->sense_sleepers)
           < w->size - 1)
        sched_yield();
}

/* sleeps: who comes last lets the others sleep. Else they may find it there at their first look,
 * and have not waited. */
static int late_by_turns(tutti_comm *world, int rank, int (*who)(int k, int size), bool sleeps)
{
    int own = 0;
    for (int k = 0; k < OPERATIONS; k++) {
        if (who(k, tutti_size(world)) == rank) {
            await_all_others(world);
            if (sleeps)
                await_all_sleepers(world);
            own++;
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    tutti_figures f;
    CHECK_IS(tutti_stats(world, &f), 0);
    CHECK_IS(f.compared, OPERATIONS);
    CHECK_IS(f.came_last, own);
    CHECK(own ? f.late_median_ns > 0 && f.late_cost_ns >= (uint64_t)(own / 2) * f.late_median_ns
              : f.late_median_ns == 0 && f.late_cost_ns == 0);
    CHECK(f.late_p99_ns >= f.late_median_ns);
    CHECK(f.waits >= (uint64_t)(sleeps ? OPERATIONS - own : 0) && f.waits <= f.operations);
    /* nobody goes on before all have looked */
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static int always_one(int k, int size)
{
    (void)k;
    (void)size;
    return 1;
}
static int each_in_turn(int k, int size) { return k % size; }

static int one(tutti_comm *world, int rank)
{
    return late_by_turns(world, rank, always_one, true);
}

static int turns(tutti_comm *world, int rank)
{
    return late_by_turns(world, rank, each_in_turn, true);
}

static int short_turns(tutti_comm *world, int rank)
{
    return late_by_turns(world, rank, each_in_turn, false);
}

static void the_same_rank_each_time(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(RANKS, one), 0);
}

static void each_rank_in_turn(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(RANKS, turns), 0);
}

/* Where each rank has a CPU, short waits end on the fast path. */
static void two_ranks_in_turn(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, turns), 0);
    assert_int_equal(ranks_run_either(2, short_turns), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_same_rank_each_time),
                                        cmocka_unit_test(each_rank_in_turn),
                                        cmocka_unit_test(two_ranks_in_turn) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
