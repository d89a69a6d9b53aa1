/* ctest: timeout=600 labels=faults,nosan */
/* One rank is killed at every point that others can tell from the one before, of every operation:
 * after each of its stores to shared memory, after each of its system calls, in its sleep, and at
 * instructions drawn by lot; and at every instruction of those in `acts` that say so. The others
 * sleep in the operation when it begins, or come when it first sleeps, or at a moment drawn by
 * lot. By default a share of the points is tried, another one each run. A failure prints how to
 * repeat its point.
 *   TUTTI_KILL_AT=POINT       that point alone; TUTTI_KILL_TIMES=N: so often
 *   TUTTI_KILL_EVERY=1        all points, as under TUTTI_PROVE
 *   TUTTI_KILL_RANDOM=N       points by lot, per operation
 *   TUTTI_KILL_ONLY=A,B       operations with these parts in their names
 *   TUTTI_KILL_STEPPED=RANK   every instruction of this rank alone
 *   TUTTI_TEST_SEED=N         the same lots again
 * In `two_…` a second rank dies, caught and led on while the others find out about the first,
 * shrink, and go on; in `progress_…` the thread that carries work on is led, and the thread that
 * began it is not.
 * nosan: it counts instructions, and would count the sanitizer's. */
#include "base/clock.h"
#include "support/team.h"
#include "trial.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { ROWS = 200, WRONGS = 20, TAIL_MOST = 200, NEXT_JOB = 16, TIMES = 4096 };

/* How many points of one sweep are tried by default, and by lot of one operation. Where all are: up
   to so many instructions, which is where an operation is decided; what comes then is the text of a
   report, a hundred thousand of them, of which that many are drawn. */
enum {
    SHARE_INSTRUCTIONS = 24,
    SHARE_BEYOND = 2,
    SHARE_EVENTS = 6,
    LOTS = 4,
    LOTS_PROVE = 2000,
    INSTRUCTIONS_ALL = 2000,
    INSTRUCTIONS_BEYOND = 200
};

static const int errors[] = { 0, -EOWNERDEAD, -ECANCELED, -ETIMEDOUT, -EPROTO };
enum { ERRORS = sizeof errors / sizeof errors[0] };

static struct row {
    const struct act *act;
    const char *how;
    long steps, all, tried, gave[ERRORS], hangs, wrong;
    uint64_t worst_ns;
    float *ms;                  /* [TIMES]: of trials in which survivors met the death after it */
    int times;
    char worst_at[120];
} rows[ROWS];
static int rows_count, rows_said, wrongs;
static long trials;
static uint64_t lots;

static bool everything(void)
{
    return getenv("TUTTI_PROVE")
        || (getenv("TUTTI_KILL_EVERY") && atoi(getenv("TUTTI_KILL_EVERY")) == 1);
}

static bool asked_for(const struct act *act)
{
    char parts[600], *save = NULL;
    const char *only = getenv("TUTTI_KILL_ONLY");
    snprintf(parts, sizeof parts, "%s", only ? only : "");
    for (char *part = strtok_r(parts, ",", &save); part; part = strtok_r(NULL, ",", &save))
        if (strstr(act->name, part))
            return true;
    return !only || !*only;
}

static int living_of(const struct act *act)
{
    return act->size - (act->flags & (ACT_DEAD | ACT_BROKEN) ? 1 : 0);
}

static struct row *row_of(const struct act *act, const char *how)
{
    for (int i = 0; i < rows_count; i++)
        if (rows[i].act == act && rows[i].how == how)
            return &rows[i];
    assert_true(rows_count < ROWS);
    rows[rows_count] = (struct row){ .act = act, .how = how, .ms = calloc(TIMES, sizeof(float)) };
    assert_non_null(rows[rows_count].ms);
    return &rows[rows_count++];
}

static int float_order(const void *a, const void *b)
{
    return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b);
}

static double median(const struct row *r)
{
    qsort(r->ms, (size_t)r->times, sizeof *r->ms, float_order);
    return r->times ? (double)r->ms[r->times / 2] : 0;
}

