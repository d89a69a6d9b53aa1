/* ctest: timeout=60 needs=robust */
/* A thread that is cancelled in a wait is cancelled behind it, and leaves a comm that others
 * can use. And a rank that was told to spin for an hour looks for deaths and deadlines
 * meanwhile. What a call leaves of its thread's state is looked at around every call of every
 * test: support/caller_state.c. */
#include <tutti.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

enum wait { BARRIER, RECV, TURN, GET, WORK, SHRINK, WAITS };

struct plan { enum wait wait; atomic_int cancelled; };
struct waiter { tutti_comm *world; enum wait wait; atomic_int tid, result; };

static int waits(tutti_comm *world, enum wait wait)
{
    char byte;
    size_t one = 1;
    int r;
    tutti_work *work;
    tutti_comm *comm;
    switch (wait) {
    case BARRIER: return tutti_barrier(world, NULL);
    case RECV: return tutti_recv(&byte, 1, TUTTI_U8, 1, 3, NULL, world, NULL);
    case TURN: return (r = tutti_turn_begin(world, NULL)) ? r : tutti_turn_end(world);
    case GET: return tutti_get("key", &byte, &one, world, NULL);
    case WORK:
        return (r = tutti_barrier(world, &(tutti_call){ .work = &work })) ? r : tutti_wait(work, 0);
    case SHRINK: return (r = tutti_comm_shrink(world, &comm)) ? r : tutti_comm_free(comm);
    default: return -EINVAL;
    }
}

/* The other rank: what the waiter waits for. */
static int answers(tutti_comm *world, enum wait wait)
{
    char byte = 1;
    switch (wait) {
    case RECV: return tutti_send(&byte, 1, TUTTI_U8, 0, 3, world, NULL);
    case GET: return tutti_set("key", &byte, 1, world);
    default: return waits(world, wait);
    }
}

static void *is_cancelled(void *arg)
{
    struct waiter *w = arg;
    atomic_store(&w->tid, (int)syscall(SYS_gettid));
    atomic_store(&w->result, waits(w->world, w->wait));
    pthread_testcancel();
    return NULL;
}

static char state_of(int tid)
{
    char path[64], line[512] = "", *at;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *f = fopen(path, "r");
    at = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
    if (f)
        fclose(f);
    return at ? at[2] : 0;
}

/* Rank 1's turn is after rank 0's: there rank 1 is the one that waits. */
static int cancels(tutti_comm *world, void *arg)
{
    struct plan *plan = arg;
    int me = tutti_rank(world), r;
    if (me != (plan->wait == TURN)) {
        while (!atomic_load(&plan->cancelled))
            sched_yield();
        r = answers(world, plan->wait);
        return r ? 1 : tutti_barrier(world, NULL) ? 2 : 0;
    }
    struct waiter w = { .world = world, .wait = plan->wait, .result = 1 };
    pthread_t thread;
    void *end;
    if (pthread_create(&thread, NULL, is_cancelled, &w))
        return 3;
    while (!atomic_load(&w.tid) || state_of(atomic_load(&w.tid)) != 'S')
        sched_yield();
    pthread_cancel(thread);
    atomic_store(&plan->cancelled, 1);
    pthread_join(thread, &end);
    if (end != PTHREAD_CANCELED || atomic_load(&w.result) != 0)
        return fprintf(stderr, "wait %d: %d\n", plan->wait, atomic_load(&w.result)), 4;
    return tutti_barrier(world, NULL) ? 5 : tutti_finalize(world) ? 6 : 0;
}

static void cancelled(void **state)
{
    (void)state;
    struct plan *plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                             -1, 0);
    assert_true(plan != MAP_FAILED);
    for (int i = 0; i < WAITS; i++) {
        int status[2];
        plan->wait = (enum wait)i;
        atomic_store(&plan->cancelled, 0);
        int failed = tutti_spawn(2, cancels, plan, &(tutti_options){ .timeout_ms = 20000 }, status);
        if (failed)
            fail_msg("wait %d: %d: %x %x", i, failed, status[0], status[1]);
    }
    munmap(plan, sizeof *plan);
}

static int spins(tutti_comm *world, void *arg)
{
    int *dies = arg;
    if (tutti_barrier(world, NULL))
        return 1;
    if (tutti_rank(world) == 1) {
        if (*dies)
            raise(SIGKILL);
        return tutti_recv(NULL, 0, TUTTI_U8, 0, 1, NULL, world, NULL) < 0 ? 0 : 2;
    }
    int r = tutti_barrier(world, *dies ? NULL : &(tutti_call){ .timeout_ms = 50 });
    return r == (*dies ? -EOWNERDEAD : -ETIMEDOUT) ? 0 : 3;
}

static void spinning(void **state)
{
    (void)state;
    for (int dies = 0; dies < 2; dies++) {
        int status[2];
        assert_int_equal(tutti_spawn(2, spins, &dies,
                                     &(tutti_options){ .spin_us = UINT_MAX, .timeout_ms = 20000 },
                                     status),
                         dies);
        assert_int_equal(status[0], 0);
    }
}

static int looks(tutti_comm *world, void *arg)
{
    int cancel;
    (void)world;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    return cancel != *(int *)arg;
}

/* The function that a child of tutti_spawn runs can be cancelled if the caller of
 * tutti_spawn could. */
static void spawned(void **state)
{
    (void)state;
    const int states[] = { PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DISABLE };
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        int cancel = states[i], before, status[2];
        pthread_setcancelstate(cancel, &before);
        int failed = tutti_spawn(2, looks, &cancel, &(tutti_options){ .timeout_ms = 20000 },
                                 status);
        pthread_setcancelstate(before, &cancel);
        if (failed)
            fail_msg("%d: %x %x", failed, status[0], status[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(cancelled), cmocka_unit_test(spinning),
                                        cmocka_unit_test(spawned) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
