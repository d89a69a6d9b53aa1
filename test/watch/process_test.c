/* ctest: timeout=300 labels=faults serial needs=robust */
/* What a process can do to itself while it is a rank: fork, exec, system, let its joining thread
 * end, hold several ranks, live under a filter that forbids what we would like to use, dump core.
 * In each case peers learn the truth, and nothing but it. */
#include "base/clock.h"
#include "support/skip.h"
#include "support/team.h"
#include "support/scratch.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { READY = 1, BACK = 2, GO = 1, END = 9, NUMBER_OF_FUTEX_WAITV = 449 };

/* ---- fork ---- */

static int all_refused(tutti_comm *world)
{
    float x[1] = { 1 };
    int list[1] = { 0 };
    tutti_comm *comm;
    tutti_figures figures;
    return tutti_barrier(world, NULL) == -ECHILD
        && tutti_broadcast(x, 1, TUTTI_F32, 0, world, NULL) == -ECHILD
        && tutti_all_reduce(x, x, 1, TUTTI_F32, TUTTI_SUM, world, NULL) == -ECHILD
        && tutti_reduce(x, x, 1, TUTTI_F32, TUTTI_SUM, 0, world, NULL) == -ECHILD
        && tutti_comm_split(world, 0, 0, &comm) == -ECHILD
        && tutti_comm_create(world, list, 1, &comm) == -ECHILD
        && tutti_comm_abort(world, "child") == -ECHILD && tutti_finalize(world) == -ECHILD
        && tutti_failed(world, NULL, 0) == -ECHILD && tutti_set_timeout(world, 1) == -ECHILD
        && tutti_stats(world, &figures) == -ECHILD && tutti_once("key", NULL, NULL, world, NULL) < 0
        && tutti_turn_begin(world, NULL) == -ECHILD
        && tutti_first_begin("key", world, NULL) == -ECHILD
        && tutti_fault(world, "0:*#1:kill") == -ECHILD;
}

