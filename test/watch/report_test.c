/* ctest: timeout=300 labels=faults serial */
/* What a rank reads when something has gone wrong: who, what, where, and what everybody else does.
 * Each report must name the right rank, say how it ended where that can be known, show call sites
 * by file and line, and fit a terminal. TUTTI_TEST_SHOW=1 prints them all. */
#include "support/team.h"

#include "base/clock.h"
#include "watch/fingerprint.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { READY = 1, BACK = 2, GO = 1, END = 9, COLUMNS = 80, COLUMNS_OF_ROW = 110, RANKS = 3 };

/* Where rank 0 calls what fails: all scenes end in these lines. */
static int site_line;
#define HERE (site_line = __LINE__)

static void show(const char *title, const char *text)
{
    if (getenv("TUTTI_TEST_SHOW"))
        printf("\n---- %s\n%s", title, text);
}

static void must_say(struct team *team, int rank, const char *what)
{
    if (!strstr(team->rank[rank].report, what))
        fail_msg("rank %d does not say \"%s\" but:\n%s", rank, what, team->rank[rank].report);
}

static void must_not_say(struct team *team, int rank, const char *what)
{
    if (strstr(team->rank[rank].report, what))
        fail_msg("rank %d says \"%s\":\n%s", rank, what, team->rank[rank].report);
}

/* Who, what and how fit a terminal; the row of a table may be longer where an operation and its
   site are long. The line with the whole path of the site is as long as the path. */
static void must_fit(const char *text)
{
    const char *table = strstr(text, "  rank pid");
    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        if (end - line > (line > table ? COLUMNS_OF_ROW : COLUMNS)
            && strncmp(line, "  called here", 13) != 0)
            fail_msg("wider than a terminal: %.*s", (int)(end - line), line);
}

/* The rows of the table: every column of them begins under its heading. */
static void must_be_aligned(const char *text)
{
    static const char *const headings[] = { "pid", "state", "CPU", "for", "doing" };
    const char *head = strstr(text, "  rank pid");
    assert_non_null(head);
    const char *row = strchr(head, '\n') + 1;
    for (; *row; row = strchr(row, '\n') + 1) {
        if (!strchr(row, '\n'))
            break;
        for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++) {
            ptrdiff_t column = strstr(head, headings[i]) - head;
            if (row[column - 1] != ' ' || row[column] == ' ')
                fail_msg("column \"%s\" is not aligned in:\n%s", headings[i], text);
        }
    }
}

/* The scene's ranks; what each does is chosen by the test before the start. */
static enum {
    DIES, EXITS, ENDS_BY_EXIT, RETURNS, FINALIZES, FREES, ABORTS, IS_REFUSED, IS_LATE, CALLS_ELSE,
    COUNTS_ELSE, TYPES_ELSE, OPS_ELSE, ROOTS_ELSE, COUNTS_HUGE, WAITS_LONG
} scene;

