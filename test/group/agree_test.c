/* ctest: timeout=300 labels=tsan */
/* Agreements: the same result on all ranks whoever is dead, late, stopped, interrupted or calls
 * something else, on broken comms and whole ones, and beside work under way. Random deaths are
 * in recover_test. */
#include "base/clock.h"
#include "group/comm.h"
#include "os/process.h"
#include "support/ranks.h"
#include "support/team.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { GO = 0, PID = 1, HERE = 10 };
enum { PATIENCE_S = 60 };

/* Until that rank has cast its vote in agreement k of comm. */
static int await_vote(tutti_comm *comm, int rank, uint64_t k)
{
    const shared64 *number = &comm->watch.members[rank].vote[k & 1].number;
    for (uint64_t end = clock_ns() + PATIENCE_S * UINT64_C(1000000000); load_acquire64(number) < k;
         sched_yield())
        if (clock_ns() > end)
            return -1;
    return 0;
}

static int await_stop(pid_t pid)
{
    const struct process_id id = { .pid = pid };
    for (uint64_t end = clock_ns() + PATIENCE_S * UINT64_C(1000000000);
         strcmp(process_state(&id, NULL), "stopped"); sched_yield())
        if (clock_ns() > end)
            return -1;
    return 0;
}

/* By then the kernel has marked what it held, if it does so. */
static int await_end(pid_t pid)
{
    const struct process_id id = { .pid = pid };
    for (uint64_t end = clock_ns() + PATIENCE_S * UINT64_C(1000000000);; sched_yield()) {
        const char *state = process_state(&id, NULL);
        if (!strcmp(state, "zombie") || !strcmp(state, "gone"))
            return 0;
        if (clock_ns() > end)
            return -1;
    }
}

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 29;
}

static int word_of(int rank, int k)
{
    return (int)(uint32_t)(mixed((uint64_t)(rank + 1) << 32 | (uint64_t)k)
                           | mixed((uint64_t)k * 77 + (uint64_t)rank));
}

/* ---- nobody is gone ---- */

static int body_flags(tutti_comm *world, int rank)
{
    int size = tutti_size(world), many = ranks_many(3000, 300);
    for (int k = 0; k < many; k++) {
        int flag = word_of(rank, k), all = -1;
        for (int p = 0; p < size; p++)
            all &= word_of(p, k);
        CHECK_IS(tutti_comm_agree(world, &flag), 0);
        CHECK_IS(flag, all);
        if (k % 7 == 0)
            /* operations and agreements have nothing to do with each other */
            CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    CHECK_IS(tutti_comm_agree(world, NULL), -EINVAL);
    CHECK(strstr(tutti_explain(world), "flag is NULL") != NULL);
    return 0;
}

static void test_flags(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(1, body_flags), 0);
    assert_int_equal(ranks_run_either(2, body_flags), 0);
    assert_int_equal(ranks_run_either(5, body_flags), 0);
}

/* Aborted or broken comms agree as whole ones do, and stay what they were. */
static int body_broken(tutti_comm *world, int rank)
{
    tutti_comm *c;
    CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
    if (rank == 1)
        CHECK_IS(tutti_comm_abort(c, "for the test"), 0);
    CHECK_IS(tutti_barrier(c, NULL), -ECANCELED);
    for (int k = 0; k < 20; k++) {
        int flag = rank == k % 4 ? 0 : 1;
        CHECK_IS(tutti_comm_agree(c, &flag), 0);
        CHECK_IS(flag, k % 4 == 3 ? 1 : 0);
        CHECK_IS(tutti_barrier(c, NULL), -ECANCELED);
    }
    CHECK_IS(tutti_comm_free(c), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_broken(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_broken), 0);
}

/* An agreement overtakes work under way and leaves it alone. */
static int body_beside_work(tutti_comm *world, int rank)
{
    for (int k = 0; k < ranks_many(100, 20); k++) {
        tutti_work *work = NULL;
        int x = rank + k, flag = rank == 1 ? 6 : 3;
        if (rank != 2)
            CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world,
                                      &(tutti_call){ .work = &work }),
                     0);
        CHECK_IS(tutti_comm_agree(world, &flag), 0);
        CHECK_IS(flag, 2);
        if (rank == 2)
            CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
        else {
            CHECK_IS(tutti_wait(work, 0), 0);
        }
        CHECK_IS(x, 3 + 3 * k);
    }
    return 0;
}

static void test_beside_work(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_beside_work), 0);
}

/* ---- deaths ---- */

