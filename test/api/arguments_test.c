/* Bad arguments: refused on the rank that gives them, before anything is touched, with a sentence
 * that says what and what instead; the comm stays whole; and whoever waits for that rank reads in
 * its report that the last call there was refused, and where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "no_sites.h"
#include "support/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static tutti_comm *alone;
static char a[64], b[64];

static int open_world(void **state)
{
    (void)state;
    return tutti_init(&alone, NULL);
}
static int close_world(void **state)
{
    (void)state;
    return tutti_finalize(alone);
}

/* Refused with a sentence that has this in it and names the call's place; and the comm is as good
 * as before. */
static void refused_at(int line, int result, const char *name, const char *reason)
{
    char place[64];
    const char *said = tutti_explain(alone);
    snprintf(place, sizeof place, "arguments_test.c:%d", line);
    if (result != -EINVAL || !strstr(said, reason) || !strstr(said, "refused")
        || strncmp(said, name, strlen(name)) || !strstr(said, place))
        fail_msg("line %d: %s gave %d and \"%s\", should be refused with \"%s\"", line, name,
                 result, said, reason);
    assert_int_equal(tutti_barrier(alone, NULL), 0);
    int sum = 1;
    assert_int_equal(tutti_all_reduce(&sum, &sum, 1, TUTTI_I32, TUTTI_SUM, alone, NULL), 0);
    assert_int_equal(sum, 1);
}
#define REFUSED(call, name, reason) refused_at(__LINE__, call, name, reason)

static void no_comm(void **state)
{
    (void)state;
    assert_int_equal(tutti_barrier(NULL, NULL), -EINVAL);
    assert_int_equal(tutti_broadcast(a, 1, TUTTI_U8, 0, NULL, NULL), -EINVAL);
    assert_int_equal(tutti_reduce(a, b, 1, TUTTI_U8, TUTTI_SUM, 0, NULL, NULL), -EINVAL);
    assert_int_equal(tutti_all_reduce(a, b, 1, TUTTI_U8, TUTTI_SUM, NULL, NULL), -EINVAL);
    assert_int_equal(tutti_rank(NULL), -EINVAL);
    assert_int_equal(tutti_size(NULL), -EINVAL);
}

static void done(int error, void *arg) { (void)error; (void)arg; }

/* The same for every collective: what stands in a tutti_call. */
static void calls(void **state)
{
    (void)state;
    tutti_work *work = NULL;
    const struct { tutti_call call; const char *reason; } bad[] = {
        { { .flags = 2 }, "unknown bits 0x2" },
        { { .flags = TUTTI_KEEP | 0x80000000u }, "unknown bits 0x80000000" },
        { { .flags = TUTTI_KEEP }, "TUTTI_KEEP needs call.work" },
        { { .done = done }, "call.done needs call.work" },
        { { .reserved = { 1 } }, "call.reserved[0] is not 0" },
        { { .reserved = { 0, 0, 0, 7 } }, "call.reserved[3] is not 0" },
        { { .reserved = { 0, 1 }, .work = &work }, "call.reserved[1] is not 0" },
    };
    for (size_t i = 0; i < LENGTH(bad); i++) {
        REFUSED(tutti_barrier(alone, &bad[i].call), "barrier", bad[i].reason);
        REFUSED(tutti_broadcast(a, 1, TUTTI_U8, 0, alone, &bad[i].call), "broadcast",
                bad[i].reason);
        REFUSED(tutti_reduce(a, b, 1, TUTTI_U8, TUTTI_SUM, 0, alone, &bad[i].call), "reduce",
                bad[i].reason);
        REFUSED(tutti_all_reduce(a, b, 1, TUTTI_U8, TUTTI_SUM, alone, &bad[i].call), "all_reduce",
                bad[i].reason);
    }
    assert_null(work);
    tutti_call stream = { .stream = a };
    REFUSED(tutti_broadcast(a, 1, TUTTI_U8, 0, alone, &stream), "broadcast", "call.stream");
    REFUSED(tutti_reduce(a, b, 1, TUTTI_U8, TUTTI_SUM, 0, alone, &stream), "reduce", "call.stream");
    REFUSED(tutti_all_reduce(a, b, 1, TUTTI_U8, TUTTI_SUM, alone, &stream), "all_reduce",
            "call.stream");
}

