/* ctest: timeout=300 labels=tsan needs=populate */
/* Memory for callers: places that do not overlap, keep their bytes, are present, and go back to
 * the system. */
#include "arena/heap.h"

#include "os/memory.h"
#include "support/skip.h"
#include "support/team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* of 16 KiB, or a page where that is more */
#define SLAB (memory_page() > 16384 ? memory_page() : (size_t)16384)

static char why_room[512];
static struct arena a;
static struct span *span;
static struct heap *heap;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t span_bytes;

static int open_with(uint64_t bytes)
{
    struct text why = TEXT_IN(why_room);
    text_clear(&why);
    span_bytes = bytes;
    if (arena_create(&a, &(struct arena_plan){ .size = 2, .span_bytes = bytes }, &why) != 0)
        return -1;
    span = span_open(arena_span(&a, 1), bytes);
    heap = heap_open(span, &a, &lock);
    return heap ? 0 : -1;
}

static int setup(void **state)
{
    (void)state;
    return open_with(UINT64_C(16) << 20);
}

static int setup_wide(void **state)
{
    (void)state;
    return open_with(UINT64_C(512) << 20);
}

static int teardown(void **state)
{
    (void)state;
    heap_close(heap);
    span_close(span);
    arena_detach(&a);
    return 0;
}

static uint64_t blocks(void)
{
    struct stat st;
    assert_int_equal(fstat(a.fd, &st), 0);
    return (uint64_t)st.st_blocks;
}

static bool present(const char *at, size_t bytes)
{
    size_t page = memory_page();
    const char *from = at - (uintptr_t)at % page;
    unsigned char seen[1024];
    size_t pages = ((size_t)(at + bytes - from) + page - 1) / page;
    if (mincore((void *)(uintptr_t)from, pages * page, seen) != 0)
        return false;
    for (size_t i = 0; i < pages; i++)
        if (!(seen[i] & 1))
            return false;
    return true;
}

static void test_aligned_and_present(void **state)
{
    (void)state;
    static const size_t wanted[] = {
        0, 1, 63, 64, 65, 128, 129, 500, 1000, 1025, 2048, 2049, 3072,
        3073, 4096, 4097, 70000, 2 << 20
    };
    int error;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        char *at = heap_alloc(heap, wanted[i], &error);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % 64, 0);
        assert_true(present(at, wanted[i] ? wanted[i] : 1));
        memset(at, 1, wanted[i]);
        assert_true(heap_holds(heap, at));
        assert_true(wanted[i] == 0 || heap_holds(heap, at + wanted[i] - 1));
    }
}

static void test_goes_back(void **state)
{
    (void)state;
    int error;
    uint64_t before = blocks();
    char *at = heap_alloc(heap, 1 << 20, &error);
    assert_true(blocks() >= before + 2048);
    assert_int_equal(heap_free(heap, at), 0);
    assert_int_equal(blocks(), before);
    static char *many[5000];
    for (int i = 0; i < 5000; i++)
        assert_non_null(many[i] = heap_alloc(heap, 100, &error));
    assert_true(blocks() < before + 2 * 5000 * 128 / 512 * 8);   /* not a page each */
    for (int i = 0; i < 5000; i++)
        assert_int_equal(heap_free(heap, many[i]), 0);
    assert_true(blocks() <= before + SLAB / 512);              /* one empty slab is kept */
    assert_non_null(heap_alloc(heap, span_bytes, &error));      /* but not where it is in the way */
}

static void test_strangers(void **state)
{
    (void)state;
    int error, local = 0;
    char *small = heap_alloc(heap, 100, &error), *big = heap_alloc(heap, 10000, &error);
    char *staging = span_take(span, 4096, &error);
    assert_int_equal(heap_free(heap, NULL), -EINVAL);
    assert_int_equal(heap_free(heap, &local), -EINVAL);
    assert_int_equal(heap_free(heap, small + 64), -EINVAL);
    assert_int_equal(heap_free(heap, small + 128), -EINVAL);
    assert_int_equal(heap_free(heap, small + SLAB - 128), -EINVAL);
    assert_int_equal(heap_free(heap, big + 4096), -EINVAL);
    assert_int_equal(heap_free(heap, staging), -EINVAL);
    assert_int_equal(heap_free(heap, arena_span(&a, 0)), -EINVAL);
    assert_int_equal(heap_free(heap, a.base), -EINVAL);
    assert_false(heap_holds(heap, staging));
    assert_false(heap_holds(heap, small + 128));
    assert_false(heap_holds(heap, &local));
    assert_int_equal(heap_free(heap, small), 0);
    assert_int_equal(heap_free(heap, small), -EINVAL);
    assert_int_equal(heap_free(heap, big), 0);
    assert_int_equal(heap_free(heap, big), -EINVAL);
    assert_false(heap_holds(heap, small));
    assert_false(heap_holds(heap, big));
}

