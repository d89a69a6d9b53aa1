/* ctest: timeout=300 labels=tsan needs=populate */
/* Messages of every length around every threshold, in every way they can be sent, bit for bit; what
 * stands in the way of what; oneself. */
#include "p2p/p2p.h"
#include "support/pages.h"
#include "support/ranks.h"
#include "support/skip.h"
#include "support/team.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const size_t lengths[] = {
    0, 1, 4, LETTER_TEXT - 1, LETTER_TEXT, LETTER_TEXT + 1, 4096, SMALL - 1, SMALL, SMALL + 1,
    PIECE * 2 - 1, PIECE * 2, PIECE * 2 + 1, MEDIUM - 1, MEDIUM, MEDIUM + 1, PIECE * PIECES_MOST,
    PIECE * PIECES_MOST + 1, 1 << 20, 16 << 20
};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static unsigned char byte_of(size_t i, int seed)
{
    return (unsigned char)((i * 2654435761u >> 13) + (i >> 16) * 7 + (unsigned)seed * 37u);
}

static void fill(unsigned char *buf, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++)
        buf[i] = byte_of(i, seed);
}

static int wrong(const unsigned char *buf, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++)
        if (buf[i] != byte_of(i, seed))
            return 1;
    return 0;
}

/* One direction, then the other; the next byte of the receiver's buffer stays as it was. */
static int body_lengths(tutti_comm *world, int rank)
{
    unsigned char *buf = malloc((16 << 20) + 1);
    CHECK(buf != NULL);
    for (int k = 0; k < LENGTHS; k++)
        for (int way = 0; way < 2; way++) {
            size_t n = lengths[k];
            tutti_message got = { 9, 9, 9 };
            if (rank == way) {
                fill(buf, n, k);
                CHECK_IS(tutti_send(buf, n, TUTTI_U8, 1 - rank, k, world, NULL), 0);
                continue;
            }
            memset(buf, 0xee, n + 1);
            CHECK_IS(tutti_recv(buf, n, TUTTI_U8, 1 - rank, k, &got, world, NULL), 0);
            CHECK_IS(got.from, 1 - rank);
            CHECK_IS(got.tag, k);
            CHECK_IS(got.count, n);
            CHECK(!wrong(buf, n, k));
            CHECK_IS(buf[n], 0xee);
        }
    free(buf);
    return 0;
}

static void test_lengths(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_lengths), 0);
}

/* All that one rank sends stands there before the other asks, and that one asks backwards: nothing
 * is in the way of what is asked for. */
static int body_backwards(tutti_comm *world, int rank)
{
    enum { MANY = 300 };
    unsigned char buf[2000];
    if (rank == 0) {
        for (int i = 0; i < MANY; i++) {
            size_t n = (size_t)i % 7 == 0 ? sizeof buf : (size_t)i % 100;
            fill(buf, n, i);
            CHECK_IS(tutti_send(buf, n, TUTTI_U8, 1, i, world, NULL), 0);
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
        return 0;
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int i = MANY; i-- > 0;) {
        tutti_message got, seen;
        CHECK_IS(tutti_probe(0, i, &seen, world, NULL), 0);
        CHECK_IS(tutti_recv(buf, sizeof buf, TUTTI_U8, TUTTI_ANY, i, &got, world, NULL), 0);
        CHECK_IS(got.count, (size_t)i % 7 == 0 ? sizeof buf : (size_t)i % 100);
        CHECK_IS(seen.count, got.count);
        CHECK_IS(seen.from, 0);
        CHECK_IS(got.tag, i);
        CHECK(!wrong(buf, got.count, i));
    }
    return 0;
}

static void test_backwards(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_backwards), 0);
}

/* The queue takes what the header of p2p.h promises, without a receiver: 4 MiB in messages of 64
 * KiB, and thousands of small ones. */
