/* ctest: timeout=300 labels=faults needs=robust */
/* Ranks that die, leave, are late, abort: whoever waits for them is told which, nobody hangs, and
 * what was sent is received. */
#include "group/comm.h"
#include "p2p/p2p.h"
#include "support/ranks.h"
#include "support/team.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SENT = 0, GO = 1, OVER = 2, LARGE = 4 << 20 };

static char large[LARGE];

/* What lies in the arena outlives its sender; what it never sent does not come. */
static int body_sent_and_died(tutti_comm *world, int rank)
{
    char small[1000];
    if (rank == 1) {
        memset(small, 'x', sizeof small);
        CHECK_IS(tutti_send(small, sizeof small, TUTTI_U8, 0, 1, world, NULL), 0);
        CHECK_IS(tutti_send(small, 10, TUTTI_U8, 0, 2, world, NULL), 0);
        ranks_die();
    }
    tutti_call none = { .timeout_ms = -1 };
    while (tutti_failed(world, NULL, 0) == 0) { }
    CHECK_IS(tutti_recv(small, sizeof small, TUTTI_U8, TUTTI_ANY, 2, NULL, world, &none), 0);
    CHECK_IS(tutti_recv(small, sizeof small, TUTTI_U8, 1, 1, NULL, world, &none), 0);
    CHECK_IS(small[999], 'x');
    CHECK_IS(tutti_recv(small, sizeof small, TUTTI_U8, 1, 1, NULL, world, &none), -EOWNERDEAD);
    CHECK(strstr(tutti_explain(world), "rank 1 died") != NULL);
    CHECK_IS(tutti_recv(small, sizeof small, TUTTI_U8, 1, 1, NULL, world, &none), -ECANCELED);
    CHECK_IS(tutti_barrier(world, NULL), -ECANCELED);
    return 0;
}

static void test_sent_and_died(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_sent_and_died, 2), 0);
}

/* The same from one who left in good order: finalize waits for nobody to read. */
static int body_sent_and_left(tutti_comm *world, int rank)
{
    int x = 5;
    if (rank == 1)
        return tutti_send(&x, 1, TUTTI_I32, 0, 1, world, NULL);
    while (tutti_failed(world, NULL, 0) == 0) { }
    CHECK_IS(tutti_probe(TUTTI_ANY, TUTTI_ANY, NULL, world, NULL), 0);
    CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, TUTTI_ANY, TUTTI_ANY, NULL, world, NULL), 0);
    CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 1, 1, world, NULL), -EOWNERDEAD);
    CHECK(strstr(tutti_explain(world), "rank 1 left") != NULL);
    return 0;
}

static void test_sent_and_left(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_sent_and_left, 0), 0);
}

/* A rank dies while others wait for it in every way there is: rank 1 in recv, 2 in recv from any, 3
 * in a large send, 4 in probe, 5 in wait. */
static int body_waited_for(tutti_comm *world, int rank, struct team *team)
{
    int x;
    tutti_work *work = NULL;
    if (rank == 0) {
        team_say(team, 0, 1);
        for (;;)
            team_spin(1000000);
    }
    team_say(team, rank, 1);
    int r = rank == 1 ? tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, world, NULL)
        : rank == 2 ? tutti_recv(&x, 1, TUTTI_I32, TUTTI_ANY, 0, NULL, world, NULL)
        : rank == 3 ? tutti_send(large, LARGE, TUTTI_U8, 0, 0, world, NULL)
        : rank == 4
        ? tutti_probe(0, TUTTI_ANY, NULL, world, NULL)
        : tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, world, &(tutti_call){ .work = &work });
    if (work)
        r = tutti_wait(work, 0);
    team->rank[rank].error[0] = r;
    team->rank[rank].error[1] = tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, world, NULL);
    team_note(team, rank, world);
    team_say(team, rank, 2);
    for (int q = 1; q < 6; q++)                 /* nobody leaves before all have met the death */
        team_await(team, q, 2);
    return 0;
}

