/* ctest: timeout=60 labels=tsan */
/* Call sites: one number per text, readable by all, whoever filled the entry and whoever died while
 * doing so. */
#include "arena/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL (UINT64_C(16) << 20)

static char why_room[512];
static struct text why;
static struct arena a;

static int setup(void **state)
{
    (void)state;
    why = TEXT_IN(why_room);
    text_clear(&why);
    return arena_create(&a, &(struct arena_plan){ .size = 2, .span_bytes = SMALL }, &why);
}

static int teardown(void **state)
{
    (void)state;
    arena_detach(&a);
    return 0;
}

static void test_same_text_same_number(void **state)
{
    (void)state;
    char copy[] = "train.c:88";
    uint32_t n = arena_site(&a, "train.c:88"), m = arena_site(&a, "train.c:89");
    assert_true(n >= 1 && n <= SITES_MAX && m >= 1 && m != n);
    assert_int_equal(arena_site(&a, copy), n);
    assert_string_equal(arena_site_text(&a, n), "train.c:88");
    assert_string_equal(arena_site_text(&a, m), "train.c:89");
}

static void test_unknown(void **state)
{
    (void)state;
    assert_int_equal(arena_site(&a, NULL), 0);
    assert_string_equal(arena_site_text(&a, 0), "?");
    assert_string_equal(arena_site_text(&a, 5), "?");
    assert_string_equal(arena_site_text(&a, SITES_MAX + 1), "?");
    assert_string_equal(arena_site_text(&a, UINT32_MAX), "?");
    uint32_t empty = arena_site(&a, "");
    assert_true(empty != 0);
    assert_string_equal(arena_site_text(&a, empty), "");
}

static void test_long_keeps_its_tail(void **state)
{
    (void)state;
    char site[300], exact[SITE_TEXT];
    memset(site, 'd', sizeof site);
    strcpy(site + sizeof site - 10, "deep.c:42");
    assert_string_equal(arena_site_text(&a, arena_site(&a, site)),
                        site + strlen(site) - (SITE_TEXT - 1));
    memset(exact, 'e', sizeof exact - 1);
    exact[sizeof exact - 1] = 0;
    assert_string_equal(arena_site_text(&a, arena_site(&a, exact)), exact);
}

static void test_full(void **state)
{
    (void)state;
    char site[32];
    static uint32_t number[SITES_MAX];
    for (int i = 0; i < SITES_MAX; i++) {
        snprintf(site, sizeof site, "file.c:%d", i);
        number[i] = arena_site(&a, site);
        assert_true(number[i] != 0);
    }
    assert_int_equal(arena_site(&a, "one too many"), 0);
    for (int i = 0; i < SITES_MAX; i++) {
        snprintf(site, sizeof site, "file.c:%d", i);
        assert_int_equal(arena_site(&a, site), number[i]);
        assert_string_equal(arena_site_text(&a, number[i]), site);
    }
}

/* The half-finished entry of a filler that died, written by hand: others pass by it, for good. */
static void test_hole(void **state)
{
    (void)state;
    uint32_t n = arena_site(&a, "hole.c:1");
    struct site *site = &a.sites[n - 1];
    store_release32(&site->hash, 0);
    strcpy(site->text, "hole.c:");
    assert_string_equal(arena_site_text(&a, n), "?");
    uint32_t m = arena_site(&a, "hole.c:1");
    assert_true(m != 0 && m != n);
    assert_string_equal(arena_site_text(&a, m), "hole.c:1");
    assert_int_equal(arena_site(&a, "hole.c:1"), m);
}

static void test_text_without_end(void **state)
{
    (void)state;
    uint32_t n = arena_site(&a, "damaged.c:1");
    memset(a.sites[n - 1].text, 'x', SITE_TEXT);
    assert_string_equal(arena_site_text(&a, n), "?");
}

enum { TEXTS = 300 };

static void *intern_all(void *arg)
{
    uint32_t *number = arg;
    char site[32];
    for (int i = 0; i < TEXTS; i++) {
        snprintf(site, sizeof site, "race.c:%d", i);
        number[i] = arena_site(&a, site);
    }
    return NULL;
}

/* Threads of one process agree on every number. */
static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    static uint32_t number[THREADS][TEXTS];
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, intern_all, number[t]), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    for (int i = 0; i < TEXTS; i++) {
        char site[32];
        snprintf(site, sizeof site, "race.c:%d", i);
        assert_string_equal(arena_site_text(&a, number[0][i]), site);
    }
}

/* Processes that intern at once, one of them killed at it: every text can be read by its number, no
 * entry is lost but holes. */
static void test_processes(void **state)
{
    (void)state;
    enum { CHILDREN = 4, ROUNDS = 20 };
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pid[CHILDREN];
        for (int c = 0; c < CHILDREN; c++) {
            pid[c] = fork();
            if (pid[c] == 0) {
                char site[48];
                for (int i = 0; i < 30; i++) {
                    snprintf(site, sizeof site, "r%d.c:%d", round, i);
                    if (strcmp(arena_site_text(&a, arena_site(&a, site)), site) != 0)
                        _exit(1);
                }
                _exit(0);
            }
        }
        kill(pid[round % CHILDREN], SIGKILL);
        for (int c = 0; c < CHILDREN; c++) {
            int status;
            waitpid(pid[c], &status, 0);
            assert_true(c == round % CHILDREN || status == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_text_same_number, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_keeps_its_tail, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text_without_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_processes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
