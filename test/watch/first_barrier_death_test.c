/* ctest: timeout=120 labels=faults,nosan */
/* Ranks that die in the first barrier of more ranks than one sleep can watch, and more than have a
 * descriptor of each other; with the kernel's mark and without. Everybody hears it soon, and who it
 * was. */
#include "base/atomic.h"
#include "base/clock.h"
#include "support/robust_list.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tutti.h>
#include <unistd.h>

enum { RANKS = 150, VICTIMS_MOST = 4 };
#define SOON_NS UINT64_C(10000000000)

static struct scene {
    int victims[VICTIMS_MOST], n;
    bool marked;
    shared32 come;                    /* ranks about to call the barrier */
    shared64 killed_ns;               /* the first victim, right before */
    struct { int error, pid; uint64_t ended_ns; char why[256]; } rank[RANKS];
} *scene;

static bool is_victim(int rank)
{
    for (int i = 0; i < scene->n; i++)
        if (scene->victims[i] == rank)
            return true;
    return false;
}

static int body(tutti_comm *world, void *arg)
{
    int me = tutti_rank(world);
    (void)arg;
    scene->rank[me].pid = (int)getpid();
    if (!scene->marked)
        robust_list_replace();
    fetch_add32(&scene->come, 1);
    if (is_victim(me)) {
        uint64_t none = 0;
        while (load_acquire32(&scene->come) < RANKS)
            sched_yield();
        swap_if64(&scene->killed_ns, &none, clock_ns());
        raise(SIGKILL);
    }
    scene->rank[me].error = tutti_barrier(world, NULL);
    scene->rank[me].ended_ns = clock_ns();
    snprintf(scene->rank[me].why, sizeof scene->rank[me].why, "%s", tutti_explain(world));
    return 0;
}

static bool names_a_victim(const char *why)
{
    char who[32];
    for (int i = 0; i < scene->n; i++) {
        snprintf(who, sizeof who, "rank %d ", scene->victims[i]);
        if (strstr(why, who))
            return true;
    }
    return false;
}

static void die(const int *victims, int n, bool marked)
{
    *scene = (struct scene){ .n = n, .marked = marked };
    memcpy(scene->victims, victims, (size_t)n * sizeof *victims);
    const tutti_options options = { .timeout_ms = 60000 };           /* the life of the job */
    assert_int_equal(tutti_spawn(RANKS, body, NULL, &options, NULL), n);
    for (int r = 0; r < RANKS; r++) {
        if (is_victim(r))
            continue;
        if (scene->rank[r].error != -EOWNERDEAD || !names_a_victim(scene->rank[r].why))
            print_error("rank %d: %d %s\n", r, scene->rank[r].error, scene->rank[r].why);
        assert_int_equal(scene->rank[r].error, -EOWNERDEAD);
        assert_true(names_a_victim(scene->rank[r].why));
        assert_true(scene->rank[r].ended_ns - load_acquire64(&scene->killed_ns) < SOON_NS);
    }
}

static const int first[] = { 0 }, last[] = { RANKS - 1 }, several[] = { 0, 1, 77, 140 };

static void marked_deaths(void **state)
{
    (void)state;
    die(first, 1, true);
    die(last, 1, true);
    die(several, 4, true);
}

static void deaths_without_a_mark(void **state)
{
    (void)state;
    die(first, 1, false);
    die(last, 1, false);
    die(several, 4, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marked_deaths), cmocka_unit_test(deaths_without_a_mark),
    };
    scene = mmap(NULL, sizeof *scene, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return scene == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
