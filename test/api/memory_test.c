/* ctest: timeout=300 labels=tsan needs=forks */
/* Memory in the arena between ranks: named by one, seen and written by all, outliving its owner;
 * and what is refused. */
#include "support/ranks.h"

#include "group/comm.h"
#include "group/place.h"
#include "os/maps.h"
#include "os/memory.h"
#include "support/skip.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NAMED = 0, SEEN = 1, WRITTEN = 2, OVER = 3 };

#define PAGE memory_page()

static char *fresh(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void fill(char *at, size_t bytes, int seed)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (char)((size_t)seed + i * 7 + i / 251);
}

static size_t differs(const char *at, size_t bytes, int seed)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != (char)((size_t)seed + i * 7 + i / 251))
            return i + 1;
    return 0;
}

/* Rank 0 names what lies at `mine`; all see the same, each writes a byte of its own,
 * all see all. */
static int all_see(tutti_comm *world, int rank, char *mine, size_t bytes, int seed)
{
    uint64_t handle = 0;
    int size = tutti_size(world);
    if (rank == 0)
        CHECK_IS(tutti_handle(mine, &handle, world), 0);
    CHECK_IS(tutti_broadcast(&handle, 1, TUTTI_U64, 0, world, NULL), 0);
    char *view = tutti_view(handle, world);
    const char *reading = tutti_view_readonly(handle, world);
    CHECK(view && reading && view != reading);
    CHECK_IS(differs(view, bytes, seed), 0);
    CHECK_IS(differs(reading, bytes, seed), 0);
    uint64_t again = 0, from_reading = 0, inside = 0;
    CHECK_IS(tutti_handle(view, &again, world), 0);
    CHECK_IS(tutti_handle(reading, &from_reading, world), 0);
    CHECK_IS(tutti_handle(view + bytes - 1, &inside, world), 0);
    CHECK(again == handle && from_reading == handle
          && tutti_view(inside, world) == view + bytes - 1);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    view[rank] = (char)(100 + rank);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (int p = 0; p < size; p++)
        CHECK(view[p] == 100 + p && reading[p] == 100 + p && (rank != 0 || mine[p] == 100 + p));
    struct place place = comm_place(world, view, bytes), other = comm_place(world, reading, bytes);
    CHECK(place.lo == 0 && place.hi == bytes && other.at == place.at && other.lo == 0
          && other.hi == bytes);
    CHECK(world->world->arena.base + place.at == view);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0)
        fill(mine, bytes, seed);
    return 0;
}

