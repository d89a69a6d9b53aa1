/* ctest: timeout=300 labels=tsan */
/* The store beside a plain dictionary: whatever happens to one happens to the other. Then its
 * limits, its memory, its waiters' versions. */
#include "arena/store_alloc.h"
#include "os/memory.h"
#include "support/store_check.h"
#include "support/team.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define PATIENCE UINT64_C(30000000000)
enum { MIB = 1 << 20, KEYS = 200 };

static struct arena arena;
static char bytes_room[STORE_VALUE_MOST + 16], read_room[STORE_VALUE_MOST + 16];

static int make(uint64_t store_bytes)
{
    char said[512];
    struct text why = TEXT_IN(said);
    text_clear(&why);
    return arena_create(&arena,
                        &(struct arena_plan){
                            .size = 2, .span_bytes = 16 * MIB, .store_bytes = store_bytes },
                        &why);
}

static int setup(void **state) { (void)state; return make(0); }
static int setup_small(void **state) { (void)state; return make(4 * MIB); }
static int teardown(void **state) { (void)state; arena_detach(&arena); return 0; }

static struct store_key key_of(const char *text) { return store_key(text, strlen(text)); }

static int set(const char *key, const void *value, size_t n)
{
    struct store_key k = key_of(key);
    return store_set(&arena, &k, value, n, PATIENCE);
}

static int delete(const char *key)
{
    struct store_key k = key_of(key);
    return store_delete(&arena, &k, PATIENCE);
}

static int get(const char *key, void *value, size_t *n)
{
    uint64_t version;
    struct store_key k = key_of(key);
    return store_get(&arena, &k, value, n, &version, PATIENCE);
}

/* ---- beside a dictionary ---- */

struct word { char *value; size_t n; bool there, number; };

static size_t random_size(uint64_t *random, size_t most)
{
    uint64_t r = team_random(random);
    switch (r % 8) {
    case 0: return 0;
    case 1: return 8;
    case 2: case 3: return (r >> 8) % (most + 1);
    default: return (r >> 8) % 64;
    }
}

static void word_put(struct word *w, const void *value, size_t n, bool number)
{
    free(w->value);
    *w = (struct word){ malloc(n + 1), n, true, number };
    assert_non_null(w->value);
    memcpy(w->value, value, n);
}

static void same(const char *key, const struct word *w)
{
    size_t n = sizeof read_room;
    if (!w->there) {
        assert_int_equal(get(key, read_room, &n), -ENOENT);
        return;
    }
    assert_int_equal(get(key, read_room, &n), 0);
    assert_int_equal(n, w->n);
    assert_memory_equal(read_room, w->value, n);
    if (n) {
        n--;
        assert_int_equal(get(key, read_room, &n), -EMSGSIZE);
        assert_int_equal(n, w->n);
    }
}

static void random_bytes(uint64_t *random, size_t n)
{
    uint64_t pattern = team_random(random);
    for (size_t i = 0; i < n; i += 8, pattern = pattern * 6364136223846793005u + 1)
        memcpy(bytes_room + i, &pattern, n - i < 8 ? n - i : 8);
}

static void step_set(uint64_t *random, const char *key, struct word *w, size_t most)
{
    size_t n = random_size(random, most);
    random_bytes(random, n);
    int r = set(key, bytes_room, n);
    if (r == -ENOSPC)
        return;
    assert_int_equal(r, 0);
    word_put(w, bytes_room, n, false);
}

static void step_add(uint64_t *random, const char *key, struct word *w)
{
    struct store_key k = key_of(key);
    int64_t delta = (int64_t)team_random(random), now = 7, was = 0;
    int r = store_add(&arena, &k, delta, &now, PATIENCE);
    if (w->there && !w->number) {
        assert_int_equal(r, -EINVAL);
        return;
    }
    if (r == -ENOSPC)
        return;
    assert_int_equal(r, 0);
    if (w->there)
        memcpy(&was, w->value, 8);
    was = (int64_t)((uint64_t)was + (uint64_t)delta);
    assert_true(now == was);
    word_put(w, &was, 8, true);
}

