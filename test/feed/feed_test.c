/* ctest: timeout=300 labels=tsan */
/* Every reader gets every message once, whole and in order, whatever its length and wherever the
 * ring and the halves of the counters end; a full queue waits or refuses; closes end both sides. */
#include "base/clock.h"
#include "feed/feed.h"
#include "feed/messages.h"
#include "support/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FULL = 0, GO = 1, DONE_WORD = 2, ASLEEP = 3, ROOM = 4096, MOST = 3 * ROOM };

/* Whole messages up to a quarter of the ring, others in pieces; three times the ring at most. */
static int stream(tutti_comm *world, int rank, uint64_t start, uint64_t count, bool look)
{
    struct tutti_queue *q;
    unsigned char *bytes = malloc(MOST);
    tutti_queue_message m = { NULL, 0, 0 };
    CHECK(bytes != NULL);
    CHECK_IS(feed_create(world, 0, 0, ROOM, 0, start, &q), 0);
    for (uint64_t n = 0; n < count; n++) {
        size_t length = message_bytes(n, MOST), room = MOST;
        if (rank == 0) {
            message_fill(bytes, n, length);
            const void *part[] = { bytes, NULL, bytes + length / 3 };
            size_t size[] = { length / 3, 0, length - length / 3 };
            CHECK_IS(tutti_queue_put_v(q, part, size, 3, NULL), 0);
        } else if (look) {
            CHECK_IS(tutti_queue_look(q, &m, NULL), 0);
            CHECK(message_is(m.data, n, m.bytes, MOST));
            CHECK_IS(m.hold != 0, length <= q->whole);
            CHECK_IS(tutti_queue_release(q, &m), 0);
        } else {
            CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), 0);
            CHECK(message_is(bytes, n, room, MOST));
        }
    }
    tutti_queue_figures figures;
    CHECK_IS(tutti_queue_stats(q, &figures), 0);
    CHECK_IS(figures.messages, count);
    CHECK_IS(figures.held, 0);
    CHECK_IS(figures.room, ROOM);
    if (rank != 0) {
        size_t room = MOST;
        CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), -ESHUTDOWN);
        CHECK_IS(tutti_queue_look(q, &m, NULL), -ESHUTDOWN);
    }
    free(bytes);
    return tutti_queue_free(q);
}

static int body_stream(tutti_comm *world, int rank)
{
    uint64_t count = (uint64_t)ranks_many(1000, 100);
    CHECK_IS(stream(world, rank, 0, count, false), 0);
    /* the low half of the position wraps, then its sign */
    CHECK_IS(stream(world, rank, (UINT64_C(1) << 32) - 2 * ROOM - 64, count, rank % 2), 0);
    CHECK_IS(stream(world, rank, (UINT64_C(1) << 31) - 64, count, true), 0);
    return tutti_barrier(world, NULL);
}

static void test_stream(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_stream), 0);
    assert_int_equal(ranks_run_either(4, body_stream), 0);
}

/* Until it refuses; then each message comes once, and the queue goes on. */
static int body_full(tutti_comm *world, int rank)
{
    tutti_queue *q;
    tutti_queue_options options = { .room = 5000, .flags = TUTTI_QUEUE_REFUSE };
    tutti_call once = { .flags = TUTTI_TRY };
    uint64_t n = 0, got = 0;
    size_t room = sizeof got;
    CHECK_IS(tutti_queue_create(world, 1, &options, &q), 0);
    CHECK_IS(tutti_rank(tutti_queue_comm(q)), rank);
    for (int round = 1; round < 4; round++) {
        if (rank == 1) {
            int r;
            while ((r = tutti_queue_put(q, &n, sizeof n, NULL)) == 0)
                n++;
            CHECK_IS(r, -EAGAIN);
            page->number[0] = n;
            ranks_say(FULL, (uint32_t)round);
            CHECK_IS(ranks_await(DONE_WORD, 2 * (uint32_t)round), 0);
            continue;
        }
        CHECK_IS(ranks_await(FULL, (uint32_t)round), 0);
        int r;
        while ((r = tutti_queue_get(q, &got, &room, &once)) == 0)
            CHECK_IS(got, n++);
        CHECK_IS(r, -EAGAIN);
        CHECK_IS(n, page->number[0]);
        ranks_count(DONE_WORD);
    }
    CHECK(n > 3 * 120 && n <= 3 * 128);
    return tutti_queue_free(q);
}