static void head(void)
{
    printf("%-22s %-12s %6s %7s %7s %7s %7s %7s %7s %7s %7s %9s %5s %5s  worst at\n", "operation",
           "killed at", "steps", "points", "tried", "got 0", "DEAD", "CANCEL", "TIMEOUT", "PROTO",
           "mid ms", "worst ms", "hangs", "wrong");
}

/* Those that have come since the last time. */
static void table(void)
{
    for (; rows_said < rows_count; rows_said++) {
        struct row *r = &rows[rows_said];
        printf("%-22s %-12s %6ld %7ld %7ld %7ld %7ld %7ld %7ld %7ld %7.2f %9.2f %5ld %5ld  %s\n",
               r->act->name, r->how, r->steps, r->all, r->tried, r->gave[0], r->gave[1], r->gave[2],
               r->gave[3], r->gave[4], median(r), (double)r->worst_ns / 1e6, r->hangs, r->wrong,
               r->worst_at);
    }
    fflush(stdout);
}

static void complain(const struct point *p, const char *text)
{
    char at[120];
    trial_say(p, at, sizeof at);
    printf("WRONG: TUTTI_KILL_AT=%s\n%s", at, text);
    fflush(stdout);
    if (++wrongs >= WRONGS)
        fail_msg("%d points are wrong", wrongs);
}

static void try_point(struct row *row, const struct point *p, struct trial_result *r)
{
    char text[600];
    trial_run(p, r);
    row->tried++;
    row->hangs += r->hang;
    row->wrong += r->wrong;
    for (int i = 0; i < ERRORS; i++)
        row->gave[i] += errors[i] == (r->gave > 0 ? 0 : r->gave);
    if (r->worst_ns && row->times < TIMES)
        row->ms[row->times++] = (float)r->worst_ns / 1e6f;
    if (r->worst_ns > row->worst_ns) {
        row->worst_ns = r->worst_ns;
        trial_say(p, row->worst_at, sizeof row->worst_at);
    }
    if (r->wrong)
        complain(p, r->text);
    else if (((p->act->flags & ACT_JOINS) || trials % NEXT_JOB == 0)
             && !trial_next_job(text, sizeof text)) {
        row->wrong++;
        complain(p, "the next job does not work:\n");
        printf("%s", text);
    }
    trials++;
}

/* How a point of one sweep is reached: event n, or instruction n, which lies so many instructions
 * behind an event. */
static void place(struct point *p, long n, const long *gap)
{
    p->n = n;
    p->tail = 0;
    if (!gap)
        return;
    for (p->n = 0, p->tail = n; p->n < GAPS - 1 && p->tail >= gap[p->n] && gap[p->n]; p->n++)
        p->tail -= gap[p->n];
}

/* Points from … to: `share` of them, evenly spread from an offset drawn by lot; share 0: all. */
static void sweep_range(struct row *row, struct point p, long from, long to, long share,
                        const long *gap)
{
    static struct trial_result r;
    long stride = share && to - from >= share ? (to - from + share) / share : 1;
    for (long n = from + (stride > 1 ? (long)(team_random(&lots) % (uint64_t)stride) : 0); n <= to;
         n += stride) {
        place(&p, n, gap);
        try_point(row, &p, &r);
    }
}

/* Points 0 … count of one kind. */
static void sweep(struct row *row, struct point p, long count, long share, const long *gap)
{
    long near = gap && count > INSTRUCTIONS_ALL ? INSTRUCTIONS_ALL : count;
    row->all += count + 1;
    sweep_range(row, p, 0, near, everything() ? 0 : share, gap);
    if (count > near)
        sweep_range(row, p, near + 1, count, everything() ? INSTRUCTIONS_BEYOND : SHARE_BEYOND,
                    gap);
}

/* Every point of one operation by one victim, with the others there before it (release 0) or
 * later (-1). */
