/* ctest: timeout=60 needs=populate */
/* Pieces of a span: aligned, present, disjoint, and used again. */
#include "arena/span.h"

#include "arena/arena.h"
#include "os/memory.h"
#include "support/team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL (UINT64_C(16) << 20)

static char why_room[512];
static struct text why;
static struct arena a;
static struct span *span;
static char *base;
static size_t page;

static int setup(void **state)
{
    (void)state;
    why = TEXT_IN(why_room);
    text_clear(&why);
    if (arena_create(&a, &(struct arena_plan){ .size = 2, .span_bytes = SMALL }, &why) != 0)
        return -1;
    base = arena_span(&a, 1);
    page = memory_page();
    span = span_open(base, SMALL);
    return span ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    span_close(span);
    arena_detach(&a);
    return 0;
}

static bool present(const char *at, size_t bytes)
{
    unsigned char seen[4096];
    if (mincore((void *)(uintptr_t)at, bytes, seen) != 0)
        return false;
    for (size_t i = 0; i < (bytes + page - 1) / page; i++)
        if (!(seen[i] & 1))
            return false;
    return true;
}

static void test_aligned_and_present(void **state)
{
    (void)state;
    int error;
    char *one = span_take(span, 1, &error), *two = span_take(span, page + 904, &error),
         *big = span_take(span, 3 << 20, &error);
    assert_non_null(one);
    assert_non_null(two);
    assert_non_null(big);
    assert_int_equal(error, 0);
    assert_int_equal((uintptr_t)one % page, 0);
    assert_int_equal((uintptr_t)two % page, 0);
    assert_int_equal((uintptr_t)big % (2 << 20), 0);
    assert_true(two >= one + page || one >= two + 2 * page);
    assert_true(present(one, page) && present(two, 2 * page) && present(big, 3 << 20));
    assert_false(present(base + SMALL - page, page));          /* nothing else was touched */
    assert_non_null(span_take(span, 0, &error));               /* zero bytes are a place, too */
}

static void test_used_again(void **state)
{
    (void)state;
    int error;
    char *first = span_take(span, 10000, &error), *second = span_take(span, 10000, &error);
    span_give(span, first);
    assert_ptr_equal(span_take(span, 8192, &error), first);
    span_give(span, first);
    span_give(span, second);
    assert_ptr_equal(span_take(span, 20000, &error), first);   /* the two have become one */
}

static void test_full(void **state)
{
    (void)state;
    int error = 0, n = 0;
    while (span_take(span, 1 << 20, &error))
        n++;
    assert_int_equal(n, 16);
    assert_int_equal(error, -ENOSPC);
    assert_null(span_take(span, 1, &error));
    span_give(span, base + (5 << 20));
    assert_ptr_equal(span_take(span, 1 << 20, &error), base + (5 << 20));
    assert_null(span_take(span, SIZE_MAX, &error));
    assert_int_equal(error, -ENOSPC);
    assert_null(span_take(span, SIZE_MAX - page + 1, &error));
    assert_null(span_take(span, (size_t)INT64_MAX, &error));
}

static void test_strangers_are_ignored(void **state)
{
    (void)state;
    int error, local;
    char *one = span_take(span, 2 * page, &error);
    span_give(span, &local);
    span_give(span, NULL);
    span_give(span, one + page);
    span_give(span, base + SMALL);
    span_give(span, base - 1);
    assert_ptr_not_equal(span_take(span, page, &error), one);  /* still taken */
    span_give(span, one);
    span_give(span, one);
    assert_ptr_equal(span_take(span, page, &error), one);
}

/* Random takes and gives against a list: no two pieces overlap, each keeps its bytes, and at the
 * end all of it is one piece. */
static void test_random(void **state)
{
    (void)state;
    enum { MOST = 200, STEPS = 20000 };
    static struct { char *at; size_t bytes; char fill; } held[MOST];
    int n = 0, error, refused = 0;
    srand(2);
    for (int step = 0; step < STEPS; step++) {
        if (n < MOST && rand() % 2) {
            size_t bytes = (size_t)(rand() % (rand() % 20 ? 60000 : 5000000)) + 1;
            char *at = span_take(span, bytes, &error);
            refused += !at;
            if (!at) {
                assert_int_equal(error, -ENOSPC);
                continue;
            }
            assert_true(at >= base && at + bytes <= base + SMALL);
            for (int i = 0; i < n; i++)
                assert_true(at + bytes <= held[i].at || held[i].at + held[i].bytes <= at);
            char fill = (char)rand();
            at[0] = at[bytes - 1] = fill;
            held[n].at = at, held[n].bytes = bytes, held[n].fill = fill;
            n++;
        } else if (n > 0) {
            int i = rand() % n;
            assert_true(held[i].at[0] == held[i].fill
                        && held[i].at[held[i].bytes - 1] == held[i].fill);
            span_give(span, held[i].at);
            held[i] = held[--n];
        }
    }
    assert_true(refused > 0);
    while (n > 0)
        span_give(span, held[--n].at);
    assert_ptr_equal(span_take(span, SMALL, &error), base);
}