static void test_full(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_full), 0);
}

/* A put that waits for room is over as soon as there is some; one with a deadline fails, whether
   before its first piece or in the middle, was put for nobody, and the queue goes on. */
static int body_wait(tutti_comm *world, int rank)
{
    struct tutti_queue *q;
    tutti_call soon = { .timeout_ms = 30 };
    unsigned char *bytes = calloc(1, MOST);
    size_t room = MOST;
    CHECK_IS(feed_create(world, 0, 0, ROOM, 0, 0, &q), 0);
    if (rank == 0) {
        message_fill(bytes, 6, MOST);
        CHECK_IS(tutti_queue_put(q, bytes, MOST, &soon), -ETIMEDOUT);
        CHECK(ranks_explain(tutti_queue_comm(q), "queue_put"));
        CHECK(ranks_explain(tutti_queue_comm(q), "for a get of rank 1"));
        CHECK_IS(tutti_queue_put(q, bytes, 900, &soon), -ETIMEDOUT);
        ranks_say(FULL, 1);
        CHECK_IS(tutti_queue_put(q, bytes, MOST, NULL), 0);
        CHECK_IS(tutti_queue_put(q, "end", 3, NULL), 0);
    } else {
        CHECK_IS(ranks_await(FULL, 1), 0);
        CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), 0);
        CHECK(message_is(bytes, 6, room, MOST));
        room = 2;
        CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), -EMSGSIZE);
        CHECK_IS(room, 3);
        CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), 0);
        CHECK(memcmp(bytes, "end", 3) == 0);
        CHECK(tutti_queue_get(q, bytes, &room, &soon) == -ETIMEDOUT || rank);
    }
    free(bytes);
    return tutti_queue_free(q);
}

static void test_wait(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_wait), 0);
}

/* What is held stays as it is, in any order of releases; a reader that holds much gets copies. */
static int body_holds(tutti_comm *world, int rank)
{
    enum { MANY = 3 * FEED_HOLDS, LENGTH = 400 };
    struct tutti_queue *q;
    unsigned char bytes[LENGTH];
    tutti_queue_message held[MANY];
    tutti_queue_figures figures;
    CHECK_IS(feed_create(world, 0, 0, 16 * ROOM, 0, 0, &q), 0);
    for (int round = 0; round < 3; round++) {
        int in_place = 0;
        for (uint64_t n = 0; n < MANY; n++) {
            if (rank == 0) {
                message_fill(bytes, n, message_bytes(n, LENGTH));
                CHECK_IS(tutti_queue_put(q, bytes, message_bytes(n, LENGTH), NULL), 0);
                continue;
            }
            CHECK_IS(tutti_queue_look(q, &held[n], NULL), 0);
            in_place += held[n].hold != 0;
        }
        for (uint64_t i = 0; i < MANY && rank; i++) {
            uint64_t n = i * 47 % MANY;
            CHECK(message_is(held[n].data, n, held[n].bytes, LENGTH));
            CHECK_IS(tutti_queue_release(q, &held[n]), 0);
            CHECK_IS(tutti_queue_release(q, &held[n]), 0);
            CHECK_IS(tutti_queue_stats(q, &figures), 0);
            CHECK(i > 0 || figures.held == FEED_HOLDS - 1);
        }
        CHECK_IS(tutti_queue_stats(q, &figures), 0);
        CHECK_IS(figures.held, 0);
        CHECK_IS(in_place, rank ? FEED_HOLDS : 0);
    }
    return tutti_queue_free(q);
}