static void test_waited_for(void **state)
{
    (void)state;
    for (int n = 0, rounds = team_many("TUTTI_TEST_P2P_DEATHS", 10, 4); n < rounds; n++) {
        struct team *team = team_start(6, body_waited_for, true);
        for (int r = 0; r < 6; r++)
            assert_int_equal(team_await(team, r, 1), 0);
        if (n % 2)
            for (int r = 1; r < 6; r++)
                assert_true(team_is(team, r, "sleeping"));
        kill(team_pid(team, 0), SIGKILL);
        assert_int_equal(team_end(team), 0);
        for (int r = 1; r < 6; r++) {
            if (team->rank[r].error[0] != -EOWNERDEAD)
                print_error("rank %d: %d\n%s\n", r, team->rank[r].error[0], team->rank[r].report);
            assert_int_equal(team->rank[r].error[0], -EOWNERDEAD);
            assert_int_equal(team->rank[r].error[1], -ECANCELED);
            assert_int_equal(team->rank[r].failed_count, 1);
            assert_non_null(strstr(team->rank[r].report, "rank 0 died"));
        }
        team_free(team);
    }
}

/* Rank 2 dies, which only rank 0 meets, in a receive. From then on rank 0 neither sends nor
   receives: who waits for it, or comes to wait, hears so and of whom; what it sent before still
   comes. Where rank 0 meets the death while rank 1 waits (twice), and before. */
static int body_alone(tutti_comm *world, int rank)
{
    tutti_call long_enough = { .timeout_ms = 30000 };
    int x = 0;
    for (int round = 0; round < 3; round++) {
        tutti_comm *comm;
        CHECK_IS(tutti_comm_split(world, 0, 0, &comm), 0);
        if (rank == 2) {
            CHECK_IS(ranks_await(GO, (uint32_t)round + 1), 0);
            CHECK_IS(tutti_comm_free(comm), 0);
        } else if (rank == 0) {
            CHECK_IS(tutti_send(&round, 1, TUTTI_I32, 1, 1, comm, NULL), 0);
            CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 2, 0, NULL, comm, &long_enough), -EOWNERDEAD);
            ranks_say(SENT, (uint32_t)round + 1);
            CHECK_IS(tutti_send(&round, 1, TUTTI_I32, 1, 0, comm, NULL), -ECANCELED);
            CHECK_IS(ranks_await(OVER, (uint32_t)round + 1), 0);
            CHECK_IS(tutti_comm_free(comm), 0);
        } else {
            if (round == 0)
                ranks_say(GO, 1);
            else if (round == 1)
                ranks_say(GO, 2);
            else {
                ranks_say(GO, 3);
                CHECK_IS(ranks_await(SENT, 3), 0);
            }
            int r = round == 1 ? tutti_send(large, LARGE, TUTTI_U8, 0, 0, comm, &long_enough)
                               : tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, comm, &long_enough);
            CHECK_IS(r, -EOWNERDEAD);
            CHECK(strstr(tutti_explain(comm), "rank 0 has met a failure of the comm") != NULL);
            CHECK(strstr(tutti_explain(comm), "freed") != NULL);
            ranks_say(OVER, (uint32_t)round + 1);
            CHECK_IS(tutti_comm_free(comm), 0);
        }
    }
    return tutti_barrier(world, NULL);
}

static void test_alone(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_alone, 0), 0);
}

/* A ring of everything: small and large, blocking and as work. One is killed at any moment; the
 * others all end, and none has read a torn message. */
static int body_ring(tutti_comm *world, int rank, struct team *team)
{
    enum { MOST = MEDIUM * 2 };
    unsigned char *out = malloc(MOST), *in = malloc(MOST);
    int size = team->size, right = (rank + 1) % size, left = (rank + size - 1) % size, r = 0;
    for (uint64_t n = 0; r == 0; n++) {
        uint64_t same = n * 77 + 5;                  /* all ranks draw the same length */
        size_t bytes = n % 3 == 0 ? team_random(&same) % 200
            : n % 3 == 1 ? team_random(&same) % SMALL
            : team_random(&same) % MOST;
        tutti_work *work = NULL;
        memset(out, (int)(n & 255), bytes);
        if (n == 20)
            team_say(team, rank, 1);
        if (n % 2)
            r = tutti_recv(in, MOST, TUTTI_U8, left, (int)(n & 7), NULL, world,
                           &(tutti_call){ .work = &work });
        else
            r = tutti_send(out, bytes, TUTTI_U8, right, (int)(n & 7), world,
                           &(tutti_call){ .work = &work });
        if (r)
            break;
        int second = n % 2 ? tutti_send(out, bytes, TUTTI_U8, right, (int)(n & 7), world, NULL)
                           : tutti_recv(in, MOST, TUTTI_U8, left, (int)(n & 7), NULL, world, NULL);
        r = tutti_wait(work, 0);
        bool came = n % 2 ? r == 0 : second == 0;
        for (size_t i = 0; came && i < bytes; i++)
            team->rank[rank].wrong += in[i] != (unsigned char)(n & 255);
        r = r && r != -ECANCELED ? r : second ? second : r;
        team->rank[rank].operation++;
    }
    team->rank[rank].error[0] = r;
    team_note(team, rank, world);
    free(in);
    free(out);
    return 0;
}

