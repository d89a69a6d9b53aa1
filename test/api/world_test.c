/* ctest: timeout=300 labels=tsan serial */
/* Coming and going: init, finalize, spawn, and the ways in which a rank's end is told from its
 * death. The environment is this process's own business here, so each test sets what it needs and
 * takes it back. */
#include "base/knob.h"
#include "group/comm.h"
#include "support/ranks.h"
#include "support/resources.h"
#include "support/skip.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const launchers[] = {
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
    "TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
    "SLURM_PROCID", "SLURM_NTASKS",
};

static int clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++)
        unsetenv(launchers[i]);
    for (int i = 0; i < KNOB_COUNT; i++)
        unsetenv(knob_row((enum knob_id)i)->name);
    setenv("TUTTI_SPAN_BYTES", "16M", 1);
    return 0;
}

static void test_alone(void **state)
{
    tutti_comm *world = NULL;
    int x = 41;
    (void)state;
    assert_int_equal(tutti_init(&world, NULL), 0);
    assert_int_equal(tutti_rank(world), 0);
    assert_int_equal(tutti_size(world), 1);
    assert_string_equal(tutti_explain(world), "");
    assert_int_equal(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
    assert_int_equal(x, 41);
    assert_int_equal(tutti_barrier(world, NULL), 0);
    assert_int_equal(tutti_finalize(world), 0);
    assert_int_equal(tutti_init(NULL, NULL), -EINVAL);
    assert_true(strlen(tutti_explain(NULL)) > 10);
    assert_int_equal(tutti_finalize(NULL), -EINVAL);
    assert_int_equal(tutti_rank(NULL), -EINVAL);
    assert_int_equal(tutti_size(NULL), -EINVAL);
}

/* Again and again, with comms, keys, staging and a progress thread in it: nothing is left,
 * whichever thread ends it. */
static void one_life(void)
{
    tutti_comm *world, *part;
    tutti_work *work;
    float x[2000] = { 0 };
    assert_int_equal(tutti_init(&world, NULL), 0);
    assert_int_equal(tutti_comm_split(world, 0, 0, &part), 0);
    assert_int_equal(tutti_first_begin("k", part, NULL), 1);
    assert_int_equal(tutti_all_reduce(x, x, 2000, TUTTI_F32, TUTTI_SUM, part, NULL), 0);
    assert_int_equal(tutti_all_reduce(x, x, 2000, TUTTI_F32, TUTTI_SUM, world,
                                      &(tutti_call){ .work = &work }),
                     0);
    assert_int_equal(tutti_wait(work, 0), 0);
    assert_int_equal(tutti_finalize(world), 0);
}

static void test_again_and_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        one_life();
    int fds = resources_descriptors(), maps = resources_arena_maps();
    for (int i = 0; i < ranks_many(200, 30); i++)
        one_life();
    assert_int_equal(resources_descriptors(), fds);
    assert_int_equal(resources_arena_maps(), maps);
    assert_int_equal(maps, 0);
}

static void *end_it(void *world) { return (void *)(intptr_t)tutti_finalize(world); }

static int body_other_thread(tutti_comm *world, int rank)
{
    pthread_t thread;
    void *result;
    if (rank == 0) {
        CHECK_IS(pthread_create(&thread, NULL, end_it, world), 0);
        pthread_join(thread, &result);
        return (int)(intptr_t)result;
    }
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    CHECK(strstr(tutti_explain(world), "rank 0") && strstr(tutti_explain(world), "left"));
    return 0;
}

static void test_finalize_elsewhere(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_other_thread, 0), 0);
}

/* An abort of another thread is under way, on the world or a comm of it: finalize waits for that
   one's end. It waits by yielding, which its thread's CPU time shows. */
struct ender { bool of_world; shared32 *aborting; shared32 ready, done; int result; };

static void *live_and_end(void *arg)
{
    struct ender *e = arg;
    tutti_comm *world, *comm;
    e->result = tutti_init(&world, NULL);
    if (e->result == 0)
        e->result = tutti_comm_split(world, 0, 0, &comm);
    if (e->result == 0) {
        e->aborting = e->of_world ? &world->aborting : &comm->aborting;
        fetch_add32(e->aborting, 1);                 /* what tutti_comm_abort does first */
        store_release32(&e->ready, 1);
        e->result = tutti_finalize(world);
    }
    store_release32(&e->done, 1);
    return NULL;
}

