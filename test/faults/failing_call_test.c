/* ctest: timeout=300 labels=faults */
/* What one rank lacks: a call of the C library or of the kernel fails there, in a function that
 * all ranks call together. Each such function runs once to count the calls, then again for each
 * of them and each error that is plausible. No rank crashes or waits to its deadline, all or
 * none holds, the others' reports name the rank and what it lacked, and a comm of the same ranks
 * works afterwards.
 *
 * Here a lot is drawn by a seed; the whole product under TUTTI_PROVE. */
#include "failing_call.h"

#include "base/clock.h"
#include "support/ranks.h"
#include "support/team.h"
#include "support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    RANKS = 3,
    PEER = 1,
    DEADLINE_MS = 20000,
    WAITED_MS = DEADLINE_MS / 2,
    MIB = 1 << 20,
    KIB = 1 << 10,
    REPORT = 4000,
    CALLS_MOST = 24
};
enum { DRAWN = 300, DRAWN_SANITIZED = 60 };
enum { WORD_RESULT = 0, WORD_AFTER = RANKS, NUMBER_MS = 0, NUMBER_CALLS = RANKS };

/* ---- what the ranks do ----------------------------------------------------------------------- */

static _Alignas(64) char gives[4 * MIB], takes[4 * MIB];
static char folder[64];

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static tutti_call as_work(tutti_work **work) { return (tutti_call){ .work = work }; }

static int awaited(int r, tutti_work *const *work) { return r < 0 ? r : tutti_wait(*work, 0); }

static int barrier(tutti_comm *w, int rank) { (void)rank; return tutti_barrier(w, NULL); }

static int sums(tutti_comm *w, size_t bytes)
{
    return tutti_all_reduce(gives, takes, bytes / 4, TUTTI_I32, TUTTI_SUM, w, NULL);
}

static int sum_4k(tutti_comm *w, int rank) { (void)rank; return sums(w, 4 * KIB); }
static int sum_40k(tutti_comm *w, int rank) { (void)rank; return sums(w, 40 * KIB); }
static int sum_1m(tutti_comm *w, int rank) { (void)rank; return sums(w, MIB); }

static int broadcasts(tutti_comm *w, int rank)
{
    (void)rank;
    return tutti_broadcast(takes, MIB, TUTTI_U8, PEER, w, NULL);
}

static int gathers(tutti_comm *w, int rank)
{
    (void)rank;
    return tutti_gather(gives, takes, 40 * KIB, TUTTI_U8, 0, w, NULL);
}

static int scatters(tutti_comm *w, int rank)
{
    (void)rank;
    return tutti_scatter(gives, takes, MIB, TUTTI_U8, 0, w, NULL);
}

static int all_gathers(tutti_comm *w, int rank)
{
    (void)rank;
    return tutti_all_gather(gives, takes, MIB, TUTTI_U8, w, NULL);
}

static int all_to_alls(tutti_comm *w, int rank)
{
    (void)rank;
    return tutti_all_to_all(gives, takes, 20 * KIB, TUTTI_U8, w, NULL);
}

static int scatter_sums(tutti_comm *w, int rank)
{
    (void)rank;
    return tutti_reduce_scatter(gives, takes, 80 * KIB, TUTTI_F32, TUTTI_SUM, w, NULL);
}

static int scans(tutti_comm *w, int rank)
{
    (void)rank;
    return tutti_scan(gives, takes, 30 * KIB, TUTTI_F32, TUTTI_SUM, w, NULL);
}

static int alike(tutti_comm *w, int rank) { (void)rank; return tutti_same(gives, 100, w, NULL); }

static const size_t parts[RANKS] = { 30 * KIB, 70 * KIB, 10 };

static int gathers_v(tutti_comm *w, int rank)
{
    void *to[RANKS] = { takes, takes + MIB, takes + 2 * MIB };
    return tutti_all_gather_v(gives, parts[rank], to, parts, TUTTI_U8, w, NULL);
}

static int sums_many(tutti_comm *w, const tutti_call *call)
{
    const void *from[RANKS] = { gives, gives + MIB, gives + 2 * MIB };
    void *to[RANKS] = { takes, takes + MIB, takes + 2 * MIB };
    return tutti_all_reduce_many(from, to, parts, RANKS, TUTTI_U8, TUTTI_MAX, w, call);
}

static int sum_many(tutti_comm *w, int rank) { (void)rank; return sums_many(w, NULL); }

