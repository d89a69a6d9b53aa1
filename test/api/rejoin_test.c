/* ctest: timeout=200 labels=faults */
/* Ranks that come again: after a deadline, after a world, in the same process or in a new one
 * beside others that were there before, late, or twice at a time. Those that are there meet, under
 * a name and under a path, however often each has tried. */
#include "base/clock.h"
#include "group/comm.h"
#include "os/futex.h"
#include "support/ranks.h"
#include "support/team.h"
#include "support/scratch.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 3, SLOTS = 8, HASTY_MS = 40, PATIENT_MS = 60000, WORLDS = 40, PATIENCE_S = 60 };

/* What a process tells, and is told. */
struct told {
    shared32 tries, worlds;     /* inits that have ended by the deadline; worlds it has been in */
    shared32 done;
    int error;                        /* the last one's */
    uint64_t birth;                   /* of its last world */
    char report[1024];
};
static struct shared { shared32 go, ended; struct told slot[SLOTS]; } *shared;
static pid_t pid[SLOTS];
static char job[64], path[64], directory[40];

/* worlds: in how many it is, one after the other; -1: until one is broken. tries: so often it
 * tries, in vain; 0: as long as its time is over. */
struct course { int rank, join_ms, worlds; uint32_t tries; };

static void say(shared32 *word, uint32_t value)
{
    store_release32(word, value);
    futex_wake(word, INT_MAX);
}

static bool await(shared32 *word, uint32_t value)
{
    for (uint64_t end = clock_ns() + PATIENCE_S * UINT64_C(1000000000);
         load_acquire32(word) < value;) {
        uint32_t seen = load_acquire32(word);
        if (clock_ns() > end)
            return false;
        if (seen < value)
            futex_wait(word, seen, 20000000);
    }
    return true;
}

/* In a rank: comes until it is in a world or is refused. */
static tutti_comm *come(struct told *s, const struct course *c)
{
    tutti_comm *world = NULL;
    const tutti_options o = {
        .job = job, .rank = c->rank, .size = SIZE, .join_timeout_ms = c->join_ms
    };
    do {
        s->error = tutti_init(&world, &o);
        snprintf(s->report, sizeof s->report, "%s", s->error ? tutti_explain(NULL) : "");
        if (s->error == -ETIMEDOUT)
            say(&s->tries, load_acquire32(&s->tries) + 1);
    } while (s->error == -ETIMEDOUT && c->join_ms == HASTY_MS
             && load_acquire32(&s->tries) != c->tries);
    if (world)
        s->birth = world->world->arena.header->birth;
    return world;
}

static int told_wrong(struct told *s, const char *what, int error, tutti_comm *world)
{
    snprintf(s->report, sizeof s->report, "%s: %d %s", what, error, tutti_explain(world));
    return 1;
}

static int run(struct told *s, const struct course *c)
{
    for (int i = 0; i != c->worlds; i++) {
        tutti_comm *world = come(s, c);
        if (!world)
            return 1;
        int sum = 1, error = tutti_all_reduce(&sum, &sum, 1, TUTTI_I32, TUTTI_SUM, world, NULL);
        if (error || sum != SIZE)
            return told_wrong(s, "all_reduce", error, world);
        say(&s->worlds, load_acquire32(&s->worlds) + 1);
        if (c->worlds < 0 || i + 1 == c->worlds) {
            if (c->worlds > 0)
                await(&shared->go, 1);
            else
                while ((error = tutti_barrier(world, NULL)) == 0) { }
            if (error != (c->worlds > 0 ? 0 : -EOWNERDEAD))
                return told_wrong(s, "barrier", error, world);
        }
        if ((error = tutti_finalize(world)) != 0)
            return told_wrong(s, "finalize", error, world);
    }
    return 0;
}

static void start(int slot, struct course c)
{
    struct told *s = &shared->slot[slot];
    memset((void *)s, 0, sizeof *s);
    fflush(NULL);
    pid[slot] = fork();
    assert_true(pid[slot] >= 0);
    if (pid[slot] == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int r = run(s, &c);
        say(&s->done, 1);
        fetch_add32(&shared->ended, 1);
        futex_wake(&shared->ended, INT_MAX);
        _exit(r);
    }
}

