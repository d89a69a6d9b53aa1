/* ctest: timeout=300 labels=tsan */
/* Threads of several ranks wait for each other: nothing can end that, so all get -EDEADLK and the
 * story. Nothing here has a deadline: what is not found hangs until the job's life is over. That it
 * is not found where somebody could still help is cycle_false_alarm_test's. */
#include "group/comm.h"
#include "support/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { BEGUN = 0, GO = 1, OVER = 2, LARGE = 1 << 20 };

static _Thread_local tutti_comm *a, *b, *c;

/* Which ranks the story names, as "rank N in ". */
static bool tells(tutti_comm *comm, int ranks)
{
    const char *story = tutti_explain(comm);
    bool all = strstr(story, "never end") && strstr(story, "cycle_test.c");
    for (int r = 0; r < ranks; r++) {
        char name[32];
        snprintf(name, sizeof name, "  rank %d in ", r);
        all &= strstr(story, name) != NULL;
    }
    return all;
}

/* Rank 0 in a barrier of one comm, rank 1 in a barrier of another. */
static int body_two_comms(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_comm_split(world, 0, 0, &a), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &b), 0);
    CHECK_IS(tutti_set_timeout(a, -1), 0);
    CHECK_IS(tutti_set_timeout(b, -1), 0);
    CHECK_IS(tutti_barrier(a, NULL), 0);
    tutti_comm *mine = rank ? b : a, *other = rank ? a : b;
    CHECK_IS(tutti_barrier(mine, NULL), -EDEADLK);
    CHECK(tells(mine, 2));
    CHECK(strstr(tutti_explain(mine), "of comm 2 at")
          && strstr(tutti_explain(mine), "of comm 3 at"));
    CHECK(strstr(tutti_explain(mine), rank ? "waits for rank 0" : "waits for rank 1"));
    CHECK_IS(tutti_barrier(mine, NULL), -ECANCELED);
    CHECK_IS(tutti_barrier(other, NULL), -EDEADLK);          /* the first call here that meets it */
    CHECK_IS(tutti_barrier(other, NULL), -ECANCELED);
    CHECK_IS(tutti_comm_free(a), 0);
    CHECK_IS(tutti_comm_free(b), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static int make_pairs(tutti_comm *world, int rank)
{
    static const int list[3][2] = { { 0, 1 }, { 1, 2 }, { 0, 2 } };
    tutti_comm *made[3] = { NULL, NULL, NULL };
    for (int i = 0; i < 3; i++)
        if (list[i][0] == rank || list[i][1] == rank)
            CHECK_IS(tutti_comm_create(world, list[i], 2, &made[i]), 0);
    a = made[0];
    b = made[1];
    c = made[2];
    return 0;
}

/* 0 waits for 1, 1 for 2, 2 for 0; different collectives. */
static int body_three_comms(tutti_comm *world, int rank)
{
    int x[2] = { rank, 0 };
    CHECK_IS(make_pairs(world, rank), 0);
    if (rank == 0)
        CHECK_IS(tutti_barrier(a, NULL), -EDEADLK);
    if (rank == 1)
        CHECK_IS(tutti_all_reduce(x, x, 1, TUTTI_I32, TUTTI_SUM, b, NULL), -EDEADLK);
    if (rank == 2)
        CHECK_IS(tutti_broadcast(x, 1, TUTTI_I32, 0, c, NULL), -EDEADLK);
    CHECK(tells(rank == 0 ? a : rank == 1 ? b : c, 3));
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Rank 2 is in rank 0's collective: the same end for both. Rank 3 only waits for a message of rank
 * 0, and gets it. */
static int body_bystanders(tutti_comm *world, int rank)
{
    int x = 7;
    CHECK_IS(tutti_comm_split(world, rank == 3 ? -1 : 0, 0, &a), 0);
    CHECK_IS(tutti_comm_split(world, rank > 1 ? -1 : 0, 0, &b), 0);
    if (rank < 3)
        CHECK_IS(tutti_barrier(rank == 1 ? b : a, NULL), -EDEADLK);
    if (rank < 3)
        CHECK(tells(rank == 1 ? b : a, 2));
    if (rank == 0)
        CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 3, 0, world, NULL), 0);
    if (rank == 3)
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, 0, NULL, world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* 0 runs the key and waits for 2 in a barrier, 2 for 1 in another, 1 for the key. */
static int body_key(tutti_comm *world, int rank)
{
    CHECK_IS(make_pairs(world, rank), 0);
    if (rank == 0) {
        CHECK_IS(tutti_first_begin("k", world, NULL), 1);
        ranks_say(BEGUN, 1);
        CHECK_IS(tutti_barrier(c, NULL), -EDEADLK);
        CHECK(tells(c, 3));
        CHECK_IS(tutti_first_end("k", 0, world), 0);
    } else if (rank == 1) {
        CHECK_IS(ranks_await(BEGUN, 1), 0);
        CHECK_IS(tutti_first_begin("k", world, NULL), -EDEADLK);
        CHECK(tells(world, 3));
        CHECK_IS(tutti_first_begin("k", world, NULL), 0);    /* and the key is whole */
    } else
        CHECK_IS(tutti_barrier(b, NULL), -EDEADLK);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Rank 1 waits for its turn, which is rank 0's first. The comm of the turns is whole. */
static int body_turn(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_comm_split(world, 0, 0, &a), 0);
    if (rank == 0)
        CHECK_IS(tutti_barrier(a, NULL), -EDEADLK);
    else {
        CHECK_IS(tutti_turn_begin(world, NULL), -EDEADLK);
        CHECK(tells(world, 2));
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0) {
        CHECK_IS(tutti_turn_begin(world, NULL), 0);
        CHECK_IS(tutti_turn_end(world), 0);
    }
    CHECK_IS(tutti_turn_begin(world, NULL), 0);              /* rank 1's first was taken */
    CHECK_IS(tutti_turn_end(world), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Messages against a barrier: one that does not come; one that is too large to be left behind. */
static int body_letters(tutti_comm *world, int rank)
{
    static _Thread_local char large[LARGE];
    int x;
    for (int n = 0; n < 2; n++) {
        CHECK_IS(tutti_comm_split(world, 0, 0, &a), 0);
        if (rank == 0)
            CHECK_IS(tutti_barrier(a, NULL), -EDEADLK);
        else if (n == 0)
            CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, 3, NULL, world, NULL), -EDEADLK);
        else
            CHECK_IS(tutti_send(large, LARGE, TUTTI_U8, 0, 3, world, NULL), -EDEADLK);
        CHECK(tells(rank ? world : a, 2));
        CHECK_IS(tutti_comm_free(a), 0);
        CHECK_IS(tutti_barrier(world, NULL), 0);
    }
    x = rank;
    if (rank == 0)
        CHECK_IS(tutti_send(&x, 1, TUTTI_I32, 1, 3, world, NULL), 0);
    else
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, TUTTI_ANY, NULL, world, NULL), 0);
    CHECK_IS(x, 0);                                     /* and not the message that was withdrawn */
    return 0;
}