static void types(void **state)
{
    (void)state;
    static const struct { int type; const char *reason; } bad[] = {
        { -1, "-1 is no tutti_type" }, { 17, "17 is no tutti_type" },
        { INT32_MAX, "is no tutti_type" }, { INT32_MIN, "is no tutti_type" },
    };
    for (size_t i = 0; i < LENGTH(bad); i++) {
        tutti_type type = (tutti_type)bad[i].type;
        REFUSED(tutti_broadcast(a, 1, type, 0, alone, NULL), "broadcast", bad[i].reason);
        REFUSED(tutti_reduce(a, b, 1, type, TUTTI_SUM, 0, alone, NULL), "reduce", bad[i].reason);
        REFUSED(tutti_all_reduce(a, b, 1, type, TUTTI_SUM, alone, NULL), "all_reduce",
                bad[i].reason);
        REFUSED(tutti_all_reduce(NULL, NULL, 0, type, TUTTI_SUM, alone, NULL), "all_reduce",
                bad[i].reason);
    }
}

static bool allowed(int type, int op)
{
    bool is_float = type >= TUTTI_F16 && type <= TUTTI_F64;
    return is_float ? op <= TUTTI_AVG : type != TUTTI_BOOL || op != TUTTI_AVG;
}

static void operations(void **state)
{
    (void)state;
    static const struct { int op; const char *reason; } bad[] = {
        { -1, "none of tutti's" }, { 12, "none of tutti's" }, { 1023, "none of tutti's" },
        { INT32_MIN, "none of tutti's" }, { TUTTI_PREMUL_SUM, "" },
        { TUTTI_OP_USER, "tutti_op_create" }, { TUTTI_OP_MAX, "tutti_op_create" },
    };
    for (size_t i = 0; i < LENGTH(bad); i++) {
        REFUSED(tutti_reduce(a, b, 1, TUTTI_F32, (tutti_op)bad[i].op, 0, alone, NULL), "reduce",
                bad[i].reason);
        REFUSED(tutti_all_reduce(a, b, 1, TUTTI_F32, (tutti_op)bad[i].op, alone, NULL),
                "all_reduce", bad[i].reason);
        REFUSED(tutti_all_reduce(a, a, 0, TUTTI_F32, (tutti_op)bad[i].op, alone, NULL),
                "all_reduce", bad[i].reason);
    }
    for (int type = 0; type <= TUTTI_BOOL; type++)
        for (int op = 0; op <= TUTTI_LXOR; op++) {
            if (allowed(type, op)) {
                assert_int_equal(tutti_all_reduce(a, b, 3, (tutti_type)type, (tutti_op)op, alone,
                                                  NULL),
                                 0);
                assert_int_equal(tutti_reduce(a, b, 3, (tutti_type)type, (tutti_op)op, 0, alone,
                                              NULL),
                                 0);
                continue;
            }
            const char *reason = type == TUTTI_BOOL ? "bool has no average"
                                                    : "need an integer type or bool";
            REFUSED(tutti_all_reduce(a, b, 3, (tutti_type)type, (tutti_op)op, alone, NULL),
                    "all_reduce", reason);
            REFUSED(tutti_reduce(a, b, 3, (tutti_type)type, (tutti_op)op, 0, alone, NULL), "reduce",
                    reason);
        }
}

static void roots(void **state)
{
    (void)state;
    static const int bad[] = { -1, 1, 1024, INT32_MAX, INT32_MIN };
    for (size_t i = 0; i < LENGTH(bad); i++) {
        REFUSED(tutti_broadcast(a, 1, TUTTI_U8, bad[i], alone, NULL), "broadcast",
                "is no rank of this comm");
        REFUSED(tutti_reduce(a, b, 1, TUTTI_U8, TUTTI_SUM, bad[i], alone, NULL), "reduce",
                "is no rank of this comm");
        REFUSED(tutti_broadcast(NULL, 0, TUTTI_U8, bad[i], alone, NULL), "broadcast",
                "is no rank of this comm");
    }
}