static int work_many(tutti_comm *w, int rank)
{
    tutti_work *work;
    tutti_call call = as_work(&work);
    (void)rank;
    return awaited(sums_many(w, &call), &work);
}

static int work_sum(tutti_comm *w, int rank)
{
    tutti_work *work;
    tutti_call call = as_work(&work);
    (void)rank;
    return awaited(tutti_all_reduce(gives, takes, 10 * KIB, TUTTI_F32, TUTTI_SUM, w, &call), &work);
}

/* Three under way at once; the blocking one comes behind them. */
static int behind_work(tutti_comm *w, int rank)
{
    tutti_work *work[2];
    int r = 0, n = 0;
    (void)rank;
    for (; n < 2 && r == 0; n++) {
        tutti_call call = as_work(&work[n]);
        r = tutti_all_reduce(gives + n * MIB, takes + n * MIB, 50 * KIB, TUTTI_F32, TUTTI_SUM, w,
                             &call);
    }
    n -= r < 0;
    if (r == 0)
        r = tutti_broadcast(takes + 3 * MIB, 100 * KIB, TUTTI_U8, 0, w, NULL);
    for (int i = 0; i < n; i++) {
        int end = tutti_wait(work[i], 0);
        r = r < 0 ? r : end;
    }
    return r;
}

static int freed(int r, tutti_comm *const *made) { return r < 0 ? r : tutti_comm_free(*made); }

static int splits(tutti_comm *w, int rank)
{
    tutti_comm *made;
    return freed(tutti_comm_split(w, 0, -rank, &made), &made);
}

static int splits_behind_work(tutti_comm *w, int rank)
{
    tutti_work *work;
    tutti_comm *made;
    tutti_call call = as_work(&work);
    int r = tutti_all_reduce(gives, takes, 200 * KIB, TUTTI_F32, TUTTI_SUM, w, &call);
    if (r < 0)
        return r;
    int split = freed(tutti_comm_split(w, 0, rank, &made), &made);
    r = tutti_wait(work, 0);
    return r < 0 ? r : split;
}

static const int listed[RANKS] = { 2, 0, 1 };

static int creates(tutti_comm *w, int rank)
{
    tutti_comm *made;
    (void)rank;
    return freed(tutti_comm_create(w, listed, RANKS, &made), &made);
}

/* What failed leaves nothing out of step: the next one of the same list succeeds. */
static int creates_again(tutti_comm *w, int rank)
{
    int r = creates(w, rank);
    failing_disarm();
    int again = creates(w, rank);
    return again < 0 ? -EPROTO : r;
}

static int shrinks(tutti_comm *w, int rank)
{
    tutti_comm *made;
    (void)rank;
    return freed(tutti_comm_shrink(w, &made), &made);
}

static void adds(const void *in, void *inout, size_t count, tutti_type type)
{
    (void)type;
    for (size_t i = 0; i < count; i++)
        ((int *)inout)[i] += ((const int *)in)[i];
}

static int op_creates(tutti_comm *w, int rank)
{
    tutti_op op;
    (void)rank;
    int r = tutti_op_create(adds, 0, &op, w);
    return r < 0 ? r : tutti_all_reduce(gives, takes, KIB, TUTTI_I32, op, w, NULL);
}

static int loads(tutti_comm *w, int rank)
{
    const void *data;
    size_t bytes;
    (void)rank;
    int r = tutti_load(path_of("given"), &data, &bytes, w, NULL);
    return r < 0 ? r : tutti_free((void *)(uintptr_t)data, w);
}

static int work_load(tutti_comm *w, int rank)
{
    const void *data;
    size_t bytes;
    tutti_work *work;
    tutti_call call = as_work(&work);
    (void)rank;
    int r = awaited(tutti_load(path_of("given"), &data, &bytes, w, &call), &work);
    return r < 0 ? r : tutti_free((void *)(uintptr_t)data, w);
}

static int saves(tutti_comm *w, int rank)
{
    (void)rank;
    return tutti_save(path_of("made"), gives, 300 * KIB, w, NULL);
}

/* ---- and what some of them do */

static int letters(tutti_comm *w, int rank, size_t bytes)
{
    if (rank == 0)
        return tutti_recv(takes, bytes, TUTTI_U8, PEER, 5, NULL, w, NULL);
    return rank == PEER ? tutti_send(gives, bytes, TUTTI_U8, 0, 5, w, NULL) : 0;
}

static int sends_4(tutti_comm *w, int rank) { return letters(w, rank, 4); }
static int sends_9k(tutti_comm *w, int rank) { return letters(w, rank, 9 * KIB); }
static int sends_4m(tutti_comm *w, int rank) { return letters(w, rank, 4 * MIB); }