static int body_room(tutti_comm *world, int rank)
{
    static _Thread_local unsigned char buf[SMALL];
    enum { BIG = STORE_MOST / SMALL, FEW = 7000 };
    if (rank == 0) {
        for (int i = 0; i < BIG; i++) {
            fill(buf, SMALL, i);
            CHECK_IS(tutti_send(buf, SMALL, TUTTI_U8, 1, 0, world, NULL), 0);
        }
        for (int i = 0; i < FEW; i++)
            CHECK_IS(tutti_send(&i, 1, TUTTI_I32, 1, 1, world, NULL), 0);
        tutti_call soon = { .timeout_ms = 20 };
        int r = 0, sent = 0;
        for (; r == 0 && sent < 200; sent++)
            r = tutti_send(buf, SMALL, TUTTI_U8, 1, 2, world, &soon);
        CHECK_IS(r, -ETIMEDOUT);
        page->number[0] = (uint64_t)sent - 1;
        CHECK_IS(tutti_barrier(world, NULL), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        return 0;
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int i = 0, x; i < FEW; i++) {
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, 1, NULL, world, NULL), 0);
        CHECK_IS(x, i);
    }
    for (int i = 0; i < BIG; i++) {
        CHECK_IS(tutti_recv(buf, SMALL, TUTTI_U8, 0, 0, NULL, world, NULL), 0);
        CHECK(!wrong(buf, SMALL, i));
    }
    for (uint64_t i = page->number[0]; i-- > 0;)
        CHECK_IS(tutti_recv(buf, SMALL, TUTTI_U8, 0, 2, NULL, world, NULL), 0);
    tutti_call soon = { .timeout_ms = 20 };
    /* the one that failed is not there */
    CHECK_IS(tutti_recv(buf, SMALL, TUTTI_U8, 0, 2, NULL, world, &soon), -ETIMEDOUT);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_room(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_room), 0);
}

/* Medium ones lie in the store while there is room in half of it, and are offered then; small ones
   have theirs all the same. What lies in the arena is always offered: a copy less. */
static int body_medium(tutti_comm *world, int rank)
{
    enum { FEW = STORE_MOST / 2 / SMALL, MORE = STORE_MOST / 2 / MEDIUM };
    unsigned char *buf = malloc(MEDIUM), *there = tutti_alloc(MEDIUM, world);
    int sent = 0;
    CHECK(buf && there);
    if (rank == 0)
        CHECK_IS(tutti_send(there, MEDIUM, TUTTI_U8, 1, 0, world,
                            &(tutti_call){ .timeout_ms = 20 }),
                 -ETIMEDOUT);
    for (int r = 0; rank == 0 && r == 0; sent += r == 0) {
        fill(buf, MEDIUM, sent);
        r = tutti_send(buf, MEDIUM, TUTTI_U8, 1, 0, world, &(tutti_call){ .timeout_ms = 20 });
        CHECK(r == 0 || r == -ETIMEDOUT);
        CHECK(sent <= MORE);
    }
    if (rank == 0) {
        CHECK(sent >= 2);
        for (int i = 0; i < FEW; i++) {
            fill(buf, SMALL, i);
            CHECK_IS(tutti_send(buf, SMALL, TUTTI_U8, 1, 1, world,
                                &(tutti_call){ .timeout_ms = 20 }),
                     0);
        }
        page->number[0] = (uint64_t)sent;
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int i = 0; rank == 1 && i < (int)page->number[0]; i++) {
        CHECK_IS(tutti_recv(buf, MEDIUM, TUTTI_U8, 0, 0, NULL, world, NULL), 0);
        CHECK(!wrong(buf, MEDIUM, i));
    }
    for (int i = 0; rank == 1 && i < FEW; i++) {
        CHECK_IS(tutti_recv(buf, SMALL, TUTTI_U8, 0, 1, NULL, world, NULL), 0);
        CHECK(!wrong(buf, SMALL, i));
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0) {                                 /* there is room again */
        fill(buf, MEDIUM, 1);
        CHECK_IS(tutti_send(buf, MEDIUM, TUTTI_U8, 1, 0, world, &(tutti_call){ .timeout_ms = 20 }),
                 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 1) {
        CHECK_IS(tutti_recv(buf, MEDIUM, TUTTI_U8, 0, 0, NULL, world, NULL), 0);
        CHECK(!wrong(buf, MEDIUM, 1));
    }
    free(buf);
    CHECK_IS(tutti_free(there, world), 0);
    return 0;
}

static void test_medium(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_medium), 0);
}

