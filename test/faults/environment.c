/* One body for many environments, so that each test says only what is poor in its own. The victim's
 * end is awaited by words and by the states of processes; survivors wait in three different rooms
 * of the library, each with its own way of sleeping. */
#include "environment.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    FORBIDDEN_MOST = 32,
    LINE_ITEMS = 4,
    EAGER_ITEMS = 3000,
    PIPELINE_ITEMS = 300000,
    ALLOCATED = 100000
};

int env_forbid(const long *calls, size_t n, int error)
{
    struct sock_filter filter[FORBIDDEN_MOST + 3];
    size_t at = 0;
    if (n > FORBIDDEN_MOST)
        return -E2BIG;
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < n; i++)
        filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
                                                    (unsigned char)(n - i), 0);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                                SECCOMP_RET_ERRNO | (unsigned)error);
    struct sock_fprog program = { (unsigned short)at, filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -errno;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : -errno;
}

#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)

static int filter_set(struct sock_filter *filter, size_t n)
{
    struct sock_fprog program = { (unsigned short)n, filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -errno;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : -errno;
}

int env_no_seals(bool look)
{
    enum { ADD_SEALS = 1033, GET_SEALS = 1034, COMMAND = 1 };
    struct sock_filter filter[] = {
        LOAD(nr), IF(SYS_fcntl, 0, 3),
        LOAD(args[COMMAND]), IF(ADD_SEALS, 2, 0), IF(look ? GET_SEALS : ADD_SEALS, 1, 0),
        RETURN(SECCOMP_RET_ALLOW),
        RETURN(SECCOMP_RET_ERRNO | EPERM),
    };
    return filter_set(filter, sizeof filter / sizeof *filter);
}

/* Advice as gVisor takes it: nothing is looked at in an empty range; pages are not wiped, nor made
 * present. */
int env_advise_less(void)
{
    enum { WIPE_ON_FORK = 18, POPULATE_WRITE = 23, LENGTH = 1, ADVICE = 2 };
    struct sock_filter filter[] = {
        LOAD(nr), IF(SYS_madvise, 0, 4),
        LOAD(args[LENGTH]), IF(0, 3, 0),
        LOAD(args[ADVICE]), IF(WIPE_ON_FORK, 2, 3),
        RETURN(SECCOMP_RET_ALLOW),
        RETURN(SECCOMP_RET_ERRNO | 0),
        RETURN(SECCOMP_RET_ERRNO | EINVAL),
        IF(POPULATE_WRITE, 0, 1),
        RETURN(SECCOMP_RET_ERRNO | EINVAL),
        RETURN(SECCOMP_RET_ALLOW),
    };
    return filter_set(filter, sizeof filter / sizeof *filter);
}

/* ---- the course ---- */

#define RIGHT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "rank %d: environment.c:%d: not so: %s\n%s\n", tutti_rank(world), \
                    __LINE__, #condition, tutti_explain(world)); \
            return __LINE__; \
        } \
    } while (0)

static int sums(tutti_comm *world, size_t items)
{
    int rank = tutti_rank(world), size = tutti_size(world);
    int32_t *x = malloc(items * sizeof *x), *y = calloc(items, sizeof *y);
    RIGHT(x && y);
    for (size_t i = 0; i < items; i++)
        x[i] = (int32_t)i * (rank + 1);
    RIGHT(tutti_all_reduce(x, y, items, TUTTI_I32, TUTTI_SUM, world, NULL) == 0);
    for (size_t i = 0; i < items; i++)
        RIGHT(y[i] == (int32_t)i * (size * (size + 1) / 2));
    for (size_t i = 0; rank == 0 && i < items; i++)
        y[i] = (int32_t)i ^ 0x55;
    RIGHT(tutti_broadcast(y, items, TUTTI_I32, 0, world, NULL) == 0);
    for (size_t i = 0; i < items; i++)
        RIGHT(y[i] == ((int32_t)i ^ 0x55));
    free(x);
    free(y);
    return 0;
}

static int letters(tutti_comm *world)
{
    int rank = tutti_rank(world), size = tutti_size(world);
    int32_t *out = malloc(EAGER_ITEMS * 10 * sizeof *out),
            *in = calloc(EAGER_ITEMS * 10, sizeof *in);
    RIGHT(out && in);
    for (int i = 0; i < EAGER_ITEMS * 10; i++)
        out[i] = rank * 1000000 + i;
    for (size_t count = 1; count <= EAGER_ITEMS * 10; count *= 30) {
        tutti_work *work;
        RIGHT(tutti_recv(in, count, TUTTI_I32, (rank + 1) % size, 7, NULL, world,
                         &(tutti_call){ .work = &work })
              == 0);
        RIGHT(tutti_send(out, count, TUTTI_I32, (rank + size - 1) % size, 7, world, NULL) == 0);
        RIGHT(tutti_wait(work, 0) == 0);
        for (size_t i = 0; i < count; i++)
            RIGHT(in[i] == (rank + 1) % size * 1000000 + (int)i);
    }
    free(out);
    free(in);
    return 0;
}