static int receives(tutti_comm *w, int rank)
{
    if (rank == 0) {
        int r = tutti_send(gives, KIB, TUTTI_U8, PEER, 6, w, NULL);
        return r < 0 ? r : tutti_send(gives, 3 * MIB, TUTTI_U8, PEER, 5, w, NULL);
    }
    if (rank != PEER)
        return 0;
    int r = tutti_recv(takes, 3 * MIB, TUTTI_U8, 0, 5, NULL, w, NULL);
    return r < 0 ? r : tutti_recv(takes, KIB, TUTTI_U8, 0, 6, NULL, w, NULL);
}

/* Both ways at once, the blocking one beside the other. */
static int exchanges(tutti_comm *w, int rank)
{
    tutti_work *work;
    tutti_call call = as_work(&work);
    if (rank > PEER)
        return 0;
    int r = tutti_recv(takes, 200 * KIB, TUTTI_U8, 1 - rank, 7, NULL, w, &call);
    if (r < 0)
        return r;
    int sent = tutti_send(gives, 200 * KIB, TUTTI_U8, 1 - rank, 7, w, NULL);
    r = tutti_wait(work, 0);
    return sent < 0 ? sent : r;
}

static int nothing(void *arg) { (void)arg; return 0; }

static int runs_once(tutti_comm *w, int rank)
{
    (void)rank;
    return tutti_once("a", nothing, NULL, w, NULL);
}

static int goes_first(tutti_comm *w, int rank)
{
    (void)rank;
    int r = tutti_first_begin("b", w, NULL);
    return r == 1 ? tutti_first_end("b", 0, w) : r;
}

static int takes_turns(tutti_comm *w, int rank)
{
    (void)rank;
    int r = tutti_turn_begin(w, NULL);
    return r < 0 ? r : tutti_turn_end(w);
}

/* Who could not set a key knows it, and nobody else asks why there is none yet: so it
 * tries again. */
static int keeps(tutti_comm *w, int rank)
{
    size_t n = sizeof takes;
    int r = rank == 0 ? tutti_set("k", gives, 3000, w) : 0;
    failing_disarm();
    int again = r < 0 ? tutti_set("k", gives, 3000, w) : 0;
    again = again < 0 ? -EPROTO : tutti_get("k", takes, &n, w, NULL);
    return r < 0 ? r : again;
}

static int allocates(tutti_comm *w, int rank)
{
    (void)rank;
    errno = 0;
    void *small = tutti_alloc(100, w), *large = tutti_alloc(MIB, w);
    int r = small && large ? 0 : -ENOMEM;
    if (small)
        tutti_free(small, w);
    if (large)
        tutti_free(large, w);
    return r;
}

static int registers(tutti_comm *w, int rank)
{
    char *at = aligned_alloc(4096, 64 * KIB);
    (void)rank;
    if (!at)
        return -ENOMEM;
    memset(at, 7, 64 * KIB);
    int r = tutti_register(at, 64 * KIB, w), back = 0;
    if (r == 0)
        while ((back = tutti_unregister(at, w)) == -ENOMEM
               && failing_calls(FAIL_MMAP) < CALLS_MOST) {
        }
    for (int i = 0; i < 64 * KIB; i++)
        if (at[i] != 7)
            return -EPROTO;
    if (r == 0 && back == 0)
        free(at);
    return r < 0 ? r : back;
}

#define OLDER "a key of an older failure"

enum { ALONE = 1 };     /* not all or none: one may have what it asked for where another has not */
struct act { const char *name; int (*run)(tutti_comm *world, int rank); unsigned flags; };

