/* ctest: timeout=60 needs=limit */
/* An arena as its creator leaves it: whole, of the asked shape, and gone without a trace when it
 * is detached. */
#include "arena/offsets.h"

#include "os/memory.h"
#include "support/skip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL (UINT64_C(16) << 20)

static char why_room[512];
static struct text why;

static int setup(void **state)
{
    (void)state;
    why = TEXT_IN(why_room);
    text_clear(&why);
    return 0;
}

static void test_shape(void **state)
{
    (void)state;
    static const int sizes[] = { 1, 2, 3, 64, RANKS_MAX };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct arena a;
        struct arena_plan plan = { sizes[i], "job", SMALL, "barrier:flags", 77, 3 << 20, 0 };
        assert_int_equal(arena_create(&a, &plan, &why), 0);
        assert_int_equal(a.header->size, sizes[i]);
        assert_int_equal(a.header->slots, SLOTS_MAX);
        assert_int_equal(a.header->span_bytes, SMALL);
        assert_int_equal(a.header->store_bytes, 4 << 20);    /* in whole units */
        assert_int_equal(a.header->first_seq, 77);
        assert_string_equal(a.header->job, "job");
        assert_string_equal(a.header->rules, "barrier:flags");
        assert_int_equal(load_acquire64(&a.header->layout_hash), layout_hash());
        assert_true(a.header->birth != 0 && a.header->origin.ns != 0);
        assert_int_equal((uintptr_t)a.base % (2 << 20), 0);
        assert_true(a.fd >= 100);
        for (int p = 0; p < sizes[i]; p++)
            assert_int_equal(load_acquire32(process_mark_word(&a.seats[p].mark)), 0);
        arena_detach(&a);
        assert_null(a.base);
        assert_int_equal(a.fd, -1);
    }
}

/* Slots, members and spans lie behind each other and within the arena; what is beyond the last
 * is refused. */
static void test_parts_do_not_overlap(void **state)
{
    (void)state;
    struct arena a;
    enum { N = 5 };
    assert_int_equal(arena_create(&a, &(struct arena_plan){ .size = N, .span_bytes = SMALL }, &why),
                     0);
    assert_true((char *)a.join >= (char *)(a.header + 1));
    assert_true((char *)a.seats >= (char *)(a.join + 1));
    assert_true((char *)a.sites >= (char *)(a.seats + N));
    assert_true((char *)a.keys >= (char *)(a.sites + SITES_MAX));
    assert_true((char *)arena_slot(&a, 0) >= (char *)(a.keys + KEYS_MAX));
    for (uint32_t i = 0; i + 1 < a.header->slots; i++) {
        struct slot *slot = arena_slot(&a, i);
        slot->size = N;
        assert_int_equal((uintptr_t)arena_member(slot, 0) % LINE, 0);
        assert_true((char *)arena_member(slot, 0) >= (char *)&slot->world_rank[N]);
        assert_ptr_equal(arena_member(slot, 1), arena_member(slot, 0) + 1);
        assert_true((char *)(arena_member(slot, N - 1) + 1) <= (char *)arena_slot(&a, i + 1));
    }
    assert_null(arena_slot(&a, a.header->slots));
    struct slot *last = arena_slot(&a, a.header->slots - 1);
    last->size = N;
    assert_true((char *)(arena_member(last, N - 1) + 1) <= (char *)a.store);
    assert_int_equal(a.header->store_bytes, PLACES_STORE);
    assert_true((char *)a.store + a.header->store_bytes <= arena_span(&a, 0));
    for (uint32_t p = 0; p < N; p++) {
        assert_int_equal((uintptr_t)arena_span(&a, p) % (2 << 20), 0);
        assert_ptr_equal(arena_span(&a, p), arena_span(&a, 0) + p * a.header->span_bytes);
    }
    assert_null(arena_span(&a, N));
    assert_int_equal(arena_span(&a, N - 1) + a.header->span_bytes - a.base, (ptrdiff_t)a.bytes);
    arena_detach(&a);
}

