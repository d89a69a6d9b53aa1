/* ctest: timeout=300 labels=faults serial */
/* Ends of waits that are nobody's death: deadlines (per call, per comm, by the environment, none),
 * stopped and continued ranks, the interrupt function, and aborts from other threads and from
 * signal handlers, whatever the waiting rank does just then. */
#include "base/clock.h"
#include "support/team.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { READY = 1, BACK = 2, GO = 1, END = 9, SHORT_MS = 60 };

static void finish(struct team *team)
{
    team_dismiss(team, END);
    for (int r = 0; r < team->size; r++)
        assert_int_equal(team->status[r], 0);
    team_free(team);
}

static void await(struct team *team, int rank, uint32_t step)
{
    assert_int_equal(team_await(team, rank, step), 0);
}

/* Rank 0 comes when it is told; the others call at once. All say what they got, call once more, and
 * wait for the end. */
static enum { BY_CALL, BY_COMM, BY_ENVIRONMENT, WITHOUT } limit;

static int calls(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    const tutti_call short_one = { .timeout_ms = SHORT_MS }, none = { .timeout_ms = -1 };
    if (limit == BY_COMM)
        tutti_set_timeout(world, SHORT_MS);
    team_say(team, rank, READY);
    if (rank == 0)
        team_hear(team, rank, GO);
    uint64_t began = clock_ns();
    mine->error[0] = tutti_barrier(world,
                                   limit == BY_CALL && rank ? &short_one
                                       : limit == WITHOUT ? &none
                                       : NULL);
    mine->number[0] = clock_ns() - began;
    team_note(team, rank, world);
    mine->error[1] = tutti_barrier(world, limit == WITHOUT ? &none : NULL);
    team_say(team, rank, BACK);
    team_hear(team, rank, END);
    return 0;
}

static void deadline_by(int by)
{
    limit = (unsigned)by;
    struct team *team = team_start(3, calls, true);
    await(team, 1, BACK);
    await(team, 2, BACK);
    team_tell(team, 0, GO);                          /* and who comes late learns the same */
    await(team, 0, BACK);
    for (int r = 0; r < 3; r++)
        team_expect(team, r, -ETIMEDOUT, -ECANCELED);
    uint64_t least = SHORT_MS * UINT64_C(1000000);
    assert_true(team->rank[1].number[0] >= least || team->rank[2].number[0] >= least);
    assert_non_null(strstr(team->rank[1].report, "missing: rank 0"));
    assert_int_equal(team->rank[1].failed_count, 0);
    finish(team);
}

static void a_deadline_of_the_call(void **state)
{
    (void)state;
    deadline_by(BY_CALL);
}

static void a_deadline_of_the_comm(void **state)
{
    (void)state;
    deadline_by(BY_COMM);
}

static void a_deadline_of_the_environment(void **state)
{
    (void)state;
    setenv("TUTTI_TIMEOUT_MS", "60", 1);
    deadline_by(BY_ENVIRONMENT);
    unsetenv("TUTTI_TIMEOUT_MS");
}

/* The environment's deadline would strike; the call says there is none. */
static void a_negative_deadline_is_none(void **state)
{
    (void)state;
    setenv("TUTTI_TIMEOUT_MS", "60", 1);
    limit = WITHOUT;
    struct team *team = team_start(3, calls, true);
    await(team, 1, READY);
    assert_true(team_is(team, 1, "sleeping"));
    for (uint64_t end = clock_ns() + 3 * SHORT_MS * UINT64_C(1000000); clock_ns() < end;)
        usleep(1000);                                /* until a deadline would have passed */
    assert_int_equal(load_acquire32(&team->rank[1].step), READY);
    team_tell(team, 0, GO);
    for (int r = 0; r < 3; r++) {
        await(team, r, BACK);
        team_expect(team, r, 0, 0);
    }
    unsetenv("TUTTI_TIMEOUT_MS");
    finish(team);
}

/* A waiter is stopped for longer than its deadline and continued: its clock ran over, but it was
 * not there to see. */
static void a_suspended_waiter_breaks_nothing(void **state)
{
    (void)state;
    setenv("TUTTI_TIMEOUT_MS", "4000", 1);
    limit = BY_ENVIRONMENT;
    struct team *team = team_start(2, calls, true);
    await(team, 1, READY);
    assert_true(team_is(team, 1, "sleeping"));
    usleep(30000);                      /* well inside the barrier, asleep in a slice of some ms */
    kill(team_pid(team, 1), SIGSTOP);
    assert_true(team_is(team, 1, "stopped"));
    for (uint64_t end = clock_ns() + UINT64_C(4500000000); clock_ns() < end;)
        usleep(10000);
    kill(team_pid(team, 1), SIGCONT);
    assert_true(team_is(team, 1, "sleeping"));
    team_tell(team, 0, GO);
    for (int r = 0; r < 2; r++) {
        await(team, r, BACK);
        team_expect(team, r, 0, 0);
    }
    unsetenv("TUTTI_TIMEOUT_MS");
    finish(team);
}