static int body_alloc(tutti_comm *world, int rank)
{
    static const size_t sizes[] = { 100, 3000, 5000, 1 << 20 };
    char *keep[4];
    for (size_t i = 0; i < 4; i++) {
        keep[i] = tutti_alloc(sizes[i], world);
        CHECK(keep[i]);
        CHECK_IS((uintptr_t)keep[i] % 64, 0);
        fill(keep[i], sizes[i], (int)i);
        CHECK_IS(all_see(world, rank, keep[i], sizes[i], (int)i), 0);
    }
    CHECK_IS(tutti_barrier(world, NULL), 0);         /* a view of what was freed reads as zero */
    uint64_t handle = 0;
    if (rank == 0)
        CHECK_IS(tutti_handle(keep[3], &handle, world), 0);
    CHECK_IS(tutti_broadcast(&handle, 1, TUTTI_U64, 0, world, NULL), 0);
    char *view = tutti_view(handle, world);
    CHECK(view && view[1000] != 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank != 0)
        CHECK_IS(tutti_free(view, world), -EINVAL);  /* a peer's */
    CHECK_IS(tutti_barrier(world, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        CHECK_IS(tutti_free(keep[i], world), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    CHECK_IS(view[1000], 0);
    return 0;
}

/* The arena as an operation's buffer, and through a comm that is not the one it came from. */
static int body_buffers(tutti_comm *world, int rank)
{
    tutti_comm *twin;
    size_t n = 100000;
    CHECK_IS(tutti_comm_split(world, 0, -rank, &twin), 0);
    int32_t *x = tutti_alloc(n * sizeof *x, twin), *y = malloc(n * sizeof *y);
    CHECK(x && y);
    for (size_t i = 0; i < n; i++)
        x[i] = y[i] = (int32_t)i + rank;
    CHECK_IS(tutti_register(y, n * sizeof *y, world), 0);
    CHECK_IS(tutti_all_reduce(x, x, n, TUTTI_I32, TUTTI_SUM, world, NULL), 0);
    CHECK_IS(tutti_all_reduce(y, y, n, TUTTI_I32, TUTTI_SUM, twin, NULL), 0);
    CHECK_IS(memcmp(x, y, n * sizeof *x), 0);
    CHECK_IS(x[5], tutti_size(world) * 5 + tutti_size(world) * (tutti_size(world) - 1) / 2);
    CHECK_IS(tutti_unregister(y, twin), 0);
    CHECK_IS(memcmp(x, y, n * sizeof *x), 0);
    CHECK_IS(tutti_comm_free(twin), 0);
    CHECK_IS(tutti_free(x, world), 0);
    free(y);
    return 0;
}

static int body_registered(tutti_comm *world, int rank)
{
    size_t all = 64 * PAGE, head = 100, bytes = 60 * PAGE + 17, lo = PAGE - head;
    char *whole = fresh(all), *mine = whole + head;
    fill(whole, all, 3);
    CHECK_IS(tutti_register(mine, bytes, world), 0);
    uint64_t handle;
    CHECK_IS(tutti_handle(mine, &handle, world), -EINVAL);           /* the head is private */
    CHECK_IS(tutti_handle(mine + bytes - 1, &handle, world), -EINVAL);
    struct place place = comm_place(world, mine, bytes);
    CHECK(place.lo == lo && place.hi == 60 * PAGE - head
          && memcmp(world->world->arena.base + place.at + lo, mine + lo, place.hi - lo) == 0);
    place = comm_place(world, mine + lo + 10, 50);
    CHECK(place.lo == 0 && place.hi == 50 && world->world->arena.base[place.at] == mine[lo + 10]);
    place = comm_place(world, whole, head);
    CHECK(place.lo == place.hi);
    fill(mine + lo, 20 * PAGE, 9);
    CHECK_IS(all_see(world, rank, mine + lo, 20 * PAGE, 9), 0);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    fill(mine + lo, 20 * PAGE, 9);
    CHECK_IS(tutti_unregister(mine, world), 0);
    CHECK_IS(differs(mine + lo, 20 * PAGE, 9), 0);
    CHECK_IS(tutti_unregister(mine, world), -EINVAL);
    place = comm_place(world, mine, bytes);
    CHECK(place.lo == place.hi);
    munmap(whole, all);
    return 0;
}

static int body_refusals(tutti_comm *world, int rank)
{
    uint64_t handle = 0, mine;
    int local = 0;
    char *at = tutti_alloc(100, world), *own_page = fresh(2 * PAGE);
    CHECK(at);
    CHECK(!tutti_alloc(SIZE_MAX, world) && strstr(tutti_explain(world), "TUTTI_SPAN_BYTES"));
    CHECK(!tutti_alloc((size_t)world->world->arena.header->span_bytes + 1, world)
          && strstr(tutti_explain(world), "TUTTI_SPAN_BYTES"));
    CHECK_IS(tutti_free(&local, world), -EINVAL);
    CHECK(strstr(tutti_explain(world), "tutti_alloc"));
    CHECK_IS(tutti_free(NULL, world), -EINVAL);
    CHECK_IS(tutti_handle(&local, &handle, world), -EINVAL);
    CHECK(strstr(tutti_explain(world), "not in the arena"));
    CHECK_IS(tutti_handle(NULL, &handle, world), -EINVAL);
    /* control pages are nobody's to name */
    CHECK_IS(tutti_handle(world->world->arena.base, &handle, world), -EINVAL);
    CHECK_IS(tutti_handle(at + 128, &handle, world), -EINVAL);              /* nobody has that */
    CHECK_IS(tutti_handle(at, NULL, world), -EINVAL);
    CHECK_IS(tutti_register(at, 100, world), -EINVAL);
    CHECK(strstr(tutti_explain(world), "in the arena already"));
    CHECK_IS(tutti_register(&local, sizeof local, world), -EINVAL);
    CHECK(strstr(tutti_explain(world), "stack"));
    CHECK_IS(tutti_register(own_page, 2 * PAGE, world), 0);
    CHECK_IS(tutti_register(own_page, 2 * PAGE, world), -EINVAL);
    CHECK_IS(tutti_free(own_page, world), -EINVAL);
    CHECK_IS(tutti_unregister(own_page + PAGE, world), -EINVAL);
    CHECK_IS(tutti_handle(own_page + PAGE, &handle, world), 0);
    CHECK_IS(tutti_free(tutti_view(handle, world), world), -EINVAL);
    CHECK_IS(tutti_unregister(own_page, world), 0);

    /* What is no handle: each bit of the check, and nearly always a bit of the offset. */
    int taken = 0;
    CHECK_IS(tutti_handle(at, &mine, world), 0);
    for (int bit = 48; bit < 64; bit++)
        CHECK(!tutti_view(mine ^ UINT64_C(1) << bit, world)
              && strstr(tutti_explain(world), "no handle"));
    for (int bit = 0; bit < 48; bit++)
        taken += tutti_view(mine ^ UINT64_C(1) << bit, world) != NULL;
    CHECK(taken <= 3);
    CHECK(!tutti_view(0, world) && !tutti_view_readonly(0, world)
          && !tutti_view(UINT64_MAX, world));
    CHECK_IS(tutti_free(at, world), 0);
    CHECK_IS(tutti_free(at, world), -EINVAL);
    CHECK_IS(tutti_handle(at, &handle, world), -EINVAL);
    CHECK(!tutti_alloc(1, NULL) && !tutti_view(mine, NULL) && !tutti_view_readonly(mine, NULL));
    CHECK_IS(tutti_free(at, NULL), -EINVAL);
    CHECK_IS(tutti_register(own_page, PAGE, NULL), -EINVAL);
    CHECK_IS(tutti_unregister(own_page, NULL), -EINVAL);
    CHECK_IS(tutti_handle(at, &handle, NULL), -EINVAL);
    munmap(own_page, 2 * PAGE);
    (void)rank;
    return 0;
}

/* Work under way may use the memory: it is not taken away under it. */
static int body_busy(tutti_comm *world, int rank)
{
    tutti_work *work;
    tutti_comm *twin;
    char *own_page = fresh(2 * PAGE);
    CHECK_IS(tutti_comm_split(world, 0, 0, &twin), 0);
    CHECK_IS(tutti_register(own_page, 2 * PAGE, world), 0);
    if (rank == 0) {
        CHECK_IS(tutti_barrier(twin, &(tutti_call){ .work = &work }), 0);
        CHECK_IS(tutti_unregister(own_page, world), -EBUSY);
        CHECK(strstr(tutti_explain(world), "under way"));
        void *other = tutti_alloc(100, twin);        /* which is in nobody's way */
        CHECK(other);
        CHECK_IS(tutti_free(other, twin), 0);
        ranks_say(NAMED, 1);
        CHECK_IS(tutti_wait(work, 0), 0);
    } else {
        CHECK_IS(ranks_await(NAMED, 1), 0);
        CHECK_IS(tutti_barrier(twin, NULL), 0);
    }
    CHECK_IS(tutti_unregister(own_page, twin), 0);
    munmap(own_page, 2 * PAGE);
    return 0;
}

/* What a dead rank, and one that left, has named stays readable; on the broken comm what gives back
 * and reads goes on. */
static int body_outlives(tutti_comm *world, int rank)
{
    size_t bytes = 3 << 20;
    char *own_page = fresh(4 * PAGE), *own = tutti_alloc(5000, world);
    uint64_t handle[3] = { 0, 0, 0 }, mine = 0;
    CHECK(own);
    CHECK_IS(tutti_register(own_page, 4 * PAGE, world), 0);
    fill(own_page, 4 * PAGE, 5);
    if (rank < 2) {
        char *at = tutti_alloc(bytes, world);
        CHECK(at);
        fill(at, bytes, rank);
        CHECK_IS(tutti_handle(at, &handle[rank], world), 0);
    }
    if (rank == 0)
        CHECK_IS(tutti_handle(own_page, &handle[2], world), 0);
    CHECK_IS(tutti_broadcast(&handle[0], 1, TUTTI_U64, 0, world, NULL), 0);
    CHECK_IS(tutti_broadcast(&handle[1], 1, TUTTI_U64, 1, world, NULL), 0);
    CHECK_IS(tutti_broadcast(&handle[2], 1, TUTTI_U64, 0, world, NULL), 0);
    char *before = tutti_view(handle[0], world);
    CHECK_IS(tutti_barrier(world, NULL), 0);
    if (rank == 0)
        ranks_die();
    if (rank == 1) {
        CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
        CHECK_IS(tutti_unregister(own_page, world), 0);
        return 0;                                    /* left */
    }
    CHECK_IS(tutti_barrier(world, NULL), -EOWNERDEAD);
    while (tutti_failed(world, NULL, 0) < 2)
        sched_yield();
    CHECK_IS(differs(before, bytes, 0), 0);
    CHECK_IS(differs(tutti_view(handle[0], world), bytes, 0), 0);
    /* what it had registered, too */
    CHECK_IS(differs(tutti_view(handle[2], world), 4 * PAGE, 5), 0);
    const char *late = tutti_view_readonly(handle[1], world);
    CHECK(late);
    CHECK_IS(differs(late, bytes, 1), 0);
    CHECK(!tutti_alloc(100, world) && strstr(tutti_explain(world), "broken"));
    CHECK_IS(tutti_register(own, 100, world), -ECANCELED);
    CHECK_IS(tutti_handle(own, &mine, world), 0);
    CHECK_IS(tutti_free(own, world), 0);
    CHECK_IS(tutti_unregister(own_page, world), 0);
    CHECK_IS(differs(own_page, 4 * PAGE, 5), 0);
    return 0;
}

static void test_alloc(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_alloc), 0);
}

static void test_buffers(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_buffers), 0);
}