/* All receive and nobody sends; rank 0 from whoever it may be. */
static int body_receive(tutti_comm *world, int rank)
{
    int x;
    CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, rank ? 0 : TUTTI_ANY, TUTTI_ANY, NULL, world, NULL),
             -EDEADLK);
    CHECK(tells(world, tutti_size(world)));
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* A key of the store that only the other could set. */
static int body_get(tutti_comm *world, int rank)
{
    char value[8];
    size_t n = sizeof value;
    CHECK_IS(tutti_comm_split(world, 0, 0, &a), 0);
    if (rank == 0) {
        CHECK_IS(tutti_get("no", value, &n, world, NULL), -EDEADLK);
        CHECK(tells(world, 2));
    } else
        CHECK_IS(tutti_barrier(a, NULL), -EDEADLK);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Waiting for handles: of a barrier, of a receive. */
static int body_handles(tutti_comm *world, int rank)
{
    tutti_work *work;
    tutti_call start = { .work = &work };
    int x;
    CHECK_IS(tutti_comm_split(world, 0, 0, &a), 0);
    if (rank == 0) {
        CHECK_IS(tutti_barrier(a, &start), 0);
        CHECK_IS(tutti_wait(work, -1), -EDEADLK);
    } else {
        CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 0, 3, NULL, world, &start), 0);
        CHECK_IS(tutti_wait(work, -1), -EDEADLK);
    }
    CHECK(tells(rank ? world : a, 2));
    CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1 - rank, 3, NULL, world, &start), 0);
    CHECK_IS(tutti_wait(work, 0), -EDEADLK);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* The only thread of a rank waits for what it alone could do. */
