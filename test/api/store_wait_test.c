/* ctest: timeout=300 labels=tsan needs=robust */
/* Waiting for a key: who is woken, by what, and what ends the wait otherwise: a deadline, a death,
 * an abort, a failed comm, an interrupt. */
#include "arena/store.h"
#include "base/clock.h"
#include "group/comm.h"
#include "support/ranks.h"
#include "support/team.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GO = 0, READY = 1, DONE_ALL = 2, MIB = 1 << 20 };

static const struct arena *arena_of(tutti_comm *comm) { return &comm->world->arena; }

/* Until that many ranks sleep for the key. */
static int asleep(tutti_comm *comm, const char *key, uint32_t n)
{
    struct store_key k = store_key(key, strlen(key));
    const shared32 *sleepers = &store_group(arena_of(comm), &k)->sleepers;
    for (uint64_t end = clock_ns() + UINT64_C(60000000000); clock_ns() < end; sched_yield())
        if (load_acquire32(sleepers) >= n)
            return 0;
    return -1;
}

/* A sleep that only a wake ends: a wake that is forgotten becomes a hang, and not a wait
 * of a slice. */
static uint64_t ways_now(void *arg) { (void)arg; return clock_ns(); }
static int ways_sleep(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    (void)arg;
    (void)ns;
    return n == 1 ? futex_wait(words->word, words->seen, UINT64_C(90000000000))
                  : futex_wait_any(words, n, UINT64_C(90000000000));
}
static int ways_wake(void *arg, shared32 *word, int n) { (void)arg; return futex_wake(word, n); }
static void ways_yield(void *arg) { (void)arg; sched_yield(); }
static const struct wait_ways deep_sleep = { ways_now, ways_sleep, ways_wake, ways_yield, NULL };


/* ---- waiting ---- */

static int body_woken(tutti_comm *world, int rank)
{
    char key[32];
    int rounds = ranks_many(60, 20), value;
    const struct wait_ways *ways = world->watch.ways;
    for (int i = 0; i < rounds; i++) {
        size_t n = sizeof value;
        snprintf(key, sizeof key, "round %d", i);
        if (rank == i % 3) {
            CHECK_IS(asleep(world, key, 2), 0);
            int64_t now;
            if (i % 2)
                CHECK_IS(tutti_compare_set(key, NULL, 0, &i, sizeof i, world), 1);
            else if (i % 4)
                CHECK_IS(tutti_set(key, &i, sizeof i, world), 0);
            else
                CHECK_IS(tutti_add(key, i, &now, world), 0);
            continue;
        }
        int64_t number = 0;
        n = sizeof number;
        world->watch.ways = &deep_sleep;
        CHECK_IS(tutti_get(key, &number, &n, world, NULL), 0);
        world->watch.ways = ways;
        memcpy(&value, &number, sizeof value);
        CHECK_IS(value, i);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_woken(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_woken), 0);
}

static int body_relay(tutti_comm *world, int rank)
{
    int rounds = ranks_many(400, 60), size = tutti_size(world);
    char key[32];
    for (int i = 0; i < rounds; i++) {
        int value = 0;
        size_t n = sizeof value;
        if (i % size == rank) {
            if (i) {
                snprintf(key, sizeof key, "%d", i - 1);
                CHECK_IS(tutti_get(key, &value, &n, world, NULL), 0);
                CHECK_IS(value, i - 1);
                CHECK_IS(tutti_delete(key, world), 0);
            }
            snprintf(key, sizeof key, "%d", i);
            CHECK_IS(tutti_set(key, &i, sizeof i, world), 0);
        }
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_relay(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_relay), 0);
}

static int body_deadline(tutti_comm *world, int rank)
{
    char value[8];
    size_t n = sizeof value;
    CHECK_IS(tutti_get("missing", value, &n, world, &(tutti_call){ .timeout_ms = 60 + rank }),
             -ETIMEDOUT);
    CHECK(ranks_explain(world, "get of key \"missing\" at ")
          && ranks_explain(world, "no rank has set it") && ranks_explain(world, "  rank pid"));
    CHECK(ranks_explain(world, "store_wait_test.c"));
    CHECK_IS(n, sizeof value);
    CHECK_IS(tutti_set_timeout(world, 60), 0);
    CHECK_IS(tutti_get("missing", value, &n, world, NULL), -ETIMEDOUT);
    CHECK_IS(tutti_set_timeout(world, 0), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);         /* the comm is whole */
    if (rank == 0) {
        CHECK_IS(asleep(world, "missing", 1), 0);
        CHECK_IS(tutti_set("missing", "x", 1, world), 0);
    }
    CHECK_IS(tutti_get("missing", value, &n, world, &(tutti_call){ .timeout_ms = -1 }), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_deadline(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_deadline), 0);
}

