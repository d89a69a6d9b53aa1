/* ctest: timeout=120 labels=fuzz */
/* A descriptor of anything else, or a damaged arena, is refused by a sentence. Every bit of the
 * header is turned once: either the arena is refused, or the bit is in a field that nobody relies
 * on; never does looking at it crash. */
#include "arena/offsets.h"

#include "os/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL (UINT64_C(16) << 20)

static char why_room[512];
static struct text why;
static int fd;
static uint64_t bytes;
static struct arena_header good;

/* The creator has detached: each attach below maps anew, as a stranger's would. */
static int setup(void **state)
{
    struct arena a;
    (void)state;
    why = TEXT_IN(why_room);
    text_clear(&why);
    if (arena_create(&a,
                     &(struct arena_plan){
                         .size = 3, .job = "fuzz", .span_bytes = SMALL, .rules = "x" },
                     &why)
        != 0)
        return -1;
    fd = fcntl(a.fd, F_DUPFD_CLOEXEC, 100);
    bytes = a.bytes;
    memcpy((void *)&good, a.header, sizeof good);
    arena_detach(&a);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close(fd);
    return 0;
}

static void write_header(const void *h, size_t n)
{
    assert_int_equal(pwrite(fd, h, n, 0), (ssize_t)n);
}

/* Walks all that an attached arena offers. */
static void use(const struct arena *a)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < a->header->size; i++) {
        sum += load_acquire32(&a->seats[i].state);
        sum += (unsigned char)*arena_span(a, i);
    }
    sum += load_acquire32(&arena_slot(a, a->header->slots - 1)->state);
    sum += (unsigned char)a->keys[KEYS_MAX - 1].text[0];
    sum += (unsigned char)((char *)a->store)[a->header->store_bytes - 1];
    sum += arena_site(a, "site.c:1");
    assert_true(sum >= 1);
    assert_true(strlen(a->header->job) < 128 && strlen(a->header->rules) < RULES_TEXT
                && strlen(a->header->version) < 32);
}

static int attach_and_use(void)
{
    struct arena a;
    text_clear(&why);
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 100), r = arena_attach(&a, copy, &why);
    if (r == 0) {
        use(&a);
        arena_detach(&a);
    } else
        close(copy);
    return r;
}

static bool in(size_t at, size_t field, size_t size) { return at >= field && at < field + size; }
#define IN(at, field) in(at, offsetof(struct arena_header, field), sizeof good.field)

static bool is_free_field(size_t at)
{
    return IN(at, birth) || IN(at, origin) || IN(at, first_seq) || IN(at, uid) || IN(at, verify)
        || IN(at, job) || IN(at, rules);
}

static void test_every_bit(void **state)
{
    (void)state;
    unsigned char h[sizeof good];
    for (size_t bit = 0; bit < 8 * sizeof good; bit++) {
        size_t at = bit / 8;
        memcpy(h, (const void *)&good, sizeof h);
        h[at] = (unsigned char)(h[at] ^ 1u << bit % 8);
        write_header(h, sizeof h);
        int r = attach_and_use();
        bool behind_version = IN(at, version)
            && at > offsetof(struct arena_header, version) + strlen(arena_version());
        if (is_free_field(at) || behind_version)
            assert_true(r == 0);
        else if (IN(at, layout_hash) || IN(at, version)) {
            assert_int_equal(r, -EPROTO);
            assert_non_null(strstr(why.at, "let both be of one installation"));
        } else
            assert_int_equal(r, -EINVAL);
        assert_true(r == 0 || why.used > 10);
    }
}

static void test_random_headers(void **state)
{
    (void)state;
    unsigned char h[sizeof good];
    srand(1);
    for (int i = 0; i < 20000; i++) {
        memcpy(h, (const void *)&good, sizeof h);
        /* whole words, extreme ones among them; magic and hash stay */
        for (int n = 1 + rand() % 4; n > 0; n--) {
            static const uint64_t extremes[] = {
                0, 1, UINT64_MAX, UINT64_C(1) << 63, 4096, UINT32_MAX, UINT64_C(1) << 32, INT64_MAX
            };
            size_t word = 2 + (size_t)rand() % 15;
            uint64_t v = rand() % 2 ? extremes[rand() % 8] : (uint64_t)rand() << (rand() % 48);
            memcpy(h + 8 * word, &v, sizeof v);
        }
        write_header(h, sizeof h);
        int r = attach_and_use();
        assert_true(r == 0 || r == -EINVAL || r == -EPROTO);
    }
}

