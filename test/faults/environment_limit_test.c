/* ctest: timeout=300 labels=faults serial needs=limit,seccomp */
/* Ranks under limits: no file descriptors or few, no address space, no threads; from the beginning,
 * on one rank or on all, or later. Either everything works, or one error says which limit it was,
 * and the others are told who is missing; with enough for tutti all works. */
#include "environment.h"

#include "support/skip.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* NEEDED: with so many free numbers everything works, whichever rank has them. */
enum { RANKS = 3, NEEDED = 6, MOST = 20, JOIN_MS = 300, PATIENT_MS = 20000, SAID = 4096 };

/* So many numbers are free from now on, above those that are taken. */
static int leave_descriptors(int n)
{
    int first = open("/dev/null", O_RDONLY);
    if (first < 0)
        return -errno;
    close(first);
    const struct rlimit few = { (rlim_t)(first + n), (rlim_t)(first + n) };
    return setrlimit(RLIMIT_NOFILE, &few) == 0 ? 0 : -errno;
}

static int meets(tutti_comm *world, void *arg)
{
    (void)arg;
    return tutti_barrier(world, NULL) == 0 ? 0 : 1;
}

/* ---- few from the beginning: alone, by tutti_spawn ---- */

/* In a child: 0 all worked, 1 it was refused with its reason, else a defect. What was said on
 * stderr lies in `said`. */
static int with_few(int n, bool spawn)
{
    char said[SAID] = "";
    int ends[2], r;
    tutti_comm *world = NULL;
    if (pipe(ends) || dup2(ends[1], STDERR_FILENO) < 0)
        return 2;
    close(ends[1]);
    if (leave_descriptors(n))
        return 3;
    r = spawn ? tutti_spawn(RANKS, meets, NULL, NULL, NULL) : tutti_init(&world, NULL);
    if (r == 0 && !spawn)
        r = tutti_barrier(world, NULL) < 0 || tutti_finalize(world) < 0 ? -EIO : 0;
    if (r == 0)
        return 0;
    size_t at = r < 0 ? (size_t)snprintf(said, sizeof said, "%s", tutti_explain(NULL)) : 0;
    close(STDERR_FILENO);
    ssize_t got = read(ends[0], said + at, sizeof said - 1 - at);
    said[got > 0 ? at + (size_t)got : at] = 0;
    return (r == -EMFILE || (spawn && r > 0)) && strstr(said, "ulimit -n") ? 1 : 4;
}

static void tail_for(bool spawn)
{
    struct env_traces before;
    int results[MOST + 1];
    env_look(&before);
    for (int n = 0; n <= MOST; n++) {
        int status = 0;
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            _exit(with_few(n, spawn));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        results[n] = WEXITSTATUS(status);
        if (results[n] > 1)
            fail_msg("with %d free descriptors: %d", n, results[n]);
    }
    assert_int_equal(results[0], 1);
    for (int n = NEEDED; n <= MOST; n++)
        assert_int_equal(results[n], 0);
    env_expect_nothing_new(&before);
}

static void tail_descriptors_alone(void **state)
{
    (void)state;
    tail_for(false);
}

static void tail_descriptors_for_spawn(void **state)
{
    (void)state;
    tail_for(true);
}

/* ---- few on one rank of a named meeting ---- */

static struct { char job[64]; int few, poor, join_ms; bool first, address; } scene;

static int joins(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    const tutti_options options = {
        .job = scene.job, .rank = rank, .size = team->size, .join_timeout_ms = scene.join_ms
    };
    if ((rank == scene.poor) != scene.first)
        team_hear(team, rank, ENV_START);
    if (rank == scene.poor && scene.address) {
        const struct rlimit little = { (rlim_t)32 << 20, (rlim_t)32 << 20 };
        if (setrlimit(RLIMIT_AS, &little))
            return 9;
    } else if (rank == scene.poor && leave_descriptors(scene.few))
        return 9;
    mine->error[ENV_INIT] = tutti_init(&world, &options);
    return env_life(world, rank, team, 1, env_killed);
}

static void start_the_others(struct team *team)
{
    for (int r = 0; r < RANKS; r++)
        if ((r == scene.poor) != scene.first)
            team_tell(team, r, ENV_START);
}

/* The poor rank comes first and is the host, or last. It has what it needs. */
static void enough(bool first)
{
    struct env_traces before;
    env_look(&before);
    for (int poor = 0; poor < 2; poor++) {           /* rank 1 is the one that dies later */
        scene.few = NEEDED;
        scene.poor = poor;
        scene.first = first;
        scene.join_ms = PATIENT_MS;
        snprintf(scene.job, sizeof scene.job, "%s", env_job());
        struct team *team = team_start_named(RANKS, joins, true);
        assert_true(env_hosted(scene.job));
        start_the_others(team);
        /* a rank without descriptors hears the reason from the parent alone: at times too late */
        (poor == 1 ? env_see_through : env_starve_through)(team, 1, "signal 9");
    }
    env_expect_nothing_new(&before);
}

static void enough_descriptors_for_a_host(void **state)
{
    (void)state;
    enough(true);
}

static void enough_descriptors_for_a_guest(void **state)
{
    (void)state;
    enough(false);
}

/* It has not: it says so, and the others say that it did not come. */
static void expect_missing(struct team *team, int error, const char *remedy)
{
    assert_int_equal(team_end(team), 0);
    for (int r = 0; r < RANKS; r++) {
        const struct team_rank *rank = &team->rank[r];
        assert_int_equal(team->status[r], 0);
        bool right = r == scene.poor
            ? rank->error[ENV_INIT] == error && strstr(rank->report, remedy)
            : rank->error[ENV_INIT] == -ETIMEDOUT && strstr(rank->report, "did not come");
        if (!right)
            fail_msg("rank %d of which rank %d has %d left (%s): %d, %s", r, scene.poor, scene.few,
                     scene.first ? "first" : "last", rank->error[ENV_INIT], rank->report);
    }
    team_free(team);
}

