/* Which texts of ranks are the same report, and what of them is shown; reports in one piece and in
 * pieces, as Python writes them. */
#include "launch/same_reports.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4 };

static struct same_reports same;
static struct report_hold hold[RANKS];
static char shown[65536];

/* What is shown of it is put behind what is shown already. */
static void says(int rank, const char *bytes)
{
    size_t n = strlen(bytes), used = strlen(shown);
    const char *now = same_reports_take(&same, &hold[rank], rank, bytes, &n);
    memcpy(shown + used, now, n);
    shown[used + n] = 0;
}

static const char *report(int rank, const char *before, const char *who)
{
    static char room[2048];
    snprintf(room, sizeof room,
             "%srank %s (pid 7, a) died\n  without it no rank can finish barrier #2 on world\n"
             "  called here, by rank %d of 4, at /a/b.c:12\n"
             "  rank pid     state    CPU      for      doing\n"
             "  1    7       died     -        1 ms     after barrier #1 at a/b.c:11\n"
             "  %d    8       (here)   %d ms     2 ms     in barrier #2 at a/b.c:12\n",
             before, who, rank, rank, rank);
    return room;
}

static void must_tell(const char *what)
{
    char room[256];
    bool any = same_reports_tell(&same, room, sizeof room);
    if (!what) {
        assert_false(any);
        return;
    }
    assert_true(any);
    assert_string_equal(room, what);
}

static int begin(void **state)
{
    (void)state;
    same_reports_begin(&same, RANKS);
    shown[0] = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    same_reports_end(&same);
    for (int r = 0; r < RANKS; r++) {
        free(hold[r].text);
        hold[r] = (struct report_hold){ 0 };
    }
    return 0;
}

static void one_is_shown(void **state)
{
    (void)state;
    says(3, report(3, "[3] a: ", "1"));
    size_t once = strlen(shown);
    assert_string_equal(shown, report(3, "[3] a: ", "1"));
    assert_true(same.due_ns == UINT64_MAX);
    says(2, report(2, "[2] a: ", "1"));
    says(0, report(0, "[0] a: ", "1"));
    assert_int_equal(strlen(shown), once);
    assert_true(same.due_ns != UINT64_MAX);
    must_tell("2 other ranks said the same as rank 3: 0, 2");
    must_tell(NULL);
    says(1, report(1, "[1] a: ", "1"));
    must_tell("1 more rank said the same as rank 3: 1");
}

/* Another rank died; another program said it; the same rank says it again: all are shown. */
static void what_differs_is_shown(void **state)
{
    (void)state;
    says(0, report(0, "a: ", "1"));
    says(2, report(2, "a: ", "2"));
    says(3, report(3, "b: ", "1"));
    says(0, report(0, "a: ", "1"));
    for (int i = 0, at = 0; i < 4; i++, at++) {
        const char *next = strstr(shown + at, "without it");
        assert_non_null(next);
        at = (int)(next - shown);
    }
    must_tell(NULL);
}

/* Lines behind a report are the rank's own, and so is all that is no report. */
static void the_rest_is_shown(void **state)
{
    (void)state;
    char whole[4096];
    says(0, report(0, "a: ", "1"));
    shown[0] = 0;
    snprintf(whole, sizeof whole, "%s\nstate of rank 1\n", report(1, "a: ", "1"));
    says(1, whole);
    says(1, "  indented\n");
    assert_string_equal(shown, "state of rank 1\n  indented\n");
}

static void a_traceback_in_pieces(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "Traceback (most recent call last):\n", "  File \"a.py\", line 5, in <module>\n", "    ",
        "w.barrier()\n"
    };
    for (int rank = 0; rank < 3; rank++) {
        for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
            size_t before = strlen(shown);
            says(rank, pieces[i]);
            assert_int_equal(strlen(shown), before);
        }
        /* the last line's end comes alone */
        char last[2048];
        snprintf(last, sizeof last, "%s", report(rank, "tutti.errors.RankDied: ", "1"));
        last[strlen(last) - 1] = 0;
        says(rank, last);
        says(rank, "\n");
        says(rank, rank == 2 ? "more\n" : "");
    }
    assert_non_null(strstr(shown, "line 5, in <module>\n    w.barrier()\ntutti.errors.RankDied: "));
    assert_null(strstr(strstr(shown, "Traceback") + 1, "Traceback"));
    assert_non_null(strstr(shown, "at a/b.c:12\nmore\n"));
    must_tell("2 other ranks said the same as rank 0: 1, 2");
}

static void another_exception_is_let_go(void **state)
{
    (void)state;
    size_t n;
    says(0, "Traceback (most recent call last):\n");
    says(0, "  File \"a.py\", line 5\n");
    assert_string_equal(shown, "");
    assert_true(same_reports_due(&hold[0]) != UINT64_MAX);
    says(0, "ValueError: 3\n");
    assert_string_equal(shown,
                        "Traceback (most recent call last):\n  File \"a.py\", line 5\n"
                        "ValueError: 3\n");
    assert_true(same_reports_due(&hold[0]) == UINT64_MAX);
    says(1, "Traceback (most recent call last):\n");
    assert_string_equal(same_reports_release(&hold[1], &n) ? "held" : "", "held");
    assert_int_equal(n, strlen("Traceback (most recent call last):\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_is_shown, begin, end),
        cmocka_unit_test_setup_teardown(what_differs_is_shown, begin, end),
        cmocka_unit_test_setup_teardown(the_rest_is_shown, begin, end),
        cmocka_unit_test_setup_teardown(a_traceback_in_pieces, begin, end),
        cmocka_unit_test_setup_teardown(another_exception_is_let_go, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