/* Room in a channel that was busy: its store has grown to a stage's size, and has the
 * same as ever. */
static int body_busy(tutti_comm *world, int rank)
{
    static _Thread_local unsigned char buf[SMALL];
    enum { BUSY = 256, TURN = 8 };                   /* 16 MiB, some at a time */
    for (int i = 0; i < BUSY; i++) {
        if (rank == 0) {
            fill(buf, SMALL, i);
            CHECK_IS(tutti_send(buf, SMALL, TUTTI_U8, 1, 0, world, NULL), 0);
        } else {
            CHECK_IS(tutti_recv(buf, SMALL, TUTTI_U8, 0, 0, NULL, world, NULL), 0);
            CHECK(!wrong(buf, SMALL, i));
        }
        if (i % TURN == TURN - 1)
            CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    return body_room(world, rank);
}

static void test_busy_room(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_busy), 0);
}

/* The store's end, met exactly and in every other way: lengths that fill it to the byte, and a
 * reader one or two messages behind. */
static int body_store(tutti_comm *world, int rank)
{
    static const size_t some[] = { SMALL, SMALL / 2, SMALL / 4, SMALL - 64, 128, SMALL / 2 + 1 };
    unsigned char *buf = malloc(SMALL);
    CHECK(buf != NULL);
    for (int i = 0, rounds = ranks_many(3000, 300), ahead = 0; i < rounds; i++) {
        size_t n = some[i < rounds / 2 ? i / 200 % 6 : i * 7 % 6];
        if (rank == 0) {
            fill(buf, n, i);
            CHECK_IS(tutti_send(buf, n, TUTTI_U8, 1, 0, world, NULL), 0);
            if (++ahead > 1 + i / 100 % 3) {
                CHECK_IS(tutti_recv(NULL, 0, TUTTI_U8, 1, 1, NULL, world, NULL), 0);
                ahead--;
            }
        } else {
            tutti_message got;
            CHECK_IS(tutti_recv(buf, SMALL, TUTTI_U8, 0, 0, &got, world, NULL), 0);
            CHECK_IS(got.count, n);
            CHECK(!wrong(buf, n, i));
            CHECK_IS(tutti_send(NULL, 0, TUTTI_U8, 0, 1, world, NULL), 0);
        }
    }
    free(buf);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_store(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_store), 0);
}

/* The same from inside: every place lies in the store, and on nothing that has not been read. */
static int body_places(tutti_comm *world, int rank)
{
    enum { BEHIND = 8 };
    struct { uint64_t from, to, end; } live[BEHIND] = { { 0, 0, 0 } };
    /* opens the channel to ourselves */
    CHECK_IS(tutti_send(NULL, 0, TUTTI_U8, rank, 0, world, NULL), 0);
    struct p2p *p = world->p2p;
    struct lane *lane = p2p_lane(p, (uint32_t)rank);
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t n = i % 3 ? SMALL / (1 + i % 4) : (i * 2654435761u >> 7) % SMALL + 1, end;
        /* the receiver has read all but the last few */
        store_release64(&lane->out->freed, live[i % BEHIND].end);
        int error;
        char *at = lane_store(p, lane, n, &end, &error);
        CHECK(at != NULL);
        CHECK(at >= lane->store && at + n <= lane->store + lane->store_bytes);
        uint64_t from = (uint64_t)(uintptr_t)at, to = from + n;
        for (int k = 1; k < BEHIND; k++) {
            uint64_t old = (i + (uint64_t)k) % BEHIND;
            CHECK(live[old].to <= from || live[old].from >= to);
        }
        live[i % BEHIND].from = from;
        live[i % BEHIND].to = to;
        live[i % BEHIND].end = end;
    }
    return 0;
}

