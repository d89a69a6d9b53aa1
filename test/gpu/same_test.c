/* ctest: timeout=120 */
/* Are the ranks' results alike? Asked by tutti_same of what lies on devices, wherever each rank has
 * its copy: yes after each collective that gives all ranks the same, by every road; no on all ranks
 * if a byte of one of them is another. Asked by TUTTI_VERIFY=1 of all operations: device operations
 * raise no false alarm and are no way past one. By processes and by threads. */
#include "case_device.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tutti.h>

#include <cmocka.h>

enum { RANKS = 4, MOST = 200007 };

static const size_t sizes[] = { 1, 3, 333, 5000, 70001, MOST };
static const char *const roads[] = { "device:-inf=pinned", "device:-inf=leader",
                                     "device:-inf=peers" };
enum { ROADS = 3 };

/* Of a rank, which may be a thread. */
struct place { CUcontext context; CUdeviceptr in, out; float *host; int rank, device; };

static int enter(struct place *p, int rank, int devices)
{
    signal(SIGSEGV, SIG_DFL);                   /* cmocka's would go on as the test in this child */
    *p = (struct place){
        .rank = rank, .device = rank % devices, .host = malloc((MOST + 1) * sizeof(float))
    };
    YES(p->host);
    OK(cu.cuDevicePrimaryCtxRetain(&p->context, p->device));
    OK(cu.cuCtxSetCurrent(p->context));
    OK(cu.cuMemAlloc_v2(&p->in, (MOST + 1) * sizeof(float)));
    OK(cu.cuMemAlloc_v2(&p->out, (MOST + 1) * sizeof(float)));
    return 0;
}

static int leave(struct place *p)
{
    OK(cu.cuMemFree_v2(p->in));
    OK(cu.cuMemFree_v2(p->out));
    OK(cu.cuCtxSetCurrent(NULL));
    OK(cu.cuDevicePrimaryCtxRelease_v2(p->device));
    free(p->host);
    return 0;
}

/* Sums whose last bits depend on the order. */
static void fill(const struct place *p, size_t n)
{
    unsigned x = (unsigned)p->rank * 977u + (unsigned)n;
    float *in = p->host;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        in[i] = (float)(x >> 8) * (i % 3 ? 1e-3f : 1e4f);
    }
    case_put(p->in, in, n * sizeof(float));
}

static int give_all(tutti_comm *comm, const struct place *p, size_t n, int how)
{
    void *in = (void *)(uintptr_t)p->in, *out = (void *)(uintptr_t)p->out;
    switch (how) {
    case 0: return tutti_all_reduce(in, out, n, TUTTI_F32, TUTTI_SUM, comm, NULL);
    case 1: return tutti_all_gather(in, out, n / RANKS, TUTTI_F32, comm, NULL);
    default: return tutti_broadcast(p->rank == 2 ? in : out, n, TUTTI_F32, 2, comm, NULL);
    }
}

/* Asked three times: on the devices; where every other rank has brought its copy home; where the
 * last byte of rank `odd` is another. */
static int ask(tutti_comm *comm, const struct place *p, CUdeviceptr at, size_t bytes, int odd)
{
    unsigned char *seen = (unsigned char *)p->host, other;
    void *there = (void *)(uintptr_t)at;
    IS(tutti_same(there, bytes, comm, NULL), 1);
    case_get(seen, at, bytes);
    other = seen[bytes - 1] ^ 1;
    IS(tutti_same(p->rank % 2 ? there : p->host, bytes, comm, NULL), 1);
    if (p->rank == odd)
        case_put(at + bytes - 1, &other, 1);
    IS(tutti_same(there, bytes, comm, NULL), 0);
    IS(tutti_same(p->rank == odd || p->rank % 2 ? there : p->host, bytes, comm, NULL), 0);
    if (p->rank == odd)
        case_put(at + bytes - 1, &seen[bytes - 1], 1);
    return 0;
}

static int every(tutti_comm *comm, const struct place *p)
{
    for (int how = 0; how < 3; how++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            size_t n = how == 1 ? (sizes[s] + RANKS - 1) / RANKS * RANKS : sizes[s];
            if (n > MOST)
                n -= RANKS;
            fill(p, n);
            IS(give_all(comm, p, n, how), 0);
            if (ask(comm, p, how == 2 && p->rank == 2 ? p->in : p->out,
                    n * sizeof(float) - (how == 0), (int)s % RANKS))
                return 1;
        }
    return 0;
}

