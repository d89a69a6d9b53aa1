/* What the bench says of itself is tested here without ranks: that results are known to be right,
 * and to be wrong; that figures which contradict each other are remarks; that a promise is judged
 * in its direction. Each operation is done by hand, by its definition. */
#include "reports/cache_transfer.h"
#include "reports/curve_kinks.h"
#include "reports/line_watch.h"

#include "harness/limit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 5, COUNT = 70, ROOM = RANKS * COUNT };

static float given[RANKS][ROOM], got[RANKS][ROOM];
static struct rank ranks[RANKS];

static void sum(float *to, int block, int first, int last)
{
    for (int i = 0; i < COUNT; i++) {
        to[i] = 0;
        for (int p = first; p <= last; p++)
            to[i] += given[p][block * COUNT + i];
    }
}

static void copy(float *to, const float *from)
{
    memcpy(to, from, COUNT * sizeof *to);
}

static void do_it(enum operation_id op, int me, int n)
{
    float *to = got[me];
    switch (op) {
    case OP_ALL_REDUCE: sum(to, 0, 0, n - 1); break;
    case OP_REDUCE: if (me == 0) sum(to, 0, 0, n - 1); break;
    case OP_BROADCAST: if (me) copy(to, given[0]); break;
    case OP_REDUCE_SCATTER: sum(to, me, 0, n - 1); break;
    case OP_SCAN: sum(to, 0, 0, me); break;
    case OP_EXSCAN: if (me) sum(to, 0, 0, me - 1); break;
    case OP_SCATTER: copy(to, given[0] + me * COUNT); break;
    case OP_SENDRECV: copy(to, given[(me + n - 1) % n]); break;
    case OP_PINGPONG: copy(to, given[(me ^ 1) < n ? me ^ 1 : me]); break;
    default:
        for (int p = 0; p < n && (op != OP_GATHER || me == 0); p++)
            copy(to + p * COUNT, op == OP_ALL_TO_ALL ? given[p] + me * COUNT : given[p]);
    }
}

static void check(enum operation_id op, int n)
{
    uint64_t before = 0;
    for (int me = 0; me < n; me++) {
        ranks[me] = (struct rank){
            .me = me, .size = n, .op = op, .bytes = COUNT * sizeof(float), .room = sizeof given[0],
            .sends = (char *)given[me], .recvs = (char *)got[me]
        };
        operation_fill(&ranks[me]);
        before += operation_wrong(&ranks[me]);
    }
    assert_true(n == 1 || before > 0);               /* nothing has been done yet */
    for (int me = 0; me < n; me++)
        do_it(op, me, n);
    for (int me = 0; me < n; me++) {
        size_t elements = operation_recv_bytes(op, n, COUNT * sizeof(float)) / sizeof(float);
        bool receives = op == OP_REDUCE || op == OP_GATHER ? me == 0
            : op == OP_BROADCAST || op == OP_EXSCAN ? me > 0
            : true;
        assert_int_equal(operation_wrong(&ranks[me]), 0);
        for (size_t i = 0; i < elements; i += 23) {
            got[me][i] += 1;
            assert_int_equal(operation_wrong(&ranks[me]), receives);
            got[me][i] -= 1;
        }
    }
}

static void test_wrong_results_are_known(void **state)
{
    (void)state;
    for (int op = OP_BARRIER + 1; op < OPS; op++)
        for (int n = 1; n <= RANKS; n++)
            check((enum operation_id)op, n);
}

static void add_rounds(struct report *r, const char *what, const char *contender, size_t bytes,
                       double ns, int count)
{
    struct series rounds = { 0 };
    for (int i = 0; i < count; i++)
        series_add(&rounds, ns * (1 + 0.01 * i));
    struct figure *f = report_figure(r, what, contender, UNIT_NS, 2);
    f->bytes = bytes;
    figure_rounds(f, &rounds);
    series_free(&rounds);
}

static void add(struct report *r, const char *what, const char *contender, size_t bytes, double ns)
{
    add_rounds(r, what, contender, bytes, ns, 5);
}

static struct report fresh(void)
{
    static const struct perf_program program = { .name = "test" };
    struct report r;
    report_begin(&r, &program);
    r.machine.cpus = 2;
    return r;
}

static int bad(const struct report *r)
{
    int n = 0;
    for (int i = 0; i < r->remark_count; i++)
        n += r->remarks[i].bad;
    return n;
}