/* A reader that holds the oldest message and waits for one that has no room is told so. */
static int body_stuck(tutti_comm *world, int rank)
{
    struct tutti_queue *q;
    unsigned char bytes[900] = { 0 };
    tutti_queue_message m;
    size_t room = sizeof bytes;
    CHECK_IS(feed_create(world, 0, 0, ROOM, 0, 0, &q), 0);
    for (int n = 0; n < 10 && rank == 0; n++)
        CHECK_IS(tutti_queue_put(q, bytes, sizeof bytes, NULL), 0);
    if (rank == 1) {
        int r, got = 1;
        CHECK_IS(tutti_queue_look(q, &m, NULL), 0);
        for (; (r = tutti_queue_get(q, bytes, &room, NULL)) == 0; got++) { }
        CHECK_IS(r, -EDEADLK);
        CHECK(ranks_explain(tutti_queue_comm(q), "holds"));
        CHECK_IS(tutti_queue_release(q, &m), 0);
        for (; (r = tutti_queue_get(q, bytes, &room, NULL)) == 0; got++) { }
        CHECK_IS(r, -ESHUTDOWN);
        CHECK_IS(got, 10);
    }
    return tutti_queue_free(q);
}

/* So it is where the writer does not wait. When the writer has found room, nothing is left of that:
   the reader waits again. */
static int body_refused(tutti_comm *world, int rank)
{
    struct tutti_queue *q;
    unsigned char bytes[900] = { 0 };
    tutti_queue_message m;
    tutti_call soon = { .timeout_ms = 30 };
    size_t room = sizeof bytes;
    CHECK_IS(feed_create(world, 0, 0, ROOM, TUTTI_QUEUE_REFUSE, 0, &q), 0);
    if (rank == 0) {
        int r, puts = 0;
        while ((r = tutti_queue_put(q, bytes, sizeof bytes, NULL)) == 0)
            puts++;
        CHECK_IS(r, -EAGAIN);
        page->number[0] = (uint64_t)puts;
        ranks_say(FULL, 1);
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_queue_put(q, "small", 5, NULL), 0);
        ranks_say(FULL, 2);
        CHECK_IS(ranks_await(GO, 2), 0);
    } else {
        CHECK_IS(ranks_await(FULL, 1), 0);
        CHECK_IS(tutti_queue_look(q, &m, NULL), 0);
        for (uint64_t n = 1; n < page->number[0]; n++)
            CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), 0);
        CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), -EDEADLK);
        CHECK(ranks_explain(tutti_queue_comm(q), "holds"));
        ranks_say(GO, 1);
        CHECK_IS(ranks_await(FULL, 2), 0);
        room = sizeof bytes;
        CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), 0);
        CHECK_IS(room, 5);
        CHECK_IS(tutti_queue_get(q, bytes, &room, &soon), -ETIMEDOUT);
        CHECK_IS(tutti_queue_release(q, &m), 0);
        ranks_say(GO, 2);
    }
    return tutti_queue_free(q);
}

static void test_holds(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_holds), 0);
    assert_int_equal(ranks_run_either(2, body_stuck), 0);
    assert_int_equal(ranks_run_either(2, body_refused), 0);
}

static int loans_of(const struct tutti_queue *q)
{
    int count = 0;
    for (const struct feed_loan *loan = q->loans; loan; loan = loan->next)
        count++;
    return count;
}

/* Messages of any length, each where it lies; what all have gone past is lent again. */
static int loans_stream(struct tutti_queue *q, tutti_comm *world, int rank)
{
    enum { COUNT = 200 };
    unsigned char *bytes = malloc(MOST);
    for (uint64_t n = 0; n < COUNT; n++) {
        size_t length = message_bytes(n, MOST), room = MOST;
        void *block = bytes;
        tutti_queue_message m;
        if (rank == 0) {
            CHECK_IS(tutti_queue_loan(q, length, &block), 0);
            message_fill(block, n, length);
            CHECK_IS(tutti_queue_put_loan(q, block, length, NULL), 0);
            CHECK_IS(tutti_queue_put_loan(q, block, length, NULL), -EINVAL);
        } else if (n % 2) {
            CHECK_IS(tutti_queue_look(q, &m, NULL), 0);
            CHECK(m.hold != 0 && message_is(m.data, n, m.bytes, MOST));
            CHECK_IS(tutti_queue_release(q, &m), 0);
        } else {
            CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), 0);
            CHECK(message_is(bytes, n, room, MOST));
        }
    }
    free(bytes);
    CHECK(rank != 0 || loans_of(q) <= ROOM / FEED_STEP + 8);
    return 0;
}

