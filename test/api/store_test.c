/* ctest: timeout=300 labels=tsan needs=forks */
/* The store as programs use it: ranks meet by keys, count together, lock by compare_set; beside
 * forks, work, faults and deaths. Waits and their ends: store_wait_test. */
#include "arena/store.h"
#include "base/clock.h"
#include "group/comm.h"
#include "support/ranks.h"
#include "support/store_check.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { GO = 0, READY = 1, DONE_ALL = 2, MIB = 1 << 20 };

static const struct arena *arena_of(tutti_comm *comm) { return &comm->world->arena; }

/* ---- values and arguments ---- */

static int body_values(tutti_comm *world, int rank)
{
    char key[300], value[100] = "", *large = malloc(2 * MIB);
    size_t n = sizeof value;
    int64_t now = 9;
    CHECK(large);
    snprintf(key, sizeof key, "rank %d", rank);
    CHECK_IS(tutti_set(key, "hello", 6, world), 0);
    CHECK_IS(tutti_get(key, value, &n, world, NULL), 0);
    CHECK_IS(n, 6);
    CHECK(!strcmp(value, "hello"));
    CHECK_IS(tutti_set(key, NULL, 0, world), 0);
    n = sizeof value;
    CHECK_IS(tutti_get(key, value, &n, world, NULL), 0);
    CHECK_IS(n, 0);
    CHECK_IS(tutti_get(key, NULL, &n, world, NULL), 0);
    CHECK_IS(tutti_add(key, 1, &now, world), -EINVAL);
    CHECK(ranks_explain(world, "not made by add"));
    CHECK_IS(now, 9);
    CHECK_IS(tutti_delete(key, world), 0);
    CHECK_IS(tutti_delete(key, world), -ENOENT);
    CHECK(ranks_explain(world, "no such key"));
    CHECK_IS(tutti_add(key, -3, NULL, world), 0);
    CHECK_IS(tutti_add(key, INT64_MAX, &now, world), 0);
    CHECK_IS(tutti_add(key, 4, &now, world), 0);
    CHECK(now == INT64_MIN);                         /* wraps */
    n = 4;
    CHECK_IS(tutti_get(key, value, &n, world, NULL), -EMSGSIZE);
    CHECK_IS(n, 8);
    CHECK(ranks_explain(world, "8 bytes"));
    CHECK_IS(tutti_get(key, value, &n, world, NULL), 0);
    CHECK_IS(n, 8);
    CHECK(!memcmp(value, &now, 8));
    CHECK_IS(tutti_compare_set(key, &now, 8, "abc", 3, world), 1);
    CHECK_IS(tutti_compare_set(key, "abd", 3, "x", 1, world), 0);
    CHECK_IS(tutti_compare_set(key, "abcd", 4, "x", 1, world), 0);
    CHECK_IS(tutti_compare_set(key, "ab", 2, "x", 1, world), 0);
    CHECK_IS(tutti_compare_set(key, NULL, 0, "x", 1, world), 0);
    CHECK_IS(tutti_compare_set(key, "abc", 3, NULL, 0, world), 1);
    CHECK_IS(tutti_delete(key, world), 0);
    CHECK_IS(tutti_compare_set(key, "abc", 3, "x", 1, world), 0);
    CHECK_IS(tutti_compare_set(key, NULL, 0, "x", 1, world), 1);
    memset(key, 'a' + rank, sizeof key);
    key[STORE_KEY_MOST] = 0;
    memset(large, rank + 1, STORE_VALUE_MOST);
    CHECK_IS(tutti_set(key, large, STORE_VALUE_MOST, world), 0);
    n = 2 * MIB;
    memset(large, 0, 2 * MIB);
    CHECK_IS(tutti_get(key, large, &n, world, NULL), 0);
    CHECK_IS(n, STORE_VALUE_MOST);
    CHECK(large[0] == rank + 1 && large[n - 1] == rank + 1 && large[n] == 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    free(large);
    return 0;
}

static void test_values(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_values), 0);
}

