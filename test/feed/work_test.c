/* ctest: timeout=300 labels=tsan */
/* Puts and gets that are left under way: as work they give what the blocking calls give, in the
 * order in which they were started, and end as those end: by a deadline, a close, an abort, a ring
 * that is full of what the reader holds. */
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

#include <cmocka.h>

enum { GO = 0, FULL = 1, ASLEEP = 2, OVER = 3, ROOM = 4096, MOST = 3 * ROOM, WINDOW = 8 };

/* A call under way, with what it uses. */
struct flight {
    tutti_work *work;
    unsigned char bytes[MOST];
    size_t length;
    tutti_queue_message m;
    bool shown;
};

/* Starts the put of message n, of one part, of three, or by a loan. */
static int start_put(struct tutti_queue *q, struct flight *f, uint64_t n, tutti_work **work)
{
    tutti_call call = { .work = work };
    size_t length = message_bytes(n, MOST);
    void *block;
    message_fill(f->bytes, n, length);
    if (n % 5 == 0) {
        int r = tutti_queue_loan(q, length, &block);
        if (r < 0)
            return r;
        memcpy(block, f->bytes, length);
        return tutti_queue_put_loan(q, block, length, work ? &call : NULL);
    }
    if (n % 5 == 1)
        return tutti_queue_put(q, f->bytes, length, work ? &call : NULL);
    const void *part[] = { f->bytes, NULL, f->bytes + length / 3 };
    size_t size[] = { length / 3, 0, length - length / 3 };
    int r = tutti_queue_put_v(q, part, size, 3, work ? &call : NULL);
    memset(part, 0, sizeof part);                    /* the lists were copied */
    memset(size, 0, sizeof size);
    return r;
}

static int start_get(struct tutti_queue *q, struct flight *f, uint64_t n, tutti_work **work)
{
    tutti_call call = { .work = work };
    f->length = MOST;
    f->shown = !work && n % 2;         /* one that is started holds room until it is waited for */
    return f->shown ? tutti_queue_look(q, &f->m, work ? &call : NULL)
                    : tutti_queue_get(q, f->bytes, &f->length, work ? &call : NULL);
}

static bool got(struct tutti_queue *q, struct flight *f, uint64_t n)
{
    if (!f->shown)
        return message_is(f->bytes, n, f->length, MOST);
    bool right = message_is(f->m.data, n, f->m.bytes, MOST);
    tutti_queue_release(q, &f->m);
    return right;
}

/* A window of works; every 11th call blocks, behind those that were started. */
static int stream(tutti_comm *world, struct tutti_queue *q, int rank, uint64_t count,
                  struct flight *flight)
{
    for (uint64_t n = 0; n < count + WINDOW; n++) {
        struct flight *f = &flight[n % WINDOW];
        if (n >= WINDOW && f->work) {
            CHECK_IS(tutti_wait(f->work, -1), 0);
            f->work = NULL;
            CHECK(rank == 0 || got(q, f, n - WINDOW));
        }
        if (n >= count)
            continue;
        bool blocks = n % 11 == 10;
        tutti_work **work = blocks ? NULL : &f->work;
        CHECK_IS(rank == 0 ? start_put(q, f, n, work) : start_get(q, f, n, work), 0);
        CHECK(blocks || f->work != NULL);
        /* it stood behind all others, and they have ended in order */
        for (int i = 0; i < WINDOW && blocks; i++)
            CHECK(!flight[i].work || tutti_test(flight[i].work) == 0);
        CHECK(!blocks || rank == 0 || got(q, f, n));
    }
    return 0;
}

static int body_stream(tutti_comm *world, int rank)
{
    struct tutti_queue *q;
    struct flight *flight = calloc(WINDOW, sizeof *flight);
    tutti_queue_figures figures;
    uint64_t count = (uint64_t)ranks_many(600, 120);
    CHECK(flight != NULL);
    CHECK_IS(feed_create(world, 0, 0, ROOM, 0, (UINT64_C(1) << 32) - 2 * ROOM, &q), 0);
    CHECK_IS(stream(world, q, rank, count, flight), 0);
    CHECK_IS(tutti_queue_stats(q, &figures), 0);
    CHECK_IS(figures.messages, count);
    CHECK_IS(figures.held, 0);
    CHECK_IS(load_acquire32(&q->works), 0);
    if (rank != 0) {
        CHECK_IS(start_get(q, flight, 1, &flight->work), 0);
        CHECK_IS(tutti_wait(flight->work, -1), -ESHUTDOWN);
    }
    free(flight);
    return tutti_queue_free(q);
}

