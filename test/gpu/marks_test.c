/* ctest: timeout=240 */
/* How often the library calls the driver. While a copy or the caller's stream takes its time the
 * driver is asked rarely, however often somebody looks; where a driver cannot write words for the
 * host, results are the same. And the figures of an operation of 8 ranks, 1 MiB of plain memory. */
#include "case_device.h"
#include "host_compare.h"

#include "base/clock.h"
#include "gpu/streams.h"
#include "group/comm.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 1 << 18, WAIT_NS = 20000000, LIFE_S = 90 };

static void *address(CUdeviceptr at) { return (void *)(uintptr_t)at; }

static uint64_t questions(void)
{
    return case_calls_of("cuEventQuery") + case_calls_of("cuStreamQuery");
}

/* Something that the operation waits for does not end while WAIT_NS pass. How many questions there
 * may be: one each `every`, and one at each end. */
static int looks(tutti_comm *world, CUstream held, CUstream own, uint64_t every)
{
    tutti_work *work = NULL;
    tutti_call call = { .work = &work, .stream = own };
    case_hold(held, 1);
    if (held == own)
        OK(cu.cuMemsetD8Async(compare_out, 0, 64, own));
    IS(tutti_all_reduce(address(compare_in), address(compare_out), COUNT, TUTTI_F32, TUTTI_SUM,
                        world, &call),
       0);
    /* until the caller's stream is ready the operation asks for that, more often */
    while (held != own && cu.cuStreamQuery(own) != 0)
        IS(tutti_test(work), -EAGAIN);
    IS(tutti_test(work), -EAGAIN);
    uint64_t began = clock_ns(), asked = questions(), looked = 0, now;
    do {
        IS(tutti_test(work), -EAGAIN);
        looked++;
        now = clock_ns();
    } while (now - began < WAIT_NS);
    asked = questions() - asked;
    uint64_t most = (now - began) / every + 3;
    if (asked > most)
        fprintf(stderr, "%llu questions in %llu ns, %llu looks\n", (unsigned long long)asked,
                (unsigned long long)(now - began), (unsigned long long)looked);
    YES(asked <= most);
    case_hold(held, 0);
    IS(tutti_wait(work, -1), 0);
    return 0;
}

static int asked_rarely(tutti_comm *world, int rank)
{
    CUstream own;
    (void)rank;
    alarm(LIFE_S);
    if (compare_begin(world, COUNT, 0))
        return 1;
    OK(cu.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++)         /* the second one registers larger pipelines instead */
        IS(tutti_all_reduce(address(compare_in), address(compare_out), COUNT, TUTTI_F32, TUTTI_SUM,
                            world, NULL),
           0);
    if (looks(world, world->gpu.streams->side[STREAM_OUT].stream, own, 1000000)
        || looks(world, own, own, 20000))
        return 1;
    OK(cu.cuStreamDestroy_v2(own));
    return compare_end(world);
}

static int without_words(tutti_comm *world, int rank)
{
    struct compared round = { R_ALL_REDUCE, COUNT, false, ON_DEVICE, NULL, false };
    if (compare_begin(world, COUNT, 0))
        return 1;
    if (rank == 1)
        setenv("FAKE_CUDA_FAIL", "cuStreamWriteValue32:*:801", 1);
    for (int i = 0; i < 3; i++)
        if (compare_run(world, &round))
            return 1;
    IS(!world->gpu.streams->side[STREAM_OUT].word, rank == 1);
    return compare_end(world);
}

/* ---- figures --------------------------------------------------------------------------------- */

static int figures(tutti_comm *world, int rank)
{
    enum { TIMES = 5 };
    static const char *const shown[] = {
        "cuEventQuery", "cuStreamQuery", "cuEventRecord", "cuStreamWriteValue32_v2",
        "cuCtxPushCurrent_v2", "cuThreadExchangeStreamCaptureMode", "cuIpcOpenMemHandle_v2",
        "cuModuleLoadData"
    };
    enum { SHOWN = sizeof shown / sizeof shown[0] };
    uint64_t before[SHOWN], all = 0;
    if (compare_begin(world, COUNT, 0))
        return 1;
    for (int i = 0; i < TIMES + 1; i++) {
        if (i == 1) {
            all = fake.fakeCalls();
            for (size_t s = 0; s < SHOWN; s++)
                before[s] = case_calls_of(shown[s]);
        }
        IS(tutti_all_reduce(address(compare_in), address(compare_out), COUNT, TUTTI_F32, TUTTI_SUM,
                            world, NULL),
           0);
    }
    if (rank == 1) {
        printf("%s: driver calls of an operation: %.1f in all;", getenv("TUTTI_ALGORITHM"),
               (double)(fake.fakeCalls() - all) / TIMES);
        for (size_t s = 0; s < SHOWN; s++)
            printf(" %s %.1f", shown[s], (double)(case_calls_of(shown[s]) - before[s]) / TIMES);
        printf("\n");
    }
    IS(case_calls_of("cuModuleLoadData"), 1);
    return compare_end(world);
}

static void the_driver_is_asked_rarely(void **state)
{
    (void)state;
    NEEDS_FAKE("counts its calls");
    setenv("TUTTI_ALGORITHM", "device:-inf=pinned", 1);
    assert_int_equal(ranks_run(1, asked_rarely, 0), 0);
    assert_int_equal(ranks_run(2, asked_rarely, 0), 0);
}

static void events_do_where_words_cannot(void **state)
{
    (void)state;
    NEEDS_FAKE("writes no words");
    setenv("TUTTI_ALGORITHM", "device:-inf=pinned", 1);
    assert_int_equal(ranks_run(2, without_words, 0), 0);
    setenv("TUTTI_ALGORITHM", "device:-inf=leader", 1);
    assert_int_equal(ranks_run(2, without_words, 0), 0);
}

static void what_an_operation_calls(void **state)
{
    static const char *const roads[] = { "pinned", "leader", "peers" };
    (void)state;
    NEEDS_FAKE("counts its calls");
    for (int i = 0; i < 3; i++) {
        char rule[40];
        snprintf(rule, sizeof rule, "device:-inf=%s", roads[i]);
        setenv("TUTTI_ALGORITHM", rule, 1);
        assert_int_equal(ranks_run(8, figures, 0), 0);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_is_asked_rarely),
        cmocka_unit_test(events_do_where_words_cannot),
        cmocka_unit_test(what_an_operation_calls)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