static int pass(tutti_comm *world, struct lane *lane, int messages)
{
    for (int i = 0; i < messages; i++) {
        uint64_t end;
        int error;
        CHECK(lane_store(world->p2p, lane, 20000, &end, &error) != NULL);
        store_release64(&lane->out->freed, end);
        CHECK_IS(pages_there(lane->store, lane->store_bytes), lane->store_there);
    }
    return 0;
}

/* No pages but those that something lies in, or lay; a larger store when it has earned its pages,
   and not where these are too dear; none of a stage but for what was offered. */
static int body_pages(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_send(NULL, 0, TUTTI_U8, rank, 0, world, NULL), 0);
    struct p2p *p = world->p2p;
    struct lane *lane = p2p_lane(p, (uint32_t)rank);
    world->world->staged_less = 0;
    if (pass(world, lane, 1))
        return 1;
    CHECK_IS(lane->store_there, 32768);
    if (pass(world, lane, 2000))
        return 1;
    CHECK_IS(lane->store_bytes, STORE_FIRST);
    world->world->staged_less = 1 << 24;
    if (pass(world, lane, 2))
        return 1;
    CHECK_IS(lane->store_bytes, PIECE * p->pieces);
    CHECK_IS(lane->store_there, 32768);
    if (pass(world, lane, 2000))
        return 1;
    CHECK_IS(lane->store_bytes, PIECE * p->pieces);
    for (uint64_t pieces = 1, all = 0; pieces < 2 * p->pieces; pieces *= 2) {
        all = all + pieces < p->pieces ? all + pieces : p->pieces;
        CHECK_IS(lane_stage(p, lane, pieces), 0);
        CHECK_IS(pages_there(lane->stage, (size_t)PIECE * p->pieces), all * PIECE);
    }
    return 0;
}

static void test_pages(void **state)
{
    (void)state;
    if (!pages_single())
        skip_because("this machine tells nothing of single pages");
    assert_int_equal(ranks_run(1, body_pages, 0), 0);
}

static void test_places(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(1, body_places, 0), 0);
}

/* The sender's span is full, so its store cannot grow: but what has been read is free, wherever in
   the store it ended. Each message is read before the next one is sent. Where there never was a
   store, that is said, and the comm fails: a receiver would wait. */
