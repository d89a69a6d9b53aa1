/* ctest: timeout=120 labels=faults */
/* Memory of a peer that the driver does not open, and never will: it is asked once, whatever number
 * it says, and not again for other buffers of that peer once two have been refused. Results are
 * right, and the reason is kept. */
#include "case_device.h"
#include "host_compare.h"

#include "gpu/ipc_export.h"
#include "group/comm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <tutti_cuda.h>

enum { COUNT = 40000, LIFE_S = 60, TIMES = 3, PIECES = 4, WAYS = 2 };

/* staging of the comm, then memory that stays open: two that are refused */
static int asked_twice(tutti_comm *world, int rank)
{
    struct compared round = { R_ALL_REDUCE, COUNT, false, ON_DEVICE, NULL, false };
    CUdeviceptr was;
    void *kept[PIECES];
    char words[400] = "";
    alarm(LIFE_S);
    if (compare_begin(world, COUNT, rank % case_devices()))
        return 1;
    was = compare_out;
    round.in_place = true;
    size_t bytes = (size_t)tutti_size(world) * (COUNT + 64) * sizeof(float);
    for (int i = 0; i < TIMES; i++)
        if (compare_run(world, &round))
            return 1;
    uint64_t staged = case_calls_of("cuIpcOpenMemHandle_v2");
    YES(staged <= 1);
    for (int i = 0; i < PIECES; i++) {
        IS(tutti_cuda_alloc(&kept[i], bytes, -1, world), 0);
        compare_out = (CUdeviceptr)(uintptr_t)kept[i];
        for (int k = 0; k < TIMES; k++)
            if (compare_run(world, &round))
                return 1;
    }
    YES(case_calls_of("cuIpcOpenMemHandle_v2") <= WAYS);
    ipc_export_noted(ipc_export_if(world->world), words, sizeof words);
    YES(strstr(words, "cuIpcOpenMemHandle") || strstr(words, "another rank"));
    compare_out = was;
    for (int i = 0; i < PIECES; i++)
        IS(tutti_cuda_free(kept[i], world), 0);
    return compare_end(world);
}

static void whatever_it_says(void **state)
{
    static const char *const codes[] = { "205", "304", "711", "999", "801", "800" };
    (void)state;
    setenv("TUTTI_ALGORITHM", "device:-inf=peers;staged:-inf=peers", 1);
    setenv("FAKE_CUDA_DEVICES", "1", 1);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        char fault[60];
        snprintf(fault, sizeof fault, "cuIpcOpenMemHandle:*:%s", codes[i]);
        setenv("FAKE_CUDA_FAIL", fault, 1);
        if (ranks_run(2, asked_twice, 0))
            fail_msg("%s", fault);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("refuses to open memory"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(whatever_it_says) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
