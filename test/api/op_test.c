/* ctest: timeout=300 */
/* Operations of the caller's own: made by all, the same number everywhere, freed by each; how many
 * there can be; what their functions may call and what not, on the caller's thread and on the one
 * that carries work on. Also tutti_same. */
#include "base/clock.h"
#include "support/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OPS = 7168, COUNT = 3, LARGE = 20000, TOLD = 0 };

static void adds(const void *in, void *inout, size_t count, tutti_type type)
{
    const int32_t *a = in;
    int32_t *b = inout;
    for (size_t i = 0; i < count && type == TUTTI_I32; i++)
        b[i] += a[i];
}

/* Neither commutes nor associates with anything: the result shows every order. */
static void digits(const void *in, void *inout, size_t count, tutti_type type)
{
    const int32_t *a = in;
    int32_t *b = inout;
    for (size_t i = 0; i < count && type == TUTTI_I32; i++)
        b[i] = a[i] * 10 + b[i];
}

static int works(tutti_comm *world, tutti_op op, int32_t gives, int32_t expected)
{
    static int32_t x[LARGE], y[LARGE];
    for (size_t n = COUNT; n <= LARGE; n += LARGE - COUNT) {
        for (size_t i = 0; i < n; i++)
            x[i] = gives;
        CHECK_IS(tutti_all_reduce(x, y, n, TUTTI_I32, op, world, NULL), 0);
        for (size_t i = 0; i < n; i++)
            CHECK_IS(y[i], expected);
    }
    return 0;
}

static int body_made_and_freed(tutti_comm *world, int rank)
{
    tutti_op op[3], copy;
    int32_t x = 1, y, in_order = 0, size = tutti_size(world);
    tutti_comm *other;
    CHECK_IS(tutti_comm_split(world, 0, 0, &other), 0);
    for (int32_t r = 0; r < size; r++)
        in_order = in_order * 10 + r + 1;
    CHECK_IS(tutti_op_create(adds, 1, &op[0], world), 0);
    CHECK_IS(tutti_op_create(digits, 0, &op[1], world), 0);
    CHECK_IS(tutti_op_create(adds, 0, &op[2], world), 0);
    CHECK(op[0] >= TUTTI_OP_USER && op[0] != op[1] && op[1] != op[2] && op[0] != op[2]);
    for (int i = 0; i < 3; i++) {                    /* the numbers are alike on all ranks */
        int32_t number = (int32_t)op[i], most, least;
        CHECK_IS(tutti_all_reduce(&number, &most, 1, TUTTI_I32, TUTTI_MAX, world, NULL), 0);
        CHECK_IS(tutti_all_reduce(&number, &least, 1, TUTTI_I32, TUTTI_MIN, world, NULL), 0);
        CHECK(most == number && least == number);
    }
    CHECK_IS(works(world, op[0], 1, size), 0);
    CHECK_IS(works(world, op[1], rank + 1, in_order), 0);
    CHECK_IS(works(world, op[2], 2, 2 * size), 0);
    /* Of this comm only. */
    CHECK_IS(tutti_all_reduce(&x, &y, 1, TUTTI_I32, op[0], other, NULL), -EINVAL);
    CHECK(strstr(tutti_explain(other), "none of this comm"));
    copy = op[1];
    CHECK_IS(tutti_op_free(&copy, other), -EINVAL);
    CHECK_IS(copy, op[1]);
    /* Freed, by each for itself. */
    CHECK_IS(tutti_op_free(&op[1], world), 0);
    CHECK(op[1] == 0);
    CHECK_IS(tutti_all_reduce(&x, &y, 1, TUTTI_I32, copy, world, NULL), -EINVAL);
    CHECK_IS(tutti_op_free(&copy, world), -EINVAL);
    CHECK(strstr(tutti_explain(world), "no operation of this comm"));
    CHECK_IS(works(world, op[0], 3, 3 * size), 0);
    CHECK_IS(tutti_op_free(&op[0], world), 0);
    CHECK_IS(tutti_op_free(&op[2], world), 0);
    CHECK_IS(tutti_op_create(digits, 0, &op[0], other), 0);
    CHECK_IS(works(other, op[0], rank + 1, in_order), 0);
    /* What is refused touches nothing. */
    op[0] = (tutti_op)77;
    CHECK_IS(tutti_op_create(NULL, 0, &op[0], world), -EINVAL);
    CHECK_IS(op[0], 77);
    CHECK(strstr(tutti_explain(world), "the function is NULL"));
    CHECK_IS(tutti_op_create(adds, 0, NULL, world), -EINVAL);
    CHECK(strstr(tutti_explain(world), "the address for the operation is NULL"));
    CHECK_IS(tutti_op_create(adds, 0, &op[0], NULL), -EINVAL);
    CHECK_IS(tutti_op_free(NULL, world), -EINVAL);
    CHECK_IS(tutti_op_free(&op[0], NULL), -EINVAL);
    static const int none[] = { 0, 11, 12, 1023, TUTTI_OP_USER + OPS, TUTTI_OP_MAX, -1, INT32_MIN };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        op[0] = (tutti_op)none[i];
        CHECK_IS(tutti_op_free(&op[0], world), -EINVAL);
        CHECK_IS((int)op[0], none[i]);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_barrier(other, NULL), 0);
    return 0;
}

