/* ctest: timeout=300 labels=faults serial needs=seccomp */
/* Ranks under seccomp filters, as containers and hardened services have them. What the library only
 * likes to use may be forbidden, by either of the two errors that filters give, to all ranks or to
 * one: everything works, and deaths and deadlines are met. What it cannot do without is forbidden:
 * one error with its remedy, at once. Join, course and death are those of environment.h. */
#include "environment.h"

#include "os/transfer.h"
#include "support/scratch.h"
#include "support/skip.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Older headers lack some of these; the numbers are the same on every architecture from 424 on. */
enum {
    PIDFD_SEND_SIGNAL = 424,
    IO_URING_SETUP,
    IO_URING_ENTER,
    IO_URING_REGISTER,
    PIDFD_OPEN = 434,
    PIDFD_GETFD = 438,
    FUTEX_WAITV = 449,
    CACHESTAT = 451,
    RANKS = 4,
    ALL = -1
};

static struct {
    char job[64];
    const long *calls;
    size_t n;
    int error, only, join_ms;
    unsigned later;
    bool less;                                       /* advice on memory as gVisor takes it */
    enum { SEALED, NEVER_SEALED, NEVER_TOLD } seals;
} scene;

static int joins(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    const tutti_options options = {
        .job = scene.job, .rank = rank, .size = team->size, .join_timeout_ms = scene.join_ms
    };
    if (scene.later & 1u << rank)
        team_hear(team, rank, ENV_START);
    if ((scene.only == ALL || scene.only == rank)
        && (env_forbid(scene.calls, scene.n, scene.error) != 0
            || (scene.less && env_advise_less() != 0)
            || (scene.seals && env_no_seals(scene.seals == NEVER_TOLD) != 0)))
        return 9;
    mine->error[ENV_INIT] = tutti_init(&world, &options);
    int r = env_life(world, rank, team, 1, env_killed);
    if (mine->error[ENV_INIT] < 0 && scene.only == ALL)
        /* or another one that had knocked here would take this rank for dead */
        team_hear(team, rank, ENV_END);
    return r;
}

/* only: the rank under the filter, or ALL. later: a bit for each rank that waits to be told
 * to start. */
static struct team *start(const long *calls, size_t n, int error, int only, unsigned later)
{
    scene.calls = calls;
    scene.n = n;
    scene.error = error;
    scene.only = only;
    scene.later = later;
    snprintf(scene.job, sizeof scene.job, "%s", env_job());
    return team_start_named(RANKS, joins, true);
}

static void need_filters(void)
{
    static const long none = -1;
    pid_t pid = fork();
    int status = 0;
    if (pid == 0)
        _exit(env_forbid(&none, 1, EPERM) != 0);
    waitpid(pid, &status, 0);
    if (status)
        skip_because("no seccomp filter can be set here");
}

static const long liked[] = {
    FUTEX_WAITV, PIDFD_OPEN, PIDFD_GETFD, PIDFD_SEND_SIGNAL, SYS_membarrier, IO_URING_SETUP,
    IO_URING_ENTER, IO_URING_REGISTER
};
enum { LIKED = sizeof liked / sizeof liked[0] };

/* What Docker's profile forbids by default, to containers without capabilities: of what ranks could
 * like to use, all. Older profiles know neither futex_waitv nor cachestat. */
static const long docker[] = {
    SYS_get_mempolicy, SYS_set_mempolicy, SYS_mbind, SYS_move_pages, SYS_process_vm_readv,
    SYS_process_vm_writev, SYS_kcmp, SYS_perf_event_open, SYS_userfaultfd, SYS_setns, SYS_unshare,
    PIDFD_GETFD, IO_URING_SETUP, IO_URING_ENTER, IO_URING_REGISTER, FUTEX_WAITV, CACHESTAT
};
enum { DOCKER = sizeof docker / sizeof docker[0] };

/* What gVisor does not have, as its table of system calls says, by default. */
static const long gvisor[] = {
    PIDFD_OPEN, PIDFD_GETFD, PIDFD_SEND_SIGNAL, IO_URING_SETUP, IO_URING_ENTER, IO_URING_REGISTER,
    FUTEX_WAITV, CACHESTAT, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_move_pages,
    SYS_perf_event_open, SYS_userfaultfd
};
enum { GVISOR = sizeof gvisor / sizeof gvisor[0] };

static void works(const long *calls, size_t n, int only)
{
    static const int errors[] = { ENOSYS, EPERM };
    struct env_traces before;
    need_filters();
    for (int i = 0; i < 2; i++) {
        env_look(&before);
        env_see_through(start(calls, n, errors[i], only, 0), 1, "signal 9");
        env_expect_nothing_new(&before);
    }
}

static void without_futex_waitv(void **state)
{
    (void)state;
    works(&liked[0], 1, ALL);
}

static void without_pidfds(void **state)
{
    (void)state;
    works(&liked[1], 3, ALL);
}

