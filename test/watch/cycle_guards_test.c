/* ctest: timeout=120 labels=tsan */
/* What keeps a cycle of waits from being one, guard by guard. One thread plays three ranks: it says
 * what each of them waits for and lets it look, in an order of the test's own, and in between puts
 * into the arena what a helper would have put there: work under way, a `done` that is due, a second
 * thread. With each of these nothing may be found, however often all look; without it the cycle
 * must be. So each guard has a row of its own that turns red when it is gone, without a thread that
 * helps and without a clock. */
#include "group/comm.h"
#include "support/ranks.h"
#include "watch/cycle.h"
#include "watch/wait_graph.h"
#include "watch/threads.h"
#include "watch/verdict.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3, READY = 0, OVER = 1, ROUNDS = 8, COMMS = 3 };
enum { W, A, B };                           /* the comms: the world, and two others of all ranks */

static tutti_comm *comm_of[N][COMMS];

/* ---- one rank as it is played ---- */

static struct play { int comm; struct cycle_wait wait; } play[N];
static int players;                                  /* how many of them wait */

static struct threads *threads_of(int r) { return &comm_of[r][W]->world->threads; }
static struct seat *seat(int r) { return threads_of(r)->seat; }
static struct watch *watch_of(int r) { return &comm_of[r][play[r].comm]->watch; }
static struct member *member(int comm, int r) { return comm_of[r][comm]->watch.mine; }
static uint64_t next_of(int comm) { return comm_of[0][comm]->seq + 1; }

static void letter(int r, enum kind kind, int about)
{
    play[r] = (struct play){ W, { kind, 0, 0, about } };
}

static void barrier(int r, int comm)
{
    play[r] = (struct play){ comm, { KIND_BARRIER, 0, next_of(comm), -1 } };
}

static void look(int r)
{
    if (play[r].wait.seq)
        cycle_patient(watch_of(r), play[r].wait.seq);
    cycle_look(watch_of(r), &play[r].wait);
}

static bool doomed(int r)
{
    if (!play[r].wait.seq)
        return cycle_doomed(threads_of(r));
    return verdict_why(load_acquire64(&watch_of(r)->slot->verdict)) == WHY_DEADLOCK;
}

static void over(void)
{
    for (int r = 0; r < N; r++) {
        cycle_over(threads_of(r));
        for (int c = 0; c < COMMS; c++)
            store_release64(&comm_of[r][c]->watch.slot->verdict, 0);
    }
}

/* Everybody who waits looks again and again: does it end as a cycle? Then it is as if nobody had
 * ever waited. */
static bool ends(void)
{
    bool found = false;
    for (int i = 0; i < ROUNDS && !found; i++)
        for (int r = 0; r < players && !found; r++) {
            look(r);
            found = doomed(0) || doomed(1);
        }
    over();
    return found;
}

/* ---- what could help ---- */

struct row { const char *what; shared32 *word; uint32_t value; bool helps; };

/* Each row alone: with it the waits end as a cycle, or not; and without it they do. */
static int each(const char *scene, const struct row *rows, int n)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        uint32_t before = load_acquire32(rows[i].word);
        store_release32(rows[i].word, rows[i].value);
        bool with = ends();
        store_release32(rows[i].word, before);
        bool without = ends();
        if (with != rows[i].helps && without)
            continue;
        fprintf(stderr, "%s, %s: with it %s, without it %s\n", scene, rows[i].what,
                with ? "a cycle" : "none", without ? "a cycle" : "none");
        wrong++;
    }
    return wrong;
}
#define EACH(scene, rows) each(scene, rows, (int)(sizeof(rows) / sizeof(rows)[0]))

static int promises(void)
{
    const struct row rows[] = {
        { "a promise of rank 0", &seat(0)->promises, 1, true },
        { "a promise of rank 1", &seat(1)->promises, 1, true },
        { "a promise of rank 2, which has no part in it", &seat(2)->promises, 1, false },
    };
    int wrong = 0;
    players = 2;
    barrier(0, A);
    barrier(1, B);
    wrong += EACH("two barriers", rows);
    letter(0, KIND_RECV, 1);
    wrong += EACH("recv and barrier", rows);
    letter(1, KIND_TURN_BEGIN, 0);
    wrong += EACH("recv and turn", rows);
    return wrong;
}

