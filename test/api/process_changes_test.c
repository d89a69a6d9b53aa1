/* ctest: timeout=300 labels=faults,nosan serial needs=populate */
/* What the process around us does to itself, at any time: it closes descriptors, forks, loads and
 * unloads, ends its main thread, calls from its last handlers, is run by memcheck. What it may do:
 * process_rights_test. */
#include "changed_process.h"

#include "base/clock.h"
#include "group/comm.h"
#include "support/skip.h"
#include "watch/death.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- it closes what it has not opened ---- */

enum { FIRST = 3, NUMBERS = 300 };
static const char theirs[] = "the program's";
static bool replaced[NUMBERS];

/* Each number that was open is a pipe of the program's, with something in it: readable, as the
 * descriptor of a dead process is. */
static int closes_all(tutti_comm *world, int rank, struct team *team)
{
    (void)team;
    for (uint32_t p = 0; p < RANKS; p++)
        if ((int)p != rank)
            /* which keeps a descriptor of it */
            OR_LINE(!death_without_mark(&world->world->whole->watch, p, true));
    for (int fd = FIRST; fd < NUMBERS; fd++)
        if (fcntl(fd, F_GETFD) >= 0) {
            replaced[fd] = true;
            close(fd);
        }
    int pipes[2], high = NUMBERS;
    for (int fd = FIRST; fd < NUMBERS; fd++) {
        if (!replaced[fd])
            continue;
        OR_LINE(pipe2(pipes, O_CLOEXEC) == 0
                && write(pipes[1], theirs, sizeof theirs) == sizeof theirs);
        int in = fcntl(pipes[0], F_DUPFD, high), out = fcntl(pipes[1], F_DUPFD, high);
        OR_LINE(in >= high && out >= high);
        close(pipes[0]);
        close(pipes[1]);
        OR_LINE(dup2(in, fd) == fd);
        close(in);                      /* the other end stays, or ours would be read to its end */
    }
    return 0;
}

static int none_was_touched(int rank)
{
    int wrong = 0;
    for (int fd = FIRST; fd < NUMBERS; fd++) {
        char is[sizeof theirs] = "";
        if (!replaced[fd] || (read(fd, is, sizeof is) == sizeof is && !strcmp(is, theirs)))
            continue;
        fprintf(stderr, "rank %d: descriptor %d of the program was read or closed: %s\n", rank, fd,
                strerror(errno));
        wrong++;
    }
    return wrong;
}

static void test_closes_all(void **state)
{
    (void)state;
    changed_through((struct change){ .after = closes_all, .last = none_was_touched }, NULL, NULL);
    changed_through((struct change){ .after = closes_all, .last = none_was_touched }, changed_pulls,
                    NULL);
}

/* ---- it forks children that live on ---- */

static const char arena_name[] = "/memfd:tutti";

/* Nothing of any arena is in that process: neither mapped nor open. */
static bool holds_no_arena(pid_t pid)
{
    char path[300], line[1024];
    bool none = true;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    while (maps && fgets(line, sizeof line, maps))
        none &= !strstr(line, arena_name);
    if (maps)
        fclose(maps);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *open_ones = opendir(path);
    for (struct dirent *e; open_ones && (e = readdir(open_ones));) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, e->d_name);
        ssize_t n = readlink(path, line, sizeof line - 1);
        line[n > 0 ? n : 0] = 0;
        none &= !strstr(line, arena_name);
    }
    if (open_ones)
        closedir(open_ones);
    return none && maps && open_ones;
}

/* What is the parent's is refused; a world of its own can be had. */
static int child_is_no_rank(tutti_comm *world, tutti_work *work)
{
    tutti_comm *own;
    uint64_t handle;
    int x = 1;
    tutti_figures f;
    OR_LINE(tutti_barrier(world, NULL) == -ECHILD
            && tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL) == -ECHILD);
    OR_LINE(!tutti_alloc(4096, world) && tutti_free(&x, world) == -ECHILD
            && tutti_handle(&x, &handle, world) == -ECHILD);
    OR_LINE(!tutti_view(1, world) && !tutti_view_readonly(1, world)
            && tutti_register(&x, 4096, world) == -ECHILD);
    OR_LINE(tutti_set("k", "v", 1, world) == -ECHILD && tutti_add("k", 1, NULL, world) == -ECHILD
            && tutti_delete("k", world) == -ECHILD);
    OR_LINE(tutti_send(&x, 1, TUTTI_I32, 0, 0, world, NULL) == -ECHILD
            && tutti_comm_shrink(world, &own) == -ECHILD);
    OR_LINE(tutti_comm_agree(world, &x) == -ECHILD && tutti_comm_abort(world, "no") == -ECHILD
            && tutti_failed(world, NULL, 0) == -ECHILD);
    OR_LINE(tutti_stats(world, &f) == -ECHILD && tutti_explain(world) && tutti_rank(world) >= 0);
    OR_LINE(tutti_finalize(world) == -ECHILD);
    tutti_seed(1, world);
    tutti_test(work);
    OR_LINE(tutti_init(&own, NULL) == 0);
    world = own;
    OR_LINE(tutti_barrier(world, NULL) == 0 && tutti_finalize(world) == 0);
    return 0;
}