/* A clock that goes on by a second whenever it is looked at: what is due before a deadline is seen
 * to be so, however busy the machine is. */
static uint64_t own_now(void *arg) { (void)arg; static uint64_t now; return now += 1000000000; }

static int own_sleep(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    (void)arg;
    (void)words;
    (void)n;
    (void)ns;
    return -ETIMEDOUT;
}

static const struct wait_ways own_time = { own_now, own_sleep, ways_wake, ways_yield, NULL };

/* Others set keys of the same group all the time, whenever this rank looks: the deadline passes all
 * the same. */
static void busy_yield(void *arg)
{
    struct store_key key = store_key("missing", 7);
    fetch_add64(&store_group(arena_of(arg), &key)->version, 1);
}

static int body_busy_group(tutti_comm *world, int rank)
{
    char value[8];
    size_t n = sizeof value;
    const struct wait_ways *ways = world->watch.ways;
    const struct wait_ways busy = { own_now, own_sleep, ways_wake, busy_yield, world };
    if (rank == 0) {
        world->watch.ways = &busy;
        world->watch.budget = (struct wait_budget){ 0, 1000, 0, 0, 0 };
        CHECK_IS(tutti_get("missing", value, &n, world, &(tutti_call){ .timeout_ms = 6000 }),
                 -ETIMEDOUT);
        world->watch.ways = ways;
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_busy_group(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_busy_group), 0);
}

static int body_warn(tutti_comm *world, int rank, struct team *team)
{
    char value[8];
    size_t n = sizeof value;
    const struct wait_ways *ways = world->watch.ways;
    world->watch.ways = &own_time;
    team->rank[rank].error[0] = tutti_get("missing", value, &n, world,
                                          &(tutti_call){ .timeout_ms = 6000 });
    world->watch.ways = ways;
    team->rank[rank].error[1] = tutti_barrier(world, NULL);
    return 0;
}

/* A wait that has become old says so, once. */
static void test_warn(void **state)
{
    (void)state;
    setenv("TUTTI_WARN_MS", "1500", 1);
    struct team *team = team_start(2, body_warn, true);
    assert_int_equal(team_end(team), 0);
    setenv("TUTTI_WARN_MS", "-1", 1);
    const char *said = team_stderr(team);
    for (int r = 0; r < 2; r++) {
        char line[64];
        snprintf(line, sizeof line, "tutti: rank %d of world has waited ", r);
        const char *at = strstr(said, line);
        assert_int_equal(team->rank[r].error[0], -ETIMEDOUT);
        assert_int_equal(team->rank[r].error[1], 0);
        if (!at || !strstr(at, " for key \"missing\"\n") || strstr(at + 1, line))
            fail_msg("rank %d's warning is not there once: %s", r, said);
    }
    team_free(team);
}