static void test_full(void **state)
{
    (void)state;
    int error, n = 0;
    static char *at[1 << 18];
    while ((at[n] = heap_alloc(heap, 1000, &error)) != NULL)
        n++;
    assert_int_equal(error, -ENOSPC);
    assert_int_equal(n, (16 << 20) / 1024);
    assert_null(heap_alloc(heap, SIZE_MAX, &error));
    assert_int_equal(error, -ENOSPC);
    for (int i = 0; i < n; i++)
        assert_int_equal(heap_free(heap, at[i]), 0);
    char *all = heap_alloc(heap, span_bytes, &error);
    assert_non_null(all);
    assert_int_equal(heap_free(heap, all), 0);
}

/* More than the machine has is refused, not tried: trying would call the OOM killer. Here it would
 * be a forbidden system call. */
static int ask_too_much(struct heap *h)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };
    uint64_t have = memory_available();
    int error = 0;
    if (have == 0 || have >= UINT64_C(1) << 44)
        return 1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 77;
    return heap_alloc(h, (size_t)have * 2, &error) == NULL && error == -ENOMEM ? 0 : 2;
}

static void test_no_memory(void **state)
{
    (void)state;
    int status;
    struct span *wide = span_open(arena_span(&a, 1), UINT64_C(1) << 45);        /* books only */
    struct heap *h = heap_open(wide, &a, &lock);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(ask_too_much(h));
    assert_int_equal(waitpid(child, &status, 0), child);
    heap_close(h);
    span_close(wide);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip_because("no seccomp filter can be set here");
    assert_int_equal(status, 0);
}

/* Random sizes against a list: disjoint, bytes kept, and nothing is left at the end. */
static void test_model(void **state)
{
    (void)state;
    enum { MOST = 3000, STEPS = 60000 };
    static struct { unsigned char *at; size_t bytes; unsigned char fill; } held[MOST];
    uint64_t seed = team_seed(), before = blocks();
    int n = 0, error;
    for (int step = 0; step < STEPS; step++) {
        if (n < MOST && team_random(&seed) % 100 < 55) {
            uint64_t kind = team_random(&seed) % 100;
            size_t bytes = (size_t)(team_random(&seed)
                                    % (kind < 60 ? 300
                                           : kind < 95 ? 5000
                                           : 100000));
            unsigned char *at = heap_alloc(heap, bytes, &error);
            if (!at) {
                assert_int_equal(error, -ENOSPC);
                continue;
            }
            held[n].at = at, held[n].bytes = bytes,
            held[n].fill = (unsigned char)team_random(&seed);
            memset(at, held[n].fill, bytes);
            n++;
        } else if (n > 0) {
            int i = (int)(team_random(&seed) % (uint64_t)n);
            for (size_t k = 0; k < held[i].bytes; k++)
                if (held[i].at[k] != held[i].fill)
                    fail_msg("byte %zu of %zu has changed", k, held[i].bytes);
            assert_int_equal(heap_free(heap, held[i].at), 0);
            held[i] = held[--n];
        }
    }
    while (n > 0)
        assert_int_equal(heap_free(heap, held[--n].at), 0);
    assert_true(blocks() <= before + SLAB / 512);
    assert_non_null(heap_alloc(heap, span_bytes, &error));
}

