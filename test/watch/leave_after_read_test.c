/* ctest: timeout=120 labels=faults serial */
/* Who let others read its buffer stays until they have. Here one rank is held in the middle of
 * reading, by an operation of its own that waits, while the owners of what it reads are done with
 * everything else; then somebody is stopped, killed, aborts, is interrupted. The operation has
 * succeeded by then: nothing but the reader's end or its death may let the owners go, and nothing
 * makes any of them fail. The same in an all_reduce, where the one that is held owes the others its
 * piece: there each of these ends the operation for all. A reader that fails in the middle does so
 * by words that cannot be true; here these are its own, so that nobody else reads them. */
#include "engine/queue.h"
#include "base/clock.h"
#include "every_collective.h"
#include "group/comm.h"
#include "support/team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    READING = 1,
    BACK = 2,
    GO = 1,
    QUIT = 2,
    END = 9,
    RANKS = 3,
    READER = 2,
    COUNT = 3000,
    COUNT_ROUNDS = 60000,
    SHORT_MS = 60,
    SLEEPS_MOST = 60
};

static struct {
    enum kind kind;
    bool work, short_deadline, fails;
    size_t count;
    char job[64];
} scene;
static struct team *here;
static int my_rank;
static tutti_comm *my_world;

static void held_sum(const void *in, void *inout, size_t count, tutti_type type)
{
    if (my_rank == READER) {
        team_say(here, READER, READING);
        team_hear(here, READER, GO);
        if (scene.fails)
            my_world->world->arena.bytes = 1;   /* so that all it is to read next lies outside */
    }
    every_sum(in, inout, count, type);
}

static int asked_to_stop(void *arg)
{
    (void)arg;
    bool stop = load_acquire32(&here->all) == QUIT;
    if (stop)
        store_release64((shared64 *)&here->number[0], 1);
    return stop;
}

/* Work past its deadline, and in its exit: how long does the progress thread mean to sleep? True:
 * no deadline wakes it any more. */
static bool sleeps_on(tutti_comm *world)
{
    uint64_t began = clock_ns();
    for (uint64_t slice = 0; clock_ns() < began + UINT64_C(60000000000); sched_yield()) {
        pthread_mutex_lock(&world->engine.queue_lock);
        bool over = world->watch.over && clock_ns() > began + 2 * SHORT_MS * UINT64_C(1000000);
        slice = over ? queue_slice(world) : 0;
        pthread_mutex_unlock(&world->engine.queue_lock);
        if (over)
            return slice == UINT64_MAX;
    }
    return false;
}

static void *abort_when_told(void *arg)
{
    (void)arg;
    team_hear(here, my_rank, GO);
    if (load_acquire32(&here->all) == GO)
        tutti_comm_abort(my_world, "while others read");
    store_release64((shared64 *)&here->number[0], 1);
    return NULL;
}

static int body(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    struct every_room room;
    tutti_work *work = NULL;
    tutti_figures before, after;
    pthread_t thread;
    here = team;
    my_rank = rank;
    const tutti_options options = {
        .job = scene.job, .rank = rank, .size = team->size,
        .interrupt = rank == 1 ? asked_to_stop : NULL
    };
    struct every e = { .kind = scene.kind, .count = scene.count, .nth = 1, .type = TUTTI_I32 };
    if (tutti_init(&world, &options) < 0 || every_open(&room, scene.count, true, world) < 0
        || tutti_op_create(held_sum, 0, &e.oper, world) < 0)
        return 1;
    my_world = world;
    const size_t bytes = world->world->arena.bytes;
    if (rank == 1 && pthread_create(&thread, NULL, abort_when_told, NULL))
        return 2;
    tutti_stats(world, &before);
    const tutti_call call = {
        .timeout_ms = scene.short_deadline && rank != READER ? SHORT_MS : 0,
        .work = scene.work ? &work : NULL
    };
    int r = every_call(&e, &room, world, &call);
    if (work && scene.short_deadline && scene.kind == KIND_REDUCE_SCATTER && rank != READER)
        mine->number[1] = !sleeps_on(world);
    if (work)
        r = tutti_wait(work, -1);
    world->world->arena.bytes = bytes;
    mine->error[0] = r;
    mine->wrong = r == 0 ? every_wrong(&e, &room, r, world) : 0;
    team_note(team, rank, world);
    tutti_stats(world, &after);
    mine->number[0] = after.sleeps - before.sleeps;
    team_say(team, rank, BACK);
    team_hear(team, rank, END);             /* what follows is not part of what has been counted */
    mine->error[1] = tutti_barrier(world, NULL);
    if (rank == 1)
        pthread_join(thread, NULL);
    team_say(team, rank, END);
    team_hear(team, rank, END + 1);         /* nobody leaves before all have seen what came of it */
    return 0;
}