/* What rank 1 has under way helps who waits for that and for nothing else. */
static int letters(void)
{
    const struct row rows[] = {
        { "a receive of rank 1 under way", &member(W, 1)->letters[1], 1, false },
        { "a send of rank 1 under way", &member(W, 1)->letters[0], 1, false },
        { "a receive of rank 0 itself", &member(W, 0)->letters[1], 1, false },
        { "a send of rank 0 itself", &member(W, 0)->letters[0], 1, false },
        { "a receive on another comm", &member(A, 1)->letters[1], 1, false },
        { "a send on another comm", &member(A, 1)->letters[0], 1, false },
    };
    static const enum kind kind[] = { KIND_SEND, KIND_RECV, KIND_PROBE, KIND_TURN_BEGIN };
    int wrong = 0;
    players = 2;
    for (int i = 0; i < 4; i++) {
        struct row mine[sizeof rows / sizeof rows[0]];
        memcpy(mine, rows, sizeof rows);
        mine[0].helps = kind[i] == KIND_SEND;
        mine[1].helps = kind[i] == KIND_RECV || kind[i] == KIND_PROBE;
        letter(0, kind[i], 1);
        barrier(1, B);
        wrong += EACH(kind_name(kind[i]), mine);
    }
    return wrong;
}

/* The word `queued` and the arrival are 64 bits wide; numbers here are small. */
static int queued(void)
{
    const uint32_t next_a = (uint32_t)next_of(A), next_b = (uint32_t)next_of(B);
    const struct row rows[] = {
        { "rank 1 has queued it", low_half(&member(A, 1)->queued), next_a, true },
        { "rank 1 has queued a later one", low_half(&member(A, 1)->queued), next_a + 3, true },
        { "rank 1 has queued the one before", low_half(&member(A, 1)->queued), next_a - 1, false },
        { "rank 0 has queued what rank 1 waits in", low_half(&member(B, 0)->queued), next_b, true },
        { "rank 1 has arrived", low_half(&member(A, 1)->arrival[next_a & 1].seq), next_a, true },
    };
    players = 2;
    barrier(0, A);
    barrier(1, B);
    /* Of the third rank it is as with rank 1: it is absent, too, and waits for nothing. */
    return EACH("two barriers", rows);
}

/* Rank 2 is in what rank 0 waits for: with a deadline of its own, as long as it has not said that
 * it has none. */
static int deadlines(void)
{
    const uint32_t next = (uint32_t)next_of(A);
    shared64 *patient = &member(A, 2)->patient;
    const struct row come[] = {
        { "rank 2 has come", low_half(&member(A, 2)->arrival[next & 1].seq), next, true },
        { "rank 2 has queued it", low_half(&member(A, 2)->queued), next, true },
    };
    const struct row said[] = {
        { "rank 2 has come, without a deadline", low_half(&member(A, 2)->arrival[next & 1].seq),
          next, false },
        { "rank 2 has queued it, without a deadline", low_half(&member(A, 2)->queued),
          next, false },
    };
    int wrong = 0;
    players = 2;
    barrier(0, A);
    barrier(1, B);
    store_release64(patient, next - 1);
    wrong += EACH("not said", come);
    store_release64(patient, next);
    wrong += EACH("said", said);
    store_release64(patient, 0);
    return wrong;
}

static int threads(void)
{
    shared32 *all = &seat(1)->threads;
    const struct row rows[] = {
        { "a second thread of rank 1 has called", all, 1 | 2, true },
        { "more threads have than there are numbers", all, 1 | THREADS_MORE, true },
        { "all that have called are gone", all, 0, true },
        { "a second thread of rank 2, which has no part in it", &seat(2)->threads, 1 | 2, false },
    };
    int wrong = 0;
    players = 2;
    barrier(0, A);
    barrier(1, B);
    wrong += EACH("two barriers", rows);
    letter(0, KIND_GET, 0);
    const struct row get[] = {
        { "a second thread of rank 0", &seat(0)->threads, 1 | 2, true },
        { "a second thread of rank 1", all, 1 | 2, true },
        { "rank 2 has not left", &seat(2)->state, SEAT_JOINED, true },
    };
    uint32_t state = load_acquire32(&seat(2)->state);
    store_release32(&seat(2)->state, SEAT_LEFT);
    wrong += EACH("a key of the store", get);
    store_release32(&seat(2)->state, state);
    return wrong;
}

