/* ctest: timeout=300 labels=faults needs=robust */
/* Ranks that die while the world comes together: everybody who had come hears it at once, with
 * the rank's name; nobody joins a world that another was refused; and the next job of the same
 * name starts. */
#include "join_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void expect_world(int size)
{
    for (int p = 0; p < size; p++)
        start_rank(p, p, size);
    for (int p = 0; p < size; p++) {
        struct joiners_report *r = joiners_wait(&joiners, p);
        assert_non_null(r);
        if (r->error)
            print_error("rank %d of the next job: %d %s\n", p, r->error, r->why);
        assert_int_equal(r->error, 0);
        assert_int_equal(r->birth, joiners.report[0].birth);
    }
    joiners_let_go(&joiners);
}

/* All but the last rank sit; then one of them dies. The first to start is the host. */
static void die_while_sitting(int size, int victim)
{
    char who[64];
    for (int p = 0; p < size - 1; p++) {
        start_rank(p, p, size);
        assert_true(joiners_sits(&joiners, p, p));
    }
    snprintf(who, sizeof who, "rank %d (pid %d, ", victim, (int)joiners.pid[victim]);
    uint64_t killed = clock_ns();
    joiners_kill(&joiners, victim);
    for (int p = 0; p < size - 1; p++) {
        if (p == victim)
            continue;
        struct joiners_report *r = joiners_wait(&joiners, p);
        assert_non_null(r);
        if (r->error != -EOWNERDEAD || !strstr(r->why, who)
            || !strstr(r->why, "died while the ranks were joining"))
            print_error("rank %d: %d %s\n", p, r->error, r->why);
        assert_int_equal(r->error, -EOWNERDEAD);
        assert_non_null(strstr(r->why, who));
        /* by the death and not by the deadline of 60 s */
        assert_true(r->ended_ns - killed < UINT64_C(10000000000));
    }
    joiners_let_go(&joiners);
}

static void test_death_while_sitting(void **state)
{
    (void)state;
    for (int size = 3; size <= 5; size++)
        for (int victim = 0; victim < size - 1; victim++) {
            die_while_sitting(size, victim);
            expect_world(size);
        }
}

/* More ranks than one sleep watches: who sees the mark tells the rest. */
static void test_death_among_many(void **state)
{
    (void)state;
    die_while_sitting(140, 70);
    expect_world(2);
}

static void test_two_deaths(void **state)
{
    (void)state;
    for (int p = 0; p < 4; p++) {
        start_rank(p, p, 5);
        assert_true(joiners_sits(&joiners, p, p));
    }
    kill(joiners.pid[0], SIGKILL);
    kill(joiners.pid[2], SIGKILL);
    struct joiners_report *a = joiners_wait(&joiners, 1), *b = joiners_wait(&joiners, 3);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->error, -EOWNERDEAD);
    assert_int_equal(b->error, -EOWNERDEAD);
    assert_string_equal(a->why, b->why);             /* they agree on which of the two it was */
}

/* All but the last rank of `size` sit, in an arena that they inherited, so that no connection tells
 * of an end. The first five to sit are stopped; then the victims die and leave no mark. The others
 * know it soon, all the same one; the stopped ones when they go on. */
static void die_without_a_mark(int size, const int victims[], int n)
{
    enum { STOPPED = 5 };
    struct arena arena;
    char room[256];
    struct text why = TEXT_IN(room);
    struct join_request r = joiners_request(job_name, 0, size);
    const struct joiners_report *first = NULL;
    assert_int_equal(arena_create(&arena, &r.plan, &why), 0);
    r.fd = arena.fd;
    joiners.unmarked = true;
    for (r.rank = 0; r.rank < size - 1; r.rank++) {
        joiners_start(&joiners, r.rank, &r);
        for (shared32 *joined = &arena.join->joined; load_acquire32(joined) <= (uint32_t)r.rank;)
            sched_yield();
    }
    for (int p = 0; p < STOPPED; p++)
        kill(joiners.pid[p], SIGSTOP);
    uint64_t killed = clock_ns();
    for (int i = 0; i < n; i++)
        kill(joiners.pid[victims[i]], SIGKILL);
    for (int p = STOPPED; p < size - 1; p++) {
        bool victim = false;
        for (int i = 0; i < n; i++)
            victim |= victims[i] == p;
        if (victim)
            continue;
        struct joiners_report *report = joiners_wait(&joiners, p);
        assert_non_null(report);
        first = first ? first : report;
        assert_int_equal(report->error, -EOWNERDEAD);
        assert_string_equal(report->why, first->why);
        assert_non_null(strstr(report->why, "died while the ranks were joining"));
        assert_true(report->ended_ns - killed < UINT64_C(10000000000));
    }
    for (int p = 0; p < STOPPED; p++)
        kill(joiners.pid[p], SIGCONT);
    bool named = false;
    for (int i = 0; i < n; i++) {
        char who[64];
        snprintf(who, sizeof who, "rank %d (pid %d, ", victims[i], (int)joiners.pid[victims[i]]);
        named |= first && strstr(first->why, who);
    }
    assert_true(named);
    joiners_let_go(&joiners);
    arena_detach(&arena);
    joiners.unmarked = false;
}

static void test_deaths_without_a_mark(void **state)
{
    (void)state;
    static const int one[] = { 7 }, several[] = { 20, 21, 37 }, far[] = { 140 };
    die_without_a_mark(9, one, 1);
    die_without_a_mark(40, several, 3);
    die_without_a_mark(JOINERS_MOST, far, 1);
}