static int end(int slot)
{
    int status;
    assert_int_equal(waitpid(pid[slot], &status, 0), pid[slot]);
    pid[slot] = 0;
    return status;
}

static void expect_refused(int slot, int error, const char *part)
{
    struct told *s = &shared->slot[slot];
    assert_true(await(&s->done, 1));
    end(slot);
    if (s->error != error || !strstr(s->report, part))
        print_error("%d: %s\n", s->error, s->report);
    assert_int_equal(s->error, error);
    assert_non_null(strstr(s->report, part));
}

/* The ranks in these slots are in a world, the same. */
static void expect_world(const int slots[SIZE], uint32_t nth)
{
    for (int i = 0; i < SIZE; i++) {
        struct told *s = &shared->slot[slots[i]];
        if (!await(&s->worlds, nth))
            fail_msg("slot %d is not in world %u: ended %u, %d %s", slots[i], nth,
                     load_acquire32(&s->done), s->error, s->report);
        assert_true(s->birth == shared->slot[slots[0]].birth);
    }
}

static void let_go(const int slots[SIZE])
{
    say(&shared->go, 1);
    for (int i = 0; i < SIZE; i++)
        assert_int_equal(end(slots[i]), 0);
}

static void by_name(void)
{
    snprintf(job, sizeof job, "%s", ranks_job());
    unsetenv("TUTTI_MEET");
    store_release32(&shared->go, 0);
}

static void by_path(void)
{
    by_name();
    assert_int_equal(setenv("TUTTI_MEET", path, 1), 0);
}

static void (*const ways[])(void) = { by_name, by_path };
enum { WAYS = sizeof ways / sizeof ways[0] };

/* ---- after a deadline ---- */

/* Each has tried another number of times when the last one comes, and goes on trying. */
static void test_retries(void **state)
{
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        ways[w]();
        start(0, (struct course){ 0, HASTY_MS, 1, 0 });
        assert_true(await(&shared->slot[0].tries, 2));
        assert_non_null(strstr(shared->slot[0].report, "did not come"));
        start(1, (struct course){ 1, HASTY_MS, 1, 0 });
        assert_true(await(&shared->slot[1].tries, 2));
        start(2, (struct course){ 2, PATIENT_MS, 1, 0 });
        expect_world((const int[]){ 0, 1, 2 }, 1);
        assert_true(load_acquire32(&shared->slot[0].tries)
                    > load_acquire32(&shared->slot[1].tries));
        assert_int_equal(load_acquire32(&shared->slot[2].tries), 0);
        let_go((const int[]){ 0, 1, 2 });
    }
}

/* A rank that waits keeps its own deadline while another gives up again and again, and for good;
 * that one's next process meets it. */
static void test_patient(void **state)
{
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        ways[w]();
        start(0, (struct course){ 0, HASTY_MS, 1, 5 });
        start(1, (struct course){ 1, PATIENT_MS, 1, 0 });
        assert_true(await(&shared->slot[0].tries, 5));
        expect_refused(0, -ETIMEDOUT, "did not come");
        assert_int_equal(load_acquire32(&shared->slot[1].done)
                             + load_acquire32(&shared->slot[1].tries),
                         0);
        start(2, (struct course){ 2, PATIENT_MS, 1, 0 });
        start(0, (struct course){ 0, HASTY_MS, 1, 0 });
        expect_world((const int[]){ 0, 1, 2 }, 1);
        let_go((const int[]){ 0, 1, 2 });
    }
}

/* ---- in a new process ---- */

/* One rank is killed in a world; the others leave it and come again, the new one first or last;
 * five times. */