/* The second thread of rank 1 waits as well: then nobody is left. */
static int both_threads_wait(void)
{
    struct threads *t = threads_of(1);
    shared32 *callers = &seat(1)->threads;
    int wrong = 0;
    players = 2;
    barrier(0, A);
    barrier(1, B);
    store_release32(callers, 1 | 2);
    for (int i = 0; i < ROUNDS; i++) {
        look(0);
        look(1);
        wrong += doomed(0) || doomed(1);
    }
    for (int i = 0; i < ROUNDS; i++) {
        for (int n = 0; n < 2; n++) {                /* this thread is number n of rank 1 */
            store_release64(&t->self[0], n == 0 ? threads_self() : 0);
            store_release64(&t->self[1], n == 1 ? threads_self() : 0);
            look(1);
        }
        look(0);
    }
    wrong += !doomed(0) || !doomed(1);
    cycle_over(t);
    store_release64(&t->self[0], threads_self());
    store_release64(&t->self[1], 0);
    store_release32(callers, 1);
    over();
    return wrong;
}

/* A wait for any rank can be ended by each of them; a collective lacks all that are absent, and one
 * that never comes is enough. */
static int any_and_all(void)
{
    int wrong = 0;
    letter(0, KIND_RECV, -1);
    letter(1, KIND_RECV, 0);
    letter(2, KIND_RECV, 1);
    players = 2;
    wrong += ends();                                /* rank 2 computes */
    players = 3;
    wrong += !ends();
    /* where all have come: it waits, but will go on */
    play[2] = (struct play){ A, { KIND_BARRIER, 0, comm_of[0][A]->seq, -1 } };
    wrong += ends();
    players = 2;
    barrier(0, A);
    wrong += !ends();                               /* rank 1 will not come, whatever rank 2 does */
    letter(1, KIND_RECV, 2);
    wrong += ends();                                /* rank 2 can help rank 1 */
    return wrong;
}

/* ---- confirming ---- */

/* After which look it is found: "0" and "1" are the ranks that look, in order; 0: not at all. */
static int found_at(const char *order)
{
    int at = 0;
    for (int i = 0; order[i] && !at; i++) {
        look(order[i] - '0');
        at = doomed(0) || doomed(1) ? i + 1 : 0;
    }
    over();
    return at;
}

/* Both must have looked in vain twice since a first walk has found both asleep: one look may have
 * been under way then. */
static int twice(void)
{
    static const struct { const char *order; int at; } rows[] = {
        { "010101010101", 6 }, { "101010101010", 6 }, { "0100000000000", 0 },
        { "01000000010000", 0 }, { "010000000100001", 15 }, { "0011", 0 }, { "00111", 0 },
        { "00111001", 8 }, { "1000000000", 0 }, { "1011111111", 0 }, { "10111111110", 0 },
        { "1011111111010", 13 },
    };
    int wrong = 0;
    players = 2;
    for (int how = 0; how < 2; how++) {
        if (how == 0) {
            letter(0, KIND_RECV, 1);
            letter(1, KIND_RECV, 0);
        } else {
            barrier(0, A);
            barrier(1, B);
        }
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            int at = found_at(rows[i].order);
            if (at == rows[i].at)
                continue;
            fprintf(stderr, "%s: looks by %s: found at %d, should be at %d\n",
                    how ? "barriers" : "receives", rows[i].order, at, rows[i].at);
            wrong++;
        }
    }
    return wrong;
}

/* A wait that ends and begins again between two looks of the other is another one, even if it looks
 * the same. */
static int ever_anew(void)
{
    int wrong = 0;
    players = 2;
    letter(0, KIND_RECV, 1);
    letter(1, KIND_RECV, 0);
    for (int i = 0; i < 3 * ROUNDS; i++) {
        look(0);
        for (int k = 0; k < 3; k++)
            look(1);
        cycle_over(threads_of(1));
        wrong += doomed(0);
        look(1);
        wrong += doomed(0) || doomed(1);
    }
    over();
    return wrong;
}

/* Also without an end in between: it waits for something else now. */
static int something_else(void)
{
    struct cycle_wait wait = { KIND_RECV, 0, 0, 1 }, other[] = {
        { KIND_PROBE, 0, 0, 1 }, { KIND_RECV, 1, 0, 1 }, { KIND_RECV, 0, 0, 2 },
        { KIND_RECV, 0, 0, -1 }, { KIND_BARRIER, 0, next_of(W), -1 },
        { KIND_BARRIER, 0, next_of(W) + 1, -1 },
    };
    const struct waiter *own = &seat(0)->waiters[0];
    int wrong = 0;
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        wait = i > 4 ? other[i - 1] : wait;
        cycle_look(&comm_of[0][W]->watch, &wait);
        uint64_t stamp = load_acquire64(&own->stamp);
        cycle_look(&comm_of[0][W]->watch, &wait);
        wrong += load_acquire64(&own->stamp) != stamp || !(stamp & 1);
        cycle_look(&comm_of[0][W]->watch, &other[i]);
        wrong += load_acquire64(&own->stamp) != stamp + 2;
        cycle_look(&comm_of[0][A]->watch, &other[i]);                /* the same on another comm */
        wrong += load_acquire64(&own->stamp) != stamp + 4;
    }
    cycle_over(threads_of(0));
    wrong += (load_acquire64(&own->stamp) & 1) != 0;
    return wrong;
}