static int body_dead_before(tutti_comm *world, int rank)
{
    if (rank == 1)
        ranks_die();
    int flag = 8 | 1 << rank;
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    CHECK_IS(flag, 8);
    /* this is where the comm breaks, not before */
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    flag = rank == 0 ? 5 : 7;
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    CHECK_IS(flag, 5);
    return 0;
}

static void test_dead_before(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(4, body_dead_before, 1u << 1), 0);
}

/* A vote that was cast counts, whatever became of the voter. */
static int body_dead_after_voting(tutti_comm *world, int rank)
{
    int flag = rank == 1 ? 12 : 9;
    ranks_say(PID + rank, (uint32_t)getpid());
    if (rank == 2) {
        CHECK_IS(await_vote(world, 1, 1), 0);
        pid_t voter = (pid_t)load_acquire32(&page->word[PID + 1]);
        kill(voter, SIGKILL);
        CHECK_IS(await_end(voter), 0);
    }
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    CHECK_IS(flag, 8);
    return 0;
}

static void test_dead_after_voting(void **state)
{
    (void)state;
    for (int i = 0; i < ranks_many(20, 3); i++)
        assert_int_equal(ranks_run(3, body_dead_after_voting, 1u << 1), 0);
}

/* The last one that is missed dies while all others sleep: each of them notices. Likewise if it
 * leaves, or frees the comm. */
static int body_ends_while_missed(tutti_comm *world, int rank)
{
    tutti_comm *c;
    int how = (int)load_acquire32(&page->word[HERE]);
    CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
    if (rank == 0) {
        for (int p = 1; p < 4; p++)
            CHECK_IS(await_vote(c, p, 1), 0);
        if (how == 0)
            ranks_die();
        if (how == 1)
            return 0;
        CHECK_IS(tutti_comm_free(c), 0);
        CHECK_IS(ranks_await(GO, 3), 0);
        return 0;
    }
    int flag = 16 | rank;
    CHECK_IS(tutti_comm_agree(c, &flag), 0);
    CHECK_IS(flag, 16 | (1 & 2 & 3));
    ranks_count(GO);
    return 0;
}

static int how_it_ends;
static int body_ends(tutti_comm *world, int rank)
{
    ranks_say(HERE, (uint32_t)how_it_ends);
    return body_ends_while_missed(world, rank);
}

static void test_ends_while_missed(void **state)
{
    (void)state;
    for (how_it_ends = 0; how_it_ends < 3; how_it_ends++)
        for (int i = 0; i < ranks_many(10, 3); i++)
            assert_int_equal(ranks_run(4, body_ends, how_it_ends == 0 ? 1u : 0), 0);
}

/* ---- deadlines ---- */

static int body_late(tutti_comm *world, int rank)
{
    enum { MISSED = 12 };
    if (rank == 0)
        CHECK_IS(await_vote(world, 1, 1), 0);                 /* so that rank 2 alone is missing */
    if (rank == 2)
        CHECK_IS(ranks_await(GO, 2), 0);
    for (int k = 0; k < MISSED; k++) {
        int flag = 77;
        CHECK_IS(tutti_set_timeout(world, rank == 1 && k == 0 ? RANKS_LIFE_MS : 5), 0);
        CHECK_IS(tutti_comm_agree(world, &flag), -ETIMEDOUT);
        CHECK_IS(flag, 77);
        if (k == 0 && rank != 2) {
            CHECK(strstr(tutti_explain(world), "comm_agree on world") != NULL);
            CHECK(strstr(tutti_explain(world), "missing: rank 2\n") != NULL);
            CHECK(strstr(tutti_explain(world), "agree_test.c:") != NULL);
            ranks_count(HERE);                   /* nobody gives the next ones up before that */
            CHECK_IS(ranks_await(HERE, 2), 0);
        }
    }
    ranks_count(GO);
    CHECK_IS(tutti_set_timeout(world, RANKS_LIFE_MS), 0);
    int flag = 1;
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    CHECK_IS(flag, 1);
    CHECK_IS(tutti_barrier(world, NULL), 0);                  /* nothing of this broke the comm */
    return 0;
}

static void test_late(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_late), 0);
}

/* The last vote and the deadline at the same moment, again and again: one of the two is decided,
 * and the same for all. */