static int alive[2];                                 /* the writing end is the test's alone */

/* A child that ends by exit, one that lives on, and a child of that one: their numbers are for
 * the test. */
static int leaves_children(tutti_comm *world, int rank, struct team *team)
{
    int ends[2], status = 0;
    pid_t pid;
    tutti_work *work;
    close(alive[1]);
    char *kept = tutti_alloc(1 << 20, world);
    OR_LINE(kept);
    memset(kept, 1, 1 << 20);
    OR_LINE(tutti_barrier(world, &(tutti_call){ .work = &work }) == 0);
    OR_LINE((pid = fork()) >= 0);
    if (pid == 0)
        exit(child_is_no_rank(world, work) != 0);
    OR_LINE(waitpid(pid, &status, 0) == pid && status == 0);
    OR_LINE(pipe2(ends, O_CLOEXEC) == 0);
    OR_LINE((pid = fork()) >= 0);
    if (pid == 0) {
        pid_t next = fork();
        pid_t who = getpid();
        if (write(ends[1], &who, sizeof who) != sizeof who || next < 0)
            _exit(1);
        char byte;
        _exit(read(alive[0], &byte, 1) != 0);        /* until the test is over */
    }
    for (int i = 0; i < 2; i++) {
        pid_t who;
        OR_LINE(read(ends[0], &who, sizeof who) == sizeof who);
        team->rank[rank].number[i] = (uint64_t)who;
        OR_LINE(holds_no_arena(who));
    }
    close(ends[0]);
    close(ends[1]);
    OR_LINE(tutti_wait(work, 0) == 0);
    return 0;
}

static int ends_by_exit(tutti_comm *world, int rank, struct team *team)
{
    int r = leaves_children(world, rank, team);
    exit(r != 0);
}

static void take_children(struct team *team)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < 2; i++) {
            pid_t pid = (pid_t)team->rank[r].number[i];
            if (pid <= 0)
                continue;
            assert_true(holds_no_arena(pid));
            kill(pid, SIGKILL);
        }
}

static void test_children_live_on(void **state)
{
    (void)state;
    assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
    changed_through((struct change){ .after = leaves_children }, NULL, take_children);
    struct team *team = team_start(RANKS, ends_by_exit, true);       /* ranks of tutti_spawn */
    int hung = team_end(team);
    for (int r = 0; r < RANKS; r++)
        if (hung || team->status[r])
            fail_msg("rank %d ended with status 0x%x\n%s", r, (unsigned)team->status[r],
                     team_stderr(team));
    take_children(team);
    team_free(team);
    close(alive[0]);
    close(alive[1]);
}

/* ---- it loads the library, and unloads it ---- */

struct plugin {
    void *handle;
    int (*init)(void **world, const void *options), (*finalize)(const char *site, void *world);
    int (*barrier)(const char *site, void *world, const tutti_call *call),
        (*wait)(const char *site, tutti_work *work, int ms);
};

static int load(struct plugin *l)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/libtutti.so.0", getenv("TUTTI_BUILD"));
    l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!l->handle) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&l->init = dlsym(l->handle, "tutti_init");
    *(void **)&l->finalize = dlsym(l->handle, "tutti_finalize_at");
    *(void **)&l->barrier = dlsym(l->handle, "tutti_barrier_at");
    *(void **)&l->wait = dlsym(l->handle, "tutti_wait_at");
    return !l->init || !l->finalize || !l->barrier || !l->wait;
}

/* Its world stays open, if leave is NULL. */
static void *uses_it(void *leave)
{
    struct plugin l;
    void *world;
    tutti_work *work;
    if (load(&l) || l.init(&world, NULL) || l.barrier("here:1", world, NULL)
        || l.barrier("here:2", world, &(tutti_call){ .work = &work }) || l.wait("here:3", work, 0)
        || (leave && l.finalize("here:4", world)))
        return NULL;
    dlclose(l.handle);
    return &changed;
}

static int loads_and_unloads(void)
{
    enum { TIMES = 6 };
    for (int i = 0; i < TIMES; i++) {
        pthread_t thread;
        void *well = NULL;
        int status;
        if (i % 2 == 0)
            well = uses_it(i < TIMES - 2 ? &changed : NULL);
        else if (pthread_create(&thread, NULL, uses_it, i < TIMES - 2 ? &changed : NULL) == 0)
            pthread_join(thread, &well);
        pid_t pid = fork();
        if (pid == 0)
            exit(0);
        if (!well || waitpid(pid, &status, 0) != pid || status)
            return 1 + i;
    }
    return 0;
}