static int body_arguments(tutti_comm *world, int rank)
{
    char key[300], value[8];
    size_t n = sizeof value;
    tutti_work *work = (tutti_work *)(void *)&rank;
    memset(key, 'k', sizeof key);
    key[STORE_KEY_MOST + 1] = 0;
    const char *const bad[] = { NULL, "", key };
    for (int i = 0; i < 3; i++) {
        int expected = i == 2 ? -EMSGSIZE : -EINVAL;
        CHECK_IS(tutti_set(bad[i], "x", 1, world), expected);
        CHECK(ranks_explain(world, "refused: the key"));
        CHECK_IS(tutti_get(bad[i], value, &n, world, NULL), expected);
        CHECK_IS(tutti_add(bad[i], 1, NULL, world), expected);
        CHECK_IS(tutti_compare_set(bad[i], NULL, 0, "x", 1, world), expected);
        CHECK_IS(tutti_delete(bad[i], world), expected);
    }
    CHECK_IS(tutti_set("k", NULL, 1, world), -EINVAL);
    CHECK_IS(tutti_set("k", value, STORE_VALUE_MOST + 1, world), -EMSGSIZE);
    CHECK(ranks_explain(world, "1048576"));
    CHECK_IS(tutti_compare_set("k", NULL, 1, "x", 1, world), -EINVAL);
    CHECK_IS(tutti_compare_set("k", "x", 1, NULL, 1, world), -EINVAL);
    CHECK_IS(tutti_compare_set("k", value, STORE_VALUE_MOST + 1, "x", 1, world), -EMSGSIZE);
    CHECK_IS(tutti_compare_set("k", "x", 1, value, SIZE_MAX, world), -EMSGSIZE);
    CHECK_IS(tutti_get("k", value, NULL, world, NULL), -EINVAL);
    CHECK_IS(tutti_get("k", NULL, &n, world, NULL), -EINVAL);
    CHECK_IS(tutti_get("k", value, &n, world, &(tutti_call){ .work = &work }), -EINVAL);
    CHECK(work == NULL && ranks_explain(world, "left under way"));
    CHECK_IS(tutti_get("k", value, &n, world, &(tutti_call){ .flags = 2 }), -EINVAL);
    CHECK_IS(tutti_get("k", value, &n, world, &(tutti_call){ .reserved = { 1 } }), -EINVAL);
    CHECK_IS(n, sizeof value);
    CHECK_IS(tutti_set("k", "x", 1, NULL), -EINVAL);
    CHECK_IS(tutti_get("k", value, &n, NULL, NULL), -EINVAL);
    CHECK_IS(tutti_add("k", 1, NULL, NULL), -EINVAL);
    CHECK_IS(tutti_compare_set("k", NULL, 0, "x", 1, NULL), -EINVAL);
    CHECK_IS(tutti_delete("k", NULL), -EINVAL);
    CHECK_IS(tutti_delete("k", world), -ENOENT);     /* none of that has left anything */
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_arguments(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_arguments), 0);
}

/* ---- together ---- */

enum { TICKETS = 2000 };

static int body_add(tutti_comm *world, int rank)
{
    int each = ranks_many(TICKETS, 300), size = tutti_size(world);
    int64_t ticket, before = 0;
    for (int i = 0; i < each; i++) {
        CHECK_IS(tutti_add("tickets", 1, &ticket, world), 0);
        CHECK(ticket > before && ticket <= each * size);
        before = ticket;
        CHECK_IS(page->bytes[ticket]++, 0);         /* plain memory: a number is one rank's alone */
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_add("tickets", 0, &ticket, world), 0);
    CHECK_IS(ticket, each * size);
    if (rank == 0)
        CHECK(store_whole(arena_of(world)));
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_add(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_add), 0);
}

static int body_lock(tutti_comm *world, int rank)
{
    int rounds = ranks_many(300, 50);
    char mine[16];
    uint64_t *count = (uint64_t *)(void *)page->bytes;
    int n = snprintf(mine, sizeof mine, "rank %d", rank);
    for (int i = 0; i < rounds; i++) {
        int r;
        while ((r = tutti_compare_set("lock", NULL, 0, mine, (size_t)n, world)) == 0)
            sched_yield();
        CHECK_IS(r, 1);
        ++*count;                                    /* plain memory: the lock is all there is */
        CHECK_IS(tutti_compare_set("lock", mine, (size_t)n, "going", 5, world), 1);
        CHECK_IS(tutti_delete("lock", world), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(*count, rounds * tutti_size(world));
    return 0;
}

static void test_lock(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_lock), 0);
}

