/* Bad arguments of every collective beyond the first four, at three ranks, where blocks and lists
 * have other ranks' parts: refused before anything is touched, with a sentence; the comm stays
 * whole. Overlaps are tried by one element at both ends, around each allowed place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fold/fold.h"
#include "support/ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, N = 4, ROOM = 64 };                        /* elements of a block; of a buffer */

static int32_t a[ROOM], b[ROOM], kept_a[ROOM], kept_b[ROOM];

static void renew(int rank)
{
    for (int i = 0; i < ROOM; i++) {
        kept_a[i] = a[i] = 1000 * rank + i;
        kept_b[i] = b[i] = -i;
    }
}

static int untouched(void)
{
    return memcmp(a, kept_a, sizeof a) == 0 && memcmp(b, kept_b, sizeof b) == 0;
}

/* Refused, in words, with nothing touched; whether it would have waited shows at the
 * next barrier. */
#define REFUSED(call, reason) \
    do { \
        CHECK_IS(call, -EINVAL); \
        if (!strstr(tutti_explain(world), reason) || !strstr(tutti_explain(world), " refused: ") \
            || !strstr(tutti_explain(world), "arguments_every_test.c:")) \
            return ranks_wrong(__FILE__, __LINE__, reason, world); \
        CHECK(untouched()); \
    } while (0)
#define FINE(call) CHECK_IS(call, 0)

static const tutti_type I = TUTTI_I32;
static const tutti_op SUM = TUTTI_SUM;

/* Every function with arguments that are right but for one thing. */
typedef int every_fn(const void *send, void *recv, size_t count, tutti_type type, tutti_op op,
                     int root, tutti_comm *comm, const tutti_call *call);

static int f_reduce_scatter(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                            tutti_comm *c, const tutti_call *k)
{
    (void)root;
    return tutti_reduce_scatter(s, r, n, t, o, c, k);
}
static int f_all_gather(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                        tutti_comm *c, const tutti_call *k)
{
    (void)root; (void)o;
    return tutti_all_gather(s, r, n, t, c, k);
}
static int f_gather(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                    tutti_comm *c, const tutti_call *k)
{
    (void)o;
    return tutti_gather(s, r, n, t, root, c, k);
}
static int f_scatter(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                     tutti_comm *c, const tutti_call *k)
{
    (void)o;
    return tutti_scatter(s, r, n, t, root, c, k);
}
static int f_all_to_all(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                        tutti_comm *c, const tutti_call *k)
{
    (void)root; (void)o;
    return tutti_all_to_all(s, r, n, t, c, k);
}
static int f_scan(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                  tutti_comm *c, const tutti_call *k)
{
    (void)root;
    return tutti_scan(s, r, n, t, o, c, k);
}
static int f_exscan(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                    tutti_comm *c, const tutti_call *k)
{
    (void)root;
    return tutti_exscan(s, r, n, t, o, c, k);
}

/* The general forms, as even ones: block p is the p-th of the buffer. */
static struct vector_args { const void *send[RANKS]; void *recv[RANKS]; size_t counts[RANKS]; } l;
static void lists(const void *s, void *r, size_t n, tutti_type t)
{
    size_t width = t == TUTTI_F64 ? 8 : 4;
    for (size_t p = 0; p < RANKS; p++) {
        l.send[p] = s ? (const char *)s + p * n * width : NULL;
        l.recv[p] = r ? (char *)r + p * n * width : NULL;
        l.counts[p] = n;
    }
}
static int f_all_gather_v(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                          tutti_comm *c, const tutti_call *k)
{
    (void)o; (void)root;
    lists(NULL, r, n, t);
    return tutti_all_gather_v(s, n, l.recv, l.counts, t, c, k);
}
static int f_gather_v(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                      tutti_comm *c, const tutti_call *k)
{
    (void)o;
    lists(NULL, r, n, t);
    return tutti_gather_v(s, n, l.recv, l.counts, t, root, c, k);
}
static int f_scatter_v(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                       tutti_comm *c, const tutti_call *k)
{
    (void)o;
    lists(s, NULL, n, t);
    return tutti_scatter_v(l.send, l.counts, r, n, t, root, c, k);
}
static int f_reduce_scatter_v(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                              tutti_comm *c, const tutti_call *k)
{
    (void)root;
    lists(s, NULL, n, t);
    return tutti_reduce_scatter_v(l.send, l.counts, r, t, o, c, k);
}
static int f_all_to_all_v(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                          tutti_comm *c, const tutti_call *k)
{
    (void)o; (void)root;
    lists(s, r, n, t);
    return tutti_all_to_all_v(l.send, l.counts, l.recv, l.counts, t, c, k);
}
static int f_many(const void *s, void *r, size_t n, tutti_type t, tutti_op o, int root,
                  tutti_comm *c, const tutti_call *k)
{
    (void)root;
    lists(s, r, n, t);
    return tutti_all_reduce_many(l.send, l.recv, l.counts, RANKS, t, o, c, k);
}

