/* ctest: timeout=200 labels=faults
 * Operations that read peers' private memory: they do where all may, by the arena where one may
 * not, and where the memory is not there any more they end, for all, in an error that says so. */
#include "environment.h"

#include "support/ranks.h"
#include "support/skip.h"

#include "group/comm.h"
#include "coll/coll.h"
#include "os/vm_read.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 3, COUNT = 70001, ROUNDS = 3, HOLE = 1 << 20 };

static struct { unsigned refused; int error; } scene;

static int32_t give(int rank, int round, size_t i)
{
    return (rank + 1) * 1000003 + round * 10007 + (int32_t)i;
}

static int kinds(tutti_comm *world, int32_t *send, int32_t *recv, int rank, int round)
{
    for (size_t i = 0; i < COUNT; i++)
        send[i] = give(rank, round, i);
    CHECK_IS(tutti_all_reduce(send, recv, COUNT, TUTTI_I32, TUTTI_MAX, world, NULL), 0);
    for (size_t i = 0; i < COUNT; i++)
        CHECK_IS(recv[i], give(SIZE - 1, round, i));
    CHECK_IS(tutti_all_gather(send, recv, COUNT, TUTTI_I32, world, NULL), 0);
    for (size_t i = 0; i < (size_t)SIZE * COUNT; i++)
        CHECK_IS(recv[i], give((int)(i / COUNT), round, i % COUNT));
    memcpy(recv, send, COUNT * sizeof *recv);
    CHECK_IS(tutti_broadcast(recv, COUNT, TUTTI_I32, round % SIZE, world, NULL), 0);
    for (size_t i = 0; i < COUNT; i++)
        CHECK_IS(recv[i], give(round % SIZE, round, i));
    return 0;
}

static int refused(tutti_comm *world, int rank)
{
    const long call = SYS_process_vm_readv;
    int32_t *send = malloc(COUNT * sizeof *send), *recv = malloc(SIZE * COUNT * sizeof *recv);
    CHECK(send && recv);
    CHECK_IS(world->coll.cma.said, CMA_ASKS);
    if (scene.refused >> rank & 1)
        CHECK_IS(env_forbid(&call, 1, scene.error), 0);
    for (int round = 0; round < ROUNDS; round++)
        if (kinds(world, send, recv, rank, round))
            return 1;
    CHECK_IS(world->coll.cma.said, scene.refused ? CMA_NO : CMA_YES);
    free(send);
    free(recv);
    return 0;
}

/* Containers forbid to read peers, or to set filters: what is looked at here is then not there. */
static bool may(int (*fn)(void))
{
    int status = 1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(fn());
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0;
}

static int reads_parent(void)
{
    uint64_t got;
    return vm_read(getppid(), &got, (uint64_t)(uintptr_t)&scene, sizeof got) != 0;
}

static int filters(void)
{
    const long none = -1;
    return env_forbid(&none, 1, EPERM) != 0;
}

static void need_reach(void)
{
    if (may(reads_parent))
        return;
    skip_because("ranks may not read each other's memory here");
}

static void with_refusals(void **state)
{
    static const struct {
        unsigned who;
        int error;
    } scenes[] = { { 0, 0 }, { 2, EPERM }, { 4, ENOSYS }, { 7, EPERM } };
    (void)state;
    need_reach();
    if (!may(filters))
        skip_because("no seccomp filter can be set here");
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        scene.refused = scenes[i].who;
        scene.error = scenes[i].error;
        assert_int_equal(ranks_run(SIZE, refused, 0), 0);
    }
}

/* The root's buffer has a hole, which only those who read it meet. */
static int hole(tutti_comm *world, int rank)
{
    char *buffer = mmap(NULL, HOLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(buffer != MAP_FAILED);
    memset(buffer, rank, HOLE);
    CHECK_IS(tutti_broadcast(buffer, HOLE, TUTTI_U8, 0, world, NULL), 0);
    CHECK_IS(world->coll.cma.said, CMA_YES);
    if (rank == 0)
        CHECK_IS(munmap(buffer + HOLE / 2, 4096), 0);
    int r = tutti_broadcast(buffer, HOLE, TUTTI_U8, 0, world, NULL);
    CHECK(r < 0);
    if (rank)
        CHECK(strstr(tutti_explain(world), "memory of rank 0 cannot be read") != NULL);
    else
        CHECK(tutti_explain(world)[0] != 0);
    return 0;
}

static void with_a_hole(void **state)
{
    (void)state;
    need_reach();
    assert_int_equal(ranks_run(2, hole, 0), 0);
}

int main(void)
{
    setenv("TUTTI_ALGORITHM", "all_reduce:-inf=direct;all_gather:-inf=direct;broadcast:-inf=direct",
           1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_refusals),
        cmocka_unit_test(with_a_hole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
