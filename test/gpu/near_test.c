/* ctest: timeout=120 */
/* Host memory on the way to a GPU lies on the GPU's NUMA node, where a machine has several. Such a
 * machine is played here: what tells of nodes, and what binds memory to them, is in this
 * program. */
#include "case_device.h"
#include "host_compare.h"

#include "gpu/streams.h"
#include "group/comm.h"
#include "os/numa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 1 << 18, SMALL = 16, NODE = 1, LIFE_S = 60, BINDS = 64 };

static struct { char *at; size_t bytes; unsigned long nodes; } binds[BINDS];
static int bound;

/* In the place of os/numa's: test/gpu/CMakeLists.txt. */
bool __wrap_numa_several(void);
bool __wrap_numa_several(void) { return true; }
int __wrap_numa_policy_set(void *at, size_t bytes, const struct numa_policy *policy);
int __wrap_numa_policy_set(void *at, size_t bytes, const struct numa_policy *policy)
{
    if (bound < BINDS) {
        binds[bound].at = at;
        binds[bound].bytes = bytes;
        binds[bound++].nodes = policy->nodes.bits[0];
    }
    return 0;
}

static bool is_near(const char *at)
{
    for (int i = 0; i < bound; i++)
        if (at >= binds[i].at && at < binds[i].at + binds[i].bytes && binds[i].nodes == 1ul << NODE)
            return true;
    return false;
}

/* Of the ranks' parts of the arena: whose memory was bound. */
static bool is_bound(const tutti_comm *world, uint32_t rank)
{
    const struct arena *arena = &world->world->arena;
    const char *from = arena_span(arena, rank);
    for (int i = 0; i < bound; i++)
        if (binds[i].at >= from && binds[i].at < from + arena->header->span_bytes
            && binds[i].nodes == 1ul << NODE)
            return true;
    return false;
}

static bool near;                        /* of this run: the GPUs have a node */

static int on_its_node(tutti_comm *world, int rank)
{
    alarm(LIFE_S);
    if (compare_begin(world, COUNT, 0))
        return 1;
    for (int i = 0; i < 4; i++)
        if (compare_run(world, &(struct compared){ R_ALL_REDUCE, i % 2 ? COUNT : SMALL, false,
                                                   ON_DEVICE, NULL, false }))
            return 1;
    const struct device_streams *streams = world->gpu.streams;
    for (int side = 0; side < 2; side++) {
        YES(streams->bounce[side].at);
        IS(is_near(streams->bounce[side].at), near);
    }
    IS(is_near(streams->words_of_marks.at), near);
    IS(is_bound(world, (uint32_t)rank), near);
    YES(!is_bound(world, (uint32_t)!rank));          /* the other rank's memory is its own matter */
    return compare_end(world);
}

static void host_memory_is_near(void **state)
{
    (void)state;
    setenv("TUTTI_ALGORITHM", "device:-inf=pinned", 1);
    near = true;
    setenv("FAKE_CUDA_NUMA", "1", 1);
    assert_int_equal(ranks_run(2, on_its_node, 0), 0);
    near = false;
    unsetenv("FAKE_CUDA_NUMA");
    assert_int_equal(ranks_run(2, on_its_node, 0), 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("plays a machine with two nodes"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(host_memory_is_near) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
