/* ctest: timeout=300 labels=faults */
/* A device, a call of CUDA, a peer fails while device buffers are under way: all or none, a report
 * that names the device, and a device that can still be used. */
#include "case_device.h"
#include "host_compare.h"

#include "gpu/streams.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 700001 };
enum { W_STARTED };                                  /* words of the page: a count; all have */

static const size_t sizes[] = { 3, 5000, MOST };     /* inline, eager, pipelined */

/* ---- CUDA says no on rank 1, at the nth call of a function ----------------------------------- */

struct cuda_fault { const char *what; int mine, others; const char *say; };
static const struct cuda_fault *fault;
static size_t fault_size;
static enum compare_kind fault_kind;

/* Is this call made with so many elements? A short copy to a device is one of two rows. */
static bool comes_up(const char *what, size_t elements)
{
    bool rows = elements * sizeof(float) < STREAM_ROWS_BELOW;
    return strncmp(what, "cuMemcpy2DAsync:", 16) == 0 ? rows
        : strncmp(what, "cuMemcpyHtoDAsync:", 18) == 0 ? !rows
        : true;
}

static int with_fault(tutti_comm *world, int rank)
{
    if (rank == 1)
        setenv("FAKE_CUDA_FAIL", fault->what, 1);
    if (compare_begin(world, MOST, 0))
        return 1;
    struct compared r = { fault_kind, fault_size, false, ON_DEVICE, NULL, false };
    int expected = rank == 1 ? fault->mine : fault->others, got = 0;
    for (int i = 0; i < 4 && got >= 0; i++)
        got = compare_call(world, &r);
    IS(got, expected);
    if (expected < 0 && !strstr(tutti_explain(world), fault->say)) {
        fprintf(stderr, "rank %d, %s: '%s' says nothing of '%s'\n", rank, fault->what,
                tutti_explain(world), fault->say);
        return 1;
    }
    setenv("FAKE_CUDA_END", "lax", 1); /* a context that has died keeps what was registered in it */
    return expected < 0 && rank == 1 ? (tutti_finalize(world), fflush(NULL), 0)
                                     : compare_end(world);
}

/* The first ones fail before rank 1 has begun, which must not leave the others waiting; numbers of
 * calls are this process's, the test's included. */
static void test_faults(void **state)
{
    (void)state;
    NEEDS_FAKE("fails at a chosen call");
    static const struct cuda_fault faults[] = {
        { "cuStreamCreateWithPriority:1:2", -ENOMEM, -ECANCELED, "cuStreamCreateWithPriority" },
        { "cuStreamCreateWithPriority:2:999", -EIO, -EIO, "cuStreamCreateWithPriority" },
        { "cuEventCreate:1:2", -ENOMEM, -ECANCELED, "cuEventCreate" },
        { "cuEventRecord:1:700", -EIO, -EIO, "device 0 (" },
        { "cuStreamWriteValue32:1:801,cuEventRecord:2:719", -EIO, -EIO, "device 0 (" },
        { "cuStreamWriteValue32:1:801,cuEventRecord:3:999", -EIO, -EIO, "cuEventRecord" },
        { "cuEventQuery:1:719", -EIO, -EIO, "cuEventQuery" },
        { "cuStreamWriteValue32:1:801,cuEventQuery:2:700", -EIO, -EIO, "CUDA_ERROR" },
        { "cuStreamWriteValue32:1:2", -ENOMEM, -ECANCELED, "cuStreamWriteValue32" },
        { "cuStreamWriteValue32:1:801", 0, 0, "" },
        { "cuStreamWriteValue32:3:719", -EIO, -EIO, "device 0 (" },
        { "cuStreamWriteValue32:3:719a", -EIO, -EIO, "device 0 (" },
        { "cuStreamWriteValue32:4:999", -EIO, -EIO, "cuStreamWriteValue32" },
        { "cuMemHostGetDevicePointer:*:801", 0, 0, "" },
        { "cuMemcpyDtoHAsync:1:700", -EIO, -EIO, "cuMemcpyDtoHAsync" },
        { "cuMemcpyDtoHAsync:2:700a", -EIO, -EIO, "device 0 (" },
        { "cuMemcpyHtoDAsync:1:700", -EIO, -EIO, "cuMemcpyHtoDAsync" },
        { "cuMemcpy2DAsync:1:700", -EIO, -EIO, "cuMemcpy2DAsync" },
        { "cuMemcpy2DAsync:2:719a", -EIO, -EIO, "device 0 (" },
        { "cuMemcpyHtoDAsync:2:719a", -EIO, -EIO, "device 0 (" },
        { "cuMemHostRegister:1:700", -EIO, -EIO, "cuMemHostRegister" },
        { "cuMemHostRegister:*:801", 0, 0, "" },
        { "cuMemHostRegister:1:2", 0, 0, "" },
        { "cuCtxPushCurrent:9:709", -EIO, -EIO, "cuCtxPushCurrent" },
        { "cuDevicePrimaryCtxRetain:2:2", -ENOMEM, -ECANCELED, "cuDevicePrimaryCtxRetain" },
        { "cuDeviceGetName:1:101", -EIO, -EIO, "cuDeviceGetName" },
    };
    /* the others have their own: direct_fault_test.c, cuda_error_every_test.c */
    setenv("TUTTI_ALGORITHM", "device:-inf=pinned", 1);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        for (int s = 0; s < 3; s++) {
            fault = &faults[i];
            if (!comes_up(fault->what, sizes[s]))
                continue;
            fault_size = sizes[s];
            fault_kind = ((size_t)s + i) % 2 ? R_ALL_REDUCE : R_ALL_GATHER;
            if (ranks_run(3, with_fault, 0))
                fail_msg("%s, %zu elements", fault->what, fault_size);
        }
    unsetenv("TUTTI_ALGORITHM");
}

