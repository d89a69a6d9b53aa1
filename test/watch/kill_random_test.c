/* ctest: timeout=300 labels=faults serial */
/* Ranks are killed at random instants of every algorithm, while joining and while leaving, two at
 * once, and when they are about to propose a verdict. Whatever the instant: every survivor returns,
 * all of them fail at the same operation for the same reason, what succeeded is right, and the
 * report names the dead. TUTTI_KILLS sets how many (10000 for a long campaign), TUTTI_TEST_SEED
 * repeats one. The promise of 100 ms from kill to return is judged from the printed figures; only a
 * hang of many seconds fails here. */
#include "base/clock.h"
#include "support/team.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
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

enum what { BARRIER, ALL_REDUCE, BROADCAST, REDUCE };
enum how { BY_KILL, BY_FAULT, BY_ABORT, BY_END, BY_EXIT, HOWS };

static const struct scene {
    const char *name, *rules;
    enum what what;
    size_t count;                     /* of i32 */
} scenes[] = {
    { "barrier flags", "barrier:-inf=flags", BARRIER, 0 },
    { "barrier central", "barrier:-inf=central", BARRIER, 0 },
    { "all_reduce line", "barrier:-inf=flags;all_reduce:-inf=inline", ALL_REDUCE, 10 },
    { "all_reduce line, central gate", "barrier:-inf=central;all_reduce:-inf=inline",
      ALL_REDUCE, 3 },
    { "all_reduce eager", "barrier:-inf=flags;all_reduce:-inf=eager", ALL_REDUCE, 4000 },
    { "all_reduce eager, central gate", "barrier:-inf=central;all_reduce:-inf=eager",
      ALL_REDUCE, 16384 },
    { "all_reduce pipeline", "all_reduce:-inf=pipelined", ALL_REDUCE, 200000 },
    { "all_reduce pipeline, one round", "all_reduce:-inf=pipelined", ALL_REDUCE, 5000 },
    { "broadcast pipeline", "broadcast:-inf=pipelined", BROADCAST, 300000 },
    { "broadcast eager", "broadcast:-inf=eager", BROADCAST, 8000 },
    { "reduce pipeline", "reduce:-inf=pipelined", REDUCE, 200000 },
    { "reduce eager", "reduce:-inf=eager", REDUCE, 4000 },
    { "reduce rooted", "reduce:-inf=rooted", REDUCE, 200000 },
};
enum {
    SCENES = sizeof scenes / sizeof scenes[0],
    READY = 1,
    NOTED = 2,
    LEAVE = 2,
    OPERATIONS_MOST = 200000
};

/* The point that is being tried. */
static struct { const char *scene; int size, victim; enum how how; uint64_t delay; } point;
static const char *const how_text[HOWS] = {
    "SIGKILL", "SIGSEGV", "abort()", "_exit(3)", "exit(4)"
};

/* Figures over all points of this program. */
static struct {
    int points, errors, hangs;
    uint64_t *ns;
    int used, room;
    uint64_t worst;
    char worst_at[128];
} tally;

