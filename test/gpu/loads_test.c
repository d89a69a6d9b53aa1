/* CUDA is seen when the program has loaded it, whoever asks, and nothing of the program's is kept.
 * Each case is a process. */
#include "case_device.h"
#include "driver_probe.h"
#include "gpu/loads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>

#include <cmocka.h>

enum { ENOUGH = 200, MARKS = 5 };     /* questions until a mark is loaded; so many marks, at most */
#define NAME "libcuda.so.1"

static _Atomic int asked;                            /* how often the loader was */

int __real_dl_iterate_phdr(int (*call)(struct dl_phdr_info *, size_t, void *), void *arg);
int __wrap_dl_iterate_phdr(int (*call)(struct dl_phdr_info *, size_t, void *), void *arg);
int __wrap_dl_iterate_phdr(int (*call)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    asked++;
    return __real_dl_iterate_phdr(call, arg);
}

/* Asks so often that a mark is loaded. The last ENOUGH questions' own of the loader; -1: CUDA is
 * there. */
static int asks_enough(void)
{
    for (int i = 0; i < 2 * ENOUGH; i++) {
        if (i == ENOUGH)
            asked = 0;
        if (driver_loaded())
            return -1;
    }
    return asked;
}

static int comes(void)
{
    IS(driver_loaded(), 0);
    YES(dlopen(NAME, RTLD_LAZY));
    IS(driver_loaded(), 1);
    return 0;
}

#ifdef __GLIBC__

static int asked_no_more(void)
{
    IS(asks_enough(), 0);
    return comes();
}

static int asked_never(void)
{
    driver_ahead();
    asked = 0;
    IS(driver_loaded(), 0);
    IS(asked, 0);
    return comes();
}

static int asked_never_behind_init(void)
{
    tutti_comm *world;
    const tutti_options options = { .job = "loads", .size = 1, .flags = TUTTI_AHEAD };
    OK(tutti_init(&world, &options));
    asked = 0;
    IS(driver_loaded(), 0);
    IS(asked, 0);
    OK(tutti_finalize(world));
    return comes();
}

static void *asks_in_thread(void *none)
{
    static int result;
    (void)none;
    result = asks_enough();
    return &result;
}

/* To load a mark would wait for what another thread loads. */
static int no_mark_beside_threads(void)
{
    pthread_t thread;
    void *result;
    OK(pthread_create(&thread, NULL, asks_in_thread, NULL));
    OK(pthread_join(thread, &result));
    IS(*(int *)result, ENOUGH);
    return comes();
}

/* Something else is loaded: asked again, until there is a mark behind it, or until it goes. */
static int others_come_and_go(void)
{
    YES(load_another());
    IS(asks_enough(), 0);
    void *other = load_another();
    YES(other);
    asked = 0;
    IS(driver_loaded(), 0);
    YES(asked > 0);
    dlclose(other);
    asked = 0;
    IS(driver_loaded(), 0);
    IS(asked, 0);
    YES(load_another());
    IS(asks_enough(), 0);
    return comes();
}

/* What the program closes is gone, so that it can load a new one of the same name. */
static int nothing_of_the_program_is_kept(void)
{
    void *other = load_another(), *map;
    YES(other);
    OK(dlinfo(other, RTLD_DI_LINKMAP, &map));
    IS(asks_enough(), 0);
    dlclose(other);
    bool there = false;
    for (struct link_map *m = _r_debug.r_map; m; m = m->l_next)
        there |= m == map;
    IS(there, 0);
    IS(asks_enough(), 0);
    return comes();
}

/* A program that still loads gets no mark. */
static int no_mark_while_it_loads(void)
{
    asked = 0;
    for (int i = 0; i < ENOUGH; i++) {
        void *other = load_another();
        YES(other);
        IS(driver_loaded(), 0);
        dlclose(other);
    }
    IS(asked, ENOUGH);
    IS(asks_enough(), 0);
    return comes();
}

/* Then the loader is asked each time. */
static int no_more_marks(void)
{
    int marks = 0;
    for (; marks <= MARKS; marks++) {
        YES(load_another());
        if (asks_enough() != 0)
            break;
    }
    YES(marks > 0 && marks <= MARKS);
    IS(asks_enough(), ENOUGH);
    return comes();
}

static void the_loader_is_asked_when_it_has_loaded(void **state)
{
    (void)state;
    PASSES(asked_no_more, NULL);
    PASSES(asked_never, NULL);
    PASSES(asked_never_behind_init, NULL);
    PASSES(no_mark_beside_threads, NULL);
    PASSES(others_come_and_go, NULL);
    PASSES(nothing_of_the_program_is_kept, NULL);
    PASSES(no_mark_while_it_loads, NULL);
    PASSES(no_more_marks, NULL);
}

#else

static void the_loader_is_asked_when_it_has_loaded(void **state)
{
    (void)state;
    skip_because("only glibc's list is known to grow at its end");
}

#endif

/* The loader is asked by numbers while nothing has come. */
static int looked_for_once(void)
{
    struct loads none = loads_ask(NAME, 0);
    YES(none.number && !none.there);
    YES(dlopen(NAME, RTLD_LAZY));
    struct loads now = loads_ask(NAME, none.number);
    YES(now.there && now.number != none.number);
    IS(loads_ask(NAME, now.number).there, 0);
    return 0;
}

/* A file of another name, whose name in itself is the driver's. */
static int known_by_its_soname(void)
{
    IS(driver_loaded(), 0);
    YES(load_copy(TEST_BUILD "/fake_cuda/" NAME));
    YES(loads_ask(NAME, 0).there);
    IS(driver_loaded(), 1);
    return 0;
}

static void *asks_on(void *arg)
{
    while (!driver_loaded())
        ;
    return arg;
}

static int beside_threads(void)
{
    pthread_t thread[2];
    void *other;
    for (int i = 0; i < 2; i++)
        OK(pthread_create(&thread[i], NULL, asks_on, NULL));
    for (int i = 0; i < ENOUGH; i++) {
        YES(other = load_another());
        IS(driver_loaded(), 0);
        dlclose(other);
    }
    OK(comes());
    for (int i = 0; i < 2; i++)                      /* each sees it by itself */
        OK(pthread_join(thread[i], NULL));
    return 0;
}

static void cuda_is_seen(void **state)
{
    (void)state;
    PASSES(comes, NULL);
    PASSES(looked_for_once, NULL);
    PASSES(known_by_its_soname, NULL);
    PASSES(beside_threads, NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (case_needs_fake("is not there before it is loaded"))
        return CASE_SKIP;
    cases_with(argv, "fake_cuda");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuda_is_seen), cmocka_unit_test(the_loader_is_asked_when_it_has_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
