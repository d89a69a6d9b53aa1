/* The device's areas are filled and read through the driver's back door, so that no copy of the
 * test's own orders anything. */
#include "host_compare.h"

#include "case_device.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* of uneven parts each block has so many elements more than the one before */
enum { MORE = 5, RANKS = 8 };

float *compare_given, *compare_taken;
CUdeviceptr compare_in, compare_out;

static size_t room;                 /* bytes of an area that a round touches, and some behind it */
static int rank, size, ordinal;

int compare_begin(tutti_comm *world, size_t most, int device)
{
    signal(SIGSEGV, SIG_DFL);                   /* cmocka's would go on as the test in this child */
    rank = tutti_rank(world);
    size = tutti_size(world);
    ordinal = device;
    room = (size_t)size * (most + MORE * RANKS) * sizeof(float);
    compare_given = malloc(room);
    compare_taken = malloc(room);
    YES(compare_given && compare_taken);
    if (device < 0)
        return 0;
    YES(case_cuda());
    if (device > 0) {
        CUcontext context;
        OK(cu.cuDevicePrimaryCtxRelease_v2(0));
        OK(cu.cuDevicePrimaryCtxRetain(&context, device));
        OK(cu.cuCtxSetCurrent(context));
    }
    OK(cu.cuMemAlloc_v2(&compare_in, room));
    OK(cu.cuMemAlloc_v2(&compare_out, room));
    return 0;
}

int compare_end(tutti_comm *world)
{
    IS(tutti_finalize(world), 0);
    if (ordinal >= 0) {
        OK(cu.cuMemFree_v2(compare_in));
        OK(cu.cuMemFree_v2(compare_out));
        OK(cu.cuDevicePrimaryCtxRelease_v2(ordinal));
    }
    fflush(NULL);
    exit(0);
}

static size_t block(const struct compared *r, int p)
{
    return r->count ? r->count + (size_t)p * MORE : (size_t)p;
}

static void lists(const struct compared *r, float *area, void *at[RANKS], size_t counts[RANKS])
{
    size_t before = 0;
    for (int p = 0; p < size; p++) {
        at[p] = area + before;
        counts[p] = block(r, p);
        before += counts[p];
    }
}

/* What a rank gives when each gives as many elements to all, and takes as many of each as that
 * one gives. */
static int call_it(tutti_comm *world, const struct compared *r, float *give, float *take,
                   const tutti_call *call)
{
    size_t n = r->count, gives[RANKS], takes[RANKS], mine[RANKS];
    void *to[RANKS], *from[RANKS];
    int root = size - 1;
    const tutti_type t = TUTTI_F32;
    lists(r, give, from, gives);
    lists(r, take, to, takes);
    for (int p = 0; p < size; p++)
        mine[p] = block(r, rank);
    if (r->in_place)
        give = r->kind == R_ALL_GATHER || (r->kind == R_GATHER && rank == root)
            ? take + (size_t)rank * n
            : take;
    if (r->in_place && (r->kind == R_REDUCE_SCATTER || (r->kind == R_SCATTER && rank == root)))
        take += (size_t)rank * n;
    switch (r->kind) {
    case R_BROADCAST: return tutti_broadcast(rank == root ? give : take, n, t, root, world, call);
    case R_REDUCE: return tutti_reduce(give, take, n, t, TUTTI_SUM, root, world, call);
    case R_ALL_REDUCE: return tutti_all_reduce(give, take, n, t, TUTTI_SUM, world, call);
    case R_REDUCE_SCATTER: return tutti_reduce_scatter(give, take, n, t, TUTTI_SUM, world, call);
    case R_ALL_GATHER: return tutti_all_gather(give, take, n, t, world, call);
    case R_GATHER: return tutti_gather(give, take, n, t, root, world, call);
    case R_SCATTER: return tutti_scatter(give, take, n, t, root, world, call);
    case R_ALL_TO_ALL: return tutti_all_to_all(give, take, n, t, world, call);
    case R_SCAN: return tutti_scan(give, take, n, t, TUTTI_SUM, world, call);
    case R_EXSCAN: return tutti_exscan(give, take, n, t, TUTTI_SUM, world, call);
    case R_ALL_GATHER_V: return tutti_all_gather_v(give, block(r, rank), to, takes, t, world, call);
    case R_GATHER_V: return tutti_gather_v(give, block(r, rank), to, takes, t, root, world, call);
    case R_SCATTER_V:
        return tutti_scatter_v((const void *const *)from, gives, take, block(r, rank), t, root,
                               world, call);
    case R_REDUCE_SCATTER_V:
        return tutti_reduce_scatter_v((const void *const *)from, gives, take, t, TUTTI_SUM, world,
                                      call);
    case R_ALL_TO_ALL_V:
        for (int p = 0; p < size; p++)
            to[p] = take + (size_t)p * block(r, rank);
        return tutti_all_to_all_v((const void *const *)from, gives, to, mine, t, world, call);
    case R_MANY:
        return tutti_all_reduce_many((const void *const *)from, to, gives, size, t, TUTTI_SUM,
                                     world, call);
    case R_SAME: return tutti_same(give, n * sizeof(float), world, call);
    case R_KINDS: break;
    }
    return -1;
}

