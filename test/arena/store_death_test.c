/* ctest: timeout=600 labels=faults,nosan needs=robust */
/* A writer dies inside the store: at random times in a tight loop; and, stepped by ptrace, at one
 * instruction after the other of each change and of the repair. Afterwards everything is whole,
 * each key has its old value or its new one, and no memory is lost. */
#include "arena/store_alloc.h"
#include "arena/robust.h"
#include "base/clock.h"
#include "support/skip.h"
#include "support/store_check.h"
#include "support/team.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE UINT64_C(30000000000)
enum { MIB = 1 << 20, KEYS = 40, ROOM = 5000, WRITERS = 3 };

static struct arena arena;

static void make(void)
{
    char said[512];
    struct text why = TEXT_IN(said);
    text_clear(&why);
    assert_int_equal(arena_create(&arena,
                                  &(struct arena_plan){
                                      .size = 1, .span_bytes = 16 * MIB, .store_bytes = 2 * MIB },
                                  &why),
                     0);
}

static struct store_key key_of(const char *text) { return store_key(text, strlen(text)); }

static int set(const char *key, const void *value, size_t n)
{
    struct store_key k = key_of(key);
    return store_set(&arena, &k, value, n, PATIENCE);
}

static int get(const char *key, void *value, size_t *n)
{
    uint64_t version;
    struct store_key k = key_of(key);
    return store_get(&arena, &k, value, n, &version, PATIENCE);
}

static int add(const char *key, int64_t delta, int64_t *now)
{
    struct store_key k = key_of(key);
    return store_add(&arena, &k, delta, now, PATIENCE);
}

static int delete(const char *key)
{
    struct store_key k = key_of(key);
    return store_delete(&arena, &k, PATIENCE);
}

/* ---- at random times ---- */

struct shared { shared32 stop, started; shared64 confirmed; };
static struct shared *shared;

/* A value says of itself whether it is whole: all of its bytes follow from its length. */
static bool value_whole(const char *value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (value[i] != (char)(n + i))
            return false;
    return true;
}

static int writer(uint64_t seed, bool counts)
{
    char key[16], room[ROOM];
    int64_t now;
    fetch_add32(&shared->started, 1);
    while (!load_acquire32(&shared->stop)) {
        uint64_t r = team_random(&seed);
        size_t n = r >> 61 ? (r >> 8) % 200 : (r >> 8) % sizeof room;
        snprintf(key, sizeof key, "%u", (unsigned)(r % KEYS));
        for (size_t i = 0; i < n; i++)
            room[i] = (char)(n + i);
        int e = (r >> 40) % 4 ? set(key, room, n) : delete(key);
        if (e != 0 && e != -ENOENT)
            return 1;
        n = sizeof room;
        e = get(key, room, &n);
        if (e != 0 ? e != -ENOENT : !value_whole(room, n))
            return 2;
        if (add("all", 1, &now) != 0)
            return 3;
        if (counts) {
            if (add("mine", 1, &now) != 0)
                return 4;
            store_release64(&shared->confirmed, (uint64_t)now);
        }
    }
    return 0;
}

static pid_t start(uint64_t seed, bool counts)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(writer(seed, counts));
    assert_true(pid > 0);
    return pid;
}