static int body_full(tutti_comm *world, int rank)
{
    enum { ROUNDS = 300 };
    unsigned char *buf = malloc(SMALL);
    tutti_comm *other;
    CHECK(buf != NULL);
    CHECK_IS(tutti_comm_split(world, 0, 0, &other), 0);
    fill(buf, SMALL, 0);
    for (int i = 0; i <= ROUNDS; i++) {
        /* the first one opens the store */
        int bytes = i % 2 ? SMALL - i * 97 % 5000 : (i + 5) * 7919 % SMALL + 1;
        size_t n = (size_t)bytes;
        if (rank == 0) {
            fill(buf, n, i);
            CHECK_IS(tutti_send(buf, n, TUTTI_U8, 1, 0, world, NULL), 0);
            CHECK_IS(tutti_recv(NULL, 0, TUTTI_U8, 1, 1, NULL, world, NULL), 0);
        } else {
            tutti_message got;
            CHECK_IS(tutti_recv(buf, SMALL, TUTTI_U8, 0, 0, &got, world, NULL), 0);
            CHECK(got.count == n && !wrong(buf, n, i));
            CHECK_IS(tutti_send(NULL, 0, TUTTI_U8, 0, 1, world, NULL), 0);
        }
        if (i == 0 && rank == 0) {
            /* a channel, and no store */
            CHECK_IS(tutti_send(NULL, 0, TUTTI_U8, 1, 2, other, NULL), 0);
            for (size_t take = 1 << 20; take >= 4096; take /= 2)
                while (tutti_alloc(take, world)) { }
            CHECK_IS(tutti_send(buf, 4096, TUTTI_U8, 1, 2, other, NULL), -ENOSPC);
            CHECK(strstr(tutti_explain(other), "raise TUTTI_SPAN_BYTES") != NULL);
        }
    }
    free(buf);
    CHECK_IS(tutti_barrier(other, NULL), -ECANCELED);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_full(void **state)
{
    (void)state;
    assert_int_equal(setenv("TUTTI_SPAN_BYTES", "16777216", 1), 0);
    assert_int_equal(ranks_run_either(2, body_full), 0);
    assert_int_equal(unsetenv("TUTTI_SPAN_BYTES"), 0);
}

/* To oneself: small ones in any number, a large one where a receive waits for it. */
static int body_self(tutti_comm *world, int rank)
{
    enum { MANY = 10000, LARGE = 1 << 20 };
    unsigned char *in = malloc(LARGE), *out = malloc(LARGE);
    CHECK(in && out);
    for (int i = 0; i < MANY; i++)
        CHECK_IS(tutti_send(&i, 1, TUTTI_I32, rank, i % 3, world, NULL), 0);
    for (int i = 0, x; i < MANY; i += 3) {
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, rank, 0, NULL, world, NULL), 0);
        CHECK_IS(x, i);
    }
    for (int i = 0, x; i < MANY; i++) {
        if (i % 3 == 0)
            continue;
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, rank, TUTTI_ANY, NULL, world, NULL), 0);
        CHECK_IS(x, i);
    }
    for (int i = 0; i < 100; i++) {
        fill(out, SMALL, i);
        CHECK_IS(tutti_send(out, SMALL, TUTTI_U8, rank, 5, world, NULL), 0);
    }
    for (int i = 0; i < 100; i++) {
        CHECK_IS(tutti_recv(in, SMALL, TUTTI_U8, rank, 5, NULL, world, NULL), 0);
        CHECK(!wrong(in, SMALL, i));
    }
    CHECK_IS(tutti_send(out, LARGE, TUTTI_U8, rank, 6, world, NULL), -EDEADLK);
    CHECK(strstr(tutti_explain(world), "waits here for itself") != NULL);
    /* nor is it there */
    CHECK_IS(tutti_recv(in, LARGE, TUTTI_U8, rank, 6, NULL, world, NULL), -EDEADLK);
    CHECK_IS(tutti_probe(rank, TUTTI_ANY, NULL, world, NULL), -EDEADLK);
    tutti_work *work;
    tutti_message got = { 0, 0, 0 };
    fill(out, LARGE, 7);
    CHECK_IS(tutti_recv(in, LARGE, TUTTI_U8, rank, TUTTI_ANY, &got, world,
                        &(tutti_call){ .work = &work }),
             0);
    CHECK_IS(tutti_send(out, LARGE, TUTTI_U8, rank, 8, world, NULL), 0);
    CHECK_IS(tutti_wait(work, 0), 0);
    CHECK_IS(got.tag, 8);
    CHECK_IS(got.count, LARGE);
    CHECK(!wrong(in, LARGE, 7));
    CHECK_IS(tutti_send(out, LARGE, TUTTI_U8, rank, 9, world, &(tutti_call){ .work = &work }), 0);
    CHECK_IS(tutti_test(work), -EAGAIN);
    CHECK_IS(tutti_recv(in, LARGE, TUTTI_U8, rank, 9, NULL, world, NULL), 0);
    CHECK_IS(tutti_wait(work, 0), 0);
    free(in);
    free(out);
    return 0;
}

static void test_self(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(1, body_self), 0);
    if (!ranks_many(1, 0))
        return;
    assert_int_equal(ranks_run(3, body_self, 0), 0);
}

/* Both at once, blocking: small enough, so nobody waits for the other's receive. */
static int body_both_ways(tutti_comm *world, int rank)
{
    static _Thread_local unsigned char in[SMALL], out[SMALL];
    for (int i = 0, rounds = ranks_many(400, 40); i < rounds; i++) {
        size_t n = lengths[i % 9];
        int size = tutti_size(world), right = (rank + 1) % size, left = (rank + size - 1) % size;
        fill(out, n, i + rank);
        CHECK_IS(tutti_send(out, n, TUTTI_U8, right, i, world, NULL), 0);
        CHECK_IS(tutti_recv(in, n, TUTTI_U8, left, i, NULL, world, NULL), 0);
        CHECK(!wrong(in, n, i + left));
    }
    return 0;
}

