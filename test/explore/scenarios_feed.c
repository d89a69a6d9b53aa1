/* Broadcast queues. The ring has room for three records: the writer waits until the first message
 * is read; the next one is of two pieces; the reader goes on when all are put. Then the end. In the
 * other scenario a reader holds the first message while others come and go, and the ring is written
 * round. Each message comes once, whole, in order, and the error after all that was put. */
#include "explore/scenarios.h"

#include "feed/feed.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

enum {
    ROOM = 256, MESSAGES = 3, PIECES = 1, BYTES_MOST = 72,
    HELD_ROOM = 512, HELD_MESSAGES = 9, HELD = 10,               /* the number of the first */
    FULL = 3,                                                    /* messages */
    PUT = 0, MADE = 1
};

/* Where one is held, each third record is of two lines. */
static size_t bytes_of(int n)
{
    return n == PIECES || (n > HELD && n % 3 == 0) ? BYTES_MOST : 8;
}

static void fill(char *bytes, int n)
{
    for (size_t i = 0; i < BYTES_MOST; i++)
        bytes[i] = (char)(n * 16 + (int)i + 1);
}

static void compare(int rank, int n, const void *data, size_t bytes)
{
    char expected[BYTES_MOST];
    fill(expected, n);
    if (bytes != bytes_of(n) || memcmp(data, expected, bytes) != 0)
        explore_wrong("torn message: rank %d, message %d of %d bytes", rank, n, (int)bytes);
}

/* What becomes of it is the queue's to say. */
static void meets(tutti_comm *world) { tutti_barrier_at("explore", world, NULL); }

static int puts_all(tutti_queue *q, int from, int messages)
{
    char bytes[BYTES_MOST];
    int r = 0;
    for (int n = 0; n < messages && r == 0; n++) {
        fill(bytes, from + n);
        r = tutti_queue_put_at("explore", q, bytes, bytes_of(from + n), NULL);
        if (r == 0)
            explore_shared[PUT] = (uint64_t)n + 1;
    }
    return r;
}

static int gets_all(tutti_queue *q, int rank, tutti_comm *world, int *got)
{
    for (*got = 0;; ++*got) {
        char bytes[BYTES_MOST];
        size_t room = sizeof bytes;
        int r = tutti_queue_get_at("explore", q, bytes, &room, NULL);
        if (r < 0)
            return r;
        compare(rank, *got, bytes, room);
        if (*got == 0)
            meets(world);
    }
}

/* The first is held until the third has come. */
static int holds_one(tutti_queue *q, int rank, int *got)
{
    tutti_queue_message first, other;
    int r = tutti_queue_look_at("explore", q, &first, NULL);
    for (*got = r == 0; r == 0; *got += r == 0) {
        r = tutti_queue_look_at("explore", q, &other, NULL);
        if (r < 0)
            break;
        compare(rank, HELD + *got, other.data, other.bytes);
        tutti_queue_release(q, &other);
        if (*got == 2) {
            compare(rank, HELD, first.data, first.bytes);
            tutti_queue_release(q, &first);
        }
    }
    return r;
}

/* Each message in a loan; the reader shows them, and the first loan is lent again. */
static int lends_all(tutti_queue *q, int messages)
{
    void *block;
    int r = 0;
    for (int n = 0; n < messages && r == 0; n++) {
        r = tutti_queue_loan_at("explore", q, bytes_of(n), &block);
        if (r == 0) {
            char bytes[BYTES_MOST];
            fill(bytes, n);
            memcpy(block, bytes, bytes_of(n));
            r = tutti_queue_put_loan_at("explore", q, block, bytes_of(n), NULL);
        }
        if (r == 0)
            explore_shared[PUT] = (uint64_t)n + 1;
    }
    return r;
}

static int looks_all(tutti_queue *q, int rank, int *got)
{
    tutti_queue_message m;
    int r;
    for (*got = 0; (r = tutti_queue_look_at("explore", q, &m, NULL)) == 0; ++*got) {
        compare(rank, *got, m.data, m.bytes);
        tutti_queue_release(q, &m);
    }
    return r;
}

/* note 0: of the making; 1: the end */
static void queue_of(int rank, tutti_comm *world, bool holds)
{
    tutti_queue *q;
    tutti_queue_options options = { .room = holds ? HELD_ROOM : ROOM };
    int got = 0, r = tutti_queue_create_at("explore", world, 0, &options, &q);
    explore_note(rank, 0, r);
    if (r < 0)
        return;
    if (rank == 0) {
        r = puts_all(q, holds ? HELD : 0, holds ? HELD_MESSAGES : MESSAGES);
        if (!holds)
            meets(world);
        tutti_queue_close(q);
    } else
        r = holds ? holds_one(q, rank, &got) : gets_all(q, rank, world, &got);
    if (rank != 0 && got < (int)explore_shared[PUT])
        explore_wrong("rank %d got %d messages, and %d were put", rank, got,
                      (int)explore_shared[PUT]);
    explore_note(rank, 1, r);
    meets(world);
}