/* Control pages are there from the start: mincore says so without touching them. */
static void test_control_pages_are_present(void **state)
{
    (void)state;
    struct arena a;
    assert_int_equal(arena_create(&a, &(struct arena_plan){ .size = 8, .span_bytes = SMALL }, &why),
                     0);
    unsigned char present[64];
    const size_t page = memory_page();
    size_t pages = (PLACES_SEATS + 8 * sizeof(struct seat) + page - 1) / page;
    assert_true(pages <= sizeof present);
    assert_int_equal(mincore(a.base, pages * page, present), 0);
    for (size_t i = 0; i < pages; i++)
        assert_true(present[i] & 1);
    arena_detach(&a);
}

static void test_refusals(void **state)
{
    (void)state;
    struct arena a;
    char long_rules[RULES_TEXT + 8];
    memset(long_rules, 'r', sizeof long_rules - 1);
    long_rules[sizeof long_rules - 1] = 0;
    const struct arena_plan bad[] = { { .size = 0 }, { .size = -1 }, { .size = RANKS_MAX + 1 },
                                      { .size = 2, .rules = long_rules },
                                      { .size = 2, .span_bytes = UINT64_MAX },
                                      { .size = 2, .store_bytes = UINT64_MAX } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        text_clear(&why);
        assert_int_equal(arena_create(&a, &bad[i], &why), -EINVAL);
        assert_true(why.used > 10);
        assert_int_equal(a.fd, -1);
    }
    long_rules[RULES_TEXT - 1] = 0;                  /* the longest that fits */
    assert_int_equal(arena_create(&a,
                                  &(struct arena_plan){
                                      .size = 1, .span_bytes = SMALL, .rules = long_rules },
                                  &why),
                     0);
    assert_string_equal(a.header->rules, long_rules);
    arena_detach(&a);
}

static int limited(__rlimit_resource_t resource, rlim_t bytes, uint64_t span_bytes)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct arena a;
        setrlimit(resource, &(struct rlimit){ bytes, bytes });
        int r = arena_create(&a, &(struct arena_plan){ .size = 4, .span_bytes = span_bytes }, &why);
        int code = r == 0 ? (a.header->span_bytes >= PLACES_SPAN_LEAST ? 0 : 1)
            : r == -ENOMEM ? 2
            : r == -EFBIG ? 3
            : 4;
        _exit(why.used == 0 && r ? 5 : code);
    }
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* The default size is bargained down to what a limit leaves; a size that was asked for is not. */
static void test_limits(void **state)
{
    (void)state;
    if (getenv("TUTTI_TEST_SANITIZED"))
        skip_because("a sanitizer's shadow memory does not live under a limit");
    assert_int_equal(limited(RLIMIT_AS, 400 << 20, 0), 0);
    assert_int_equal(limited(RLIMIT_AS, 400 << 20, UINT64_C(1) << 30), 2);
    assert_int_equal(limited(RLIMIT_FSIZE, 300 << 20, 0), 0);
    assert_int_equal(limited(RLIMIT_FSIZE, 300 << 20, UINT64_C(1) << 30), 3);
    assert_int_equal(limited(RLIMIT_FSIZE, 1 << 20, 0), 3);
}

static void test_long_job_is_cut(void **state)
{
    (void)state;
    char job[300];
    struct arena a;
    memset(job, 'j', sizeof job - 1);
    job[sizeof job - 1] = 0;
    assert_int_equal(arena_create(&a,
                                  &(struct arena_plan){
                                      .size = 1, .job = job, .span_bytes = SMALL },
                                  &why),
                     0);
    assert_int_equal(strlen(a.header->job), sizeof a.header->job - 1);
    arena_detach(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_shape, setup),
        cmocka_unit_test_setup(test_parts_do_not_overlap, setup),
        cmocka_unit_test_setup(test_control_pages_are_present, setup),
        cmocka_unit_test_setup(test_refusals, setup),
        cmocka_unit_test_setup(test_limits, setup),
        cmocka_unit_test_setup(test_long_job_is_cut, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
