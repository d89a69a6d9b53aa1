/* ctest: timeout=180 needs=robust */
/* Device memory lent between ranks, on the tests' driver: opened once, found again by the buffer's
 * number, closed before its owner frees it, whoever dies or comes late. The driver ends a process
 * that frees what another one has open, or that reads what was freed. */
#include "gpu/ipc_import.h"

#include "base/error.h"
#include "case_device.h"
#include "gpu/ipc_export.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PIECE = 1 << 16, SECOND = 1000000000 };

static char said[1024];
static struct text why;
static const struct driver *driver;
static CUcontext context;
static struct ipc_import_at where;
static struct ipc_export *share;
static struct ipc_import *handles;

/* Thread ranks have no use for these: here each rank is a process. */
static int begin(tutti_comm *world, int device)
{
    why = TEXT_IN(said);
    text_clear(&why);
    CHECK(case_cuda());
    CHECK_IS(driver_open(&driver, &why), 0);
    CHECK_IS(cu.cuDevicePrimaryCtxRetain(&context, device), 0);
    CHECK_IS(cu.cuCtxSetCurrent(context), 0);
    where = (struct ipc_import_at){ &driver->call, context, device };
    share = share_of(world->world, &why);
    CHECK(share != NULL);
    handles = ipc_export_handles(share);
    return 0;
}

static CUdeviceptr make(unsigned char fill)
{
    CUdeviceptr at = 0;
    if (cu.cuMemAlloc_v2(&at, PIECE) != 0)
        return 0;
    memset(fake.fakePeek(at), fill, PIECE);
    return at;
}

static int lends(CUdeviceptr at, size_t length, struct lent *lent)
{
    struct driver_pointer p;
    int r = driver_pointer((const void *)(uintptr_t)at, &p, &why);
    return r < 0 ? r : ipc_export_lend(share, &driver->call, &p, length, lent, &why);
}

/* Every rank's card, of rank 0's memory in `all[0]` and so on. */
static int exchange(tutti_comm *world, const struct lent *mine, struct lent *all)
{
    return tutti_all_gather(mine, all, sizeof *mine, TUTTI_U8, world, NULL);
}

static int takes(uint32_t owner, const struct lent *lent, CUdeviceptr *at)
{
    text_clear(&why);
    return ipc_import_take(handles, &where, owner, lent, at, &why);
}

static bool holds(CUdeviceptr at, unsigned char fill)
{
    const unsigned char *seen = fake.fakePeek(at);
    return seen && *seen == fill;
}

static int status_zero(int size, ranks_body *body) { return ranks_run(size, body, 0); }

/* ---- open, used again, closed ---------------------------------------------------------------- */

static int open_and_close(tutti_comm *world, int rank)
{
    struct lent mine, all[4];
    CUdeviceptr at, again;
    CHECK_IS(begin(world, 0), 0);
    CUdeviceptr own = make((unsigned char)(10 + rank));
    int size = tutti_size(world), next = (rank + 1) % size;
    CHECK_IS(lends(own + 256, 4096, &mine), 0);
    CHECK_IS(mine.offset, 256);
    CHECK_IS(mine.how, LENT_LEGACY);
    CHECK_IS(mine.keep, 0);
    CHECK_IS(exchange(world, &mine, all), 0);
    CHECK_IS(takes((uint32_t)next, &all[next], &at), 0);
    CHECK_IS(takes((uint32_t)next, &all[next], &again), 0);
    CHECK(at == again && holds(at, (unsigned char)(10 + next)));
    CHECK_IS(ipc_import_open_count(handles), 1);
    ipc_import_give(handles, (uint32_t)next, all[next].buffer);
    CHECK_IS(ipc_import_open_count(handles), 1);
    ipc_import_give(handles, (uint32_t)next, all[next].buffer);
    CHECK_IS(ipc_import_open_count(handles), 0);     /* nobody said that it may stay open */
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(cu.cuMemFree_v2(own), 0);
    return 0;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static int kept_until_called_back(tutti_comm *world, int rank)
{
    struct lent mine, all[2];
    CUdeviceptr at;
    CHECK_IS(begin(world, 0), 0);
    CUdeviceptr own = make((unsigned char)(10 + rank));
    struct driver_pointer p;
    CHECK_IS(driver_pointer((const void *)(uintptr_t)own, &p, &why), 0);
    CHECK_IS(ipc_export_keep(share, own, PIECE, p.buffer, true), 0);
    CHECK_IS(ipc_export_keep(share, own, 100, p.buffer, false), -EINVAL);
    CHECK_IS(lends(own, PIECE, &mine), 0);
    CHECK_IS(mine.keep, 1);
    CHECK_IS(exchange(world, &mine, all), 0);
    int other = !rank;
    uint64_t calls = 0;
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            calls = fake.fakeCalls();
        CHECK_IS(takes((uint32_t)other, &all[other], &at), 0);
        ipc_import_give(handles, (uint32_t)other, all[other].buffer);
        CHECK_IS(ipc_import_open_count(handles), 1);
    }
    CHECK_IS(fake.fakeCalls(), calls);               /* the driver is not asked again */
    CHECK_IS(tutti_barrier(world, NULL), 0);
    /* Both let go at once: each returns what the other wants while it waits. */
    CHECK_IS(ipc_export_let_go(share, own, true, SECOND, &why), 0);
    CHECK_IS(cu.cuMemFree_v2(own), 0);
    CHECK_IS(ipc_export_let_go(share, own, true, 0, &why), -EINVAL);
    return 0;
}