static int body_races_deadline(tutti_comm *world, int rank)
{
    enum { PLACES = 8 };
    uint64_t random = 1, aim = 1000000;
    int many = ranks_many(1000, 100), late = 0;
    for (int k = 0; k < many; k++) {
        CHECK_IS(tutti_set_timeout(world, RANKS_LIFE_MS), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_set_timeout(world, 1), 0);
        random = mixed(random + (uint64_t)k);
        int flag = word_of(rank, k) | 1;
        if (rank == k % 3)
            for (uint64_t end = clock_ns() + aim + random % 10000; clock_ns() < end;) { }
        int r = tutti_comm_agree(world, &flag);
        CHECK(r == 0 || r == -ETIMEDOUT);
        late += r < 0;
        aim += r < 0 ? -(uint64_t)3000 : 3000;  /* so that half of them come late, on any machine */
        page->bytes[k * PLACES + rank] = r == 0 ? 'y' : 'n';
    }
    CHECK_IS(tutti_set_timeout(world, RANKS_LIFE_MS), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int k = 0; k < many; k++)
        for (int p = 1; p < 3; p++)
            CHECK_IS(page->bytes[k * PLACES + p], page->bytes[k * PLACES]);
    if (rank == 0)
        printf("the deadline was first in %d of %d\n", late, many);
    return 0;
}

static void test_races_deadline(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_races_deadline), 0);
}

/* The same by hand: a clock that lets the other rank vote, and decide, when the deadline is over
 * and has not been proposed yet. */
struct slow_clock { tutti_comm *comm; uint64_t began, k; int late; };

static uint64_t slow_now(void *arg)
{
    struct slow_clock *c = arg;
    uint64_t now = clock_ns(), end = now + PATIENCE_S * UINT64_C(1000000000);
    bool voted = load_acquire64(&c->comm->watch.mine->vote[c->k & 1].number) == c->k;
    /* at the end of the sleep, or at the look behind it */
    if (!voted || now - c->began < 2000000 || ++c->late != 1 + (int)(c->k & 1))
        return now;
    ranks_say(GO, (uint32_t)c->k);
    const shared64 *word = &c->comm->watch.slot->decision[c->k % DECISIONS];
    while (((uint32_t)load_acquire64(word) >> 4) != c->k && clock_ns() < end)
        sched_yield();
    return clock_ns();
}

static int body_overtaken(tutti_comm *world, int rank)
{
    for (uint64_t k = 1; k <= 30; k++) {
        int flag = rank ? 6 : 3;
        struct slow_clock clock = { world, clock_ns(), k, 0 };
        struct wait_ways ways = wait_ways_kernel;
        ways.now = slow_now;
        ways.arg = &clock;
        CHECK_IS(tutti_set_timeout(world, rank ? RANKS_LIFE_MS : 2), 0);
        if (rank == 0)
            world->watch.ways = &ways;
        else
            CHECK_IS(ranks_await(GO, (uint32_t)k), 0);
        int r = tutti_comm_agree(world, &flag);
        world->watch.ways = &wait_ways_kernel;
        if (rank == 0)
            /* where the deadline was over in another place than that, it came first */
            ranks_say(GO, (uint32_t)k);
        CHECK(r == 0 || r == -ETIMEDOUT);
        CHECK_IS(flag, r == 0 ? 2 : rank ? 6 : 3);
        page->bytes[rank] = r == 0 ? 'y' : 'n';
        CHECK_IS(tutti_set_timeout(world, RANKS_LIFE_MS), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(page->bytes[1 - rank], page->bytes[rank]);
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    return 0;
}

static void test_overtaken(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_overtaken), 0);
}

/* A rank that was stopped after it had voted finds what was decided with its vote, however many
 * agreements the others have missed it in. */
static int body_kept(tutti_comm *world, int rank)
{
    int missed = (int)load_acquire32(&page->word[HERE]), flag = rank == 2 ? 6 : 3;
    pid_t slow;
    ranks_say(PID + rank, (uint32_t)getpid());
    CHECK_IS(ranks_await(PID + 2, 1), 0);
    slow = (pid_t)load_acquire32(&page->word[PID + 2]);
    if (rank == 0) {
        CHECK_IS(await_vote(world, 2, 1), 0);
        kill(slow, SIGSTOP);
        CHECK_IS(await_stop(slow), 0);
        ranks_say(GO, 1);
    }
    if (rank == 1)
        CHECK_IS(ranks_await(GO, 1), 0);
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    CHECK_IS(flag, 2);
    CHECK_IS(tutti_set_timeout(world, 3), 0);
    for (int k = 0; k < missed; k++)
        CHECK_IS(tutti_comm_agree(world, &flag), -ETIMEDOUT);
    if (rank == 0)
        kill(slow, SIGCONT);
    CHECK_IS(tutti_set_timeout(world, RANKS_LIFE_MS), 0);
    flag = 4 + rank;
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    CHECK_IS(flag, 4);
    return 0;
}

static int missed_by_the_slow;
static int body_slow(tutti_comm *world, int rank)
{
    ranks_say(HERE, (uint32_t)missed_by_the_slow);
    return body_kept(world, rank);
}