static void test_registered(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(3, body_registered), 0);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_refusals), 0);
}

static void test_busy(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_busy), 0);
}

static void test_outlives(void **state)
{
    (void)state;
    assert_int_equal(ranks_run(3, body_outlives, 1), 0);
}

static tutti_comm *alone(size_t span_bytes)
{
    tutti_comm *world = NULL;
    assert_int_equal(tutti_init(&world,
                                &(tutti_options){
                                    .job = ranks_job(), .size = 1, .span_bytes = span_bytes }),
                     0);
    return world;
}

static bool shared(const void *at)
{
    struct mapping m;
    assert_int_equal(maps_at((uintptr_t)at, &m), 0);
    return m.from <= (uintptr_t)at && m.shared;
}

/* finalize makes private again what is registered; a handle of one job is none of another. */
static void test_finalize(void **state)
{
    (void)state;
    tutti_comm *world = alone(16 << 20), *other = alone(16 << 20);
    char *whole = fresh(40 * PAGE);
    int taken = 0;
    fill(whole, 40 * PAGE, 1);
    assert_int_equal(tutti_register(whole + 50, 20 * PAGE, world), 0);
    assert_int_equal(tutti_register(whole + 30 * PAGE, 10 * PAGE, world), 0);
    /* it belongs to the first */
    assert_int_equal(tutti_register(whole + 30 * PAGE, PAGE, other), -EINVAL);
    assert_non_null(strstr(tutti_explain(other), "shared"));
    for (size_t i = 0; i < 20; i++) {
        uint64_t handle;
        assert_int_equal(tutti_handle(whole + PAGE + i * 1000, &handle, world), 0);
        assert_non_null(tutti_view(handle, world));
        taken += tutti_view(handle, other) != NULL;
    }
    assert_true(taken <= 2);                         /* 1 in 65,536 */
    assert_int_equal(tutti_finalize(other), 0);
    assert_true(shared(whole + PAGE) && shared(whole + 30 * PAGE));
    assert_int_equal(tutti_finalize(world), 0);
    assert_false(shared(whole + PAGE) || shared(whole + 30 * PAGE));
    assert_int_equal(differs(whole, 40 * PAGE, 1), 0);
    munmap(whole, 40 * PAGE);
}