static void test_stream(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_stream), 0);
    assert_int_equal(ranks_run_either(4, body_stream), 0);
}

/* The end of work n is told n-th, and finds all before it over. */
struct told { tutti_queue *q; tutti_work *work[WINDOW]; shared32 count; shared32 wrong; };
struct teller { struct told *all; uint32_t n; };

static void tells(int error, void *arg)
{
    struct teller *t = arg;
    struct told *all = t->all;
    size_t room = 0;
    bool right = error == 0 && load_acquire32(&all->count) == t->n
        && tutti_queue_close(all->q) == -EDEADLK && tutti_queue_free(all->q) == -EDEADLK
        && tutti_queue_get(all->q, NULL, &room, NULL) != 0;
    for (uint32_t i = 0; i < t->n; i++)
        right &= tutti_test(all->work[i]) == 0 && tutti_wait(all->work[i], 0) == -EDEADLK;
    fetch_add32(&all->wrong, !right);
    fetch_add32(&all->count, 1);
}

static int body_order(tutti_comm *world, int rank)
{
    tutti_queue *q;
    uint64_t number[WINDOW];
    size_t room[WINDOW];
    struct teller teller[WINDOW];
    tutti_queue_message m[WINDOW];
    CHECK_IS(tutti_queue_create(world, 0, NULL, &q), 0);
    struct told all = { .q = q };
    for (uint32_t n = 0; n < WINDOW && rank != 0; n++) {
        room[n] = sizeof number[n];
        teller[n] = (struct teller){ &all, n };
        tutti_call call = { .work = &all.work[n], .done = tells, .done_arg = &teller[n] };
        CHECK_IS(rank == 1 ? tutti_queue_get(q, &number[n], &room[n], &call)
                           : tutti_queue_look(q, &m[n], &call), 0);
        CHECK_IS(tutti_test(all.work[n]), -EAGAIN);
    }
    if (rank != 0) {
        size_t none = 0;
        CHECK_IS(tutti_queue_get(q, NULL, &none, &(tutti_call){ .flags = TUTTI_TRY }), -EAGAIN);
        CHECK_IS(tutti_wait(all.work[0], 1), -EAGAIN);
        CHECK_IS(tutti_finalize(world), -EBUSY);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (uint64_t n = 0; n < WINDOW && rank == 0; n++)
        CHECK_IS(tutti_queue_put(q, &n, sizeof n, NULL), 0);
    for (uint32_t n = WINDOW; n-- > 0 && rank != 0;) {
        CHECK_IS(tutti_wait(all.work[n], 0), 0);
        if (rank == 2) {
            CHECK(m[n].hold != 0);
            memcpy(&number[n], m[n].data, sizeof number[n]);
            CHECK_IS(tutti_queue_release(q, &m[n]), 0);
        }
        CHECK(number[n] == n && room[n] == sizeof number[n]);
        /* the others' handles are read in `done`: they go when all have been told */
        all.work[n] = NULL;
        if (n == WINDOW - 1)
            CHECK_IS(load_acquire32(&all.count), WINDOW);
    }
    CHECK_IS(load_acquire32(&all.wrong), 0);
    return tutti_queue_free(q);
}

static void test_order(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_order), 0);
}

/* A deadline ends the work that has it, in front or behind; TUTTI_KEEP's ends none. What is too
   long for its buffer stays for the next one. */