/* ---- a peer that is stopped ---- */

static int stops_by_fault(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    if (rank == 0)
        tutti_fault(world, "0:barrier#2:stop");
    mine->error[0] = tutti_barrier(world, NULL);
    team_say(team, rank, READY);
    mine->error[1] = tutti_barrier(world, NULL);
    team_note(team, rank, world);
    mine->error[2] = tutti_barrier(world, NULL);
    team_say(team, rank, BACK);
    team_hear(team, rank, END);
    return 0;
}

static void a_peer_stopped_for_less_than_the_deadline(void **state)
{
    (void)state;
    struct team *team = team_start(3, stops_by_fault, true);
    assert_int_equal(team_await(team, 1, READY), 0);
    assert_true(team_is(team, 0, "stopped"));
    usleep(20000);                                   /* the others wait for some slices */
    kill(team_pid(team, 0), SIGCONT);
    for (int r = 0; r < 3; r++) {
        await(team, r, BACK);
        team_expect(team, r, 0, 0);
        assert_int_equal(team->rank[r].error[2], 0);
    }
    finish(team);
}

static void a_peer_stopped_for_longer(void **state)
{
    (void)state;
    setenv("TUTTI_TIMEOUT_MS", "80", 1);
    struct team *team = team_start(3, stops_by_fault, true);
    await(team, 1, BACK);
    await(team, 2, BACK);
    assert_non_null(strstr(team->rank[1].report, "stopped"));
    kill(team_pid(team, 0), SIGCONT);
    for (int r = 0; r < 3; r++) {
        await(team, r, BACK);
        team_expect(team, r, 0, -ETIMEDOUT);
        assert_int_equal(team->rank[r].error[2], -ECANCELED);
    }
    unsetenv("TUTTI_TIMEOUT_MS");
    finish(team);
}

/* ---- the interrupt function ---- */

static shared32 *interrupt_word;

static int interrupt_asked(void *arg)
{
    (void)arg;
    return load_acquire32(interrupt_word) != 0;
}

static char job_name[64];

static int is_interrupted(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    interrupt_word = &mine->told;
    const tutti_options options = {
        .job = job_name, .rank = rank, .size = team->size,
        .interrupt = rank == 1 ? interrupt_asked : NULL
    };
    if (tutti_init(&world, &options) < 0)
        return 1;
    team_say(team, rank, READY);
    if (rank == 0)
        team_hear(team, rank, GO);
    mine->error[0] = tutti_barrier(world, NULL);
    team_note(team, rank, world);
    mine->error[1] = tutti_barrier(world, NULL);
    team_say(team, rank, BACK);
    team_hear(team, rank, END);
    return 0;
}

static void an_interrupt_stops_all(void **state)
{
    (void)state;
    snprintf(job_name, sizeof job_name, "deadline_test.%d", (int)getpid());
    struct team *team = team_start_named(3, is_interrupted, false);
    for (int r = 0; r < 3; r++)
        await(team, r, READY);
    assert_true(team_is(team, 1, "sleeping"));
    team_tell(team, 1, GO);
    await(team, 1, BACK);
    await(team, 2, BACK);
    team_tell(team, 0, GO);
    await(team, 0, BACK);
    team_expect(team, 1, -EINTR, -ECANCELED);
    team_expect(team, 2, -ECANCELED, -ECANCELED);
    team_expect(team, 0, -ECANCELED, -ECANCELED);
    assert_non_null(strstr(team->rank[2].report, "rank 1 was interrupted"));
    finish(team);
}

/* All or none: interrupts that come when the operation is about to complete. Who is interrupted
 * gets 0 where the others do. */
static int races_interrupt(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    interrupt_word = &mine->told;
    snprintf(job_name + strlen(job_name), 2, "r");
    const tutti_options options = {
        .job = job_name, .rank = rank, .size = team->size,
        .interrupt = rank == 1 ? interrupt_asked : NULL
    };
    if (tutti_init(&world, &options) < 0)
        return 1;
    team_say(team, rank, READY);
    while (mine->error[0] == 0) {
        if (rank == 0) {
            uint64_t random = clock_ns();
            usleep((useconds_t)(team_random(&random) % 300));   /* so that the other one sleeps */
        }
        mine->error[0] = tutti_barrier(world, NULL);
        mine->operation += mine->error[0] == 0;
    }
    team_say(team, rank, BACK);
    team_hear(team, rank, END);
    return 0;
}

