/* ctest: timeout=300 labels=faults,nosan serial */
/* What the process around us does to itself, at any time: ranks go through every kind of operation, then one or all of them do such a thing, and go
 * through them again; then one is killed, which the others must hear, and leave. */
#include "base/clock.h"
#include "group/comm.h"
#include "support/team.h"
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3, VICTIM = 2, LARGE = 300000, SMALL = 100, LOCKED_MOST = 8 << 20 };

/* before: tutti_init; after: the first course; last: what is to be so when the world is over. 0: well. */
struct act {
    int (*before)(int rank);
    int (*after)(tutti_comm *world, int rank, struct team *team);
    int (*last)(int rank);
    bool no_files;                                   /* what one of them has saved another may not open */
};

static const char pulls[] = "all_reduce:-inf=pull;all_gather:-inf=pull;broadcast:-inf=pull";

static struct { struct act act; char job[64], folder[64]; } scene;

/* ---- the course: 0, or the line of what went wrong ---- */

#define OR_LINE(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: rank %d: %s\n%s\n", __FILE__, __LINE__, tutti_rank(world), #condition, tutti_explain(world)); \
            return __LINE__; \
        } \
    } while (0)

static int large_ones(tutti_comm *world, int rank, float *x, float *y)
{
    for (size_t i = 0; i < LARGE; i++)
        x[i] = (float)(rank + 1);
    OR_LINE(tutti_all_reduce(x, x, LARGE, TUTTI_F32, TUTTI_SUM, world, NULL) == 0);
    for (size_t i = 0; i < LARGE; i++)
        OR_LINE(x[i] == 6);
    for (size_t i = 0; i < LARGE; i++)
        x[i] = (float)rank;
    OR_LINE(tutti_all_gather(x, y, LARGE, TUTTI_F32, world, NULL) == 0);
    for (size_t i = 0; i < (size_t)RANKS * LARGE; i++)
        OR_LINE(y[i] == (float)(i / LARGE));
    OR_LINE(tutti_broadcast(x, LARGE, TUTTI_F32, 1, world, NULL) == 0);
    OR_LINE(x[0] == 1 && x[LARGE - 1] == 1);
    if (rank == 0)
        OR_LINE(tutti_send(y, LARGE, TUTTI_F32, 2, 5, world, NULL) == 0);
    if (rank == 2) {
        memset(x, 1, LARGE * sizeof *x);
        OR_LINE(tutti_recv(x, LARGE, TUTTI_F32, 0, 5, NULL, world, NULL) == 0);
        OR_LINE(x[0] == 0 && x[LARGE - 1] == 0);
    }
    return 0;
}

static int memory_ones(tutti_comm *world, int rank, float *x, float *y)
{
    float *mine = tutti_alloc(LARGE * sizeof *mine, world);
    uint64_t handle;
    OR_LINE(mine);
    for (size_t i = 0; i < LARGE; i++)
        mine[i] = 1;
    OR_LINE(tutti_handle(mine, &handle, world) == 0);
    const float *seen = tutti_view(handle, world);
    OR_LINE(seen && seen[LARGE - 1] == 1);
    OR_LINE(tutti_all_reduce(mine, x, LARGE, TUTTI_F32, TUTTI_SUM, world, NULL) == 0);
    OR_LINE(x[LARGE - 1] == RANKS);
    OR_LINE(tutti_free(mine, world) == 0);
    y[LARGE] = (float)rank;
    OR_LINE(tutti_register(y, 2 * LARGE * sizeof *y, world) == 0);
    OR_LINE(y[LARGE] == (float)rank);
    OR_LINE(tutti_unregister(y, world) == 0);
    OR_LINE(y[LARGE] == (float)rank);
    return 0;
}

static int file_ones(tutti_comm *world, float *x)
{
    char path[100];
    const void *data;
    size_t bytes;
    snprintf(path, sizeof path, "%s/saved", scene.folder);
    OR_LINE(tutti_broadcast(x, LARGE, TUTTI_F32, 0, world, NULL) == 0);
    OR_LINE(tutti_save(path, x, LARGE * sizeof *x, world, NULL) == 0);
    OR_LINE(tutti_load(path, &data, &bytes, world, NULL) == 0);
    OR_LINE(bytes == LARGE * sizeof *x && !memcmp(data, x, bytes));
    OR_LINE(tutti_free((void *)(uintptr_t)data, world) == 0);
    return 0;
}

