/* ctest: needs=proc */
/* What is known to be the program's own memory for good, and what is not, though it may be
 * as ordinary. */
#include "os/host_memory.h"

#include "support/skip.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int initialised = 1, zeroed;
static struct host_memory host_memory;

static unsigned asked;

/* In the place of the C library's, as libraries do that watch memory: each call is the system's. */
void *sbrk(intptr_t by)
{
    asked++;
    char *end = (char *)syscall(SYS_brk, 0);
    if (by == 0)
        return end;
    char *now = (char *)syscall(SYS_brk, end + by);
    if (&__curbrk)
        __curbrk = now;
    return now == end + by ? end : (void *)-1;
}

static int known_places(void)
{
    int here = 0;
    return host_memory_has(&host_memory, &here) && host_memory_has(&host_memory, &initialised)
        && host_memory_has(&host_memory, &zeroed);
}

static void test_variables_and_stack(void **state)
{
    (void)state;
    assert_true(known_places());
    assert_false(host_memory_has(&host_memory, NULL));
    assert_false(host_memory_has(&host_memory, (void *)UINTPTR_MAX));
}

/* The heap is asked for by its end: what it grows by later is known, and what it gives
 * back is not. */
static void needs_heap(void)
{
    if (host_memory.heap_from)
        return;
    skip_because("no heap of the system's, or a C library that keeps no note of its end");
}

static void test_heap_as_it_grows(void **state)
{
    (void)state;
    char *end = sbrk(0);
    needs_heap();
    assert_true(host_memory_has(&host_memory, end - 1));
    assert_false(host_memory_has(&host_memory, end));
    if (sbrk(4096) != end)
        skip_because("the system does not let the heap grow");
    assert_true(host_memory_has(&host_memory, end + 4095));
    assert_ptr_not_equal(sbrk(-4096), (void *)-1);
    assert_false(host_memory_has(&host_memory, end));
}

static void test_nobody_is_asked(void **state)
{
    (void)state;
    needs_heap();
    char *inside = (char *)sbrk(0) - 1;
    unsigned before = asked;
    for (int i = 0; i < 100; i++)
        assert_true(host_memory_has(&host_memory, inside));
    assert_int_equal(asked, before);
}

static void *look_from_a_thread(void *there)
{
    int here = 0;
    *(int *)there = host_memory_has(&host_memory, &here);
    return NULL;
}

/* Mappings and stacks that come and go: another's memory may lie there tomorrow. */
static void test_what_comes_and_goes(void **state)
{
    (void)state;
    pthread_t thread;
    int there = 1;
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_false(host_memory_has(&host_memory, at));
    munmap(at, 4096);
    assert_int_equal(pthread_create(&thread, NULL, look_from_a_thread, &there), 0);
    pthread_join(thread, NULL);
    assert_int_equal(there, 0);
    assert_false(host_memory_has(&host_memory, (const void *)(uintptr_t)&sbrk));    /* a library */
}

static void test_in_a_forked_child(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(known_places() ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables_and_stack), cmocka_unit_test(test_heap_as_it_grows),
        cmocka_unit_test(test_nobody_is_asked),
        cmocka_unit_test(test_what_comes_and_goes), cmocka_unit_test(test_in_a_forked_child),
    };
    void *volatile some = malloc(1); /* so that there is a heap; volatile: so that the call stays */
    free(some);
    host_memory_find(&host_memory);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
