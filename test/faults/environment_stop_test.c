/* ctest: timeout=300 labels=faults serial */
/* Ranks that are stopped: a waiter for longer than its own deadline, in every kind of wait, and
 * continued: its clock ran over, but it was not there to see, so nothing may fail by that alone.
 * And one that others wait for: they time out, and read that it is stopped. The deadlines here are
 * short, so that one slice of a sleep is much of them: that is where it is hard to tell a stop from
 * a long wait. */
#include "environment.h"

#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAITING = 1, LATE = 2, GO = 1, LONGER_MS = 800, SHORT_MS = 150 };

static const char *const names[] = {
    "barrier", "barrier as work", "recv", "recv as work", "get", "turn", "agree", "split"
};
enum kind_of_wait { BARRIER, BARRIER_WORK, RECV, RECV_WORK, GET, TURN, AGREE, SPLIT, KINDS };

static struct { enum kind_of_wait kind; int deadline_ms; } scene;

/* What rank 1 waits in, when it is told, and rank 0 comes to later. */
static int meets(tutti_comm *world, int rank)
{
    tutti_work *work = NULL;
    tutti_call call = { 0 };
    tutti_comm *comm;
    int x = 7, flag = 1, r = 0;
    size_t bytes = sizeof x;
    switch (scene.kind) {
    case BARRIER: return tutti_barrier(world, NULL);
    case BARRIER_WORK:
        call.work = &work;
        r = tutti_barrier(world, &call);
        return work ? tutti_wait(work, -1) : r;
    case RECV_WORK: call.work = &work; /* fallthrough */
    case RECV:
        r = rank ? tutti_recv(&x, 1, TUTTI_I32, 0, 1, NULL, world, &call)
                 : tutti_send(&x, 1, TUTTI_I32, 1, 1, world, NULL);
        return work ? tutti_wait(work, -1) : r;
    case GET:
        return rank
            ? tutti_get("x", &x, &bytes, world, &(tutti_call){ .timeout_ms = scene.deadline_ms })
            : tutti_set("x", &x, sizeof x, world);
    case TURN: r = tutti_turn_begin(world, NULL); return r == 0 ? tutti_turn_end(world) : r;
    case AGREE: return tutti_comm_agree(world, &flag);
    case SPLIT: return tutti_comm_split(world, 0, rank, &comm);
    case KINDS: break;
    }
    return -EINVAL;
}

static int waits(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    mine->error[0] = tutti_barrier(world, NULL);
    tutti_set_timeout(world, rank == 1 ? scene.deadline_ms : -1);
    team_say(team, rank, WAITING);
    team_hear(team, rank, GO);
    mine->error[1] = meets(world, rank);
    team_note(team, rank, world);
    team_say(team, rank, LATE);
    tutti_set_timeout(world, -1);
    mine->error[2] = tutti_barrier(world, NULL);
    return 0;
}

static void a_while(int ms)
{
    for (uint64_t end = clock_ns() + (uint64_t)ms * 1000000; clock_ns() < end;)
        usleep(500);
}

/* A job for each kind of wait, all at once: most of the time they sleep. */
static struct team *start(int kind, int deadline_ms)
{
    scene.kind = (enum kind_of_wait)kind;
    scene.deadline_ms = deadline_ms;
    struct team *team = team_start(2, waits, true);
    assert_int_equal(team_await(team, 0, WAITING), 0);
    assert_int_equal(team_await(team, 1, WAITING), 0);
    return team;
}

static void stop(struct team *const teams[], int rank)
{
    for (int k = 0; k < KINDS; k++)
        assert_int_equal(kill(team_pid(teams[k], rank), SIGSTOP), 0);
    for (int k = 0; k < KINDS; k++)
        assert_true(team_is(teams[k], rank, "stopped"));
}