static int course(tutti_comm *world, int rank)
{
    float *x = malloc(LARGE * sizeof *x), *y = malloc((size_t)RANKS * LARGE * sizeof *y), small[SMALL];
    tutti_comm *part;
    tutti_work *work;
    char key[16];
    int64_t ticket;
    OR_LINE(x && y);
    for (int i = 0; i < SMALL; i++)
        small[i] = 1;
    OR_LINE(tutti_barrier(world, NULL) == 0);
    OR_LINE(tutti_all_reduce(small, small, SMALL, TUTTI_F32, TUTTI_SUM, world, NULL) == 0);
    OR_LINE(small[SMALL - 1] == RANKS);
    OR_LINE(tutti_comm_split(world, 0, 0, &part) == 0);
    OR_LINE(tutti_all_reduce(small, small, SMALL, TUTTI_F32, TUTTI_SUM, part, &(tutti_call){ .work = &work }) == 0);
    OR_LINE(tutti_wait(work, 0) == 0);
    OR_LINE(small[0] == RANKS * RANKS);
    OR_LINE(tutti_comm_free(part) == 0);
    int r = large_ones(world, rank, x, y);
    if (!r)
        r = memory_ones(world, rank, x, y);
    if (!r && !scene.act.no_files)
        r = file_ones(world, x);
    free(x);
    free(y);
    snprintf(key, sizeof key, "key%d", rank);
    OR_LINE(tutti_set(key, key, sizeof key, world) == 0);
    OR_LINE(tutti_add("ticket", 1, &ticket, world) == 0);
    return r;
}

/* ---- the ranks ---- */

static int life(tutti_comm *none, int rank, struct team *team)
{
    (void)none;
    tutti_comm *world;
    const tutti_options options = { .job = scene.job, .rank = rank, .size = team->size };
    if (scene.act.before && scene.act.before(rank))
        return 2;
    int r = tutti_init(&world, &options);
    if (r < 0) {
        snprintf(team->rank[rank].report, TEAM_TEXT, "%s", tutti_explain(NULL));
        fprintf(stderr, "rank %d: tutti_init: %d %s\n", rank, r, tutti_explain(NULL));
        return 3;
    }
    if (course(world, rank))
        return 4;
    if (scene.act.after && scene.act.after(world, rank, team))
        return 5;
    if (course(world, rank))
        return 6;
    OR_LINE(tutti_barrier(world, NULL) == 0);
    if (rank == VICTIM)
        raise(SIGKILL);
    team->rank[rank].error[0] = tutti_barrier(world, NULL);
    team_note(team, rank, world);
    OR_LINE(tutti_finalize(world) == 0);
    return scene.act.last ? scene.act.last(rank) : 0;
}

static void (*at_the_end)(struct team *team);        /* if all was well */

static void through(struct act act, const char *rule)
{
    static int count;
    scene.act = act;
    snprintf(scene.job, sizeof scene.job, "acts-%d-%d", (int)getpid(), count++);
    if (rule)
        setenv("TUTTI_ALGORITHM", rule, 1);
    struct team *team = team_start_named(RANKS, life, true);
    unsetenv("TUTTI_ALGORITHM");
    int hung = team_end(team);
    for (int r = 0; r < RANKS; r++) {
        int wanted = r == VICTIM ? SIGKILL : 0;
        if (hung || team->status[r] != wanted || (r != VICTIM && team->rank[r].error[0] != -EOWNERDEAD)) {
            fail_msg("rank %d ended with status 0x%x, hears of the death by %d%s\n%s\n%s", r, (unsigned)team->status[r], team->rank[r].error[0],
                     hung ? "; it hangs" : "", team->rank[r].report, team_stderr(team));
        }
    }
    if (at_the_end)
        at_the_end(team);
    team_free(team);
}

/* ---- it closes what it has not opened ---- */

enum { FIRST = 3, NUMBERS = 300 };
static const char theirs[] = "the program's";
static bool replaced[NUMBERS];