/* Of two loans the one that a reader holds is not lent again until it is released. */
static int loans_held(struct tutti_queue *q, tutti_comm *world, int rank)
{
    enum { LENGTH = 5000 };
    tutti_queue_message m = { NULL, 0, 0 };
    void *block[2] = { NULL, NULL }, *again;
    size_t room = 0;
    for (uint64_t n = 0; n < 2 && rank == 0; n++) {
        CHECK_IS(tutti_queue_loan(q, LENGTH, &block[n]), 0);
        memset(block[n], (int)n + 1, LENGTH);
        CHECK_IS(tutti_queue_put_loan(q, block[n], LENGTH, NULL), 0);
    }
    if (rank != 0) {
        CHECK_IS(tutti_queue_look(q, &m, NULL), 0);
        CHECK_IS(tutti_queue_get(q, NULL, &room, NULL), -EMSGSIZE);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int n = 0; n < 2 && rank == 0; n++) {
        CHECK_IS(tutti_queue_loan(q, LENGTH, &again), 0);
        CHECK(again != block[0] && again != block[1]);
        memset(again, 9, LENGTH);
        CHECK_IS(tutti_queue_drop_loan(q, again), 0);
        CHECK_IS(tutti_queue_drop_loan(q, again), -EINVAL);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 1)
        for (int i = 0; i < LENGTH; i++)
            CHECK_IS(((const char *)m.data)[i], 1);
    if (rank != 0)
        CHECK_IS(tutti_queue_release(q, &m), 0);
    if (rank == 2)                                   /* what it has not read keeps nothing */
        CHECK_IS(tutti_queue_close(q), 0);
    for (char bytes[LENGTH]; rank == 1 && room;) {
        CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), 0);
        CHECK(bytes[0] == 2 && bytes[LENGTH - 1] == 2);
        room = 0;
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank != 0)
        return 0;
    int before = loans_of(q);
    CHECK_IS(tutti_queue_loan(q, LENGTH, &again), 0);
    CHECK_IS(tutti_queue_put_loan(q, again, 1 << 30, NULL), -EINVAL);
    CHECK(ranks_explain(tutti_queue_comm(q), "the loan is smaller"));
    CHECK_IS(loans_of(q), before);
    for (const struct feed_loan *loan = q->loans; loan; loan = loan->next)
        CHECK(loan->state != LOAN_PUT);
    CHECK_IS(tutti_queue_loan(q, (size_t)1 << 46, &again), -ENOSPC);
    CHECK(again == NULL && ranks_explain(tutti_queue_comm(q), "the span is full"));
    CHECK(loans_of(q) < before);                     /* it has given back what was idle */
    return 0;
}

static int body_loans(tutti_comm *world, int rank)
{
    struct tutti_queue *q;
    CHECK_IS(feed_create(world, 0, 0, ROOM, 0, 0, &q), 0);
    CHECK_IS(loans_stream(q, world, rank), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(loans_held(q, world, rank), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    int expected = rank == 0 ? 0 : rank == 1 ? -EINVAL : -ECANCELED;
    CHECK_IS(tutti_queue_loan(q, 1, &(void *){ NULL }), expected);
    CHECK_IS(tutti_barrier(world, NULL), 0);         /* the writer still has a reader until here */
    return tutti_queue_free(q);
}

static void test_loans(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_loans), 0);
}

/* over: the reader was not quick enough to sleep before the writer had closed. */
struct closer { tutti_queue *q; shared32 over; };

static void *close_it(void *arg)
{
    struct closer *c = arg;
    tutti_queue_figures figures = { 0 };
    while (figures.sleeps == 0 && !load_acquire32(&c->over))
        tutti_queue_stats(c->q, &figures);
    return (void *)(intptr_t)tutti_queue_close(c->q);
}