static uint64_t ran_ns(pthread_t thread)
{
    clockid_t clock;
    struct timespec ran = { 0, 0 };
    if (pthread_getcpuclockid(thread, &clock) == 0)
        clock_gettime(clock, &ran);
    return (uint64_t)ran.tv_sec * 1000000000u + (uint64_t)ran.tv_nsec;
}

static void finalize_waits(bool of_world)
{
    enum { ENOUGH_NS = 10000000 };
    struct ender e = { .of_world = of_world };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, live_and_end, &e), 0);
    while (!load_acquire32(&e.ready) && !load_acquire32(&e.done))
        sched_yield();
    uint64_t before = ran_ns(thread);
    while (!load_acquire32(&e.done) && ran_ns(thread) - before < ENOUGH_NS)
        sched_yield();
    assert_int_equal(load_acquire32(&e.done), 0);
    fetch_sub32(e.aborting, 1);                      /* and last */
    pthread_join(thread, NULL);
    assert_int_equal(e.result, 0);
}

static void test_finalize_awaits_aborts(void **state)
{
    (void)state;
    finalize_waits(true);
    finalize_waits(false);
}

static void expect_refused(const char *name, const char *value, const char *words)
{
    tutti_comm *world = (tutti_comm *)(void *)&world;
    setenv(name, value, 1);
    int r = tutti_init(&world, NULL);
    if (r != -EINVAL || world || !strstr(tutti_explain(NULL), name)
        || !strstr(tutti_explain(NULL), words))
        fprintf(stderr, "%s=%s: %d, \"%s\"\n", name, value, r, tutti_explain(NULL));
    assert_int_equal(r, -EINVAL);
    assert_null(world);
    /* the sentence names the variable and says what it expected */
    assert_non_null(strstr(tutti_explain(NULL), name));
    assert_non_null(strstr(tutti_explain(NULL), words));
    unsetenv(name);
}

static void test_bad_knobs(void **state)
{
    (void)state;
    int fds = resources_descriptors();
    expect_refused("TUTTI_TIMEOUT_MS", "soon", "duration");
    expect_refused("TUTTI_TIMEOUT_MS", "-7", "duration");
    expect_refused("TUTTI_JOIN_TIMEOUT_MS", "1 fortnight", "duration");
    expect_refused("TUTTI_WARN_MS", "x", "duration");
    expect_refused("TUTTI_SPIN_US", "abc", "integer");
    expect_refused("TUTTI_SPIN_US", "1000001", "1000000");
    expect_refused("TUTTI_FLAGS", "bind_cores", "bind_core");
    expect_refused("TUTTI_FLAGS", "1024", "bind_core");
    expect_refused("TUTTI_ISA", "mmx", "plain, avx2, avx512 or neon");
    expect_refused("TUTTI_SPAN_BYTES", "many", "size");
    setenv("TUTTI_SPAN_BYTES", "16M", 1);
    expect_refused("TUTTI_SIZE", "0", "integer");
    expect_refused("TUTTI_SIZE", "two", "integer");
    expect_refused("TUTTI_RANK", "first", "integer");
    expect_refused("TUTTI_ALGORITHM", "all_reduce:-inf=magic", "magic");
    expect_refused("TUTTI_ALGORITHM", "nonsense", "nonsense");
    expect_refused("TUTTI_FAULT", "nobody", "nobody");
    expect_refused("TUTTI_FAULT", "0:barrier#1:explode", "explode");
    expect_refused("TUTTI_FIRST_SEQ", "-1", "integer");
    assert_int_equal(resources_descriptors(), fds);
    assert_int_equal(resources_arena_maps(), 0);
    setenv("TUTTI_SIZE", "2", 1);
    expect_refused("TUTTI_RANK", "x", "integer");
    unsetenv("TUTTI_SIZE");
}

