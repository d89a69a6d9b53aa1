/* ctest: timeout=240 */
/* Memory of another GPU that can be opened, and reads as other bytes or never: found once for each
 * directed pair of devices, said on stderr and by tutti_explain. Results are right all the same, of
 * buffers that are read in place and of others, which go through the staging on the devices. */
#include "case_device.h"
#include "host_compare.h"

#include "gpu/ipc_export.h"
#include "group/comm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>
#include <tutti_cuda.h>

enum { COUNT = 40000, LARGE = 5 << 18, LIFE_S = 90, DEVICES = 2 };

static const enum compare_kind kinds[] = {
    R_ALL_REDUCE, R_ALL_GATHER, R_BROADCAST, R_REDUCE_SCATTER, R_ALL_REDUCE
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static bool in_place;                    /* of this test: the buffers stay open at peers */

static int begin(tutti_comm *world, int rank)
{
    alarm(LIFE_S);
    if (compare_begin(world, COUNT, rank % DEVICES))
        return 1;
    size_t bytes = (size_t)tutti_size(world) * COUNT * sizeof(float);
    IS(in_place ? tutti_register((void *)(uintptr_t)compare_in, bytes, world) : 0, 0);
    IS(in_place ? tutti_register((void *)(uintptr_t)compare_out, bytes, world) : 0, 0);
    return 0;
}

static int end(tutti_comm *world)
{
    IS(in_place ? tutti_unregister((void *)(uintptr_t)compare_in, world) : 0, 0);
    IS(in_place ? tutti_unregister((void *)(uintptr_t)compare_out, world) : 0, 0);
    return compare_end(world);
}

/* What the road of this rank's last operation was given up for. */
static bool noted(tutti_comm *world, const char *what)
{
    char words[400] = "";
    ipc_export_noted(ipc_export_if(world->world), words, sizeof words);
    if (!strstr(words, what))
        fprintf(stderr, "rank %d: '%s' says nothing of '%s'\n", tutti_rank(world), words, what);
    return strstr(words, what) != NULL;
}

static int all_kinds(tutti_comm *world)
{
    for (int i = 0; i < KINDS; i++) {
        struct compared round = { kinds[i], COUNT, false, ON_DEVICE, NULL, false };
        if (compare_run(world, &round))
            return 1;
    }
    return 0;
}

/* Rank 0 is on the device 0, which reads other bytes of device 1. */
static int told_lies(tutti_comm *world, int rank)
{
    if (begin(world, rank))
        return 1;
    if (all_kinds(world))
        return 1;
    uint64_t launches = case_calls_of("cuLaunchKernel");
    uint64_t proofs = case_calls_of("cuMemHostRegister_v2");
    if (all_kinds(world))
        return 1;
    IS(case_calls_of("cuMemHostRegister_v2"), proofs);              /* nothing is asked again */
    if (rank % DEVICES == 0) {
        YES(noted(world, "memory: "));
        YES(strstr(tutti_explain(world), "an IOMMU or ACS"));
        YES(strstr(tutti_explain(world), "goes through host memory"));
        IS(case_calls_of("cuLaunchKernel"), launches);
    }
    return end(world);
}

static int told_the_truth(tutti_comm *world, int rank)
{
    struct compared round = { R_ALL_REDUCE, COUNT, false, ON_DEVICE, NULL, false };
    if (begin(world, rank))
        return 1;
    if (all_kinds(world))
        return 1;
    uint64_t launches = case_calls_of("cuLaunchKernel");
    if (compare_run(world, &round))
        return 1;
    IS(case_calls_of("cuLaunchKernel"), launches + 1);              /* the fold, and no question */
    return end(world);
}

static int places = 2;                   /* 1: through the staging only */

static int run(int ranks, ranks_body *body, const char *lies)
{
    setenv("TUTTI_ALGORITHM", "device:-inf=peers", 1);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    if (lies)
        setenv("FAKE_CUDA_LIES", lies, 1);
    else
        unsetenv("FAKE_CUDA_LIES");
    int r = 0;
    for (int place = 0; r == 0 && place < places; place++) {
        in_place = place;
        r = ranks_run(ranks, body, 0);
        if (r)
            fprintf(stderr, "with buffers %s\n", place ? "in place" : "through the staging");
    }
    unsetenv("FAKE_CUDA_LIES");
    return r;
}

static void lies_are_found(void **state)
{
    static const char *const lies[] = { "0>1:both", "0>1:copy", "0>1:kernel", "0>1:both,1>0:both" };
    (void)state;
    NEEDS_FAKE("reads other bytes");
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        for (int ranks = 2; ranks <= (i && !getenv("TUTTI_PROVE") ? 2 : 4); ranks += 2)
            if (run(ranks, told_lies, lies[i]))
                fail_msg("%s, %d ranks", lies[i], ranks);
}

static int never_told(tutti_comm *world, int rank)
{
    setenv("FAKE_CUDA_END", "lax", 1);               /* what hangs keeps what it reads, */
    setenv("FAKE_CUDA_MISUSE", "report", 1);         /* also when its owner frees it in the end */
    setenv("FAKE_CUDA_DRAIN", "0", 1);               /* else whoever frees waits for it for ever */
    return told_lies(world, rank);
}

static void what_never_ends_is_given_up(void **state)
{
    (void)state;
    NEEDS_FAKE("never ends a read");
    places = getenv("TUTTI_PROVE") ? 2 : 1;          /* each waits for what never ends */
    assert_int_equal(run(2, never_told, "0>1:hang"), 0);
    places = 2;
}

static void truth_is_believed(void **state)
{
    (void)state;
    NEEDS_FAKE("has two devices");
    assert_int_equal(run(2, told_the_truth, NULL), 0);
    assert_int_equal(run(4, told_the_truth, NULL), 0);
}

/* ---- the host bridge ------------------------------------------------------------------------- */

#define DEVICES_IN "/sys/bus/pci/devices/0000:"
static const char *links[2];             /* of the two devices, in the kernel's tree */

/* In place of the C library's: the tests' devices are in no kernel's tree. */
ssize_t readlink(const char *path, char *to, size_t room)
{
    for (int i = 0; i < 2; i++)
        if (links[i] && strstr(path, i ? DEVICES_IN "11:" : DEVICES_IN "10:")) {
            size_t n = strlen(links[i]) < room ? strlen(links[i]) : room;
            memcpy(to, links[i], n);
            return (ssize_t)n;
        }
    return syscall(SYS_readlinkat, AT_FDCWD, path, to, room);
}

static bool goes_directly;               /* of this run */

static int by_default(tutti_comm *world, int rank)
{
    struct compared round = { R_ALL_REDUCE, LARGE, false, ON_DEVICE, NULL, false };
    alarm(LIFE_S);
    if (compare_begin(world, LARGE, rank % DEVICES))
        return 1;
    for (int i = 0; i < 3; i++)
        if (compare_run(world, &round))
            return 1;
    IS(case_calls_of("cuLaunchKernel") > 0, goes_directly);
    if (!goes_directly)
        YES(noted(world, "its GPU is behind the host bridge, without NVLink"));
    return compare_end(world);
}

#define HOST_0 "../../../devices/pci0000:00/"
#define HOST_1 "../../../devices/pci0000:10/"

static void the_host_bridge_is_not_crossed(void **state)
{
    static const struct { const char *link, *one, *other, *rules; bool directly; } all[] = {
        { "pcie", HOST_0 "0000:00:01.0/0000:10:00.0", HOST_1 "0000:10:01.0/0000:11:00.0", NULL,
          false },
        { "pcie", HOST_0 "0000:00:01.0/0000:10:00.0", HOST_0 "0000:00:02.0/0000:11:00.0", NULL,
          false },
        { "pcie", HOST_0 "0000:10:00.0", HOST_0 "0000:11:00.0", NULL, false },
        { "pcie", HOST_0 "0000:00:01.0/0000:10:00.0", HOST_1 "0000:10:01.0/0000:11:00.0",
          "device:-inf=peers", true },
        { "pcie", HOST_0 "0000:00:01.0/0000:01:00.0/0000:10:00.0",
          HOST_0 "0000:00:01.0/0000:01:01.0/0000:11:00.0", NULL, true },
        { "pcie", NULL, NULL, NULL, true },
        { "nvlink", HOST_0 "0000:00:01.0/0000:10:00.0", HOST_1 "0000:10:01.0/0000:11:00.0", NULL,
          true },
    };
    (void)state;
    NEEDS_FAKE("has two devices");
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        unsetenv("TUTTI_ALGORITHM");
        if (all[i].rules)
            setenv("TUTTI_ALGORITHM", all[i].rules, 1);
        setenv("FAKE_CUDA_LINK", all[i].link, 1);
        links[0] = all[i].one;
        links[1] = all[i].other;
        goes_directly = all[i].directly;
        if (ranks_run(2, by_default, 0))
            fail_msg("%s, %s and %s, rules %s", all[i].link, all[i].one, all[i].other,
                     all[i].rules);
    }
    unsetenv("FAKE_CUDA_LINK");
    links[0] = links[1] = NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(lies_are_found),
                                        cmocka_unit_test(what_never_ends_is_given_up),
                                        cmocka_unit_test(truth_is_believed),
                                        cmocka_unit_test(the_host_bridge_is_not_crossed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
