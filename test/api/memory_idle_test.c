/* ctest: timeout=300 labels=nosan serial needs=populate */
/* What a job costs before it does anything: the pages of the arena that are there, as the kernel
 * counts them. 64 ranks have joined and met in a barrier; then they make comms of eight, and a
 * duplicate of the world. Printed, and held to 16 MiB for the idle job. */
#include "support/ranks.h"

#include "group/comm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { SIZE = 64, IDLE_MOST = 16 << 20 };

static long long touched(tutti_comm *world)
{
    struct stat st;
    return fstat(world->world->arena.fd, &st) == 0 ? (long long)st.st_blocks * 512 : -1;
}

static int body(tutti_comm *world, void *arg)
{
    int rank = tutti_rank(world);
    tutti_comm *eight, *twin;
    (void)arg;
    CHECK_IS(tutti_barrier(world, NULL), 0);
    long long idle = touched(world);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_comm_split(world, rank / 8, 0, &eight), 0);
    CHECK_IS(tutti_barrier(eight, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    long long eights = touched(world);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &twin), 0);
    CHECK_IS(tutti_barrier(twin, NULL), 0);
    long long twins = touched(world);
    if (rank == 0)
        printf("idle job of %d ranks: %lld KiB, %lld KiB a rank; a comm of 8: %lld KiB, a "
               "duplicate of the world: %lld KiB (%lld a rank)\n",
               SIZE, idle >> 10, idle / SIZE >> 10, (eights - idle) / (SIZE / 8) >> 10,
               (twins - eights) >> 10, (twins - eights) / SIZE >> 10);
    CHECK(idle > 0 && idle < IDLE_MOST);
    return 0;
}

static void idle_job(void **state)
{
    (void)state;
    assert_int_equal(tutti_spawn(SIZE, body, NULL, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(idle_job) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
