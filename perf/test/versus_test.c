/* What `versus` says is proved, and which rounds it drops, without ranks. The intervals are held
 * against tables of the sign test, and against draws of which the median is known. */
#include "reports/versus_tell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct series from_to(int first, int last)
{
    struct series s = { 0 };
    for (int i = last; i >= first; i--)              /* not in order */
        series_add(&s, i);
    return s;
}

/* Conover, Practical Nonparametric Statistics, quantiles of B(n, 0.5). */
static void test_ranks_are_those_of_the_sign_test(void **state)
{
    static const size_t known[][2] = {
        { 0, 0 }, { 5, 0 }, { 6, 1 }, { 8, 1 }, { 9, 2 }, { 10, 2 }, { 12, 3 }, { 15, 4 },
        { 20, 6 }, { 25, 8 }, { 30, 10 }, { 50, 18 }, { 100, 40 }
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(interval_rank(known[i][0]), known[i][1]);
}

static void test_interval_is_of_order_statistics(void **state)
{
    struct series s = from_to(1, 20), few = from_to(1, 5);
    struct interval i = interval_of(&s), none = interval_of(&few);
    (void)state;
    assert_true(i.known && i.n == 20 && i.median == 10.5 && i.low == 6 && i.high == 15);
    assert_true(!none.known && none.median == 3);
    assert_int_equal(interval_verdict(&none), VERDICT_UNKNOWN);
    series_free(&s);
    series_free(&few);
}

/* In so many of 100 draws from a lopsided distribution the interval holds the true median. */
static void test_interval_holds_what_it_says(void **state)
{
    enum { DRAWS = 2000, ROUNDS = 15 };
    uint64_t x = 88172645463325252u;
    int held = 0;
    (void)state;
    for (int d = 0; d < DRAWS; d++) {
        struct series s = { 0 };
        for (int k = 0; k < ROUNDS; k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            double u = (double)(x >> 11) / 9007199254740992.0;
            series_add(&s, u * u * u);               /* the median is 1/8 */
        }
        struct interval i = interval_of(&s);
        held += i.low <= 0.125 && 0.125 <= i.high;
        series_free(&s);
    }
    assert_true(held >= DRAWS * 95 / 100 && held <= DRAWS * 98 / 100);     /* 96.5 % exactly */
}

static void test_behind_needs_the_whole_interval(void **state)
{
    static const struct { double low, high; enum verdict want; } cases[] = {
        { 0.80, 0.99, VERDICT_BEHIND }, { 0.80, 1.00, VERDICT_LEVEL },
        { 0.80, 1.01, VERDICT_LEVEL }, { 1.00, 1.20, VERDICT_LEVEL }, { 1.01, 1.20, VERDICT_AHEAD }
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct interval i = { 0.9, cases[k].low, cases[k].high, 9, true };
        assert_int_equal(interval_verdict(&i), cases[k].want);
    }
}

static void test_near_far_and_changed(void **state)
{
    (void)state;
    assert_int_equal(line_state(52, 55), LINE_NEAR);
    assert_int_equal(line_state(240, 250), LINE_FAR);
    assert_int_equal(line_state(55, 240), LINE_CHANGED);
    assert_int_equal(line_state(240, 55), LINE_CHANGED);
    assert_int_equal(line_state(110, 120), LINE_CHANGED);       /* hardly, but across the border */
    assert_int_equal(line_state(50, 80), LINE_CHANGED);
    assert_int_equal(line_state(400, 240), LINE_CHANGED);
    assert_int_equal(line_state(0, 55), LINE_CHANGED);
    assert_int_equal(line_state(0, 0), LINE_CHANGED);
}

static const struct point here = { OP_BROADCAST, 2, 65536 };

static struct round a_round(double before, double after, double tutti, double impi)
{
    struct round r = {
        .point = here, .before = before, .after = after, .load = 1.5, .when = 1790000000
    };
    r.ns[VERSUS_TUTTI] = tutti;
    r.ns[VERSUS_IMPI] = impi;
    return r;
}

static void test_a_round_is_read_as_it_was_written(void **state)
{
    char line[ROUND_BYTES];
    struct round r = a_round(52.5, 53.25, 3700, 3050.5), back;
    (void)state;
    for (int i = VERSUS_IMPI; i < VERSUS_SYSTEMS; i++)
        r.ns[i] = 1234570;                     /* 1.23457e+06: as long as any */
    round_write(&r, line);
    assert_true(round_read(line, &back));
    assert_memory_equal(&back.point, &r.point, sizeof r.point);
    assert_true(back.before == 52.5 && back.load == 1.5 && back.when == 1790000000);
    for (int i = 0; i < VERSUS_SYSTEMS; i++)
        assert_true(back.ns[i] == r.ns[i]);
    for (size_t n = strlen(line) - 1; n > 0; n--) {              /* a run that was ended */
        line[n] = 0;
        assert_false(round_read(line, &back));
    }
    assert_false(round_read("{\"system\": \"impi\", \"version\": \"1\"}\n", &back));
}

static void test_changed_rounds_are_dropped_and_states_kept_apart(void **state)
{
    static const double lines[][2] = {
        { 50, 51 }, { 50, 240 }, { 240, 241 }, { 52, 50 }, { 0, 50 }
    };
    struct rounds all;
    char why[256];
    size_t dropped;
    (void)state;
    assert_true(rounds_open(&all, NULL, "{}", why, sizeof why));
    for (int i = 0; i < 5; i++) {
        struct round r = a_round(lines[i][0], lines[i][1], 100, 100 * (i + 2));
        rounds_add(&all, &r);
        r.point.bytes = 4;                           /* another point */
        rounds_add(&all, &r);
    }
    assert_int_equal(rounds_count(&all, &here, &dropped), 3);
    assert_int_equal(dropped, 2);
    struct series near = rounds_ratios(&all, &here, LINE_NEAR, VERSUS_IMPI),
                  far = rounds_ratios(&all, &here, LINE_FAR, VERSUS_IMPI),
                  none = rounds_ratios(&all, &here, LINE_NEAR, VERSUS_MPICH),
                  time = rounds_ns(&all, &here, LINE_FAR, VERSUS_IMPI);
    assert_true(near.n == 2 && near.at[0] == 2 && near.at[1] == 5);
    assert_true(far.n == 1 && far.at[0] == 4 && none.n == 0);
    assert_true(time.n == 1 && time.at[0] == 400);
    series_free(&near);
    series_free(&far);
    series_free(&time);
    rounds_close(&all);
}

static void test_a_floor_is_the_shortest_of_its_round(void **state)
{
    struct rounds all;
    char why[256];
    (void)state;
    assert_true(rounds_open(&all, NULL, "{}", why, sizeof why));
    for (int i = 0; i < 3; i++) {
        struct round r = a_round(50, 50, 100, 60);
        r.ns[VERSUS_FLOOR] = i < 2 ? 80 : 0;
        r.ns[VERSUS_FLOOR_DIRECT] = i == 1 ? 50 : 0;     /* the third round has no floor */
        rounds_add(&all, &r);
    }
    struct series tutti = rounds_over_floor(&all, &here, LINE_NEAR, VERSUS_TUTTI),
                  impi = rounds_over_floor(&all, &here, LINE_NEAR, VERSUS_IMPI);
    assert_true(tutti.n == 2 && tutti.at[0] == 1.25 && tutti.at[1] == 2);
    assert_true(impi.n == 2 && impi.at[0] == 0.75 && impi.at[1] == 1.2);
    series_free(&tutti);
    series_free(&impi);
    rounds_close(&all);
}

static void begin(struct report *report, struct rounds *all)
{
    static const struct perf_program program = { .name = "test" };
    char why[256];
    report_begin(report, &program);
    assert_true(rounds_open(all, NULL, "{}", why, sizeof why));
}

static bool remarked(const struct report *report, const char *what)
{
    for (int i = 0; i < report->remark_count; i++)
        if (strstr(report->remarks[i].text, what))
            return true;
    return false;
}

/* Of two ranks a point where the peer is below the floor, too, and one where it is not; a point of
 * four ranks is counted apart. */
static void test_behind_is_counted_beside_the_floor(void **state)
{
    static const struct point points[] = {
        { OP_BROADCAST, 2, 65536 }, { OP_PINGPONG, 2, 4 }, { OP_BROADCAST, 4, 65536 }
    };
    struct report report;
    struct rounds all;
    (void)state;
    begin(&report, &all);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 3; k++) {
            struct round r = a_round(50, 51, 100, 80 + i);
            r.point = points[k];
            r.ns[k < 2 ? VERSUS_PAIR_FINE : VERSUS_FLOOR] = k == 1 ? 70 : 95;
            r.ns[VERSUS_PAIR_WHOLE] = k < 2 ? 99 : 0;
            rounds_add(&all, &r);
        }
    versus_tell(&report, &all, points, 3);
    const struct table *last = &report.tables[report.table_count - 1];
    assert_string_equal(last->title, "Beside the floor");
    assert_int_equal(last->rows, 3);
    assert_true(remarked(&report, "near, 2 ranks, 2 points: behind 2, of them below the floor 1;"));
    assert_true(remarked(&report, "near, more ranks than CPUs, 1 points: behind 1, of them below "
                                  "the floor 1;"));
    rounds_close(&all);
}

