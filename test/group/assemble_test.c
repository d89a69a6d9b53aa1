/* ctest: timeout=120 labels=faults needs=robust */
/* Each of the ways by which a waiting rank learns of the end, alone: a sleep here has slices of
 * half a minute, so that no slice can stand in for a wake that is missing. */
#include "group/assemble.h"

#include "joiners.h"
#include "group/seat.h"
#include "os/futex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
enum { SIZE = 4 };

static struct arena arena;
static char why_room[512];
static struct text why;
static pid_t child[SIZE];

static int setup(void **state)
{
    (void)state;
    why = TEXT_IN(why_room);
    text_clear(&why);
    memset(child, 0, sizeof child);
    return arena_create(&arena,
                        &(struct arena_plan){ .size = SIZE, .span_bytes = UINT64_C(16) << 20 },
                        &why);
}

static void end(int p)
{
    kill(child[p], SIGKILL);
    waitpid(child[p], NULL, 0);
    child[p] = 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int p = 0; p < SIZE; p++)
        if (child[p])
            end(p);
    arena_detach(&arena);
    return 0;
}

static struct assembly gather_of(uint32_t rank)
{
    return (struct assembly){
        .arena = &arena, .rank = rank, .timeout_ms = -1,
        .end_ns = UINT64_MAX, .slice_ns = 30 * SECOND
    };
}

/* A rank in a child: it sits, and then waits (exit status: 0 done, 1 dead rank, 2 late, 3 its sleep
 * ended by the slice) or is idle. */
static void rank(int p, bool waits)
{
    child[p] = fork();
    if (child[p] == 0) {
        struct seat_card card;
        struct assembly g = gather_of((uint32_t)p);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        seat_card(&card, 0);
        if (seat_take(&arena, (uint32_t)p, &card, &why) != 0)
            _exit(10);
        assemble_seated(&g);
        while (!waits)
            pause();
        uint64_t began = clock_ns();
        int r = ASSEMBLE_GOING;
        while (r == ASSEMBLE_GOING) {
            g.slice_ns = 30 * SECOND;
            r = assemble_wait(&g);
        }
        if (clock_ns() - began > 20 * SECOND)
            _exit(3);
        _exit(r == ASSEMBLE_DONE ? 0 : r == -EOWNERDEAD ? 1 : 2);
    }
    while (load_acquire32(&arena.seats[p].state) != SEAT_JOINED)
        sched_yield();
}

static void until_asleep(int p)
{
    for (int asleep = 0; asleep < 3;) {              /* a rank may be seen asleep once on its way */
        asleep = strcmp(process_state(&arena.seats[p].id, NULL), "sleeping") == 0 ? asleep + 1 : 0;
        sched_yield();
    }
}