/* The store is the job's: what is set by one comm is found by another, also where the comms have no
 * rank in common. */
static int body_comms(tutti_comm *world, int rank)
{
    tutti_comm *half;
    int value = 0;
    size_t n = sizeof value;
    char mine[16], theirs[16];
    CHECK_IS(tutti_comm_split(world, rank % 2, rank, &half), 0);
    snprintf(mine, sizeof mine, "half %d", rank);
    snprintf(theirs, sizeof theirs, "half %d", rank ^ 1);
    CHECK_IS(tutti_set(mine, &rank, sizeof rank, half), 0);
    CHECK_IS(tutti_get(theirs, &value, &n, half, NULL), 0);
    CHECK_IS(value, rank ^ 1);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(tutti_comm_free(half), 0);
    return 0;
}

static void test_comms(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(4, body_comms), 0);
}

/* ---- what else is about ---- */

static int body_fork(tutti_comm *world, int rank)
{
    char value[8];
    size_t n = sizeof value;
    int status;
    if (rank == 0) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(tutti_set("a", "x", 1, world) != -ECHILD
                  || tutti_get("a", value, &n, world, NULL) != -ECHILD
                  || tutti_add("a", 1, NULL, world) != -ECHILD
                  || tutti_compare_set("a", NULL, 0, "x", 1, world) != -ECHILD
                  || tutti_delete("a", world) != -ECHILD);
        CHECK_IS(waitpid(pid, &status, 0), pid);
        CHECK_IS(status, 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_fork(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(2, body_fork, 0), 0);
}

/* Beside work under way: the journal is the progress thread's, and stays as it is. */
static int body_work(tutti_comm *world, int rank)
{
    char value[8];
    size_t n = sizeof value;
    float x = 1;
    int64_t now;
    for (int i = 0; i < 20; i++) {
        tutti_work *work;
        char key[32];
        snprintf(key, sizeof key, "from 1 %d", i);
        if (rank == 0) {
            CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_F32, TUTTI_MAX, world,
                                      &(tutti_call){ .work = &work }),
                     0);
            uint64_t head = load_acquire64(&world->watch.mine->head);
            CHECK_IS(tutti_set("k", "x", 1, world), 0);
            CHECK_IS(tutti_get("k", value, &n, world, NULL), 0);
            CHECK_IS(tutti_compare_set("k", "x", 1, "y", 1, world), 1);
            CHECK_IS(tutti_delete("k", world), 0);
            CHECK_IS(tutti_add("n", 1, &now, world), 0);
            CHECK_IS(tutti_get("nothing", value, &n, world, &(tutti_call){ .timeout_ms = 5 }),
                     -ETIMEDOUT);
            CHECK_IS(tutti_set("", "x", 1, world), -EINVAL);
            CHECK_IS(load_acquire64(&world->watch.mine->head), head);
            n = snprintf(key, sizeof key, "go %d", i) > 0 ? sizeof value : 0;
            CHECK_IS(tutti_set(key, "", 0, world), 0);
            CHECK_IS(tutti_wait(work, 0), 0);
        } else {
            snprintf(key, sizeof key, "go %d", i);
            n = sizeof value;
            CHECK_IS(tutti_get(key, value, &n, world, NULL), 0);
            CHECK_IS(tutti_all_reduce(&x, &x, 1, TUTTI_F32, TUTTI_MAX, world, NULL), 0);
        }
        n = sizeof value;
    }
    return 0;
}

static void test_work(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_work), 0);
}

static int body_fault(tutti_comm *world, int rank)
{
    CHECK_IS(tutti_fault(world, "1:add#2:abort"), 0);
    CHECK_IS(tutti_add("n", 1, NULL, world), 0);
    CHECK_IS(tutti_set("x", "x", 1, world), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 1) {
        CHECK_IS(tutti_add("n", 1, NULL, world), -ECANCELED);
        ranks_say(GO, 1);
        return 0;
    }
    CHECK_IS(ranks_await(GO, 1), 0);
    /* it meets the abort here, and the rest is as everywhere */
    CHECK_IS(tutti_set("n", "x", 1, world), -ECANCELED);
    CHECK_IS(tutti_set("n", "x", 1, world), -ECANCELED);
    return 0;
}

static void test_fault(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_fault), 0);
}

