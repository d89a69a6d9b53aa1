/* ctest: timeout=120 labels=faults */
/* comm_create where a rank of the list will not come: the parent has been aborted, has failed, was
 * freed there; or that rank has no slot, or could not so much as count. Whoever waits for it, or
 * comes later, hears it at once, and what was declined leaves nothing behind. The deadline is one
 * that no run reaches. */
#include "group/comm.h"
#include "group/decline.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLEEPING, COMING, GONE };                     /* words of the page */

static const int both[] = { 0, 1 };

/* Until that rank has been in create for long enough to sleep there. */
static bool asleep(tutti_comm *world, uint32_t rank)
{
    const struct watch *w = &world->watch;
    while (load_acquire32(&w->slot->state) == SLOT_USED) {
        for (uint32_t i = 1; i < w->arena->header->slots; i++) {
            struct slot *slot = arena_slot(w->arena, i);
            if (slot->birth == 0)
                break;
            if (load_acquire32(&slot->state) == SLOT_USED && slot->parent == w->slot->birth
                && load_acquire32(&arena_member(slot, 1 - rank)->sleepers))
                return true;
        }
        w->ways->yield(w->ways->arg);
    }
    return false;
}

/* ---- the parent ------------------------------------------------------------------------------ */

static int body_aborted_during(tutti_comm *world, int rank)
{
    tutti_comm *c;
    if (rank == 0) {
        CHECK(asleep(world, 1));
        CHECK_IS(tutti_comm_abort(world, "no more"), 0);
    }
    CHECK_IS(tutti_comm_create(world, both, 2, &c), -ECANCELED);
    CHECK(rank == 0 || strstr(tutti_explain(world), "rank 0 aborted world: no more"));
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    return 0;
}

static int body_aborted_before(tutti_comm *world, int rank)
{
    tutti_comm *c;
    if (rank == 0) {
        CHECK_IS(tutti_comm_abort(world, "no more"), 0);
        CHECK_IS(tutti_comm_create(world, both, 2, &c), -ECANCELED);
        ranks_say(COMING, 1);
        return ranks_await(GONE, 1);
    }
    CHECK_IS(ranks_await(COMING, 1), 0);
    CHECK_IS(tutti_comm_create(world, both, 2, &c), -ECANCELED);
    CHECK(strstr(tutti_explain(world), "rank 0 aborted world: no more"));
    ranks_say(GONE, 1);
    return 0;
}

static int body_failed(tutti_comm *world, int rank)
{
    tutti_comm *c;
    tutti_call soon = { .timeout_ms = 50 };
    if (rank == 0) {
        CHECK_IS(tutti_barrier(world, &soon), -ETIMEDOUT);
        CHECK_IS(tutti_comm_create(world, both, 2, &c), -ECANCELED);
        ranks_say(COMING, 1);
        return ranks_await(GONE, 1);
    }
    CHECK_IS(ranks_await(COMING, 1), 0);
    /* the cause, as any first call that meets it */
    CHECK_IS(tutti_comm_create(world, both, 2, &c), -ETIMEDOUT);
    CHECK(strstr(tutti_explain(world), "world has failed"));
    CHECK_IS(tutti_comm_create(world, both, 2, &c), -ECANCELED);
    ranks_say(GONE, 1);
    return 0;
}

static int body_freed(tutti_comm *world, int rank)
{
    tutti_comm *parent, *c;
    CHECK_IS(tutti_comm_split(world, 0, 0, &parent), 0);
    if (rank == 0) {
        CHECK(asleep(parent, 1));
        CHECK_IS(tutti_comm_free(parent), 0);
        return ranks_await(GONE, 1);
    }
    CHECK_IS(tutti_comm_create(parent, both, 2, &c), -EOWNERDEAD);
    CHECK(strstr(tutti_explain(parent), "rank 0"));
    ranks_say(GONE, 1);
    return 0;
}

/* Who has come and then frees the parent has come. */
static int body_came(tutti_comm *world, int rank)
{
    for (int i = 0; i < ranks_many(300, 50); i++) {
        tutti_comm *parent, *c;
        CHECK_IS(tutti_comm_split(world, 0, 0, &parent), 0);
        CHECK_IS(tutti_comm_create(parent, both, 2, &c), 0);
        CHECK_IS(tutti_comm_free(parent), 0);
        CHECK_IS(tutti_barrier(c, NULL), 0);
        CHECK_IS(tutti_comm_free(c), 0);
    }
    (void)rank;
    return 0;
}