static void test_ring(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    for (int n = 0, rounds = team_many("TUTTI_TEST_P2P_RINGS", 25, 6); n < rounds; n++) {
        struct team *team = team_start(2 + n % 3, body_ring, true);
        int victim = (int)(team_random(&random) % (uint64_t)team->size);
        for (int r = 0; r < team->size; r++)
            assert_int_equal(team_await(team, r, 1), 0);
        team_spin(team_random(&random) % 3000000);
        kill(team_pid(team, victim), SIGKILL);
        assert_int_equal(team_end(team), 0);
        for (int r = 0; r < team->size; r++) {
            if (r == victim)
                continue;
            int error = team->rank[r].error[0];
            if (error != -EOWNERDEAD && error != -ECANCELED)
                print_error("rank %d: %d\n%s\n", r, error, team->rank[r].report);
            assert_true(error == -EOWNERDEAD || error == -ECANCELED);
            assert_int_equal(team->rank[r].wrong, 0);
        }
        team_free(team);
    }
}

/* Deadlines end one call; the channel goes on. */
static int body_deadline(tutti_comm *world, int rank)
{
    tutti_call soon = { .timeout_ms = 20 };
    tutti_work *work;
    int x = 0;
    for (int round = 0; round < 3; round++) {
        if (rank == 0) {
            CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1, 3, NULL, world, &soon), -ETIMEDOUT);
            CHECK(strstr(tutti_explain(world), "the deadline of 20 ms passed") != NULL);
            CHECK_IS(tutti_probe(1, 3, NULL, world, &soon), -ETIMEDOUT);
            CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, TUTTI_ANY, 3, NULL, world, &soon), -ETIMEDOUT);
            /* withdrawn */
            CHECK_IS(tutti_send(large, LARGE, TUTTI_U8, 1, 4, world, &soon), -ETIMEDOUT);
            soon.work = &work;
            CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1, 3, NULL, world, &soon), 0);
            CHECK_IS(tutti_wait(work, 0), -ETIMEDOUT);
            CHECK_IS(tutti_send(large, LARGE, TUTTI_U8, 1, 4, world, &soon), 0);
            CHECK_IS(tutti_wait(work, 0), -ETIMEDOUT);
            soon.work = NULL;
            memset(large, 'a' + round, LARGE);
            ranks_say(GO, (uint32_t)round + 1);
            CHECK_IS(tutti_send(large, LARGE, TUTTI_U8, 1, 4, world, NULL), 0);
            CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1, 3, NULL, world, NULL), 0);
            CHECK_IS(x, round);
        } else {
            tutti_message got;
            CHECK_IS(ranks_await(GO, (uint32_t)round + 1), 0);
            /* not one of those that were withdrawn */
            CHECK_IS(tutti_recv(large, LARGE, TUTTI_U8, 0, TUTTI_ANY, &got, world, NULL), 0);
            CHECK_IS(large[0], 'a' + round);
            CHECK_IS(large[LARGE - 1], 'a' + round);
            CHECK_IS(tutti_send(&round, 1, TUTTI_I32, 0, 3, world, NULL), 0);
        }
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_deadline(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_deadline, 0), 0);
}

/* The receiver has read something, and reads no more: the store fills up. That the channel's
   letters have room again is no reason to look at nothing else, neither at the deadline nor at the
   receiver's life. */
static int body_store_full(tutti_comm *world, int rank)
{
    enum { FIRST = 2 * RING_FIRST, MOST = 1000, BYTES = SMALL - 100 };
    int r = 0;
    if (rank == 1) {
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_recv(large, LARGE, TUTTI_U8, 0, 1, NULL, world, NULL), 0);
        ranks_say(SENT, 1);
        CHECK_IS(ranks_await(GO, 2), 0);
        ranks_die();
    }
    for (int i = 0; i < FIRST; i++)
        CHECK_IS(tutti_send(large, BYTES, TUTTI_U8, 1, 1, world, NULL), 0);
    ranks_say(GO, 1);
    CHECK_IS(ranks_await(SENT, 1), 0);
    for (int i = 0; i < MOST && r == 0; i++)
        r = tutti_send(large, BYTES, TUTTI_U8, 1, 1, world, &(tutti_call){ .timeout_ms = 50 });
    CHECK_IS(r, -ETIMEDOUT);
    ranks_say(GO, 2);
    CHECK_IS(tutti_send(large, BYTES, TUTTI_U8, 1, 1, world, &(tutti_call){ .timeout_ms = -1 }),
             -EOWNERDEAD);
    return 0;
}