static void an_interrupt_is_all_or_none(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    for (int i = 0, many = team_many("TUTTI_TEST_MANY", 60, 20); i < many; i++) {
        snprintf(job_name, sizeof job_name, "deadline_test.%d.%d", (int)getpid(), i);
        struct team *team = team_start_named(2, races_interrupt, false);
        await(team, 0, READY);
        await(team, 1, READY);
        team_spin(team_random(&random) % 3000000);
        team_tell(team, 1, GO);
        await(team, 0, BACK);
        await(team, 1, BACK);
        assert_true(team->rank[1].error[0] == -EINTR || team->rank[1].error[0] == -ECANCELED);
        assert_int_equal(team->rank[0].error[0], -ECANCELED);
        assert_int_equal(team->rank[0].operation, team->rank[1].operation);
        finish(team);
    }
}

/* ---- abort ---- */

static enum { SPINNING, YIELDING, SLEEPING } while_;
static tutti_comm *handler_world;

static void abort_in_handler(int signal)
{
    (void)signal;
    tutti_comm_abort(handler_world, "from a signal handler");
}

static void *abort_in_thread(void *arg)
{
    struct team *team = arg;
    team_hear(team, 1, GO);
    tutti_comm_abort(handler_world, "from another thread");
    return NULL;
}

/* Rank 0 never comes by itself; rank 1 is aborted while it waits, rank 2 only waits. */
static int is_aborted(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    pthread_t thread;
    handler_world = world;
    signal(SIGUSR1, abort_in_handler);
    if (rank == 1) {
        sigset_t usr1;
        sigemptyset(&usr1);
        sigaddset(&usr1, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &usr1, NULL);     /* not in that thread */
        pthread_create(&thread, NULL, abort_in_thread, team);
        pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
    }
    mine->error[0] = tutti_barrier(world, NULL);
    team_say(team, rank, READY);
    if (rank == 0)
        team_hear(team, rank, GO);
    mine->error[0] = tutti_barrier(world, NULL);
    team_note(team, rank, world);
    mine->error[1] = tutti_barrier(world, NULL);
    mine->error[2] = tutti_comm_abort(world, "once more");
    team_say(team, rank, BACK);
    if (rank == 1)
        pthread_join(thread, NULL);
    team_hear(team, rank, END);
    return 0;
}

static void abort_while(int how, bool handler)
{
    while_ = (unsigned)how;
    setenv("TUTTI_SPIN_US", while_ == SPINNING ? "1000000" : "1", 1);
    struct team *team = team_start(3, is_aborted, true);
    await(team, 1, READY);
    await(team, 2, READY);
    if (while_ == SLEEPING) {
        assert_true(team_is(team, 1, "sleeping"));
        usleep(40000);
    } else if (while_ == SPINNING)
        usleep(5000);                                /* inside its one long spin */
    if (handler)
        kill(team_pid(team, 1), SIGUSR1);
    else
        team_tell(team, 1, GO);
    await(team, 1, BACK);
    team_tell(team, 1, GO);                          /* ends the thread in any case */
    await(team, 2, BACK);
    team_tell(team, 0, GO);
    await(team, 0, BACK);
    for (int r = 0; r < 3; r++) {
        team_expect(team, r, -ECANCELED, -ECANCELED);
        assert_int_equal(team->rank[r].error[2], 0);
    }
    assert_non_null(strstr(team->rank[2].report,
                           handler ? "rank 1 aborted: from a signal handler"
                                   : "rank 1 aborted: from another thread"));
    unsetenv("TUTTI_SPIN_US");
    finish(team);
}

static void an_abort_by_another_thread(void **state)
{
    (void)state;
    for (int how = SPINNING; how <= SLEEPING; how++)
        abort_while(how, false);
}

static void an_abort_in_a_signal_handler(void **state)
{
    (void)state;
    for (int how = SPINNING; how <= SLEEPING; how++)
        abort_while(how, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deadline_of_the_call), cmocka_unit_test(a_deadline_of_the_comm),
        cmocka_unit_test(a_deadline_of_the_environment),
        cmocka_unit_test(a_negative_deadline_is_none),
        cmocka_unit_test(a_suspended_waiter_breaks_nothing),
        cmocka_unit_test(a_peer_stopped_for_less_than_the_deadline),
        cmocka_unit_test(a_peer_stopped_for_longer), cmocka_unit_test(an_interrupt_stops_all),
        cmocka_unit_test(an_interrupt_is_all_or_none), cmocka_unit_test(an_abort_by_another_thread),
        cmocka_unit_test(an_abort_in_a_signal_handler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