/* Each number that was open is a pipe of the program's, with something in it: readable, as the descriptor of a dead process is. */
static int closes_all(tutti_comm *world, int rank, struct team *team)
{
    (void)team;
    for (uint32_t p = 0; p < RANKS; p++)
        if ((int)p != rank)
            OR_LINE(!death_without_mark(&world->world->whole->watch, p, true));      /* which keeps a descriptor of it */
    for (int fd = FIRST; fd < NUMBERS; fd++)
        if (fcntl(fd, F_GETFD) >= 0) {
            replaced[fd] = true;
            close(fd);
        }
    int pipes[2], high = NUMBERS;
    for (int fd = FIRST; fd < NUMBERS; fd++) {
        if (!replaced[fd])
            continue;
        OR_LINE(pipe2(pipes, O_CLOEXEC) == 0 && write(pipes[1], theirs, sizeof theirs) == sizeof theirs);
        int in = fcntl(pipes[0], F_DUPFD, high), out = fcntl(pipes[1], F_DUPFD, high);
        OR_LINE(in >= high && out >= high);
        close(pipes[0]);
        close(pipes[1]);
        OR_LINE(dup2(in, fd) == fd);
        close(in);                                   /* the other end stays, or ours would be read to its end */
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
        fprintf(stderr, "rank %d: descriptor %d of the program was read or closed: %s\n", rank, fd, strerror(errno));
        wrong++;
    }
    return wrong;
}

static void test_closes_all(void **state)
{
    (void)state;
    through((struct act){ .after = closes_all, .last = none_was_touched }, NULL);
    through((struct act){ .after = closes_all, .last = none_was_touched }, pulls);
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
    OR_LINE(tutti_barrier(world, NULL) == -ECHILD && tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL) == -ECHILD);
    OR_LINE(!tutti_alloc(4096, world) && tutti_free(&x, world) == -ECHILD && tutti_handle(&x, &handle, world) == -ECHILD);
    OR_LINE(!tutti_view(1, world) && !tutti_view_readonly(1, world) && tutti_register(&x, 4096, world) == -ECHILD);
    OR_LINE(tutti_set("k", "v", 1, world) == -ECHILD && tutti_add("k", 1, NULL, world) == -ECHILD && tutti_delete("k", world) == -ECHILD);
    OR_LINE(tutti_send(&x, 1, TUTTI_I32, 0, 0, world, NULL) == -ECHILD && tutti_comm_shrink(world, &own) == -ECHILD);
    OR_LINE(tutti_comm_agree(world, &x) == -ECHILD && tutti_comm_abort(world, "no") == -ECHILD && tutti_failed(world, NULL, 0) == -ECHILD);
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

/* A child that ends by exit, one that lives on, and a child of that one: their numbers are for the test. */
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
    at_the_end = take_children;
    assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
    through((struct act){ .after = leaves_children }, NULL);
    struct team *team = team_start(RANKS, ends_by_exit, true);       /* ranks of tutti_spawn */
    int hung = team_end(team);
    for (int r = 0; r < RANKS; r++)
        if (hung || team->status[r])
            fail_msg("rank %d ended with status 0x%x\n%s", r, (unsigned)team->status[r], team_stderr(team));
    take_children(team);
    team_free(team);
    at_the_end = NULL;
    close(alive[0]);
    close(alive[1]);
}

/* ---- it locks all memory that it has and will have ---- */

static long status_kib(const char *name)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)))
            kib = strtol(line + strlen(name), NULL, 10);
    if (f)
        fclose(f);
    return kib;
}

static int locks_all(int rank)
{
    (void)rank;
    return mlockall(MCL_CURRENT | MCL_FUTURE);
}

static int little_is_memory(tutti_comm *world, int rank, struct team *team)
{
    (void)team;
    (void)rank;
    long mine = status_kib("RssShmem:");
    OR_LINE(mine >= 0 && mine < 65536);              /* three spans of 64 MiB, of which each rank has used little */
    return 0;
}