static void test_contradictions_are_remarks(void **state)
{
    struct report fits = fresh(), wrong = fresh();
    (void)state;
    add(&fits, "barrier", "tutti", 0, 100);
    add(&fits, "reduce", "tutti", 4, 110);
    add(&fits, "broadcast", "tutti", 4, 110);
    add(&fits, "all_reduce", "tutti", 4, 120);
    add(&fits, "all_reduce", "tutti", 16, 119);      /* within the spread */
    add(&fits, "all_reduce", "tutti", 64, 300);
    check_consistency(&fits);
    assert_int_equal(fits.remark_count, 0);

    add(&wrong, "barrier", "tutti", 0, 200);
    add(&wrong, "reduce", "tutti", 4, 50);
    add(&wrong, "broadcast", "tutti", 4, 50);
    add(&wrong, "all_reduce", "tutti", 4, 150);
    add(&wrong, "all_reduce", "tutti", 16, 100);
    check_consistency(&wrong);
    assert_int_equal(bad(&wrong), 3);

    struct report others = fresh();
    add(&others, "all_reduce", "MPICH", 4, 150);
    add(&others, "all_reduce", "MPICH", 16, 100);
    check_consistency(&others);
    assert_int_equal(others.remark_count, 1);        /* said, but not held against the library */
    assert_int_equal(bad(&others), 0);
}

static const struct promise *promise_of(const struct report *r, const char *what)
{
    for (int i = 0; i < r->promise_count; i++)
        if (!strcmp(r->promises[i].what, what))
            return &r->promises[i];
    fail_msg("no promise: %s", what);
    return NULL;
}

static void test_promises_are_judged_in_their_direction(void **state)
{
    struct report r = fresh(), none = fresh();
    (void)state;
    add(&r, "barrier", "tutti", 0, 150);
    add(&r, "barrier", "bare exchange", 0, 100);
    add(&r, "barrier", "exchange with waits", 0, 140);
    add(&r, "barrier", "Open MPI", 0, 300);
    add(&r, "all_reduce", "tutti", 1024, 100);
    add(&r, "all_reduce", "Open MPI", 1024, 180);
    add(&r, "all_reduce", "MPICH", 1024, 500);
    add(&r, "scan", "tutti", 4, 100);
    add(&r, "scan", "MPICH", 4, 120);
    add(&r, "gather", "tutti", 4, 100);
    add(&r, "gather", "MPICH", 4, 90);
    add(&r, "all_reduce", "floor", 1024, 60);
    add(&r, "gather", "floor", 4, 95);
    check_promises(&r, false);
    assert_false(promise_of(&r, "barrier, 2 ranks / bare exchange")->kept);
    assert_true(fabs(promise_of(&r, "barrier, 2 ranks / bare exchange")->value - 1.5) < 1e-9);
    assert_true(promise_of(&r, "barrier, 2: Open MPI / it")->kept);
    assert_true(promise_of(&r, "barrier, 2 / exchange with waits")->kept);
    /* the faster of both */
    assert_true(fabs(promise_of(&r, "all_reduce 1 KiB: MPI / it")->value - 1.8) < 1e-9);
    assert_false(promise_of(&r, "others, 2, worst: MPI / gather")->kept);
    assert_string_equal(r.remarks[r.remark_count - 1].text,
                        "others, 2, worst: gather below 1 at 1 of 1 sizes, worst 0.90 at 4 B, the "
                        "floor 0.95");
    assert_true(fabs(promise_of(&r, "all_reduce 1 KiB: MPI / it")->floor - 3) < 1e-9);
    assert_true(fabs(promise_of(&r, "others, 2, worst: MPI / gather")->floor - 90.0 / 95) < 1e-9);
    assert_true(promise_of(&r, "barrier, 2: Open MPI / it")->floor == 0);
    int judged = r.promise_count;
    check_promises(&none, true);
    assert_true(none.promise_count > judged);
    for (int i = 0; i < none.promise_count; i++)
        assert_true(!none.promises[i].measured && !none.promises[i].kept);
}