static void feeds_loans(int rank, tutti_comm *world)
{
    tutti_queue *q;
    tutti_queue_options options = { .room = ROOM };
    int got = 0, r = tutti_queue_create_at("explore", world, 0, &options, &q);
    explore_note(rank, 0, r);
    if (r < 0)
        return;
    if (rank == 0) {
        r = lends_all(q, MESSAGES);
        tutti_queue_close(q);
    } else
        r = looks_all(q, rank, &got);
    if (rank != 0 && got < (int)explore_shared[PUT])
        explore_wrong("rank %d got %d messages, and %d were put", rank, got,
                      (int)explore_shared[PUT]);
    explore_note(rank, 1, r);
    meets(world);
}

/* The ring is full; the reader reads one, and does not come again. */
static void feeds_full(int rank, tutti_comm *world)
{
    tutti_queue_options options = { .room = ROOM };
    tutti_queue *q;
    char bytes[BYTES_MOST] = { 0 };
    size_t room = sizeof bytes;
    int r = tutti_queue_create_at("explore", world, 0, &options, &q);
    explore_note(rank, 0, r);
    for (int n = 0; rank == 0 && n <= FULL && r == 0; n++)
        r = tutti_queue_put_at("explore", q, bytes, bytes_of(0), NULL);
    if (rank != 0)
        r = tutti_queue_get_at("explore", q, bytes, &room, NULL);
    if (r < 0)
        explore_wrong("rank %d: %d", rank, r);
    meets(world);
}

/* The reader is rank 0, whose other thread closes its end as soon as there is one. */
static tutti_queue *to_close;

static void feeds_closed(int rank, tutti_comm *world)
{
    tutti_queue_options options = { .room = ROOM };
    tutti_queue *q;
    char bytes[BYTES_MOST];
    size_t room = sizeof bytes;
    int r = tutti_queue_create_at("explore", world, 1, &options, &q);
    explore_note(rank, 0, r);
    if (rank == 0) {
        to_close = q;
        explore_step();
        explore_shared[MADE] = 1;
        explore_step();
        r = tutti_queue_get_at("explore", q, bytes, &room, NULL);
        explore_note(rank, 1, r);
    }
    meets(world);
}

static void closes(int rank, tutti_comm *world)
{
    (void)rank;
    (void)world;
    while (!explore_shared[MADE])
        sched_yield();
    explore_step();
    tutti_queue_close(to_close);
}

static void check_closed(void)
{
    if (note[0].there[1] && note[0].result[1] != -ECANCELED)
        explore_wrong("the get of a closed end gave %d", note[0].result[1]);
}

/* Rank 0 has its calls under way: its own thread and the progress thread make the steps. They are
 * two gets, or as many puts as have room, and one more, of which the reader reads one. */
static void feeds_works(int rank, tutti_comm *world, bool gets)
{
    tutti_queue_options options = { .room = ROOM };
    tutti_queue *q;
    tutti_work *work[FULL + 1] = { NULL };
    char bytes[FULL + 1][BYTES_MOST] = { { 0 } };
    size_t room[FULL + 1] = { BYTES_MOST, BYTES_MOST };
    int calls = gets ? 2 : FULL + 1;
    int r = tutti_queue_create_at("explore", world, gets, &options, &q);
    explore_note(rank, 0, r);
    for (int k = 0; k < calls && rank == 0 && r == 0; k++) {
        tutti_call call = { .work = &work[k] };
        r = gets ? tutti_queue_get_at("explore", q, bytes[k], &room[k], &call)
                 : tutti_queue_put_at("explore", q, bytes[k], bytes_of(0), &call);
    }
    for (int k = 0; k < calls && work[k]; k++) {
        int s = tutti_wait_at("explore", work[k], -1);
        if (s == 0 && r < 0)
            explore_wrong("call %d went well behind one that gave %d", k, r);
        if (s == 0 && gets)
            compare(rank, k, bytes[k], room[k]);
        r = r == 0 ? s : r;
    }
    if (rank == 1 && r == 0)
        r = gets ? puts_all(q, 0, 2) : tutti_queue_get_at("explore", q, bytes[0], &room[0], NULL);
    explore_note(rank, 1, r);
    meets(world);
}

static void feeds_gets(int rank, tutti_comm *world) { feeds_works(rank, world, true); }
static void feeds_puts(int rank, tutti_comm *world) { feeds_works(rank, world, false); }

/* Rank 0 has a get under way, and rank 1 aborts the queue's comm: whoever makes the steps hears of
 * it. */