static int status_of(int p)
{
    int status;
    waitpid(child[p], &status, 0);
    child[p] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* The mark alone tells: no system call asks after the process here. */
static void test_mark(void **state)
{
    (void)state;
    struct assembly g = gather_of(0);
    rank(1, false);
    assert_int_equal(assemble_look(&g), ASSEMBLE_GOING);
    end(1);
    assert_int_equal(assemble_look(&g), -EOWNERDEAD);
    assemble_explain(&g, -EOWNERDEAD, &why);
    assert_non_null(strstr(why_room, "rank 1 (pid "));
}

static void test_left(void **state)
{
    (void)state;
    struct assembly g = gather_of(0);
    rank(1, false);
    store_release32(&arena.seats[1].state, SEAT_LEFT);
    assert_int_equal(assemble_look(&g), -EOWNERDEAD);
    assemble_explain(&g, -EOWNERDEAD, &why);
    assert_non_null(strstr(why_room, " left while the ranks were joining"));
}

/* The kernel's wake reaches a sleeper on the mark of a rank that came after it fell asleep. */
static void test_mark_wakes_a_sleeper(void **state)
{
    (void)state;
    rank(0, true);
    until_asleep(0);
    rank(2, false);
    end(2);
    assert_int_equal(status_of(0), 1);
}

/* Whoever finds the failure wakes the rest, who sleep on words that did not change. */
static void test_failure_wakes_all(void **state)
{
    (void)state;
    struct assembly g = gather_of(3);
    for (int p = 0; p < 3; p++)
        rank(p, true);
    for (int p = 0; p < 3; p++)
        until_asleep(p);
    g.end_ns = 1;
    assert_int_equal(assemble_look(&g), -ETIMEDOUT);
    for (int p = 0; p < 3; p++)
        assert_int_equal(status_of(p), 2);
}

static void test_completion_wakes_all(void **state)
{
    (void)state;
    for (int p = 0; p < 3; p++)
        rank(p, true);
    for (int p = 0; p < 3; p++)
        until_asleep(p);
    rank(3, false);                             /* it stays: its end would wake the others, too */
    for (int p = 0; p < 3; p++)
        assert_int_equal(status_of(p), 0);
    assert_true(load_acquire32(&arena.join->cpus) >= 1);
    /* where all look for it, and nobody need make it */
    assert_int_equal(load_acquire32(&arena.join->reached), 1);
    assert_int_equal(load_acquire32(&arena_slot(&arena, 0)->state), SLOT_USED);
}

/* The kernel wakes one sleeper of a mark. That one passes it on, so that a second one, who is no
 * joiner, wakes too. */
static void test_passes_on(void **state)
{
    (void)state;
    rank(1, false);
    rank(0, true);
    until_asleep(0);
    shared32 *word = process_mark_word(&arena.seats[1].mark);
    uint32_t seen = load_acquire32(word);
    pid_t second = fork();
    if (second == 0) {
        uint64_t began = clock_ns();
        while (load_acquire32(word) == seen)
            futex_wait(word, seen, 30 * SECOND);
        _exit(clock_ns() - began > 20 * SECOND);
    }
    struct process_id id = { .pid = second, .tid = second };
    while (strcmp(process_state(&id, NULL), "sleeping") != 0)
        sched_yield();
    end(1);
    int status;
    waitpid(second, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(status_of(0), 1);
}

/* Of 40 ranks most are of another pid namespace, and which of them is asked about by turns falls so
 * that nobody of its own has that turn. Rank 30 still finds the one that it alone can see. */
static void test_own_namespace(void **state)
{
    (void)state;
    enum { MANY = 40, ME = 30, GONE = 37 };
    struct arena many;
    assert_int_equal(arena_create(&many,
                                  &(struct arena_plan){ .size = MANY,
                                                        .span_bytes = UINT64_C(16) << 20 },
                                  &why),
                     0);
    struct process_id self;
    process_self(&self);
    pid_t pid = fork();
    if (pid == 0)
        _exit(process_self(&many.seats[GONE].id) != 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int p = 0; p < MANY; p++) {
        if (p != GONE)
            many.seats[p].id = self;
        if (p != GONE && p != ME)
            many.seats[p].id.pid_namespace++;
        store_release32(&many.seats[p].state, SEAT_JOINED);
    }
    struct assembly g = gather_of(ME);
    g.arena = &many;
    int r = ASSEMBLE_GOING;
    for (int i = 0; i < MANY && r == ASSEMBLE_GOING; i++) {
        store_release32(&many.join->probed, 0);
        g.slice_ns = 1;
        r = assemble_wait(&g);
    }
    assert_int_equal(r, -EOWNERDEAD);
    assert_int_equal(load_acquire32(&many.join->failed_rank), GONE + 1);
    arena_detach(&many);
}

/* Completion and failure exclude each other, whoever is first. */
static void test_one_end(void **state)
{
    (void)state;
    struct assembly g = gather_of(0);
    for (int p = 0; p < SIZE; p++)
        rank(p, false);
    /* they sit one after another, and count themselves a moment later */
    while (assemble_look(&g) == ASSEMBLE_GOING)
        sched_yield();
    assert_int_equal(assemble_look(&g), ASSEMBLE_DONE);
    g.end_ns = 1;
    end(1);
    /* what comes after is no failure of the joining */
    assert_int_equal(assemble_look(&g), ASSEMBLE_DONE);
    assert_int_equal(assemble_fail(&g, 2), ASSEMBLE_DONE);
}

static void test_first_reason_stands(void **state)
{
    (void)state;
    struct assembly g = gather_of(0);
    assert_int_equal(assemble_fail(&g, 2), -EOWNERDEAD);
    assert_int_equal(assemble_fail(&g, 1), -EOWNERDEAD);
    g.end_ns = 1;
    assert_int_equal(assemble_look(&g), -EOWNERDEAD);
    assemble_explain(&g, -EOWNERDEAD, &why);
    assert_non_null(strstr(why_room, "rank 2 "));
}

/* CPUs of all: the union of the masks, cut by the smallest quota. */
static void test_cpus(void **state)
{
    (void)state;
    static const struct { uint64_t mask[SIZE]; uint32_t quota[SIZE], cpus; } rows[] = {
        { { 1, 1, 1, 1 }, { 0, 0, 0, 0 }, 1 },
        { { 1, 2, 4, 8 }, { 0, 0, 0, 0 }, 4 },
        { { 15, 15, 3, 1 }, { 0, 3, 2, 0 }, 2 },
        { { 1, 1, 1, 1 }, { 8, 8, 8, 8 }, 1 },
        { { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct assembly g = gather_of(0);
        for (int p = 0; p < SIZE; p++) {
            arena.seats[p].cpu_mask[0] = rows[i].mask[p];
            arena.seats[p].quota = rows[i].quota[p];
            store_release32(&arena.seats[p].state, SEAT_JOINED);
        }
        store_release32(&arena.join->joined, SIZE - 1);
        store_release32(&arena.join->state, JOIN_GATHERING);
        assemble_seated(&g);
        assert_int_equal(load_acquire32(&arena.join->state), JOIN_COMPLETE);
        assert_int_equal(load_acquire32(&arena.join->cpus), rows[i].cpus);
    }
}

int main(void)
{
#define OF(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        OF(test_mark), OF(test_left), OF(test_mark_wakes_a_sleeper), OF(test_failure_wakes_all),
        OF(test_completion_wakes_all), OF(test_passes_on), OF(test_one_end),
        OF(test_first_reason_stands), OF(test_cpus), OF(test_own_namespace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
