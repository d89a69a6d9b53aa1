/* ctest: timeout=240 labels=faults */
/* A deadline passes while a rank's part is still on a device: behind the caller's work, on its way
 * to the staging, on its way to the result. All ranks get -ETIMEDOUT, and from then on their
 * buffers are theirs: nothing more is written into them, nobody has them open, and they may be
 * freed; the comm that is left works. By each road, of one message of each size. */
#include "case_device.h"
#include "gpu/streams.h"
#include "group/comm.h"
#include "host_compare.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LATE = 1, RANKS = 3, MOST = 100000, SENTINEL = 4711, DEADLINE_MS = 250 };
enum { W_MARKED, W_LET_GO };                         /* words of the page: counts */
enum what { CALLER, TO_STAGING, TO_RESULT, WHATS };  /* the stream that does nothing */

static enum what what;
static size_t count;
static CUstream held;
static float host[MOST];                             /* of a rank, which is a process */

/* What is ours is waited for by the call itself, and by peers whose memory it reads, up to a
 * second; so it is let go when the operation has failed. */
static void *lets_go(void *arg)
{
    const tutti_comm *world = arg;
    while (load_acquire64(&world->watch.slot->verdict) == 0)
        sched_yield();
    case_hold(held, 0);
    return NULL;
}

static void fill(CUdeviceptr at, float value)
{
    for (size_t i = 0; i < count; i++)
        host[i] = value;
    case_put(at, host, count * sizeof *host);
}

static bool is(CUdeviceptr at, float value)
{
    case_get(host, at, count * sizeof *host);
    for (size_t i = 0; i < count; i++)
        if (memcmp(&host[i], &value, sizeof value) != 0)
            return false;
    return true;
}

static int reduce(tutti_comm *comm, tutti_call *call)
{
    fill(compare_in, (float)tutti_rank(comm));
    fill(compare_out, -1);
    int r = tutti_all_reduce((void *)(uintptr_t)compare_in, (void *)(uintptr_t)compare_out, count,
                             TUTTI_F32, TUTTI_SUM, comm, call);
    int n = tutti_size(comm);
    return r || is(compare_out, (float)(n * (n - 1) / 2)) ? r : -EBADMSG;
}

static int is_late(tutti_comm *world, int rank)
{
    CUstream own;
    pthread_t thread;
    tutti_comm *left;
    if (compare_begin(world, MOST, 0))
        return 1;
    OK(cu.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    tutti_call call = { .timeout_ms = DEADLINE_MS };
    IS(reduce(world, NULL), 0);
    if (rank == LATE) {
        held = what == CALLER
            ? own
            : world->gpu.streams->side[what == TO_STAGING ? STREAM_IN : STREAM_OUT].stream;
        case_hold(held, 1);
        call.stream = what == CALLER ? own : NULL;
        if (what == CALLER)
            OK(cu.cuMemsetD8Async(compare_in, 0, 4, own));
        else
            YES(pthread_create(&thread, NULL, lets_go, world) == 0);
    }
    int got = reduce(world, &call);
    fill(compare_out, SENTINEL);
    IS(got, -ETIMEDOUT);
    if (rank != LATE) {
        OK(cu.cuMemFree_v2(compare_in));    /* nobody has it open any more, or the driver says so */
        OK(cu.cuMemAlloc_v2(&compare_in, MOST * sizeof(float)));
    }
    ranks_count(W_MARKED);
    YES(ranks_await(W_MARKED, RANKS) == 0);
    /* the other thread did not get to run for a second: allowed then */
    bool lost = rank == LATE && world->gpu.streams->given_up;
    if (rank == LATE) {
        case_hold(held, 0);
        if (what != CALLER)
            YES(pthread_join(thread, NULL) == 0);
        OK(cu.cuCtxSynchronize());
        ranks_say(W_LET_GO, 1);
    }
    YES(ranks_await(W_LET_GO, 1) == 0);
    YES(lost || is(compare_out, SENTINEL));
    IS(tutti_comm_shrink(world, &left), 0);
    IS(reduce(left, NULL), 0);
    IS(tutti_comm_free(left), 0);
    OK(cu.cuStreamDestroy_v2(own));
    return compare_end(world);
}

static void late(void **state)
{
    (void)state;
    static const char *const roads[] = { "device:-inf=pinned", "device:-inf=leader",
                                         "device:-inf=peers" };
    static const size_t counts[] = { 3, 5000, MOST };
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            for (what = CALLER; what < WHATS; what++) {
                count = counts[c];
                /* small ones know one road; nothing is staged by the others */
                if ((r > 0 && c < 2) || (r > 0 && what == TO_STAGING))
                    continue;
                setenv("TUTTI_ALGORITHM", roads[r], 1);
                if (ranks_run(RANKS, is_late, 0))
                    fail_msg("%s, %zu elements, late: %d", roads[r], count, (int)what);
            }
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(late) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