static int body_late(tutti_comm *world, int rank)
{
    struct tutti_queue *q;
    tutti_work *work[3] = { NULL, NULL, NULL };
    tutti_call plain = { .work = &work[0] }, soon = { .work = &work[1], .timeout_ms = 30 },
               keeps = { .work = &work[2], .timeout_ms = 30, .flags = TUTTI_KEEP };
    unsigned char *bytes = calloc(3, MOST);
    size_t room[3] = { MOST, MOST, MOST };
    CHECK(bytes != NULL);
    CHECK_IS(feed_create(world, 0, 0, ROOM, 0, 0, &q), 0);
    if (rank == 0) {
        message_fill(bytes, 6, MOST);
        CHECK_IS(tutti_queue_put(q, bytes, MOST, &plain), 0);
        CHECK_IS(tutti_queue_put(q, "late", 4, &soon), 0);
        CHECK_IS(tutti_wait(work[1], 0), -ETIMEDOUT);
        CHECK(ranks_explain(tutti_queue_comm(q), "queue_put"));
        CHECK(ranks_explain(tutti_queue_comm(q), "started before it"));
        CHECK_IS(tutti_test(work[0]), -EAGAIN);
        ranks_say(GO, 1);
        CHECK_IS(tutti_wait(work[0], -1), 0);
        CHECK_IS(tutti_queue_put(q, "end", 3, NULL), 0);
        CHECK_IS(ranks_await(GO, 2), 0);
        CHECK_IS(tutti_queue_put(q, "kept", 4, NULL), 0);
    } else {
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_queue_get(q, bytes, &room[0], &plain), 0);
        CHECK_IS(tutti_wait(work[0], -1), 0);
        CHECK(message_is(bytes, 6, room[0], MOST));
        room[0] = 2;
        CHECK_IS(tutti_queue_get(q, bytes, &room[0], &plain), 0);
        CHECK_IS(tutti_wait(work[0], -1), -EMSGSIZE);
        CHECK_IS(room[0], 3);
        CHECK_IS(tutti_queue_get(q, bytes, &room[0], NULL), 0);
        CHECK(memcmp(bytes, "end", 3) == 0);
        CHECK_IS(tutti_queue_get(q, bytes, &room[1], &soon), 0);
        CHECK_IS(tutti_wait(work[1], 0), -ETIMEDOUT);
        CHECK(ranks_explain(tutti_queue_comm(q), "for a put of rank 0"));
        CHECK_IS(tutti_queue_get(q, bytes + MOST, &room[2], &keeps), 0);
        CHECK_IS(tutti_wait(work[2], 0), -ETIMEDOUT);
        CHECK_IS(tutti_test(work[2]), -ETIMEDOUT);
        ranks_say(GO, 2);
        CHECK_IS(tutti_wait(work[2], -1), 0);
        CHECK(room[2] == 4 && memcmp(bytes + MOST, "kept", 4) == 0);
    }
    free(bytes);
    return tutti_queue_free(q);
}

static void test_late(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_late), 0);
}

/* A reader that holds the room that a put under way lacks is told so, by work and by a call. */
static int body_stuck(tutti_comm *world, int rank)
{
    enum { COUNT = 10, LENGTH = 900 };
    struct tutti_queue *q;
    unsigned char bytes[LENGTH] = { 0 };
    tutti_work *work[COUNT];
    tutti_queue_message m;
    size_t room = LENGTH;
    CHECK_IS(feed_create(world, 0, 0, ROOM, 0, 0, &q), 0);
    if (rank == 0) {
        for (int n = 0; n < COUNT; n++) {
            tutti_call call = { .work = &work[n] };
            CHECK_IS(tutti_queue_put(q, bytes, LENGTH, &call), 0);
        }
        for (int n = 0; n < COUNT; n++)
            CHECK_IS(tutti_wait(work[n], -1), 0);
    } else {
        tutti_call call = { .work = &work[0] };
        int r = 0, gets = 1;
        CHECK_IS(tutti_queue_look(q, &m, NULL), 0);
        while (r == 0) {
            CHECK_IS(tutti_queue_get(q, bytes, &room, &call), 0);
            r = tutti_wait(work[0], -1);
            gets += r == 0;
        }
        CHECK_IS(r, -EDEADLK);
        CHECK(ranks_explain(tutti_queue_comm(q), "holds 1 messages"));
        CHECK_IS(tutti_queue_get(q, bytes, &room, NULL), -EDEADLK);
        CHECK_IS(tutti_queue_release(q, &m), 0);
        for (; (r = tutti_queue_get(q, bytes, &room, NULL)) == 0; gets++) { }
        CHECK_IS(r, -ESHUTDOWN);
        CHECK_IS(gets, COUNT);
    }
    return tutti_queue_free(q);
}

static void test_stuck(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_stuck), 0);
}

struct caller { struct tutti_queue *q; shared32 began; };

/* Blocks behind a get under way. */
static void *gets(void *arg)
{
    struct caller *c = arg;
    size_t room = 0;
    store_release32(&c->began, 1);
    return (void *)(intptr_t)tutti_queue_get(c->q, NULL, &room, NULL);
}

/* A close, and a free, end what is under way, and the call that waits behind it; the handles
   outlive the queue. Rank 1 reads nothing, so the ring is full. */