/* Another thread closes a reader's end that waits, and a writer's. */
static int body_close(tutti_comm *world, int rank)
{
    tutti_queue *q;
    tutti_queue_options options = { .room = ROOM };
    pthread_t thread;
    uint64_t n = 0;
    size_t room = sizeof n;
    CHECK_IS(tutti_queue_create(world, 0, &options, &q), 0);
    struct closer closer = { .q = q };
    if (rank != 2)
        CHECK_IS(pthread_create(&thread, NULL, close_it, &closer), 0);
    if (rank == 0) {
        int r;
        while ((r = tutti_queue_put(q, &n, sizeof n, NULL)) == 0)
            n++;
        CHECK_IS(r, -ECANCELED);
        CHECK(n >= 60 && n <= 64);
        CHECK_IS(tutti_queue_put(q, &n, sizeof n, NULL), -ECANCELED);
        ranks_say(FULL, 1);
    } else {
        /* rank 1 closes its end before the writer is full by rank 2 */
        for (int r = 0; rank == 1 && r == 0;)
            if ((r = tutti_queue_get(q, &n, &room, NULL)) < 0)
                CHECK(r == -ECANCELED || r == -ESHUTDOWN);
        uint64_t expected = 0;
        int r = 0;
        if (rank == 2) {
            CHECK_IS(ranks_await(FULL, 1), 0);
            while ((r = tutti_queue_get(q, &n, &room, NULL)) == 0)
                CHECK_IS(n, expected++);
            CHECK_IS(r, -ESHUTDOWN);
            CHECK(expected >= 60);
        }
    }
    store_release32(&closer.over, 1);
    if (rank != 2)
        CHECK_IS(pthread_join(thread, NULL), 0);
    CHECK_IS(tutti_queue_close(q), 0);
    return tutti_queue_free(q);
}

static void test_close(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_close), 0);
}

/* Readers that close are not waited for; without any left a put has nobody to put for. */
static int body_leave(tutti_comm *world, int rank)
{
    tutti_queue *q;
    tutti_queue_options options = { .room = ROOM };
    char bytes[900] = { 0 };
    size_t room = sizeof bytes;
    CHECK_IS(tutti_queue_create(world, 0, &options, &q), 0);
    if (rank == 0) {
        for (int n = 0; n < 20; n++)
            CHECK_IS(tutti_queue_put(q, bytes, sizeof bytes, NULL), 0);
        ranks_say(GO, 1);
        int r;
        while ((r = tutti_queue_put(q, bytes, sizeof bytes, NULL)) == 0) { }
        CHECK_IS(r, -ESHUTDOWN);
    } else {
        for (int n = 0; n < (rank == 1 ? 1 : 20); n++)
            CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), 0);
        CHECK_IS(tutti_queue_close(q), 0);
        CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), -ECANCELED);
        CHECK_IS(ranks_await(GO, 1), 0);
    }
    CHECK_IS(tutti_queue_free(q), 0);
    return tutti_barrier(world, NULL);
}

static void test_leave(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_leave), 0);
}