/* A user whose limit leaves some pages for books and none for a span, nor for the stack of a thread: blocking calls. */
static int locked_user(tutti_comm *world, int rank, struct team *team)
{
    const struct rlimit limit = { LOCKED_MOST, LOCKED_MOST };
    const tutti_options options = { .job = scene.job, .rank = rank, .size = team->size };
    int x = 1;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) || setgid(65534) || setuid(65534) || mlockall(MCL_FUTURE))
        return 2;
    int r = tutti_init(&world, &options);
    if (r < 0) {
        fprintf(stderr, "rank %d: %d %s\n", rank, r, tutti_explain(NULL));
        return 3;
    }
    OR_LINE(tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, world, NULL) == 0 && x == RANKS);
    if (little_is_memory(world, rank, team))
        return 4;
    return tutti_finalize(world);
}

/* The same without a page left: said, and not tried again until a deadline. */
static int locked_out(tutti_comm *world, int rank, struct team *team)
{
    const struct rlimit limit = { 0, 0 };
    const tutti_options options = { .job = scene.job, .rank = rank, .size = team->size, .join_timeout_ms = -1 };
    if (setgid(65534) || setuid(65534) || mlockall(MCL_FUTURE) || setrlimit(RLIMIT_MEMLOCK, &limit))
        return 2;
    int r = tutti_init(&world, &options);
    if (r < 0 && strstr(tutti_explain(NULL), "mlockall"))
        return 0;
    fprintf(stderr, "rank %d: %d %s\n", rank, r, tutti_explain(NULL));
    return 3;
}

static void test_locks_all(void **state)
{
    (void)state;
    team_body *const bodies[] = { locked_user, locked_out };
    if (geteuid() != 0)
        skip();
    through((struct act){ .before = locks_all, .after = little_is_memory }, NULL);
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        snprintf(scene.job, sizeof scene.job, "acts-locked-%d-%zu", (int)getpid(), i);
        struct team *team = team_start_named(bodies[i] == locked_out ? 1 : RANKS, bodies[i], true);
        int hung = team_end(team);
        for (int r = 0; r < team->size; r++)
            if (hung || team->status[r])
                fail_msg("rank %d ended with status 0x%x\n%s", r, (unsigned)team->status[r], team_stderr(team));
        team_free(team);
    }
}

/* ---- it gives its rights away ---- */

static int becomes_another(tutti_comm *world, int rank, struct team *team)
{
    (void)team;
    gid_t group = 65534 - (gid_t)rank;
    if (rank == 1)
        OR_LINE(prctl(PR_SET_DUMPABLE, 0) == 0);
    else
        OR_LINE(setgid(group) == 0 && setuid(group) == 0);
    return 0;
}

static void test_drops_privileges(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    through((struct act){ .after = becomes_another, .no_files = true }, NULL);
    through((struct act){ .after = becomes_another, .no_files = true }, pulls);
}

/* ---- it lives in a namespace of its own ---- */

static struct { int flags; unsigned who; const char *file, *text; } apart;

/* Namespaces of time and processes are for children: the rank is a child from here on, and whoever it was ends as it does. */
static int goes_apart(int rank)
{
    int status;
    if (!(apart.who >> rank & 1))
        return 0;
    if (unshare(apart.flags))
        return -1;
    int fd = apart.file ? open(apart.file, O_WRONLY | O_CLOEXEC) : -1;
    if (apart.file && (fd < 0 || write(fd, apart.text, strlen(apart.text)) < 0))
        return -1;
    close(fd);
    pid_t pid = fork();
    if (pid == 0)
        return prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        _exit(9);
    if (WIFSIGNALED(status))
        raise(WTERMSIG(status));
    _exit(WEXITSTATUS(status));
}

