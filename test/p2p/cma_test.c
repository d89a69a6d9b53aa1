/* ctest: timeout=300 labels=faults needs=vm_read
 * Large messages that their receiver reads out of the sender's memory: they come whole both ways;
 * where they cannot be read so they come through the stage; and one whose sender gives up or dies
 * in the middle is never taken for a message. The system's call is this file's own, so that what
 * happens in the middle of it is known. */
#include "group/comm.h"
#include "p2p/p2p.h"
#include "support/ranks.h"
#include "support/skip.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

enum { READING = 0, OVER = 1, TIMES = 12, LARGE = 9 << 20 };

/* What the call does in this process: an error; it finds the identity, and no memory; or after its
 * first time the sender is told, and waited for. */
static struct { int error; bool hole; void (*until)(void); tutti_comm *world; } scene;
static int calls;

static void until_over(void) { ranks_await(OVER, 1); }

static void until_dead(void)
{
    while (tutti_failed(scene.world, NULL, 0) == 0)
        ;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
                         const struct iovec *there, unsigned long m, unsigned long flags)
{
    calls++;
    if (scene.error) {
        errno = scene.error;
        return -1;
    }
    if (scene.hole)
        n = m = 1;
    ssize_t got = syscall(SYS_process_vm_readv, pid, here, n, there, m, flags);
    int error = errno;
    if (scene.until && calls == 1) {
        ranks_say(READING, 1);
        scene.until();
    }
    errno = error;
    return got;
}

static unsigned char byte_of(size_t i, int turn)
{
    return (unsigned char)((i * 2654435761u >> 13) + (i >> 16) * 7 + (unsigned)turn * 37u);
}

/* Up to BLOCK they mostly go in blocks that change hands, which nobody offers. */
enum { BLOCK = 1 << 20 };
static const size_t lengths[] = {
    CMA_LEAST - 1, CMA_LEAST, CMA_LEAST + 1, 300001, BLOCK, BLOCK + 1, 1500001, LARGE - 1
};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* Both at once, each way of each length, from odd addresses to odd ones. */
static int exchange(tutti_comm *world, int rank)
{
    unsigned char *out = malloc(LARGE + 3), *in = malloc(LARGE + 3);
    CHECK(out && in);
    for (int turn = 0; turn < TIMES; turn++)
        for (int k = 0; k < LENGTHS; k++) {
            unsigned char *from = out + turn % 3, *to = in + turn % 2;
            tutti_work *work;
            for (size_t i = 0; i < lengths[k]; i++)
                from[i] = byte_of(i, turn + k + rank);
            CHECK_IS(tutti_send(from, lengths[k], TUTTI_U8, !rank, k, world,
                                &(tutti_call){ .work = &work }),
                     0);
            CHECK_IS(tutti_recv(to, lengths[k], TUTTI_U8, !rank, k, NULL, world, NULL), 0);
            CHECK_IS(tutti_wait(work, 0), 0);
            for (size_t i = 0; i < lengths[k]; i++)
                if (to[i] != byte_of(i, turn + k + !rank))
                    CHECK_IS(i, -1);
        }
    free(out);
    free(in);
    return 0;
}

