/* ctest: timeout=120 */
/* The directory of slots in a small arena of this process alone: who finds whose slot, which is
 * given away again, and when. Members are made to leave by their quit words, as a free does, so no
 * second process is needed. */
#include "group/directory.h"
#include "group/comm.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <stdlib.h>

#include <cmocka.h>

static struct { struct tutti_comm *world; const struct arena *arena; } here;

static int set_up(void **state)
{
    (void)state;
    setenv("TUTTI_SPAN_BYTES", "16M", 1);
    if (tutti_init(&here.world, NULL) < 0)
        return -1;
    here.arena = &here.world->world->arena;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return tutti_finalize(here.world);
}

static struct slot *try_get(uint64_t parent, uint64_t nth, int color)
{
    const uint32_t me = 0;
    struct directory_key key = { parent, nth, color, &me, 1 };
    struct slot *slot;
    return directory_find_or_make(here.arena, &key, &slot) == 0 ? slot : NULL;
}

static struct slot *get(uint64_t parent, uint64_t nth, int color)
{
    struct slot *slot = try_get(parent, nth, color);
    assert_non_null(slot);
    if (!slot)
        abort();
    return slot;
}

static void quit(struct slot *slot)
{
    fetch_or32(&arena_member(slot, 0)->quit, QUIT_FREED | QUIT_OVER);
}

static void test_same_key_same_slot(void **state)
{
    (void)state;
    struct slot *a = get(77, 1, 0);
    assert_ptr_equal(get(77, 1, 0), a);
    /* Each part of the key tells apart. */
    struct slot *others[] = { get(78, 1, 0), get(77, 2, 0), get(77, 1, 1), get(77, 1, -1) };
    for (int i = 0; i < 4; i++) {
        assert_ptr_not_equal(others[i], a);
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(others[i], others[j]);
        quit(others[i]);
    }
    assert_ptr_equal(get(77, 1, 0), a);
    quit(a);
}

/* Ranks that begin at the same time do not wait for each other: somebody holds the lock here. */
static void test_world_without_the_lock(void **state)
{
    (void)state;
    struct slot *slot = NULL;
    assert_int_equal(arena_lock(here.arena, UINT64_C(1000000000)), 0);
    assert_int_equal(directory_world(here.arena, &slot), 0);
    arena_unlock(here.arena);
    assert_ptr_equal(slot, here.world->watch.slot);
}

static void test_made_anew(void **state)
{
    (void)state;
    struct slot *a = get(100, 1, 0);
    uint64_t birth = a->birth;
    struct member *m = arena_member(a, 0);
    store_release64(&m->arrival[1].seq, 9);
    store_release64(&m->turns, 9);
    store_release64(&m->queued, 9);
    store_release64(&a->verdict, 9);
    store_release32(&a->news, 9);
    assert_ptr_equal(get(100, 1, 0), a);             /* in use: found, with all that is in it */
    assert_true(load_acquire64(&a->verdict) == 9);
    quit(a);
    /* the first that is free: everything is zero, and the birth another */
    struct slot *b = get(100, 2, 0);
    assert_ptr_equal(b, a);
    assert_true(b->birth > birth);
    assert_true(load_acquire64(&b->verdict) == 0 && load_acquire32(&b->news) == 0);
    assert_true(load_acquire64(&m->arrival[1].seq) == 0 && load_acquire64(&m->turns) == 0
                && load_acquire64(&m->queued) == 0);
    assert_true(load_acquire32(&m->quit) == 0);
    quit(b);
}

/* A comm that its only member has freed is found no more by its key: who asks again asks for
 * a new one. */
static void test_freed_is_gone(void **state)
{
    (void)state;
    struct slot *a = get(200, 1, 0), *hold = get(200, 2, 0);
    quit(a);
    assert_int_equal(load_acquire32(&a->state), SLOT_USED);
    assert_int_equal(arena_lock(here.arena, 1000000000), 0);
    assert_true(directory_sweep(here.arena) >= 1);
    assert_int_equal(directory_sweep(here.arena), 0);
    arena_unlock(here.arena);
    assert_int_equal(load_acquire32(&a->state), SLOT_FREE);
    assert_int_equal(load_acquire32(&hold->state), SLOT_USED);
    quit(hold);
}

static void test_full(void **state)
{
    (void)state;
    struct slot *slots[SLOTS_MAX + 1];
    int n = 0;
    while (n <= SLOTS_MAX && (slots[n] = try_get(300, (uint64_t)n + 1, 0)))
        n++;
    assert_int_equal(n, (int)here.arena->header->slots - 1);         /* the world has one */
    quit(slots[n / 3]);
    struct slot *late = get(300, 5000, 0);
    assert_ptr_equal(late, slots[n / 3]);
    slots[n / 3] = late;
    assert_null(try_get(300, 5001, 0));
    for (int i = 0; i < n; i++)
        quit(slots[i]);
    for (int i = 0; i < 3 * SLOTS_MAX; i++) {
        quit(get(301, (uint64_t)i, 0));
    }
}

/* A maker that died under the lock left a slot FREE and half filled: the next one takes it as if
 * nothing had been. */
static void test_half_made(void **state)
{
    (void)state;
    struct slot *a = get(400, 1, 0);
    store_release32(&a->state, SLOT_FREE);
    a->size = 0x7fffffff;
    a->key_hash ^= 1;
    struct slot *b = get(400, 1, 0);
    assert_ptr_equal(b, a);
    assert_int_equal(b->size, 1);
    quit(b);
}

/* The ranks of a large comm take a page more than those of a small one: all its members begin anew,
 * also the last. */
static void test_large_made_anew(void **state)
{
    (void)state;
    char room[512];
    struct text why = TEXT_IN(room);
    struct arena arena;
    struct arena_plan plan = { RANKS_MAX, "large", 16 << 20, "", 1, 4 << 20, 0 };
    static uint32_t all[RANKS_MAX];
    text_clear(&why);
    assert_int_equal(arena_create(&arena, &plan, &why), 0);
    for (uint32_t p = 0; p < RANKS_MAX; p++)
        all[p] = p;
    struct directory_key key = { 0, 1, -1, all, RANKS_MAX };
    struct slot *slot, *again;
    assert_int_equal(directory_find_or_make(&arena, &key, &slot), 0);
    for (uint32_t p = 0; p < RANKS_MAX; p++)
        fetch_or32(&arena_member(slot, p)->quit, QUIT_FREED | QUIT_OVER);
    key.nth++;
    assert_int_equal(directory_find_or_make(&arena, &key, &again), 0);
    assert_ptr_equal(again, slot);
    for (uint32_t p = 0; p < RANKS_MAX; p++)
        assert_int_equal(load_acquire32(&arena_member(slot, p)->quit), 0);
    arena_detach(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_key_same_slot),
        cmocka_unit_test(test_world_without_the_lock),
        cmocka_unit_test(test_made_anew),
        cmocka_unit_test(test_freed_is_gone),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_half_made),
        cmocka_unit_test(test_large_made_anew),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