static void kill_and_reap(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void values_whole(void)
{
    char key[16], room[ROOM];
    for (int i = 0; i < KEYS; i++) {
        size_t n = sizeof room;
        snprintf(key, sizeof key, "%d", i);
        int r = get(key, room, &n);
        assert_true(r == -ENOENT || (r == 0 && value_whole(room, n)));
    }
}

static int setup(void **state)
{
    (void)state;
    make();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED;
}

static int teardown(void **state)
{
    (void)state;
    arena_detach(&arena);
    munmap((void *)shared, sizeof *shared);
    return 0;
}

static void test_one_writer_killed(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    int64_t mine = 0;
    for (int i = 0; i < team_many("TUTTI_TEST_STEPS", 300, 300); i++) {
        store_release32(&shared->started, 0);
        pid_t pid = start(team_random(&random), true);
        while (!load_acquire32(&shared->started))
            cpu_pause();
        team_spin(team_random(&random) % 300000);
        kill_and_reap(pid);
        assert_true(store_whole(&arena));
        values_whole();
        assert_int_equal(add("mine", 0, &mine), 0);
        int64_t confirmed = (int64_t)load_acquire64(&shared->confirmed);
        assert_true(mine == confirmed || mine == confirmed + 1);
    }
    assert_true(load_acquire64(&arena.store->grown) < MIB);
    assert_true(mine > 100);
}

/* The others go on, and find nothing but whole values. */
static void test_one_of_several_killed(void **state)
{
    (void)state;
    uint64_t random = team_seed();
    pid_t pid[WRITERS];
    int64_t all = 0;
    for (int i = 0; i < WRITERS; i++)
        pid[i] = start(team_random(&random), false);
    for (int i = 0; i < team_many("TUTTI_TEST_STEPS", 300, 300); i++) {
        uint32_t started = load_acquire32(&shared->started);
        kill_and_reap(pid[i % WRITERS]);
        pid[i % WRITERS] = start(team_random(&random), false);
        while (load_acquire32(&shared->started) == started)
            cpu_pause();
        team_spin(team_random(&random) % 2000000);
    }
    store_release32(&shared->stop, 1);
    for (int i = 0; i < WRITERS; i++) {
        int status;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
    assert_true(store_whole(&arena));
    values_whole();
    assert_int_equal(add("all", 0, &all), 0);
    assert_true(all > 100);
    assert_true(load_acquire64(&arena.store->grown) < MIB);
}

/* ---- instruction by instruction ---- */

static char old_value[600], new_value[700];

/* A change and the state it is made in; what `key` may hold when its maker has died. */
struct change {
    const char *name;
    void (*prepare)(void);
    int (*make)(void);
    const void *before, *after;
    size_t before_bytes, after_bytes;
};

static void prepare_nothing(void) { }

static void prepare_others(void)
{
    assert_int_equal(set("a", old_value, 300) | set("b", old_value, 300), 0);
}

static void prepare_old(void)
{
    prepare_others();
    assert_int_equal(set("key", old_value, sizeof old_value) | set("c", old_value, 300), 0);
}
static void prepare_between_free(void)
{
    assert_int_equal(set("x", old_value, 300) | set("a", old_value, 300)
                         | set("key", old_value, sizeof old_value) | set("y", old_value, 300),
                     0);
    assert_int_equal(set("b", old_value, 300) | delete("x") | delete("a") | delete("y"), 0);
    assert_int_equal(set("a", old_value, 500), 0);
}
/* The last block is free and too small: it grows. */
static void prepare_short_tail(void)
{
    static char large[120000];
    prepare_others();
    assert_int_equal(set("large", large, sizeof large), 0);
    assert_int_equal(set("larger", large, 131072 - 2 * 352 - 120064 - 500), 0);
}
static void prepare_number(void)
{
    int64_t now;
    prepare_others();
    assert_int_equal(add("key", 5, &now), 0);
}

static int make_set(void) { return set("key", new_value, sizeof new_value); }
static int make_set_small(void) { return set("key", new_value, 100); }
static int make_delete(void) { return delete("key"); }
static int make_add(void) { int64_t now; return add("key", 7, &now); }
static int make_compare(void)
{
    struct store_key k = key_of("key");
    return store_compare_set(&arena, &k, (struct store_value){ old_value, sizeof old_value },
                             (struct store_value){ new_value, 500 }, PATIENCE)
        != 1;
}

static const int64_t five = 5, seven = 7, twelve = 12;
static const struct change changes[] = {
    { "the first of all", prepare_nothing, make_set_small, NULL, new_value, 0, 100 },
    { "a new key", prepare_others, make_set, NULL, new_value, 0, sizeof new_value },
    { "another value", prepare_old, make_set, old_value, new_value, sizeof old_value,
      sizeof new_value },
    { "a value that needs more room", prepare_short_tail, make_set, NULL, new_value, 0,
      sizeof new_value },
    { "a new number", prepare_others, make_add, NULL, &seven, 0, 8 },
    { "another number", prepare_number, make_add, &five, &twelve, 8, 8 },
    { "a compared one", prepare_old, make_compare, old_value, new_value, sizeof old_value, 500 },
    { "one taken out", prepare_old, make_delete, old_value, NULL, sizeof old_value, 0 },
    { "one taken out between free ones", prepare_between_free, make_delete, old_value, NULL,
      sizeof old_value, 0 },
};

static int step(pid_t pid)
{
    int status = 0;
    if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0)
        return -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* A child that makes the change, killed after that many instructions. False: it came to its
 * end before. */
static bool die_after(int (*change)(void), long steps)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        _exit(change());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (long i = 0; i < steps && WIFSTOPPED(status); i++)
        status = step(pid);
    if (WIFSTOPPED(status)) {
        kill_and_reap(pid);
        return true;
    }
    assert_int_equal(status, 0);
    return false;
}

static bool holds(const char *key, const void *value, size_t n)
{
    static char room[STORE_VALUE_MOST];
    size_t m = sizeof room;
    int r = get(key, room, &m);
    return value ? r == 0 && m == n && !memcmp(room, value, n) : r == -ENOENT;
}

/* 1: the new value is there, 0: the old one. */
static int look_after(const struct change *c, long at)
{
    if (!store_whole(&arena))
        fail_msg("%s, killed after %ld instructions", c->name, at);
    bool done = holds("key", c->after, c->after_bytes),
         undone = holds("key", c->before, c->before_bytes);
    if (done == undone)
        fail_msg("%s, killed after %ld instructions: neither the old value nor the new one",
                 c->name, at);
    if (c->prepare != prepare_nothing)
        assert_true(holds("b", old_value, 300));
    /* life goes on */
    assert_int_equal(set("key", new_value, 650) | set("another", new_value, 700), 0);
    assert_true(store_whole(&arena));
    return done;
}

static void fill_values(void)
{
    memset(old_value, 'o', sizeof old_value);
    memset(new_value, 'n', sizeof new_value);
}

static bool can_step(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 0 : 77);
    waitpid(pid, &status, 0);
    return status == 0;
}