static void test_both_ways(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_both_ways), 0);
    assert_int_equal(ranks_run_either(5, body_both_ways), 0);
}

static _Thread_local int overslept;

/* No slices: who is not woken sleeps for half a minute, and that is found out. */
static int sleep_long(void *arg, const struct futex_word *words, int n, uint64_t ns)
{
    (void)ns;
    int r = wait_ways_kernel.sleep(arg, words, n, UINT64_C(30000000000));
    overslept |= r == -ETIMEDOUT;
    return r;
}

/* Nobody spins, and whatever one waits for the other wakes it: a message, a receive, room in the
 * ring, in the store, in the stage. */
static int body_wakes(tutti_comm *world, int rank)
{
    struct wait_ways ways = wait_ways_kernel;
    unsigned char *buf = malloc(lengths[LENGTHS - 1]);
    CHECK(buf != NULL);
    ways.sleep = sleep_long;
    world->watch.ways = &ways;
    world->watch.budget = (struct wait_budget){ 0, 0, 0, 0, 0 };
    for (int i = 0, rounds = ranks_many(300, 40); i < rounds && !overslept; i++) {
        size_t n = lengths[i % (LENGTHS - 1)];
        if (rank == 0) {
            CHECK_IS(tutti_send(buf, n, TUTTI_U8, 1, i, world, NULL), 0);
            CHECK_IS(tutti_probe(TUTTI_ANY, i, NULL, world, NULL), 0);
            CHECK_IS(tutti_recv(buf, n, TUTTI_U8, i % 2 ? 1 : TUTTI_ANY, i, NULL, world, NULL), 0);
        } else {
            CHECK_IS(tutti_recv(buf, n, TUTTI_U8, i % 3 ? 0 : TUTTI_ANY, i, NULL, world, NULL), 0);
            CHECK_IS(tutti_send(buf, n, TUTTI_U8, 0, i, world, NULL), 0);
        }
    }
    for (int i = 0; i < 2 * RING_MOST && !overslept; i++) {
        size_t n = i % 4 ? 8 : i % 100 ? 3000 : SMALL;
        if (rank == 0)
            CHECK_IS(tutti_send(buf, n, TUTTI_U8, 1, 0, world, NULL), 0);
        else
            CHECK_IS(tutti_recv(buf, n, TUTTI_U8, 0, 0, NULL, world, NULL), 0);
        if (rank == 1 && i == 0)
            team_spin(20000000);
    }
    CHECK(!overslept);
    world->watch.ways = &wait_ways_kernel;
    free(buf);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_wakes(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_wakes), 0);
}

/* A hundred large messages are offered, and asked for from the last to the first. */
static int body_offers(tutti_comm *world, int rank)
{
    enum { MANY = 100, N = SMALL + 100 };
    unsigned char (*buf)[N] = malloc(sizeof *buf * MANY);
    CHECK(buf != NULL);
    tutti_work *work[MANY];
    for (int i = 0; i < MANY && rank == 0; i++) {
        fill(buf[i], N, i);
        CHECK_IS(tutti_send(buf[i], N, TUTTI_U8, 1, i, world, &(tutti_call){ .work = &work[i] }),
                 0);
    }
    for (int i = 0; i < MANY && rank == 0; i++)
        CHECK_IS(tutti_wait(work[i], 0), 0);
    for (int i = MANY; i-- > 0 && rank == 1;) {
        CHECK_IS(tutti_recv(buf[i], N, TUTTI_U8, 0, i, NULL, world, NULL), 0);
        CHECK(!wrong(buf[i], N, i));
    }
    free(buf);
    return 0;
}

static void test_offers(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_offers), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths), cmocka_unit_test(test_backwards),
        cmocka_unit_test(test_room), cmocka_unit_test(test_medium),
        cmocka_unit_test(test_busy_room), cmocka_unit_test(test_store),
        cmocka_unit_test(test_places), cmocka_unit_test(test_pages), cmocka_unit_test(test_full),
        cmocka_unit_test(test_self), cmocka_unit_test(test_both_ways),
        cmocka_unit_test(test_offers), cmocka_unit_test(test_wakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