/* gives, takes: blocks of the send and of the receive buffer; rooted: 1 the root alone gives them,
 * 2 takes them. */
static const struct {
    const char *name;
    every_fn *fn;
    int gives, takes, rooted, folds, lists, first_takes_nothing;
} every[] = {
    { "reduce_scatter", f_reduce_scatter, RANKS, 1, 0, 1, 0, 0 },
    { "all_gather", f_all_gather, 1, RANKS, 0, 0, 0, 0 },
    { "gather", f_gather, 1, RANKS, 2, 0, 0, 0 },
    { "scatter", f_scatter, RANKS, 1, 1, 0, 0, 0 },
    { "all_to_all", f_all_to_all, RANKS, RANKS, 0, 0, 0, 0 },
    { "scan", f_scan, 1, 1, 0, 1, 0, 0 },
    { "exscan", f_exscan, 1, 1, 0, 1, 0, 1 },
    { "all_gather_v", f_all_gather_v, 1, RANKS, 0, 0, 1, 0 },
    { "gather_v", f_gather_v, 1, RANKS, 2, 0, 1, 0 },
    { "scatter_v", f_scatter_v, RANKS, 1, 1, 0, 1, 0 },
    { "reduce_scatter_v", f_reduce_scatter_v, RANKS, 1, 0, 1, 1, 0 },
    { "all_to_all_v", f_all_to_all_v, RANKS, RANKS, 0, 0, 1, 0 },
    { "all_reduce_many", f_many, RANKS, RANKS, 0, 1, 1, 0 },
};
enum { EVERY = sizeof every / sizeof every[0] };

static void done(int error, void *arg) { (void)error; (void)arg; }