static void test_store_full(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_store_full, 2), 0);
}

/* A deadline against a receiver who comes at the same moment: the message is sent and received,
 * or neither. */
static int body_deadline_race(tutti_comm *world, int rank)
{
    int sent = 0, got = 0;
    for (int i = 0, rounds = ranks_many(150, 30); i < rounds; i++) {
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (rank == 0) {
            memset(large, i & 127, MEDIUM * 2);
            int r = tutti_send(large, MEDIUM * 2, TUTTI_U8, 1, 1, world,
                               &(tutti_call){ .timeout_ms = 1 });
            CHECK(r == 0 || r == -ETIMEDOUT);
            memset(large, 0xee, MEDIUM * 2);
            sent += r == 0;
        } else {
            team_spin((uint64_t)(900 + i * 2) * 1000);
            int r = tutti_recv(large, LARGE, TUTTI_U8, 0, 1, NULL, world,
                               &(tutti_call){ .timeout_ms = 1 });
            CHECK(r == 0 || r == -ETIMEDOUT);
            for (size_t k = 0; r == 0 && k < MEDIUM * 2; k++)
                CHECK_IS(large[k], i & 127);
            got += r == 0;
        }
    }
    if (rank == 0)
        CHECK_IS(tutti_send(&sent, 1, TUTTI_I32, 1, 2, world, NULL), 0);
    else {
        /* the last of the others may still be offered */
        CHECK_IS(tutti_recv(&sent, 1, TUTTI_I32, 0, 2, NULL, world, NULL), 0);
        CHECK_IS(sent, got);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_deadline_race(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_deadline_race, 0), 0);
}

static int body_abort(tutti_comm *world, int rank)
{
    int x;
    tutti_work *first, *second;
    if (rank == 0) {
        CHECK_IS(ranks_await(SENT, 2), 0);
        CHECK_IS(tutti_comm_abort(world, "enough"), 0);
        CHECK_IS(tutti_send(&rank, 1, TUTTI_I32, 1, 0, world, NULL), -ECANCELED);
    } else if (rank == 1) {
        ranks_count(SENT);
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, world, NULL), -ECANCELED);
        CHECK(strstr(tutti_explain(world), "enough") != NULL);
    } else {
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, world, &(tutti_call){ .work = &first }),
                 0);
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1, 0, NULL, world, &(tutti_call){ .work = &second }),
                 0);
        CHECK_IS(tutti_comm_free(world), -EINVAL);
        CHECK_IS(tutti_finalize(world), -EBUSY);
        ranks_count(SENT);
        CHECK_IS(tutti_wait(first, 0), -ECANCELED);
        CHECK_IS(tutti_wait(second, 0), -ECANCELED);
    }
    return 0;
}

static void test_abort(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_abort, 0), 0);
}

static int said_stop(void *arg)
{
    return *(int *)arg;
}

/* The interrupt function says stop: this rank has -EINTR, the comm is aborted. */
static int body_interrupt(tutti_comm *world, int rank)
{
    int x, stop = 1;
    if (rank == 1) {
        world->watch.interrupt = said_stop;          /* as options.interrupt does */
        world->watch.interrupt_arg = &stop;
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, world, NULL), -EINTR);
    } else
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1, 0, NULL, world, NULL), -ECANCELED);
    CHECK_IS(tutti_send(&x, 1, TUTTI_I32, !rank, 0, world, NULL), -ECANCELED);
    return 0;
}

static void test_interrupt(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_interrupt, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sent_and_died), cmocka_unit_test(test_sent_and_left),
        cmocka_unit_test(test_waited_for), cmocka_unit_test(test_alone),
        cmocka_unit_test(test_ring), cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_store_full), cmocka_unit_test(test_deadline_race),
        cmocka_unit_test(test_abort), cmocka_unit_test(test_interrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