static void test_kept(void **state)
{
    (void)state;
    static const int missed[] = { 1, 7, 8, 9, 15, 16, 17, 30 };
    for (size_t i = 0; i < sizeof missed / sizeof missed[0]; i++) {
        missed_by_the_slow = missed[i];
        assert_int_equal(ranks_run(3, body_slow, 0), 0);
    }
}

/* ---- different things ---- */

static int body_mismatch(tutti_comm *world, int rank)
{
    tutti_comm *c = NULL;
    int flag = 1, odd = rank == 1;
    CHECK_IS(odd ? tutti_comm_shrink(world, &c) : tutti_comm_agree(world, &flag), -EPROTO);
    CHECK(c == NULL);
    const char *report = tutti_explain(world);
    CHECK(strstr(report, "the ranks called different things on world") != NULL);
    /* Whoever has come by then is in the table of what was called: this rank and the one it
     * differs from. */
    CHECK(strstr(report, "rank 1: comm_shrink at ") != NULL);
    CHECK(strstr(report, ": comm_agree at ") != NULL);
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    CHECK_IS(tutti_comm_shrink(world, &c), 0);
    CHECK_IS(tutti_size(c), tutti_size(world));
    CHECK_IS(tutti_comm_free(c), 0);
    return 0;
}

static void test_mismatch(void **state)
{
    (void)state;
    for (int i = 0; i < ranks_many(20, 5); i++)
        assert_int_equal(ranks_run_either(3, body_mismatch), 0);
}

/* ---- interrupts ---- */

static int stop_asked(void *arg)
{
    (void)arg;
    return load_acquire32(&page->word[GO]) != 0;
}

static const char *named_job;
static int body_interrupted(tutti_comm *none, int rank)
{
    (void)none;
    tutti_comm *world = NULL;
    int size = 3, flag = 1;
    const tutti_options o = {
        .job = named_job, .rank = rank, .size = size, .interrupt = rank == 1 ? stop_asked : NULL
    };
    CHECK_IS(tutti_init(&world, &o), 0);
    if (rank == 0) {
        CHECK_IS(await_vote(world, 1, 1), 0);
        CHECK_IS(await_vote(world, 2, 1), 0);
        ranks_say(GO, 1);
        CHECK_IS(ranks_await(HERE, 1), 0);                  /* it has been told; we have not come */
    }
    int r = tutti_comm_agree(world, &flag);
    CHECK_IS(r, rank == 1 ? -EINTR : -ECANCELED);
    CHECK(strstr(tutti_explain(world), "rank 1 was interrupted in comm_agree") != NULL);
    if (rank == 1) {
        ranks_say(GO, 0);
        ranks_say(HERE, 1);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);                /* whole */
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    CHECK_IS(tutti_finalize(world), 0);
    return 0;
}

static int alone_body(tutti_comm *world, int rank)
{
    (void)world;
    return body_interrupted(NULL, rank);
}

static void test_interrupted(void **state)
{
    (void)state;
    named_job = ranks_job();
    assert_int_equal(ranks_run(3, alone_body, 0), 0);
}

/* ---- words for people ---- */

/* In the report of another wait an agreement is seen as one, with its place. */
static int body_seen(tutti_comm *world, int rank)
{
    int flag = 1;
    if (rank == 1) {
        CHECK_IS(tutti_comm_agree(world, &flag), 0);
        return 0;
    }
    if (rank == 0) {
        CHECK_IS(await_vote(world, 1, 1), 0);
        CHECK_IS(tutti_barrier(world, &(tutti_call){ .timeout_ms = 30 }), -ETIMEDOUT);
        CHECK(strstr(tutti_explain(world), "in comm_agree at ") != NULL);
        CHECK(strstr(tutti_explain(world), "agree_test.c:") != NULL);
    } else
        CHECK_IS(tutti_barrier(world, NULL), -ETIMEDOUT);
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    return 0;
}

static void test_seen(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_seen), 0);
}

/* A wait that has become old says so, and goes on. */
static int body_warned(tutti_comm *none, int rank, struct team *team)
{
    (void)none;
    tutti_comm *world = NULL;
    int flag = 1;
    const tutti_options o = {
        .job = named_job, .rank = rank, .size = 3, .warn_ms = rank == 0 ? 20 : -1
    };
    CHECK_IS(tutti_init(&world, &o), 0);
    if (rank == 0)
        CHECK_IS(await_vote(world, 1, 1), 0);
    if (rank == 2)
        CHECK_IS(team_hear(team, 2, 1), 0);
    CHECK_IS(tutti_comm_agree(world, &flag), 0);
    CHECK_IS(tutti_finalize(world), 0);
    return 0;
}