static int body_scalars(tutti_comm *world, int rank)
{
    tutti_work *work = NULL;
    const tutti_call bad[] = {
        { .flags = 2 }, { .flags = TUTTI_KEEP }, { .done = done },
        { .reserved = { 0, 0, 0, 7 } }, { .stream = a }
    };
    static const char *const bad_why[] = {
        "unknown bits 0x2", "TUTTI_KEEP needs call.work", "call.done needs call.work",
        "call.reserved[3] is not 0", "call.stream"
    };
    static const int no_type[] = { -1, 17, INT32_MAX, INT32_MIN },
                     no_root[] = { -1, RANKS, INT32_MAX, INT32_MIN };
    for (int i = 0; i < EVERY; i++) {
        every_fn *fn = every[i].fn;
        renew(rank);
        CHECK_IS(fn(a, b, N, I, SUM, 0, NULL, NULL), -EINVAL);
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
            REFUSED(fn(a, b, N, I, SUM, 0, world, &bad[k]), bad_why[k]);
        work = (tutti_work *)a;
        CHECK_IS(fn(a, b, N, I, SUM, 0, world, &(tutti_call){ .work = &work, .reserved = { 1 } }),
                 -EINVAL);
        CHECK(work == NULL);
        for (size_t k = 0; k < 4; k++)
            REFUSED(fn(a, b, N, (tutti_type)no_type[k], SUM, 0, world, NULL), "is no tutti_type");
        for (size_t k = 0; k < 4 && every[i].rooted; k++)
            REFUSED(fn(a, b, N, I, SUM, no_root[k], world, NULL), "is no rank of this comm");
        if (every[i].folds) {
            REFUSED(fn(a, b, N, I, (tutti_op)12, 0, world, NULL), "none of tutti's");
            REFUSED(fn(a, b, N, I, (tutti_op)-1, 0, world, NULL), "none of tutti's");
            REFUSED(fn(a, b, N, I, TUTTI_OP_USER, 0, world, NULL), "tutti_op_create");
            REFUSED(fn(a, b, N, TUTTI_F32, TUTTI_BAND, 0, world, NULL), "need an integer type");
            const char *why = NULL,
                       *factor = fold_find_scaled(TUTTI_F32, &why) ? "needs call.factor" : why;
            REFUSED(fn(a, b, N, TUTTI_F32, TUTTI_PREMUL_SUM, 0, world, NULL), factor);
            REFUSED(fn(a, b, N, TUTTI_F32, TUTTI_PREMUL_SUM, 0, world, &(tutti_call){ 0 }), factor);
        }
        /* One above what an address space holds, in one block or in all together. */
        size_t blocks = every[i].gives == RANKS || every[i].takes == RANKS ? RANKS : 1,
               most = (size_t)PTRDIFF_MAX / 8 / blocks + 1;
        bool at_root = !every[i].rooted || rank == 1;
        if (!every[i].lists || at_root)
            REFUSED(fn(a, b, most, TUTTI_F64, TUTTI_SUM, 1, world, NULL),
                    "more than an address space holds");
        REFUSED(fn(a, b, SIZE_MAX, TUTTI_F64, TUTTI_SUM, 1, world, NULL),
                "more than an address space holds");
        REFUSED(fn(a, b, SIZE_MAX / 8 + 2, TUTTI_F64, TUTTI_SUM, 1, world, NULL),
                "more than an address space holds");
        FINE(fn(a, b, N, I, SUM, 0, world, NULL));
        FINE(fn(a, b, 0, I, SUM, 1, world, NULL));
        FINE(tutti_barrier(world, NULL));
    }
    REFUSED((renew(rank), tutti_same(NULL, 1, world, NULL)), "NULL");
    CHECK_IS(tutti_same(a, 1, NULL, NULL), -EINVAL);
    REFUSED(tutti_same(a, SIZE_MAX, world, NULL), "more than an address space holds");
    FINE(tutti_barrier(world, NULL));
    return 0;
}