static void test_bad_options(void **state)
{
    tutti_comm *world;
    (void)state;
    tutti_options o = { .size = 2 };
    assert_int_equal(tutti_init(&world, &o), -EINVAL);
    assert_non_null(strstr(tutti_explain(NULL), "give options.job"));
    o = (tutti_options){ .job = "j", .size = 2, .rank = 2 };
    assert_int_equal(tutti_init(&world, &o), -EINVAL);
    assert_non_null(strstr(tutti_explain(NULL), "rank 2"));
    o = (tutti_options){ .job = "j", .size = 2, .rank = -1 };
    assert_int_equal(tutti_init(&world, &o), -EINVAL);
    o = (tutti_options){ .job = "j", .size = 100000 };
    assert_int_equal(tutti_init(&world, &o), -EINVAL);
    o = (tutti_options){ .job = "j", .size = -3 };
    assert_int_equal(tutti_init(&world, &o), -EINVAL);
    o = (tutti_options){ .flags = 1u << 20 };
    assert_int_equal(tutti_init(&world, &o), -EINVAL);
    assert_non_null(strstr(tutti_explain(NULL), "flags"));
    o = (tutti_options){ .reserved = { [3] = 1 } };
    assert_int_equal(tutti_init(&world, &o), -EINVAL);
    assert_non_null(strstr(tutti_explain(NULL), "reserved[3]"));
    assert_null(world);
}

/* An option that is not 0 over its variable, that over the default; each seen where it
 * takes effect. */
static void test_precedence(void **state)
{
    tutti_comm *world;
    tutti_options o = { .timeout_ms = 1234, .warn_ms = -1 };
    (void)state;
    setenv("TUTTI_TIMEOUT_MS", "2s", 1);
    setenv("TUTTI_WARN_MS", "3s", 1);
    assert_int_equal(tutti_init(&world, &o), 0);
    assert_true(world->watch.timeout_ns == 1234 * INT64_C(1000000) && world->watch.warn_ns == -1);
    assert_int_equal(tutti_set_timeout(world, 7), 0);
    assert_true(world->watch.timeout_ns == 7000000);
    assert_int_equal(tutti_set_timeout(world, 0), 0);
    assert_true(world->watch.timeout_ns == 1234 * INT64_C(1000000));
    assert_int_equal(tutti_set_timeout(world, -1), 0);
    assert_true(world->watch.timeout_ns == -1);
    assert_int_equal(tutti_finalize(world), 0);
    assert_int_equal(tutti_init(&world, NULL), 0);
    assert_true(world->watch.timeout_ns == 2000 * INT64_C(1000000)
                && world->watch.warn_ns == 3000 * INT64_C(1000000));
    assert_int_equal(tutti_finalize(world), 0);
    unsetenv("TUTTI_TIMEOUT_MS");
    unsetenv("TUTTI_WARN_MS");
    assert_int_equal(tutti_init(&world, NULL), 0);
    assert_true(world->watch.timeout_ns == 1800 * INT64_C(1000000000)
                && world->watch.warn_ns == 30 * INT64_C(1000000000));
    /* Whoever gives as much gives a deadline, which the default is not. */
    assert_false(timeout_given(world->watch.timeout_ns));
    assert_int_equal(tutti_set_timeout(world, 30 * 60 * 1000), 0);
    assert_true(timeout_given(world->watch.timeout_ns)
                && world->watch.timeout_ns / 1000000 == 30 * 60 * 1000);
    assert_int_equal(tutti_set_timeout(world, 0), 0);
    assert_false(timeout_given(world->watch.timeout_ns));
    assert_int_equal(tutti_set_timeout(world, -1), 0);
    assert_false(timeout_given(world->watch.timeout_ns));
    assert_int_equal(tutti_finalize(world), 0);
    /* The launcher says two ranks, the variable one, the option another: nobody would come if the
     * wrong one won. */
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", "1", 1);
    setenv("TUTTI_JOB", ranks_job(), 1);
    setenv("TUTTI_SIZE", "1", 1);
    setenv("TUTTI_RANK", "0", 1);
    setenv("TUTTI_JOIN_TIMEOUT_MS", "50", 1);
    assert_int_equal(tutti_init(&world, NULL), 0);
    assert_int_equal(tutti_size(world), 1);
    assert_int_equal(tutti_finalize(world), 0);
    o = (tutti_options){ .job = ranks_job(), .size = 2, .rank = 1 };
    assert_int_equal(tutti_init(&world, &o), -ETIMEDOUT);
    assert_non_null(strstr(tutti_explain(NULL), "rank 0 did not come within 50 ms"));
    clean(NULL);
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", "1", 1);
    setenv("TUTTI_JOIN_TIMEOUT_MS", "50", 1);
    assert_int_equal(tutti_init(&world, NULL), -ETIMEDOUT);
    assert_non_null(strstr(tutti_explain(NULL), "rank 0"));
    clean(NULL);
}