static void buffers(void **state)
{
    (void)state;
    REFUSED(tutti_broadcast(NULL, 1, TUTTI_U8, 0, alone, NULL), "broadcast",
            "the buffer is NULL with count 1");
    REFUSED(tutti_reduce(NULL, b, 2, TUTTI_U8, TUTTI_SUM, 0, alone, NULL), "reduce",
            "the send buffer is NULL with count 2");
    REFUSED(tutti_reduce(a, NULL, 2, TUTTI_U8, TUTTI_SUM, 0, alone, NULL), "reduce",
            "the receive buffer is NULL with count 2");
    REFUSED(tutti_all_reduce(NULL, b, 3, TUTTI_U8, TUTTI_SUM, alone, NULL), "all_reduce",
            "the send buffer is NULL with count 3");
    REFUSED(tutti_all_reduce(a, NULL, 3, TUTTI_U8, TUTTI_SUM, alone, NULL), "all_reduce",
            "the receive buffer is NULL with count 3");
    /* Bytes beyond what an address space holds. */
    REFUSED(tutti_broadcast(a, SIZE_MAX, TUTTI_U8, 0, alone, NULL), "broadcast",
            "more than an address space holds");
    REFUSED(tutti_reduce(a, b, (size_t)PTRDIFF_MAX / 2 + 1, TUTTI_U16, TUTTI_SUM, 0, alone, NULL),
            "reduce", "more than an address space holds");
    REFUSED(tutti_all_reduce(a, a, SIZE_MAX / 8 + 2, TUTTI_F64, TUTTI_SUM, alone, NULL),
            "all_reduce", "more than an address space holds");
    /* Overlaps by one byte, from below and from above; side by side and the same are fine. */
    REFUSED(tutti_all_reduce(a, a + 7, 2, TUTTI_U32, TUTTI_SUM, alone, NULL), "all_reduce",
            "send and recv overlap");
    REFUSED(tutti_all_reduce(a + 7, a, 2, TUTTI_U32, TUTTI_SUM, alone, NULL), "all_reduce",
            "send and recv overlap");
    REFUSED(tutti_reduce(a + 1, a, 2, TUTTI_U8, TUTTI_SUM, 0, alone, NULL), "reduce",
            "send and recv overlap");
    assert_int_equal(tutti_all_reduce(a, a + 8, 2, TUTTI_U32, TUTTI_SUM, alone, NULL), 0);
    assert_int_equal(tutti_all_reduce(a + 8, a, 2, TUTTI_U32, TUTTI_SUM, alone, NULL), 0);
    assert_int_equal(tutti_all_reduce(a + 3, a + 3, 2, TUTTI_U32, TUTTI_SUM, alone, NULL), 0);
    assert_int_equal(tutti_reduce(a, a, 2, TUTTI_U32, TUTTI_SUM, 0, alone, NULL), 0);
}

static void nothing_is_fine(void **state)
{
    (void)state;
    for (int type = 0; type <= TUTTI_BOOL; type++) {
        assert_int_equal(tutti_broadcast(NULL, 0, (tutti_type)type, 0, alone, NULL), 0);
        assert_int_equal(tutti_reduce(NULL, NULL, 0, (tutti_type)type, TUTTI_MAX, 0, alone, NULL),
                         0);
        assert_int_equal(tutti_all_reduce(NULL, NULL, 0, (tutti_type)type, TUTTI_MIN, alone, NULL),
                         0);
    }
}

static void without_places(void **state)
{
    (void)state;
    int (*through)(tutti_comm *, const tutti_call *) = tutti_barrier;
    tutti_call bad = { .reserved = { 1 } };
    assert_int_equal(through(alone, NULL), 0);
    assert_int_equal(through(alone, &bad), -EINVAL);
    assert_non_null(strstr(tutti_explain(alone), "barrier at ? refused"));
    assert_int_equal(no_sites_barrier(alone, NULL), 0);
    assert_int_equal(no_sites_barrier(alone, &bad), -EINVAL);
    assert_non_null(strstr(tutti_explain(alone), "barrier at ? refused"));
    assert_int_equal(tutti_barrier_at("train.py:17", alone, &bad), -EINVAL);
    assert_non_null(strstr(tutti_explain(alone), "barrier at train.py:17 refused"));
}

/* Rules that nobody can follow end a program where it joins, not where a size first meets them. */
static void rules(void **state)
{
    (void)state;
    tutti_comm *never = alone;
    assert_int_equal(setenv("TUTTI_ALGORITHM", "all_reduce:-inf=tree", 1), 0);
    int r = tutti_init(&never, NULL);
    assert_int_equal(unsetenv("TUTTI_ALGORITHM"), 0);
    assert_int_equal(r, -EINVAL);
    assert_null(never);
    assert_non_null(strstr(tutti_explain(NULL), "TUTTI_ALGORITHM"));
    assert_non_null(
        strstr(tutti_explain(NULL),
               "\"tree\" is no algorithm of all_reduce; there are: inline eager pipelined"));
}