/* Root 1: who uses which buffer, who may give NULL for it. */
static int body_nulls(tutti_comm *world, int rank)
{
    for (int i = 0; i < EVERY; i++) {
        bool gives = every[i].rooted != 1 || rank == 1, takes = every[i].rooted != 2 || rank == 1;
        if (every[i].first_takes_nothing && rank == 0)
            takes = false;
        renew(rank);
        if (gives)
            REFUSED(every[i].fn(NULL, b, N, I, SUM, 1, world, NULL), "NULL with count 4");
        if (takes)
            REFUSED(every[i].fn(a, NULL, N, I, SUM, 1, world, NULL), "NULL with count 4");
        FINE(every[i].fn(gives ? a : NULL, takes ? b : NULL, N, I, SUM, 1, world, NULL));
        FINE(every[i].fn(NULL, NULL, 0, I, SUM, 1, world, NULL));
        FINE(tutti_barrier(world, NULL));
    }
    /* The lists themselves. */
    const size_t none[RANKS] = { 0 };
    renew(rank);
    lists(a, b, N, I);
    REFUSED(tutti_all_gather_v(a, N, NULL, l.counts, I, world, NULL),
            "a list of buffers or of counts is NULL");
    REFUSED(tutti_all_gather_v(a, N, l.recv, NULL, I, world, NULL),
            "a list of buffers or of counts is NULL");
    REFUSED(tutti_reduce_scatter_v(NULL, l.counts, b, I, SUM, world, NULL),
            "a list of buffers or of counts is NULL");
    REFUSED(tutti_reduce_scatter_v(l.send, NULL, b, I, SUM, world, NULL),
            "a list of buffers or of counts is NULL");
    REFUSED(tutti_all_to_all_v(NULL, l.counts, l.recv, l.counts, I, world, NULL),
            "a list of buffers or of counts is NULL");
    REFUSED(tutti_all_to_all_v(l.send, NULL, l.recv, l.counts, I, world, NULL),
            "a list of buffers or of counts is NULL");
    REFUSED(tutti_all_to_all_v(l.send, l.counts, NULL, l.counts, I, world, NULL),
            "a list of buffers or of counts is NULL");
    REFUSED(tutti_all_to_all_v(l.send, l.counts, l.recv, NULL, I, world, NULL),
            "a list of buffers or of counts is NULL");
    REFUSED(tutti_all_reduce_many(NULL, l.recv, l.counts, RANKS, I, SUM, world, NULL),
            "a list of buffers or of counts is NULL");
    REFUSED(tutti_all_reduce_many(l.send, NULL, l.counts, RANKS, I, SUM, world, NULL),
            "a list of buffers or of counts is NULL");
    REFUSED(tutti_all_reduce_many(l.send, l.recv, NULL, RANKS, I, SUM, world, NULL),
            "the list of 3 counts is NULL");
    REFUSED(tutti_all_reduce_many(l.send, l.recv, l.counts, -1, I, SUM, world, NULL), "-1 buffers");
    if (rank == 1) {
        REFUSED(tutti_gather_v(a, N, NULL, l.counts, I, 1, world, NULL),
                "a list of buffers or of counts is NULL");
        REFUSED(tutti_gather_v(a, N, l.recv, NULL, I, 1, world, NULL),
                "a list of buffers or of counts is NULL");
        REFUSED(tutti_scatter_v(NULL, l.counts, b, N, I, 1, world, NULL),
                "a list of buffers or of counts is NULL");
        REFUSED(tutti_scatter_v(l.send, NULL, b, N, I, 1, world, NULL),
                "a list of buffers or of counts is NULL");
    }
    l.recv[2] = NULL;
    REFUSED(tutti_all_gather_v(a, N, l.recv, l.counts, I, world, NULL),
            "receive buffer 2 is NULL with count 4");
    l.recv[2] = b + 2 * N;
    l.send[0] = NULL;
    REFUSED(tutti_all_to_all_v(l.send, l.counts, l.recv, l.counts, I, world, NULL),
            "send buffer 0 is NULL with count 4");
    FINE(tutti_all_reduce_many(NULL, NULL, NULL, 0, I, SUM, world, NULL));
    FINE(tutti_gather_v(a, N, rank == 1 ? l.recv : NULL, rank == 1 ? l.counts : NULL, I, 1, world,
                        NULL));
    lists(a, b, N, I);
    FINE(tutti_scatter_v(rank == 1 ? l.send : NULL, rank == 1 ? l.counts : NULL, b, N, I, 1, world,
                         NULL));
    const void *no_send[RANKS] = { NULL };
    void *no_recv[RANKS] = { NULL };
    FINE(tutti_all_to_all_v(no_send, none, no_recv, none, I, world, NULL));
    FINE(tutti_all_gather_v(NULL, 0, no_recv, none, I, world, NULL));
    FINE(tutti_reduce_scatter_v(no_send, none, NULL, I, SUM, world, NULL));
    FINE(tutti_all_reduce_many(no_send, no_recv, none, RANKS, I, SUM, world, NULL));
    /* By work with nothing at all: the copy of the lists lives on. */
    tutti_work *work;
    FINE(tutti_all_reduce_many(NULL, NULL, NULL, 0, I, SUM, world, &(tutti_call){ .work = &work }));
    FINE(tutti_wait(work, 0));
    FINE(tutti_barrier(world, NULL));
    return 0;
}

