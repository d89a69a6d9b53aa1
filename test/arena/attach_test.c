/* ctest: timeout=60 */
/* Mapping what a peer made: the same bytes, one mapping per process however many ranks, nothing
 * left behind. */
#include "arena/offsets.h"

#include "os/memory.h"
#include "support/resources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL (UINT64_C(16) << 20)

static char why_room[512];
static struct text why;
static struct arena made;

static int setup(void **state)
{
    (void)state;
    why = TEXT_IN(why_room);
    text_clear(&why);
    return arena_create(&made, &(struct arena_plan){ .size = 3, .job = "a", .span_bytes = SMALL },
                        &why);
}

static int teardown(void **state)
{
    (void)state;
    arena_detach(&made);
    return 0;
}

static int another_fd(void) { return fcntl(made.fd, F_DUPFD_CLOEXEC, 100); }

static void test_one_mapping_per_process(void **state)
{
    (void)state;
    struct arena b, c;
    int before = resources_arena_maps(), fds = resources_descriptors();
    assert_int_equal(arena_attach(&b, another_fd(), &why), 0);
    assert_int_equal(arena_attach(&c, another_fd(), &why), 0);
    assert_ptr_equal(b.base, made.base);
    assert_ptr_equal(c.base, made.base);
    assert_int_equal(resources_arena_maps(), before);
    arena_detach(&b);
    strcpy(arena_span(&made, 1), "still there");
    assert_string_equal(arena_span(&c, 1), "still there");
    arena_detach(&c);
    assert_int_equal(resources_arena_maps(), before);
    assert_int_equal(resources_descriptors(), fds);
    assert_string_equal(arena_span(&made, 1), "still there");
}

static void test_two_arenas_are_two(void **state)
{
    (void)state;
    struct arena other;
    assert_int_equal(arena_create(&other,
                                  &(struct arena_plan){
                                      .size = 3, .job = "b", .span_bytes = SMALL },
                                  &why),
                     0);
    assert_ptr_not_equal(other.base, made.base);
    assert_true(other.header->birth != made.header->birth);
    arena_detach(&other);
}

static void test_readonly(void **state)
{
    (void)state;
    char path[64];
    struct arena b;
    uint32_t site = arena_site(&made, "here.c:1");
    snprintf(path, sizeof path, "/proc/self/fd/%d", made.fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(arena_attach_readonly(&b, fd, &why), 0);
    assert_ptr_not_equal(b.base, made.base);
    assert_true(b.readonly);
    assert_string_equal(b.header->job, "a");
    assert_int_equal(arena_site(&b, "here.c:1"), site);
    assert_int_equal(arena_site(&b, "there.c:1"), 0);          /* it can look up and never add */
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        store_release32(&b.seats[0].status, 1);
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);         /* a write ends it */
    arena_detach(&b);
}

/* A writable attach needs a writable descriptor, and says so. */
static void test_readonly_descriptor(void **state)
{
    (void)state;
    char path[64];
    struct arena b;
    snprintf(path, sizeof path, "/proc/self/fd/%d", made.fd);
    int fds = resources_descriptors(), fd = open(path, O_RDONLY | O_CLOEXEC);
    arena_detach(&made);                        /* else the process's mapping is shared */
    assert_int_equal(arena_attach(&b, fd, &why), -EACCES);
    assert_int_equal(b.fd, -1);
    assert_true(why.used > 0);
    assert_int_equal(close(fd), 0);             /* a failure leaves the descriptor to the caller */
    assert_int_equal(resources_descriptors(), fds - 1);
    setup(NULL);
}

/* What a forked child inherits is the same memory, by the same table. */
static void test_fork(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct arena b;
        if (arena_attach(&b, another_fd(), &why) != 0 || b.base != made.base)
            _exit(1);
        strcpy(arena_span(&b, 2), "from the child");
        arena_detach(&b);
        arena_detach(&made);
        _exit(resources_arena_maps() == 0 ? 0 : 2);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_string_equal(arena_span(&made, 2), "from the child");
}

static shared32 enough;

/* Nobody else has it mapped: each attach maps and each detach unmaps, under the table's lock. */
static void *attach_often(void *arg)
{
    char room[128];
    struct text t = TEXT_IN(room);
    int fd = *(int *)arg;
    while (load_acquire32(&enough) == 0) {
        struct arena b;
        if (arena_attach(&b, fcntl(fd, F_DUPFD_CLOEXEC, 100), &t) != 0)
            return arg;
        arena_detach(&b);
    }
    return NULL;
}

/* Threads that come and go, and children forked meanwhile: no child finds the table locked. */
static void test_threads_and_forks(void **state)
{
    (void)state;
    enum { THREADS = 2, FORKS = 200 };
    pthread_t thread[THREADS];
    int fd[THREADS];
    store_release32(&enough, 0);
    for (int i = 0; i < THREADS; i++) {
        struct arena other;
        assert_int_equal(arena_create(&other,
                                      &(struct arena_plan){ .size = 2, .span_bytes = SMALL }, &why),
                         0);
        fd[i] = fcntl(other.fd, F_DUPFD_CLOEXEC, 100);
        arena_detach(&other);
        assert_int_equal(pthread_create(&thread[i], NULL, attach_often, &fd[i]), 0);
    }
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct arena b;
            alarm(20);
            _exit(arena_attach(&b, another_fd(), &why) == 0 ? 0 : 1);
        }
        int status;
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
    }
    store_release32(&enough, 1);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        assert_null(failed);
        close(fd[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_mapping_per_process, setup, teardown),
        cmocka_unit_test_setup_teardown(test_two_arenas_are_two, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readonly, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readonly_descriptor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads_and_forks, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
