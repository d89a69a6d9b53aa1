/* The driver is armed when the test's own calls are done, and numbers count from there, so that
 * only the library meets the fault. */
#include "fault_scenario.h"

#include "case_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tutti_cuda.h>
#include <unistd.h>

enum { SMALL = 3, LARGE = 40000, LIFE_S = 90 };

#define NAME_(symbol, parameters) #symbol,
const char *const scenario_symbols[SCENARIO_SYMBOLS] = { CUDA_ALL_SYMBOLS(NAME_) };
#undef NAME_

struct scenario_fault scenario_fault;

struct scenario_told *scenario_told(void) { return (struct scenario_told *)(void *)page->bytes; }
_Static_assert(sizeof(struct scenario_told) <= sizeof page->bytes, "fits");

static void *address(CUdeviceptr at) { return (void *)(uintptr_t)at; }
static CUdeviceptr device_of(void *at) { return (CUdeviceptr)(uintptr_t)at; }

/* Of a rank, which is a process. */
static float host[LARGE];

static void fill(void *at, size_t n, int rank)
{
    for (size_t i = 0; i < n; i++)
        host[i] = (float)((int)(i % 1000) + rank);
    case_put(device_of(at), host, n * sizeof *host);
}

static const float *see(void *at, size_t n)
{
    case_get(host, device_of(at), n * sizeof *host);
    return host;
}

static bool is_sum(const float *x, size_t n, int ranks)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != (float)(ranks * (int)(i % 1000) + ranks * (ranks - 1) / 2))
            return false;
    return true;
}

/* The first failure's words: what comes behind it has others. */
static void say(tutti_comm *comm, int r)
{
    char *words = scenario_told()->words[tutti_rank(comm)];
    if (r < 0 && !words[0])
        snprintf(words, sizeof scenario_told()->words[0], "%s", tutti_explain(comm));
}

static int reduce(tutti_comm *comm, void *in, void *out, size_t n, bool as_work)
{
    tutti_work *work = NULL;
    tutti_call call = { .work = &work };
    fill(in, n, tutti_rank(comm));
    if (out != in)
        case_fill(device_of(out), 0xee, n * sizeof(float));
    int r = tutti_all_reduce(in, out, n, TUTTI_F32, TUTTI_SUM, comm, as_work ? &call : NULL);
    if (as_work && r == 0)
        r = tutti_wait(work, -1);
    say(comm, r);
    return r || is_sum(see(out, n), n, tutti_size(comm)) ? r : -EBADMSG;
}

static int spread(tutti_comm *world, void *in, void *out, int rank)
{
    void *at = rank == 0 ? in : out;
    fill(at, LARGE, rank);
    int r = tutti_broadcast(at, LARGE, TUTTI_F32, 0, world, NULL);
    return r || is_sum(see(at, LARGE), LARGE, 1) ? r : -EBADMSG;
}

static int gather(tutti_comm *world, void *in, void *out, int rank)
{
    size_t each = LARGE / 4;
    fill(in, each, rank);
    int r = tutti_all_gather(in, out, each, TUTTI_F32, world, NULL);
    size_t all = each * (size_t)tutti_size(world);
    const float *got = see(out, all);
    for (size_t i = 0; i < all && r == 0; i++)
        if (got[i] != (float)((int)(i % each % 1000) + (int)(i / each)))
            r = -EBADMSG;
    return r;
}

/* In memory of ours, or, where there is none, in the caller's. */
static int in_ours(tutti_comm *world, void *in)
{
    void *at = NULL;
    int got = tutti_cuda_alloc(&at, LARGE * sizeof(float), 0, world);
    int r = reduce(world, got ? in : at, got ? in : at, LARGE, false);
    return got == 0 && tutti_cuda_free(at, world) == -EINVAL ? -EBADMSG : r;
}

static int in_another(tutti_comm *world, void *in, void *out)
{
    tutti_comm *other;
    int r = tutti_comm_split(world, 0, 0, &other);
    if (r)
        return r;
    r = reduce(other, in, out, LARGE, false);
    int freed = tutti_comm_free(other);
    return r ? r : freed;
}

static int step(tutti_comm *world, int at, int rank)
{
    void *in = address(compare_in), *out = address(compare_out);
    switch (at) {
    case 0: return reduce(world, in, out, SMALL, false);
    case 1: return reduce(world, in, out, LARGE, false);
    case 2: return spread(world, in, out, rank);
    case 3: return gather(world, in, out, rank);
    case 4: return reduce(world, in, in, LARGE, true);
    case 5: return in_ours(world, in);
    default: return in_another(world, in, out);
    }
}