static void feeds_aborted(int rank, tutti_comm *world)
{
    tutti_queue_options options = { .room = ROOM };
    tutti_queue *q;
    tutti_work *work = NULL;
    char bytes[BYTES_MOST];
    size_t room = sizeof bytes;
    int r = tutti_queue_create_at("explore", world, 1, &options, &q);
    explore_note(rank, 0, r);
    if (rank == 1 && r == 0)
        tutti_comm_abort(q->comm, "enough");
    if (rank == 0 && r == 0)
        r = tutti_queue_get_at("explore", q, bytes, &room, &(tutti_call){ .work = &work });
    if (work)
        r = tutti_wait_at("explore", work, -1);
    explore_note(rank, 1, r);
    meets(world);
}

static void check_aborted(void)
{
    if (note[0].there[1] && note[0].result[1] != -ECANCELED)
        explore_wrong("the get of an aborted queue gave %d", note[0].result[1]);
}

static void check_works(void)
{
    for (int p = 0; p < 2; p++)
        if (note[p].there[1] && !explore_killed[p] && note[p].result[1] != 0
            && (note[p].result[1] != -EOWNERDEAD || !explore_any_killed()))
            explore_wrong("rank %d: %d", p, note[p].result[1]);
}

static void feeds(int rank, tutti_comm *world) { queue_of(rank, world, false); }
static void feeds_held(int rank, tutti_comm *world) { queue_of(rank, world, true); }

static void check_ends(void)
{
    for (int p = 0; p < EXPLORE_RANKS; p++)
        for (int k = 0; k < 2; k++) {
            int r = note[p].result[k], ends = k == 1 && p != 0 ? -ESHUTDOWN : 0;
            if (note[p].there[k] && r != ends && !explore_killed[p]
                && (r != -EOWNERDEAD || !explore_any_killed()))
                explore_wrong("rank %d: call %d gave %d", p, k, r);
        }
}

#define EVENTS KILL

const struct scenario scenario_feed = {
    .name = "feed", .ranks = 2, .body = feeds, .check = check_ends, .preemptions = 2,
    .memory = MEMORY_TSO, .own_ends = true, .after = true
};
const struct scenario scenario_feed_weak = {
    .name = "feed_weak", .ranks = 2, .body = feeds, .check = check_ends, .preemptions = 1,
    .memory = MEMORY_WEAK, .own_ends = true
};
const struct scenario scenario_feed_events = {
    .name = "feed_events", .ranks = 2, .body = feeds, .check = check_ends, .preemptions = 1,
    .preemptions_event = 1, .events = EVENTS, .own_ends = true, .after = true
};
const struct scenario scenario_feed_hold = {
    .name = "feed_hold", .ranks = 2, .body = feeds_held, .check = check_ends, .preemptions = 2,
    .memory = MEMORY_TSO, .own_ends = true, .after = true
};
const struct scenario scenario_feed3 = {
    .name = "feed3", .ranks = 3, .body = feeds, .check = check_ends, .preemptions = 3,
    .events = EVENTS, .events_most = 2, .chance = true, .memory = MEMORY_TSO, .own_ends = true,
    .after = true
};
const struct scenario scenario_feed_loan = {
    .name = "feed_loan", .ranks = 2, .body = feeds_loans, .check = check_ends, .preemptions = 1,
    .events = EVENTS, .memory = MEMORY_TSO, .own_ends = true, .after = true
};
const struct scenario scenario_feed_full = {
    .name = "feed_full", .ranks = 2, .body = feeds_full, .preemptions = 3, .memory = MEMORY_TSO,
    .own_ends = true
};
const struct scenario scenario_feed_close = {
    .name = "feed_close", .ranks = 2, .helpers = 1, .body = feeds_closed, .helper = closes,
    .check = check_closed, .preemptions = 2, .memory = MEMORY_TSO, .own_ends = true
};
const struct scenario scenario_feed_gets = {
    .name = "feed_gets", .ranks = 2, .helpers = 1, .threads = true, .body = feeds_gets,
    .check = check_works, .preemptions = 2, .own_ends = true
};
const struct scenario scenario_feed_gets_events = {
    .name = "feed_gets_events", .ranks = 2, .helpers = 1, .threads = true, .body = feeds_gets,
    .check = check_works, .preemptions = 1, .preemptions_event = 1, .events = EVENTS,
    .own_ends = true
};
const struct scenario scenario_feed_puts = {
    .name = "feed_puts", .ranks = 2, .helpers = 1, .threads = true, .body = feeds_puts,
    .check = check_works, .preemptions = 2, .own_ends = true
};
const struct scenario scenario_feed_gets_abort = {
    .name = "feed_gets_abort", .ranks = 2, .helpers = 1, .threads = true, .body = feeds_aborted,
    .check = check_aborted, .preemptions = 2, .own_ends = true
};