/* Writing through the second mapping is a fault; reading it is the same memory. */
static void test_readonly_faults(void **state)
{
    (void)state;
    tutti_comm *world = alone(16 << 20);
    char *at = tutti_alloc(100, world);
    uint64_t handle;
    int status;
    assert_int_equal(tutti_handle(at, &handle, world), 0);
    const char *view = tutti_view_readonly(handle, world);
    assert_non_null(view);
    *at = 42;
    assert_int_equal(*view, 42);
    assert_ptr_equal(tutti_view_readonly(handle, world), view);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        *(char *)(uintptr_t)view = 1;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(*at, 42);
    assert_int_equal(tutti_finalize(world), 0);
}

/* A fork of a rank is not the rank; it sees registered memory as shared, which is why the header
 * warns of it. */
static void test_fork(void **state)
{
    (void)state;
    tutti_comm *world = alone(16 << 20);
    char *at = tutti_alloc(100, world), *own_page = fresh(PAGE);
    uint64_t handle, other;
    int status;
    assert_int_equal(tutti_register(own_page, PAGE, world), 0);
    assert_int_equal(tutti_handle(at, &handle, world), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        own_page[7] = 7;
        bool right = tutti_free(at, world) == -ECHILD
            && tutti_unregister(own_page, world) == -ECHILD
            && tutti_register(own_page, PAGE, world) == -ECHILD
            && tutti_handle(at, &other, world) == -ECHILD && !tutti_alloc(10, world)
            && !tutti_view(handle, world) && !tutti_view_readonly(handle, world)
            && strstr(tutti_explain(world), "fork");
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(own_page[7], 7);
    assert_int_equal(tutti_unregister(own_page, world), 0);
    assert_int_equal(tutti_free(at, world), 0);
    assert_int_equal(tutti_finalize(world), 0);
    munmap(own_page, PAGE);
}

/* Freed memory is given back to the system, and the span holds again what it held. */
static void test_gives_back(void **state)
{
    (void)state;
    tutti_comm *world = alone(16 << 20);
    struct stat before, now;
    int fd = world->world->arena.fd;
    fstat(fd, &before);
    for (int i = 0; i < 20; i++) {
        char *at = tutti_alloc(16 << 20, world);
        assert_non_null(at);
        fstat(fd, &now);
        assert_true(now.st_blocks >= before.st_blocks + (16 << 20) / 512);
        assert_null(tutti_alloc(1 << 20, world));
        assert_non_null(strstr(tutti_explain(world), "16 MiB"));
        assert_int_equal(tutti_free(at, world), 0);
        fstat(fd, &now);
        assert_int_equal(now.st_blocks, before.st_blocks);
    }
    assert_int_equal(tutti_finalize(world), 0);
}

/* No address space for a second mapping: said, and mended when there is. */
static void test_no_addresses(void **state)
{
    (void)state;
    int status;
    if (getenv("TUTTI_TEST_SANITIZED"))
        skip_because("a sanitizer needs the address space itself");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        tutti_comm *world = NULL;
        uint64_t handle;
        struct rlimit all, less;
        if (tutti_init(&world,
                       &(tutti_options){ .job = ranks_job(), .size = 1, .span_bytes = 1 << 30 })
            != 0)
            _exit(2);
        char *at = tutti_alloc(100, world);
        if (!at || tutti_handle(at, &handle, world) != 0 || getrlimit(RLIMIT_AS, &all) != 0)
            _exit(3);
        less = (struct rlimit){ 1 << 30, all.rlim_max };
        setrlimit(RLIMIT_AS, &less);
        if (tutti_view_readonly(handle, world) || !strstr(tutti_explain(world), "second time")
            || !tutti_view(handle, world))
            _exit(4);
        char *own_page = tutti_alloc(64 << 20, world); /* the arena's addresses are there already */
        if (!own_page || tutti_free(own_page, world) != 0)
            _exit(5);
        setrlimit(RLIMIT_AS, &all);
        _exit(tutti_view_readonly(handle, world) && tutti_finalize(world) == 0 ? 0 : 6);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Threads that take, name and give back while another is inside a collective of the same comm. */
struct busy_thread { tutti_comm *world; int failed; };

static void *take_and_give(void *arg)
{
    struct busy_thread *t = arg;
    char *own = fresh(4 * PAGE);
    for (int i = 0; i < ranks_many(3000, 300); i++) {
        uint64_t handle;
        size_t bytes = (size_t)(i % 7 ? 40 + i % 500 : 9000);
        char *at = tutti_alloc(bytes, t->world);
        bool right = at && tutti_handle(at + bytes - 1, &handle, t->world) == 0
            && tutti_view(handle, t->world) == at + bytes - 1;
        if (right && i % 10 == 0)
            right = tutti_register(own + i % 100, 3 * PAGE, t->world) == 0
                && tutti_handle(own + PAGE, &handle, t->world) == 0
                && tutti_unregister(own + i % 100, t->world) == 0;
        if (right)
            memset(at, i, bytes);
        t->failed |= !right || tutti_free(at, t->world) != 0 || tutti_free(at, NULL) != -EINVAL
            || tutti_view_readonly(handle ^ UINT64_C(1) << 63, t->world) != NULL;
    }
    munmap(own, 4 * PAGE);
    return NULL;
}

static void *in_collectives(void *arg)
{
    struct busy_thread *t = arg;
    float x[3000] = { 1 };
    for (int i = 0; i < ranks_many(3000, 300); i++)
        t->failed |= tutti_all_reduce(x, x, 3000, TUTTI_F32, TUTTI_MAX, t->world, NULL) != 0;
    return NULL;
}

static int body_threads(tutti_comm *world, int rank)
{
    pthread_t thread[4];
    struct busy_thread t[4];
    (void)rank;
    for (int i = 0; i < 4; i++) {
        t[i] = (struct busy_thread){ world, 0 };
        CHECK_IS(pthread_create(&thread[i], NULL, i ? take_and_give : in_collectives, &t[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK_IS(t[i].failed, 0);
    }
    return 0;
}

static void test_threads(void **state)
{
    (void)state;
    assert_int_equal(ranks_run_either(2, body_threads), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc), cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_registered), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_busy), cmocka_unit_test(test_outlives),
        cmocka_unit_test(test_finalize), cmocka_unit_test(test_readonly_faults),
        cmocka_unit_test(test_fork), cmocka_unit_test(test_gives_back),
        cmocka_unit_test(test_no_addresses), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
