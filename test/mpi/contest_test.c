/* Who is kept, tutti or the MPI, by a clock that the test turns: each call takes what the scene
 * says, and all ranks see the same. */
#include "base/clock.h"
#include "mpi/contest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* of the world outside */
static struct { uint64_t now; int meetings; double late, meeting; } outside;

/* nobody looks into it */
static char none;
#define OURS ((tutti_comm *)(void *)&none)

static int met(const tutti_comm *comm, int root)
{
    assert_true(comm == OURS && root == 0);
    outside.now += (uint64_t)(outside.late + outside.meeting);
    outside.late = 0;
    outside.meetings++;
    return 0;
}

static int summed(const tutti_comm *comm, const void *mine, void *all, size_t bytes)
{
    assert_ptr_equal(comm, OURS);
    memcpy(all, mine, bytes);
    return 0;
}

#define clock_ns() outside.now
#undef tutti_broadcast_at
#undef tutti_reduce_at
#undef tutti_all_reduce_at
#undef tutti_all_gather_at
#undef tutti_all_to_all_at
#undef tutti_reduce_scatter_at
#define tutti_broadcast_at(f, at, n, type, root, comm, call) met(comm, root)
#define tutti_reduce_at(f, from, to, n, type, op, root, comm, call) met(comm, root)
#define tutti_all_reduce_at(f, from, to, n, type, op, comm, call) \
    ((n) ? summed(comm, from, to, (n) * sizeof(double)) : met(comm, 0))
#define tutti_all_gather_at(f, from, to, n, type, comm, call) met(comm, 0)
#define tutti_all_to_all_at(f, from, to, n, type, comm, call) met(comm, 0)
#define tutti_reduce_scatter_at(f, from, to, n, type, op, comm, call) met(comm, 0)
#include "mpi/contest.c"

/* What a call takes, ns: the number of its own kind's calls so far, and how many of them in a row
 * came before it. */
struct scene {
    double (*takes)(int way, int calls, int row);
    double late[2];                    /* how late the others come to a call of tutti, of the MPI */
};

/* Plays so many calls; how many of them the MPI did. The last one's way goes to *kept. */
static int played(const struct scene *scene, bool two, int most, int *kept)
{
    static struct contest contest;
    int calls[2] = { 0, 0 }, row = 0, last = -1;
    memset(&contest, 0, sizeof contest);
    memset(&outside, 0, sizeof outside);
    contest.least = CONTEST_LEAST;
    contest.two = two;
    outside.meeting = 100;
    for (int i = 0; i < most; i++) {
        struct heat heat;
        /* who is late is so to whatever comes first, a meeting or the call */
        outside.late = scene->late[last == MPI];
        int way = contest_begin(&heat, &contest, OURS, CONTEST_BCAST, 1024, 0) ? MPI : TUTTI;
        row = way == last ? row + 1 : 0;
        last = way;
        outside.now += (uint64_t)(scene->takes(way, calls[way]++, row) + outside.late);
        contest_end(&heat, 0);
    }
    *kept = last;
    return calls[MPI];
}

static void keeps(const struct scene *scene, int way)
{
    for (int two = 0; two < 2; two++) {
        int kept;
        played(scene, two, 600, &kept);
        assert_int_equal(kept, way);
    }
}

static double faster(int way, int calls, int row)
{
    (void)calls, (void)row;
    return way == MPI ? 1000 : 1500;
}

static void test_the_faster_is_kept(void **state)
{
    (void)state;
    keeps(&(struct scene){ faster, { 0, 0 } }, MPI);
}

/* The meeting before the MPI's call counts: 1,000 + 100. */
static double nearly(int way, int calls, int row)
{
    (void)calls, (void)row;
    return way == MPI ? 1000 : 1090;
}

static void test_the_meeting_is_part_of_the_mpis_time(void **state)
{
    (void)state;
    keeps(&(struct scene){ nearly, { 0, 0 } }, TUTTI);
}

/* Its first calls take six times as long. */
static double cold(int way, int calls, int row)
{
    return faster(way, calls, row) * (way == MPI && calls < 6 ? 6 : 1);
}

static void test_a_cold_start_is_no_verdict(void **state)
{
    (void)state;
    int kept;
    played(&(struct scene){ cold, { 0, 0 } }, true, 600, &kept);
    assert_int_equal(kept, MPI);
}

