/* ctest: timeout=120 labels=tsan */
/* tutti_explain gives a whole report to every thread, while other threads' calls on the comm fail:
 * not the head of one and the tail of another, and none that is cut. Who is told that the comm is
 * broken can read why, also while another thread still writes it. */
#include <tutti.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT = 8192, TIMES = 100000, TIMES_SANITIZED = 10000 };

static char known[2][TEXT];
static tutti_comm *world;
static atomic_bool over;

/* How often it fails, and is read at least. */
static int times(void)
{
    return getenv("TUTTI_TEST_SANITIZED") ? TIMES_SANITIZED : TIMES;
}

/* Two failures whose reports differ in length and from their first word on. */
static void fails(int which)
{
    static char foreign;
    int error = which ? tutti_free(&foreign, world)
                      : tutti_delete("a key that nobody has set, which is longer", world);
    assert_true(error < 0);
}

static bool is_known(const char *text)
{
    return !strcmp(text, known[0]) || !strcmp(text, known[1]);
}

static void *read_always(void *arg)
{
    for (int i = 0; i < times() || !atomic_load(&over); i++) {
        const char *text = tutti_explain(world);
        if (!is_known(text)) {
            snprintf(arg, TEXT, "%s", text);
            return arg;
        }
    }
    return NULL;
}

static void whole(void **state)
{
    (void)state;
    static char seen[TEXT];
    assert_int_equal(tutti_init(&world, NULL), 0);
    for (int which = 0; which < 2; which++) {
        fails(which);
        snprintf(known[which], TEXT, "%s", tutti_explain(world));
    }
    assert_true(strlen(known[0]) > 20 && strlen(known[1]) > 20 && strcmp(known[0], known[1]));
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_always, seen), 0);
    for (int i = 0; i < times(); i++)
        fails(i & 1);
    atomic_store(&over, true);
    void *torn;
    pthread_join(reader, &torn);
    if (torn)
        fail_msg("a report that is none: \"%s\"", seen);
    tutti_finalize(world);
}

/* Rank 1 dies. At rank 0 the progress thread meets it in work under way, while this thread goes in
 * and out of the comm. */
static int is_told(tutti_comm *comm, void *arg)
{
    (void)arg;
    char byte = 1;
    tutti_work *work;
    if (tutti_barrier(comm, NULL))
        return 1;
    if (tutti_rank(comm) == 1) {
        for (int i = 0; i < 50; i++)
            sched_yield();
        kill(getpid(), SIGKILL);
    }
    if (tutti_barrier(comm, &(tutti_call){ .work = &work }))
        return 2;
    int r = 0;
    while (r == 0)
        if ((r = tutti_send(&byte, 1, TUTTI_U8, 0, 5, comm, NULL)) == 0)
            r = tutti_recv(&byte, 1, TUTTI_U8, 0, 5, NULL, comm, NULL);
    if ((r != -ECANCELED && r != -EOWNERDEAD) || !*tutti_explain(comm)) {
        fprintf(stderr, "%d, \"%s\"\n", r, tutti_explain(comm));
        return 3;
    }
    r = tutti_wait(work, 0);
    return r == -EOWNERDEAD || r == -ECANCELED ? 0 : 4;
}

static void there(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        int status[2];
        assert_int_equal(tutti_spawn(2, is_told, NULL, NULL, status), 1);
        assert_int_equal(status[0], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(whole), cmocka_unit_test(there) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