static void step_compare(uint64_t *random, const char *key, struct word *w, size_t most)
{
    struct store_key k = key_of(key);
    size_t n = random_size(random, most);
    bool right = team_random(random) % 2;
    static char expected[STORE_VALUE_MOST + 16];
    size_t m = w->there && (right || !w->n) ? w->n : 3;
    memcpy(expected, w->there && right ? w->value : "no!",
           w->there && right ? w->n
               : m < 3 ? m
               : 3);
    if (!w->there && right)
        m = 0;
    random_bytes(random, n);
    bool is = m ? w->there && w->n == m && !memcmp(w->value, expected, m) : !w->there;
    int r = store_compare_set(&arena, &k, (struct store_value){ expected, m },
                              (struct store_value){ bytes_room, n }, PATIENCE);
    if (r == -ENOSPC)
        return;
    assert_int_equal(r, is);
    if (is)
        word_put(w, bytes_room, n, false);
}

static void play(uint64_t seed, int steps, size_t most)
{
    struct word words[KEYS] = { 0 };
    uint64_t random = seed;
    for (int i = 0; i < steps; i++) {
        char key[STORE_KEY_MOST + 1];
        unsigned which = (unsigned)(team_random(&random) % KEYS),
                 length = which % 50 == 0 ? STORE_KEY_MOST - which / 50 : 3 + which % 9;
        snprintf(key, sizeof key, "%0*u", (int)length, which);
        struct word *w = &words[which];
        switch (team_random(&random) % 8) {
        case 0: case 1: case 2: step_set(&random, key, w, most); break;
        case 3: case 4: step_add(&random, key, w); break;
        case 5: step_compare(&random, key, w, most); break;
        case 6:
            assert_int_equal(delete(key), w->there ? 0 : -ENOENT);
            free(w->value);
            *w = (struct word){ 0 };
            break;
        default: break;
        }
        same(key, w);
        if (i % (steps / 50) == 0)
            assert_true(store_whole(&arena));
    }
    uint64_t there = 0, keys, used;
    for (int i = 0; i < KEYS; i++) {
        there += words[i].there;
        free(words[i].value);
    }
    store_figures(&arena, &keys, &used);
    assert_int_equal(keys, there);
    assert_true(store_whole(&arena));
}

static void test_dictionary(void **state)
{
    (void)state;
    play(team_seed(), team_many("TUTTI_TEST_STEPS", 100000, 10000), 3000);
}

static void test_dictionary_large(void **state)
{
    (void)state;
    play(team_seed(), team_many("TUTTI_TEST_STEPS", 5000, 1000), STORE_VALUE_MOST);
}

static void test_dictionary_full(void **state)
{
    (void)state;
    play(team_seed(), team_many("TUTTI_TEST_STEPS", 20000, 3000), 300000);
}

/* ---- memory ---- */

static void test_many_keys(void **state)
{
    (void)state;
    enum { N = 10000 };
    char key[32];
    uint64_t keys, used, n;
    for (int i = 0; i < N; i++) {
        snprintf(key, sizeof key, "rank/%d/endpoint", i);
        assert_int_equal(set(key, &i, sizeof i), 0);
    }
    store_figures(&arena, &keys, &used);
    assert_int_equal(keys, N);
    assert_true(used < 2 * MIB);
    uint64_t buckets = store_buckets(arena.header->store_bytes), longest = 0;
    const shared64 *heads = (const shared64 *)(const void *)((const char *)arena.store + 4096);
    for (uint64_t i = 0; i < buckets; i++, longest = n > longest ? n : longest) {
        n = 0;
        for (uint64_t at = load_acquire64(&heads[i]); at; n++)
            at = load_acquire64(
                &((const struct store_entry *)(const void *)((const char *)arena.store + at))
                     ->next);
    }
    assert_true(longest <= 10);                      /* nobody walks far */
    for (int i = 0, got; i < N; i++) {
        size_t bytes = sizeof got;
        snprintf(key, sizeof key, "rank/%d/endpoint", i);
        assert_int_equal(get(key, &got, &bytes), 0);
        assert_int_equal(got, i);
        if (i % 2)
            assert_int_equal(delete(key), 0);
    }
    store_figures(&arena, &keys, &used);
    assert_int_equal(keys, N / 2);
    assert_true(store_whole(&arena));
}