static int kept_too_long(tutti_comm *world, int rank)
{
    struct lent mine, all[2];
    CUdeviceptr at, own = 0;
    struct driver_pointer p;
    CHECK_IS(begin(world, 0), 0);
    own = make((unsigned char)(10 + rank));
    CHECK_IS(driver_pointer((const void *)(uintptr_t)own, &p, &why), 0);
    CHECK_IS(ipc_export_keep(share, own, PIECE, p.buffer, true), 0);
    CHECK_IS(lends(own, PIECE, &mine), 0);
    CHECK_IS(exchange(world, &mine, all), 0);
    if (rank == 1)
        CHECK_IS(takes(0, &all[0], &at), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0) {
        CHECK_IS(ipc_export_let_go(share, own, true, 1000000, &why), -EBUSY);
        CHECK(strstr(said, "still has it open"));
        CHECK_IS(ipc_export_next_returned(share), 0);
        CHECK(!ipc_export_await_gone(share, 1000000));
        CHECK_IS(lends(own, PIECE, &mine), -EBUSY);  /* and so not lent any more */
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 1) {
        CUdeviceptr twice;
        CHECK_IS(takes(0, &all[0], &twice), -EBUSY); /* in use, and called back */
        CHECK(holds(at, 10));
        ipc_import_give(handles, 0, all[0].buffer);
        ipc_import_sweep_at_once(handles);           /* this would wait for all of the device */
        CHECK_IS(ipc_import_open_count(handles), 1);
        ipc_import_sweep(handles);
        CHECK_IS(ipc_import_open_count(handles), 0);
        CHECK_IS(takes(0, &all[0], &at), -ECANCELED);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0) {
        CHECK(ipc_export_await_gone(share, 0));
        CHECK(ipc_export_next_returned(share) == own);
        CHECK(!ipc_export_await_gone(share, 1000000));
        CHECK_IS(ipc_export_next_returned(share), 0);
        CHECK_IS(cu.cuMemFree_v2(own), 0);
    } else
        CHECK(ipc_export_next_ours(share) == own);
    return 0;
}