static bool can_go_apart(int flags)
{
    pid_t pid = fork();
    int status = 1;
    if (pid == 0)
        _exit(unshare(flags) != 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* A life lasts for seconds, whatever the clocks show. */
static int figures_are_of_now(tutti_comm *world, int rank, struct team *team)
{
    (void)team;
    const uint64_t minutes = UINT64_C(600000000000);
    tutti_figures f;
    OR_LINE(tutti_stats(world, &f) == 0);
    OR_LINE(f.wait_ns < minutes && f.fold_ns < minutes);
    for (uint32_t p = 0; p < RANKS; p++)
        if ((int)p != rank)
            OR_LINE(!death_without_mark(&world->world->whole->watch, p, true));
    return 0;
}

static void test_other_clock(void **state)
{
    (void)state;
    enum { NEW_TIME = 0x80 };                        /* CLONE_NEWTIME, which some headers lack */
    if (!can_go_apart(NEW_TIME))
        skip();
    for (unsigned who = 1; who < 1u << RANKS; who++) {
        apart.flags = NEW_TIME;
        apart.who = who;
        apart.file = "/proc/self/timens_offsets";
        apart.text = "monotonic 100000 5000\nboottime 100000 5000\n";
        through((struct act){ .before = goes_apart, .after = figures_are_of_now }, NULL);
    }
}

/* ---- it loads the library, and unloads it ---- */

struct plugin {
    void *library;
    int (*init)(void **world, const void *options), (*finalize)(const char *site, void *world);
    int (*barrier)(const char *site, void *world, const tutti_call *call), (*wait)(const char *site, tutti_work *work, int ms);
};

static int load(struct plugin *l)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/libtutti.so.0", getenv("TUTTI_BUILD"));
    l->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!l->library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&l->init = dlsym(l->library, "tutti_init");
    *(void **)&l->finalize = dlsym(l->library, "tutti_finalize_at");
    *(void **)&l->barrier = dlsym(l->library, "tutti_barrier_at");
    *(void **)&l->wait = dlsym(l->library, "tutti_wait_at");
    return !l->init || !l->finalize || !l->barrier || !l->wait;
}

/* Its world stays open, if leave is NULL. */
static void *uses_it(void *leave)
{
    struct plugin l;
    void *world;
    tutti_work *work;
    if (load(&l) || l.init(&world, NULL) || l.barrier("here:1", world, NULL) || l.barrier("here:2", world, &(tutti_call){ .work = &work })
        || l.wait("here:3", work, 0) || (leave && l.finalize("here:4", world)))
        return NULL;
    dlclose(l.library);
    return &scene;
}

static int loads_and_unloads(void)
{
    enum { TIMES = 6 };
    for (int i = 0; i < TIMES; i++) {
        pthread_t thread;
        void *well = NULL;
        int status;
        if (i % 2 == 0)
            well = uses_it(i < TIMES - 2 ? &scene : NULL);
        else if (pthread_create(&thread, NULL, uses_it, i < TIMES - 2 ? &scene : NULL) == 0)
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
        skip();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        exit(loads_and_unloads());                   /* and what has been registered for the end runs */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void test_other_user_namespace(void **state)
{
    (void)state;
    if (geteuid() != 0 || !can_go_apart(CLONE_NEWUSER))
        skip();
    apart.flags = CLONE_NEWUSER;
    apart.who = 1u << 1;
    apart.file = "/proc/self/uid_map";
    apart.text = "0 0 1\n";
    through((struct act){ .before = goes_apart }, NULL);
    through((struct act){ .before = goes_apart }, pulls);
}

/* Names of sockets are of a network namespace; a path is not. */
static void test_other_network(void **state)
{
    (void)state;
    char path[100];
    if (!can_go_apart(CLONE_NEWNET))
        skip();
    snprintf(path, sizeof path, "%s/meet", scene.folder);
    setenv("TUTTI_MEET", path, 1);
    apart.flags = CLONE_NEWNET;
    apart.file = NULL;
    for (apart.who = 1; apart.who < 1u << RANKS; apart.who++)
        through((struct act){ .before = goes_apart }, NULL);
    unsetenv("TUTTI_MEET");
}

/* ---- its main thread ends before it (pthread_exit), which makes it look like a zombie ---- */

enum { MAIN_IS_OVER = 1, HAVE_LOOKED };
struct rest { tutti_comm *world; int rank; struct team *team; };

static int rest_of_life(const struct rest *rest)
{
    tutti_comm *world = rest->world;
    int rank = rest->rank;
    struct process_id main_thread = world->world->self;
    for (uint64_t end = clock_ns() + TEAM_PATIENCE_S * UINT64_C(1000000000); strcmp(process_state(&main_thread, NULL), "zombie"); sched_yield())
        OR_LINE(clock_ns() < end);
    for (uint32_t step = MAIN_IS_OVER; step <= HAVE_LOOKED; step++) {
        team_say(rest->team, rank, step);
        for (int p = 0; p < RANKS; p++)
            OR_LINE(team_await(rest->team, p, step) == 0);
        for (uint32_t p = 0; p < RANKS; p++)
            OR_LINE((int)p == rank || !death_without_mark(&world->world->whole->watch, p, true));
    }
    if (course(world, rank))
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
    through((struct act){ .after = main_ends }, NULL);
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
    const tutti_options options = { .job = scene.job, .rank = rank, .size = team->size };
    OR_LINE(tutti_barrier(NULL, NULL) == -EINVAL && !tutti_alloc(1, NULL) && tutti_finalize(NULL) == -EINVAL);       /* nothing has been begun */
    atexit(calls_at_the_end);
    if (tutti_init(&world, &options))
        return 2;
    last = (struct rest){ world, rank, team };
    if (course(world, rank))
        return 3;
    if (rank == 0)
        exit(0);
    team->rank[rank].error[0] = tutti_barrier(world, NULL);      /* met by the one of rank 0's handler, or not */
    exit(0);
}

static int all_end_in_handlers(tutti_comm *world, int rank, struct team *team)
{
    const tutti_options options = { .job = scene.job, .rank = rank, .size = team->size };
    atexit(calls_at_the_end);
    if (tutti_init(&world, &options))
        return 2;
    last = (struct rest){ world, rank, team };
    exit(course(world, rank));
}

/* All or none of those who call, and none waits for ever. */
static void test_calls_at_the_end(void **state)
{
    (void)state;
    team_body *const bodies[] = { ends_in_handlers, all_end_in_handlers };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        snprintf(scene.job, sizeof scene.job, "acts-end-%d-%zu", (int)getpid(), i);
        scene.act = (struct act){ 0 };
        struct team *team = team_start_named(RANKS, bodies[i], true);
        int hung = team_end(team), done = 0, reduced = 0;
        for (int r = 0; r < RANKS; r++) {
            if (hung || team->status[r] || load_acquire32(&team->rank[r].step) != 1)
                fail_msg("rank %d ended with status 0x%x%s\n%s", r, (unsigned)team->status[r], hung ? "; it hangs" : "", team_stderr(team));
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
    return 0;                                        /* the world stays open while leaks are looked for */
}

static void test_memcheck(void **state)
{
    (void)state;
    char job[64], span[16], self[4096] = "";
    int status;
    struct stat arena;
    tutti_comm *world;
    float x[SMALL] = { 1 };
    if (system("command -v valgrind > /dev/null 2>&1")) {
        print_message("valgrind is not there: not looked at\n");
        skip();
    }
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(job, sizeof job, "acts-checked-%d", (int)getpid());
    snprintf(span, sizeof span, "%dM", SPAN_MIB);
    setenv("TUTTI_SPAN_BYTES", span, 1);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("valgrind", "valgrind", "-q", "--error-exitcode=77", "--leak-check=full", "--errors-for-leak-kinds=none", self, job,
               (char *)NULL);
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
    assert_true((long long)arena.st_blocks * 512 < CHECKED_MOST);       /* less than one of the spans: the store and what else is slept on */
    assert_int_equal(tutti_finalize(world), 0);
    setenv("TUTTI_SPAN_BYTES", "64M", 1);
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(scene.folder, "/tmp/tutti-acts-XXXXXX");
    setenv("TUTTI_SPAN_BYTES", "64M", 1);
    return mkdtemp(scene.folder) && chmod(scene.folder, 0777) == 0 ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    char path[100];
    snprintf(path, sizeof path, "%s/saved", scene.folder);
    unlink(path);
    return rmdir(scene.folder);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return is_checked(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closes_all), cmocka_unit_test(test_loads_and_unloads),
        cmocka_unit_test(test_memcheck), cmocka_unit_test(test_children_live_on), cmocka_unit_test(test_locks_all), cmocka_unit_test(test_drops_privileges),
        cmocka_unit_test(test_other_user_namespace), cmocka_unit_test(test_other_network), cmocka_unit_test(test_main_thread_ends),
        cmocka_unit_test(test_calls_at_the_end),
        cmocka_unit_test(test_other_clock),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