/* An end that was meant for an earlier wait, or comes after it, is nobody's. */
static int old_doom(void)
{
    struct waiter *own = &seat(0)->waiters[0];
    int wrong = 0;
    letter(0, KIND_RECV, 1);
    look(0);
    store_release64(&own->doomed, load_acquire64(&own->stamp));
    wrong += !doomed(0);
    cycle_over(threads_of(0));
    wrong += doomed(0);
    look(0);
    wrong += doomed(0);
    over();
    return wrong;
}

/* The last look before it is confirmed. */
static int moved_since_the_walk(void)
{
    struct wait_graph *g = malloc(sizeof *g);
    int wrong = !g;
    players = 2;
    letter(0, KIND_RECV, 1);
    letter(1, KIND_RECV, 0);
    look(0);
    look(1);
    wrong += !wait_graph_walk(g, watch_of(0)->arena, 0, 0) || !wait_graph_same(g);
    cycle_over(threads_of(1));
    wrong += wait_graph_same(g);
    look(1);
    wrong += wait_graph_same(g) || !wait_graph_walk(g, watch_of(0)->arena, 0, 0)
        || !wait_graph_same(g);
    cycle_over(threads_of(1));
    wrong += wait_graph_walk(g, watch_of(0)->arena, 0, 0);
    over();
    free(g);
    return wrong;
}

/* The same while it happens: rank 1's waits end and begin while rank 0 looks, each after a single
   look of its own, so that there is nothing to confirm. Once in a while one wait's stamp and the
   next one's looks fall into one walk. */
static shared32 looking;

static void *begins_anew(void *arg)
{
    struct waiter *own = arg;
    const struct waiter *other = &seat(0)->waiters[0];
    while (load_acquire32(&looking)) {
        uint64_t beats = load_acquire64(&other->beats);
        while (load_acquire32(&looking) && load_acquire64(&other->beats) < beats + 2)
            cpu_pause();
        for (int i = 0; i < 20; i++) {
            store_fence64(&own->stamp, load_acquire64(&own->stamp) + 1);
            store_release64(&own->stamp, load_acquire64(&own->stamp) + 1);
            store_fence64(&own->beats, load_acquire64(&own->beats) + 1);
        }
    }
    return NULL;
}

static int moves_in_the_walk(void)
{
    pthread_t thread;
    int wrong = 0;
    letter(0, KIND_RECV, 1);
    letter(1, KIND_RECV, 0);
    look(1);
    store_release32(&looking, 1);
    wrong += pthread_create(&thread, NULL, begins_anew, &seat(1)->waiters[0]) != 0;
    for (int i = 0; i < ranks_many(40000, 4000) && !wrong; i++) {
        look(0);
        wrong += doomed(0);
    }
    store_release32(&looking, 0);
    pthread_join(thread, NULL);
    over();
    return wrong;
}

