/* ctest: timeout=300 labels=faults */
/* Waits that look like a cycle and are none: somebody can still help, and does, once those who wait
 * have looked at it many times. What is waited for is their looks (waiter.beats), so that nothing
 * here depends on how long one takes. Every call succeeds, unless it says so. */
#include "group/comm.h"
#include "support/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { BEGUN = 0, GO = 1, OVER = 2, LOOKS = 8 };     /* LOOKS: a cycle is found after three */

static tutti_comm *a, *b, *c;

/* Until the first thread of that rank, in a long wait, has looked in vain so often: 0. */
static int until_looked(tutti_comm *comm, int rank, uint64_t looks)
{
    const struct waiter *w = &comm->world->arena.seats[rank].waiters[0];
    struct timespec nap = { 0, 5000000 };
    uint64_t from = load_acquire64(&w->beats);
    for (int i = 0; i < 6000; i++) {
        if ((load_acquire64(&w->stamp) & 1) && load_acquire64(&w->beats) >= from + looks)
            return 0;
        nanosleep(&nap, NULL);
    }
    return -1;
}

static int make_some(tutti_comm *world, tutti_comm **comm, bool mine)
{
    CHECK_IS(tutti_comm_split(world, mine ? 0 : -1, 0, comm), 0);
    CHECK_IS(mine ? tutti_set_timeout(*comm, -1) : 0, 0);
    return 0;
}

static int make_comms(tutti_comm *world)
{
    return make_some(world, &a, true) || make_some(world, &b, true) || make_some(world, &c, true);
}

static void *help_later(void *arg)
{
    tutti_comm *world = arg;
    long r = tutti_barrier(a, NULL);
    ranks_say(BEGUN, 1);
    if (r == 0)
        r = until_looked(world, 0, LOOKS) == 0 && until_looked(world, 1, 2) == 0
            ? tutti_barrier(a, NULL)
            : -EIO;
    return (void *)r;
}

/* Rank 1 waits in b for rank 0, and rank 0 in a for rank 1: but another thread of rank 1 has called
 * there, and calls again. */
static int body_thread_lives(tutti_comm *world, int rank)
{
    CHECK_IS(make_comms(world), 0);
    if (rank == 0) {
        CHECK_IS(tutti_barrier(a, NULL), 0);
        CHECK_IS(tutti_barrier(a, NULL), 0);
        CHECK_IS(tutti_barrier(b, NULL), 0);
    } else {
        pthread_t thread;
        void *result;
        CHECK_IS(pthread_create(&thread, NULL, help_later, world), 0);
        CHECK_IS(ranks_await(BEGUN, 1), 0);     /* before it has called, nobody reckons with it */
        CHECK_IS(tutti_barrier(b, NULL), 0);
        CHECK_IS(pthread_join(thread, &result), 0);
        CHECK(result == NULL);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* 0 waits for 1, 1 for 2, and 2 is only slow. */
static int body_slow(tutti_comm *world, int rank)
{
    CHECK_IS(make_some(world, &a, rank != 2) || make_some(world, &b, rank != 0), 0);
    if (rank == 2)
        CHECK(until_looked(world, 0, LOOKS) == 0 && until_looked(world, 1, LOOKS) == 0);
    if (rank != 0)
        CHECK_IS(tutti_barrier(b, NULL), 0);
    if (rank != 2)
        CHECK_IS(tutti_barrier(a, NULL), 0);
    return 0;
}

/* What rank 1 waits for is there already: but it is stopped, and has not seen it. */
static int body_stopped(tutti_comm *world, int rank)
{
    int x = 0;
    if (rank == 1) {
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, world, NULL), 0);
        CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 0, 0, world, NULL), 0);
    } else {
        pid_t other = world->world->arena.seats[1].id.pid;
        if (rank == 0) {
            CHECK_IS(until_looked(world, 1, 2), 0);
            CHECK_IS(kill(other, SIGSTOP), 0);
            CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 1, 0, world, NULL), 0);
            CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1, 0, NULL, world, NULL), 0);
        } else {
            CHECK_IS(until_looked(world, 0, LOOKS), 0);
            CHECK_IS(kill(other, SIGCONT), 0);
        }
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* The same with barriers: rank 0 has come to b, where stopped rank 1 waits for it, and
 * waits in a. */