static void sweep_all(const struct act *act, int victim, bool events, long release, long *steps)
{
    struct row *row = row_of(act, events ? "events" : "instructions");
    struct point p = {
        .act = act, .victim = victim, .release = release, .events = events, .measure = !events,
        .after = release == 0, .n = LONG_MAX
    };
    static struct trial_result whole;
    struct trial_result *r = &(struct trial_result){ 0 };
    long share = events ? SHARE_EVENTS : SHARE_INSTRUCTIONS;
    try_point(row, &p, &whole);
    *steps = whole.before + whole.after;
    row->steps = *steps > row->steps ? *steps : row->steps;
    p.events = true;
    p.measure = false;
    if (release == 0) {
        sweep(row, p, whole.after, share, events ? NULL : whole.gap[1]);
        return;
    }
    sweep(row, p, whole.before, share / 2, events ? NULL : whole.gap[0]);
    struct point asleep = p;
    asleep.asleep = true;
    try_point(row, &asleep, r);
    p.after = true;
    if (whole.after)
        sweep(row, p, whole.after, share / 2 + 1, events ? NULL : whole.gap[1]);
}

static void by_lot(const struct act *act, long steps)
{
    struct row *row = row_of(act, "by lot");
    struct trial_result r;
    int many = team_many("TUTTI_KILL_RANDOM", getenv("TUTTI_PROVE") ? LOTS_PROVE : LOTS, LOTS);
    for (int i = 0; i < many; i++) {
        struct point p = {
            .act = act, .victim = (int)(team_random(&lots) % (uint64_t)living_of(act)),
            .events = true
        };
        p.release = (long)(team_random(&lots) % (uint64_t)(steps + 2)) - 1;
        p.after = p.release == 0 || team_random(&lots) % 2;
        p.n = (long)(team_random(&lots) % (uint64_t)(steps + 1));
        p.tail = (long)(team_random(&lots) % TAIL_MOST);
        try_point(row, &p, &r);
    }
    row->all += many;
    row->steps = steps;
}

/* Where the second one dies: near where it was caught, where it finds out, anywhere up
 * to its end. */
static void draw_second(struct point *p)
{
    static const long far[] = { 30, 600, 4000, 60000 };
    p->second = 1
        + (int)((uint64_t)(p->victim + 1) + team_random(&lots) % (uint64_t)(p->act->size - 1))
            % p->act->size;
    p->second_events = team_random(&lots) % 2;
    p->second_n = (long)(team_random(&lots)
                         % (uint64_t)(p->second_events ? 120 : far[team_random(&lots) % 4]));
}

static void two_by_lot(const struct act *act)
{
    struct row *row = row_of(act, "by lot");
    static struct trial_result r;
    int many = team_many("TUTTI_KILL_RANDOM", getenv("TUTTI_PROVE") ? LOTS_PROVE : LOTS, LOTS);
    struct point p = { .act = act, .events = true, .n = LONG_MAX, .release = -1 };
    p.victim = (int)(team_random(&lots) % (uint64_t)act->size);
    try_point(row, &p, &r);                          /* at its end, and alone: how far that is */
    long most = r.before + r.after;
    long both = 0;
    for (int i = 0; i < many; i++) {
        p = (struct point){
            .act = act, .victim = (int)(team_random(&lots) % (uint64_t)act->size), .events = true
        };
        p.release = (long)(team_random(&lots) % (uint64_t)(most + 2)) - 1;
        p.after = p.release == 0 || team_random(&lots) % 2;
        p.n = (long)(team_random(&lots) % (uint64_t)(most + 1));
        p.tail = (long)(team_random(&lots) % TAIL_MOST);
        draw_second(&p);
        try_point(row, &p, &r);
        both += r.two;
    }
    row->all += many + 1;
    row->steps = most;
    table();
    printf("    in %ld of %d two ranks died\n", both, many);
}