static void test_restart(void **state)
{
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        ways[w]();
        for (int r = 0; r < SIZE; r++)
            start(r, (struct course){ r, PATIENT_MS, -1, 0 });
        for (int i = 1; i <= 5; i++) {
            int victim = i % SIZE;
            for (int r = 0; r < SIZE; r++)
                assert_true(await(&shared->slot[r].worlds, 1));
            uint64_t birth = shared->slot[victim].birth;
            for (int r = 0; r < SIZE; r++)
                store_release32(&shared->slot[r].worlds, 0);
            kill(pid[victim], SIGKILL);
            end(victim);
            start(victim, (struct course){ victim, PATIENT_MS, -1, 0 });
            expect_world((const int[]){ 0, 1, 2 }, 1);
            assert_true(shared->slot[0].birth != birth);
        }
        for (int r = 0; r < SIZE; r++) {
            kill(pid[r], SIGKILL);
            end(r);
        }
    }
}

/* ---- one world after the other ---- */

static void test_worlds(void **state)
{
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        ways[w]();
        for (int r = 0; r < SIZE; r++)
            start(r, (struct course){ r, PATIENT_MS, WORLDS, 0 });
        expect_world((const int[]){ 0, 1, 2 }, WORLDS);
        let_go((const int[]){ 0, 1, 2 });
    }
}

/* ---- twice ---- */

/* A second process of each rank, while the ranks join and when the job is full. */
static void test_twice(void **state)
{
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        ways[w]();
        for (int r = 0; r < SIZE; r++)
            start(r, (struct course){ r, PATIENT_MS, 1, 0 });
        expect_world((const int[]){ 0, 1, 2 }, 1);
        for (int r = 0; r < SIZE; r++) {
            char who[64];
            snprintf(who, sizeof who, "rank %d is pid %d (", r, (int)pid[r]);
            start(SIZE, (struct course){ r, PATIENT_MS, 1, 0 });
            expect_refused(SIZE, -EEXIST, who);
        }
        let_go((const int[]){ 0, 1, 2 });
        store_release32(&shared->go, 0);
        store_release32(&shared->ended, 0);
        for (int r = 0; r < 2; r++)
            start(r, (struct course){ r, PATIENT_MS, 1, 0 });
        start(SIZE, (struct course){ 0, PATIENT_MS, 1, 0 });
        start(SIZE + 1, (struct course){ 0, PATIENT_MS, 1, 0 });
        int joined[SIZE] = { 0, 1, 2 };
        const int zeros[] = { 0, SIZE, SIZE + 1 };
        /* two of the three, before the last rank comes; which, is a matter of the moment */
        assert_true(await(&shared->ended, 2));
        for (int k = 0; k < 3; k++)
            if (load_acquire32(&shared->slot[zeros[k]].done))
                expect_refused(zeros[k], -EEXIST, "rank 0 ");
            else
                joined[0] = zeros[k];
        start(2, (struct course){ 2, PATIENT_MS, 1, 0 });
        expect_world(joined, 1);
        let_go(joined);
    }
}

/* The process that is in the world asks again. */
static void test_twice_in_one_process(void **state)
{
    (void)state;
    by_name();
    for (int r = 1; r < SIZE; r++)
        start(r, (struct course){ r, PATIENT_MS, 1, 0 });
    tutti_comm *world = NULL, *again = NULL;
    const tutti_options o = { .job = job, .rank = 0, .size = SIZE, .join_timeout_ms = PATIENT_MS };
    assert_int_equal(tutti_init(&world, &o), 0);
    assert_int_equal(tutti_init(&again, &o), -EEXIST);
    assert_null(again);
    int sum = 1;
    assert_int_equal(tutti_all_reduce(&sum, &sum, 1, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
    assert_int_equal(tutti_finalize(world), 0);
    say(&shared->go, 1);
    for (int r = 1; r < SIZE; r++)
        assert_int_equal(end(r), 0);
}

static int setup(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || !mkdtemp(scratch_name(directory, sizeof directory, "again")))
        return -1;
    snprintf(path, sizeof path, "%s/meet", directory);
    return setenv("TUTTI_SPAN_BYTES", "16M", 1);
}

/* Nothing is left in the directory, but what a killed host has left. */
static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < SLOTS; i++)
        if (pid[i]) {
            kill(pid[i], SIGKILL);
            end(i);
        }
    unlink(path);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retries), cmocka_unit_test(test_patient),
        cmocka_unit_test(test_restart), cmocka_unit_test(test_worlds), cmocka_unit_test(test_twice),
        cmocka_unit_test(test_twice_in_one_process),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