static int shared_memory(tutti_comm *world)
{
    uint64_t handle = 0;
    unsigned char *mine = tutti_rank(world) == 0 ? tutti_alloc(ALLOCATED, world) : NULL;
    if (tutti_rank(world) == 0) {
        RIGHT(mine != NULL);
        memset(mine, 0x5a, ALLOCATED);
        RIGHT(tutti_handle(mine, &handle, world) == 0);
    }
    RIGHT(tutti_broadcast(&handle, 1, TUTTI_U64, 0, world, NULL) == 0);
    const unsigned char *seen = tutti_view(handle, world);
    RIGHT(seen && seen[0] == 0x5a && seen[ALLOCATED - 1] == 0x5a);
    RIGHT(tutti_barrier(world, NULL) == 0);
    RIGHT(!mine || tutti_free(mine, world) == 0);
    return 0;
}

int env_course(tutti_comm *world)
{
    int rank = tutti_rank(world), size = tutti_size(world), flag = 1, value = rank, line = 0;
    int64_t now = 0;
    size_t bytes = sizeof value;
    tutti_comm *half;
    for (int i = 0; i < 20; i++)
        RIGHT(tutti_barrier(world, NULL) == 0);
    if ((line = sums(world, LINE_ITEMS)) || (line = sums(world, EAGER_ITEMS))
        || (line = sums(world, PIPELINE_ITEMS)) || (line = letters(world))
        || (line = shared_memory(world)))
        return line;
    if (rank == size - 1)
        RIGHT(tutti_set("value", &value, sizeof value, world) == 0);
    RIGHT(tutti_get("value", &value, &bytes, world, NULL) == 0 && value == size - 1);
    RIGHT(tutti_add("count", 1, &now, world) == 0 && now >= 1);
    RIGHT(tutti_turn_begin(world, NULL) == 0 && tutti_turn_end(world) == 0);
    RIGHT(tutti_comm_agree(world, &flag) == 0 && flag == 1);
    RIGHT(tutti_comm_split(world, rank % 2, rank, &half) == 0);
    RIGHT(tutti_barrier(half, NULL) == 0 && tutti_comm_free(half) == 0);
    RIGHT(tutti_barrier(world, NULL) == 0);
    return 0;
}

/* ---- a life ---- */

void env_killed(void) { raise(SIGKILL); }

void env_stays(void)
{
    for (;;)
        pause();
}

/* Everybody but the victim is late on a comm of its own, so that the world stays whole. */
static int passes_a_deadline(tutti_comm *world, int rank, struct team *team, int victim)
{
    tutti_comm *copy;
    int r = tutti_comm_split(world, 0, rank, &copy);
    if (r < 0)
        return r;
    if (rank == victim)
        /* the test says so when all others are back from their deadline */
        team_hear(team, rank, ENV_COME);
    r = tutti_barrier(copy, &(tutti_call){ .timeout_ms = ENV_LATE_MS });
    snprintf((char *)team->rank[rank].report, TEAM_TEXT / 2, "%s", tutti_explain(copy));
    return r;
}

static int waits_for_the_victim(tutti_comm *world, int rank, int victim)
{
    int way = (rank > victim ? rank - 1 : rank) % 3, x, r;
    if (way == 1)
        return tutti_recv(&x, 1, TUTTI_I32, victim, 1, NULL, world, NULL);
    tutti_work *work = NULL;
    r = tutti_barrier(world, way == 2 ? &(tutti_call){ .work = &work } : NULL);
    return work ? tutti_wait(work, -1) : r;
}

int env_life(tutti_comm *world, int rank, struct team *team, int victim, void (*how)(void))
{
    struct team_rank *mine = &team->rank[rank];
    if (!world) {
        snprintf(mine->report, sizeof mine->report, "%s", tutti_explain(NULL));
        team_say(team, rank, ENV_BACK);
        return mine->error[ENV_INIT] < 0 ? 0 : 1;
    }
    mine->error[ENV_COURSE] = env_course(world);
    team_say(team, rank, ENV_READY);
    mine->error[ENV_LATE] = passes_a_deadline(world, rank, team, victim);
    team_say(team, rank, ENV_BACK);
    if (rank == victim) {
        team_hear(team, rank, ENV_END);
        if (how == env_stays)
            team_say(team, rank, ENV_MET);        /* … for its death */
        how();
    }
    mine->error[ENV_DEATH] = waits_for_the_victim(world, rank, victim);
    mine->returned_ns = clock_ns();
    mine->failed_count = tutti_failed(world, mine->failed, TEAM_MOST);
    snprintf(mine->report + TEAM_TEXT / 2, TEAM_TEXT / 2, "%s", tutti_explain(world));
    mine->error[ENV_AFTER] = tutti_barrier(world, NULL);
    team_say(team, rank, ENV_MET);
    team_hear(team, rank, ENV_END);               /* nobody leaves before all have met the death */
    mine->error[ENV_FINALIZE] = tutti_finalize(world);
    return 0;
}