/* Its owner frees it without a word, and something new lies at its address. */
static int stale_by_number(tutti_comm *world, int rank)
{
    struct lent mine, all[2];
    CUdeviceptr at = 0, own = 0;
    struct driver_pointer p;
    CHECK_IS(begin(world, 0), 0);
    for (int round = 0; round < 4; round++) {
        own = make((unsigned char)(10 * (round + 1) + rank));
        CHECK_IS(driver_pointer((const void *)(uintptr_t)own, &p, &why), 0);
        if (round % 2 == 0)
            CHECK_IS(ipc_export_keep(share, own, PIECE, p.buffer, false), 0);
        CHECK_IS(lends(own, PIECE, &mine), 0);
        CHECK_IS(mine.keep, round % 2 == 0);         /* of the second, nobody said so */
        CHECK_IS(exchange(world, &mine, all), 0);
        CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), 0);
        CHECK(holds(at, (unsigned char)(10 * (round + 1) + !rank)));
        ipc_import_give(handles, (uint32_t)!rank, all[!rank].buffer);
        CHECK_IS(ipc_import_open_count(handles), round % 2 == 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(cu.cuMemFree_v2(own), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    return 0;
}

/* The loan of memory that has been freed is called back as soon as its owner lends what lies
 * there now. */
static int buried(tutti_comm *world, int rank)
{
    struct lent mine, all[2];
    CUdeviceptr at, own = 0;
    struct driver_pointer p;
    CHECK_IS(begin(world, 0), 0);
    for (int round = 0; round < 2; round++) {
        own = make(10);
        CHECK_IS(driver_pointer((const void *)(uintptr_t)own, &p, &why), 0);
        CHECK_IS(ipc_export_keep(share, own, PIECE, p.buffer, false), 0);
        CHECK_IS(lends(own, PIECE, &mine), 0);
        CHECK_IS(exchange(world, &mine, all), 0);
        if (round == 0) {
            CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), 0);
            ipc_import_give(handles, (uint32_t)!rank, all[!rank].buffer);
            CHECK_IS(tutti_barrier(world, NULL), 0);
            CHECK_IS(cu.cuMemFree_v2(own), 0);
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    ipc_import_sweep(handles);
    CHECK_IS(ipc_import_open_count(handles), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* ---- operations that fail -------------------------------------------------------------------- */

static int taken_back(tutti_comm *world, int rank)
{
    struct lent mine, all[2], anew;
    CUdeviceptr at;
    CHECK_IS(begin(world, 0), 0);
    CUdeviceptr own = make((unsigned char)(10 + rank));
    CHECK_IS(lends(own, PIECE, &mine), 0);
    CHECK_IS(exchange(world, &mine, all), 0);
    if (rank == 1) {
        CHECK_IS(takes(0, &all[0], &at), 0);
        ranks_say(0, 1);
        CHECK_IS(ranks_await(1, 1), 0);
        ipc_import_give(handles, 0, all[0].buffer);
        ranks_say(2, 1);
        CHECK_IS(ranks_await(1, 2), 0);
        CHECK_IS(takes(0, &all[0], &at), -ECANCELED);        /* this late: not any more */
    } else {
        CHECK_IS(ranks_await(0, 1), 0);
        CHECK_IS(ipc_export_take_back(share, &mine, 1000000), false);
        ranks_say(1, 1);
        CHECK_IS(ipc_export_take_back(share, &mine, 60u * (uint64_t)SECOND), true);
        CHECK_IS(ranks_await(2, 1), 0);
        ranks_say(1, 2);
        CHECK_IS(lends(own, PIECE, &anew), 0);
        CHECK(anew.generation > mine.generation && anew.loan == mine.loan);
        CHECK_IS(cu.cuMemFree_v2(own), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Who is dead holds nothing. */
static int dead_borrower(tutti_comm *world, int rank)
{
    struct lent mine, all[3];
    CUdeviceptr at;
    CHECK_IS(begin(world, 0), 0);
    CUdeviceptr own = make((unsigned char)(10 + rank));
    CHECK_IS(lends(own, PIECE, &mine), 0);
    CHECK_IS(exchange(world, &mine, all), 0);
    if (rank == 2) {
        CHECK_IS(takes(0, &all[0], &at), 0);
        CHECK_IS(takes(1, &all[1], &at), 0);
        ranks_say(0, 1);
        ranks_die();
    }
    CHECK_IS(ranks_await(0, 1), 0);
    CHECK_IS(ipc_export_take_back(share, &mine, 60u * (uint64_t)SECOND), true);
    CHECK_IS(cu.cuMemFree_v2(own), 0);
    return 0;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static int refused_is_remembered(tutti_comm *world, int rank)
{
    struct lent mine, all[2];
    CUdeviceptr at;
    CHECK_IS(begin(world, 0), 0);
    CUdeviceptr own = make((unsigned char)(10 + rank));
    CHECK_IS(lends(own, PIECE, &mine), 0);
    CHECK_IS(exchange(world, &mine, all), 0);
    CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), -ENOTSUP);
    CHECK(strstr(said, "CUDA_ERROR_NOT_SUPPORTED"));
    uint64_t calls = fake.fakeCalls();
    CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), -ENOTSUP);
    CHECK(strstr(said, "CUDA_ERROR_NOT_SUPPORTED"));
    CHECK_IS(fake.fakeCalls(), calls);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(ipc_export_take_back(share, &mine, 0), true);   /* a refused one holds nothing */
    return 0;
}

static int passing_error(tutti_comm *world, int rank)
{
    struct lent mine, all[2];
    CUdeviceptr at;
    CHECK_IS(begin(world, 0), 0);
    CUdeviceptr own = make((unsigned char)(10 + rank));
    CHECK_IS(lends(own, PIECE, &mine), 0);
    CHECK_IS(exchange(world, &mine, all), 0);
    CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), -ENOMEM);
    CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), 0);
    ipc_import_give(handles, (uint32_t)!rank, all[!rank].buffer);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* 208 at the first attempt: what is idle of that owner goes, and the second one must do. */