/* Nobody sleeps: no call wakes anybody. All sleep: one call a put wakes them. */
static int body_wakes(tutti_comm *world, int rank)
{
    enum { PUTS = 20 };
    tutti_queue *q;
    tutti_queue_figures figures;
    uint64_t n;
    size_t room = sizeof n;
    CHECK_IS(tutti_queue_create(world, 0, NULL, &q), 0);
    for (n = 0; rank == 0 && n < PUTS; n++)
        CHECK_IS(tutti_queue_put(q, &n, sizeof n, NULL), 0);
    CHECK_IS(tutti_queue_stats(q, &figures), 0);
    CHECK(rank || (figures.wakes == 0 && figures.sleeps == 0 && figures.messages == PUTS));
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (n = 0; rank != 0 && n < PUTS; n++)
        CHECK_IS(tutti_queue_get(q, &(uint64_t){ 0 }, &room, NULL), 0);
    CHECK_IS(tutti_queue_stats(q, &figures), 0);
    CHECK(!rank || (figures.wakes == 0 && figures.sleeps == 0 && figures.behind == 0));
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (n = 0; n < PUTS; n++) {
        if (rank == 0) {
            for (uint32_t p = 1; p < 4; p++)
                while (load_acquire32(&((struct tutti_queue *)q)->head->readers[p].asleep) == 0) { }
            CHECK_IS(tutti_queue_put(q, &n, sizeof n, NULL), 0);
            CHECK_IS(ranks_await(ASLEEP, 3 * ((uint32_t)n + 1)), 0);
            CHECK_IS(tutti_queue_stats(q, &figures), 0);
            CHECK_IS(figures.wakes, n + 1);
        } else {
            CHECK_IS(tutti_queue_get(q, &(uint64_t){ 0 }, &room, NULL), 0);
            ranks_count(ASLEEP);
        }
    }
    return tutti_queue_free(q);
}

static void test_wakes(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_wakes), 0);
}

static int stop_at_once(void *arg)
{
    (void)arg;
    return 1;
}

static int body_misuse(tutti_comm *world, int rank)
{
    tutti_queue *q = NULL;
    tutti_call unknown = { .flags = 8 };
    tutti_queue_options odd = { .flags = 4 }, own = { .room = rank ? 4096 : 8192 };
    tutti_queue_message m;
    size_t room = 0;
    CHECK_IS(tutti_queue_create(NULL, 0, NULL, &q), -EINVAL);
    CHECK_IS(tutti_queue_create(world, 2, NULL, &q), -EINVAL);
    CHECK_IS(tutti_queue_create(world, 0, &odd, &q), -EINVAL);
    CHECK_IS(tutti_queue_create(world, 0, NULL, NULL), -EINVAL);
    CHECK_IS(tutti_queue_create(world, 0, &own, &q), -EPROTO);
    CHECK(q == NULL && ranks_explain(world, "other options"));
    own.room = UINT64_C(1) << 39;
    CHECK_IS(tutti_queue_create(world, 0, &own, &q), -ENOSPC);
    CHECK(q == NULL && ranks_explain(world, "rank 0"));
    CHECK_IS(tutti_queue_create(world, 0, NULL, &q), 0);
    CHECK_IS(tutti_comm_free(tutti_queue_comm(q)), -EINVAL);
    CHECK_IS(tutti_barrier(tutti_queue_comm(q), NULL), 0);
    if (rank == 0) {
        CHECK_IS(tutti_queue_get(q, NULL, &room, NULL), -EINVAL);
        CHECK(ranks_explain(tutti_queue_comm(q), "the writer"));
        CHECK_IS(tutti_queue_put(q, NULL, 1, NULL), -EINVAL);
        CHECK_IS(tutti_queue_put(q, "x", 1, &unknown), -EINVAL);
        CHECK_IS(tutti_queue_put(q, NULL, 0, NULL), 0);
    } else {
        CHECK_IS(tutti_queue_put(q, "x", 1, NULL), -EINVAL);
        CHECK_IS(tutti_queue_look(q, NULL, NULL), -EINVAL);
        CHECK_IS(tutti_queue_get(q, NULL, NULL, NULL), -EINVAL);
        CHECK_IS(tutti_queue_get(q, NULL, &room, NULL), 0);
        ((struct tutti_queue *)q)->interrupt = stop_at_once;
        CHECK_IS(tutti_queue_look(q, &m, &(tutti_call){ .timeout_ms = 60000 }), -EINTR);
        CHECK_IS(tutti_queue_look(q, &m, &(tutti_call){ .flags = TUTTI_TRY }), -EAGAIN);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    /* finalize frees it */
    return 0;
}

static void test_misuse(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_misuse), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream), cmocka_unit_test(test_full), cmocka_unit_test(test_wait),
        cmocka_unit_test(test_holds), cmocka_unit_test(test_loans), cmocka_unit_test(test_close),
        cmocka_unit_test(test_leave), cmocka_unit_test(test_wakes), cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
