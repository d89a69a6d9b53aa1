/* ctest: timeout=120 labels=faults serial */
/* Faults on purpose, which other programs' tests are to rely on: what may be written, that each
 * strikes at its call and on its rank alone, and how calls are counted. */
#include "support/team.h"

#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { READY = 1, BACK = 2, END = 9 };

static int plain(void **state)
{
    (void)state;
    unsetenv("TUTTI_FAULT");
    unsetenv("TUTTI_TIMEOUT_MS");
    return 0;
}

static void finish(struct team *team)
{
    for (int r = 0; r < team->size; r++)
        team_tell(team, r, END);
    assert_int_equal(team_end(team), 0);
}

/* ---- what may be written ---- */

static void the_grammar(void **state)
{
    (void)state;
    static const char *const right[] = {
        "0:barrier#1:kill", "0:*#1:stop", "0:all_reduce#2:delay=0",
        "0:broadcast#18446744:delay=3600000", "0:reduce#3:abort", "0:comm_split#1:abort",
        "0:comm_create#9:abort", "0:once#7:kill"
    };
    static const struct { const char *text, *why; } wrong[] = {
        { "", "expected RANK:OPERATION#N" },          { "0", "expected RANK:OPERATION#N" },
        { "0:barrier", "expected RANK:OPERATION#N" },
        { "0:barrier#1", "expected RANK:OPERATION#N" },
        { "1:barrier#1:kill", "no rank of this comm" },
        { "-1:barrier#1:kill", "no rank of this comm" },
        { "x:barrier#1:kill", "no rank of this comm" },
        { ":barrier#1:kill", "no rank of this comm" }, { "0:barier#1:kill", "no operation" },
        { "0:#1:kill", "no operation" }, { "0:tutti_barrier#1:kill", "no operation" },
        { "0:barrier#0:kill", "from 1" }, { "0:barrier#-1:kill", "from 1" },
        { "0:barrier#x:kill", "from 1" }, { "0:barrier#:kill", "from 1" },
        { "0:barrier#1:", "expected kill" }, { "0:barrier#1:die", "expected kill" },
        { "0:barrier#1:delay", "expected kill" }, { "0:barrier#1:delay=", "expected kill" },
        { "0:barrier#1:delay=-1", "expected kill" }, { "0:barrier#1:delay=1s", "expected kill" },
        { "0:barrier#1:kill ", "expected kill" },
    };
    tutti_comm *world;
    setenv("TUTTI_SPAN_BYTES", "16M", 0);
    assert_int_equal(tutti_init(&world, NULL), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (tutti_fault(world, wrong[i].text) != -EINVAL)
            fail_msg("\"%s\" is taken", wrong[i].text);
        if (!strstr(tutti_explain(world), wrong[i].why))
            fail_msg("\"%s\" is refused with: %s", wrong[i].text, tutti_explain(world));
    }
    assert_int_equal(tutti_fault(world, NULL), -EINVAL);
    assert_int_equal(tutti_fault(NULL, right[0]), -EINVAL);
    char longer[4096];
    memset(longer, '0', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(tutti_fault(world, longer), -EINVAL);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        if (tutti_fault(world, right[i]) != 0)
            fail_msg("\"%s\" is refused: %s", right[i], tutti_explain(world));
    assert_int_equal(tutti_fault(world, right[0]), -ENOSPC);         /* eight at a time */
    assert_int_equal(tutti_finalize(world), 0);
}

static void a_wrong_variable_fails_the_init(void **state)
{
    (void)state;
    tutti_comm *world = (void *)1;
    setenv("TUTTI_FAULT", "0:barrier#5:kill,0:barrier#1:perish", 1);
    assert_int_equal(tutti_init(&world, NULL), -EINVAL);
    assert_null(world);
    assert_non_null(strstr(tutti_explain(NULL), "TUTTI_FAULT"));
    assert_non_null(strstr(tutti_explain(NULL), "expected kill, stop, delay=MS or abort"));
    char list[1024];                                /* also where it comes late in a long list */
    memset(list, ',', sizeof list);
    strcpy(list + sizeof list - 32, "0:barrier#1:perish");
    setenv("TUTTI_FAULT", list, 1);
    assert_int_equal(tutti_init(&world, NULL), -EINVAL);
}

/* ---- what they do ---- */

/* Counts in units of calls: 3 barriers, then all_reduce and barrier in turn. Says how many calls
 * succeeded before one failed. */
static int counts(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    float x = 1, y;
    for (int i = 0; i < 10 && !mine->error[0]; i++) {
        uint64_t began = clock_ns();
        mine->error[0] = i >= 3 && i % 2
            ? tutti_all_reduce(&x, &y, 1, TUTTI_F32, TUTTI_SUM, world, NULL)
            : tutti_barrier(world, NULL);
        if (!mine->error[0])
            mine->operation++;
        uint64_t took = clock_ns() - began;
        if (took > mine->number[0]) {
            mine->number[0] = took;
            mine->number[1] = (uint64_t)i;
        }
    }
    team_note(team, rank, world);
    team_say(team, rank, BACK);
    team_hear(team, rank, END);
    return 0;
}

static struct team *with_fault(const char *fault)
{
    setenv("TUTTI_FAULT", fault, 1);
    return team_start(3, counts, true);
}

static void expect_others(struct team *team, int odd, uint64_t succeeded, int error)
{
    for (int r = 0; r < 3; r++)
        if (r != odd) {
            assert_int_equal(team->rank[r].operation, succeeded);
            assert_int_equal(team->rank[r].error[0], error);
        }
}

static void await_others(struct team *team, int odd)
{
    for (int r = 0; r < 3; r++)
        if (r != odd)
            assert_int_equal(team_await(team, r, BACK), 0);
}

/* The calls are: B B B A B A B A B A. */
static void kill_at_the_nth_call(void **state)
{
    (void)state;
    static const struct { const char *fault; uint64_t before; } rows[] = {
        { "1:barrier#1:kill", 0 }, { "1:barrier#3:kill", 2 }, { "1:barrier#4:kill", 4 },
        { "1:all_reduce#1:kill", 3 }, { "1:all_reduce#2:kill", 5 }, { "1:*#1:kill", 0 },
        { "1:*#4:kill", 3 }, { "1:*#6:kill", 5 }, { "0:barrier#1:delay=0,1:*#2:kill", 1 },
        { "1:barrier#4:kill,1:all_reduce#1:kill", 3 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct team *team = with_fault(rows[i].fault);
        await_others(team, 1);
        finish(team);
        expect_others(team, 1, rows[i].before, -EOWNERDEAD);
        assert_true(WIFSIGNALED(team->status[1]) && WTERMSIG(team->status[1]) == SIGKILL);
        assert_int_equal(team->rank[1].operation, rows[i].before);
        team_free(team);
    }
}

static void of_another_operation_or_a_later_call(void **state)
{
    (void)state;
    static const char *const faults[] = { "1:broadcast#1:kill", "1:barrier#7:kill", "1:*#11:kill",
                                          "1:all_reduce#5:abort" };
    for (size_t i = 0; i < 4; i++) {
        struct team *team = with_fault(faults[i]);
        await_others(team, -1);
        finish(team);
        expect_others(team, -1, 10, 0);
        team_free(team);
    }
}

static void stop_at_the_nth_call(void **state)
{
    (void)state;
    struct team *team = with_fault("2:barrier#2:stop");
    for (uint64_t end = clock_ns() + UINT64_C(30000000000); !team_pid(team, 2) && clock_ns() < end;)
        usleep(1000);
    assert_true(team_is(team, 2, "stopped"));
    assert_int_equal(team->rank[2].operation, 1);
    kill(team_pid(team, 2), SIGCONT);
    await_others(team, -1);
    finish(team);
    expect_others(team, -1, 10, 0);                  /* stopped and continued: nothing is broken */
    team_free(team);
}

static void delay_at_the_nth_call(void **state)
{
    (void)state;
    struct team *team = with_fault("0:all_reduce#2:delay=300");
    await_others(team, -1);
    finish(team);
    expect_others(team, -1, 10, 0);
    for (int r = 0; r < 3; r++)
        /* all waited for it; at least, since they may have come a little later */
        assert_true(team->rank[r].number[0] >= UINT64_C(200000000));
    assert_int_equal(team->rank[0].number[1], 5);
    team_free(team);
}

static void abort_at_the_nth_call(void **state)
{
    (void)state;
    struct team *team = with_fault("1:barrier#2:abort");
    await_others(team, -1);
    finish(team);
    expect_others(team, -1, 1, -ECANCELED);
    assert_non_null(strstr(team->rank[0].report, "rank 1 aborted: a fault on purpose"));
    assert_int_equal(team->status[1], 0);
    team_free(team);
}

/* By the function, on a comm made later: ranks and calls are those of that comm. */
static int on_a_comm(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    tutti_comm *comm = NULL;
    mine->error[0] = tutti_barrier(world, NULL);
    /* in reverse order: our rank there is 2 - rank */
    mine->error[0] |= tutti_comm_split(world, 0, -rank, &comm);
    mine->error[0] |= tutti_fault(comm, "0:barrier#2:abort");
    mine->error[0] |= tutti_barrier(comm, NULL);
    mine->error[0] |= tutti_fault(comm, "1:barrier#1:kill");         /* past: never strikes */
    mine->error[1] = tutti_barrier(comm, NULL);
    team_note(team, rank, comm);
    mine->error[2] = tutti_barrier(world, NULL);                     /* the parent is whole */
    return 0;
}

static void on_a_comm_of_its_own(void **state)
{
    (void)state;
    struct team *team = team_start(3, on_a_comm, true);
    finish(team);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(team->rank[r].error[0], 0);
        assert_int_equal(team->rank[r].error[1], -ECANCELED);
        assert_int_equal(team->rank[r].error[2], 0);
        if (r != 2)
            assert_non_null(strstr(team->rank[r].report, "rank 0 aborted"));
    }
    team_free(team);
}

/* A refused call is none: the fault strikes after the arguments are checked. */
static int is_refused_first(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    float x = 1;
    mine->error[0] = tutti_fault(world, "1:all_reduce#1:abort");
    mine->error[1] = tutti_all_reduce(&x, &x, 1, TUTTI_F32, TUTTI_BAND, world, NULL);
    mine->error[2] = tutti_all_reduce(&x, &x, 1, TUTTI_F32, TUTTI_SUM, world, NULL);
    return 0;
}

static void a_refused_call_does_not_count(void **state)
{
    (void)state;
    struct team *team = team_start(2, is_refused_first, true);
    finish(team);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(team->rank[r].error[0], 0);
        assert_int_equal(team->rank[r].error[1], -EINVAL);
        assert_int_equal(team->rank[r].error[2], -ECANCELED);
    }
    team_free(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_grammar, plain),
        cmocka_unit_test_setup(a_wrong_variable_fails_the_init, plain),
        cmocka_unit_test_setup(kill_at_the_nth_call, plain),
        cmocka_unit_test_setup(of_another_operation_or_a_later_call, plain),
        cmocka_unit_test_setup(stop_at_the_nth_call, plain),
        cmocka_unit_test_setup(delay_at_the_nth_call, plain),
        cmocka_unit_test_setup(abort_at_the_nth_call, plain),
        cmocka_unit_test_setup(on_a_comm_of_its_own, plain),
        cmocka_unit_test_setup(a_refused_call_does_not_count, plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