static void *huge(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Two counts above 2^29 whose stamps are the same. */
static void same_hash(uint64_t *one, uint64_t *two)
{
    enum { TRIED = 1 << 17 };
    static uint64_t by_hash[TRIED];
    uint64_t random = 1;
    for (*two = 0; !*two;) {
        uint64_t count = STAMP_HASHED + team_random(&random) % (UINT64_C(1) << 32);
        uint64_t stamp = fingerprint_make(KIND_BROADCAST, TUTTI_U8, 0, 0, count);
        uint64_t *seat = &by_hash[stamp % TRIED];
        if (*seat && *seat != count
            && fingerprint_make(KIND_BROADCAST, TUTTI_U8, 0, 0, *seat) == stamp) {
            *one = *seat;
            *two = count;
        }
        *seat = count;
    }
}

/* Rank 1 is the odd one. Returns what its call, if any, returned; the others then call what all
 * should call. */
static int odd_one(tutti_comm *world, tutti_comm *half, struct team *team, float *x)
{
    switch (scene) {
    case DIES: raise(SIGKILL); return 0;
    case EXITS: _exit(7);
    case ENDS_BY_EXIT: exit(3);
    case RETURNS: return 1;
    case FINALIZES: tutti_finalize(world); return 1;
    case FREES: return tutti_comm_free(half) ? -1 : 1;
    case ABORTS: return tutti_comm_abort(world, "the disk is full") ? -1 : 1;
    case IS_REFUSED:
        return tutti_all_reduce(x, x, 1, TUTTI_F32, TUTTI_BAND, world, NULL) == -EINVAL ? 1 : -1;
    case IS_LATE: case WAITS_LONG: team_hear(team, 1, GO); return 0;
    case CALLS_ELSE: return tutti_broadcast(x, 4, TUTTI_F32, 2, world, NULL);
    case COUNTS_ELSE: return tutti_all_reduce(x, x, 5, TUTTI_F32, TUTTI_SUM, world, NULL);
    case TYPES_ELSE: return tutti_all_reduce(x, x, 4, TUTTI_I32, TUTTI_SUM, world, NULL);
    case OPS_ELSE: return tutti_all_reduce(x, x, 4, TUTTI_F32, TUTTI_MAX, world, NULL);
    case ROOTS_ELSE: return tutti_broadcast(x, 4, TUTTI_F32, 1, world, NULL);
    case COUNTS_HUGE: {
        uint64_t one, two;
        same_hash(&one, &two);
        void *much = huge(two);
        return much ? tutti_broadcast(much, two, TUTTI_U8, 0, world, NULL) : -ENOMEM;
    }
    }
    return -1;
}

static int common(tutti_comm *world, tutti_comm *half, float *x)
{
    switch (scene) {
    case FREES: HERE; return tutti_barrier(half, NULL);
    case ROOTS_ELSE: HERE; return tutti_broadcast(x, 4, TUTTI_F32, 0, world, NULL);
    case COUNTS_HUGE: {
        uint64_t one, two;
        same_hash(&one, &two);
        void *much = huge(one);
        HERE; return much ? tutti_broadcast(much, one, TUTTI_U8, 0, world, NULL) : -ENOMEM;
    }
    default: HERE; return tutti_all_reduce(x, x, 4, TUTTI_F32, TUTTI_SUM, world, NULL);
    }
}

static int plays(tutti_comm *world, int rank, struct team *team)
{
    struct team_rank *mine = &team->rank[rank];
    tutti_comm *half = NULL;
    float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    mine->error[0] = tutti_barrier(world, NULL);
    if (scene == FREES)
        mine->error[0] |= tutti_comm_split(world, 0, 0, &half);
    tutti_comm *comm = half ? half : world;
    int odd = rank == 1 ? odd_one(world, half, team, x) : 0;
    mine->error[1] = odd < 0 ? odd : odd == 0 ? common(world, half, x) : 0;
    mine->number[0] = (uint64_t)site_line;
    if (odd > 0 && (scene == FINALIZES || scene == RETURNS))
        return 0;
    team_note(team, rank, odd > 0 && scene == FREES ? world : comm);
    team_say(team, rank, BACK);
    team_hear(team, rank, END);
    return 0;
}

static int plain(void **state)
{
    (void)state;
    unsetenv("TUTTI_TIMEOUT_MS");
    unsetenv("TUTTI_WARN_MS");
    return 0;
}

static struct team *play(int which, const char *title)
{
    scene = (unsigned)which;
    struct team *team = team_start(RANKS, plays, true);
    assert_int_equal(team_await(team, 0, BACK), 0);
    assert_int_equal(team_await(team, 2, BACK), 0);
    if (scene == IS_REFUSED || scene == IS_LATE)
        team_tell(team, 1, GO);
    team_dismiss(team, END);
    show(title, team->rank[0].report);
    char site[64];
    snprintf(site, sizeof site, "report_test.c:%d", (int)team->rank[0].number[0]);
    for (int r = 0; r < RANKS; r += 2) {
        assert_int_equal(team->rank[r].error[0], 0);
        must_say(team, r, site);                     /* where this rank called */
        must_be_aligned(team->rank[r].report);
        must_fit(team->rank[r].report);
    }
    return team;
}

static void expect_errors(struct team *team, int error)
{
    assert_int_equal(team->rank[0].error[1], error);
    assert_int_equal(team->rank[2].error[1], error);
}

static void a_death(void **state)
{
    (void)state;
    struct team *team = play(DIES, "death by a signal");
    expect_errors(team, -EOWNERDEAD);
    must_say(team, 0, "rank 1 (pid ");
    must_say(team, 0, "died, killed by signal 9 (SIGKILL)\n");
    must_say(team, 2, "died, killed by signal 9 (SIGKILL)\n");
    must_say(team, 0, "all_reduce f32 sum 4 #2 on world");
    must_say(team, 0, "after barrier #1 at watch/report_test.c:");
    must_say(team, 0, "signal 9");                   /* in the table */
    team_free(team);
}

static void an_exit_past_the_library(void **state)
{
    (void)state;
    struct team *team = play(EXITS, "_exit(7)");
    expect_errors(team, -EOWNERDEAD);
    must_say(team, 0, "died, exit status 7\n");
    must_say(team, 0, "exit 7");
    team_free(team);
}

static void three_ways_of_leaving(void **state)
{
    (void)state;
    static const int ways[] = { ENDS_BY_EXIT, RETURNS, FINALIZES };
    for (size_t i = 0; i < 3; i++) {
        struct team *team = play(ways[i], "left");
        expect_errors(team, -EOWNERDEAD);
        must_say(team, 0, "rank 1 (pid ");
        must_say(team, 0, ways[i] == ENDS_BY_EXIT ? " left, exit status 3\n" : " left");
        must_not_say(team, 0, "died");
        if (ways[i] == FINALIZES)
            must_say(team, 0, "after finalize at watch/report_test.c:");
        team_free(team);
    }
}

static void a_freed_comm(void **state)
{
    (void)state;
    struct team *team = play(FREES, "freed comm");
    expect_errors(team, -EOWNERDEAD);
    must_say(team, 0, "freed the comm");
    must_say(team, 0, "on comm ");
    team_free(team);
}

static void an_abort(void **state)
{
    (void)state;
    struct team *team = play(ABORTS, "abort");
    expect_errors(team, -ECANCELED);
    must_say(team, 0, "rank 1 aborted: the disk is full\n");
    team_free(team);
}

static void a_refused_call_and_a_deadline(void **state)
{
    (void)state;
    setenv("TUTTI_TIMEOUT_MS", "60", 1);
    struct team *team = play(IS_REFUSED, "deadline, a peer's call was refused");
    expect_errors(team, -ETIMEDOUT);
    must_say(team, 0, "missing: rank 1");
    must_say(team, 0, "after all_reduce at watch/report_test.c:");
    must_say(team, 0, "REFUSED");
    must_say(team, 1, "all_reduce at ");             /* what the refused one reads itself */
    must_say(team, 1, "refused: ");
    team_free(team);
}

static void a_deadline(void **state)
{
    (void)state;
    setenv("TUTTI_TIMEOUT_MS", "60", 1);
    struct team *team = play(IS_LATE, "deadline");
    expect_errors(team, -ETIMEDOUT);
    assert_int_equal(team->rank[1].error[1], -ETIMEDOUT);
    must_say(team, 0, "the deadline ");
    must_say(team, 0, "passed in all_reduce f32 sum 4 #2 on world");
    must_say(team, 0, "missing: rank 1\n");
    must_say(team, 0, "after barrier #1 at watch/report_test.c:");
    must_say(team, 1, "missing: rank 1\n");          /* the late one reads that it was itself */
    team_free(team);
}

static void mismatches(void **state)
{
    (void)state;
    static const struct { int scene; const char *odd, *others; } rows[] = {
        { CALLS_ELSE, "rank 1: broadcast f32 4 root 2 at watch/report_test.c:",
          "ranks 0, 2: all_reduce f32 sum 4 at watch/report_test.c:" },
        { COUNTS_ELSE, "rank 1: all_reduce f32 sum 5 at", "ranks 0, 2: all_reduce f32 sum 4 at" },
        { TYPES_ELSE, "rank 1: all_reduce i32 sum 4 at", "ranks 0, 2: all_reduce f32 sum 4 at" },
        { OPS_ELSE, "rank 1: all_reduce f32 max 4 at", "ranks 0, 2: all_reduce f32 sum 4 at" },
        { ROOTS_ELSE, "rank 1: broadcast f32 4 root 1 at",
          "ranks 0, 2: broadcast f32 4 root 0 at" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct team *team = play(rows[i].scene, "mismatch");
        expect_errors(team, -EPROTO);
        assert_int_equal(team->rank[1].error[1], -EPROTO);
        for (int r = 0; r < RANKS; r++) {
            must_say(team, r, "the ranks called different things as operation #2 on world\n");
            /* seen before the odd one came, it is not there yet */
            if (r == 1 || strstr(team->rank[r].report, "rank 1: "))
                must_say(team, r, rows[i].odd);
        }
        team_free(team);
    }
}

/* Counts whose hashes are equal are told apart, and shown whole. */
static void a_mismatch_of_huge_counts(void **state)
{
    (void)state;
    uint64_t one, two;
    char odd[64], others[64];
    same_hash(&one, &two);
    snprintf(odd, sizeof odd, "rank 1: broadcast u8 %llu root 0 at", (unsigned long long)two);
    snprintf(others, sizeof others, "broadcast u8 %llu root 0 at", (unsigned long long)one);
    struct team *team = play(COUNTS_HUGE, "mismatch of huge counts");
    if (team->rank[0].error[1] == -ENOMEM) {
        print_message("no address space for %llu bytes; not looked at\n", (unsigned long long)two);
        team_free(team);
        return;
    }
    expect_errors(team, -EPROTO);
    assert_int_equal(team->rank[1].error[1], -EPROTO);
    for (int r = 0; r < RANKS; r++) {
        must_say(team, r, odd);
        must_say(team, r, others);
    }
    team_free(team);
}

static int lines_with(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* A wait that has become old says so on stderr: the lowest waiting rank alone, and again at four
 * times that age. */
static void the_roll_call_of_an_old_wait(void **state)
{
    (void)state;
    setenv("TUTTI_WARN_MS", "100", 1);
    scene = WAITS_LONG;
    struct team *team = team_start(RANKS, plays, true);
    for (uint64_t end = clock_ns() + UINT64_C(30000000000);
         lines_with(team_stderr(team), "tutti: rank ") < 2 && clock_ns() < end;)
        usleep(5000);
    team_tell(team, 1, GO);
    team_dismiss(team, END);
    const char *text = team_stderr(team);
    show("old wait", text);
    assert_true(lines_with(text, "tutti: rank 0 has waited ") >= 2);
    assert_int_equal(lines_with(text, "tutti: rank 2 has waited "), 0);
    assert_non_null(strstr(text, "all_reduce f32 sum 4 #2 on world"));
    assert_non_null(strstr(text, "missing: rank 1\n"));
    assert_non_null(strstr(text, "after barrier #1 at watch/report_test.c:"));
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(team->rank[r].error[1], 0);            /* and nothing was broken by it */
    team_free(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_death, plain),
        cmocka_unit_test_setup(an_exit_past_the_library, plain),
        cmocka_unit_test_setup(three_ways_of_leaving, plain),
        cmocka_unit_test_setup(a_freed_comm, plain), cmocka_unit_test_setup(an_abort, plain),
        cmocka_unit_test_setup(a_refused_call_and_a_deadline, plain),
        cmocka_unit_test_setup(a_deadline, plain), cmocka_unit_test_setup(mismatches, plain),
        cmocka_unit_test_setup(a_mismatch_of_huge_counts, plain),
        cmocka_unit_test_setup(the_roll_call_of_an_old_wait, plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
