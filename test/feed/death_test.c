/* ctest: timeout=300 labels=faults */
/* Ranks of a queue that are killed at any moment: readers get all that was put, whole, once and in
 * order, then the error that names the writer; a writer is told of a dead reader, or goes on
 * without it. A rank that is stopped is no death, and costs nobody CPU time. So it is with calls
 * that are left under way, too. */
#include "base/clock.h"
#include "feed/feed.h"
#include "feed/messages.h"
#include "os/process.h"
#include "support/team.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* before the ranks are forked */
static unsigned flags_of_run;
static bool started_of_run;                          /* works, some of them under way */

static uint64_t peek(const uint64_t *at)
{
    return load_acquire64((const shared64 *)(const void *)at);
}

enum { SIZE = 4, ROOM = 4096, MOST = 2 * ROOM, RUNS = 1, OVER = 2, LEAVE = 3,
       LOANS_MOST = ROOM / FEED_STEP + 8, AHEAD = 4 };

static int put_loan(struct tutti_queue *q, const void *bytes, size_t length, const tutti_call *call)
{
    void *block;
    int r = tutti_queue_loan(q, length, &block);
    if (r < 0)
        return r;
    memcpy(block, bytes, length);
    return tutti_queue_put_loan(q, block, length, call);
}

/* Puts, every third message by a loan, or gets and compares, until an error. rank[].operation: how
 * many went well. */
static int work(struct tutti_queue *q, int rank, struct team *team)
{
    unsigned char *bytes = malloc(MOST);
    struct team_rank *mine = &team->rank[rank];
    tutti_queue_message m;
    int r = bytes ? 0 : -ENOMEM;
    team_say(team, rank, RUNS);
    for (uint64_t n = 0; r == 0; n++) {
        size_t length = message_bytes(n, MOST), room = MOST;
        if (rank == 0) {
            message_fill(bytes, n, length);
            team->number[0] = n + 1;                 /* begun */
            r = n % 3 ? tutti_queue_put(q, bytes, length, NULL) : put_loan(q, bytes, length, NULL);
        } else if (n % 2) {
            r = tutti_queue_look(q, &m, NULL);
            mine->wrong += r == 0 && !message_is(m.data, n, m.bytes, MOST);
            if (r == 0)
                tutti_queue_release(q, &m);
        } else {
            r = tutti_queue_get(q, bytes, &room, NULL);
            mine->wrong += r == 0 && !message_is(bytes, n, room, MOST);
        }
        mine->operation = r == 0 ? n + 1 : n;
        if (rank == 0 && r == 0)
            team->number[1] = n + 1;                 /* put */
    }
    free(bytes);
    mine->error[0] = r;
    team_note(team, rank, tutti_queue_comm(q));
    return r;
}

/* A call under way, and its buffer. */
struct flight { tutti_work *work; unsigned char *bytes; size_t length; };

static int flight_start(struct tutti_queue *q, struct flight *f, uint64_t n, bool writes)
{
    tutti_call call = { .work = &f->work };
    f->length = MOST;
    if (!writes)
        return tutti_queue_get(q, f->bytes, &f->length, &call);
    f->length = message_bytes(n, MOST);
    message_fill(f->bytes, n, f->length);
    return n % 3 ? tutti_queue_put(q, f->bytes, f->length, &call)
                 : put_loan(q, f->bytes, f->length, &call);
}