static int already_mapped(tutti_comm *world, int rank)
{
    struct lent mine, all[2], second;
    CUdeviceptr at;
    struct driver_pointer p;
    CHECK_IS(begin(world, 0), 0);
    CUdeviceptr own = make((unsigned char)(10 + rank)), more = make((unsigned char)(20 + rank));
    CHECK_IS(driver_pointer((const void *)(uintptr_t)own, &p, &why), 0);
    CHECK_IS(ipc_export_keep(share, own, PIECE, p.buffer, false), 0);
    CHECK_IS(lends(own, PIECE, &mine), 0);
    CHECK_IS(lends(more, PIECE, &second), 0);
    CHECK_IS(exchange(world, &mine, all), 0);
    CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), 0);
    ipc_import_give(handles, (uint32_t)!rank, all[!rank].buffer);
    CHECK_IS(ipc_import_open_count(handles), 1);
    CHECK_IS(exchange(world, &second, all), 0);
    /* the driver's second opening is told 208 */
    CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), 0);
    CHECK(holds(at, (unsigned char)(20 + !rank)));
    CHECK_IS(ipc_import_open_count(handles), 1);
    ipc_import_give(handles, (uint32_t)!rank, all[!rank].buffer);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static int not_lendable(tutti_comm *world, int rank)
{
    struct lent mine, all[2];
    CUdeviceptr at;
    CHECK_IS(begin(world, 0), 0);
    CUdeviceptr own = make((unsigned char)(10 + rank));
    CHECK_IS(lends(own, PIECE, &mine), 0);
    CHECK_IS(mine.how, LENT_NOT);
    CHECK(strstr(said, "CUDA_ERROR_NOT_SUPPORTED"));
    CHECK_IS(exchange(world, &mine, all), 0);
    CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), -ENOTSUP);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* A peer that says what is not so. */
static int lies(tutti_comm *world, int rank)
{
    struct lent mine, all[2], lie;
    CUdeviceptr at;
    CHECK_IS(begin(world, 0), 0);
    CUdeviceptr own = make((unsigned char)(10 + rank));
    uint32_t other = (uint32_t)!rank;
    CHECK_IS(lends(own, PIECE, &mine), 0);
    CHECK_IS(exchange(world, &mine, all), 0);
    lie = all[other];
    lie.offset = PIECE - 10;
    CHECK_IS(takes(other, &lie, &at), DAMAGED);
    lie = all[other];
    lie.bytes *= 2;
    CHECK_IS(takes(other, &lie, &at), DAMAGED);
    lie.bytes = UINT64_MAX;
    CHECK_IS(takes(other, &lie, &at), DAMAGED);
    lie = all[other];
    lie.loan = mine.loan;                            /* not in its span */
    CHECK_IS(takes(other, &lie, &at), DAMAGED);
    lie.loan = UINT64_MAX - 5;
    CHECK_IS(takes(other, &lie, &at), DAMAGED);
    CHECK_IS(takes(77, &all[other], &at), DAMAGED);
    lie = all[other];
    lie.generation++;
    CHECK_IS(takes(other, &lie, &at), -ECANCELED);
    CHECK_IS(ipc_import_open_count(handles), 0);
    CHECK_IS(takes(other, &all[other], &at), 0);     /* none of that is remembered against it */
    ipc_import_give(handles, other, all[other].buffer);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* ---- many ------------------------------------------------------------------------------------ */

/* More buffers than there are loans, and than stay open. */
static int many(tutti_comm *world, int rank)
{
    struct lent mine, all[2];
    CUdeviceptr at, own[LOANS + 20];
    struct driver_pointer p;
    CHECK_IS(begin(world, 0), 0);
    for (int i = 0; i < LOANS + 20; i++) {
        own[i] = make((unsigned char)i);
        CHECK(own[i]);
        CHECK_IS(driver_pointer((const void *)(uintptr_t)own[i], &p, &why), 0);
        CHECK_IS(ipc_export_keep(share, own[i], PIECE, p.buffer, true), 0);
        CHECK_IS(lends(own[i], PIECE, &mine), 0);
        CHECK_IS(exchange(world, &mine, all), 0);
        CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), 0);
        CHECK(holds(at, (unsigned char)i));
        ipc_import_give(handles, (uint32_t)!rank, all[!rank].buffer);
        CHECK(ipc_import_open_count(handles) <= HANDLES_KEPT);
    }
    CHECK_IS(ipc_import_open_count(handles), HANDLES_KEPT);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    ipc_export_recall_all(share, 60u * (uint64_t)SECOND);
    CHECK_IS(ipc_import_open_count(handles), 0);
    for (int i = 0; i < LOANS + 20; i++)
        CHECK_IS(cu.cuMemFree_v2(own[i]), 0);
    return 0;
}