static void test_counter_needs_no_memory(void **state)
{
    (void)state;
    struct store_key key = key_of("steps");
    int64_t now = 0;
    for (int i = 0; i < team_many("TUTTI_TEST_STEPS", 1000000, 100000); i++) {
        assert_int_equal(store_add(&arena, &key, 1, &now, PATIENCE), 0);
        assert_int_equal(set("step", &now, sizeof now), 0);
    }
    assert_true(load_acquire64(&arena.store->grown) <= 256 << 10);
    assert_true(store_whole(&arena));
}

/* Live at most 100 * 64 KiB; what is free between them must not come to more than the rest of
 * the store. */
static void test_fragmentation(void **state)
{
    (void)state;
    char key[16];
    uint64_t random = team_seed();
    for (int i = 0; i < team_many("TUTTI_TEST_STEPS", 1000000, 50000); i++) {
        uint64_t r = team_random(&random);
        snprintf(key, sizeof key, "key %u", (unsigned)(r % 100));
        assert_int_equal(set(key, bytes_room, (r >> 32) % 65537), 0);
    }
    assert_true(load_acquire64(&arena.store->grown) < 20 * MIB);
    assert_true(store_whole(&arena));
}

static size_t present(const char *at, size_t bytes)
{
    const size_t page = memory_page();
    size_t n = 0;
    unsigned char there;
    for (uintptr_t i = (uintptr_t)at / page * page; i < (uintptr_t)at + bytes; i += page) {
        assert_int_equal(mincore((void *)i, page, &there), 0);
        n += there & 1;
    }
    return n;
}

static void test_idle_costs_a_page(void **state)
{
    (void)state;
    char one = 0;
    size_t n = 1;
    assert_int_equal(get("nothing", &one, &n), -ENOENT);
    assert_int_equal(delete("nothing"), -ENOENT);
    assert_int_equal(present((char *)arena.store, arena.header->store_bytes), 1);
    assert_int_equal(set("something", &one, 1), 0);
    size_t heads = store_buckets(arena.header->store_bytes) * 8 / memory_page() + 1;
    assert_true(present((char *)arena.store, arena.header->store_bytes) <= 1 + heads + 32);
    assert_true(store_whole(&arena));
}

/* ---- limits ---- */

static int fill(size_t bytes)
{
    char key[16];
    for (int n = 0;; n++) {
        snprintf(key, sizeof key, "%07d", n);
        memset(bytes_room, n % 251, bytes);
        int r = set(key, bytes_room, bytes);
        if (r < 0) {
            assert_int_equal(r, -ENOSPC);
            return n;
        }
    }
}