/* ---- a rank that declines -------------------------------------------------------------------- */

/* Rank 0 finds no slot, and then one is free: rank 1 makes it, and would wait there. No slot is
 * lost by it. */
static int body_no_slot(tutti_comm *world, int rank)
{
    static _Thread_local tutti_comm *all[SLOTS_MAX];
    tutti_comm *c;
    int n = 0;
    while (n < SLOTS_MAX - 1)
        CHECK_IS(tutti_comm_split(world, 0, 0, &all[n++]), 0);
    for (uint32_t turn = 1; turn <= 3; turn++) {
        if (rank == 0) {
            CHECK_IS(tutti_comm_create(world, both, 2, &c), -ENOSPC);
            CHECK_IS(tutti_comm_free(all[--n]), 0);
            ranks_say(COMING, turn);
        } else {
            CHECK_IS(tutti_comm_free(all[--n]), 0);
            CHECK_IS(ranks_await(COMING, turn), 0);
            CHECK_IS(tutti_comm_create(world, both, 2, &c), -ENOSPC);
            CHECK(strstr(tutti_explain(world),
                         "rank 0 could not make its comm: too many comms are open; free some"));
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);                     /* nothing broke */
        CHECK_IS(tutti_comm_split(world, 0, 0, &all[n++]), 0);       /* the slot is there */
    }
    CHECK_IS(tutti_comm_free(all[--n]), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_comm_create(world, both, 2, &c), 0);              /* in step */
    CHECK_IS(tutti_comm_free(c), 0);
    while (n)
        CHECK_IS(tutti_comm_free(all[--n]), 0);
    return 0;
}

/* What is declined is found by list and number, for as long as somebody may ask; runs of the same
 * end take one place. */
static int body_declines(tutti_comm *world, int rank)
{
    const struct watch *w = &world->watch;
    bool held = false;
    (void)rank;
    for (uint64_t n = 1; n <= 100; n++)
        CHECK(decline_say(world, 7, n, -ENOSPC, false));
    CHECK(decline_say(world, 7, 101, -ENOMEM, true));
    CHECK_IS(decline_last(w, 7), 101);
    CHECK_IS(decline_of(w, w->me, 7, 1, &held), -ENOSPC);
    CHECK_IS(decline_of(w, w->me, 7, 100, &held), -ENOSPC);
    CHECK(!held);
    CHECK_IS(decline_of(w, w->me, 7, 101, &held), -ENOMEM);
    CHECK(held);
    CHECK_IS(decline_of(w, w->me, 7, 102, &held), 0);
    CHECK_IS(decline_of(w, w->me, 8, 1, &held), 0);
    for (uint64_t list = 100; list < 100 + DECLINES - 2; list++)
        CHECK(decline_say(world, list, 5, -ENOMEM, false));
    /* full, and all of it may still be asked for */
    CHECK(!decline_say(world, 99, 1, -ENOMEM, false));
    world->creations = malloc(sizeof *world->creations);
    CHECK(world->creations);
    world->creations[0] = (struct creation){ 7, 102, 102 };
    world->creations_used = 1;
    CHECK(decline_say(world, 99, 1, -ENOMEM, false));           /* that list has gone on since */
    CHECK_IS(decline_of(w, w->me, 7, 100, &held), 0);
    CHECK_IS(decline_of(w, w->me, 99, 1, &held), -ENOMEM);
    return 0;
}

static void run(ranks_body *body, int size)
{
    assert_int_equal(ranks_run_either(size, body), 0);
}

static void test_aborted_during(void **state) { (void)state; run(body_aborted_during, 2); }
static void test_aborted_before(void **state) { (void)state; run(body_aborted_before, 2); }
static void test_failed(void **state) { (void)state; run(body_failed, 2); }
static void test_freed(void **state) { (void)state; run(body_freed, 2); }
static void test_came(void **state) { (void)state; run(body_came, 2); }
static void test_no_slot(void **state) { (void)state; run(body_no_slot, 2); }
static void test_declines(void **state) { (void)state; run(body_declines, 1); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aborted_during), cmocka_unit_test(test_aborted_before),
        cmocka_unit_test(test_failed), cmocka_unit_test(test_freed), cmocka_unit_test(test_came),
        cmocka_unit_test(test_no_slot), cmocka_unit_test(test_declines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