static int call_and_wait(tutti_comm *world, const struct compared *r, float *give, float *take,
                         tutti_call *call)
{
    tutti_work *work = NULL;
    tutti_call own = call ? *call : (tutti_call){ 0 };
    if (!r->wait)
        return call_it(world, r, give, take, call);
    own.work = &work;
    int error = call_it(world, r, give, take, &own);
    return error < 0 ? error : tutti_wait(work, -1);
}

/* Values whose sum depends on the order. */
static void fill(const struct compared *r)
{
    unsigned x = (unsigned)(rank * 977 + (int)r->kind * 31 + (int)r->count);
    for (size_t i = 0; i < room / sizeof(float); i++) {
        x = x * 1664525u + 1013904223u;
        compare_given[i] = (float)(x >> 8) * (r->kind == R_SAME ? 0.0f : i % 3 ? 1e-3f : 1e4f);
        compare_taken[i] = r->in_place ? compare_given[i] : -1.0f;
    }
}

static float *area(const struct compared *r, int bit, CUdeviceptr device, float *host)
{
    return r->where & bit ? (float *)(uintptr_t)device : host;
}

int compare_call(tutti_comm *world, const struct compared *r)
{
    return call_and_wait(world, r, area(r, SEND_ON_DEVICE, compare_in, compare_given),
                         area(r, RECV_ON_DEVICE, compare_out, compare_taken), r->call);
}

int compare_run(tutti_comm *world, const struct compared *r)
{
    float *given = NULL, *taken = NULL;
    rank = tutti_rank(world);
    size = tutti_size(world);
    room = (size_t)size * (r->count + MORE * RANKS) * sizeof(float);
    fill(r);
    if (ordinal >= 0) {
        case_put(compare_in, compare_given, room);
        case_put(compare_out, compare_taken, room);
    }
    tutti_call host = r->call ? *r->call : (tutti_call){ 0 };
    host.stream = NULL;
    struct compared plain = *r;
    plain.wait = false;
    given = malloc(room);
    taken = malloc(room);
    YES(given && taken);
    memcpy(given, compare_given, room);
    memcpy(taken, compare_taken, room);
    int expected = call_it(world, &plain, given, taken, &host);
    if (expected < 0)
        fprintf(stderr, "rank %d, on the host: %s\n", rank, tutti_explain(world));
    YES(expected >= 0);
    struct compared other = *r;
    if (ordinal < 0)
        other.where = ON_HOST;
    int got = compare_call(world, &other);
    if (got < 0)
        fprintf(stderr, "rank %d, kind %d, %zu: %s\n", rank, (int)r->kind, r->count,
                tutti_explain(world));
    IS(got, expected);
    float *seen = malloc(room), *result = other.where & RECV_ON_DEVICE ? seen : compare_taken;
    YES(seen);
    if (result == seen)
        case_get(seen, compare_out, room);
    for (size_t i = 0; i < room / sizeof(float); i++)
        if (memcmp(&result[i], &taken[i], sizeof(float))) {
            fprintf(stderr,
                    "rank %d of %d, kind %d, count %zu, place %d, where %d: element %zu is %g, not "
                    "%g\n",
                    rank, size, (int)r->kind, r->count, r->in_place, other.where, i,
                    (double)result[i], (double)taken[i]);
            return 1;
        }
    YES(other.where & SEND_ON_DEVICE ? case_same(compare_in, given, room)
                                     : memcmp(compare_given, given, room) == 0);
    free(seen);
    free(given);
    free(taken);
    return 0;
}