/* A row says so, also one about many sizes, of which one has few, or had no time at all. */
static void test_few_rounds_are_said(void **state)
{
    struct report r = fresh();
    (void)state;
    for (size_t bytes = 4; bytes <= 1024; bytes *= 4) {
        add(&r, "gather", "tutti", bytes, 100);
        add_rounds(&r, "gather", "MPICH", bytes, 120, bytes == 64 ? 4 : 5);
    }
    add(&r, "barrier", "tutti", 0, 100);
    add(&r, "barrier", "Open MPI", 0, 300);
    add_rounds(&r, "barrier", "MPICH", 0, 500, 4);
    add(&r, "all_reduce", "tutti", 4, 100);
    add(&r, "all_reduce", "Gloo", 4, 9000);
    add_rounds(&r, "all_reduce", "tutti", 256 << 20, 100, 3);
    add_rounds(&r, "all_reduce", "floor", 256 << 20, 90, 3);
    check_promises(&r, false);
    assert_true(promise_of(&r, "others, 2, worst: MPI / gather")->few);
    assert_false(promise_of(&r, "barrier, 2: Open MPI / it")->few);
    assert_true(promise_of(&r, "barrier, 2: MPICH / it")->few);
    assert_false(promise_of(&r, "all_reduce 256 MiB: of the floor")->few);
    assert_false(promise_of(&r, "all_reduce to 1 MiB: Gloo / it, worst")->few);
    r.no_time[2] = 1 << 20;
    r.promise_count = 0;
    check_promises(&r, false);
    assert_true(promise_of(&r, "all_reduce to 1 MiB: Gloo / it, worst")->few);
    r.no_time[2] = 4 << 20;
    r.promise_count = 0;
    check_promises(&r, false);
    assert_false(promise_of(&r, "all_reduce to 1 MiB: Gloo / it, worst")->few);
}

static void test_the_time_of_a_line_is_said(void **state)
{
    static const double ns[] = { 54, 55, 56, 57, 58, 59, 60, 61, 200, 240 };
    struct report r = fresh();
    struct series looks = { 0 };
    (void)state;
    line_watch_tell(&r, &looks);
    assert_int_equal(r.remark_count, 0);
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++)
        series_add(&looks, ns[9 - i]);
    line_watch_tell(&r, &looks);
    assert_int_equal(r.remark_count, 1);
    assert_string_equal(r.remarks[0].text,
                        "a cache line took 58 ns one way, 54 to 240 in 10 looks: near in 8, far in "
                        "2");
    assert_false(r.remarks[0].bad);
    series_free(&looks);
}

/* The last one: what it begins has no end. */
static void test_who_hangs_does_not_take_all_the_time(void **state)
{
    (void)state;
    stamp_calibrate();
    assert_false(limit_set());
    assert_true(limit_left() > 1e6 && limit_over() <= 0);
    assert_true(fabs(limit_patience(60) - 60) < 1e-9);
    limit_begin(80);
    assert_true(limit_set() && limit_left() <= 80 && limit_left() > 40);
    assert_true(limit_over() >= 0 && limit_over() < 0.5);
    assert_true(limit_patience(60) <= 21.5 && limit_patience(60) > 10);
    assert_true(fabs(limit_patience(9) - 9) < 1e-9);
    limit_begin(1e-9);
    assert_true(limit_left() <= 0 && limit_over() >= 1);
    assert_true(fabs(limit_patience(60) - 1.5) < 1e-9);
}

static void test_placements_are_told_apart(void **state)
{
    (void)state;
    const char *core = cache_transfer_placement(7), *cache = cache_transfer_placement(21),
               *far = cache_transfer_placement(140);
    /* a cache spread over a socket is one, too */
    assert_ptr_equal(cache_transfer_placement(70), cache);
    assert_ptr_equal(cache_transfer_placement(90), far);
    assert_true(core != cache && cache != far && far != core);
}

/* Times of 4 B, 16 B, 64 B …, or of 2, 4, 8 … ranks, each with a spread of 5 % to both sides. */
static void curve(struct kink_point *to, double first, double step, const double *ns, int count)
{
    for (int i = 0; i < count; i++, first *= step)
        to[i] = (struct kink_point){ first, 0.95 * ns[i], ns[i], 1.05 * ns[i], 9 };
}

static bool says(const struct report *r, const char *text)
{
    for (int i = 0; i < r->remark_count; i++)
        if (strstr(r->remarks[i].text, text))
            return true;
    return false;
}