/* The smaller buffer at every distance from the larger: only apart, or exactly at this rank's
 * block of it. */
static int body_overlaps(tutti_comm *world, int rank)
{
    for (int i = 0; i < EVERY; i++) {
        int gives = every[i].gives, takes = every[i].takes, root = 1;
        bool both = !every[i].rooted || rank == root;
        if (every[i].first_takes_nothing && rank == 0)
            both = false;
        for (int at = 20 - RANKS * N - 1; at <= 20 + RANKS * N + 1; at++) {
            int32_t *send = gives >= takes ? a + 20 : a + at,
                    *recv = gives >= takes ? a + at : a + 20;
            int larger = (gives > takes ? gives : takes) * N,
                smaller = (gives < takes ? gives : takes) * N;
            bool apart = at >= 20 + larger || at + smaller <= 20,
                 own = at == 20 + (gives == takes ? 0 : rank * N);
            renew(rank);
            if (!both)
                continue;
            if (!apart && !own)
                REFUSED(every[i].fn(send, recv, N, I, SUM, root, world, NULL), "overlap");
        }
        FINE(tutti_barrier(world, NULL));            /* each side by side, and in place */
        for (int place = 0; place < 3; place++) {
            int larger = (gives > takes ? gives : takes) * N,
                smaller = (gives < takes ? gives : takes) * N;
            int at = place == 0 ? 20 - smaller
                : place == 1 ? 20 + larger
                : 20 + (gives == takes ? 0 : rank * N);
            FINE(every[i].fn(gives >= takes ? a + 20 : a + at, gives >= takes ? a + at : a + 20, N,
                             I, SUM, root, world, NULL));
        }
    }
    return 0;
}

/* Lists in which buffers touch, overlap, are given twice, are each other's. */
static int body_lists(tutti_comm *world, int rank)
{
    const char overlap[] = "buffers overlap";
    for (int p = 0; p < RANKS; p++)
        for (int q = 0; q < RANKS; q++) {
            if (p == q)
                continue;
            for (int by = -1; by <= 1; by += 2) {
                renew(rank);
                lists(a, b, N, I);      /* receive p one element into receive q, from either side */
                l.recv[p] = (int32_t *)l.recv[q] + by * (N - 1);
                l.recv[3 - p - q] = b + 40;
                REFUSED(tutti_all_to_all_v(l.send, l.counts, l.recv, l.counts, I, world, NULL),
                        overlap);
                REFUSED(tutti_all_gather_v(a, N, l.recv, l.counts, I, world, NULL), overlap);
                REFUSED(tutti_all_reduce_many(l.send, l.recv, l.counts, RANKS, I, SUM, world, NULL),
                        overlap);
                lists(a, b, N, I);                   /* receive p one element into send q */
                l.recv[p] = (int32_t *)(uintptr_t)l.send[q] + by * (N - 1);
                REFUSED(tutti_all_to_all_v(l.send, l.counts, l.recv, l.counts, I, world, NULL),
                        overlap);
                REFUSED(tutti_all_reduce_many(l.send, l.recv, l.counts, RANKS, I, SUM, world, NULL),
                        overlap);
            }
            lists(a, b, N, I);
            l.recv[p] = (void *)(uintptr_t)l.send[q];   /* another's block is no place for mine */
            REFUSED(tutti_all_to_all_v(l.send, l.counts, l.recv, l.counts, I, world, NULL),
                    overlap);
            REFUSED(tutti_all_reduce_many(l.send, l.recv, l.counts, RANKS, I, SUM, world, NULL),
                    overlap);
            lists(a, b, N, I);
            l.recv[p] = l.recv[q];                   /* two into one place */
            REFUSED(tutti_all_to_all_v(l.send, l.counts, l.recv, l.counts, I, world, NULL),
                    overlap);
            REFUSED(tutti_all_gather_v(a, N, l.recv, l.counts, I, world, NULL), overlap);
        }
    FINE(tutti_barrier(world, NULL));
    lists(a, a, N, I);                               /* all in place */
    FINE(tutti_all_to_all_v(l.send, l.counts, l.recv, l.counts, I, world, NULL));
    FINE(tutti_all_reduce_many(l.send, l.recv, l.counts, RANKS, I, SUM, world, NULL));
    for (int p = 0; p < RANKS; p++)
        l.send[p] = a + 2;                      /* one buffer given to all, in parts that overlap */
    lists(NULL, b, N, I);
    l.send[0] = a, l.send[1] = a + 1, l.send[2] = a;
    FINE(tutti_all_to_all_v(l.send, l.counts, l.recv, l.counts, I, world, NULL));
    /* In place with more given than comes back: what lies behind it is still to be sent. */
    const size_t gives[RANKS] = { rank == 0 ? 2 : N, rank == 1 ? 2 : N, rank == 2 ? 2 : N },
                 two[RANKS] = { 2, 2, 2 };
    renew(rank);
    lists(a, a, N, I);
    int next = (rank + 1) % RANKS;
    for (int p = 0; p < RANKS; p++)
        l.send[p] = l.recv[p] = a + p * N;
    /* right behind what comes back from `next`, in the middle of what goes there */
    l.recv[rank] = a + next * N + 2;
    REFUSED(tutti_all_to_all_v(l.send, gives, l.recv, two, I, world, NULL), overlap);
    FINE(tutti_barrier(world, NULL));
    return 0;
}