/* What stands in a waiter is believed only as far as it can be true. */
static int nonsense(void)
{
    struct waiter *other = &seat(1)->waiters[0];
    struct wait_graph *g = malloc(sizeof *g);
    int wrong = !g;
    letter(0, KIND_RECV, 1);
    letter(1, KIND_RECV, 0);
    look(0);
    look(1);
    const struct { shared32 *word; uint32_t value; } rows[] = {
        { &other->slot, 1u << 30 }, { &other->rank, N }, { low_half(&other->birth), 77 },
        { &other->about, N + 1 }, { &other->about, UINT32_MAX },
        { low_half(&other->stamp), (uint32_t)load_acquire64(&other->stamp) + 1 },
        { &watch_of(0)->slot->state, SLOT_FREE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t before = load_acquire32(rows[i].word);
        store_release32(rows[i].word, rows[i].value);
        bool found = wait_graph_walk(g, watch_of(0)->arena, 0, 0);
        store_release32(rows[i].word, before);
        if (found || !wait_graph_walk(g, watch_of(0)->arena, 0, 0)) {
            fprintf(stderr, "nonsense %zu is believed\n", i);
            wrong++;
        }
    }
    over();
    free(g);
    return wrong;
}

/* Somebody has a reason of his own to end the operation: it stands. */
static int another_reason(void)
{
    uint64_t v = verdict_make(next_of(A), WHY_DEADLINE, 2, 2);
    int wrong = 0;
    players = 2;
    barrier(0, A);
    barrier(1, B);
    store_release64(&watch_of(0)->slot->verdict, v);
    for (int i = 0; i < ROUNDS; i++) {
        look(0);
        look(1);
    }
    wrong += load_acquire64(&watch_of(0)->slot->verdict) != v;
    wrong += doomed(1);                     /* rank 0's wait ends by that, and then it may come */
    over();
    return wrong;
}

/* ---- the threads of a rank ---- */

static int numbers(void)
{
    struct shared { struct seat seat; } *s = aligned_alloc(128, (sizeof *s + 127) / 128 * 128);
    struct threads t = { 0 };
    int wrong = !s;
    memset((void *)s, 0, sizeof *s);
    t.seat = &s->seat;
    for (int i = 0; i < THREADS_MAX; i++)
        store_release64(&t.self[i], i == 3 ? 0 : 1);                 /* others */
    wrong += threads_number(&t) != -1 || threads_known(&t);
    threads_serves = true;
    wrong += !threads_known(&t);            /* the library's own thread is none to reckon with */
    threads_serves = false;
    threads_call(&t);
    wrong += threads_number(&t) != 3 || !threads_known(&t) || load_acquire32(&s->seat.threads) != 8;
    store_release64(&s->seat.waiters[3].stamp, 5);                   /* cancelled in a wait */
    wrong += !threads_end(&t) || load_acquire64(&s->seat.waiters[3].stamp) != 6
        || load_acquire32(&s->seat.threads) != 0;
    wrong += threads_number(&t) != -1 || threads_end(&t);
    store_release64(&t.self[3], 1);                                  /* no number is left */
    threads_call(&t);
    wrong += threads_number(&t) != -1 || load_acquire32(&s->seat.threads) != THREADS_MORE;
    wrong += !threads_known(&t);
    free((void *)s);
    return wrong;
}

/* ---- the ranks that are played ---- */

static int (*scene)(void);

static int body(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_comm_split(world, 0, rank, &comm_of[rank][A]), 0);
    CHECK_IS(tutti_comm_split(world, 0, rank, &comm_of[rank][B]), 0);
    comm_of[rank][W] = world;
    for (int c = 0; c < COMMS; c++)
        CHECK_IS(tutti_barrier(comm_of[rank][c], NULL), 0);
    ranks_count(READY);
    if (rank > 0) {
        CHECK_IS(ranks_await(OVER, 1), 0);
        return 0;
    }
    CHECK_IS(ranks_await(READY, N), 0);
    uint64_t self[N];
    for (int r = 0; r < N; r++) {
        self[r] = load_acquire64(&threads_of(r)->self[0]);
        store_release64(&threads_of(r)->self[0], threads_self());
    }
    int wrong = scene();
    for (int r = 0; r < N; r++)
        store_release64(&threads_of(r)->self[0], self[r]);
    ranks_say(OVER, 1);
    CHECK_IS(wrong, 0);
    return 0;
}

#define OF(name) \
    static void test_##name(void **state) \
    { \
        (void)state; \
        scene = name; \
        assert_int_equal(ranks_run_threads(N, body), 0); \
    }

OF(promises)
OF(letters)
OF(queued)
OF(deadlines)
OF(threads)
OF(both_threads_wait)
OF(any_and_all)
OF(twice)
OF(ever_anew)
OF(something_else)
OF(old_doom)
OF(moved_since_the_walk)
OF(moves_in_the_walk)
OF(nonsense)
OF(another_reason)

static void test_numbers(void **state)
{
    (void)state;
    assert_int_equal(numbers(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises), cmocka_unit_test(test_letters),
        cmocka_unit_test(test_queued), cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_both_threads_wait),
        cmocka_unit_test(test_any_and_all), cmocka_unit_test(test_twice),
        cmocka_unit_test(test_ever_anew), cmocka_unit_test(test_something_else),
        cmocka_unit_test(test_old_doom), cmocka_unit_test(test_moved_since_the_walk),
        cmocka_unit_test(test_moves_in_the_walk), cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_another_reason), cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