/* Strings without an end, each in turn. */
static void test_unended_strings(void **state)
{
    (void)state;
    struct arena_header h;
    memcpy((void *)&h, (const void *)&good, sizeof h);
    memset(h.job, 'x', sizeof h.job);
    write_header(&h, sizeof h);
    assert_int_equal(attach_and_use(), -EINVAL);
    memcpy((void *)&h, (const void *)&good, sizeof h);
    memset(h.rules, 'x', sizeof h.rules);
    write_header(&h, sizeof h);
    assert_int_equal(attach_and_use(), -EINVAL);
    memcpy((void *)&h, (const void *)&good, sizeof h);
    memset(h.version, 'x', sizeof h.version);
    write_header(&h, sizeof h);
    assert_int_equal(attach_and_use(), -EINVAL);
}

/* A header that fits itself, but not the descriptor's size: two ranks more than there is
 * room for. */
static void test_larger_than_its_memory(void **state)
{
    (void)state;
    struct arena_header h;
    struct arena_places p;
    memcpy((void *)&h, (const void *)&good, sizeof h);
    assert_int_equal(arena_places(&p, 5, good.slots, good.store_bytes, good.span_bytes), 0);
    h.size = 5;
    h.bytes = p.bytes;
    h.seats_at = p.seats_at, h.sites_at = p.sites_at, h.keys_at = p.keys_at,
    h.slots_at = p.slots_at;
    h.slot_bytes = p.slot_bytes, h.store_at = p.store_at, h.spans_at = p.spans_at;
    write_header(&h, sizeof h);
    assert_int_equal(attach_and_use(), -EINVAL);
    write_header(&good, sizeof good);
    assert_int_equal(attach_and_use(), 0);
}

static void test_unfinished(void **state)
{
    (void)state;
    struct arena_header h;
    memcpy((void *)&h, (const void *)&good, sizeof h);
    store_release64(&h.layout_hash, 0);
    write_header(&h, sizeof h);
    assert_int_equal(attach_and_use(), -EINVAL);
    assert_non_null(strstr(why_room, "never finished"));
}

static void expect_refused(int other)
{
    struct arena a;
    assert_true(other >= 0);
    text_clear(&why);
    assert_int_equal(arena_attach(&a, other, &why), -EINVAL);
    assert_true(why.used > 10);
    text_clear(&why);
    assert_int_equal(arena_attach_readonly(&a, other, &why), -EINVAL);
    close(other);
}

static int unsealed_copy(void)
{
    int copy = memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(copy, (off_t)bytes), 0);
    assert_int_equal(pwrite(copy, &good, sizeof good, 0), sizeof good);
    return copy;
}

static void test_other_descriptors(void **state)
{
    (void)state;
    struct arena a;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[1]);
    expect_refused(ends[0]);
    expect_refused(open("/dev/zero", O_RDWR | O_CLOEXEC));
    expect_refused(open("/", O_RDONLY | O_CLOEXEC));
    expect_refused(memory_create(100));              /* sealed, and too short for a header */
    expect_refused(memory_create(bytes));            /* sealed, and empty */
    expect_refused(unsealed_copy());                 /* a peer could cut it off under us */
    assert_int_equal(arena_attach(&a, -1, &why), -EINVAL);
}

static void test_places(void **state)
{
    (void)state;
    struct arena_places p;
    assert_int_equal(arena_places(&p, 0, 1, PLACES_STORE, SMALL), -EINVAL);
    assert_int_equal(arena_places(&p, RANKS_MAX + 1, 1, PLACES_STORE, SMALL), -EINVAL);
    assert_int_equal(arena_places(&p, 1, 0, PLACES_STORE, SMALL), -EINVAL);
    assert_int_equal(arena_places(&p, 1, SLOTS_MAX + 1, PLACES_STORE, SMALL), -EINVAL);
    assert_int_equal(arena_places(&p, 1, 1, PLACES_STORE, SMALL + 4096), -EINVAL);
    assert_int_equal(arena_places(&p, 1, 1, PLACES_STORE, PLACES_SPAN_MOST * 2), -EINVAL);
    assert_int_equal(arena_places(&p, 1, 1, PLACES_STORE, 0), -EINVAL);
    assert_int_equal(arena_places(&p, 1, 1, 0, SMALL), -EINVAL);
    assert_int_equal(arena_places(&p, 1, 1, PLACES_STORE + 4096, SMALL), -EINVAL);
    assert_int_equal(arena_places(&p, 1, 1, PLACES_STORE_MOST * 2, SMALL), -EINVAL);
    assert_int_equal(arena_places(&p, RANKS_MAX, SLOTS_MAX, PLACES_STORE_MOST, PLACES_SPAN_MOST),
                     0);
    assert_true(p.bytes < INT64_MAX && p.bytes > RANKS_MAX * PLACES_SPAN_MOST);
    assert_true(layout_hash() != 0 && layout_hash() == layout_hash());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_bit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_headers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unended_strings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_larger_than_its_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unfinished, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_descriptors, setup, teardown),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