/* As work, with some calls under way. Behind one that has failed none goes well. */
static int work_ahead(struct tutti_queue *q, int rank, struct team *team)
{
    struct flight flight[AHEAD];
    struct team_rank *mine = &team->rank[rank];
    uint64_t begun = 0, over = 0;
    int r = 0, first = 0;                            /* of a start, of a work: the first failure */
    for (int i = 0; i < AHEAD; i++)
        if (!(flight[i].bytes = malloc(MOST)))
            r = -ENOMEM;
    team_say(team, rank, RUNS);
    do {
        for (; begun < over + AHEAD && r == 0 && first == 0; begun += r == 0) {
            if (rank == 0)
                team->number[0] = begun + 1;
            r = flight_start(q, &flight[begun % AHEAD], begun, rank == 0);
        }
        struct flight *f = &flight[over % AHEAD];
        int s = over < begun ? tutti_wait(f->work, -1) : r;
        mine->wrong += s == 0 && first < 0;
        mine->wrong += s == 0 && rank != 0 && !message_is(f->bytes, over, f->length, MOST);
        if (s < 0 && first == 0) {
            mine->error[0] = first = s;
            team_note(team, rank, tutti_queue_comm(q));
        }
        over++;
        if (first == 0)
            mine->operation = over;
        if (first == 0 && rank == 0)
            team->number[1] = over;
    } while (first == 0 || over < begun);
    for (int i = 0; i < AHEAD; i++)
        free(flight[i].bytes);
    return first;
}

static int body_kill(tutti_comm *world, int rank, struct team *team)
{
    struct tutti_queue *q;
    tutti_queue_options options = { .room = ROOM, .flags = flags_of_run };
    if (tutti_queue_create(world, 0, &options, &q) < 0)
        return 1;
    if (started_of_run)
        work_ahead(q, rank, team);
    else
        work(q, rank, team);
    if (rank == 0)
        tutti_queue_close(q);
    tutti_queue_figures figures;
    tutti_queue_stats(q, &figures);
    team->rank[rank].number[0] = figures.lost;
    for (const struct feed_loan *loan = q->loans; loan; loan = loan->next)
        team->rank[rank].number[1]++;
    team->rank[rank].error[1] = tutti_queue_free(q);
    team_say(team, rank, OVER);
    team_hear(team, rank, LEAVE);
    return 0;
}

/* 500 in all in the long version. */
static int kills(int normal, int sanitized)
{
    return team_many("TUTTI_TEST_FEED_KILLS", getenv("TUTTI_PROVE") ? 167 : normal, sanitized);
}

/* Kills `victim` after some time that is drawn; returns when all others have ended. */
static struct team *kill_one(int victim, unsigned flags, uint64_t *random)
{
    flags_of_run = flags;
    struct team *team = team_start(SIZE, body_kill, true);
    for (int p = 0; p < SIZE; p++)
        assert_int_equal(team_await(team, p, RUNS), 0);
    team_spin(team_random(random) % 300000);
    if (team_random(random) % 4 == 0)
        while (peek(&team->number[1]) < 50) { }
    kill(team_pid(team, victim), SIGKILL);
    return team;
}

static void test_writer(void **state)
{
    started_of_run = *state != NULL;
    uint64_t random = team_seed();
    for (int n = 0, rounds = kills(3, 1); n < rounds; n++) {
        struct team *team = kill_one(0, 0, &random);
        for (int p = 1; p < SIZE; p++)
            assert_int_equal(team_await(team, p, OVER), 0);
        for (int p = 1; p < SIZE; p++) {
            const struct team_rank *r = &team->rank[p];
            assert_int_equal(r->error[0], -EOWNERDEAD);
            assert_int_equal(r->wrong, 0);
            /* all that was put, and at most those that had begun */
            assert_in_range(r->operation, team->number[1], team->number[0]);
            assert_true(started_of_run || team->number[0] - team->number[1] <= 1);
            assert_true(r->operation == team->rank[1].operation);
            assert_non_null(strstr(r->report, "the writer, rank 0: died"));
            assert_int_equal(r->error[1], 0);
        }
        team_dismiss(team, LEAVE);
        team_free(team);
    }
}