/* By instructions from the start alone. */
static void stepped_by_lot(const struct act *act)
{
    struct row *row = row_of(act, "by lot");
    static struct trial_result r;
    int many = team_many("TUTTI_KILL_RANDOM", getenv("TUTTI_PROVE") ? LOTS_PROVE : LOTS, LOTS);
    for (long release = 0; release >= -1; release--) {
        struct point p = { .act = act, .release = release, .after = release == 0, .n = LONG_MAX };
        p.victim = (int)(team_random(&lots) % (uint64_t)act->size);
        try_point(row, &p, &r);
        long most = r.before > r.after ? r.before : r.after;
        row->steps = r.before + r.after;
        for (int i = 0; i < many; i++) {
            p.victim = (int)(team_random(&lots) % (uint64_t)act->size);
            p.after = release == 0 || team_random(&lots) % 2;
            p.n = (long)(team_random(&lots) % (uint64_t)(most + 1));
            try_point(row, &p, &r);
        }
        row->all += many;
    }
    table();
}

static void campaign(const struct act *act)
{
    if (act->flags & ACT_TWO) {
        two_by_lot(act);
        return;
    }
    if (act->flags & (ACT_THREADS | ACT_PROGRESS)) {
        stepped_by_lot(act);
        return;
    }
    int living = living_of(act),
        from = everything() ? 0 : (int)(team_random(&lots) % (uint64_t)living),
        to = everything() ? living : from + 1;
    const char *stepped = getenv("TUTTI_KILL_STEPPED");
    long steps = 0, most = 0;
    for (int v = from; v < to; v++)
        for (long release = 0; release >= -1; release--) {
            if ((act->flags & ACT_INSTRUCTIONS) && (!stepped || atoi(stepped) == v))
                sweep_all(act, v, false, release, &steps);
            sweep_all(act, v, true, release, &steps);
            most = steps > most ? steps : most;
        }
    by_lot(act, most);
    table();
}

static void sums(void)
{
    struct rusage own, others;
    long points = 0, hangs = 0, wrong = 0;
    uint64_t worst = 0;
    for (int i = 0; i < rows_count; i++) {
        points += rows[i].tried;
        hangs += rows[i].hangs;
        wrong += rows[i].wrong;
        worst = rows[i].worst_ns > worst ? rows[i].worst_ns : worst;
    }
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &others);
    printf("%ld points tried, %ld hangs, %ld wrong, worst %.2f ms from a kill to a survivor's "
           "error; %ld s of CPU\n",
           points, hangs, wrong, (double)worst / 1e6,
           own.ru_utime.tv_sec + own.ru_stime.tv_sec + others.ru_utime.tv_sec
               + others.ru_stime.tv_sec);
    fflush(stdout);
}

static bool may_trace(void)
{
    char why[200];
    if (trial_allowed(why, sizeof why))
        return true;
    printf("skipped: %s\n", why);
    return false;
}

static void every_point(void **state)
{
    char text[600];
    (void)state;
    lots = team_seed();
    if (!trial_next_job(text, sizeof text))
        fail_msg("a job without deaths does not work: %s", text);
    head();
    for (int i = 0; i < acts_count; i++)
        if (asked_for(&acts[i]))
            campaign(&acts[i]);
    sums();
    assert_true(rows_count > 0);
    assert_int_equal(wrongs, 0);
}

/* What has ended by itself is no longer to be killed, and its end stands. */
static void one_that_ends_first(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(trial_led_to_its_end(i % 2), 0);
}

static void one_point(void **state)
{
    struct point p;
    struct trial_result r;
    char text[600];
    (void)state;
    assert_true(trial_read(&p, getenv("TUTTI_KILL_AT")));
    assert_true(trial_next_job(text, sizeof text));
    for (int i = team_many("TUTTI_KILL_TIMES", 1, 1); i > 0; i--)
        try_point(row_of(p.act, "at"), &p, &r);
    printf("reached: %d; %ld steps before the others were let in, %ld after; they got %d\n",
           r.reached, r.before, r.after, r.gave);
    head();
    table();
    assert_int_equal(wrongs, 0);
}

int main(void)
{
    const struct CMUnitTest one[] = { cmocka_unit_test(one_point) },
                            all[] = { cmocka_unit_test(one_that_ends_first),
                                      cmocka_unit_test(every_point) };
    trial_open();
    if (!may_trace())
        return 77;
    return getenv("TUTTI_KILL_AT") ? cmocka_run_group_tests(one, NULL, NULL)
                                   : cmocka_run_group_tests(all, NULL, NULL);
}