static void expect(const struct team *team, int kind, int rank, int error, int next)
{
    const struct team_rank *r = &team->rank[rank];
    if (team->status[rank] || r->error[0] || r->error[1] != error || r->error[2] != next)
        fail_msg("%s: rank %d got %d, %d, %d (status 0x%x), not 0, %d, %d: %s", names[kind], rank,
                 r->error[0], r->error[1], r->error[2], (unsigned)team->status[rank], error, next,
                 r->report);
}

static void tell_all(struct team *const teams[], int rank)
{
    for (int k = 0; k < KINDS; k++)
        team_tell(teams[k], rank, GO);
}

/* Stopped for a little longer than its deadline: that is where a stop is hardest to tell from a
   wait. It begins in slices of different lengths. After it the waiter has a moment in which it
   would fail, before its peer comes. */
static void a_stop_is_no_deadline(void **state)
{
    (void)state;
    static const int begins_ms[] = { 3, 100, 250 };
    struct env_traces before;
    env_look(&before);
    for (size_t i = 0; i < sizeof begins_ms / sizeof begins_ms[0]; i++) {
        struct team *teams[KINDS];
        for (int k = 0; k < KINDS; k++)
            teams[k] = start(k, LONGER_MS);
        uint64_t awake = clock_ns(), stopped;
        tell_all(teams, 1);
        a_while(begins_ms[i]);
        stop(teams, 1);
        stopped = clock_ns();
        a_while(LONGER_MS + 40);
        awake += clock_ns() - stopped;
        for (int k = 0; k < KINDS; k++)
            assert_int_equal(kill(team_pid(teams[k], 1), SIGCONT), 0);
        a_while(20);
        tell_all(teams, 0);
        for (int k = 0; k < KINDS; k++)
            assert_int_equal(team_end(teams[k]), 0);
        /* Where all this took so long that the deadline passed while it was awake, a slice being an
         * eighth of it, nothing can be said. */
        bool known = clock_ns() - awake < LONGER_MS * UINT64_C(800000);
        for (int k = 0; k < KINDS; k++) {
            for (int r = 0; known && r < 2; r++)
                expect(teams[k], k, r, 0, 0);
            team_free(teams[k]);
        }
        if (!known)
            print_message("the machine was too slow: not looked at\n");
    }
    env_expect_nothing_new(&before);
}

/* What fails the comm, and what only the call that waited. */
static bool for_all(int kind) { return kind == BARRIER || kind == BARRIER_WORK || kind == SPLIT; }

static void a_stopped_peer_is_named(void **state)
{
    (void)state;
    struct team *teams[KINDS];
    struct env_traces before;
    env_look(&before);
    for (int k = 0; k < KINDS; k++)
        teams[k] = start(k, SHORT_MS);
    stop(teams, 0);
    tell_all(teams, 1);
    for (int k = 0; k < KINDS; k++) /* those whose comm is whole wait for rank 0 in the next call */
        assert_int_equal(team_await(teams[k], 1, LATE), 0);
    tell_all(teams, 0);
    for (int k = 0; k < KINDS; k++)
        assert_int_equal(kill(team_pid(teams[k], 0), SIGCONT), 0);
    for (int k = 0; k < KINDS; k++) {
        const struct team_rank *waiter = &teams[k]->rank[1];
        assert_int_equal(team_end(teams[k]), 0);
        expect(teams[k], k, 1, -ETIMEDOUT, for_all(k) ? -ECANCELED : 0);
        expect(teams[k], k, 0, for_all(k) || k == AGREE ? -ETIMEDOUT : 0,
               for_all(k) ? -ECANCELED : 0);
        if (!strstr(waiter->report, "deadline")
            || (k != GET
                && (!strstr(waiter->report, "stopped") || !strstr(waiter->report, "rank 0"))))
            fail_msg("%s: the waiter reads: %s", names[k], waiter->report);
        assert_int_equal(waiter->failed_count, 0);
        team_free(teams[k]);
    }
    env_expect_nothing_new(&before);
}

int main(void)
{
    env_adopt();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_is_no_deadline), cmocka_unit_test(a_stopped_peer_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