static int spawn_codes(tutti_comm *world, void *arg)
{
    (void)arg;
    return tutti_rank(world) == 0 ? 0 : tutti_rank(world) == 1 ? 3 : 256 + 7;
}

static int spawn_signal(tutti_comm *world, void *arg)
{
    (void)arg;
    if (tutti_rank(world) == 0)
        ranks_die();
    /* a killed rank does not end the others */
    return tutti_barrier(world, NULL) == -EOWNERDEAD ? 0 : 1;
}

static int spawn_for_ever(tutti_comm *world, void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return tutti_rank(world);
}

static int spawn_prints(tutti_comm *world, void *arg)
{
    FILE *f = arg;
    fprintf(f, "%d", tutti_rank(world));        /* stays in the buffer until the end flushes it */
    return 0;
}

static void test_spawn(void **state)
{
    int status[3] = { -1, -1, -1 };
    (void)state;
    int fds = resources_descriptors();
    assert_int_equal(tutti_spawn(3, spawn_codes, NULL, NULL, status), 2);
    assert_true(WIFEXITED(status[0]) && WEXITSTATUS(status[0]) == 0);
    assert_true(WIFEXITED(status[1]) && WEXITSTATUS(status[1]) == 3);
    assert_true(WIFEXITED(status[2]) && WEXITSTATUS(status[2]) == 7);
    assert_int_equal(tutti_spawn(3, spawn_codes, NULL, NULL, NULL), 2);
    assert_int_equal(tutti_spawn(3, spawn_signal, NULL, NULL, status), 1);
    assert_true(WIFSIGNALED(status[0]) && WTERMSIG(status[0]) == SIGKILL);
    tutti_options o = { .timeout_ms = 100 };
    assert_int_equal(tutti_spawn(2, spawn_for_ever, NULL, &o, status), -ETIMEDOUT);
    assert_true(WIFSIGNALED(status[0]) && WTERMSIG(status[0]) == SIGKILL);
    assert_true(WIFSIGNALED(status[1]) && WTERMSIG(status[1]) == SIGKILL);
    assert_non_null(strstr(tutti_explain(NULL), "100 ms"));
    assert_int_equal(tutti_spawn(0, spawn_codes, NULL, NULL, NULL), -EINVAL);
    assert_int_equal(tutti_spawn(2, NULL, NULL, NULL, NULL), -EINVAL);
    assert_int_equal(tutti_spawn(100000, spawn_codes, NULL, NULL, NULL), -EINVAL);
    o = (tutti_options){ .flags = 1u << 20 };
    assert_int_equal(tutti_spawn(2, spawn_codes, NULL, &o, NULL), -EINVAL);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);        /* no child is left */
    assert_int_equal(resources_descriptors(), fds);
    assert_int_equal(resources_arena_maps(), 0);
    setenv("TUTTI_ALGORITHM", "nonsense", 1);
    /* said once, before any child */
    assert_int_equal(tutti_spawn(2, spawn_codes, NULL, NULL, NULL), -EINVAL);
    assert_non_null(strstr(tutti_explain(NULL), "TUTTI_ALGORITHM"));
    unsetenv("TUTTI_ALGORITHM");
}

static bool ignores_children(void)
{
    struct sigaction now;
    return sigaction(SIGCHLD, NULL, &now) == 0
        && (now.sa_handler == SIG_IGN || (now.sa_flags & SA_NOCLDWAIT));
}

static int spawn_codes_if_ignoring(tutti_comm *world, void *arg)
{
    return ignores_children() ? spawn_codes(world, arg) : 1;
}

static void takes_all(int number)
{
    int error = errno;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) { }
    errno = error;
}