/* A stopped rank is not a dead one: the others wait for it. */
static void test_stopped_is_not_dead(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++) {
        start_rank(p, p, 3);
        assert_true(joiners_sits(&joiners, p, p));
    }
    kill(joiners.pid[1], SIGSTOP);
    start_rank(2, 2, 3);
    assert_int_equal(joiners_wait(&joiners, 0)->error, 0);
    assert_int_equal(joiners_wait(&joiners, 2)->error, 0);
    kill(joiners.pid[1], SIGCONT);
    assert_int_equal(joiners_wait(&joiners, 1)->error, 0);
}

struct tally { int joined, died, late, again; };

/* One survivor's report, in a world from which `victim` was taken at some moment. */
static void judge(const struct joiners_report *r, int victim, pid_t pid, struct tally *tally)
{
    char by_rank[32], by_pid[64];
    assert_non_null(r);
    snprintf(by_rank, sizeof by_rank, "rank %d ", victim);
    snprintf(by_pid, sizeof by_pid, "(pid %d)", (int)pid);
    if (r->error == 0)
        tally->joined++;
    else if (r->error == -EOWNERDEAD) {
        if (!strstr(r->why, by_rank) && !strstr(r->why, by_pid))
            print_error("names the wrong one, not rank %d: %s\n", victim, r->why);
        assert_true(strstr(r->why, by_rank) || strstr(r->why, by_pid));
        tally->died++;
    } else {
        if (r->error != -ETIMEDOUT)
            print_error("%d %s\n", r->error, r->why);
        assert_int_equal(r->error, -ETIMEDOUT);
        tally->late++;
    }
}

/* A rank killed at a random moment of joining, within `window` ns of its start, by name or by an
   inherited arena. By name a successor comes for its rank at once: if the victim had not sat it
   completes the world, else it is too late for it. true: the world came together before. */
static bool kill_at_random(int size, bool by_name, uint64_t window, unsigned seed,
                           struct tally *sum)
{
    struct tally tally = { 0 };
    struct arena arena = { .fd = -1 };
    char room[256];
    struct text why = TEXT_IN(room);
    int victim = rand_r(&seed) % size, first = rand_r(&seed) % size;
    bool again = false;
    uint64_t delay = 1 + (uint64_t)rand_r(&seed) % window;
    struct join_request r = joiners_request(job_name, 0, size);
    r.timeout_ms = by_name ? 700 : 300;
    if (!by_name) {
        assert_int_equal(arena_create(&arena, &r.plan, &why), 0);
        r.fd = arena.fd;
    }
    for (int i = 0; i < size; i++) {
        r.rank = (first + i) % size;
        joiners_start_mortal(&joiners, r.rank, &r, r.rank == victim ? delay : 0);
    }
    pid_t pid = joiners.pid[victim];
    int status = joiners_reap(&joiners, victim);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (by_name) {
        r.rank = victim;
        r.timeout_ms = 300;
        joiners_start(&joiners, victim, &r);
        again = joiners_wait(&joiners, victim)->error == 0;
    }
    for (int p = 0; p < size; p++)
        if (p != victim)
            judge(joiners_wait(&joiners, p), victim, pid, &tally);
    assert_true(tally.joined == 0 || tally.joined == size - 1);          /* all or none */
    sum->joined += tally.joined != 0;
    sum->again += again;
    sum->died += tally.died != 0;
    sum->late += tally.late != 0;
    joiners_let_go(&joiners);
    arena_detach(&arena);
    return tally.joined != 0 && !again;
}

/* How long joining takes is the machine's business, so the window follows it: half as long after a
   world that came together before the kill, twice as long after a kill that came first. */
static void random_kills(bool by_name, int times)
{
    enum { SHORTEST = 1000, LONGEST = 100000000 };
    struct tally sum = { 0 };
    unsigned seed = (unsigned)clock_ns();
    uint64_t window = 250000;
    int early = 0;
    print_message("seed %u\n", seed);
    for (int i = 0; i < times; i++) {
        if (kill_at_random(2 + i % 3, by_name, window, seed + (unsigned)i, &sum)) {
            window = window / 2 > SHORTEST ? window / 2 : SHORTEST;
        } else {
            window = window * 2 < LONGEST ? window * 2 : LONGEST;
            early++;
        }
        if (by_name)
            expect_world(2 + i % 3);
    }
    print_message("of %d: %d worlds came together (%d with a successor), %d met the death, %d the "
                  "deadline\n",
                  times, sum.joined, sum.again, sum.died, sum.late);
    assert_true(early > 0 && early < times);
}

static void test_random_kills_by_name(void **state)
{
    (void)state;
    random_kills(true, joiners_prove(100, 5000));
}

static void test_random_kills_inherited(void **state)
{
    (void)state;
    random_kills(false, joiners_prove(60, 5000));
}

int main(void)
{
#define OF(test) cmocka_unit_test_setup_teardown(test, join_setup, join_teardown)
    const struct CMUnitTest tests[] = {
        OF(test_death_while_sitting), OF(test_death_among_many), OF(test_two_deaths),
        OF(test_deaths_without_a_mark),
        OF(test_stopped_is_not_dead), OF(test_random_kills_by_name),
        OF(test_random_kills_inherited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