static void without_membarrier(void **state)
{
    (void)state;
    works(&liked[4], 1, ALL);
}

static void without_io_uring(void **state)
{
    (void)state;
    works(&liked[5], 3, ALL);
}

/* The same results through threads, and the reason is known to whoever asks. All three calls
 * forbidden, or only that a ring is used. */
static int files(tutti_comm *world, int rank, struct team *team)
{
    enum { BYTES = 700001 };
    const char *why, *path = scene.job;
    unsigned char *mine = malloc(BYTES);
    const void *data;
    size_t bytes;
    if (!mine || env_forbid(scene.calls, scene.n, scene.error) != 0)
        return 9;
    for (size_t i = 0; i < BYTES; i++)
        mine[i] = (unsigned char)(i * 31 >> 3);
    if (strcmp(transfer_way(&why), "threads")
        || !strstr(why, scene.error == EPERM ? "Operation not permitted" : "not implemented"))
        return 8;
    team->rank[rank].error[0] = tutti_save(path, mine, BYTES, world, NULL);
    team->rank[rank].error[1] = tutti_load(path, &data, &bytes, world, NULL);
    if (team->rank[rank].error[1] == 0)
        team->rank[rank].wrong = bytes != BYTES || memcmp(data, mine, BYTES) != 0;
    free(mine);
    return 0;
}

static void files_without_io_uring(void **state)
{
    (void)state;
    need_filters();
    for (int way = 0; way < 4; way++) {
        char path[64];
        int fd = mkstemp(scratch_name(path, sizeof path, "filter"));
        assert_true(fd >= 0);
        close(fd);
        scene.calls = &liked[way & 1 ? 6 : 5];
        scene.n = way & 1 ? 1 : 3;
        scene.error = way & 2 ? EPERM : ENOSYS;
        snprintf(scene.job, sizeof scene.job, "%s", path);
        struct team *team = team_start(3, files, true);
        assert_int_equal(team_end(team), 0);
        for (int p = 0; p < 3; p++) {
            assert_int_equal(team->status[p], 0);
            assert_int_equal(team->rank[p].error[0], 0);
            assert_int_equal(team->rank[p].error[1], 0);
            assert_int_equal(team->rank[p].wrong, 0);
        }
        team_free(team);
        unlink(path);
    }
}

/* The arena is made all the same. */
static void without_seals(void **state)
{
    static const long none = -1;
    (void)state;
    for (scene.seals = NEVER_SEALED; scene.seals <= NEVER_TOLD; scene.seals++)
        works(&none, 1, ALL);
    scene.seals = SEALED;
}

static void under_docker_s_profile(void **state)
{
    (void)state;
    works(docker, DOCKER, ALL);
}

static void under_gvisor_s_kernel(void **state)
{
    (void)state;
    scene.less = true;
    works(gvisor, GVISOR, ALL);
    scene.less = false;
}

/* Its page is not wiped: a child of fork() is told by the handler of forks. */
static int forks_unwiped(tutti_comm *world, int rank, struct team *team)
{
    const tutti_options options = { .job = scene.job, .rank = rank, .size = team->size };
    int status = 1, r = env_advise_less() == 0 ? tutti_init(&world, &options) : 9;
    if (r < 0)
        return 8;
    pid_t pid = fork();
    if (pid == 0)
        _exit(tutti_barrier(world, NULL) != -ECHILD || tutti_set_timeout(world, 1) != -ECHILD);
    waitpid(pid, &status, 0);
    team->rank[rank].wrong = status != 0;
    team->rank[rank].error[0] = tutti_barrier(world, NULL);
    return r == 0 && tutti_finalize(world) == 0 ? 0 : 7;
}

static void forks_where_no_page_is_wiped(void **state)
{
    (void)state;
    need_filters();
    snprintf(scene.job, sizeof scene.job, "%s", env_job());
    struct team *team = team_start_named(2, forks_unwiped, true);
    assert_int_equal(team_end(team), 0);
    for (int p = 0; p < 2; p++) {
        assert_int_equal(team->status[p], 0);
        assert_int_equal(team->rank[p].error[0], 0);
        assert_int_equal(team->rank[p].wrong, 0);
    }
    team_free(team);
}

static void without_any_of_them(void **state)
{
    (void)state;
    works(liked, LIKED, ALL);
}

static void without_any_of_them_on_one_rank(void **state)
{
    (void)state;
    for (int only = 0; only < 3; only++)
        works(liked, LIKED, only);
}

/* ---- what it cannot do without ---- */

static const long needed[] = { SYS_memfd_create };

static void expect_remedy(const char *report, int error)
{
    if (!strstr(report, "memfd_create") || !strstr(report, "seccomp")
        || !strstr(report, error == EPERM ? "Operation not permitted" : "not implemented"))
        fail_msg("no cause and remedy in: %s", report);
}