/* Each finds its lines in the other's state after the other's call. */
static double by_turns(int way, int calls, int row)
{
    return faster(way, calls, row) + (row < 2 && way == MPI ? 2000 : 0);
}

static void test_who_comes_behind_the_other_is_not_timed(void **state)
{
    (void)state;
    keeps(&(struct scene){ by_turns, { 0, 0 } }, MPI);
}

static double tutti_faster(int way, int calls, int row)
{
    (void)calls, (void)row;
    return way == MPI ? 1500 : 1000;
}

static void test_the_others_lateness_is_nobodys(void **state)
{
    (void)state;
    keeps(&(struct scene){ tutti_faster, { 5000, 0 } }, TUTTI);
    keeps(&(struct scene){ faster, { 0, 5000 } }, MPI);
}

/* As MPICH's barriers where ranks share a CPU. */
static double hopeless(int way, int calls, int row)
{
    (void)calls, (void)row;
    return way == MPI ? 32e6 : 9000;
}

static void test_a_hopeless_one_is_out_at_once(void **state)
{
    (void)state;
    int kept;
    assert_int_equal(played(&(struct scene){ hopeless, { 0, 0 } }, false, 1000, &kept), 4);
    assert_int_equal(kept, TUTTI);
}

/* Tries of the slower end. */
static void test_the_slower_has_few_calls(void **state)
{
    (void)state;
    int kept;
    assert_in_range(played(&(struct scene){ tutti_faster, { 0, 0 } }, true, 1000, &kept), 8, 40);
}

/* 1,000 + 100 of the MPI, and 1,090: worth another look. */
static void test_who_is_clearly_behind_is_left_alone_for_a_hundred_calls(void **state)
{
    (void)state;
    int kept;
    for (int two = 0; two < 2; two++) {
        assert_int_equal(played(&(struct scene){ tutti_faster, { 0, 0 } }, two, 112, &kept), 8);
        assert_in_range(played(&(struct scene){ nearly, { 0, 0 } }, two, 112, &kept), 9, 40);
        assert_in_range(played(&(struct scene){ tutti_faster, { 0, 0 } }, two, 600, &kept), 9, 40);
    }
}

/* It tries its own ways in its first eight calls, by turns; the worse one takes twice as long. */
static double learning(int way, int calls, int row)
{
    (void)row;
    return way == MPI ? 1100 : calls < 8 && calls % 2 ? 2000 : 1000;
}

static void test_what_tutti_tries_is_no_verdict(void **state)
{
    (void)state;
    int kept;
    assert_in_range(played(&(struct scene){ learning, { 0, 0 } }, true, 112, &kept), 8, 12);
    assert_int_equal(kept, TUTTI);
}

/* Between two ranks tutti has the first ones of a size; the trial begins behind them. Large ones
 * are tried at once. */
static void test_most_begin_calmly(void **state)
{
    (void)state;
    static const size_t sizes[] = { 16384, 2 << 20 };
    for (int i = 0; i < 2; i++) {
        static struct contest contest;
        int mpi = 0, before = 0;
        memset(&contest, 0, sizeof contest);
        contest.least = CONTEST_LEAST;
        contest.two = contest.calm = true;
        for (int n = 0; n < CALM + 400; n++) {
            struct heat heat;
            int way = contest_begin(&heat, &contest, OURS, CONTEST_BCAST, sizes[i], 0) ? MPI
                                                                                       : TUTTI;
            outside.now += way == MPI ? 1000 : 1500;
            contest_end(&heat, 0);
            mpi += way == MPI;
            before += way == MPI && n < CALM;
        }
        assert_in_range(mpi, 300, CALM + 400);
        assert_true(i ? before > CALM / 2 : before == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_faster_is_kept),
        cmocka_unit_test(test_the_meeting_is_part_of_the_mpis_time),
        cmocka_unit_test(test_a_cold_start_is_no_verdict),
        cmocka_unit_test(test_who_comes_behind_the_other_is_not_timed),
        cmocka_unit_test(test_the_others_lateness_is_nobodys),
        cmocka_unit_test(test_a_hopeless_one_is_out_at_once),
        cmocka_unit_test(test_the_slower_has_few_calls),
        cmocka_unit_test(test_who_is_clearly_behind_is_left_alone_for_a_hundred_calls),
        cmocka_unit_test(test_what_tutti_tries_is_no_verdict),
        cmocka_unit_test(test_most_begin_calmly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
