/* ctest: timeout=120 labels=tsan */
/* tutti_explain gives a whole report to every thread, while other threads' calls on the comm fail: not the head of one and the tail of another,
 * and none that is cut. */
#include <tutti.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT = 8192, FAILURES = 100000, READS = 100000 };

static char known[2][TEXT];
static tutti_comm *world;
static atomic_bool over;

/* Two failures whose reports differ in length and from their first word on. */
static void fails(int which)
{
    static char foreign;
    int error = which ? tutti_free(&foreign, world) : tutti_delete("a key that nobody has set, which is longer", world);
    assert_true(error < 0);
}

static bool is_known(const char *text) { return !strcmp(text, known[0]) || !strcmp(text, known[1]); }

static void *read_always(void *arg)
{
    for (int i = 0; i < READS || !atomic_load(&over); i++) {
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
    for (int i = 0; i < FAILURES; i++)
        fails(i & 1);
    atomic_store(&over, true);
    void *torn;
    pthread_join(reader, &torn);
    if (torn)
        fail_msg("a report that is none: \"%s\"", seen);
    tutti_finalize(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(whole) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