/* Is that rank among those that the report of a deadline says are missing? On a busy machine others
 * may be, too: "missing: ranks 0, 1". */
static bool missing(const char *report, int rank)
{
    const char *at = strstr(report, "missing: rank"), *end = at ? strchr(at, '\n') : NULL;
    while (at && end && (at = strpbrk(at, "0123456789")) != NULL && at < end) {
        char *behind;
        long first = strtol(at, &behind, 10),
             last = *behind == '-' ? strtol(behind + 1, &behind, 10) : first;
        if (rank >= first && rank <= last)
            return true;
        at = behind;
    }
    return false;
}

/* slow: a report that does not say how the victim died is right, too; one that says something
 * else is not. */
static bool says_why(const char *death, const char *why, bool slow)
{
    return strstr(death, why)
        || (slow && strstr(death, " died") && !strstr(death, " died, killed")
            && !strstr(death, " died, exit") && !strstr(death, " goes on "));
}

static void see_through(struct team *team, int victim, bool kills, bool slow, const char *why)
{
    for (int r = 0; r < team->size; r++)
        assert_int_equal(team_await(team, r, r == victim ? ENV_READY : ENV_BACK), 0);
    team_tell(team, victim, ENV_COME);
    assert_int_equal(team_await(team, victim, ENV_BACK), 0);
    for (int r = 0; r < team->size; r++)
        assert_true(team_is(team, r, "sleeping"));
    team_tell(team, victim, ENV_END);
    if (kills) {
        assert_int_equal(team_await(team, victim, ENV_MET), 0);
        assert_int_equal(kill(team_pid(team, victim), SIGKILL), 0);
    }
    for (int r = 0; r < team->size; r++)
        if (r != victim)
            assert_int_equal(team_await(team, r, ENV_MET), 0);
    for (int r = 0; r < team->size; r++)
        team_tell(team, r, ENV_END);
    assert_int_equal(team_end(team), 0);
    char named[32];
    snprintf(named, sizeof named, "rank %d", victim);
    for (int r = 0; r < team->size; r++) {
        const struct team_rank *rank = &team->rank[r];
        const char *death = rank->report + TEAM_TEXT / 2;
        assert_int_equal(rank->error[ENV_COURSE], 0);
        assert_int_equal(rank->error[ENV_LATE], -ETIMEDOUT);
        if (!strstr(rank->report, "deadline") || !missing(rank->report, victim))
            fail_msg("rank %d reads: %s", r, rank->report);
        if (r == victim)
            continue;
        if (rank->error[ENV_DEATH] != -EOWNERDEAD || !strstr(death, named)
            || !says_why(death, why, slow))
            fail_msg("rank %d got %d and reads: %s", r, rank->error[ENV_DEATH], death);
        assert_int_equal(rank->failed_count, 1);
        assert_int_equal(rank->failed[0], victim);
        assert_int_equal(rank->error[ENV_AFTER], -ECANCELED);
        assert_int_equal(rank->error[ENV_FINALIZE], 0);
        assert_int_equal(team->status[r], 0);
    }
    team_free(team);
}

void env_see_through(struct team *team, int victim, const char *why)
{
    see_through(team, victim, false, false, why);
}

void env_kill_through(struct team *team, int victim, const char *why)
{
    see_through(team, victim, true, false, why);
}

void env_starve_through(struct team *team, int victim, const char *why)
{
    see_through(team, victim, false, true, why);
}

const char *env_job(void)
{
    static char name[64];
    static int nth;
    snprintf(name, sizeof name, "env-%d-%d", (int)getpid(), nth++);
    return name;
}

static int sockets_of(const char *name)
{
    char line[512];
    int n = 0;
    FILE *sockets = fopen("/proc/net/unix", "r");
    while (sockets && fgets(line, sizeof line, sockets))
        n += strstr(line, name) != NULL;
    if (sockets)
        fclose(sockets);
    return n;
}

bool env_hosted(const char *job)
{
    for (uint64_t end = clock_ns() + TEAM_PATIENCE_S * UINT64_C(1000000000); clock_ns() < end;
         sched_yield())
        if (sockets_of(job))
            return true;
    return false;
}

/* ---- traces ---- */

void env_adopt(void) { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

static int count_in(const char *path, const char *word)
{
    int n = 0;
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;)
        n += strstr(entry->d_name, word) != NULL;
    if (directory)
        closedir(directory);
    return n;
}

void env_look(struct env_traces *traces)
{
    char ours[64];
    snprintf(ours, sizeof ours, "env-%d-", (int)getpid());
    *traces = (struct env_traces){ count_in("/dev/shm", "tutti") + count_in("/tmp", ours), 0,
                                   count_in("/proc/self/fd", "") };
    traces->sockets = sockets_of(ours);
}

void env_expect_nothing_new(const struct env_traces *before)
{
    struct env_traces now;
    siginfo_t info = { 0 };
    bool child = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
    env_look(&now);
    assert_false(child);
    assert_int_equal(now.files, before->files);
    assert_int_equal(now.sockets, before->sockets);
    assert_int_equal(now.descriptors, before->descriptors);
}
