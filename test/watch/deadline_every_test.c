/* ctest: timeout=300 labels=faults serial */
/* Every collective whose rank 0 stays away: past a deadline, past one of TUTTI_KEEP, for an abort,
 * by freeing the comm, by an interrupt; and with no room for its staging. All ranks get the same
 * end, the one that comes late too; what goes on after all has the right result. Each case has a
 * comm of its own. */
#include "every_collective.h"
#include "group/comm.h"
#include "support/ranks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GONE_BY = 0, LARGE = 30000, SHORT_MS = 15 };

static const size_t sizes[] = { 2, 1500, LARGE };

static struct every any(int i, size_t count)
{
    return (struct every){
        .kind = every_kind[i], .count = count, .nth = (uint64_t)i + 1, .type = TUTTI_I32
    };
}

/* All have come to this point: not by a collective of the comm that is being broken. */
static int meet(tutti_comm *world)
{
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static int body_deadlines(tutti_comm *world, int rank)
{
    struct every_room room;
    const tutti_call brief = { .timeout_ms = SHORT_MS };
    CHECK_IS(every_open(&room, LARGE, rank % 2, world), 0);
    for (int i = 0; i < 3 * every_kinds; i++) {
        struct every e = any(i / 3, sizes[i % 3]);
        tutti_comm *comm;
        tutti_work *work = NULL;
        CHECK_IS(tutti_comm_split(world, 0, 0, &comm), 0);
        if (rank) {
            int r = every_call(&e, &room, comm,
                               i % 2 ? &(tutti_call){ .timeout_ms = SHORT_MS, .work = &work }
                                     : &brief);
            CHECK_IS(i % 2 ? tutti_wait(work, -1) : r, -ETIMEDOUT);
            /* another may be late */
            CHECK(strstr(tutti_explain(comm), "missing: rank 0")
                  || strstr(tutti_explain(comm), "missing: ranks 0, "));
            CHECK(strstr(tutti_explain(comm), kind_name(e.kind)));
        }
        CHECK_IS(meet(world), 0);
        if (rank == 0)
            CHECK_IS(every_call(&e, &room, comm, NULL), -ETIMEDOUT);
        CHECK_IS(every_call(&e, &room, comm, NULL), -ECANCELED);
        CHECK_IS(tutti_comm_free(comm), 0);
    }
    every_close(&room, rank % 2, world);
    return 0;
}

static int body_keep(tutti_comm *world, int rank)
{
    struct every_room room;
    CHECK_IS(every_open(&room, LARGE, rank % 2, world), 0);
    for (int i = 0; i < 3 * every_kinds; i++) {
        struct every e = any(i / 3, sizes[i % 3]);
        tutti_work *work;
        if (rank) {
            CHECK_IS(every_call(&e, &room, world,
                                &(tutti_call){
                                    .timeout_ms = 1 + i % 3, .work = &work, .flags = TUTTI_KEEP }),
                     0);
            CHECK_IS(tutti_wait(work, 0), -ETIMEDOUT);
            CHECK_IS(tutti_test(work), -ETIMEDOUT);
            ranks_count(GONE_BY);
            int r = tutti_wait(work, -1);
            CHECK_IS(every_wrong(&e, &room, r, world), 0);
        } else {
            CHECK_IS(ranks_await(GONE_BY, (uint32_t)((i + 1) * (tutti_size(world) - 1))), 0);
            int r = every_call(&e, &room, world, NULL);
            CHECK_IS(every_wrong(&e, &room, r, world), 0);
        }
    }
    every_close(&room, rank % 2, world);
    return 0;
}

static int body_aborts(tutti_comm *world, int rank)
{
    struct every_room room;
    CHECK_IS(every_open(&room, LARGE, rank % 2, world), 0);
    for (int i = 0; i < 3 * every_kinds; i++) {
        struct every e = any(i / 3, sizes[i % 3]);
        tutti_comm *comm;
        bool frees = i % 2;
        CHECK_IS(tutti_comm_split(world, 0, 0, &comm), 0);
        if (rank == 0 && !frees) {
            CHECK_IS(tutti_comm_abort(comm, "not today"), 0);
            CHECK_IS(every_call(&e, &room, comm, NULL), -ECANCELED);
        }
        if (rank) {
            CHECK_IS(every_call(&e, &room, comm, NULL), frees ? -EOWNERDEAD : -ECANCELED);
            CHECK(strstr(tutti_explain(comm),
                         frees ? "freed the comm" : "rank 0 aborted: not today"));
        }
        CHECK_IS(tutti_comm_free(comm), 0);
        CHECK_IS(meet(world), 0);
    }
    every_close(&room, rank % 2, world);
    return 0;
}

/* ---- no room for staging on rank 1 ---- */

enum { PIECES = 4096 };

static int fill_span(tutti_comm *world, void **pieces)
{
    int n = 0, error;
    pthread_mutex_lock(&world->world->lock);
    for (size_t bytes = (size_t)1 << 30; bytes >= 4096 && n < PIECES;) {
        pieces[n] = span_take(world->world->span, bytes, &error);
        if (pieces[n])
            n++;
        else
            bytes /= 2;
    }
    pthread_mutex_unlock(&world->world->lock);
    return n;
}

/* Does rank 1 of 3 need staging, with private buffers? (As the last rank it would give nothing
 * in a scan.) */
static bool stages(enum kind kind) { return kind != KIND_BARRIER && kind != KIND_SAME; }

static int body_no_room(tutti_comm *world, int rank)
{
    static void *pieces[PIECES];
    struct every_room room;
    int size = tutti_size(world), n = 0;
    CHECK_IS(every_open(&room, LARGE, false, world), 0);
    if (rank == 1)
        n = fill_span(world, pieces);
    for (int i = 0; i < 2 * every_kinds; i++) {
        struct every e = any(i / 2, sizes[1 + i % 2]);
        tutti_comm *comm;
        tutti_work *work = NULL;
        if (!stages(e.kind))
            continue;
        bool by_work = i % 4 > 1;
        /* Rank 1 is the one that gives. */
        e.nth = (uint64_t)(e.kind == KIND_GATHER || e.kind == KIND_GATHER_V || e.kind == KIND_REDUCE
                               ? size
                               : size + 1);
        CHECK_IS(tutti_comm_split(world, 0, 0, &comm), 0);
        int r = every_call(&e, &room, comm, by_work ? &(tutti_call){ .work = &work } : NULL);
        if (by_work && r == 0)
            r = tutti_wait(work, -1);
        CHECK_IS(r, rank == 1 ? -ENOSPC : -ECANCELED);
        CHECK(strstr(tutti_explain(comm),
                     rank == 1 ? "the span is full; raise TUTTI_SPAN_BYTES"
                               : "rank 1 aborted: it failed: no memory for"));
        CHECK_IS(tutti_barrier(comm, NULL), -ECANCELED);
        CHECK_IS(tutti_comm_free(comm), 0);
        CHECK_IS(meet(world), 0);
    }
    pthread_mutex_lock(&world->world->lock);
    for (int i = 0; i < n; i++)
        span_give(world->world->span, pieces[i]);
    pthread_mutex_unlock(&world->world->lock);
    for (int i = 0; i < every_kinds; i++) {  /* and with room again, all is well on the next comm */
        struct every e = any(i, LARGE);
        int r = every_call(&e, &room, world, NULL);
        CHECK_IS(every_wrong(&e, &room, r, world), 0);
    }
    every_close(&room, false, world);
    return 0;
}

/* ---- the interrupt function, on one rank that waits ---- */

static bool stop;
static int asked_to_stop(void *arg)
{
    (void)arg;
    return stop;
}

static int body_interrupted(tutti_comm *world, int rank)
{
    struct every_room room;
    world->world->interrupt = asked_to_stop;         /* comms made from here on ask it */
    CHECK_IS(every_open(&room, LARGE, rank % 2, world), 0);
    for (int i = 0; i < 3 * every_kinds; i++) {
        struct every e = any(i / 3, sizes[i % 3]);
        tutti_comm *comm;
        tutti_work *work = NULL;
        CHECK_IS(tutti_comm_split(world, 0, 0, &comm), 0);
        stop = rank == 1;
        if (rank) {
            int r = every_call(&e, &room, comm, i % 2 ? &(tutti_call){ .work = &work } : NULL);
            CHECK_IS(i % 2 ? tutti_wait(work, -1) : r, rank == 1 ? -EINTR : -ECANCELED);
        }
        stop = false;
        CHECK_IS(meet(world), 0);
        if (rank == 0)
            CHECK_IS(every_call(&e, &room, comm, NULL), -ECANCELED);
        CHECK_IS(tutti_comm_free(comm), 0);
    }
    every_close(&room, rank % 2, world);
    return 0;
}

static int plain(void **state)
{
    (void)state;
    return unsetenv("TUTTI_ALGORITHM");
}

static void deadlines(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_deadlines, 0), 0);
}

static void deadlines_that_are_kept(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_keep, 0), 0);
}

static void aborts_and_freed_comms(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_aborts, 0), 0);
}

static void no_room_for_staging(void **state)
{
    (void)state;
    setenv("TUTTI_SPAN_BYTES", "16M", 1);
    setenv("TUTTI_ALGORITHM", every_rules("eager", "flags"), 1);
    assert_int_equal(ranks_run(3, body_no_room, 0), 0);
    setenv("TUTTI_ALGORITHM", every_rules("pipelined", "central"), 1);
    assert_int_equal(ranks_run(3, body_no_room, 0), 0);
    unsetenv("TUTTI_SPAN_BYTES");
}

static void interrupts(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_interrupted, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(deadlines, plain),
        cmocka_unit_test_setup(deadlines_that_are_kept, plain),
        cmocka_unit_test_setup(aborts_and_freed_comms, plain),
        cmocka_unit_test_setup(no_room_for_staging, plain),
        cmocka_unit_test_setup(interrupts, plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