static void test_loads_and_unloads(void **state)
{
    (void)state;
    int status;
    if (!getenv("TUTTI_BUILD"))
        skip_because("TUTTI_BUILD does not say where the library is");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        exit(loads_and_unloads());              /* and what has been registered for the end runs */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- it loads a library whose constructor waits for a thread at work, and forks ---- */

enum { FORKS = 20 };
static struct { tutti_comm *world; int rank, size, r; } at_work;

static int begins_another(void)
{
    char job[80];
    tutti_comm *world;
    const tutti_options options = { .job = job, .rank = at_work.rank, .size = at_work.size };
    snprintf(job, sizeof job, "%s-another", changed.job);
    OR_LINE(tutti_init(&world, &options) == 0);
    OR_LINE(changed_course(world, at_work.rank) == 0);
    return tutti_finalize(world);
}

static void *works(void *arg)
{
    at_work.r = changed_course(at_work.world, at_work.rank);
    if (!at_work.r)
        at_work.r = begins_another();
    return arg;
}

__attribute__((visibility("default"))) void in_constructor(void);
void in_constructor(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, works, NULL))
        return;
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        waitpid(pid, NULL, 0);
    }
    pthread_join(thread, NULL);
}

static int loads_what_waits(tutti_comm *world, int rank, struct team *team)
{
    at_work.world = world;
    at_work.rank = rank;
    at_work.size = team->size;
    at_work.r = -1;
    void *library = dlopen(TEST_CONSTRUCTOR, RTLD_NOW);
    OR_LINE(library && at_work.r == 0);
    dlclose(library);
    return 0;
}

static void test_constructor_waits(void **state)
{
    (void)state;
    changed_through((struct change){ .after = loads_what_waits }, NULL, NULL);
}

/* ---- its main thread ends before it (pthread_exit), which makes it look like a zombie ---- */

enum { MAIN_IS_OVER = 1, HAVE_LOOKED };
struct rest { tutti_comm *world; int rank; struct team *team; };

static int rest_of_life(const struct rest *rest)
{
    tutti_comm *world = rest->world;
    int rank = rest->rank;
    struct process_id main_thread = world->world->self;
    for (uint64_t end = clock_ns() + TEAM_PATIENCE_S * UINT64_C(1000000000);
         strcmp(process_state(&main_thread, NULL), "zombie"); sched_yield())
        OR_LINE(clock_ns() < end);
    for (uint32_t step = MAIN_IS_OVER; step <= HAVE_LOOKED; step++) {
        team_say(rest->team, rank, step);
        for (int p = 0; p < RANKS; p++)
            OR_LINE(team_await(rest->team, p, step) == 0);
        for (uint32_t p = 0; p < RANKS; p++)
            OR_LINE((int)p == rank || !death_without_mark(&world->world->whole->watch, p, true));
    }
    if (changed_course(world, rank))
        return 6;
    OR_LINE(tutti_barrier(world, NULL) == 0);
    if (rank == VICTIM)
        raise(SIGKILL);
    rest->team->rank[rank].error[0] = tutti_barrier(world, NULL);
    return tutti_finalize(world);
}

static void *lives_on(void *rest) { _exit(rest_of_life(rest)); }

static int main_ends(tutti_comm *world, int rank, struct team *team)
{
    static struct rest rest;
    pthread_t thread;
    rest = (struct rest){ world, rank, team };
    OR_LINE(pthread_create(&thread, NULL, lives_on, &rest) == 0);
    pthread_exit(NULL);
}

static void test_main_thread_ends(void **state)
{
    (void)state;
    changed_through((struct change){ .after = main_ends }, NULL, NULL);
}

/* ---- it calls from a handler of its end, behind the library's own ---- */

static struct rest last;

static void calls_at_the_end(void)
{
    int x = 1;
    struct team_rank *mine = &last.team->rank[last.rank];
    mine->error[1] = tutti_barrier(last.world, NULL);
    mine->error[2] = tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, last.world, NULL);
    mine->error[3] = tutti_set("k", "v", 1, last.world);
    mine->number[0] = tutti_alloc(4096, last.world) != NULL;
    mine->error[4] = tutti_finalize(last.world);
    team_say(last.team, last.rank, 1);
}

/* Handlers run backwards: the library's, which leaves the world, comes first. */
static int ends_in_handlers(tutti_comm *world, int rank, struct team *team)
{
    const tutti_options options = { .job = changed.job, .rank = rank, .size = team->size };
    /* nothing has been begun */
    OR_LINE(tutti_barrier(NULL, NULL) == -EINVAL && !tutti_alloc(1, NULL)
            && tutti_finalize(NULL) == -EINVAL);
    atexit(calls_at_the_end);
    if (tutti_init(&world, &options))
        return 2;
    last = (struct rest){ world, rank, team };
    if (changed_course(world, rank))
        return 3;
    if (rank == 0)
        exit(0);
    /* met by the one of rank 0's handler, or not */
    team->rank[rank].error[0] = tutti_barrier(world, NULL);
    exit(0);
}