/* An end that was not there to be read is not a good one: of a program that ignores its children's
 * ends, or waits for them itself. */
static void test_spawn_unread(void **state)
{
    struct sigaction old,
        ways[] = { { .sa_handler = SIG_IGN },
                   { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT },
                   { .sa_handler = takes_all, .sa_flags = SA_NOCLDWAIT },
                   { .sa_handler = takes_all } };
    (void)state;
    for (int i = 0; i < 4; i++) {
        int status[3] = { -1, -1, -1 };
        bool taken = ways[i].sa_handler == takes_all;
        sigaction(SIGCHLD, &ways[i], i ? NULL : &old);
        int r = tutti_spawn(3, i < 3 ? spawn_codes_if_ignoring : spawn_codes, NULL, NULL, status);
        if (r != 2) {
            assert_true(taken);
            assert_int_equal(r, -ECHILD);
            assert_non_null(strstr(tutti_explain(NULL), "cannot be known"));
        }
        for (int p = 0; p < 3; p++)
            assert_true((WIFEXITED(status[p]) && WEXITSTATUS(status[p]) == (int[]){ 0, 3, 7 }[p])
                        || (r != 2 && status[p] == 0xffff));
        assert_int_equal(ignores_children(), i < 3);
    }
    sigaction(SIGCHLD, &old, NULL);
}

static void test_spawn_flushes(void **state)
{
    char text[32] = "";
    (void)state;
    FILE *f = tmpfile();
    assert_non_null(f);
    fputs("parent ", f);                                     /* written once, not once per child */
    assert_int_equal(tutti_spawn(3, spawn_prints, f, NULL, NULL), 0);
    rewind(f);
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_int_equal(strlen(text), 10);
    assert_true(!strncmp(text, "parent ", 7) && strchr(text + 7, '0') && strchr(text + 7, '1')
                && strchr(text + 7, '2'));
}

static void test_fork_fails(void **state)
{
    struct rlimit old, none = { 0, 0 };
    (void)state;
    if (geteuid() == 0)
        skip_because("root is not bound by RLIMIT_NPROC");
    assert_int_equal(getrlimit(RLIMIT_NPROC, &old), 0);
    none.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NPROC, &none), 0);
    int r = tutti_spawn(2, spawn_codes, NULL, NULL, NULL);
    setrlimit(RLIMIT_NPROC, &old);
    assert_int_equal(r, -EAGAIN);
    assert_non_null(strstr(tutti_explain(NULL), "fork"));
}

/* By name, processes and threads; init after finalize is a new world of the same job. */
static const char *named_job;

static int named_life(int rank)
{
    tutti_options o = { .job = named_job, .rank = rank, .size = 2 };
    for (int i = 0; i < 3; i++) {
        tutti_comm *world = NULL;
        int x = rank + i;
        CHECK_IS(tutti_init(&world, &o), 0);
        CHECK_IS(tutti_rank(world), rank);
        CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
        CHECK_IS(x, 1 + 2 * i);
        CHECK_IS(tutti_finalize(world), 0);
    }
    return 0;
}

static void *named_thread(void *rank) { return (void *)(intptr_t)named_life((int)(intptr_t)rank); }

static void test_named(void **state)
{
    pid_t child[2];
    pthread_t thread[2];
    (void)state;
    named_job = ranks_job();
    for (int r = 0; r < 2; r++) {
        fflush(NULL);
        child[r] = fork();
        if (child[r] == 0)
            _exit(named_life(r));
    }
    for (int r = 0; r < 2; r++) {
        int status = -1;
        assert_int_equal(waitpid(child[r], &status, 0), child[r]);
        assert_int_equal(status, 0);
    }
    named_job = ranks_job();
    int fds = resources_descriptors();
    for (intptr_t r = 0; r < 2; r++)
        assert_int_equal(pthread_create(&thread[r], NULL, named_thread, (void *)r), 0);
    for (int r = 0; r < 2; r++) {
        void *result;
        pthread_join(thread[r], &result);
        assert_int_equal((intptr_t)result, 0);
    }
    assert_int_equal(resources_descriptors(), fds);
    assert_int_equal(resources_arena_maps(), 0);
}