static int body_close(tutti_comm *world, int rank)
{
    enum { COUNT = 6, LENGTH = 900, FIT = ROOM / (LENGTH + FEED_RECORD + FEED_STEP) };
    for (int round = 0; round < 3; round++) {
        struct tutti_queue *q;
        unsigned char bytes[LENGTH] = { 0 };
        tutti_work *work[COUNT];
        size_t room[COUNT];
        pthread_t thread;
        void *ended = NULL;
        CHECK_IS(feed_create(world, 0, 0, ROOM, 0, 0, &q), 0);
        struct caller caller = { .q = q };
        for (int n = 0; n < COUNT && rank != 1; n++) {
            tutti_call call = { .work = &work[n] };
            room[n] = LENGTH;
            CHECK_IS(rank == 0 ? tutti_queue_put(q, bytes, LENGTH, &call)
                               : tutti_queue_get(q, bytes, &room[n], &call), 0);
        }
        if (rank != 1)
            CHECK_IS(tutti_wait(work[FIT - 1], -1), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (round == 0 && rank != 1)
            CHECK_IS(tutti_queue_close(q), 0);
        if (round == 1 && rank == 2) {
            CHECK_IS(pthread_create(&thread, NULL, gets, &caller), 0);
            while (!load_acquire32(&caller.began)) { }
            CHECK_IS(tutti_queue_close(q), 0);
            CHECK_IS(pthread_join(thread, &ended), 0);
            CHECK_IS((intptr_t)ended, -ECANCELED);
            ranks_say(OVER, 1);
        }
        if (round == 1 && rank == 0)
            CHECK_IS(ranks_await(OVER, 1), 0);
        if (rank != 1)
            CHECK_IS(tutti_queue_free(q), 0);
        for (int n = 0; n < COUNT && rank != 1; n++) {
            int r = n < FIT ? 0 : tutti_test(work[n]);
            CHECK(n < FIT || r == -ECANCELED || (rank == 2 && r == -ESHUTDOWN));
            if (n != FIT - 1)
                CHECK_IS(tutti_wait(work[n], -1), r);
        }
        CHECK_IS(tutti_barrier(world, NULL), 0);
        if (rank == 1)
            CHECK_IS(tutti_queue_free(q), 0);
    }
    return 0;
}

static void test_close(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_close), 0);
}

static int stop_at_once(void *arg)
{
    (void)arg;
    return 1;
}

/* An interrupt ends the work that is waited for, an abort all. What never waits is refused. */
static int body_fails(tutti_comm *world, int rank)
{
    struct tutti_queue *q;
    tutti_queue *refuses;
    tutti_queue_options options = { .flags = TUTTI_QUEUE_REFUSE };
    tutti_work *work[2];
    tutti_call call = { .work = &work[0] }, other = { .work = &work[1] },
               once = { .work = &work[0], .flags = TUTTI_TRY };
    uint64_t n = 7;
    size_t room = sizeof n;
    CHECK_IS(tutti_queue_create(world, 0, &options, &refuses), 0);
    CHECK_IS(feed_create(world, 0, 0, ROOM, 0, 0, &q), 0);
    if (rank == 0) {
        CHECK_IS(tutti_queue_put(refuses, &n, sizeof n, &call), -EINVAL);
        CHECK(ranks_explain(tutti_queue_comm(refuses), "does not wait") && !work[0]);
        CHECK_IS(tutti_queue_get(q, &n, &room, &call), -EINVAL);
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_queue_put(q, &n, sizeof n, NULL), 0);
        CHECK_IS(ranks_await(GO, 2), 0);
        CHECK_IS(tutti_comm_abort(tutti_queue_comm(q), "no more"), 0);
        CHECK_IS(tutti_queue_put(q, &n, sizeof n, &call), -ECANCELED);
    } else {
        CHECK_IS(tutti_queue_get(q, &n, &room, &once), -EINVAL);
        CHECK_IS(tutti_queue_get(q, &n, &room, &call), 0);
        CHECK_IS(tutti_queue_get(q, &n, &room, &other), 0);
        q->interrupt = stop_at_once;
        CHECK_IS(tutti_wait(work[0], -1), -EINTR);
        q->interrupt = NULL;
        n = 0;
        ranks_say(GO, 1);
        CHECK_IS(tutti_wait(work[1], -1), 0);
        CHECK_IS(n, 7);
        CHECK_IS(tutti_queue_get(q, &n, &room, &call), 0);
        CHECK_IS(tutti_queue_get(q, &n, &room, &other), 0);
        ranks_say(GO, 2);
        CHECK_IS(tutti_wait(work[1], -1), -ECANCELED);
        CHECK_IS(tutti_wait(work[0], -1), -ECANCELED);
        CHECK(ranks_explain(tutti_queue_comm(q), "no more"));
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return tutti_queue_free(q);
}

static void test_fails(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_fails), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream), cmocka_unit_test(test_order), cmocka_unit_test(test_late),
        cmocka_unit_test(test_stuck), cmocka_unit_test(test_close), cmocka_unit_test(test_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