/* It failed, at all of them: now on a comm of those who are left. */
static void go_on(tutti_comm *world, int *result)
{
    tutti_comm *left = world, *next;
    for (int i = SCENARIO_SHRINK;
         i <= SCENARIO_AGAIN && (result[i] = tutti_comm_shrink(left, &next)) == 0; i += 2) {
        left = next;
        if (i == SCENARIO_SHRINK
            && (result[SCENARIO_DEVICE] = reduce(left, address(compare_in), address(compare_out),
                                                 LARGE, false))
                == 0)
            break;
    }
    for (int i = 0; i < LARGE; i++)
        host[i] = (float)(i % 1000 + tutti_rank(left));
    int r = tutti_all_reduce(host, host, LARGE, TUTTI_F32, TUTTI_SUM, left, NULL);
    result[SCENARIO_HOST] = r || is_sum(host, LARGE, tutti_size(left)) ? r : -EBADMSG;
}

static void arm(int rank, const uint64_t *before)
{
    char wanted[100];
    for (int i = 0; scenario_fault.symbol && rank == scenario_fault.rank && i < SCENARIO_SYMBOLS;
         i++) {
        if (strcmp(scenario_symbols[i], scenario_fault.symbol) != 0)
            continue;
        snprintf(wanted, sizeof wanted, "%s:%llu:%s", scenario_fault.symbol,
                 (unsigned long long)(before[i] + scenario_fault.nth), scenario_fault.code);
        setenv("FAKE_CUDA_FAIL", wanted, 1);
        if (scenario_fault.leaves_things)
            setenv("FAKE_CUDA_END", "lax", 1);
    }
}

/* The world is left, and the process ends as a program ends: what the driver checks then,
 * it checks. */
static int finish(tutti_comm *world, int rank, const uint64_t *before)
{
    struct scenario_told *t = scenario_told();
    t->result[rank][SCENARIO_END] = tutti_finalize(world);
    unsetenv("FAKE_CUDA_FAIL");
    for (int i = 0; rank == scenario_fault.rank && i < SCENARIO_SYMBOLS; i++)
        t->calls[i] = case_calls_of(scenario_symbols[i]) - before[i];
    if (cu.cuCtxSynchronize() == 0) {                /* else its context went with the fault */
        OK(cu.cuMemFree_v2(compare_in));
        OK(cu.cuMemFree_v2(compare_out));
    }
    cu.cuDevicePrimaryCtxRelease_v2(0);
    fflush(NULL);
    exit(0);
}

void scenario_clear(int rank)
{
    for (int i = 0; i < SCENARIO_STEPS; i++)
        scenario_told()->result[rank][i] = SCENARIO_NONE;
}

static int run(tutti_comm *world, int rank, int times)
{
    struct scenario_told *t = scenario_told();
    uint64_t before[SCENARIO_SYMBOLS];
    int error = 0;
    alarm(LIFE_S);
    scenario_clear(rank);
    if (compare_begin(world, LARGE, 0))
        return 1;
    for (int i = 0; i < SCENARIO_SYMBOLS; i++)
        before[i] = case_calls_of(scenario_symbols[i]);
    arm(rank, before);
    for (int i = 0; i < times * SCENARIO_OPS && error == 0; i++) {
        int at = i % SCENARIO_OPS;
        /* Before this one, without which nobody comes to the next: what stands there was then said
         * of that one. */
        if (i + 1 < times * SCENARIO_OPS)
            t->result[rank][(i + 1) % SCENARIO_OPS] = SCENARIO_NONE;
        error = t->result[rank][at] = step(world, at, rank);
    }
    say(world, error);
    /* A fault that is still to come comes with the end, which is to stand it, too. */
    if (error)
        go_on(world, t->result[rank]);
    return finish(world, rank, before);
}

int scenario_run(tutti_comm *world, int rank) { return run(world, rank, 1); }
int scenario_runs(tutti_comm *world, int rank) { return run(world, rank, 1000000); }

static bool typed(int r, bool mine)
{
    return r == -EIO || r == -EOWNERDEAD || (mine ? r == -ENOMEM : r == -ECANCELED);
}

int scenario_failed(int ranks, unsigned who, int from, int to, const char **bad, int *at)
{
    const struct scenario_told *t = scenario_told();
    int one = 0;
    while (!(who >> one & 1))
        one++;
    for (int i = from; i < to; i++) {
        for (int r = 0; r < ranks && !*bad; r++) {
            int got = t->result[r][i], first = t->result[one][i];
            *at = i;
            if (!(who >> r & 1))
                continue;
            if (got == -EBADMSG)
                *bad = "the result is wrong";
            else if ((got == 0) != (first == 0)
                     || (got == SCENARIO_NONE) != (first == SCENARIO_NONE))
                *bad = "some have it and some have not";
            else if (got < 0 && !typed(got, r == scenario_fault.rank))
                *bad = "an error that is none of its kinds";
        }
        if (*bad)
            return -1;
        if (t->result[one][i] < 0)
            return i;
    }
    return -1;
}

void scenario_print(int ranks)
{
    const struct scenario_told *t = scenario_told();
    for (int r = 0; r < ranks; r++) {
        fprintf(stderr, "  rank %d:", r);
        for (int i = 0; i < SCENARIO_STEPS; i++)
            fprintf(stderr, t->result[r][i] == SCENARIO_NONE ? " -" : " %d", t->result[r][i]);
        fprintf(stderr, "  '%s'\n", t->words[r]);
    }
}