/* Children of a rank end in every way there is; the rank goes on as if nothing had been. */
static int forks(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    mine->error[0] = tutti_barrier(world, NULL);
    for (int way = 0; rank == 1 && way < 5; way++) {
        pid_t pid = fork();
        if (pid == 0) {
            bool refused = all_refused(world);
            switch (way) {
            case 0: exit(refused ? 11 : 1);
            case 1: _exit(refused ? 11 : 1);
            case 2: abort();
            case 3: raise(SIGKILL); break;
            default: execl("/bin/sh", "sh", "-c", "exit 11", (char *)NULL);
            }
            _exit(1);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        bool right = way == 2 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT
            : way == 3 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
            : WIFEXITED(status) && WEXITSTATUS(status) == 11;
        mine->wrong += !right;
        mine->error[1] |= tutti_barrier(world, NULL);
    }
    if (rank == 1)
        mine->wrong += system("true") != 0;
    for (int way = 0; rank != 1 && way < 5; way++)
        mine->error[1] |= tutti_barrier(world, NULL);
    mine->error[1] |= tutti_barrier(world, NULL);
    team_note(team, rank, world);
    mine->error[2] = tutti_barrier(world, NULL);
    return 0;
}

static void children_are_not_ranks(void **state)
{
    (void)state;
    struct team *team = team_start(3, forks, true);
    team_dismiss(team, END);
    for (int r = 0; r < 3; r++) {
        team_expect(team, r, 0, 0);
        assert_int_equal(team->status[r], 0);
        assert_int_equal(team->rank[r].wrong, 0);
        assert_int_equal(team->rank[r].failed_count, 0);
        assert_int_equal(team->rank[r].error[2], 0);
    }
    team_free(team);
}

/* ---- exec ---- */

static int execs(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    mine->error[0] = tutti_barrier(world, NULL);
    if (rank == 1) {
        execl("/bin/sh", "sh", "-c", "exec sleep 5", (char *)NULL);
        _exit(1);
    }
    mine->error[0] = tutti_barrier(world, NULL);
    team_note(team, rank, world);
    mine->error[1] = tutti_barrier(world, NULL);
    team_say(team, rank, BACK);
    team_hear(team, rank, END);
    return 0;
}

static void *execs_elsewhere(void *arg)
{
    (void)arg;
    execl("/bin/sh", "sh", "-c", "exec sleep 5", (char *)NULL);
    _exit(1);
}

static int execs_by_a_thread(tutti_comm *world, int rank, struct team *team)
{
    if (rank == 1) {
        pthread_t thread;
        team->rank[1].error[0] = tutti_barrier(world, NULL);
        pthread_create(&thread, NULL, execs_elsewhere, NULL);
        pthread_join(thread, NULL);
    }
    return execs(world, rank, team);
}

static void expect_exec(team_body *body)
{
    struct team *team = team_start(3, body, true);
    for (int r = 0; r < 3; r += 2) {
        assert_int_equal(team_await(team, r, BACK), 0);     /* long before that sleep has ended */
        team_expect(team, r, -EOWNERDEAD, -ECANCELED);
        assert_int_equal(team->rank[r].failed_count, 1);
        assert_int_equal(team->rank[r].failed[0], 1);
        assert_non_null(strstr(team->rank[r].report, "rank 1 (pid "));
        assert_non_null(strstr(team->rank[r].report, ") died"));
    }
    kill(team_pid(team, 1), SIGKILL);
    team_dismiss(team, END);
    team_free(team);
}

static void an_exec_is_a_death(void **state)
{
    (void)state;
    expect_exec(execs);
}

static void an_exec_by_another_thread_is_a_death(void **state)
{
    (void)state;
    expect_exec(execs_by_a_thread);
}

/* ---- the joining thread ends, the process goes on ---- */

static char job_name[64];

static void *joins_and_ends(void *arg)
{
    struct { tutti_comm *world; int rank, size, error; } *in = arg;
    const tutti_options options = { .job = job_name, .rank = in->rank, .size = in->size };
    in->error = tutti_init(&in->world, &options);
    if (in->error == 0)
        in->error = tutti_barrier(in->world, NULL);
    return NULL;
}

static int goes_on(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    struct { tutti_comm *world; int rank, size, error; } in = { world, rank, team->size, 0 };
    if (rank == 1) {
        pthread_t thread;
        pthread_create(&thread, NULL, joins_and_ends, &in);
        pthread_join(thread, NULL);
    } else
        joins_and_ends(&in);
    mine->error[0] = in.error;
    team_say(team, rank, READY);
    if (rank == 1)
        /* the others wait for it for a while: it is not taken for dead */
        team_hear(team, rank, GO);
    mine->error[1] = tutti_barrier(in.world, NULL);
    mine->error[1] |= tutti_barrier(in.world, NULL);
    team_note(team, rank, in.world);
    team_say(team, rank, BACK);
    team_hear(team, rank, END);
    if (rank == 1 && team->number[0])
        raise(SIGKILL);
    if (team->number[0])
        mine->error[2] = tutti_barrier(in.world, NULL);
    else
        mine->error[2] = tutti_finalize(in.world);
    return 0;
}

static void the_joining_thread_ends(bool then_dies)
{
    snprintf(job_name, sizeof job_name, "process_test.%d.%d", (int)getpid(), then_dies);
    struct team *team = team_start_named(3, goes_on, true);
    team->number[0] = then_dies;
    for (int r = 0; r < 3; r++)
        assert_int_equal(team_await(team, r, READY), 0);
    assert_true(team_is(team, 0, "sleeping"));
    usleep(100000);                         /* through slices that ask the system after everybody */
    team_tell(team, 1, GO);
    for (int r = 0; r < 3; r++)
        assert_int_equal(team_await(team, r, BACK), 0);
    team_dismiss(team, END);
    for (int r = 0; r < 3; r++) {
        team_expect(team, r, 0, 0);
        assert_int_equal(team->rank[r].failed_count, 0);
        if (r != 1 || !then_dies)
            assert_int_equal(team->rank[r].error[2], then_dies ? -EOWNERDEAD : 0);
    }
    team_free(team);
}

static void another_thread_calls_on(void **state)
{
    (void)state;
    the_joining_thread_ends(false);
}

static void and_then_it_dies(void **state)
{
    (void)state;
    the_joining_thread_ends(true);
}

/* ---- ranks as threads ---- */

struct thread_rank { pthread_t thread; tutti_comm *world; int rank, error[3]; char report[512]; };

static void *runs_as_thread(void *arg)
{
    struct thread_rank *mine = arg;
    const tutti_options options = { .job = job_name, .rank = mine->rank, .size = 3 };
    mine->error[0] = tutti_init(&mine->world, &options);
    if (mine->error[0])
        return NULL;
    for (int i = 0; i < 100 && !mine->error[0]; i++)
        mine->error[0] = tutti_barrier(mine->world, NULL);
    if (mine->rank == 1)
        return NULL;                            /* the end of the thread is the end of its rank */
    mine->error[1] = tutti_barrier(mine->world, NULL);
    snprintf(mine->report, sizeof mine->report, "%s", tutti_explain(mine->world));
    mine->error[2] = tutti_finalize(mine->world);
    return NULL;
}

static void the_end_of_a_thread_is_the_end_of_its_rank(void **state)
{
    (void)state;
    struct thread_rank ranks[3];
    memset(ranks, 0, sizeof ranks);
    snprintf(job_name, sizeof job_name, "process_test.%d.t", (int)getpid());
    setenv("TUTTI_SPAN_BYTES", "16M", 0);
    for (int r = 0; r < 3; r++) {
        ranks[r].rank = r;
        assert_int_equal(pthread_create(&ranks[r].thread, NULL, runs_as_thread, &ranks[r]), 0);
    }
    for (int r = 0; r < 3; r++)
        pthread_join(ranks[r].thread, NULL);
    for (int r = 0; r < 3; r++)
        assert_int_equal(ranks[r].error[0], 0);
    for (int r = 0; r < 3; r += 2) {
        assert_int_equal(ranks[r].error[1], -EOWNERDEAD);
        assert_int_equal(ranks[r].error[2], 0);
        /* One of the two may have met the other's finalize instead: then rank 1 had
         * left as well. */
        assert_non_null(strstr(ranks[r].report, " left"));
    }
}

/* ---- without futex_waitv ---- */

static int forbid(unsigned number, unsigned error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -errno;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : -errno;
}

static int forbidden_with;

static int lives_under_a_filter(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    mine->error[2] = forbid(NUMBER_OF_FUTEX_WAITV, (unsigned)forbidden_with);
    for (int i = 0; i < 200; i++) {
        int32_t x = rank + i, y = 0;
        mine->error[0] |= tutti_all_reduce(&x, &y, 1, TUTTI_I32, TUTTI_SUM, world, NULL);
        mine->wrong += y != 3 + 3 * i;
    }
    team_say(team, rank, READY);
    if (rank == 1)
        team_hear(team, rank, GO);
    mine->error[0] |= tutti_barrier(world, NULL);    /* after some slices asleep */
    if (rank == 1) {
        team_hear(team, rank, GO + 1);
        raise(SIGKILL);
    }
    mine->error[1] = tutti_barrier(world, NULL);     /* asleep when it happens */
    team_note(team, rank, world);
    team_say(team, rank, BACK);
    team_hear(team, rank, END);
    return 0;
}

static void without_futex_waitv(void **state)
{
    (void)state;
    static const int errors[] = { ENOSYS, EPERM };
    for (size_t i = 0; i < 2; i++) {
        forbidden_with = errors[i];
        struct team *team = team_start(3, lives_under_a_filter, true);
        assert_int_equal(team_await(team, 0, READY), 0);
        assert_true(team_is(team, 0, "sleeping"));
        usleep(20000);
        team_tell(team, 1, GO);
        usleep(20000);                  /* and again, so that the others sleep in longer slices */
        team_tell(team, 1, GO + 1);
        for (int r = 0; r < 3; r += 2)
            assert_int_equal(team_await(team, r, BACK), 0);
        team_dismiss(team, END);
        int error = team->rank[0].error[2];
        if (error < 0) {
            team_free(team);
            skip_because("no seccomp filter can be set here (%s)", strerror(-error));
        }
        for (int r = 0; r < 3; r += 2) {
            team_expect(team, r, 0, -EOWNERDEAD);
            assert_int_equal(team->rank[r].wrong, 0);
            assert_non_null(strstr(team->rank[r].report, "killed by signal 9 (SIGKILL)"));
        }
        team_free(team);
    }
}

/* ---- a core dump ---- */

enum { CORE_MIB = 256 };

/* The core goes to a directory of its own that is removed; where cores go to a program, nothing is
 * written at all. */
static int dumps_core(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    mine->error[0] = tutti_barrier(world, NULL);
    if (rank == 1) {
        size_t bytes = (size_t)CORE_MIB << 20;
        char *much = malloc(bytes);
        if (much)
            memset(much, 1, bytes);
        struct rlimit core;
        getrlimit(RLIMIT_CORE, &core);
        core.rlim_cur = core.rlim_max;
        /* where that is 0 there is no core, and the test is about a signal */
        setrlimit(RLIMIT_CORE, &core);
        team_say(team, rank, READY);
        team->number[0] = clock_ns();
        raise(SIGABRT);
    }
    mine->error[0] = tutti_barrier(world, NULL);
    mine->returned_ns = clock_ns();
    team_note(team, rank, world);
    mine->error[1] = tutti_barrier(world, NULL);
    team_say(team, rank, BACK);
    team_hear(team, rank, END);
    return 0;
}

static void a_core_is_dumped(void **state)
{
    (void)state;
    char directory[128], before[4096], command[160];
    assert_non_null(mkdtemp(scratch_name(directory, sizeof directory, "core")));
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(directory), 0);
    struct team *team = team_start(3, dumps_core, true);
    for (int r = 0; r < 3; r += 2)
        assert_int_equal(team_await(team, r, BACK), 0);
    team_dismiss(team, END);
    for (int r = 0; r < 3; r += 2) {
        team_expect(team, r, -EOWNERDEAD, -ECANCELED);
        assert_non_null(strstr(team->rank[r].report, "died, killed by signal 6 (SIGABRT)"));
        assert_int_equal(team->rank[r].failed_count, 1);
    }
    printf("a rank with %d MiB dies%s: peers know after %.1f and %.1f ms\n", CORE_MIB,
           WCOREDUMP(team->status[1]) ? " dumping core" : "",
           (double)(team->rank[0].returned_ns - team->number[0]) / 1e6,
           (double)(team->rank[2].returned_ns - team->number[0]) / 1e6);
    team_free(team);
    assert_int_equal(chdir(before), 0);
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_are_not_ranks), cmocka_unit_test(an_exec_is_a_death),
        cmocka_unit_test(an_exec_by_another_thread_is_a_death),
        cmocka_unit_test(another_thread_calls_on), cmocka_unit_test(and_then_it_dies),
        cmocka_unit_test(the_end_of_a_thread_is_the_end_of_its_rank),
        cmocka_unit_test(without_futex_waitv), cmocka_unit_test(a_core_is_dumped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