/* The same against a map that says of each page whose it is: the place must be the first that fits,
 * 2 MiB-aligned ones first for large pieces. The seed is printed; TUTTI_TEST_SEED repeats a run.
 * Books only: no page is touched. */
enum { PAGES = 16384, STEPS_MODEL = 30000 };
static uint16_t owner[PAGES];

static size_t model_find(size_t pages, bool aligned)
{
    size_t run = 0;
    for (size_t i = 0; i < PAGES; i++) {
        bool start = run > 0 || !aligned || (uintptr_t)(base + i * page) % (2 << 20) == 0;
        run = owner[i] == 0 && start ? run + 1 : 0;
        if (run == pages)
            return i + 1 - pages;
    }
    return PAGES;
}

static void test_model(void **state)
{
    (void)state;
    enum { MOST = 1000 };
    static struct { char *at; size_t pages; } held[MOST + 1];
    uint64_t seed = team_seed();
    /* beyond the arena's end: it is not touched */
    struct span *books = span_open(base, (uint64_t)PAGES * page);
    struct span_piece piece;
    int n = 0, error, refused = 0;
    assert_non_null(books);
    memset(owner, 0, sizeof owner);
    for (int step = 0; step < STEPS_MODEL; step++) {
        if (n < MOST && team_random(&seed) % 100 < 52) {
            size_t pages = 1 + team_random(&seed) % (team_random(&seed) % 20 ? 20 : 1500);
            size_t expected = pages * page >= (size_t)2 << 20 ? model_find(pages, true) : PAGES;
            expected = expected == PAGES ? model_find(pages, false) : expected;
            char *at = span_reserve(books, pages * page - team_random(&seed) % page, SPAN_CALLER,
                                    &error);
            if (expected == PAGES) {
                assert_null(at);
                assert_int_equal(error, -ENOSPC);
                refused++;
                continue;
            }
            assert_ptr_equal(at, base + expected * page);
            held[++n].at = at;
            held[n].pages = pages;
            for (size_t i = 0; i < pages; i++)
                owner[expected + i] = 1;
        } else if (n > 0) {
            int i = 1 + (int)(team_random(&seed) % (uint64_t)n);
            char *inside = held[i].at + team_random(&seed) % (held[i].pages * page);
            assert_true(span_find(books, inside, &piece));
            assert_ptr_equal(piece.at, held[i].at);
            assert_int_equal(piece.bytes, held[i].pages * page);
            assert_int_equal(piece.use, SPAN_CALLER);
            for (size_t k = 0; k < held[i].pages; k++)
                owner[(size_t)(held[i].at - base) / page + k] = 0;
            span_give(books, held[i].at);
            assert_true(!span_find(books, inside, &piece) || piece.use == SPAN_FREE);
            held[i] = held[n--];
        }
    }
    assert_true(refused > 0);
    while (n > 0)
        span_give(books, held[n--].at);
    assert_true(span_first(books, &piece) && piece.use == SPAN_FREE
                && piece.bytes == (uint64_t)PAGES * page);
    assert_false(span_find(books, base + (size_t)PAGES * page, &piece));
    assert_false(span_find(books, base - 1, &piece));
    span_close(books);
}

/* A large piece prefers a multiple of 2 MiB, and takes what there is if no such place is left. */
static void test_large_without_alignment(void **state)
{
    (void)state;
    int error;
    char *one = span_reserve(span, page, SPAN_CALLER, &error),
         *big = span_reserve(span, 13 << 20, SPAN_CALLER, &error);
    assert_ptr_equal(one, base);
    assert_ptr_equal(big, base + (2 << 20));
    assert_null(span_reserve(span, 2 << 20, SPAN_CALLER, &error));
    span_give(span, one);
    assert_ptr_equal(span_reserve(span, 2 << 20, SPAN_CALLER, &error), base);
    span_give(span, big);
    span_give(span, base);
    assert_ptr_equal(span_reserve(span, page, SPAN_CALLER, &error), base);
    assert_ptr_equal(span_reserve(span, (16 << 20) - page, SPAN_CALLER, &error), base + page);
}

/* 100,000 live pieces, given back in another order: quadratic books would take minutes. */
static void test_many(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    static char *at[MANY];
    int error;
    struct span *books = span_open(base, (uint64_t)MANY * 2 * page);
    for (int i = 0; i < MANY; i++) {
        at[i] = span_reserve(books, page + 904, SPAN_CALLER, &error);
        assert_ptr_equal(at[i], base + (size_t)i * 2 * page);
    }
    assert_null(span_reserve(books, 1, SPAN_CALLER, &error));
    for (int round = 0; round < 2; round++) {
        for (int i = round; i < MANY; i += 2)
            span_give(books, at[i]);
        if (round == 0)
            assert_null(span_reserve(books, 2 * page + 1, SPAN_CALLER, &error));
    }
    assert_ptr_equal(span_reserve(books, (size_t)MANY * 2 * page, SPAN_CALLER, &error), base);
    span_close(books);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_aligned_and_present, setup, teardown),
        cmocka_unit_test_setup_teardown(test_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strangers_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random, setup, teardown),
        cmocka_unit_test_setup_teardown(test_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_without_alignment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