static int body_read(tutti_comm *world, int rank)
{
    world->crowded = false;                     /* also where there is one CPU */
    CHECK(exchange(world, rank) == 0);
    CHECK(calls >= TIMES / 2);                  /* it was read there, half of the times at first */
    CHECK(!world->p2p->lanes[!rank].shut);
    for (int k = 1; k < LENGTHS; k++) {         /* and what either way takes is known */
        if (lengths[k] <= BLOCK)
            continue;
        const struct tuner *e = tuner_of(world->p2p->ways, lengths[k], CMA_LEAST);
        CHECK(e->cost[0] && e->cost[1]);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Where ranks share CPUs, nobody reads. */
static int body_crowded(tutti_comm *world, int rank)
{
    world->crowded = true;
    CHECK(exchange(world, rank) == 0);
    CHECK_IS(calls, 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* The first refusal is believed. */
static int body_refused(tutti_comm *world, int rank)
{
    world->crowded = false;
    scene.error = rank ? EPERM : ENOSYS;
    CHECK(exchange(world, rank) == 0);
    CHECK_IS(calls, 1);
    CHECK(world->p2p->lanes[!rank].shut);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* This memory cannot be read, but another may be. */
static int body_no_memory(tutti_comm *world, int rank)
{
    world->crowded = false;
    scene.hole = true;
    CHECK(exchange(world, rank) == 0);
    CHECK(calls > 1);
    CHECK(!world->p2p->lanes[!rank].shut);
    scene.hole = false;
    CHECK(exchange(world, rank) == 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Whoever has the sender's number now is not the sender. */
static int body_another(tutti_comm *world, int rank)
{
    world->crowded = false;
    if (rank)
        world->world->self.pid ^= 1;
    CHECK(exchange(world, rank) == 0);
    CHECK_IS(world->p2p->lanes[!rank].shut, !rank);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Until a message is read where it lies; then, in the middle of that, rank 0 aborts, and writes
 * over it when its call has ended. */
static int body_aborts(tutti_comm *world, int rank)
{
    world->crowded = false;
    char *large = malloc(LARGE);
    CHECK(large != NULL);
    scene.until = rank == 1 ? until_over : NULL;
    memset(large, 1, LARGE);
    for (int turn = 0; turn < TIMES; turn++) {
        if (rank == 1) {
            int r = tutti_recv(large, PIECE * 12, TUTTI_U8, 0, 0, NULL, world, NULL);
            CHECK_IS(r, calls ? -ECANCELED : 0);
            if (r < 0)
                return 0;
            continue;
        }
        tutti_work *work;
        CHECK_IS(tutti_send(large, PIECE * 12, TUTTI_U8, 1, 0, world,
                            &(tutti_call){ .work = &work }),
                 0);
        while (tutti_test(work) == -EAGAIN && !load_acquire32(&page->word[READING]))
            ;
        if (load_acquire32(&page->word[READING]))
            CHECK_IS(tutti_comm_abort(world, "in the middle"), 0);
        int r = tutti_wait(work, 0);
        if (r == 0)
            continue;
        CHECK_IS(r, -ECANCELED);
        memset(large, 2, LARGE);
        ranks_say(OVER, 1);
        return 0;
    }
    return 1;                                        /* it was never read */
}

/* The same, and rank 0 dies: what has not been read yet does not come. */
static int body_dies(tutti_comm *world, int rank)
{
    world->crowded = false;
    char *large = malloc(LARGE);
    CHECK(large != NULL);
    scene.until = rank == 1 ? until_dead : NULL;
    scene.world = world;
    for (int turn = 0; turn < TIMES; turn++) {
        if (rank == 0) {
            tutti_work *work;
            CHECK_IS(tutti_send(large, LARGE, TUTTI_U8, 1, 0, world,
                                &(tutti_call){ .work = &work }),
                     0);
            while (tutti_test(work) == -EAGAIN)
                if (load_acquire32(&page->word[READING]))
                    ranks_die();
            CHECK_IS(tutti_wait(work, 0), 0);
            continue;
        }
        int r = tutti_recv(large, LARGE, TUTTI_U8, 0, 0, NULL, world, NULL);
        CHECK_IS(r, calls ? -EOWNERDEAD : 0);
        if (r < 0) {
            CHECK(strstr(tutti_explain(world), "rank 0 died") != NULL);
            return 0;
        }
    }
    return 1;
}

static int reads_itself(void)
{
    char x = 1, y = 0;
    struct iovec here = { &y, 1 }, there = { &x, 1 };
    return syscall(SYS_process_vm_readv, getpid(), &here, 1UL, &there, 1UL, 0UL) == 1;
}

static void need_reach(void)
{
    if (reads_itself())
        return;
    skip_because("processes may not read each other's memory here");
}

static void test_read(void **state)
{
    (void)state;
    need_reach();
    assert_int_equal(ranks_run(2, body_read, 0), 0);
}

static void test_crowded(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_crowded, 0), 0);
}

static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_refused, 0), 0);
}

static void test_no_memory(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_no_memory, 0), 0);
}

static void test_another(void **state)
{
    (void)state;
    need_reach();
    assert_int_equal(ranks_run(2, body_another, 0), 0);
}

static void test_aborts(void **state)
{
    (void)state;
    need_reach();
    assert_int_equal(ranks_run(2, body_aborts, 0), 0);
}

static void test_dies(void **state)
{
    (void)state;
    need_reach();
    assert_int_equal(ranks_run(2, body_dies, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read), cmocka_unit_test(test_crowded), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_another),
        cmocka_unit_test(test_aborts), cmocka_unit_test(test_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