static int body_8000(tutti_comm *world, int rank)
{
    tutti_op kept, op;
    /* one that stays, while thousands come and go */
    CHECK_IS(tutti_op_create(adds, 0, &kept, world), 0);
    for (int i = 0; i < 8000; i++) {
        CHECK_IS(tutti_op_create(i % 2 ? adds : digits, 0, &op, world), 0);
        CHECK(op != kept);
        if (i % 1000 == 999)
            CHECK_IS(works(world, op, 1, tutti_size(world)), 0);
        CHECK_IS(tutti_op_free(&op, world), 0);
    }
    CHECK_IS(works(world, kept, rank, tutti_size(world) * (tutti_size(world) - 1) / 2), 0);
    return 0;
}

/* All numbers in use, on all ranks and on one; then each has one free, but not the same. */
static int body_full(tutti_comm *world, int rank)
{
    static tutti_op op[OPS];
    tutti_op more = (tutti_op)5;
    int size = tutti_size(world);
    for (int i = 0; i < OPS; i++)
        CHECK_IS(tutti_op_create(adds, 0, &op[i], world), 0);
    CHECK_IS(tutti_op_create(adds, 0, &more, world), -ENOSPC);
    CHECK(strstr(tutti_explain(world), "7168"));
    CHECK_IS(more, 5);
    if (rank == 1)
        CHECK_IS(tutti_op_free(&op[3000], world), 0);
    /* nobody gets one that the others have no room for */
    CHECK_IS(tutti_op_create(adds, 0, &more, world), -ENOSPC);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank != 1)
        CHECK_IS(tutti_op_free(&op[100 + rank], world), 0);
    /* each has one free, but no number is free everywhere */
    CHECK_IS(tutti_op_create(adds, 0, &more, world), -ENOSPC);
    if (rank != 1)
        CHECK_IS(tutti_op_free(&op[3000], world), 0);
    tutti_op was = op[3000] ? op[3000] : (tutti_op)(TUTTI_OP_USER + 3000);
    CHECK_IS(tutti_op_create(adds, 0, &more, world), 0);
    CHECK_IS(more, was);
    CHECK_IS(works(world, more, 1, size), 0);
    CHECK_IS(works(world, op[OPS - 1], 1, size), 0);
    return 0;
}

static int body_under_way(tutti_comm *world, int rank)
{
    tutti_op op, copy;
    int32_t x = 1, y = 0;
    tutti_work *work;
    CHECK_IS(tutti_op_create(adds, 0, &op, world), 0);
    copy = op;
    if (rank == 0) {
        CHECK_IS(tutti_all_reduce(&x, &y, 1, TUTTI_I32, op, world, &(tutti_call){ .work = &work }),
                 0);
        CHECK_IS(tutti_op_free(&op, world), -EBUSY);
        CHECK_IS(op, copy);
        CHECK(strstr(tutti_explain(world), "work is under way"));
        ranks_say(TOLD, 1);
        CHECK_IS(tutti_wait(work, 0), 0);
        CHECK_IS(y, tutti_size(world));
        /* Behind work it takes its place. */
        tutti_op second;
        CHECK_IS(tutti_all_reduce(&x, &y, 1, TUTTI_I32, op, world, &(tutti_call){ .work = &work }),
                 0);
        CHECK_IS(tutti_op_create(digits, 0, &second, world), 0);
        CHECK_IS(tutti_test(work), 0);
        CHECK_IS(tutti_wait(work, 0), 0);
    } else {
        tutti_op second;
        CHECK_IS(ranks_await(TOLD, 1), 0);
        CHECK_IS(tutti_all_reduce(&x, &y, 1, TUTTI_I32, op, world, NULL), 0);
        CHECK_IS(tutti_all_reduce(&x, &y, 1, TUTTI_I32, op, world, NULL), 0);
        CHECK_IS(tutti_op_create(digits, 0, &second, world), 0);
    }
    CHECK_IS(tutti_op_free(&op, world), 0);
    return 0;
}

/* ---- what an operation calls ---- */

static tutti_comm *inside, *beside;
static tutti_op nested_op;
static int nested[8], nested_calls;