static void test_full(void **state)
{
    (void)state;
    static const size_t sizes[] = { 1, 100, 5000, 65536, 1000000 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        char key[16];
        int64_t now;
        size_t bytes = sizes[s],
               block = layout_round(sizeof(struct store_entry) + bytes + 7, STOCK_UNIT);
        int n = fill(bytes);
        /* nothing is wasted */
        assert_true((uint64_t)(n + 1) * block
                    > arena.header->store_bytes - store_blocks_at(arena.header->store_bytes));
        /* a new value needs room beside the old one … */
        assert_int_equal(set("0000000", bytes_room, bytes), -ENOSPC);
        size_t m = sizeof read_room;
        assert_int_equal(get("0000000", read_room, &m), 0);         /* … which stays as it was */
        assert_int_equal(m, bytes);
        assert_int_equal(read_room[0] | read_room[bytes - 1], 0);
        assert_true(store_whole(&arena));
        snprintf(key, sizeof key, "%07d", n / 2);
        assert_int_equal(delete(key), 0);
        /* what went makes room for its like */
        assert_int_equal(set("another", bytes_room, bytes), 0);
        assert_int_equal(delete("another"), 0);
        struct store_key number = key_of("a numbr");
        assert_int_equal(bytes < 8 ? 0 : store_add(&arena, &number, 1, &now, PATIENCE), 0);
        assert_int_equal(bytes < 8 ? 0 : delete("a numbr"), 0);
        for (int i = 0; i < n; i++) {
            snprintf(key, sizeof key, "%07d", i);
            assert_int_equal(delete(key), i == n / 2 ? -ENOENT : 0);
        }
        assert_true(store_whole(&arena));
        assert_int_equal(arena.store->used, 0);
    }
}

/* Two sizes of one list, the smaller in front: the larger one behind it is found, because nothing
 * else is left. */
static void test_full_finds_the_last(void **state)
{
    (void)state;
    char key[16];
    int n = 0;
    for (int r = 0; r == 0; n++) {
        snprintf(key, sizeof key, "%07d", n);
        r = set(key, bytes_room, n % 2 ? 4700 : 5000);
    }
    for (int i = 0, r = 0; r == 0; i++) {
        snprintf(key, sizeof key, "small%d", i);
        r = set(key, NULL, 0);
    }
    assert_int_equal(delete("0000100") | delete("0000201"), 0);
    assert_int_equal(set("the 1st", bytes_room, 5000), 0);
    assert_int_equal(set("the 2nd", bytes_room, 5000), -ENOSPC);
    assert_int_equal(set("the 2nd", bytes_room, 4700), 0);
    assert_true(store_whole(&arena));
}

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        0, 1, 7, 8, 9, 4095, 4096, 65536, STORE_VALUE_MOST - 1, STORE_VALUE_MOST
    };
    char key[STORE_KEY_MOST + 1];
    for (size_t k = 1; k <= STORE_KEY_MOST; k += k == 1 ? 126 : k == 127 ? 127 : 1)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            memset(key, 'k', k);
            key[k] = 0;
            memset(bytes_room, (int)(i + 1), sizes[i]);
            assert_int_equal(set(key, bytes_room, sizes[i]), 0);
            same(key, &(struct word){ bytes_room, sizes[i], true, false });
        }
    assert_true(store_whole(&arena));
}

/* Keys that their hash does not tell apart, of one length and of several: each has its own value,
 * in front, in the middle and behind. */
static void test_one_hash(void **state)
{
    (void)state;
    static const char *const names[] = { "aa", "ab", "ba", "aaa", "a" };
    enum { N = sizeof names / sizeof *names };
    struct store_key key[N];
    for (int i = 0; i < N; i++) {
        key[i] = (struct store_key){ names[i], strlen(names[i]), 42 };
        assert_int_equal(store_set(&arena, &key[i], &i, sizeof i, PATIENCE), 0);
    }
    for (int gone = 0; gone < N; gone++) {
        assert_int_equal(store_delete(&arena, &key[gone], PATIENCE), 0);
        for (int i = 0, got; i < N; i++) {
            size_t n = sizeof got;
            uint64_t version;
            int r = store_get(&arena, &key[i], &got, &n, &version, PATIENCE);
            assert_int_equal(r, i == gone ? -ENOENT : 0);
            assert_true(r < 0 || got == i);
        }
        assert_int_equal(store_set(&arena, &key[gone], &gone, sizeof gone, PATIENCE), 0);
    }
    assert_int_equal(arena.store->keys, N);
}