static struct team *start_of(int kind, bool work, bool short_deadline, bool fails)
{
    static int nth;
    setenv("TUTTI_ALGORITHM", every_rules("pipelined", "flags"), 1);
    scene.kind = (enum kind)kind;
    scene.work = work;
    scene.short_deadline = short_deadline;
    scene.fails = fails;
    scene.count = fails && kind == KIND_REDUCE_SCATTER ? COUNT_ROUNDS : COUNT;
    snprintf(scene.job, sizeof scene.job, "leave_after_read_test.%d.%d", (int)getpid(), nth++);
    struct team *team = team_start_named(RANKS, body, true);
    assert_int_equal(team_await(team, READER, READING), 0);
    return team;
}

static struct team *start(int kind, bool work, bool short_deadline)
{
    return start_of(kind, work, short_deadline, false);
}

static bool back(struct team *team, int rank)
{
    return load_acquire32(&team->rank[rank].step) >= BACK;
}

/* Long enough for a deadline to pass, and for whoever would return to do so. */
static void a_while(void)
{
    for (uint64_t end = clock_ns() + 6 * SHORT_MS * UINT64_C(1000000); clock_ns() < end;)
        usleep(2000);
}

/* Until the abort has been made, or the interrupt function been asked: else there would be
 * nothing to see. */
static void await_it(struct team *team)
{
    uint64_t end = clock_ns() + UINT64_C(60000000000);
    while (!load_acquire64((shared64 *)&team->number[0]) && clock_ns() < end)
        usleep(500);
    assert_true(load_acquire64((shared64 *)&team->number[0]) == 1);
    a_while();
}

/* reader: what the reader's operation gives, where that is something else. */
static void finish_but(struct team *team, int dead, int first, int second, int reader)
{
    team_tell(team, READER, GO);
    for (int r = 0; r < RANKS; r++)
        if (r != dead)
            assert_int_equal(team_await(team, r, BACK), 0);
    for (int r = 0; r < RANKS; r++)
        team_tell(team, r, END);
    for (int r = 0; r < RANKS; r++)
        if (r != dead)
            assert_int_equal(team_await(team, r, END), 0);
    for (int r = 0; r < RANKS; r++)
        team_tell(team, r, END + 1);
    assert_int_equal(team_end(team), 0);
    for (int r = 0; r < RANKS; r++) {
        const struct team_rank *rank = &team->rank[r];
        if (r == dead)
            continue;
        int due = r == READER ? reader : first;
        if (team->status[r] || rank->error[0] != due || rank->error[1] != second || rank->wrong
            || rank->number[0] > SLEEPS_MOST || rank->number[1])
            fail_msg("rank %d: status 0x%x, %d (should be %d), %d (should be %d), %d wrong, %d "
                     "sleeps; %s",
                     r, (unsigned)team->status[r], rank->error[0], due, rank->error[1], second,
                     (int)rank->wrong, (int)rank->number[0], rank->report);
    }
    team_free(team);
}

static void finish(struct team *team, int dead, int first, int second)
{
    finish_but(team, dead, first, second, first);
}

static void the_reader_is_stopped_for_longer_than_the_deadline(void **state)
{
    (void)state;
    for (int work = 0; work < 2; work++) {
        struct team *team = start(KIND_REDUCE_SCATTER, work, true);
        kill(team_pid(team, READER), SIGSTOP);
        a_while();
        assert_true(!back(team, 0) && !back(team, 1));
        kill(team_pid(team, READER), SIGCONT);
        finish(team, -1, 0, 0);
    }
}

