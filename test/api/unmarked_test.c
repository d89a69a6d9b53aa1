/* ctest: timeout=300 needs=robust */
/* A rank dies, the kernel marks nothing, and nobody waits for the rank. What it held is given back
 * when others need it: slots of comms, keys, staging, a loaded file. And what one rank finds out,
 * all know. */
#include "group/comm.h"
#include "os/process.h"
#include "support/ranks.h"
#include "support/robust_list.h"
#include "support/scratch.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3, DOOMED = 2, MIB = 1 << 20, MUCH = 10 * MIB, PATIENCE_MS = 60000 };
enum { HELD = 0 };                                   /* words of the page */

static char path[192];

/* What the doomed rank has its hands on when it dies. What the others get only if that is given
 * back, on a comm without it. */
struct holding {
    int (*hold)(tutti_comm *world, int rank);
    int (*want)(tutti_comm *world, tutti_comm *pair);
};
static const struct holding *holding;

/* The process is gone, as the system says: no call of tutti has looked for it. */
static int await_end(tutti_comm *world)
{
    struct pollfd end = { .fd = process_pidfd(&world->watch.seats[DOOMED]->id), .events = POLLIN };
    ranks_count(HELD);
    int n = end.fd >= 0 ? poll(&end, 1, PATIENCE_MS) : -1;
    if (end.fd >= 0)
        close(end.fd);
    return n == 1 ? 0 : -1;
}

static int body(tutti_comm *world, int rank)
{
    tutti_comm *pair = NULL;
    if (rank != DOOMED)
        CHECK_IS(tutti_comm_create(world, (const int[]){ 0, 1 }, 2, &pair), 0);
    CHECK_IS(holding->hold(world, rank), 0);
    if (rank == DOOMED) {
        CHECK_IS(ranks_await(HELD, RANKS - 1), 0);
        robust_list_replace();
        ranks_die();
    }
    CHECK_IS(await_end(world), 0);
    CHECK_IS(tutti_barrier(pair, NULL), 0);
    CHECK_IS(holding->want(world, pair), 0);
    return tutti_barrier(pair, NULL);
}

static void holds(void **state)
{
    holding = *state;
    assert_int_equal(ranks_run(RANKS, body, 1u << DOOMED), 0);
}

/* ---- slots ---- */

static tutti_comm *comm[SLOTS_MAX];

static int hold_slots(tutti_comm *world, int rank)
{
    (void)rank;
    for (int i = 0; i < SLOTS_MAX - 2; i++)          /* the world's and the pair's are two */
        CHECK_IS(tutti_comm_split(world, 0, 0, &comm[i]), 0);
    return 0;
}

static int want_slots(tutti_comm *world, tutti_comm *pair)
{
    for (int i = 0; i < SLOTS_MAX - 2; i++)
        CHECK_IS(tutti_comm_free(comm[i]), 0);
    CHECK_IS(tutti_barrier(pair, NULL), 0);
    for (int i = 0; i < SLOTS_MAX - 2; i++)
        CHECK_IS(tutti_comm_split(pair, 0, 0, &comm[i]), 0);
    return 0;
}

/* ---- keys ---- */

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

static int take_keys(tutti_comm *comm_of, tutti_comm *world)
{
    for (int i = 0; i < KEYS_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "key %d", i);
        CHECK_IS(tutti_once(name, nothing, NULL, comm_of, NULL), 0);
    }
    return 0;
}

static int hold_keys(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_comm_split(world, 0, 0, &comm[0]), 0);
    return rank == 0 ? take_keys(comm[0], world) : 0;
}

static int want_keys(tutti_comm *world, tutti_comm *pair)
{
    CHECK_IS(tutti_comm_free(comm[0]), 0);
    CHECK_IS(tutti_barrier(pair, NULL), 0);
    return take_keys(pair, world);
}

/* ---- staging ---- */

static int hold_staging(tutti_comm *world, int rank)
{
    int error = 0;
    (void)rank;
    CHECK_IS(tutti_comm_split(world, 0, 0, &comm[0]), 0);
    CHECK(comm_hold_bare(comm[0], MUCH, &error) != NULL);
    return 0;
}

static int want_staging(tutti_comm *world, tutti_comm *pair)
{
    int error = 0;
    CHECK_IS(tutti_comm_free(comm[0]), 0);
    CHECK_IS(tutti_barrier(pair, NULL), 0);
    CHECK(comm_hold_bare(pair, MUCH, &error) != NULL);
    return 0;
}

/* ---- a loaded file ---- */

static const void *data;

static int hold_file(tutti_comm *world, int rank)
{
    size_t bytes;
    if (rank == 0) {
        FILE *f = fopen(path, "w");
        CHECK(f && ftruncate(fileno(f), MUCH) == 0);
        fclose(f);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_load(path, &data, &bytes, world, NULL), 0);
    CHECK_IS(bytes, MUCH);
    return 0;
}

static int want_memory(tutti_comm *world, tutti_comm *pair)
{
    CHECK_IS(tutti_free((void *)(uintptr_t)data, world), 0);
    CHECK_IS(tutti_barrier(pair, NULL), 0);
    CHECK(tutti_alloc(MUCH, pair) != NULL);
    return 0;
}

/* ---- a name ---- */

static int hold_nothing(tutti_comm *world, int rank)
{
    (void)rank;
    CHECK_IS(tutti_comm_split(world, 0, 0, &comm[0]), 0);
    return 0;
}

/* One meets it in one comm; the other learns of it in another, without a wait of its own. */
static int want_name(tutti_comm *world, tutti_comm *pair)
{
    int who = -1;
    if (tutti_rank(world) == 0)
        CHECK_IS(tutti_barrier(comm[0], NULL), -EOWNERDEAD);
    CHECK_IS(tutti_barrier(pair, NULL), 0);
    CHECK_IS(tutti_failed(world, &who, 1), 1);
    CHECK_IS(who, DOOMED);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    int fd = mkstemp(scratch_name(path, sizeof path, "unmarked"));
    return fd >= 0 && close(fd) == 0 ? setenv("TUTTI_SPAN_BYTES", "16M", 1) : -1;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

int main(void)
{
    static struct holding slots = { hold_slots, want_slots }, keys = { hold_keys, want_keys },
                          staging = { hold_staging, want_staging },
                          file = { hold_file, want_memory }, name = { hold_nothing, want_name };
    const struct CMUnitTest tests[] = {
        { "slots", holds, NULL, NULL, &slots },
        { "keys", holds, NULL, NULL, &keys },
        { "staging", holds, NULL, NULL, &staging },
        { "a loaded file", holds, NULL, NULL, &file },
        { "a name", holds, NULL, NULL, &name },
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