/* What the two of a job that is named so get from tutti_init. */
static void meet(const char *const name[2], bool by_path, int expected)
{
    pid_t child[2];
    for (int r = 0; r < 2; r++) {
        fflush(NULL);
        child[r] = fork();
        if (child[r] == 0) {
            tutti_options o = {
                .job = by_path ? "one" : name[r], .rank = r, .size = 2,
                .join_timeout_ms = expected ? 200 : 20000
            };
            tutti_comm *world;
            if (by_path)
                setenv("TUTTI_MEET", name[r], 1);
            int error = tutti_init(&world, &o);
            if (error != expected)
                fprintf(stderr, "rank %d: %d %s\n", r, error, tutti_explain(NULL));
            if (error == 0)
                error = tutti_barrier(world, NULL);
            if (error == 0)
                tutti_finalize(world);
            _exit(error != expected);
        }
    }
    for (int r = 0; r < 2; r++) {
        int status = -1;
        assert_int_equal(waitpid(child[r], &status, 0), child[r]);
        assert_int_equal(status, 0);
    }
}

/* Jobs whose names differ do not meet, wherever they differ. */
static void test_long_names(void **state)
{
    char a[600], b[600];
    (void)state;
    for (int by_path = 0; by_path < 2; by_path++) {
        int n = snprintf(a, sizeof a, "%s-%d", ranks_job(), by_path);
        memset(a + n, 'x', 500);
        a[n + 500] = 0;
        strcpy(b, a);
        meet((const char *const[]){ a, b }, by_path, 0);
        b[n + 499] = 'y';
        meet((const char *const[]){ a, b }, by_path, -ETIMEDOUT);
    }
}

/* The ways to go in good order, and the one that is a death: what the rank that waits
 * reads of it. */
static tutti_comm *handler_world;

static void call_from_handler(void) { tutti_finalize(handler_world); }

static int body_ends(tutti_comm *world, int rank)
{
    if (rank == 0)
        return 0;
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    CHECK(strstr(tutti_explain(world), "rank 0"));
    snprintf(page->bytes, 1000, "%s", tutti_explain(world));
    return 0;
}

static int body_exit(tutti_comm *world, int rank)
{
    if (rank == 0)
        exit(0);
    return body_ends(world, rank);
}

static int body_exit_handler(tutti_comm *world, int rank)
{
    if (rank == 0) {
        handler_world = world;
        atexit(call_from_handler);
        exit(0);
    }
    return body_ends(world, rank);
}

static int body_quick(tutti_comm *world, int rank)
{
    if (rank == 0)
        _exit(0);
    return body_ends(world, rank);
}

/* A forked child that exits takes its exit handlers along: they must not say that the rank
 * has left. */
static int body_child_exits(tutti_comm *world, int rank)
{
    if (rank == 0) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            exit(0);
        int status = -1;
        CHECK_IS(waitpid(child, &status, 0), child);
        CHECK_IS(status, 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_ends(void **state)
{
    static ranks_body *const bodies[] = { body_exit, body_ends, body_exit_handler };
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ranks_run(2, bodies[i], 0), 0);
        assert_non_null(strstr(page->bytes, "left"));
        assert_null(strstr(page->bytes, "died"));
    }
    assert_int_equal(ranks_run(2, body_quick, 0), 0);
    assert_non_null(strstr(page->bytes, "died"));
    assert_int_equal(ranks_run(2, body_child_exits, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_alone, clean),
        cmocka_unit_test_setup(test_again_and_again, clean),
        cmocka_unit_test_setup(test_finalize_elsewhere, clean),
        cmocka_unit_test_setup(test_finalize_awaits_aborts, clean),
        cmocka_unit_test_setup(test_bad_knobs, clean),
        cmocka_unit_test_setup(test_bad_options, clean),
        cmocka_unit_test_setup(test_precedence, clean),
        cmocka_unit_test_setup(test_long_names, clean),
        cmocka_unit_test_setup(test_spawn, clean),
        cmocka_unit_test_setup(test_spawn_unread, clean),
        cmocka_unit_test_setup(test_spawn_flushes, clean),
        cmocka_unit_test_setup(test_fork_fails, clean),
        cmocka_unit_test_setup(test_named, clean),
        cmocka_unit_test_setup(test_ends, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