static void the_reader_dies(void **state)
{
    (void)state;
    for (int work = 0; work < 2; work++) {
        struct team *team = start(KIND_REDUCE_SCATTER, work, false);
        a_while();
        assert_true(!back(team, 0) && !back(team, 1));
        kill(team_pid(team, READER), SIGKILL);
        finish(team, READER, 0, -EOWNERDEAD);
    }
}

static void an_owner_dies_while_it_is_read(void **state)
{
    (void)state;
    for (int victim = 0; victim < 2; victim++) {
        struct team *team = start(KIND_REDUCE_SCATTER, victim, true);
        a_while();
        kill(team_pid(team, victim), SIGKILL);
        a_while();
        assert_false(back(team, !victim));
        finish(team, victim, 0, -EOWNERDEAD);
    }
}

static void an_owner_aborts(void **state)
{
    (void)state;
    for (int work = 0; work < 2; work++) {
        struct team *team = start(KIND_REDUCE_SCATTER, work, false);
        store_release32(&team->all, GO);
        team_tell(team, 1, GO);
        await_it(team);
        assert_true(!back(team, 0) && !back(team, 1));
        finish(team, -1, 0, -ECANCELED);
    }
}

static void an_owner_is_interrupted(void **state)
{
    (void)state;
    for (int work = 0; work < 2; work++) {
        struct team *team = start(KIND_REDUCE_SCATTER, work, false);
        a_while();
        store_release32(&team->all, QUIT);
        await_it(team);
        assert_true(!back(team, 0) && !back(team, 1));
        finish(team, -1, 0, -ECANCELED);
    }
}

/* It has read a part, and finds that it cannot read the rest: it is out of the operation with an
   error, which the owners, who have theirs, meet in the next one. While it was at it they stayed;
   once it has returned they do not wait for a reading that never comes. In an all_reduce it has
   given its piece by then, and fails at copying out. */
static void the_reader_fails(void **state)
{
    (void)state;
    static const enum kind kind[] = { KIND_REDUCE_SCATTER, KIND_ALL_REDUCE };
    for (int i = 0; i < 4; i++) {
        struct team *team = start_of((int)kind[i / 2], i % 2, false, true);
        a_while();
        assert_true(!back(team, 0) && !back(team, 1));
        finish_but(team, -1, 0, -ECANCELED, -EIO);
    }
}

/* ---- who is held owes the others something ---- */

static void held_in_an_all_reduce(void **state)
{
    (void)state;
    for (int work = 0; work < 2; work++) {
        struct team *team = start(KIND_ALL_REDUCE, work, true);
        assert_int_equal(team_await(team, 0, BACK), 0);
        finish(team, -1, -ETIMEDOUT, -ECANCELED);
        team = start(KIND_ALL_REDUCE, work, false);
        kill(team_pid(team, READER), SIGKILL);
        finish(team, READER, -EOWNERDEAD, -ECANCELED);
        team = start(KIND_ALL_REDUCE, work, false);
        store_release32(&team->all, GO);
        team_tell(team, 1, GO);
        assert_int_equal(team_await(team, 0, BACK), 0);
        finish(team, -1, -ECANCELED, -ECANCELED);
        team = start(KIND_ALL_REDUCE, work, false);
        /* it has given all, but folded nothing that the others have seen, or everything */
        kill(team_pid(team, 0), SIGKILL);
        team_tell(team, READER, GO);
        assert_int_equal(team_await(team, 1, BACK), 0);
        int first = team->rank[1].error[0];
        finish(team, 0, first, first ? -ECANCELED : -EOWNERDEAD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reader_is_stopped_for_longer_than_the_deadline),
        cmocka_unit_test(the_reader_dies),
        cmocka_unit_test(the_reader_fails),
        cmocka_unit_test(an_owner_dies_while_it_is_read),
        cmocka_unit_test(an_owner_aborts), cmocka_unit_test(an_owner_is_interrupted),
        cmocka_unit_test(held_in_an_all_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