static void calls_back(const void *in, void *inout, size_t count, tutti_type type)
{
    int32_t x = 1, y;
    tutti_comm *none;
    tutti_op op = nested_op;
    if (nested_calls++ == 0) {
        nested[0] = tutti_barrier(inside, NULL);
        nested[1] = tutti_all_reduce(&x, &y, 1, TUTTI_I32, nested_op, inside, NULL);
        nested[2] = tutti_all_reduce(&x, &y, 1, TUTTI_I32, TUTTI_SUM, inside,
                                     &(tutti_call){ .work = &(tutti_work *){ NULL } });
        nested[3] = tutti_op_create(adds, 0, &op, inside);
        nested[4] = tutti_comm_split(inside, 0, 0, &none);
        nested[5] = tutti_same(&x, 4, inside, NULL);
        /* another comm is another matter */
        nested[6] = tutti_all_reduce(&x, &y, 1, TUTTI_I32, TUTTI_SUM, beside, NULL) + y - 1;
    }
    adds(in, inout, count, type);
}

static int body_nested(tutti_comm *world, int rank)
{
    static int32_t x[LARGE], y[LARGE];
    int32_t size = tutti_size(world);
    inside = world;
    CHECK_IS(tutti_comm_split(world, rank, 0, &beside), 0);          /* of this rank alone */
    CHECK_IS(tutti_op_create(calls_back, 0, &nested_op, world), 0);
    for (int i = 0; i < 12; i++) {
        size_t n = i % 3 == 0 ? 1 : i % 3 == 1 ? 3000 : LARGE;
        tutti_work *work;
        nested_calls = 0;
        memset(nested, 0, sizeof nested);
        for (size_t k = 0; k < n; k++)
            x[k] = rank + (int32_t)k;
        if (i % 2) {
            CHECK_IS(tutti_all_reduce(x, y, n, TUTTI_I32, nested_op, world,
                                      &(tutti_call){ .work = &work }),
                     0);
            int r;
            /* whoever carries it on: this thread or the progress thread */
            while (i > 6 && (r = tutti_test(work)) == -EAGAIN) { }
            CHECK_IS(tutti_wait(work, 0), 0);
        } else
            CHECK_IS(tutti_all_reduce(x, y, n, TUTTI_I32, nested_op, world, NULL), 0);
        for (size_t k = 0; k < n; k++)
            CHECK_IS(y[k], size * (int32_t)k + size * (size - 1) / 2);
        CHECK(nested_calls > 0 || size == 1);
        for (int k = 0; nested_calls && k < 6; k++)
            CHECK_IS(nested[k], -EDEADLK);
        CHECK_IS(nested[6], 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);     /* unharmed */
    }
    return 0;
}

/* An operation that cannot fold aborts, on one rank and somewhere in the middle. Who gets 0 all the
 * same has the right numbers. */
static int gives_up, folds_left;

static void may_give_up(const void *in, void *inout, size_t count, tutti_type type)
{
    if (gives_up && folds_left-- <= 0) {
        tutti_comm_abort(inside, "cannot fold");
        memset(inout, 0x55, count * sizeof(int32_t));
    } else
        adds(in, inout, count, type);
}

/* What lies on the stack where the next call will have its own: no address, no small number. */
static __attribute__((noinline)) void soil_stack(void)
{
    unsigned char below[96 << 10];
    memset(below, 0xa5, sizeof below);
    __asm__ volatile("" : : "r"(below) : "memory");
}

static int body_gives_up(tutti_comm *world, int rank)
{
    static int32_t x[LARGE], y[LARGE];
    int32_t size = tutti_size(world);
    for (int i = 0; i < 150; i++) {
        size_t n = i % 3 == 0 ? 1 : i % 3 == 1 ? 3000 : LARGE;
        tutti_op op;
        tutti_work *work = NULL;
        gives_up = rank == i % size;
        folds_left = i % 7;
        CHECK_IS(tutti_comm_split(world, 0, 0, &inside), 0);
        CHECK_IS(tutti_op_create(may_give_up, 0, &op, inside), 0);
        for (size_t k = 0; k < n; k++)
            x[k] = (int32_t)k;
        soil_stack();
        int r = tutti_all_reduce(x, y, n, TUTTI_I32, op, inside,
                                 &(tutti_call){ .work = i % 2 ? &work : NULL });
        if (work)
            r = tutti_wait(work, 0);
        CHECK(r == 0 || r == -ECANCELED);
        CHECK(r == 0 || strstr(tutti_explain(inside), "cannot fold"));
        for (size_t k = 0; k < n && r == 0 && !(gives_up && folds_left < 0); k++)
            CHECK_IS(y[k], size * (int32_t)k);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_comm_free(inside), 0);
    }
    return 0;
}