static void test_a_later_run_adds_to_the_file(void **state)
{
    char path[] = "/tmp/versus.XXXXXX", why[256] = "";
    struct rounds all;
    struct round r = a_round(50, 51, 100, 90);
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    assert_true(rounds_open(&all, path, "{\"versus\": 1}", why, sizeof why));
    assert_true(rounds_version(&all, VERSUS_IMPI, "2021.19.0"));
    rounds_add(&all, &r);
    rounds_leave_out(&all, &(struct left_out){ here, VERSUS_MPICH, 6e6, 1e4 });
    rounds_close(&all);
    assert_int_equal(lseek(fd, 0, SEEK_END) > 0 ? write(fd, "{\"operation\": \"bro", 18) : 0, 18);

    assert_true(rounds_open(&all, path, "{\"versus\": 1}", why, sizeof why));
    assert_true(all.n == 1 && all.unread == 1);      /* cut off in the middle of a line */
    assert_string_equal(all.version[VERSUS_IMPI], "2021.19.0");
    struct point small = { here.op, here.ranks, 4 }, large = { here.op, here.ranks, 1 << 20 },
                 four = { here.op, 4, here.bytes };
    assert_true(rounds_left_out(&all, &here, VERSUS_MPICH) != NULL);
    assert_true(rounds_left_out(&all, &large, VERSUS_MPICH)->ns == 6e6);
    assert_null(rounds_left_out(&all, &small, VERSUS_MPICH));
    assert_null(rounds_left_out(&all, &four, VERSUS_MPICH));
    assert_null(rounds_left_out(&all, &here, VERSUS_IMPI));
    assert_false(rounds_version(&all, VERSUS_IMPI, "2021.20.0"));
    rounds_add(&all, &r);
    rounds_close(&all);

    assert_true(rounds_open(&all, path, "{\"versus\": 1}", why, sizeof why));
    assert_true(all.n == 2 && all.unread == 1);
    rounds_close(&all);
    assert_false(rounds_open(&all, path, "{\"versus\": 1, \"other\": 2}", why, sizeof why));
    assert_non_null(strstr(why, "another machine"));
    assert_false(rounds_open(&all, "/nowhere/rounds", "{}", why, sizeof why));
    assert_non_null(strstr(why, "/nowhere/rounds"));
    close(fd);
    unlink(path);
}

