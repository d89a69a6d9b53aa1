/* ctest: timeout=300 labels=tsan */
/* Comms by the hundred: made and freed in loops, open all at once, overlapping, used in turns, until there are no more slots and after.
 * What the arena holds is asked of the system, as blocks of its file: it does not grow once things repeat themselves. What a comm costs
 * is printed. */
#include "base/clock.h"
#include "group/comm.h"
#include "group/directory.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { GO = 0, HERE = 10, SMALL = 300, MIDDLE = 4000, FLAT = 12000, RING = 40000 };

/* What the arena holds now, all ranks together. */
static uint64_t arena_bytes(tutti_comm *world)
{
    struct stat st;
    return fstat(world->world->arena.fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static int32_t *numbers(void)
{
    static _Thread_local int32_t *x;
    if (!x)
        x = malloc(RING * sizeof *x);
    return x;
}

/* A sum whose right result only this comm has: of the members' world ranks and a salt. */
static int sum_right(tutti_comm *c, int world_rank, size_t count, int salt)
{
    int32_t *x = numbers(), expected = 0;
    for (int i = 0; i < tutti_size(c); i++)
        expected += (int32_t)c->watch.slot->world_rank[i] * 1000 + salt;
    for (size_t i = 0; i < count; i++)
        x[i] = world_rank * 1000 + salt + (int32_t)i;
    int r = tutti_all_reduce(x, x, count, TUTTI_I32, TUTTI_SUM, c, NULL);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (x[i] != expected + (int32_t)i * tutti_size(c))
            return -EILSEQ;
    return r;
}

static int broadcast_right(tutti_comm *c, int root, size_t count, int salt)
{
    int32_t *x = numbers();
    for (size_t i = 0; i < count; i++)
        x[i] = tutti_rank(c) == root ? salt + (int32_t)i : -1;
    int r = tutti_broadcast(x, count, TUTTI_I32, root, c, NULL);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (x[i] != salt + (int32_t)i)
            return -EILSEQ;
    return r;
}

/* ---- what a comm costs ---- */

static int body_cost(tutti_comm *world, int rank)
{
    enum { COMMS = 60 };
    static const struct { const char *what; size_t count; } uses[] = {
        { "opened", 0 }, { "40 B", 10 }, { "1 KiB", SMALL }, { "16 KB", MIDDLE }, { "48 KB", FLAT }, { "160 KB", RING },
    };
    tutti_comm *c[COMMS];
    CHECK_IS(tutti_barrier(world, NULL), 0);
    uint64_t before = arena_bytes(world);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int i = 0; i < COMMS; i++)
        CHECK_IS(tutti_comm_split(world, 0, 0, &c[i]), 0);
    for (size_t u = 0; u < sizeof uses / sizeof uses[0]; u++) {
        for (int k = 0; k < 2 && uses[u].count; k++)
            for (int i = 0; i < COMMS; i++)
                CHECK_IS(sum_right(c[i], rank, uses[u].count, i), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (rank == 0)
            printf("%d comms of %d ranks, after %s: %.1f KiB each, all ranks together\n", COMMS, tutti_size(world), uses[u].what,
                   (double)(arena_bytes(world) - before) / 1024 / COMMS);
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    for (int i = 0; i < COMMS; i++)
        CHECK_IS(tutti_comm_free(c[i]), 0);
    return 0;
}

static void test_cost(void **state)
{
    (void)state;
    setenv("TUTTI_SPAN_BYTES", "256M", 1);
    if (!getenv("TUTTI_TEST_SANITIZED"))
        assert_int_equal(ranks_run(4, body_cost, 0), 0);
    unsetenv("TUTTI_SPAN_BYTES");
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(test_cost) };
    (void)broadcast_right;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