static int body_alone(tutti_comm *world, int rank)
{
    char value[8];
    size_t n = sizeof value;
    CHECK_IS(rank, 0);
    CHECK_IS(tutti_get("a", value, &n, world, NULL), -EOWNERDEAD);
    CHECK(ranks_explain(world, "alone"));
    CHECK_IS(tutti_set("a", "x", 1, world), 0);
    CHECK_IS(tutti_get("a", value, &n, world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_alone(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(1, body_alone), 0);
}

/* One of two others dies: the other may still set it. Then that one goes, too: what it has set is
 * there, for the rest nobody is left. */
static int body_death(tutti_comm *world, int rank)
{
    char value[8];
    size_t n = sizeof value;
    if (rank == 1) {
        CHECK_IS(asleep(world, "a", 1), 0);
        ranks_die();
    }
    if (rank == 2) {
        int who;
        while (tutti_failed(world, &who, 1) == 0)
            sched_yield();
        CHECK_IS(tutti_set("a", "1", 1, world), 0);
        CHECK_IS(asleep(world, "c", 1), 0);
        CHECK_IS(tutti_set("b", "1", 1, world), 0);
        if (page->word[READY])
            ranks_die();
        return 0;
    }
    CHECK_IS(tutti_get("a", value, &n, world, NULL), 0);
    CHECK_IS(tutti_get("c", value, &n, world, NULL), -EOWNERDEAD);
    CHECK(ranks_explain(world, "nobody is left") && ranks_explain(world, "  1 ")
          && ranks_explain(world, page->word[READY] ? "set at" : "left"));
    /* how it died may not be known yet */
    CHECK(strstr(tutti_explain(world), "signal 9 ") || ranks_explain(world, " died "));
    CHECK_IS(tutti_get("c", value, &n, world, NULL), -EOWNERDEAD);  /* each time: this call alone */
    CHECK_IS(tutti_get("b", value, &n, world, NULL), 0);
    CHECK_IS(tutti_set("c", "1", 1, world), 0);
    CHECK_IS(tutti_get("c", value, &n, world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    CHECK_IS(tutti_set("c", "1", 1, world), -ECANCELED);
    return 0;
}

static int body_death_both(tutti_comm *world, int rank)
{
    store_release32(&page->word[READY], 1);
    return body_death(world, rank);
}

static void test_death(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {                    /* rank 2 dies, or leaves */
        assert_int_equal(ranks_run(3, body_death_both, 1 << 1 | 1 << 2), 0);
        assert_int_equal(ranks_run(3, body_death, 1 << 1), 0);
    }
}

/* The last thing it did was to set the key: its death must not hide that. */
static int body_last_will(tutti_comm *world, int rank)
{
    char value[8];
    size_t n = sizeof value;
    if (rank == 1) {
        CHECK_IS(tutti_set("will", "1", 1, world), 0);
        ranks_die();
    }
    CHECK_IS(tutti_get("will", value, &n, world, NULL), 0);
    return 0;
}

static void test_last_will(void **state)
{
    (void)state;
    for (int i = 0; i < ranks_many(50, 10); i++)
        assert_int_equal(ranks_run(2, body_last_will, 1 << 1), 0);
}

/* ---- the comm's end ---- */

static int body_abort(tutti_comm *world, int rank)
{
    char value[8];
    size_t n = sizeof value;
    tutti_comm *other;
    CHECK_IS(tutti_comm_split(world, 0, rank, &other), 0);
    if (rank == 0) {
        CHECK_IS(asleep(world, "never", 2), 0);
        CHECK_IS(tutti_comm_abort(world, "no more data"), 0);
        CHECK_IS(tutti_set("a", "x", 1, world), -ECANCELED);
    } else {
        CHECK_IS(tutti_get("never", value, &n, world, NULL), -ECANCELED);
        CHECK(ranks_explain(world, "no more data") && ranks_explain(world, "for key \"never\""));
    }
    CHECK_IS(tutti_get("a", value, &n, world, NULL), -ECANCELED);
    CHECK_IS(tutti_set("a", "x", 1, world), -ECANCELED);
    CHECK_IS(tutti_add("a", 1, NULL, world), -ECANCELED);
    CHECK_IS(tutti_compare_set("a", NULL, 0, "x", 1, world), -ECANCELED);
    CHECK_IS(tutti_delete("a", world), -ECANCELED);
    CHECK_IS(tutti_set("b", "y", 1, other), 0);      /* the store is nobody's in particular */
    CHECK_IS(tutti_get("b", value, &n, other, NULL), 0);
    CHECK_IS(tutti_barrier(other, NULL), 0);
    return 0;
}

static void test_abort(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_abort), 0);
}

static int body_failed(tutti_comm *world, int rank)
{
    char value[8];
    size_t n = sizeof value;
    if (rank == 0)
        CHECK_IS(asleep(world, "never", 1), 0);
    int r = rank ? tutti_get("never", value, &n, world, NULL)
                 : tutti_barrier(world, &(tutti_call){ .timeout_ms = 20 });
    CHECK_IS(r, -ETIMEDOUT);
    CHECK_IS(tutti_get("never", value, &n, world, NULL), -ECANCELED);
    if (rank == 0)
        CHECK_IS(ranks_await(GO, 1), 0);
    else
        ranks_say(GO, 1);
    return 0;
}

static void test_failed(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_failed), 0);
}

static int stop(void *arg) { return ++*(int *)arg >= 3; }

static int body_interrupt(tutti_comm *world, int rank)
{
    char value[8];
    size_t n = sizeof value;
    int asked = 0;
    if (rank == 0) {
        world->watch.interrupt = stop;
        world->watch.interrupt_arg = &asked;
        CHECK_IS(tutti_get("never", value, &n, world, NULL), -EINTR);
        CHECK(ranks_explain(world, "interrupted while waiting for key \"never\""));
        world->watch.interrupt = NULL;
        CHECK_IS(tutti_get("never", value, &n, world, NULL), -ECANCELED);
    } else
        CHECK_IS(tutti_get("never", value, &n, world, NULL), -ECANCELED);
    return 0;
}

static void test_interrupt(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_interrupt), 0);
}

int main(void)
{
    setenv("TUTTI_SPAN_BYTES", "16M", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_woken), cmocka_unit_test(test_relay), cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_busy_group), cmocka_unit_test(test_warn),
        cmocka_unit_test(test_alone), cmocka_unit_test(test_abort), cmocka_unit_test(test_failed),
        cmocka_unit_test(test_interrupt), cmocka_unit_test(test_death),
        cmocka_unit_test(test_last_will),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