static int all_end_in_handlers(tutti_comm *world, int rank, struct team *team)
{
    const tutti_options options = { .job = changed.job, .rank = rank, .size = team->size };
    atexit(calls_at_the_end);
    if (tutti_init(&world, &options))
        return 2;
    last = (struct rest){ world, rank, team };
    exit(changed_course(world, rank));
}

/* All or none of those who call, and none waits for ever. */
static void test_calls_at_the_end(void **state)
{
    (void)state;
    team_body *const bodies[] = { ends_in_handlers, all_end_in_handlers };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        snprintf(changed.job, sizeof changed.job, "acts-end-%d-%zu", (int)getpid(), i);
        changed.change = (struct change){ 0 };
        struct team *team = team_start_named(RANKS, bodies[i], true);
        int hung = team_end(team), done = 0, reduced = 0;
        for (int r = 0; r < RANKS; r++) {
            if (hung || team->status[r] || load_acquire32(&team->rank[r].step) != 1)
                fail_msg("rank %d ended with status 0x%x%s\n%s", r, (unsigned)team->status[r],
                         hung ? "; it hangs" : "", team_stderr(team));
            done += team->rank[r].error[i == 0 && r ? 0 : 1] == 0;
            reduced += i && team->rank[r].error[2] == 0;
        }
        assert_true(done == 0 || done == RANKS);
        assert_true(reduced == 0 || reduced == RANKS);
        team_free(team);
    }
}

/* ---- it is run by memcheck ---- */

enum { SPAN_MIB = 512, CHECKED_MOST = SPAN_MIB << 20, COMPLAINTS = 77 };

/* A rank of two; the program itself, started anew. */
static int is_checked(const char *job)
{
    tutti_comm *world;
    const tutti_options options = { .job = job, .rank = 1, .size = 2 };
    float x[SMALL] = { 1 };
    if (tutti_init(&world, &options) < 0) {
        fprintf(stderr, "%s\n", tutti_explain(NULL));
        return 1;
    }
    OR_LINE(tutti_all_reduce(x, x, SMALL, TUTTI_F32, TUTTI_SUM, world, NULL) == 0 && x[0] == 2);
    char *mine = tutti_alloc(1 << 20, world);
    OR_LINE(mine && tutti_free(mine, world) == 0);
    OR_LINE(tutti_barrier(world, NULL) == 0);
    return 0;                               /* the world stays open while leaks are looked for */
}

static void test_memcheck(void **state)
{
    (void)state;
    char job[64], span[16], self[4096] = "";
    int status;
    struct stat arena;
    tutti_comm *world;
    float x[SMALL] = { 1 };
    if (system("command -v valgrind > /dev/null 2>&1"))
        skip_because("valgrind is not there");
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(job, sizeof job, "acts-checked-%d", (int)getpid());
    snprintf(span, sizeof span, "%dM", SPAN_MIB);
    setenv("TUTTI_SPAN_BYTES", span, 1);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("valgrind", "valgrind", "-q", "--error-exitcode=77", "--leak-check=full",
               "--errors-for-leak-kinds=none", self, job, (char *)NULL);
        _exit(1);
    }
    const tutti_options options = { .job = job, .rank = 0, .size = 2 };
    assert_int_equal(tutti_init(&world, &options), 0);
    assert_int_equal(tutti_all_reduce(x, x, SMALL, TUTTI_F32, TUTTI_SUM, world, NULL), 0);
    assert_int_equal(tutti_barrier(world, NULL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_not_equal(status, COMPLAINTS << 8);
    assert_int_equal(status, 0);
    assert_int_equal(fstat(arena_fd(&world->world->arena), &arena), 0);
    print_message("the arena holds %lld MiB\n", (long long)arena.st_blocks * 512 >> 20);
    /* less than one of the spans: the store and what else is slept on */
    assert_true((long long)arena.st_blocks * 512 < CHECKED_MOST);
    assert_int_equal(tutti_finalize(world), 0);
    setenv("TUTTI_SPAN_BYTES", "64M", 1);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return is_checked(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closes_all), cmocka_unit_test(test_loads_and_unloads),
        cmocka_unit_test(test_constructor_waits),
        cmocka_unit_test(test_memcheck), cmocka_unit_test(test_children_live_on),
        cmocka_unit_test(test_main_thread_ends), cmocka_unit_test(test_calls_at_the_end),
    };
    return cmocka_run_group_tests(tests, changed_begin, changed_end);
}
