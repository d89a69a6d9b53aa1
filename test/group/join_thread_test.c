/* ctest: timeout=120 labels=tsan */
/* Ranks that are threads of one process: by name and by descriptor, all in one mapping, each with
 * its own mark. */
#include "group/join.h"

#include "group/seat.h"
#include "joiners.h"
#include "support/resources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4 };

struct thread_rank {
    struct join_request request;
    pthread_barrier_t *together;
    int error, host_fd;
    const char *base;
    bool mine;
    uint32_t peers;                   /* seats of this very process */
    char why[512];
};

static void *rank_run(void *arg)
{
    struct thread_rank *t = arg;
    struct text why = TEXT_IN(t->why);
    struct arena arena;
    text_clear(&why);
    t->error = join_world(&arena, &t->request, &t->host_fd, &why);
    if (t->error == 0) {
        t->base = arena.base;
        t->mine = process_mark_mine(&arena.seats[t->request.rank].mark);
        for (uint32_t p = 0; p < arena.header->size; p++)
            t->peers += arena.seats[p].id.pid == getpid() && arena.seats[p].several;
    }
    pthread_barrier_wait(t->together);               /* nobody leaves before all have looked */
    if (t->error == 0) {
        seat_leave(&arena, t->request.rank);
        if (t->host_fd >= 0)
            close(t->host_fd);
        arena_detach(&arena);
    }
    return NULL;
}

static void run(struct thread_rank *t, int n)
{
    pthread_t thread[RANKS];
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, (unsigned)n);
    for (int p = 0; p < n; p++) {
        t[p].together = &together;
        t[p].request.several = 1;
        assert_int_equal(pthread_create(&thread[p], NULL, rank_run, &t[p]), 0);
    }
    for (int p = 0; p < n; p++)
        pthread_join(thread[p], NULL);
    pthread_barrier_destroy(&together);
}

static void expect_all(const struct thread_rank *t)
{
    for (int p = 0; p < RANKS; p++) {
        if (t[p].error)
            print_error("rank %d: %d %s\n", p, t[p].error, t[p].why);
        assert_int_equal(t[p].error, 0);
        assert_ptr_equal(t[p].base, t[0].base);
        assert_true(t[p].mine);
        assert_int_equal(t[p].peers, RANKS);
    }
}

static void test_by_name(void **state)
{
    (void)state;
    char name[96];
    int fds = resources_descriptors();
    joiners_name(name, "thread");
    for (int round = 0; round < 20; round++) {
        struct thread_rank t[RANKS] = { 0 };
        for (int p = 0; p < RANKS; p++)
            t[p].request = joiners_request(name, p, RANKS);
        run(t, RANKS);
        expect_all(t);
        assert_int_equal(resources_descriptors(), fds);
        assert_int_equal(resources_arena_maps(), 0);
    }
}

static void test_by_descriptor(void **state)
{
    (void)state;
    char room[256];
    struct text why = TEXT_IN(room);
    for (int round = 0; round < 20; round++) {
        struct arena arena;
        struct thread_rank t[RANKS] = { 0 };
        assert_int_equal(arena_create(&arena,
                                      &(struct arena_plan){ .size = RANKS,
                                                            .span_bytes = UINT64_C(16) << 20 },
                                      &why),
                         0);
        for (int p = 0; p < RANKS; p++)
            t[p].request = (struct join_request){
                .fd = fcntl(arena.fd, F_DUPFD_CLOEXEC, 100), .rank = p,
                .size = RANKS, .timeout_ms = 60000
            };
        run(t, RANKS);
        expect_all(t);
        assert_ptr_equal(t[0].base, arena.base);
        arena_detach(&arena);
        assert_int_equal(resources_arena_maps(), 0);
    }
}

/* One of the four never comes: the three fail together, and the process keeps nothing. */
static void test_deadline(void **state)
{
    (void)state;
    char name[96];
    int fds = resources_descriptors();
    joiners_name(name, "thread");
    struct thread_rank t[RANKS] = { 0 };
    for (int p = 0; p < 3; p++) {
        t[p].request = joiners_request(name, p, RANKS);
        t[p].request.timeout_ms = 300;
    }
    run(t, 3);
    for (int p = 0; p < 3; p++) {
        assert_int_equal(t[p].error, -ETIMEDOUT);
        assert_non_null(strstr(t[p].why, "did not come"));
    }
    assert_int_equal(resources_descriptors(), fds);
    assert_int_equal(resources_arena_maps(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_by_name),
                                        cmocka_unit_test(test_by_descriptor),
                                        cmocka_unit_test(test_deadline) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