static void tally_time(uint64_t ns)
{
    if (tally.used == tally.room) {
        tally.room = tally.room ? 2 * tally.room : 1024;
        tally.ns = realloc(tally.ns, (size_t)tally.room * sizeof *tally.ns);
        assert_non_null(tally.ns);
    }
    tally.ns[tally.used++] = ns;
    if (ns > tally.worst) {
        tally.worst = ns;
        snprintf(tally.worst_at, sizeof tally.worst_at, "%s, %d ranks, %s", point.scene, point.size,
                 how_text[point.how]);
    }
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void tally_print(const char *of)
{
    qsort(tally.ns, (size_t)tally.used, sizeof *tally.ns, by_value);
    printf("%s: %d points, %d errors, %d hangs", of, tally.points, tally.errors, tally.hangs);
    if (tally.used)
        printf("; from death to the last survivor's return: min %.3f, median %.3f, p99 %.3f, max "
               "%.3f ms (%s)",
               (double)tally.ns[0] / 1e6, (double)tally.ns[tally.used / 2] / 1e6,
               (double)tally.ns[tally.used * 99 / 100] / 1e6,
               (double)tally.ns[tally.used - 1] / 1e6, tally.worst_at);
    printf("\n");
    fflush(stdout);
}

static int tally_close(void **state)
{
    (void)state;
    tally_print("kill_random_test");
    free(tally.ns);
    return 0;
}

/* A point that went wrong says all about itself; the test goes on, and fails at its end. */
__attribute__((format(printf, 2, 3))) static void wrong(struct team *team, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tally.errors++;
    printf("WRONG: %s, %d ranks, rank %d by %s after %" PRIu64 " ns: ", point.scene, point.size,
           point.victim, how_text[point.how], point.delay);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    for (int r = 0; r < team->size; r++)
        printf("  rank %d: status 0x%x, %" PRIu64 " succeeded, then %d, %d, wrong %" PRIu64
               "; %s\n",
               r, (unsigned)team->status[r], team->rank[r].operation, team->rank[r].error[0],
               team->rank[r].error[1], team->rank[r].wrong, team->rank[r].report);
    fflush(stdout);
}

/* ---- the ranks ---- */

static const struct scene *rank_scene;

static void end_by_signal(int signal)
{
    if (signal == SIGUSR1)
        abort();
    _exit(3);
}

static int32_t given(uint64_t i, int rank, size_t j)
{
    return (int32_t)((uint32_t)(rank + 1) * (uint32_t)(i * 7 + j % 13));
}

static int32_t folded(uint64_t i, int size, size_t j)
{
    return (int32_t)((uint32_t)(size * (size + 1) / 2) * (uint32_t)(i * 7 + j % 13));
}

static int32_t send_[300000], recv_[300000];

static int operate(tutti_comm *world, const struct scene *s, uint64_t i, uint64_t *errors)
{
    int me = tutti_rank(world), size = tutti_size(world), root = (int)(i % (uint64_t)size), r;
    for (size_t j = 0; j < s->count; j++)
        send_[j] = s->what == BROADCAST && me != root
            ? -1
            : given(i, s->what == BROADCAST ? root : me, j);
    switch (s->what) {
    case BARRIER: return tutti_barrier(world, NULL);
    case ALL_REDUCE:
        r = tutti_all_reduce(send_, recv_, s->count, TUTTI_I32, TUTTI_SUM, world, NULL);
        break;
    case BROADCAST: r = tutti_broadcast(send_, s->count, TUTTI_I32, root, world, NULL); break;
    case REDUCE:
        r = tutti_reduce(send_, recv_, s->count, TUTTI_I32, TUTTI_SUM, root, world, NULL);
        break;
    default: return -EINVAL;
    }
    for (size_t j = 0; r == 0 && j < s->count; j++) {
        if (s->what == BROADCAST)
            *errors += send_[j] != given(i, root, j);
        else if (s->what == ALL_REDUCE || me == root)
            *errors += recv_[j] != folded(i, size, j);
    }
    return r;
}

/* Operation after operation until one fails; then says what it saw, and stays until all survivors
   have, so that none of them is taken for a dead one. */
static int operates(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    signal(SIGUSR1, end_by_signal);
    signal(SIGUSR2, end_by_signal);
    for (uint64_t i = 1; i < OPERATIONS_MOST; i++) {
        int r = operate(world, rank_scene, i, &mine->wrong);
        if (r < 0) {
            mine->returned_ns = clock_ns();
            mine->error[0] = r;
            break;
        }
        mine->operation = i;
        if (i == 1)
            team_say(team, rank, READY);
        /* the orderly end, which must not be in a signal handler */
        if (load_acquire32(&mine->told)) {
            team->number[0] = clock_ns();
            exit(4);
        }
    }
    mine->error[1] = tutti_barrier(world, NULL);
    team_note(team, rank, world);
    team_say(team, rank, NOTED);
    team_hear(team, rank, LEAVE);
    return 0;
}

static void let_die(struct team *team, int victim, enum how how)
{
    static const int by_signal[HOWS] = { SIGKILL, SIGSEGV, SIGUSR1, SIGUSR2, 0 };
    pid_t pid = team_pid(team, victim);
    team->number[0] = clock_ns();
    if (how == BY_EXIT)
        team_tell(team, victim, 1);
    else
        kill(pid, by_signal[how]);
}

static const char *end_text(enum how how)
{
    switch (how) {
    case BY_KILL: return " died, killed by signal 9 (SIGKILL)";
    case BY_FAULT: return " died, killed by signal 11 (SIGSEGV)";
    case BY_ABORT: return " died, killed by signal 6 (SIGABRT)";
    case BY_END: return " died, exit status 3";
    default: return " left";
    }
}

static bool is_victim(const int victims[], int n, int rank)
{
    for (int i = 0; i < n; i++)
        if (victims[i] == rank)
            return true;
    return false;
}

/* All survivors: same operation, same cause, then -ECANCELED, right results, the dead and no
 * others named. */
static void check_survivors(struct team *team, const int victims[], int n, bool timed)
{
    int first = -1;
    uint64_t last = 0;
    for (int r = 0; r < team->size; r++) {
        const struct team_rank *rank = &team->rank[r];
        if (is_victim(victims, n, r))
            continue;
        if (first < 0)
            first = r;
        char named[32];
        int dead = rank->failed_count > 0 ? rank->failed[0] : -1;
        snprintf(named, sizeof named, "rank %d (pid ", n == 1 ? victims[0] : dead);
        if (team->status[r] != 0 || rank->wrong)
            wrong(team, "rank %d: status or results", r);
        else if (rank->error[0] != (timed ? team->rank[first].error[0] : -EOWNERDEAD)
                 || rank->error[1] != -ECANCELED)
            wrong(team, "rank %d: errors", r);
        else if (rank->operation != team->rank[first].operation)
            wrong(team, "rank %d and rank %d did not fail at the same operation", r, first);
        else if (rank->failed_count < 1 || rank->failed_count > n
                 || !is_victim(victims, n, rank->failed[0]))
            wrong(team, "rank %d: tutti_failed says %d, first %d", r, rank->failed_count, dead);
        else if (!timed && n == 1
                 && (!strstr(rank->report, named) || !strstr(rank->report, end_text(point.how))))
            wrong(team, "rank %d: the report does not say \"%s\" and \"%s\"", r, named,
                  end_text(point.how));
        last = rank->returned_ns > last ? rank->returned_ns : last;
    }
    if (last > team->number[0])
        tally_time(last - team->number[0]);
}

static struct team *start(const struct scene *s, int size)
{
    rank_scene = s;
    setenv("TUTTI_ALGORITHM", s->rules, 1);
    setenv("TUTTI_SPAN_BYTES", "16M", 0);
    struct team *team = team_start(size, operates, true);
    tally.points++;
    for (int r = 0; r < size; r++)
        if (team_await(team, r, READY) < 0) {
            wrong(team, "rank %d did not come to its first operation: %s", r, team_stderr(team));
            break;
        }
    return team;
}

static void finish(struct team *team)
{
    if (team_end(team) < 0) {
        tally.hangs++;
        wrong(team, "a hang");
    }
}

/* Lets the survivors go when all of them have said what they saw. A victim that was killed late may
 * have, too: it does not count. */
static void dismiss(struct team *team, const int victims[], int n)
{
    for (int r = 0; r < team->size; r++)
        if (!is_victim(victims, n, r))
            team_await(team, r, NOTED);
    for (int r = 0; r < team->size; r++)
        team_tell(team, r, LEAVE);
}

static void kill_once(uint64_t *random, const struct scene *s)
{
    static const int sizes[] = { 2, 3, 4, 8 };
    int size = sizes[team_random(random) % 4], victim = (int)(team_random(random) % (uint64_t)size);
    point.scene = s->name;
    point.size = size;
    point.victim = victim;
    point.how = team_random(random) % 2 ? BY_KILL : (enum how)(team_random(random) % HOWS);
    point.delay = team_random(random) % (s->count > 20000 ? 3000000 : 400000);
    struct team *team = start(s, size);
    team_spin(point.delay);
    let_die(team, victim, point.how);
    dismiss(team, &victim, 1);
    finish(team);
    check_survivors(team, &victim, 1, false);
    team_free(team);
}

static void kills_in_every_algorithm(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    int errors = tally.errors, many = team_many("TUTTI_KILLS", 240, 60);
    for (int i = 0; i < many; i++)
        kill_once(&random, &scenes[i % SCENES]);
    tally_print("kills in operations");
    assert_int_equal(tally.errors, errors);
}

static void two_deaths_at_once(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    int errors = tally.errors, many = team_many("TUTTI_KILLS", 240, 60) / 8;
    for (int i = 0; i < many; i++) {
        const struct scene *s = &scenes[i % SCENES];
        int size = i % 2 ? 4 : 8, victims[2] = { (int)(team_random(&random) % (uint64_t)size), 0 };
        victims[1] = (victims[0] + 1 + (int)(team_random(&random) % (uint64_t)(size - 1))) % size;
        point.scene = s->name;
        point.size = size;
        point.victim = victims[0];
        point.how = BY_KILL;
        point.delay = team_random(&random) % 400000;
        struct team *team = start(s, size);
        team_spin(point.delay);
        let_die(team, victims[0], BY_KILL);
        if (i % 3)
            /* about when the first death is being reported */
            team_spin(team_random(&random) % 150000);
        kill(team_pid(team, victims[1]), SIGKILL);
        dismiss(team, victims, 2);
        finish(team);
        check_survivors(team, victims, 2, false);
        team_free(team);
    }
    assert_int_equal(tally.errors, errors);
}

/* ---- the proposer ---- */

enum { ABSENT_MS = 8 };

/* Rank 0 stays away while the others run into their deadlines, one after another; the test kills or
 * stops one of them about then. */
static int overruns(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    const tutti_call call = { .timeout_ms = ABSENT_MS };
    mine->error[0] = tutti_barrier(world, NULL);
    team_say(team, rank, READY);
    team_hear(team, rank, 1);
    mine->error[0] = tutti_barrier(world, rank ? &call : NULL);
    mine->returned_ns = clock_ns();
    mine->error[1] = tutti_barrier(world, NULL);
    team_note(team, rank, world);
    team_say(team, rank, READY + 1);
    team_hear(team, rank, 2);
    return 0;
}

static void the_proposer_dies_or_stops(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    int errors = tally.errors, many = team_many("TUTTI_KILLS", 240, 60) / 8;
    setenv("TUTTI_ALGORITHM", "barrier:-inf=flags", 1);
    for (int i = 0; i < many; i++) {
        int size = i % 2 ? 3 : 5, victim = 1 + (int)(team_random(&random) % (uint64_t)(size - 1)),
            died = 0;
        bool stops = i % 3 == 0;
        point.scene = stops ? "stopped at its deadline" : "killed at its deadline";
        point.size = size;
        point.victim = victim;
        point.how = BY_KILL;
        struct team *team = team_start(size, overruns, true);
        tally.points++;
        for (int r = 0; r < size; r++)
            assert_int_equal(team_await(team, r, READY), 0);
        uint64_t began = clock_ns();
        point.delay = ABSENT_MS * UINT64_C(1000000) - 300000 + team_random(&random) % 1000000;
        for (int r = 1; r < size; r++)
            team_tell(team, r, 1);
        while (clock_ns() - began < point.delay)
            cpu_pause();
        kill(team_pid(team, victim), stops ? SIGSTOP : SIGKILL);
        for (int r = 1; r < size; r++)  /* the others need neither the absent nor the stopped one */
            if (r != victim && team_await(team, r, READY + 1) < 0)
                wrong(team, "rank %d waits for the proposer", r);
        if (stops)
            kill(team_pid(team, victim), SIGCONT);
        team_tell(team, 0, 1);
        team_await(team, 0, READY + 1);
        if (stops)
            team_await(team, victim, READY + 1);
        for (int r = 0; r < size; r++)
            team_tell(team, r, 2);
        finish(team);
        for (int r = 0; r < size; r++) {
            const struct team_rank *rank = &team->rank[r];
            int expected = team->rank[0].error[0];
            if (r == victim && !stops) {
                died += team->status[r] == SIGKILL;
                continue;
            }
            if (rank->error[0] != expected || (expected != -ETIMEDOUT && expected != -EOWNERDEAD)
                || rank->error[1] != -ECANCELED)
                wrong(team, "rank %d: errors", r);
            if (rank->failed_count > !stops || (rank->failed_count && rank->failed[0] != victim))
                wrong(team, "rank %d: tutti_failed says %d", r, rank->failed_count);
        }
        if (died != !stops)
            wrong(team, "the victim was not killed");
        team_free(team);
    }
    assert_int_equal(tally.errors, errors);
}

/* ---- joining ---- */

static char job_name[64];

static int joins(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    team_say(team, rank, READY);
    if (!world) {
        const tutti_options options = {
            .job = job_name, .rank = rank, .size = team->size, .join_timeout_ms = 800
        };
        mine->error[0] = tutti_init(&world, &options);
        if (mine->error[0] < 0) {
            mine->returned_ns = clock_ns();
            snprintf(mine->report, sizeof mine->report, "%s", tutti_explain(NULL));
            return 1;
        }
    }
    while ((mine->error[0] = tutti_barrier(world, NULL)) == 0 && mine->operation < OPERATIONS_MOST)
        mine->operation++;
    mine->returned_ns = clock_ns();
    snprintf(mine->report, sizeof mine->report, "%s", tutti_explain(world));
    return 0;
}

/* One of a meeting is killed on its way. Survivors all come back; what they say is about the
   victim, or about one that gave up for its sake and left. */
static void kills_in_a_named_meeting(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    int errors = tally.errors, many = team_many("TUTTI_KILLS", 240, 60) / 16;
    unsetenv("TUTTI_ALGORITHM");
    for (int i = 0; i < many; i++) {
        int size = i % 2 ? 3 : 8, victim = (int)(team_random(&random) % (uint64_t)size);
        point.scene = "joining by name";
        point.size = size;
        point.victim = victim;
        point.how = BY_KILL;
        point.delay = team_random(&random) % 3000000;
        snprintf(job_name, sizeof job_name, "kill_random_test.%d.%d", (int)getpid(), i);
        struct team *team = team_start_named(size, joins, true);
        tally.points++;
        if (team_await(team, victim, READY) < 0)
            wrong(team, "the victim did not start");
        team_spin(point.delay);
        let_die(team, victim, BY_KILL);
        finish(team);
        for (int r = 0; r < size; r++) {
            const struct team_rank *rank = &team->rank[r];
            if (r == victim)
                continue;
            if (rank->error[0] != -EOWNERDEAD && rank->error[0] != -ETIMEDOUT)
                wrong(team, "rank %d: error", r);
            else if (!strstr(rank->report, "rank"))
                wrong(team, "rank %d: the report names nobody", r);
        }
        team_free(team);
    }
    assert_int_equal(tally.errors, errors);
}

static pid_t child_of(pid_t parent, int nth)
{
    char path[64], list[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(list, 1, sizeof list - 1, f) : 0;
    if (f)
        fclose(f);
    list[n] = 0;
    char *at = list;
    for (long pid = 0; (pid = strtol(at, &at, 10)) > 0;)
        if (nth-- == 0)
            return (pid_t)pid;
    return 0;
}

/* A child of tutti_spawn is killed before or while it joins: the others leave with 255 and a
 * sentence, or meet it in their first call. */
static void kills_in_spawn(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    int errors = tally.errors, many = team_many("TUTTI_KILLS", 240, 60) / 8, early = 0;
    unsetenv("TUTTI_ALGORITHM");
    for (int i = 0; i < many; i++) {
        int size = i % 2 ? 4 : 8, nth = (int)(team_random(&random) % (uint64_t)size);
        point.scene = "joining by spawn";
        point.size = size;
        point.how = BY_KILL;
        point.delay = team_random(&random) % 1000000;
        struct team *team = team_start(size, joins, true);
        tally.points++;
        pid_t pid = 0;
        for (uint64_t end = clock_ns() + UINT64_C(20000000000); !pid && clock_ns() < end;)
            pid = child_of(team->job, nth);
        team_spin(point.delay);
        kill(pid, SIGKILL);
        finish(team);
        point.victim = -1;
        for (int r = 0; r < size; r++)
            if (team->status[r] == SIGKILL)
                point.victim = r;
        if (point.victim < 0)
            wrong(team, "nobody was killed");
        for (int r = 0; r < size; r++) {
            char named[32];
            snprintf(named, sizeof named, "rank %d", point.victim);
            if (r == point.victim)
                continue;
            early += team->status[r] != 0;
            if (team->status[r] == 255 << 8
                    ? !strstr(team_stderr(team), named)
                    : team->status[r] || team->rank[r].error[0] != -EOWNERDEAD)
                wrong(team, "rank %d: %s", r, team_stderr(team));
        }
        team_free(team);
    }
    printf("kills in spawn: %d ranks learned of it while joining\n", early);
    assert_int_equal(tally.errors, errors);
}

/* ---- leaving ---- */

static int finalizes(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    for (int i = 0; i < 20 && mine->error[0] == 0; i++)
        mine->error[0] = tutti_barrier(world, NULL);
    team_say(team, rank, READY);
    team_hear(team, rank, 1);
    mine->error[1] = tutti_finalize(world);
    return 0;
}

/* One is killed while all leave: nobody waits for it there. */
static void kills_in_finalize(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    int errors = tally.errors, many = team_many("TUTTI_KILLS", 240, 60) / 8;
    for (int i = 0; i < many; i++) {
        int size = i % 2 ? 2 : 4, victim = (int)(team_random(&random) % (uint64_t)size);
        point.scene = "leaving";
        point.size = size;
        point.victim = victim;
        point.how = BY_KILL;
        point.delay = team_random(&random) % 300000;
        struct team *team = team_start(size, finalizes, true);
        tally.points++;
        for (int r = 0; r < size; r++)
            if (team_await(team, r, READY) < 0)
                wrong(team, "rank %d did not come to its end", r);
        for (int r = 0; r < size; r++)
            team_tell(team, r, 1);
        team_spin(point.delay);
        kill(team_pid(team, victim), SIGKILL);
        finish(team);
        for (int r = 0; r < size; r++)
            if (r != victim
                && (team->status[r] || team->rank[r].error[0] || team->rank[r].error[1]))
                wrong(team, "rank %d: errors", r);
        team_free(team);
    }
    assert_int_equal(tally.errors, errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kills_in_every_algorithm), cmocka_unit_test(two_deaths_at_once),
        cmocka_unit_test(the_proposer_dies_or_stops), cmocka_unit_test(kills_in_a_named_meeting),
        cmocka_unit_test(kills_in_spawn), cmocka_unit_test(kills_in_finalize),
    };
    return cmocka_run_group_tests(tests, NULL, tally_close);
}