/* ---- with peers ---- */

enum { REFUSED_ALL, PEERS_DONE };

/* Rank 0 is refused and goes on to something else; the others wait for it in vain and read why. */
static int peers_read_it(tutti_comm *world, int rank)
{
    int x = 1, y = 0, peers = tutti_size(world) - 1;
    if (rank == 0) {
        CHECK_IS(tutti_all_reduce(&x, NULL, 1, TUTTI_I32, TUTTI_SUM, world, NULL), -EINVAL);
        ranks_say(REFUSED_ALL, 1);
        CHECK_IS(ranks_await(PEERS_DONE, (uint32_t)peers), 0);
        CHECK_IS(tutti_barrier(world, NULL), -ETIMEDOUT);
        return 0;
    }
    tutti_call brief = { .timeout_ms = 200 };
    CHECK_IS(ranks_await(REFUSED_ALL, 1), 0);
    CHECK_IS(tutti_all_reduce(&x, &y, 1, TUTTI_I32, TUTTI_SUM, world, &brief), -ETIMEDOUT);
    CHECK(strstr(tutti_explain(world), "missing: rank 0"));
    CHECK(strcasestr(tutti_explain(world), "refused (EINVAL)"));
    CHECK(strstr(tutti_explain(world), "arguments_test.c:"));
    ranks_count(PEERS_DONE);
    return 0;
}

/* A refusal on one rank hurts nobody: it mends its call and all is well, in the same
 * operation for all. */
static int nobody_is_hurt(tutti_comm *world, int rank)
{
    tutti_call bad = { .flags = 64 };
    int n = tutti_size(world);
    for (int i = 0; i < 200; i++) {
        int x = rank + i, y = 0;
        if (i % n == rank) {
            CHECK_IS(tutti_all_reduce(&x, &y, 1, TUTTI_I32, TUTTI_BAND + 100, world, NULL),
                     -EINVAL);
            CHECK_IS(tutti_reduce(&x, &y, 1, TUTTI_I32, TUTTI_SUM, n, world, NULL), -EINVAL);
            CHECK_IS(tutti_barrier(world, &bad), -EINVAL);
        }
        CHECK_IS(tutti_all_reduce(&x, &y, 1, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
        CHECK_IS(y, n * (n - 1) / 2 + n * i);
    }
    /* recv and overlaps are the root's affair alone. */
    char own[16] = { 1, 2, 3 }, got[16];
    CHECK_IS(tutti_reduce(own, rank == n - 1 ? got : NULL, 3, TUTTI_U8, TUTTI_SUM, n - 1, world,
                          NULL),
             0);
    CHECK_IS(tutti_reduce(own, rank == n - 1 ? got : own + 1, 3, TUTTI_U8, TUTTI_SUM, n - 1, world,
                          NULL),
             0);
    if (rank == n - 1)
        CHECK_IS(got[2], 3 * n);
    tutti_figures figures;
    CHECK_IS(tutti_stats(world, &figures), 0);
    CHECK_IS(figures.operations, 202);
    return 0;
}

static void peers(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, peers_read_it, 0), 0);
    assert_int_equal(ranks_run(2, peers_read_it, 0), 0);
    assert_int_equal(ranks_run(3, nobody_is_hurt, 0), 0);
    assert_int_equal(ranks_run_threads(3, nobody_is_hurt), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_comm, open_world, close_world),
        cmocka_unit_test_setup_teardown(calls, open_world, close_world),
        cmocka_unit_test_setup_teardown(types, open_world, close_world),
        cmocka_unit_test_setup_teardown(operations, open_world, close_world),
        cmocka_unit_test_setup_teardown(roots, open_world, close_world),
        cmocka_unit_test_setup_teardown(buffers, open_world, close_world),
        cmocka_unit_test_setup_teardown(nothing_is_fine, open_world, close_world),
        cmocka_unit_test_setup_teardown(without_places, open_world, close_world),
        cmocka_unit_test(rules), cmocka_unit_test(peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