static void test_many_live(void **state)
{
    (void)state;
    enum { MOST = 100000 };
    static char *at[MOST];
    int error, many = (int)(MOST * 4096 / memory_page());       /* half of them a page each */
    for (int i = 0; i < many; i++) {
        assert_non_null(at[i] = heap_alloc(heap, (size_t)(i % 2 ? 64 : 3500), &error));
        *at[i] = (char)i;
    }
    for (int i = 0; i < many; i++) {
        int k = (int)((uint64_t)i * 7919 % (uint64_t)many);
        assert_int_equal(*at[k], (char)k);
        assert_int_equal(heap_free(heap, at[k]), 0);
    }
}

/* A million times the same few: no growth, neither of the arena nor of the books. */
static void test_loops(void **state)
{
    (void)state;
    int error, many = team_many("TUTTI_TEST_LOOPS", 1000000, 50000);
    uint64_t before = blocks();
    char *stays = heap_alloc(heap, 64, &error);
    for (int i = 0; i < many; i++) {
        char *at = heap_alloc(heap, (size_t)(i % 16 ? 64 + i % 3000 : 4096 << i % 3), &error);
        assert_non_null(at);
        assert_int_equal(heap_free(heap, at), 0);
    }
    assert_int_equal(heap_free(heap, stays), 0);
    assert_true(blocks() <= before + SLAB / 512);
    char *page = heap_alloc(heap, 4096, &error);
    /* behind the one slab: nothing else was left */
    assert_ptr_equal(page, arena_span(&a, 1) + SLAB);
}

static void *thread_body(void *arg)
{
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    int error;
    char *held[20] = { NULL };
    for (int i = 0; i < team_many("TUTTI_TEST_LOOPS", 20000, 3000); i++) {
        size_t k = (size_t)(team_random(&seed) % 20),
               bytes = 8 + (size_t)(team_random(&seed) % (i % 8 ? 400 : 20000));
        if (held[k]) {
            uint64_t mark;
            memcpy(&mark, held[k], sizeof mark);
            if (mark != (uint64_t)(uintptr_t)arg * 1000 + k || heap_free(heap, held[k]) != 0)
                return (void *)1;
        }
        held[k] = heap_alloc(heap, bytes, &error);
        uint64_t mark = (uint64_t)(uintptr_t)arg * 1000 + k;
        if (!held[k] || !heap_holds(heap, held[k] + bytes - 1))
            return (void *)2;
        memcpy(held[k], &mark, sizeof mark);
    }
    for (size_t k = 0; k < 20; k++)
        if (held[k] && heap_free(heap, held[k]) != 0)
            return (void *)3;
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    void *result;
    int error;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, thread_body, (void *)(uintptr_t)(i + 1)),
                         0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &result);
        assert_null(result);
    }
    assert_non_null(heap_alloc(heap, span_bytes, &error));
}

/* 64 MiB: aligned, and in huge pages if the system has them; what the books say is what the
 * kernel says. */
static void test_huge(void **state)
{
    (void)state;
    int error;
    uint64_t before = blocks();
    assert_non_null(heap_alloc(heap, 64, &error));
    char *at = heap_alloc(heap, 64 << 20, &error);
    assert_non_null(at);
    assert_int_equal((uintptr_t)at % (2 << 20), 0);
    struct heap_figures f = heap_figures(heap);
    assert_int_equal(f.wished, 64 << 20);
    assert_int_equal(f.huge, memory_huge(at, 64 << 20));
    printf("64 MiB: %llu MiB in huge pages\n", (unsigned long long)f.huge >> 20);
    assert_true(blocks() >= before + (64 << 20) / 512);
    for (size_t i = 0; i < 64 << 20; i += 4096)
        assert_int_equal(at[i], 0);
    memset(at, 7, 64 << 20);
    assert_int_equal(heap_free(heap, at), 0);
    assert_true(blocks() <= before + SLAB / 512);
    char *odd = heap_alloc(heap, (40 << 20) + 12345, &error);
    assert_non_null(odd);
    assert_true(present(odd + (40 << 20), 12345));
    assert_int_equal(heap_free(heap, odd), 0);
    assert_true(blocks() <= before + SLAB / 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aligned_and_present, setup, teardown),
        cmocka_unit_test_setup_teardown(test_goes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strangers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_live, setup_wide, teardown),
        cmocka_unit_test_setup_teardown(test_loops, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_huge, setup_wide, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