/* What this rank gives itself is what it takes from itself. */
static int body_own_pair(tutti_comm *world, int rank)
{
    const char own[] = "gives itself";
    renew(rank);
    lists(a, b, N, I);
    REFUSED(tutti_all_gather_v(a, N - 1, l.recv, l.counts, I, world, NULL), own);
    REFUSED(tutti_all_gather_v(NULL, 0, l.recv, l.counts, I, world, NULL), own);
    size_t other[RANKS] = { N, N, N };
    other[rank]++;
    REFUSED(tutti_all_to_all_v(l.send, l.counts, l.recv, other, I, world, NULL), own);
    REFUSED(tutti_all_to_all_v(l.send, other, l.recv, l.counts, I, world, NULL), own);
    if (rank == 2) {
        REFUSED(tutti_gather_v(a, N + 1, l.recv, l.counts, I, 2, world, NULL), own);
        REFUSED(tutti_scatter_v(l.send, l.counts, b, N - 1, I, 2, world, NULL), own);
    }
    FINE(tutti_barrier(world, NULL));
    /* Sums that overflow, each count small enough. */
    size_t huge[RANKS] = { (size_t)PTRDIFF_MAX / 8, (size_t)PTRDIFF_MAX / 8,
                           (size_t)PTRDIFF_MAX / 8 };
    REFUSED(tutti_all_reduce_many(l.send, l.recv, huge, RANKS, I, SUM, world, NULL),
            "add up to more than an address space holds");
    REFUSED(tutti_reduce_scatter_v(l.send, huge, b, I, SUM, world, NULL),
            "add up to more than an address space holds");
    REFUSED(tutti_all_gather_v(a, huge[rank], l.recv, huge, I, world, NULL),
            "add up to more than an address space holds");
    REFUSED(tutti_all_to_all_v(l.send, huge, l.recv, l.counts, I, world, NULL),
            "add up to more than an address space holds");
    REFUSED(tutti_all_to_all_v(l.send, l.counts, l.recv, huge, I, world, NULL),
            "add up to more than an address space holds");
    FINE(tutti_barrier(world, NULL));
    return 0;
}

#define CASE(name) \
    static void test_##name(void **state) \
    { \
        (void)state; \
        assert_int_equal(ranks_run(RANKS, body_##name, 0), 0); \
    }
CASE(scalars)
CASE(nulls)
CASE(overlaps)
CASE(lists)
CASE(own_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars), cmocka_unit_test(test_nulls),
        cmocka_unit_test(test_overlaps), cmocka_unit_test(test_lists),
        cmocka_unit_test(test_own_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