static void test_kinks_over_bytes(void **state)
{
    static const double even[] = { 100, 104, 110, 400, 1600, 7000, 28000 },
                        bent[] = { 100, 104, 400, 2840, 9000, 4000 };
    struct report none = fresh(), two = fresh(), few = fresh();
    struct kink_point points[8];
    (void)state;
    curve(points, 4, 4, even, 7);
    assert_int_equal(kink_sizes(&none, OP_ALL_REDUCE, 2, points, 7), 0);
    assert_int_equal(none.remark_count, 0);
    curve(points, 4096, 4, bent, 6);
    assert_int_equal(kink_sizes(&two, OP_ALL_REDUCE, 2, points, 6), 2);
    assert_true(says(&two, "all_reduce, 2 ranks: 64 KiB -> 256 KiB takes 7.1 times as long"));
    assert_true(says(&two, "1 MiB -> 4 MiB takes 0.44 of the time"));
    assert_int_equal(bad(&two), 1);               /* that more bytes take less contradicts itself */
    points[3].low = 1000;                         /* their spreads touch */
    points[4].low = 3000;
    points[5].count = 2;                             /* too few to say */
    assert_int_equal(kink_sizes(&few, OP_ALL_REDUCE, 2, points, 6), 0);
}

static void test_kinks_over_ranks(void **state)
{
    static const double twice[] = { 1000, 2100, 4200, 8400 },
                        fourfold[] = { 1000, 4000, 16000, 64000 };
    struct report r = fresh();                       /* two CPUs */
    struct kink_point points[4];
    (void)state;
    curve(points, 4, 2, twice, 4);
    assert_int_equal(kink_ranks(&r, OP_BARRIER, 0, points, 4), 0);
    curve(points, 4, 2, fourfold, 4);
    /* each reads what all give */
    assert_int_equal(kink_ranks(&r, OP_ALL_GATHER, 1024, points, 4), 0);
    assert_int_equal(kink_ranks(&r, OP_BROADCAST, 1024, points, 4), 3);
    assert_int_equal(kink_ranks(&r, OP_BARRIER, 0, points, 4), 3);
    assert_true(says(&r, "barrier: 16 -> 32 ranks takes 4.0 times as long; 2 times is expected"));
    /* 1 -> 2: nobody to wait for; 2 -> 4: two CPUs no longer enough */
    curve(points, 1, 2, fourfold, 3);
    assert_int_equal(kink_ranks(&r, OP_BARRIER, 0, points, 3), 0);
    assert_true(fabs(kink_expected(OP_BARRIER, 0, 2, 4, 8) - 3) < 1e-9); /* lines of others: 1, 3 */
    assert_true(fabs(kink_expected(OP_ALL_REDUCE, 1 << 20, 8, 16, 4) - 2) < 1e-9);
}

/* Of our CPUs alone, and without what waits for a disk. */
static void test_a_busy_machine_is_known(void **state)
{
    static const char before[] =
        "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 100 0 50 800 40 0 0 10 0 0\n"
        "cpu1 0 0 0 0 0 0 0 0 0 0\nintr 5\n";
    static const char after[] =
        "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 102 0 51 815 41 0 0 11 0 0\n"
        "cpu1 20 0 0 0 0 0 0 0 0 0\nintr 9\n";
    (void)state;
    uint64_t first = 1, second = 2, both = 3, far[2] = { 0, 1 };
    assert_true(fabs(machine_busy_between(before, after, &first, 1) - 0.2) < 1e-9);
    assert_true(fabs(machine_busy_between(before, after, &second, 1) - 1) < 1e-9);
    assert_true(fabs(machine_busy_between(before, after, &both, 1) - 0.6) < 1e-9);
    assert_true(machine_busy_between(before, after, far, 2) <= 0);
    assert_true(machine_busy_between(before, before, &both, 1) <= 0);
    assert_true(machine_busy_between("", "", &both, 1) <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_results_are_known),
        cmocka_unit_test(test_contradictions_are_remarks),
        cmocka_unit_test(test_promises_are_judged_in_their_direction),
        cmocka_unit_test(test_placements_are_told_apart),
        cmocka_unit_test(test_kinks_over_bytes),
        cmocka_unit_test(test_kinks_over_ranks),
        cmocka_unit_test(test_a_busy_machine_is_known),
        cmocka_unit_test(test_few_rounds_are_said),
        cmocka_unit_test(test_the_time_of_a_line_is_said),
        cmocka_unit_test(test_who_hangs_does_not_take_all_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