static int body_stopped_in_barrier(tutti_comm *world, int rank)
{
    CHECK_IS(make_some(world, &a, rank < 2) || make_some(world, &b, rank < 2), 0);
    pid_t other = world->world->arena.seats[1].id.pid;
    if (rank == 0) {
        tutti_work *work;
        CHECK_IS(until_looked(world, 1, 2), 0);
        CHECK_IS(kill(other, SIGSTOP), 0);
        CHECK_IS(tutti_barrier(b, &(tutti_call){ .work = &work }), 0);
        CHECK_IS(tutti_barrier(a, NULL), 0);
        CHECK_IS(tutti_wait(work, 0), 0);
    } else if (rank == 1) {
        CHECK_IS(tutti_barrier(b, NULL), 0);
        CHECK_IS(tutti_barrier(a, NULL), 0);
    } else {
        CHECK_IS(until_looked(world, 0, LOOKS), 0);
        CHECK_IS(kill(other, SIGCONT), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Each waits for the other again and again, at the same place, and long each time: but they
 * take turns. */
static int body_ping_pong(tutti_comm *world, int rank)
{
    const struct timespec nap = { 0, 180000000 };
    int x = 0;
    for (int n = 0; n < 14; n++)
        if (n % 2 == rank) {
            nanosleep(&nap, NULL);
            CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 1 - rank, 0, world, NULL), 0);
        } else
            CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1 - rank, 0, NULL, world, NULL), 0);
    return 0;
}

/* A wait that its call gave a deadline ends by itself and breaks nothing; then the barrier
 * is come to. */