static int body_itself(tutti_comm *world, int rank)
{
    static _Thread_local char large[LARGE];
    tutti_work *work;
    const tutti_call start = { .work = &work };
    int x;
    CHECK_IS(tutti_comm_split(world, rank, 0, &a), 0);
    CHECK_IS(tutti_send(large, LARGE, TUTTI_U8, 0, 3, a, &start), 0);
    CHECK_IS(tutti_wait(work, -1), -EDEADLK);
    CHECK(strstr(tutti_explain(a), "never end")
          && strstr(tutti_explain(a), rank ? "waits for rank 1" : "waits for rank 0"));
    CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, TUTTI_ANY, 3, NULL, a, &start), 0);
    CHECK_IS(tutti_wait(work, 0), -EDEADLK);
    CHECK_IS(tutti_barrier(a, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Making comms is waiting, too. */
static int body_making(tutti_comm *world, int rank)
{
    int list[2] = { 0, 1 };
    tutti_comm *made;
    CHECK_IS(tutti_comm_split(world, 0, 0, &a), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &b), 0);
    if (rank == 0)
        CHECK_IS(tutti_comm_split(a, 0, 0, &made), -EDEADLK);
    else
        CHECK_IS(tutti_barrier(b, NULL), -EDEADLK);
    CHECK_IS(tutti_comm_free(b), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &b), 0);
    if (rank == 0)
        CHECK_IS(tutti_comm_create(world, list, 2, &made), -EDEADLK);
    else
        CHECK_IS(tutti_barrier(b, NULL), -EDEADLK);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* ---- other threads ---- */

struct call { tutti_comm *comm; int result; };

static void *call_barrier(void *arg)
{
    struct call *call = arg;
    call->result = tutti_barrier(call->comm, NULL);
    return NULL;
}

static void call_on_b(int error, void *arg)
{
    ranks_say(BEGUN, error == 0 && tutti_set("k", "v", 1, arg) == 0 ? 1 : 2);
}

/* `done` of rank 1 has called on the comm, in the library's own thread; that does nothing of its
 * own any more. */
static int body_after_done(tutti_comm *world, int rank)
{
    tutti_work *work;
    int x;
    CHECK_IS(tutti_comm_split(world, 0, 0, &a), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &b), 0);
    if (rank == 1) {
        CHECK_IS(tutti_barrier(a, &(tutti_call){ .work = &work, .done = call_on_b, .done_arg = b }),
                 0);
        ranks_say(GO, 1);
        CHECK_IS(ranks_await(BEGUN, 1), 0);
        CHECK_IS(load_acquire32(&page->word[BEGUN]), 1);
        CHECK_IS(tutti_wait(work, 0), 0);
    } else {
        CHECK_IS(ranks_await(GO, 1), 0);
        CHECK_IS(tutti_barrier(a, NULL), 0);
    }
    CHECK_IS(tutti_recv(&x, 1, TUTTI_I32, 1 - rank, 0, NULL, b, NULL), -EDEADLK);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

/* Rank 1's first barrier on a is another thread's, which has ended since; its second thread waits
 * as it does. */
static int body_ended_thread(tutti_comm *world, int rank)
{
    pthread_t thread;
    CHECK_IS(tutti_comm_split(world, 0, 0, &a), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &b), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
    struct call call = { a, 1 };
    if (rank == 1) {
        CHECK_IS(pthread_create(&thread, NULL, call_barrier, &call), 0);
        CHECK_IS(pthread_join(thread, NULL), 0);
        CHECK_IS(call.result, 0);
        CHECK_IS(tutti_barrier(b, NULL), -EDEADLK);
    } else {
        CHECK_IS(tutti_barrier(a, NULL), 0);
        CHECK_IS(tutti_barrier(a, NULL), -EDEADLK);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void *call_two_barriers(void *arg)
{
    struct call *call = arg;
    call[0].result = tutti_barrier(call[0].comm, NULL);
    ranks_say(BEGUN, 1);
    call[1].result = tutti_barrier(call[1].comm, NULL);
    return NULL;
}

/* Both threads of rank 1 have called on the comm in which rank 0 waits, and each waits for rank 0
 * in another one. All three calls end. */
static int body_two_threads(tutti_comm *world, int rank)
{
    pthread_t thread;
    CHECK_IS(tutti_comm_split(world, 0, 0, &a), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &b), 0);
    CHECK_IS(tutti_comm_split(world, 0, 0, &c), 0);
    struct call call[2] = { { a, 1 }, { b, 1 } };
    if (rank == 0) {
        CHECK_IS(tutti_barrier(a, NULL), 0);
        CHECK_IS(tutti_barrier(a, NULL), -EDEADLK);
        CHECK(tells(a, 2) && strstr(tutti_explain(a), "of comm 3 at")
              && strstr(tutti_explain(a), "of comm 4 at"));
    } else {
        CHECK_IS(pthread_create(&thread, NULL, call_two_barriers, call), 0);
        CHECK_IS(ranks_await(BEGUN, 1), 0);     /* before it has called, nobody reckons with it */
        CHECK_IS(tutti_barrier(c, NULL), -EDEADLK);
        CHECK_IS(pthread_join(thread, NULL), 0);
        CHECK_IS(call[0].result, 0);
        CHECK_IS(call[1].result, -EDEADLK);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

#define OF(body, ranks) \
    static void test_##body(void **state) \
    { \
        (void)state; \
        assert_int_equal(ranks_run_either(ranks, body_##body), 0); \
    }

OF(two_comms, 2)
OF(three_comms, 3)
OF(bystanders, 4)
OF(key, 3)
OF(turn, 2)
OF(letters, 2)
OF(receive, 3)
OF(get, 2)
OF(handles, 2)
OF(itself, 2)
OF(making, 2)
OF(after_done, 2)
OF(ended_thread, 2)
OF(two_threads, 2)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_comms), cmocka_unit_test(test_three_comms),
        cmocka_unit_test(test_bystanders), cmocka_unit_test(test_key), cmocka_unit_test(test_turn),
        cmocka_unit_test(test_letters), cmocka_unit_test(test_receive), cmocka_unit_test(test_get),
        cmocka_unit_test(test_handles), cmocka_unit_test(test_itself),
        cmocka_unit_test(test_making), cmocka_unit_test(test_after_done),
        cmocka_unit_test(test_ended_thread), cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
