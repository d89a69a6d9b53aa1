/* ctest: needs=proc */
/* What lies at an address: by both ways of asking, and what counts as ordinary memory. */
#include "os/maps.h"
#include "os/memory.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#define PAGE memory_page()

static char *map(int protection, int flags)
{
    char *at = mmap(NULL, 4 * PAGE, protection, flags | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    return at;
}

static const char *ordinary(const void *at, size_t bytes)
{
    static char said[256];
    struct text t = TEXT_IN(said);
    text_clear(&t);
    int r = maps_ordinary(at, bytes, &t);
    assert_true(r == 0 ? said[0] == 0 : r == -EINVAL && said[0] != 0);
    return said;
}

/* Every mapping of this process, asked for by its first byte, its last, and the hole before it. */
static void test_both_ways_agree(void **state)
{
    (void)state;
    struct mapping m, other;
    int n = 0;
    for (uintptr_t at = 0; maps_at(at, &m) == 0; at = m.to, n++) {
        assert_true(m.from >= at && m.to > m.from);
        const uintptr_t asked[] = { at, m.from, m.to - 1 };
        for (int i = 0; i < 3; i++) {
            assert_int_equal(maps_at_by_text(asked[i], &other), 0);
            assert_true(other.from == m.from && other.to == m.to && other.readable == m.readable
                        && other.writable == m.writable && other.executable == m.executable
                        && other.shared == m.shared && other.file == m.file);
            assert_string_equal(other.name, m.name);
        }
    }
    assert_true(n > 5);
    assert_int_equal(maps_at(UINTPTR_MAX, &m), -ENOENT);
    assert_int_equal(maps_at_by_text(UINTPTR_MAX, &m), -ENOENT);
}

static void test_kinds(void **state)
{
    (void)state;
    struct mapping m;
    char *at = map(PROT_READ, MAP_SHARED);
    assert_int_equal(maps_at((uintptr_t)at, &m), 0);
    assert_true(m.from == (uintptr_t)at && m.shared && m.readable && !m.writable && !m.executable);
    munmap(at, 4 * PAGE);
    at = map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);
    assert_int_equal(maps_at((uintptr_t)at + 100, &m), 0);
    assert_true(m.from <= (uintptr_t)at && !m.shared && m.writable && m.executable && !m.file);
    munmap(at, 4 * PAGE);
}

static void test_ordinary(void **state)
{
    (void)state;
    char local[100] = "";
    char *heap = malloc(50), *large = malloc(1 << 20);
    assert_string_equal(ordinary(heap, 50), "");
    assert_string_equal(ordinary(large, 1 << 20), "");
    assert_non_null(strstr(ordinary(local, 100), "stack"));
    assert_non_null(strstr(ordinary("text", 5), "file"));
    free(heap);
    free(large);
    char *at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_GROWSDOWN);
    assert_non_null(strstr(ordinary(at, 4 * PAGE), "stack"));
    munmap(at, 4 * PAGE);
    at = map(PROT_NONE, MAP_PRIVATE);
    assert_non_null(strstr(ordinary(at, 4 * PAGE), "not readable"));
    munmap(at, 4 * PAGE);
    at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
    memset(at, 5, 4 * PAGE);
    assert_string_equal(ordinary(at, 4 * PAGE), "");
    assert_int_equal(at[PAGE], 5);                   /* asking changes nothing */
    munmap(at + 2 * PAGE, PAGE);
    assert_non_null(strstr(ordinary(at, 4 * PAGE), "nothing"));
    assert_string_equal(ordinary(at, 2 * PAGE), "");
    munmap(at, 4 * PAGE);
}

/* No descriptor left to ask by: that is said, and not taken for a hole. */
static void test_cannot_ask(void **state)
{
    (void)state;
    struct rlimit all;
    char said[256];
    struct text t = TEXT_IN(said);
    char *at = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, all.rlim_max });
    int r = maps_ordinary(at, 4 * PAGE, &t);
    setrlimit(RLIMIT_NOFILE, &all);
    assert_int_equal(r, -EMFILE);
    assert_non_null(strstr(said, "cannot be read"));
    munmap(at, 4 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways_agree),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_ordinary),
        cmocka_unit_test(test_cannot_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