static const struct act acts[] = {
    { "barrier", barrier, 0 }, { "all_reduce, 4 KiB", sum_4k, 0 },
    { "all_reduce, 40 KiB", sum_40k, 0 }, { "all_reduce, 1 MiB", sum_1m, 0 },
    { "broadcast, 1 MiB", broadcasts, 0 }, { "gather", gathers, 0 },
    { "scatter, 1 MiB", scatters, 0 }, { "all_gather, 1 MiB", all_gathers, 0 },
    { "all_to_all", all_to_alls, 0 }, { "reduce_scatter", scatter_sums, 0 }, { "scan", scans, 0 },
    { "same", alike, 0 }, { "all_gather_v", gathers_v, 0 }, { "all_reduce_many", sum_many, 0 },
    { "all_reduce_many as work", work_many, 0 }, { "all_reduce as work", work_sum, 0 },
    { "broadcast behind work", behind_work, 0 }, { "split", splits, 0 },
    { "split behind work", splits_behind_work, 0 }, { "create", creates, 0 },
    { "create again", creates_again, 0 }, { "shrink", shrinks, 0 }, { "op_create", op_creates, 0 },
    { "load", loads, 0 }, { "load as work", work_load, 0 }, { "save", saves, 0 },
    { "send, 4 B", sends_4, ALONE }, { "send, 9 KiB", sends_9k, ALONE },
    { "send, 4 MiB", sends_4m, ALONE }, { "recv", receives, ALONE },
    { "send beside work", exchanges, ALONE }, { "once", runs_once, ALONE },
    { "first", goes_first, ALONE }, { "turn", takes_turns, ALONE }, { "set, get", keeps, ALONE },
    { "alloc", allocates, ALONE }, { "register", registers, ALONE },
};
enum { ACTS = sizeof acts / sizeof acts[0] };

/* ---- one run --------------------------------------------------------------------------------- */

static struct trial { int act, victim; enum failing_call call; uint32_t nth; int error; } trial;

/* On a comm that has failed or not: those who are there go on. */
static int body_after(tutti_comm *world)
{
    tutti_comm *left;
    int r = tutti_comm_shrink(world, &left);
    if (r < 0)
        return r;
    r = tutti_size(left) == RANKS ? tutti_barrier(left, NULL) : -EOWNERDEAD;
    return r < 0 ? r : tutti_comm_free(left);
}

static int body(tutti_comm *world, int rank)
{
    tutti_set_timeout(world, DEADLINE_MS);
    memset(gives, 1, sizeof gives);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_delete(OLDER, world), -ENOENT);   /* its report is none of what comes then */
    CHECK(strstr(tutti_explain(world), OLDER));
    CHECK_IS(tutti_barrier(world, NULL), 0);
    uint64_t began = clock_ns();
    if (rank == trial.victim)
        failing_arm(trial.call, trial.nth, trial.error);
    int r = acts[trial.act].run(world, rank);
    failing_disarm();
    store_release64(&page->number[NUMBER_MS + rank], (clock_ns() - began) / 1000000);
    store_release32(&page->word[WORD_RESULT + rank], (uint32_t)-r);
    snprintf(page->bytes + rank * REPORT, REPORT, "%s", tutti_explain(world));
    for (int c = 0; rank == trial.victim && c < FAIL_CALLS; c++)
        store_release64(&page->number[NUMBER_CALLS + c], failing_calls((enum failing_call)c));
    store_release32(&page->word[WORD_AFTER + rank], (uint32_t)-body_after(world));
    return 0;
}

enum outcome { PASSED, FAILED, NOT_MET, OUTCOMES };
static uint32_t to_deadline;

static int result_of(int rank) { return -(int)load_acquire32(&page->word[WORD_RESULT + rank]); }
static const char *report_of(int rank) { return page->bytes + rank * REPORT; }