/* ---- versions: what waiters wait for ---- */

static void test_versions(void **state)
{
    (void)state;
    struct store_key key = key_of("awaited"), other = key_of("x");
    uint64_t before, after;
    size_t n = 0;
    int64_t now;
    assert_true(store_group(&arena, &other) != store_group(&arena, &key));
    assert_int_equal(store_get(&arena, &key, NULL, &n, &before, PATIENCE), -ENOENT);
    assert_int_equal(store_set(&arena, &other, "1", 1, PATIENCE), 0);
    assert_int_equal(store_compare_set(&arena, &key, (struct store_value){ "a", 1 },
                                       (struct store_value){ "b", 1 }, PATIENCE),
                     0);
    assert_true(load_acquire64(&store_group(&arena, &key)->version) == before);
    for (int how = 0; how < 3; how++) {
        assert_int_equal(store_get(&arena, &key, NULL, &n, &before, PATIENCE), -ENOENT);
        int r = how == 0 ? store_set(&arena, &key, "", 0, PATIENCE)
            : how == 1 ? store_add(&arena, &key, 0, &now, PATIENCE)
            : store_compare_set(&arena, &key, (struct store_value){ NULL, 0 },
                                             (struct store_value){ "b", 1 }, PATIENCE);
        assert_int_equal(r, how == 2);
        after = load_acquire64(&store_group(&arena, &key)->version);
        assert_true(after != before);
        /* nobody waits for a key that is there */
        assert_int_equal(store_set(&arena, &key, "new", 3, PATIENCE), 0);
        assert_true(load_acquire64(&store_group(&arena, &key)->version) == after);
        assert_int_equal(store_delete(&arena, &key, PATIENCE), 0);
    }
}

/* ---- many at once ---- */

enum { CROWD = 4 };

static void *crowd(void *arg)
{
    uint64_t random = (uint64_t)(uintptr_t)arg;
    struct store_key sum = key_of("sum");
    char key[16], room[512];
    for (int i = 0; i < team_many("TUTTI_TEST_STEPS", 50000, 3000); i++) {
        int64_t now;
        uint64_t version, r = team_random(&random);
        if (store_add(&arena, &sum, 1, &now, PATIENCE) != 0)
            return (void *)1;
        int n = snprintf(key, sizeof key, "%u", (unsigned)(r % 30));
        struct store_key k = store_key(key, (size_t)n);
        size_t m = (r >> 8) % sizeof room;
        memset(room, (int)m & 127, m);
        int e = r >> 62 ? store_set(&arena, &k, room, m, PATIENCE)
                        : store_delete(&arena, &k, PATIENCE);
        if (e != 0 && e != -ENOENT)
            return (void *)2;
        m = sizeof room;
        e = store_get(&arena, &k, room, &m, &version, PATIENCE);
        for (size_t j = 0; e == 0 && j < m; j++)
            if (room[j] != (char)(m & 127))
                return (void *)3;                    /* a mixture */
    }
    return NULL;
}

static void test_crowd(void **state)
{
    (void)state;
    pthread_t thread[CROWD];
    uint64_t seed = team_seed();
    int64_t now;
    struct store_key sum = key_of("sum");
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, crowd,
                                        (void *)(uintptr_t)(seed + (uint64_t)i)),
                         0);
    for (int i = 0; i < CROWD; i++) {
        void *result;
        pthread_join(thread[i], &result);
        assert_ptr_equal(result, NULL);
    }
    assert_int_equal(store_add(&arena, &sum, 0, &now, PATIENCE), 0);
    assert_int_equal(now, CROWD * team_many("TUTTI_TEST_STEPS", 50000, 3000));
    assert_true(store_whole(&arena));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dictionary, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dictionary_large, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dictionary_full, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_many_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(test_counter_needs_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fragmentation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_idle_costs_a_page, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_full_finds_the_last, setup_small, teardown),
        cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_versions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_crowd, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