/* ---- a peer is gone, aborts, or is late, while this rank's copies and the caller's stream are
 * under way ---- */

enum end { END_KILL, END_ABORT, END_DEADLINE, ENDS };
static enum end end_how;
static size_t end_size;

static int survivors_go_on(tutti_comm *world)
{
    tutti_comm *left;
    IS(tutti_comm_shrink(world, &left), 0);
    static float x[9000];
    for (int i = 0; i < 9000; i++)
        x[i] = (float)i;
    case_put(compare_in, x, sizeof x);
    IS(tutti_all_reduce((void *)(uintptr_t)compare_in, (void *)(uintptr_t)compare_out, 9000,
                        TUTTI_F32, TUTTI_SUM, left, NULL),
       0);
    case_get(x, compare_out, sizeof x);
    for (int i = 0; i < 9000; i++)
        IS(x[i], (float)i * (float)tutti_size(left));
    IS(tutti_comm_free(left), 0);
    return 0;
}

static int with_end(tutti_comm *world, int rank)
{
    CUstream stream;
    tutti_work *work = NULL;
    tutti_call call = { .work = &work, .timeout_ms = end_how == END_DEADLINE ? 300 : 30000 };
    if (compare_begin(world, MOST, 0))
        return 1;
    OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    struct compared r = { R_ALL_REDUCE, end_size, false, ON_DEVICE, NULL, false };
    IS(compare_call(world, &r), 0);
    if (rank == 1) {                                 /* its part never comes */
        case_hold(stream, 1);
        OK(cu.cuMemsetD8Async(compare_in, 0, 4, stream));
        call.stream = stream;
    }
    r.call = &call;
    IS(compare_call(world, &r), 0);
    if (ranks_count(W_STARTED) == 2)
        ranks_say(W_STARTED + 1, 1);
    if (rank == 1 && end_how != END_DEADLINE) {
        YES(ranks_await(W_STARTED + 1, 1) == 0);
        if (end_how == END_KILL)
            ranks_die();
        IS(tutti_comm_abort(world, "enough"), 0);
    }
    int got = tutti_wait(work, -1);
    IS(got, end_how == END_KILL ? -EOWNERDEAD : end_how == END_ABORT ? -ECANCELED : -ETIMEDOUT);
    /* Before it has arrived it alone knows what it waits for. */
    if (end_how == END_DEADLINE
        && !strstr(tutti_explain(world),
                   end_size == MOST ? "rank 1, which waits for its device" : "missing: rank 1")) {
        fprintf(stderr, "%s\n", tutti_explain(world));
        return 1;
    }
    case_hold(stream, 0);
    OK(cu.cuStreamSynchronize(stream));
    if (survivors_go_on(world))
        return 1;
    OK(cu.cuStreamDestroy_v2(stream));
    return compare_end(world);
}

static void test_ends(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_DELAY_US", "300", 1);
    for (end_how = 0; end_how < ENDS; end_how++)
        for (int s = 0; s < 3; s++) {
            end_size = sizes[s];
            if (ranks_run(3, with_end, end_how == END_KILL ? 1u << 1 : 0))
                fail_msg("end %d, %zu elements", (int)end_how, end_size);
        }
    unsetenv("FAKE_CUDA_DELAY_US");
}

int main(int argc, char **argv)
{
    (void)argc;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_faults),
                                        cmocka_unit_test(test_ends) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