static void test_reader(void **state)
{
    started_of_run = *state != NULL;
    uint64_t random = team_seed();
    for (int n = 0, rounds = kills(3, 1); n < rounds; n++) {
        int victim = 1 + n % (SIZE - 1);
        struct team *team = kill_one(victim, 0, &random);
        for (int p = 0; p < SIZE; p++)
            if (p != victim)
                assert_int_equal(team_await(team, p, OVER), 0);
        const struct team_rank *writer = &team->rank[0];
        char name[64];
        snprintf(name, sizeof name, "the reader, rank %d: died", victim);
        assert_int_equal(writer->error[0], -EOWNERDEAD);
        assert_non_null(strstr(writer->report, name));
        assert_true(writer->number[1] <= LOANS_MOST);
        for (int p = 1; p < SIZE; p++) {
            if (p == victim)
                continue;
            assert_int_equal(team->rank[p].error[0], -ESHUTDOWN);
            assert_int_equal(team->rank[p].wrong, 0);
            assert_int_equal(team->rank[p].operation, writer->operation);
        }
        team_dismiss(team, LEAVE);
        team_free(team);
    }
}

/* The queue goes on: the others read on for as long as the test likes. */
static void test_go_on(void **state)
{
    started_of_run = *state != NULL;
    uint64_t random = team_seed();
    for (int n = 0, rounds = kills(3, 1); n < rounds; n++) {
        int victim = 1 + n % (SIZE - 1), other = 1 + victim % (SIZE - 1);
        struct team *team = kill_one(victim, TUTTI_QUEUE_GO_ON, &random);
        for (int p = 1; p < SIZE; p++) {
            uint64_t then = peek(&team->rank[p].operation);
            while (p != victim
                   && peek(&team->rank[p].operation) < then + 200
                   && !load_acquire32(&team->all))
                assert_int_equal(team->rank[p].error[0], 0);
        }
        /* the last readers die, too: then there is nobody to put for */
        kill(team_pid(team, other), SIGKILL);
        kill(team_pid(team, 6 - victim - other), SIGKILL);
        assert_int_equal(team_await(team, 0, OVER), 0);
        assert_int_equal(team->rank[0].error[0], -ESHUTDOWN);
        assert_int_equal(team->rank[0].number[0], SIZE - 1);
        assert_true(team->rank[0].number[1] <= LOANS_MOST);
        team_dismiss(team, LEAVE);
        team_free(team);
    }
}

/* A reader that is stopped: the writer sleeps for its room, and neither fails nor burns time. */
static void test_stopped(void **state)
{
    started_of_run = *state != NULL;
    flags_of_run = 0;
    struct team *team = team_start(SIZE, body_kill, true);
    for (int p = 0; p < SIZE; p++)
        assert_int_equal(team_await(team, p, RUNS), 0);
    kill(team_pid(team, 2), SIGSTOP);
    assert_true(team_is(team, 2, "stopped"));
    struct process_id id = { .pid = team_pid(team, 0), .tid = team_pid(team, 0) };
    uint64_t before = 0, after = 0, put;
    do {                                        /* until the ring is full, which has an end */
        put = peek(&team->number[1]);
        process_state(&id, &before);
        for (uint64_t began = clock_ns(); clock_ns() - began < 600000000;)
            usleep(10000);
        process_state(&id, &after);
    } while (peek(&team->number[1]) != put);
    assert_int_equal(team->rank[0].error[0], 0);
    assert_true(after - before <= 60000000);         /* in jiffies of 10 ms; a spin takes 600 ms */
    kill(team_pid(team, 2), SIGCONT);
    while (peek(&team->number[1]) < put + 100)
        assert_int_equal(team->rank[0].error[0], 0);
    kill(team_pid(team, 0), SIGKILL);
    for (int p = 1; p < SIZE; p++) {
        assert_int_equal(team_await(team, p, OVER), 0);
        assert_int_equal(team->rank[p].wrong, 0);
        assert_int_equal(team->rank[p].operation, team->rank[1].operation);
    }
    team_dismiss(team, LEAVE);
    team_free(team);
}

int main(void)
{
    static int started;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer), cmocka_unit_test(test_reader),
        cmocka_unit_test(test_go_on), cmocka_unit_test(test_stopped),
        cmocka_unit_test_prestate(test_writer, &started),
        cmocka_unit_test_prestate(test_reader, &started),
        cmocka_unit_test_prestate(test_go_on, &started),
        cmocka_unit_test_prestate(test_stopped, &started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