static void too_few_descriptors_for_one(void **state)
{
    (void)state;
    struct env_traces before;
    env_look(&before);
    scene.poor = 1;
    scene.join_ms = JOIN_MS;
    for (scene.few = 0; scene.few < 2; scene.few++)
        for (int first = 0; first < 2; first++) {
            scene.first = first;
            snprintf(scene.job, sizeof scene.job, "%s", env_job());
            struct team *team = team_start_named(RANKS, joins, true);
            if (first)
                assert_int_equal(team_await(team, scene.poor, ENV_BACK), 0);
            else
                assert_true(env_hosted(scene.job));
            start_the_others(team);
            expect_missing(team, -EMFILE, "ulimit -n");
        }
    env_expect_nothing_new(&before);
}

/* A host with a place for the arena and none for guests: they knock in vain, and it can say so. It
 * stays until they have given up. */
static void a_host_that_cannot_let_in(void **state)
{
    (void)state;
    struct env_traces before;
    env_look(&before);
    scene.few = 2;
    scene.poor = 1;
    scene.first = true;
    scene.join_ms = JOIN_MS;
    snprintf(scene.job, sizeof scene.job, "%s", env_job());
    struct team *team = team_start_named(RANKS, joins, true);
    assert_true(env_hosted(scene.job));
    start_the_others(team);
    assert_int_equal(team_end(team), 0);
    assert_int_equal(team->rank[1].error[ENV_INIT], -ETIMEDOUT);
    assert_non_null(strstr(team->rank[1].report, "could not be let in"));
    assert_non_null(strstr(team->rank[1].report, "ulimit -n"));
    for (int r = 0; r < RANKS; r += 2) {
        int error = team->rank[r].error[ENV_INIT];
        /* the host may have ended before they gave up */
        assert_true(error == -ETIMEDOUT || error == -EOWNERDEAD);
        assert_true(team->rank[r].report[0]);
    }
    team_free(team);
    env_expect_nothing_new(&before);
}

/* ---- none any more, once the world is there ---- */

static int loses_all(tutti_comm *world, int rank, struct team *team)
{
    const struct rlimit none = { 0, 0 };
    return setrlimit(RLIMIT_NOFILE, &none) == 0 ? env_life(world, rank, team, 1, env_killed) : 9;
}

/* How the dead one ended, /proc cannot be asked; its parent may say so, if it does soon. */
static void no_descriptors_later(void **state)
{
    (void)state;
    struct env_traces before;
    env_look(&before);
    env_see_through(team_start(RANKS, loses_all, true), 1, "");
    env_expect_nothing_new(&before);
}

/* ---- address space ---- */

static void no_address_space(void **state)
{
    (void)state;
    struct env_traces before;
    if (team_sanitized())
        skip_because("a sanitizer needs the address space itself");
    env_look(&before);
    scene.address = true;
    scene.poor = 1;
    scene.join_ms = JOIN_MS;
    for (int first = 0; first < 2; first++) {
        scene.first = first;
        snprintf(scene.job, sizeof scene.job, "%s", env_job());
        struct team *team = team_start_named(RANKS, joins, true);
        if (first)
            assert_int_equal(team_await(team, scene.poor, ENV_BACK), 0);
        else
            assert_true(env_hosted(scene.job));
        start_the_others(team);
        expect_missing(team, -ENOMEM, "ulimit -v");
    }
    scene.address = false;
    env_expect_nothing_new(&before);
}

/* ---- threads ---- */

static const long threads[] = { SYS_clone, SYS_clone3 };

/* Work needs a thread. Where none can be had, starting it is an error for all: the comm fails, with
 * the reason. */
static int without_threads(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    tutti_work *work = (tutti_work *)(void *)mine;
    if (env_forbid(threads, 2, EAGAIN) != 0)
        return 9;
    mine->error[0] = tutti_barrier(world, &(tutti_call){ .work = &work });
    mine->number[0] = work == NULL;
    team_note(team, rank, world);
    mine->error[1] = tutti_barrier(world, NULL);
    mine->error[2] = tutti_finalize(world);
    return 0;
}

static void no_threads(void **state)
{
    (void)state;
    struct env_traces before;
    env_look(&before);
    struct team *team = team_start(RANKS, without_threads, true);
    assert_int_equal(team_end(team), 0);
    if (WIFEXITED(team->status[0]) && WEXITSTATUS(team->status[0]) == 9) {
        team_free(team);
        skip_because("no seccomp filter can be set here");
    }
    for (int r = 0; r < RANKS; r++) {
        const struct team_rank *rank = &team->rank[r];
        if (team->status[r] || rank->error[0] != -EAGAIN || !rank->number[0]
            || !strstr(rank->report, "thread") || rank->error[1] != -ECANCELED || rank->error[2])
            fail_msg("rank %d: status 0x%x, start of work %d, then %d and %d; %s", r,
                     (unsigned)team->status[r], rank->error[0], rank->error[1], rank->error[2],
                     rank->report);
    }
    team_free(team);
    env_expect_nothing_new(&before);
}

int main(void)
{
    env_adopt();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tail_descriptors_alone), cmocka_unit_test(tail_descriptors_for_spawn),
        cmocka_unit_test(enough_descriptors_for_a_host),
        cmocka_unit_test(enough_descriptors_for_a_guest),
        cmocka_unit_test(too_few_descriptors_for_one), cmocka_unit_test(a_host_that_cannot_let_in),
        cmocka_unit_test(no_descriptors_later), cmocka_unit_test(no_address_space),
        cmocka_unit_test(no_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