/* The same by the fast path, where each rank has a CPU. */
static int body_gives_up_fast(tutti_comm *world, int rank) { return body_gives_up(world, rank); }

/* The progress thread runs the operation: this rank only waits on a word of its own while the
 * others come late. */
static shared32 by_progress;
static pthread_t main_thread;

static void notes_thread(const void *in, void *inout, size_t count, tutti_type type)
{
    int32_t x = 1;
    if (!pthread_equal(pthread_self(), main_thread))
        store_release32(&by_progress,
                        tutti_barrier(inside, NULL) == -EDEADLK
                                && tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, inside, NULL)
                                    == -EDEADLK
                            ? 1
                            : 2);
    adds(in, inout, count, type);
}

static int body_on_progress_thread(tutti_comm *world, int rank)
{
    tutti_op op;
    int32_t x = rank, y = -1;
    tutti_work *work;
    inside = world;
    main_thread = pthread_self();
    CHECK_IS(tutti_op_create(notes_thread, 1, &op, world), 0);
    if (rank == 0) {
        CHECK_IS(tutti_all_reduce(&x, &y, 1, TUTTI_I32, op, world, &(tutti_call){ .work = &work }),
                 0);
        ranks_say(TOLD, 1);
        for (uint64_t end = clock_ns() + UINT64_C(60000000000);
             !load_acquire32(&by_progress) && clock_ns() < end;)
            sched_yield();
        CHECK_IS(load_acquire32(&by_progress), 1);
        CHECK_IS(tutti_wait(work, 0), 0);
    } else {
        CHECK_IS(ranks_await(TOLD, 1), 0);
        CHECK_IS(tutti_all_reduce(&x, &y, 1, TUTTI_I32, op, world, NULL), 0);
    }
    CHECK_IS(y, tutti_size(world) * (tutti_size(world) - 1) / 2);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* ---- same ---- */

static int body_same(tutti_comm *world, int rank)
{
    char bytes[5001];
    static const size_t sizes[] = { 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 4999 };
    int size = tutti_size(world), odd = size - 1;
    tutti_work *work;
    CHECK_IS(tutti_same(NULL, 0, world, NULL), 1);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t n = sizes[s];
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)(i * 7 + s);
        CHECK_IS(tutti_same(bytes, n, world, NULL), 1);
        for (size_t at = 0; at < n; at += n > 200 ? 97 : 1) {
            bytes[at] = (char)(bytes[at] ^ (rank == odd ? 1 << at % 8 : 0));
            CHECK_IS(tutti_same(bytes, n, world, NULL), size == 1);
            bytes[at] = (char)(bytes[at] ^ (rank == odd ? 1 << at % 8 : 0));
        }
        bytes[n - 1] = (char)(bytes[n - 1] ^ (rank == odd));            /* the last byte of all */
        CHECK_IS(tutti_same(bytes, n, world, &(tutti_call){ .work = &work }), 0);
        CHECK_IS(tutti_wait(work, 0), size == 1);
        bytes[n - 1] = (char)(bytes[n - 1] ^ (rank == odd));
        CHECK_IS(tutti_same(bytes, n, world, &(tutti_call){ .work = &work }), 0);
        CHECK_IS(tutti_wait(work, 0), 1);
        char *moved = bytes + rank % 2;         /* where it lies does not matter */
        memmove(moved, bytes, n);
        CHECK_IS(tutti_same(moved, n, world, NULL), 1);
    }
    memset(bytes, 0, sizeof bytes);             /* zeros of two lengths are two different things */
    CHECK_IS(tutti_same(bytes, 64 + (size_t)(rank == odd), world, NULL), size == 1 ? 1 : -EPROTO);
    return 0;
}

#define CASE(name, size) \
    static void test_##name(void **state) \
    { \
        (void)state; \
        assert_int_equal(ranks_run(size, body_##name, 0), 0); \
    }
CASE(made_and_freed, 3)
CASE(8000, 2)
CASE(full, 3)
CASE(under_way, 2)
CASE(nested, 3)
CASE(gives_up, 3)
CASE(gives_up_fast, 2)
CASE(on_progress_thread, 3)

static void test_alone(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(1, body_made_and_freed, 0), 0);
    assert_int_equal(ranks_run(1, body_same, 0), 0);
    assert_int_equal(ranks_run_threads(3, body_same), 0);
}
CASE(same, 3)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_and_freed), cmocka_unit_test(test_8000),
        cmocka_unit_test(test_full), cmocka_unit_test(test_under_way),
        cmocka_unit_test(test_nested), cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_gives_up_fast),
        cmocka_unit_test(test_on_progress_thread), cmocka_unit_test(test_same),
        cmocka_unit_test(test_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