static int body_own_deadline(tutti_comm *world, int rank)
{
    int x;
    CHECK_IS(make_comms(world), 0);
    if (rank == 0)
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1, 0, NULL, world,
                            &(tutti_call){ .timeout_ms = 2500 }),
                 -ETIMEDOUT);
    CHECK_IS(tutti_barrier(a, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* The barrier that rank 0 waits for has no deadline, but the one behind it has: that ends both. */
static int body_deadline_behind(tutti_comm *world, int rank)
{
    tutti_work *first, *second;
    CHECK_IS(make_comms(world), 0);
    if (rank == 0) {
        CHECK_IS(tutti_barrier(a, &(tutti_call){ .work = &first }), 0);
        CHECK_IS(tutti_barrier(a, &(tutti_call){ .work = &second, .timeout_ms = 1500 }), 0);
        CHECK_IS(tutti_wait(first, -1), -ETIMEDOUT);
        CHECK_IS(tutti_wait(second, -1), -ECANCELED);
    }
    CHECK_IS(tutti_barrier(b, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* A message to oneself that only the deadline ends: it was given, so it does. */
static int body_to_itself(tutti_comm *world, int rank)
{
    static char large[1 << 20];
    const tutti_call soon = { .timeout_ms = 30 };
    tutti_work *other;
    CHECK_IS(tutti_send(large, sizeof large, TUTTI_U8, rank, 0, world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_recv(large, 1, TUTTI_U8, rank, 0, NULL, world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_send(large, sizeof large, TUTTI_U8, rank, 0, world, NULL), -EDEADLK);
    CHECK_IS(tutti_recv(large, 1, TUTTI_U8, rank, 9, NULL, world, &(tutti_call){ .work = &other }),
             0);
    CHECK_IS(tutti_send(large, sizeof large, TUTTI_U8, rank, 0, world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_send(large, sizeof large, TUTTI_U8, rank, 0, world, NULL), -EDEADLK);
    CHECK_IS(tutti_send(large, 1, TUTTI_U8, rank, 9, world, NULL), 0);
    CHECK_IS(tutti_wait(other, 0), 0);
    return 0;
}

static tutti_work *promised;

static void keep_promise(int error, void *arg)
{
    (void)arg;
    if (error == 0)
        tutti_barrier(a, &(tutti_call){ .work = &promised });
}

/* Rank 1's part of a is started by `done` of something that rank 2 is slow to come to. */
static int body_promise(tutti_comm *world, int rank)
{
    tutti_work *work;
    CHECK_IS(make_comms(world), 0);
    if (rank == 0) {
        CHECK_IS(tutti_barrier(c, &(tutti_call){ .work = &work }), 0);
        CHECK_IS(tutti_barrier(a, NULL), 0);
        CHECK_IS(tutti_barrier(b, NULL), 0);
        CHECK_IS(tutti_wait(work, 0), 0);
    } else if (rank == 1) {
        CHECK_IS(tutti_barrier(c, &(tutti_call){ .work = &work, .done = keep_promise }), 0);
        CHECK_IS(tutti_barrier(b, NULL), 0);
        CHECK_IS(tutti_wait(work, 0), 0);
        CHECK_IS(tutti_wait(promised, 0), 0);
    } else {
        CHECK_IS(tutti_barrier(a, &(tutti_call){ .work = &promised }), 0);
        CHECK_IS(tutti_barrier(b, &(tutti_call){ .work = &work }), 0);
        CHECK(until_looked(world, 0, LOOKS) == 0 && until_looked(world, 1, LOOKS) == 0);
        CHECK_IS(tutti_barrier(c, NULL), 0);
        CHECK_IS(tutti_wait(promised, 0), 0);
        CHECK_IS(tutti_wait(work, 0), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Rank 1 waits in c for rank 0; what rank 0 waits for, rank 1 has left under way: a receive, which
   rank 0's large message needs; and a barrier that stands in the queue behind one that rank 2 is
   slow to come to. */
static int body_under_way(tutti_comm *world, int rank)
{
    static char large[1 << 20];
    tutti_work *work, *first, *second;
    CHECK_IS(make_comms(world), 0);
    if (rank == 0) {
        CHECK_IS(tutti_send(large, sizeof large, TUTTI_U8, 1, 0, world, NULL), 0);
        CHECK_IS(tutti_barrier(a, &(tutti_call){ .work = &first }), 0);
        CHECK_IS(tutti_barrier(a, NULL), 0);
        CHECK_IS(tutti_wait(first, 0), 0);
        CHECK_IS(tutti_barrier(c, NULL), 0);
    } else if (rank == 1) {
        CHECK_IS(tutti_recv(large, sizeof large, TUTTI_U8, 0, 0, NULL, world,
                            &(tutti_call){ .work = &work }),
                 0);
        CHECK_IS(tutti_barrier(a, &(tutti_call){ .work = &first }), 0);
        CHECK_IS(tutti_barrier(a, &(tutti_call){ .work = &second }), 0);
        CHECK_IS(tutti_barrier(c, NULL), 0);
        CHECK(tutti_wait(work, 0) == 0 && tutti_wait(first, 0) == 0 && tutti_wait(second, 0) == 0);
    } else {
        CHECK_IS(tutti_barrier(c, &(tutti_call){ .work = &work }), 0);
        CHECK(until_looked(world, 0, LOOKS) == 0 && until_looked(world, 1, 1) == 0);
        CHECK_IS(tutti_barrier(a, NULL), 0);
        CHECK_IS(tutti_barrier(a, NULL), 0);
        CHECK_IS(tutti_wait(work, 0), 0);
    }
    return 0;
}

/* A rank of a cycle dies before it is found: its peer is told one or the other, and does
 * not hang. */
static int body_killed(tutti_comm *world, int rank)
{
    CHECK_IS(make_comms(world), 0);
    if (rank == 1)
        tutti_barrier(b, NULL);
    else if (rank == 2) {
        CHECK(until_looked(world, 0, 1) == 0 && until_looked(world, 1, 0) == 0);
        CHECK_IS(kill(world->world->arena.seats[1].id.pid, SIGKILL), 0);
    } else {
        int r = tutti_barrier(a, NULL);
        CHECK(r == -EOWNERDEAD || r == -EDEADLK);
    }
    if (rank == 1)
        ranks_die();                                 /* the cycle was found before the kill */
    return 0;
}

/* ---- programs that never deadlock ---- All ranks go through one list of steps, each taking part
   in those it belongs to, and are slow now and then: who waits long waits for somebody further back
   in the list, and so there is always one who does not wait. */

enum { COMMS = 6, PROGRAM_RANKS = 8 };      /* a power of two */

static uint64_t mixed(uint64_t seed, uint64_t i)
{
    return tutti_seed(seed, NULL) ^ tutti_seed(seed * 31 + i, NULL) * UINT64_C(0x9e3779b97f4a7c15);
}

static int step_letter(tutti_comm *world, uint64_t r, int tag, int rank)
{
    static char large[1 << 17];
    int from = (int)(r >> 8 & 7), to = (int)(r >> 16 & 7);
    size_t n = r >> 24 & 1 ? sizeof large : 4;
    if (from == to || (rank != from && rank != to))
        return 0;
    return rank == from
        ? tutti_send(large, n, TUTTI_U8, to, tag, world, NULL)
        : tutti_recv(large, n, TUTTI_U8, r >> 25 & 1 ? from : TUTTI_ANY, tag, NULL, world, NULL);
}

static int step_key(tutti_comm *comm, uint64_t i)
{
    char key[32];
    snprintf(key, sizeof key, "k%d", (int)(i % 5));
    int r = tutti_first_begin(key, comm, NULL);
    return r == 1 ? tutti_first_end(key, 0, comm) : r;
}

static int step_turn(tutti_comm *comm)
{
    int r = tutti_turn_begin(comm, NULL);
    return r == 0 ? tutti_turn_end(comm) : r;
}

static int step(tutti_comm *world, tutti_comm *const comm[], uint64_t seed, uint64_t i, int rank)
{
    uint64_t r = mixed(seed, i);
    tutti_comm *on = comm[r % COMMS];
    tutti_work *work;
    int x = 1;
    switch (r >> 32 & 7) {
    case 0: return step_letter(world, r, (int)i, rank);
    case 1: return on ? step_key(on, i) : 0;
    case 2: return on ? step_turn(on) : 0;
    case 3:
        if (!on)
            return 0;
        x = tutti_barrier(on, &(tutti_call){ .work = &work });
        return x < 0 ? x : tutti_wait(work, 0);
    case 4: return on ? tutti_all_reduce(&x, &x, 1, TUTTI_I32, TUTTI_SUM, on, NULL) : 0;
    default: return on ? tutti_barrier(on, NULL) : 0;
    }
}

static int body_program(tutti_comm *world, int rank)
{
    tutti_comm *comm[COMMS];
    struct timespec now, nap = { 0, 0 };
    int64_t long_enough = getenv("TUTTI_PROVE") ? 90 : 5, go;
    uint64_t seed = 0;
    if (rank == 0) {
        const char *given = getenv("TUTTI_TEST_SEED");
        clock_gettime(CLOCK_REALTIME, &now);
        seed = given ? strtoull(given, NULL, 0)
                     : (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 20;
    }
    CHECK_IS(tutti_broadcast(&seed, 1, TUTTI_U64, 0, world, NULL), 0);
    for (uint64_t i = 0; i < COMMS; i++)
        CHECK_IS(tutti_comm_split(world, mixed(seed, 1000 + i) >> rank & 1 ? 0 : -1, rank,
                                  &comm[i]),
                 0);
    clock_gettime(CLOCK_MONOTONIC, &now);
    time_t end = now.tv_sec + long_enough;
    for (uint64_t round = 1;; round++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        go = now.tv_sec < end;
        CHECK_IS(tutti_broadcast(&go, 1, TUTTI_I64, 0, world, NULL), 0);
        if (!go)
            return 0;
        for (uint64_t i = round * 100; i < round * 100 + 50; i++) {
            uint64_t slow = mixed(seed + 1 + (uint64_t)rank, i);
            nap.tv_nsec = slow % 100 == 0 ? 400000000 + (long)(slow >> 8) % 500000000 : 0;
            if (nap.tv_nsec)
                nanosleep(&nap, NULL);
            int r = step(world, comm, seed, i, rank);
            if (r < 0)
                fprintf(stderr, "TUTTI_TEST_SEED=%llu, step %llu: %d\n", (unsigned long long)seed,
                        (unsigned long long)i, r);
            CHECK_IS(r < 0 ? r : 0, 0);
        }
    }
}

#define OF(body, ranks, doomed) \
    static void test_##body(void **state) \
    { \
        (void)state; \
        assert_int_equal(ranks_run(ranks, body_##body, doomed), 0); \
    }

OF(thread_lives, 2, 0)
OF(slow, 3, 0)
OF(stopped, 3, 0)
OF(stopped_in_barrier, 3, 0)
OF(ping_pong, 2, 0)
OF(own_deadline, 2, 0)
OF(deadline_behind, 2, 0)
OF(to_itself, 1, 0)
OF(promise, 3, 0)
OF(under_way, 3, 0)
OF(killed, 3, 1u << 1)
OF(program, PROGRAM_RANKS, 0)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread_lives), cmocka_unit_test(test_slow),
        cmocka_unit_test(test_stopped), cmocka_unit_test(test_stopped_in_barrier),
        cmocka_unit_test(test_own_deadline), cmocka_unit_test(test_deadline_behind),
        cmocka_unit_test(test_to_itself), cmocka_unit_test(test_ping_pong),
        cmocka_unit_test(test_promise), cmocka_unit_test(test_under_way),
        cmocka_unit_test(test_killed), cmocka_unit_test(test_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