static int nested(void *arg)
{
    char value[8];
    size_t n = sizeof value;
    return tutti_set("a", "x", 1, arg) == -EDEADLK
            && tutti_get("a", value, &n, arg, NULL) == -EDEADLK
        ? 0
        : 1;
}

static int body_nested(tutti_comm *world, int rank)
{
    (void)rank;
    CHECK_IS(tutti_once("key", nested, world, world, NULL), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_nested(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_nested), 0);
}

static int body_full(tutti_comm *world, int rank)
{
    static char value[100000];
    char key[16];
    int r = 0, n = 0;
    size_t bytes = sizeof value;
    if (rank == 0) {
        for (; r == 0; n++) {
            snprintf(key, sizeof key, "%d", n);
            r = tutti_set(key, value, sizeof value, world);
        }
        CHECK_IS(r, -ENOMEM);
        CHECK(n > 15 && n <= 21);
        CHECK(ranks_explain(world, "full") && ranks_explain(world, "TUTTI_STORE_BYTES")
              && ranks_explain(world, "2 MiB"));
        CHECK_IS(tutti_get("0", value, &bytes, world, NULL), 0);
        CHECK_IS(tutti_delete("0", world), 0);
        CHECK_IS(tutti_set(key, value, sizeof value, world), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);
    return 0;
}

static void test_full(void **state)
{
    (void)state;
    setenv("TUTTI_STORE_BYTES", "1M", 1);            /* rounded up */
    int r = ranks_run_either(2, body_full);
    unsetenv("TUTTI_STORE_BYTES");
    assert_int_equal(r, 0);
}

/* Until that rank has come round fifty times more. */
static int goes_on(int rank)
{
    uint64_t before = load_acquire64(&page->number[rank]);
    for (uint64_t end = clock_ns() + UINT64_C(60000000000); clock_ns() < end; sched_yield())
        if (load_acquire64(&page->number[rank]) >= before + 50)
            return 0;
    return -1;
}

/* Ranks 1 and 2 are killed in the midst of it; rank 3 goes on and finds whole values; what there
 * is adds up. */
static int body_killed(tutti_comm *world, int rank)
{
    char key[16], value[600];
    int64_t now;
    for (int i = 0; rank && !load_acquire32(&page->word[GO]); i++) {
        size_t n = (size_t)(i * 7 % (int)sizeof value);
        snprintf(key, sizeof key, "%d", i % 10);
        memset(value, (int)n & 127, n);
        CHECK_IS(tutti_set(key, value, n, world), 0);
        CHECK_IS(tutti_add("sum", 1, &now, world), 0);
        n = sizeof value;
        CHECK_IS(tutti_get(key, value, &n, world, NULL), 0);
        for (size_t k = 0; k < n; k++)
            CHECK_IS(value[k], n & 127);
        fetch_add64(&page->number[rank], 1);
    }
    if (rank)
        return 0;
    for (int r = 1; r <= 2; r++) {
        CHECK_IS(goes_on(r), 0);
        CHECK_IS(kill(arena_of(world)->seats[r].id.pid, SIGKILL), 0);
    }
    CHECK_IS(goes_on(3), 0);
    ranks_say(GO, 1);
    size_t n = 0;
    CHECK_IS(tutti_get("nobody", NULL, &n, world, NULL), -EOWNERDEAD);       /* all are gone */
    CHECK(store_whole(arena_of(world)));
    CHECK_IS(tutti_add("sum", 0, &now, world), 0);
    int64_t counted = (int64_t)(load_acquire64(&page->number[1]) + load_acquire64(&page->number[2])
                                + load_acquire64(&page->number[3]));
    CHECK(now >= counted && now <= counted + 2);
    return 0;
}

static void test_killed(void **state)
{
    (void)state;
    for (int i = 0; i < ranks_many(20, 5); i++)
        assert_int_equal(ranks_run(4, body_killed, 1 << 1 | 1 << 2), 0);
}

int main(void)
{
    setenv("TUTTI_SPAN_BYTES", "16M", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_arguments), cmocka_unit_test(test_add),
        cmocka_unit_test(test_lock), cmocka_unit_test(test_comms), cmocka_unit_test(test_work),
        cmocka_unit_test(test_nested), cmocka_unit_test(test_full), cmocka_unit_test(test_fault),
        cmocka_unit_test(test_fork), cmocka_unit_test(test_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