static void test_every_instruction(void **state)
{
    (void)state;
    if (!can_step())
        skip_because("no ptrace here");
    fill_values();
    uint64_t random = team_seed();
    long stride = team_many("TUTTI_TEST_STRIDE", getenv("TUTTI_PROVE") ? 1 : 31, 100);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const struct change *c = &changes[i];
        bool alive = true;
        int came[2] = { 0, 0 };
        long at = (long)(team_random(&random) % (uint64_t)stride) + 1;
        for (; alive; at += stride) {
            make();
            c->prepare();
            alive = die_after(c->make, at);
            came[look_after(c, at)]++;
            arena_detach(&arena);
        }
        print_message("%s: up to %ld instructions, %d times the old value, %d times the new one\n",
                      c->name, at, came[0], came[1]);
        assert_true(came[0] > 0 && came[1] > 0);
    }
}

static int only_look(void)
{
    size_t n = 0;
    return get("nothing", NULL, &n) != -ENOENT;
}

/* Dies in the middle of a change; the one that repairs dies in the repair; the next one makes
 * it whole. */
static void test_death_in_the_repair(void **state)
{
    (void)state;
    if (!can_step())
        skip_because("no ptrace here");
    fill_values();
    uint64_t random = team_seed();
    int dirty = 0;
    for (int i = 0; i < team_many("TUTTI_TEST_STEPS", 5, 5); i++) {
        const struct change *c = &changes[1 + i % 4];        /* those that change the books */
        long at = 0;
        /* until one has died with it half made */
        for (int tries = 0; !at || !load_acquire32(&arena.store->dirty); tries++) {
            assert_true(tries < 1000);
            if (at)
                arena_detach(&arena);
            make();
            c->prepare();
            at = 300 + (long)(team_random(&random) % 900);
            die_after(c->make, at);
        }
        for (int n = 0; n < 2; n++)
            die_after(only_look, 100 + (long)(team_random(&random) % 12000));
        dirty += load_acquire32(&arena.store->dirty) != 0;
        look_after(c, at);
        arena_detach(&arena);
    }
    print_message("%d of them were still to be repaired after two\n", dirty);
    assert_true(dirty > 0);
}

/* A holder that stands still: others give up in time. One that dies in a store that somebody has
 * written over: refused from then on. */
static int hold(void)
{
    if (robust_lock(&arena.store->lock, PATIENCE) < 0)
        return 1;
    store_release32(&shared->started, 1);
    for (;;)
        pause();
}

static void test_holder_stands_still(void **state)
{
    (void)state;
    struct store_key k = key_of("a");
    assert_int_equal(set("a", "1", 1) | set("b", "2", 1), 0);
    for (int damage = 0; damage < 2; damage++) {
        store_release32(&shared->started, 0);
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            _exit(hold());
        while (!load_acquire32(&shared->started))
            cpu_pause();
        assert_int_equal(store_set(&arena, &k, "2", 1, 20000000), -ETIMEDOUT);
        assert_int_equal(store_delete(&arena, &k, 0), -ETIMEDOUT);
        if (damage) {
            struct store_alloc h = store_alloc_of(arena.store, arena.header->store_bytes);
            store_release64(&store_alloc_block(&h, h.first)->bytes, 7);
            store_release32(&arena.store->dirty, 1);
        }
        kill_and_reap(pid);
        assert_int_equal(set("c", "3", 1), damage ? -EIO : 0);
    }
    assert_int_equal(delete("a"), -EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_writer_killed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_of_several_killed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_holder_stands_still, setup, teardown),
        cmocka_unit_test(test_every_instruction),
        cmocka_unit_test(test_death_in_the_repair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