/* The same memory in the context of another device: the first opening goes first. */
static int other_context(tutti_comm *world, int rank)
{
    struct lent mine, all[2];
    CUdeviceptr at;
    CUcontext second;
    struct driver_pointer p;
    CHECK_IS(begin(world, 0), 0);
    CUdeviceptr own = make((unsigned char)(10 + rank));
    CHECK_IS(driver_pointer((const void *)(uintptr_t)own, &p, &why), 0);
    CHECK_IS(ipc_export_keep(share, own, PIECE, p.buffer, true), 0);
    CHECK_IS(lends(own, PIECE, &mine), 0);
    CHECK_IS(exchange(world, &mine, all), 0);
    CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), 0);
    ipc_import_give(handles, (uint32_t)!rank, all[!rank].buffer);
    CHECK_IS(cu.cuDevicePrimaryCtxRetain(&second, 1), 0);
    where = (struct ipc_import_at){ &driver->call, second, 1 };
    CHECK_IS(takes((uint32_t)!rank, &all[!rank], &at), 0);
    CHECK(holds(at, (unsigned char)(10 + !rank)));
    ipc_import_give(handles, (uint32_t)!rank, all[!rank].buffer);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void openings(void **state)
{
    (void)state;
    assert_int_equal(status_zero(2, open_and_close), 0);
    assert_int_equal(status_zero(4, open_and_close), 0);
    assert_int_equal(status_zero(2, kept_until_called_back), 0);
    assert_int_equal(status_zero(2, kept_too_long), 0);
    assert_int_equal(status_zero(2, many), 0);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    assert_int_equal(status_zero(2, other_context), 0);
    unsetenv("FAKE_CUDA_DEVICES");
}

static void buffers_that_go(void **state)
{
    (void)state;
    /* an owner that frees what is open elsewhere does wrong: on with it */
    setenv("FAKE_CUDA_MISUSE", "report", 1);
    assert_int_equal(status_zero(2, stale_by_number), 0);
    assert_int_equal(status_zero(2, buried), 0);
    unsetenv("FAKE_CUDA_MISUSE");
    assert_int_equal(status_zero(2, taken_back), 0);
    assert_int_equal(ranks_run(3, dead_borrower, 1u << 2), 0);
}

static void refusals(void **state)
{
    (void)state;
    setenv("FAKE_CUDA_FAIL", "cuIpcOpenMemHandle:*:801", 1);
    assert_int_equal(status_zero(2, refused_is_remembered), 0);
    setenv("FAKE_CUDA_FAIL", "cuIpcOpenMemHandle:1:2", 1);
    assert_int_equal(status_zero(2, passing_error), 0);
    setenv("FAKE_CUDA_FAIL", "cuIpcOpenMemHandle:2:208", 1);
    assert_int_equal(status_zero(2, already_mapped), 0);
    setenv("FAKE_CUDA_FAIL", "cuIpcGetMemHandle:*:801", 1);
    assert_int_equal(status_zero(2, not_lendable), 0);
    unsetenv("FAKE_CUDA_FAIL");
    assert_int_equal(status_zero(2, lies), 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("fails at a chosen call"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = { cmocka_unit_test(openings),
                                        cmocka_unit_test(buffers_that_go),
                                        cmocka_unit_test(refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