static int alike(tutti_comm *world, int rank)
{
    struct place p;
    return enter(&p, rank, case_devices()) || every(world, &p) || leave(&p);
}

static int alike_of_process(tutti_comm *world, int rank)
{
    YES(case_cuda());
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    return alike(world, rank);
}

static int alike_of_threads(void)
{
    YES(case_cuda());
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    return ranks_run_threads(RANKS, alike);
}

static void all_roads(ranks_body *body, case_body *threads)
{
    for (int i = 0; i < ROADS; i++) {
        setenv("TUTTI_ALGORITHM", roads[i], 1);
        /* with two, a leader's road is that of peers */
        for (int devices = 1; devices <= 1 + (i == ROADS - 1); devices++) {
            setenv("FAKE_CUDA_DEVICES", devices == 1 ? "1" : "2", 1);
            if (ranks_run(RANKS, body, 0))
                fail_msg("%s, %d devices", roads[i], devices);
            PASSES(threads, NULL);
        }
        unsetenv("FAKE_CUDA_DEVICES");
    }
    unsetenv("TUTTI_ALGORITHM");
}

static void test_same(void **state)
{
    (void)state;
    all_roads(alike_of_process, alike_of_threads);
}

/* ---- TUTTI_VERIFY=1 -------------------------------------------------------------------------- */

static _Thread_local int me;

static void mine(const void *in, void *inout, size_t count, tutti_type type)
{
    (void)in;
    (void)type;
    for (size_t i = 0; i < count; i++)
        ((float *)inout)[i] = (float)me;             /* another result on each rank */
}

static int no_false_alarm(tutti_comm *comm, const struct place *p)
{
    for (int how = 0; how < 3; how++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            size_t n = sizes[s] / RANKS * RANKS;
            fill(p, n);
            IS(give_all(comm, p, n, how), 0);
            /* Of mixed ranks, and of all on the host, in between. */
            IS(tutti_all_reduce(p->rank == 1 ? p->host : (void *)(uintptr_t)p->in,
                                p->rank == 1 ? p->host : (void *)(uintptr_t)p->out, n, TUTTI_F32,
                                TUTTI_SUM, comm, NULL),
               0);
            IS(tutti_all_reduce(p->host, p->host, 1, TUTTI_F32, TUTTI_MAX, comm, NULL), 0);
        }
    return 0;
}

/* What differed on the host is told by the next operation, on devices; behind it nothing is done,
 * and a new comm begins anew. */
static int no_way_past(tutti_comm *world, const struct place *p)
{
    tutti_comm *comm;
    tutti_op op;
    me = p->rank;
    IS(tutti_comm_split(world, 0, p->rank, &comm), 0);
    IS(tutti_op_create(mine, 1, &op, comm), 0);
    IS(tutti_all_reduce((void *)(uintptr_t)p->in, (void *)(uintptr_t)p->out, 333, TUTTI_F32,
                        TUTTI_SUM, comm, NULL),
       0);
    IS(tutti_all_reduce(p->host, p->host, 10, TUTTI_F32, op, comm, NULL), 0);
    IS(tutti_all_reduce((void *)(uintptr_t)p->in, (void *)(uintptr_t)p->out, MOST, TUTTI_F32,
                        TUTTI_SUM, comm, NULL),
       -EPROTO);
    if (!strstr(tutti_explain(comm), "TUTTI_VERIFY: the ranks had different results before ")) {
        fprintf(stderr, "rank %d: '%s'\n", p->rank, tutti_explain(comm));
        return 1;
    }
    IS(tutti_comm_free(comm), 0);
    return 0;
}

static int verified(tutti_comm *world, int rank)
{
    struct place p;
    return enter(&p, rank, case_devices()) || no_false_alarm(world, &p) || no_way_past(world, &p)
        || every(world, &p) || leave(&p);
}

static int verified_of_process(tutti_comm *world, int rank)
{
    YES(case_cuda());
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    return verified(world, rank);
}

static int verified_of_threads(void)
{
    YES(case_cuda());
    OK(cu.cuDevicePrimaryCtxRelease_v2(0));
    return ranks_run_threads(RANKS, verified);
}

static void test_verify(void **state)
{
    (void)state;
    setenv("TUTTI_VERIFY", "1", 1);
    all_roads(verified_of_process, verified_of_threads);
    unsetenv("TUTTI_VERIFY");
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_same),
                                        cmocka_unit_test(test_verify) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