/* All ranks fail by themselves: nobody waits for the others' deadline, which is a minute. */
static void nobody_may_make_an_arena(void **state)
{
    (void)state;
    static const int errors[] = { ENOSYS, EPERM };
    struct env_traces before;
    need_filters();
    for (int i = 0; i < 2; i++) {
        env_look(&before);
        struct team *team = start(needed, 1, errors[i], ALL, 0);
        for (int r = 0; r < RANKS; r++)
            assert_int_equal(team_await(team, r, ENV_BACK), 0);
        for (int r = 0; r < RANKS; r++)
            team_tell(team, r, ENV_END);
        assert_int_equal(team_end(team), 0);
        for (int r = 0; r < RANKS; r++) {
            assert_int_equal(team->status[r], 0);
            assert_int_equal(team->rank[r].error[ENV_INIT], -errors[i]);
            expect_remedy(team->rank[r].report, errors[i]);
        }
        team_free(team);
        env_expect_nothing_new(&before);
    }
}

/* The one that may not make it comes when another has. */
static void one_may_not_and_need_not(void **state)
{
    (void)state;
    struct env_traces before;
    need_filters();
    env_look(&before);
    struct team *team = start(needed, 1, EPERM, 2, 1u << 2);
    assert_true(env_hosted(scene.job));
    team_tell(team, 2, ENV_START);
    env_see_through(team, 1, "signal 9");
    env_expect_nothing_new(&before);
}

/* It comes first and alone: it fails by itself, and the others learn who did not come when their
 * time to join is over. */
static void one_may_not_and_comes_first(void **state)
{
    (void)state;
    struct env_traces before;
    need_filters();
    env_look(&before);
    scene.join_ms = 300;
    struct team *team = start(needed, 1, EPERM, 2, 0xf & ~(1u << 2));
    scene.join_ms = 0;
    assert_int_equal(team_await(team, 2, ENV_BACK), 0);
    for (int r = 0; r < RANKS; r++)
        team_tell(team, r, ENV_START);
    assert_int_equal(team_end(team), 0);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(team->status[r], 0);
        assert_int_equal(team->rank[r].error[ENV_INIT], r == 2 ? -EPERM : -ETIMEDOUT);
        if (r == 2)
            expect_remedy(team->rank[r].report, EPERM);
        else
            assert_non_null(strstr(team->rank[r].report, "rank 2 did not come"));
    }
    team_free(team);
    env_expect_nothing_new(&before);
}

static int never(tutti_comm *world, void *arg)
{
    (void)arg;
    return world != NULL;
}

/* In a child, which alone has the filter: alone, by tutti_spawn, by the command. */
static int makes_one(int way)
{
    tutti_comm *world;
    char command[512], said[1024] = "";
    if (env_forbid(needed, 1, EPERM) != 0)
        return 2;
    if (way < 2) {
        int r = way == 0 ? tutti_init(&world, NULL) : tutti_spawn(3, never, NULL, NULL, NULL);
        snprintf(said, sizeof said, "%s", tutti_explain(NULL));
        if (r != -EPERM)
            return 3;
    } else {
        snprintf(command, sizeof command, "%s/tutti run -n 3 true 2>&1; echo exit $?",
                 getenv("TUTTI_BUILD"));
        FILE *pipe = popen(command, "r");
        size_t got = pipe ? fread(said, 1, sizeof said - 1, pipe) : 0;
        said[got] = 0;
        if (!pipe || pclose(pipe) != 0 || !strstr(said, "exit 1\n"))
            return 4;
    }
    if (strstr(said, "memfd_create") && strstr(said, "seccomp")
        && strstr(said, "Operation not permitted"))
        return 0;
    fprintf(stderr, "no cause and remedy in: %s\n", said);
    return 5;
}

static void nor_alone_nor_by_spawn_nor_by_the_command(void **state)
{
    (void)state;
    struct env_traces before;
    need_filters();
    env_look(&before);
    for (int way = 0; way < (getenv("TUTTI_BUILD") ? 3 : 2); way++) {
        int status = 0;
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            _exit(makes_one(way));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    env_expect_nothing_new(&before);
}

int main(void)
{
    env_adopt();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_futex_waitv), cmocka_unit_test(without_pidfds),
        cmocka_unit_test(without_membarrier), cmocka_unit_test(without_io_uring),
        cmocka_unit_test(files_without_io_uring), cmocka_unit_test(without_seals),
        cmocka_unit_test(under_docker_s_profile),
        cmocka_unit_test(under_gvisor_s_kernel), cmocka_unit_test(forks_where_no_page_is_wiped),
        cmocka_unit_test(without_any_of_them),
        cmocka_unit_test(without_any_of_them_on_one_rank),
        cmocka_unit_test(nobody_may_make_an_arena), cmocka_unit_test(one_may_not_and_need_not),
        cmocka_unit_test(one_may_not_and_comes_first),
        cmocka_unit_test(nor_alone_nor_by_spawn_nor_by_the_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