static bool says_why(const char *report)
{
    char named[16];
    snprintf(named, sizeof named, "rank %d", trial.victim);
    const char *const reasons[] = {
        strerror(trial.error), strerror(-result_of(trial.victim)),
        "memory", "pages", "too many comms"
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (strstr(report, reasons[i]))
            return strstr(report, named) != NULL;
    return false;
}

/* NULL: it is as it should be. */
static const char *judge(enum outcome *outcome)
{
    int failed = 0;
    for (int r = 0; r < RANKS; r++) {
        bool waited = load_acquire64(&page->number[NUMBER_MS + r]) > WAITED_MS
            || result_of(r) == -ETIMEDOUT;
        to_deadline += waited;
        if (waited)
            return "a rank waited to its deadline";
        failed += result_of(r) < 0;
        if (load_acquire32(&page->word[WORD_AFTER + r]))
            return "no comm of the same ranks afterwards";
        if (result_of(r) == -EPROTO)
            return "out of step";
    }
    *outcome = failed ? FAILED : PASSED;
    if (trial.nth && load_acquire64(&page->number[NUMBER_CALLS + trial.call]) < trial.nth)
        *outcome = NOT_MET;
    for (int r = 0; r < RANKS; r++)
        if (result_of(r) < 0 && strstr(report_of(r), OLDER))
            return "the report of an older failure";
    if (acts[trial.act].flags & ALONE)
        return NULL;
    if (failed && failed < RANKS)
        return "not all or none";
    for (int r = 0; r < RANKS && failed; r++)
        if (r != trial.victim && !says_why(report_of(r)))
            return "a report that does not say which rank lacked what";
    return NULL;
}

static int run(struct trial t, enum outcome *outcome)
{
    trial = t;
    const char *bad = ranks_run(RANKS, body, 0) ? "a rank crashed or hung" : judge(outcome);
    if (!bad)
        return 0;
    fprintf(stderr, "%s: %s number %u at rank %d: %s: %s\n", acts[t.act].name,
            failing_kinds[t.call].name, t.nth, t.victim, t.error ? strerror(t.error) : "none", bad);
    for (int r = 0; r < RANKS; r++)
        fprintf(stderr, "  rank %d: %d after %llu ms, afterwards %d: %s\n", r, result_of(r),
                (unsigned long long)load_acquire64(&page->number[NUMBER_MS + r]),
                -(int)load_acquire32(&page->word[WORD_AFTER + r]), report_of(r));
    return 1;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static struct { struct trial *at; size_t n, room; } all;
static uint32_t calls_of[ACTS];

static void add(struct trial t)
{
    if (all.n == all.room) {
        all.room = all.room ? 2 * all.room : 1024;
        all.at = realloc(all.at, all.room * sizeof *all.at);
        assert_non_null(all.at);
    }
    all.at[all.n++] = t;
}

static void count(int act, int victim)
{
    enum outcome outcome;
    assert_int_equal(run((struct trial){ act, victim, FAIL_MALLOC, 0, 0 }, &outcome), 0);
    assert_int_equal(outcome, PASSED);
    for (int c = 0; c < FAIL_CALLS; c++) {
        uint32_t calls = (uint32_t)load_acquire64(&page->number[NUMBER_CALLS + c]);
        calls_of[act] += calls;
        for (uint32_t n = 1; n <= calls && n <= CALLS_MOST; n++)
            for (int e = 0; e < FAIL_ERRORS && failing_kinds[c].errors[e]; e++)
                add((struct trial){ act, victim, (enum failing_call)c, n,
                                    failing_kinds[c].errors[e] });
    }
}

static void draw(size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n && i < all.n; i++) {
        size_t other = i + team_random(random) % (all.n - i);
        struct trial t = all.at[i];
        all.at[i] = all.at[other];
        all.at[other] = t;
    }
}

static bool wanted(const struct trial *t)
{
    const char *act = getenv("TUTTI_REFUSE_ACT"), *call = getenv("TUTTI_REFUSE_CALL");
    return (!act || strstr(acts[t->act].name, act))
        && (!call || !strcmp(failing_kinds[t->call].name, call));
}

static void test_refuse(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    uint32_t tried[ACTS] = { 0 }, outcomes[ACTS][OUTCOMES] = { 0 }, sum = 0;
    int bad = 0;
    for (int a = 0; a < ACTS; a++)
        for (int victim = 0; victim < RANKS; victim++)
            count(a, victim);
    size_t most = getenv("TUTTI_PROVE") ? all.n
                                        : (size_t)team_many("TUTTI_REFUSE", DRAWN, DRAWN_SANITIZED);
    draw(most, &random);
    for (size_t i = 0; i < most && i < all.n; i++) {
        enum outcome outcome = NOT_MET;
        if (!wanted(&all.at[i]))
            continue;
        tried[all.at[i].act]++;
        bad += run(all.at[i], &outcome);
        outcomes[all.at[i].act][outcome]++;
    }
    printf("  %-26s %6s %6s %7s %7s %8s\n", "function", "calls", "tried", "passed", "failed",
           "not met");
    for (int a = 0; a < ACTS; a++) {
        printf("  %-26s %6u %6u %7u %7u %8u\n", acts[a].name, calls_of[a], tried[a],
               outcomes[a][PASSED], outcomes[a][FAILED], outcomes[a][NOT_MET]);
        sum += tried[a];
    }
    printf("  %u of %zu failures tried, %d wrong; waits to a deadline: %u\n", sum, all.n, bad,
           to_deadline);
    free(all.at);
    assert_int_equal(bad, 0);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(scratch_name(folder, sizeof folder, "refuse")))
        return -1;
    int fd = open(path_of("given"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ssize_t wrote = fd < 0 ? -1 : write(fd, gives, 300 * KIB);
    return fd < 0 || close(fd) < 0 || wrote != 300 * KIB ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path_of("given"));
    unlink(path_of("made"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_refuse) };
    return cmocka_run_group_tests(tests, setup, teardown);
}