static void test_what_is_behind_is_listed(void **state)
{
    struct report report;
    struct rounds all;
    (void)state;
    begin(&report, &all);
    for (int i = 0; i < 8; i++) {
        struct round near = a_round(50, 51, 100, 80 + i), far = a_round(240, 250, 100, 120 + i),
                     changed = a_round(50, 240, 100, 10);
        rounds_add(&all, &near);
        rounds_add(&all, &far);
        rounds_add(&all, &changed);
    }
    versus_tell(&report, &all, &here, 1);
    const struct table *last = &report.tables[report.table_count - 1];
    assert_int_equal(report.table_count, 3);         /* near, far, behind */
    assert_int_equal(last->rows, 1);
    assert_string_equal(last->cells[0][0].text, "near");
    assert_string_equal(last->cells[0][5].text, "0.83");
    const struct figure *f = report_find(&report, "broadcast near", "Intel MPI", 2, 65536);
    assert_true(f && f->value == 83.5 && f->low == 80 && f->high == 87);
    assert_string_equal(f->verdict, "behind");
    assert_string_equal(report_find(&report, "broadcast far", "Intel MPI", 2, 65536)->verdict,
                        "ahead");
    assert_int_equal(report.promise_count, 2);
    assert_true(!report.promises[0].kept && report.promises[1].kept);
    rounds_close(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_are_those_of_the_sign_test),
        cmocka_unit_test(test_interval_is_of_order_statistics),
        cmocka_unit_test(test_interval_holds_what_it_says),
        cmocka_unit_test(test_behind_needs_the_whole_interval),
        cmocka_unit_test(test_near_far_and_changed),
        cmocka_unit_test(test_a_round_is_read_as_it_was_written),
        cmocka_unit_test(test_changed_rounds_are_dropped_and_states_kept_apart),
        cmocka_unit_test(test_a_floor_is_the_shortest_of_its_round),
        cmocka_unit_test(test_behind_is_counted_beside_the_floor),
        cmocka_unit_test(test_a_later_run_adds_to_the_file),
        cmocka_unit_test(test_what_is_behind_is_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