static void test_warned(void **state)
{
    (void)state;
    named_job = ranks_job();
    struct team *team = team_start_named(3, body_warned, true);
    const char *said = "";
    for (uint64_t end = clock_ns() + PATIENCE_S * UINT64_C(1000000000);
         clock_ns() < end && !strstr(said, "missing"); sched_yield())
        said = team_stderr(team);
    team_tell(team, 2, 1);
    assert_int_equal(team_end(team), 0);
    said = team_stderr(team);
    assert_non_null(strstr(said, "tutti: rank 0 has waited "));
    assert_non_null(strstr(said, " in comm_agree on world\n  missing: rank 2\n"));
    for (int r = 0; r < 3; r++)
        assert_int_equal(team->status[r], 0);
    team_free(team);
}

/* ---- numbers wrap ---- */

static int body_wraps(tutti_comm *world, int rank)
{
    /* As if there had been so many: numbers in the decision have 28 bits, a futex sleeps on 32 of
     * a vote's. */
    static const uint64_t from[] = { (UINT64_C(1) << 28) - 20, (UINT64_C(1) << 32) - 20 };
    for (int i = 0; i < 2; i++) {
        tutti_comm *c;
        CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
        if (rank == 0)
            for (uint64_t k = from[i] - DECISIONS + 1; k <= from[i]; k++)
                store_release64(&c->watch.slot->decision[k % DECISIONS],
                                (uint64_t)(uint32_t)(k << 4) | 1);
        c->agreements = from[i];
        CHECK_IS(tutti_barrier(c, NULL), 0);
        for (int k = 0; k < 40; k++) {
            int flag = rank == k % 3 ? k : -1;
            CHECK_IS(tutti_comm_agree(c, &flag), 0);
            CHECK_IS(flag, k);
        }
        CHECK_IS(tutti_comm_free(c), 0);
    }
    return 0;
}

static void test_wraps(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_wraps), 0);
}

/* ---- a stop of the waiter ---- */

static struct { shared32 reading; uint32_t stopped_at; uint64_t away_ns; } waiter;

/* The waiter was stopped for longer than its deadline just before the reading of that number. */
static uint64_t now_after_stop(void *arg)
{
    if (fetch_add32(&waiter.reading, 1) + 1 == waiter.stopped_at)
        waiter.away_ns += UINT64_C(3000000000);
    return wait_ways_kernel.now(arg) + waiter.away_ns;
}

/* The peer comes after the stop, and in time if the stop is not counted. */
static int body_stopped(tutti_comm *world, int rank)
{
    const struct wait_ways *usual = world->watch.ways;
    struct wait_ways ways = *usual;
    int flag = 1;
    ways.now = now_after_stop;
    for (uint32_t k = 1; k <= 6; k++) {
        if (rank == 0)
            store_release32(&waiter.reading, 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (rank == 0) {
            waiter.stopped_at = k;
            world->watch.ways = &ways;
            tutti_set_timeout(world, 2000);
        }
        for (uint64_t end = clock_ns() + PATIENCE_S * UINT64_C(1000000000);
             rank == 1 && load_acquire32(&waiter.reading) <= k; sched_yield())
            if (clock_ns() > end)
                return -ETIMEDOUT;
        CHECK_IS(tutti_comm_agree(world, &flag), 0);
        world->watch.ways = usual;
        if (rank == 0)
            tutti_set_timeout(world, -1);
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    return 0;
}

static void test_stopped(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_threads(2, body_stopped), 0);
}

int main(void)
{
    static const struct CMUnitTest threads[] = {
        cmocka_unit_test(test_flags), cmocka_unit_test(test_broken),
        cmocka_unit_test(test_beside_work), cmocka_unit_test(test_late),
        cmocka_unit_test(test_races_deadline), cmocka_unit_test(test_overtaken),
        cmocka_unit_test(test_mismatch), cmocka_unit_test(test_wraps), cmocka_unit_test(test_seen),
        cmocka_unit_test(test_stopped),
    };
    static const struct CMUnitTest processes[] = {
        cmocka_unit_test(test_dead_before), cmocka_unit_test(test_dead_after_voting),
        cmocka_unit_test(test_ends_while_missed), cmocka_unit_test(test_kept),
        cmocka_unit_test(test_interrupted), cmocka_unit_test(test_warned),
    };
    int failed = cmocka_run_group_tests_name("agreements", threads, NULL, NULL);
#if !defined(TUTTI_TSAN)
    failed += cmocka_run_group_tests_name("agreements and deaths", processes, NULL, NULL);
#else
    (void)processes;
#endif
    return failed;
}
