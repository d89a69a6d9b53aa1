/* A black box is read as it was written, has nothing of what ranks gave each other or kept in the
 * store, and is refused if it is damaged in any of 200 ways; one whose sum is right and whose parts
 * are not ends no reader either. */
#include "box/keep.h"
#include "box/picture.h"

#include "arena/offsets.h"
#include "arena/store.h"
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 6, BROKEN = 200 };
#define SECRET UINT64_C(0x73656372657421aa)

static uint64_t seed;
static char why_room[512];
static struct text why = { why_room, sizeof why_room, 0 };

static uint64_t dice(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* ---- an arena with something in each of its parts ---- */

static void fill_slot(const struct arena *arena, uint32_t index, uint32_t size)
{
    struct slot *slot = arena_slot(arena, index);
    slot->size = size;
    slot->birth = index + 1;
    /* relaxed: nobody else looks, in all of this file */
    store_relaxed32(&slot->state, SLOT_USED);
    for (uint32_t r = 0; r < size; r++) {
        struct member *m = arena_member(slot, r);
        slot->world_rank[r] = r;
        store_relaxed64(&m->head, 77 + r);
        store_relaxed64(&m->arrival[1].seq, 1001 + index);
        for (int k = 0; k < PAYLOAD_WORDS; k++)
            store_relaxed64(&m->arrival[r % 2].payload[k], SECRET);
    }
}

static void make(struct arena *arena)
{
    struct arena_plan plan = {
        .size = RANKS, .job = "night run/7", .span_bytes = 2 << 20, .store_bytes = 2 << 20
    };
    uint64_t secret = SECRET;
    text_clear(&why);
    assert_int_equal(arena_create(arena, &plan, &why), 0);
    store_relaxed32(&arena->join->reached, 3);
    fill_slot(arena, 0, RANKS);
    fill_slot(arena, 2, 2);                          /* that of 1 has been freed */
    memcpy(arena_span(arena, 3), &secret, sizeof secret);
    memcpy((char *)arena->store + 4096 * 3, &secret, sizeof secret);
    for (uint32_t r = 0; r < RANKS; r++) {
        struct seat *seat = &arena->seats[r];
        store_relaxed32(&seat->state, SEAT_JOINED);
        assert_int_equal(process_self(&seat->id), 0);
        snprintf(seat->program, sizeof seat->program, "rank-%u", r);
    }
}

static void develop(const struct arena *arena, struct box_bytes *b)
{
    struct picture p;
    text_clear(&why);
    assert_int_equal(picture_take(&p, arena, &why), 0);
    p.ranks[2].ended = 9 << 1 | 1;
    assert_int_equal(picture_develop(b, &p, "rank 2 was killed\n"), 0);
    picture_drop(&p);
}

static bool holds(const struct box_bytes *b, const void *what, size_t n)
{
    return memmem(b->at, b->n, what, n) != NULL;
}

/* ---- tests ---- */

static void as_written(void **state)
{
    (void)state;
    struct arena arena;
    struct box_bytes b;
    struct box box;
    struct arena_copy g, live;
    make(&arena);
    develop(&arena, &b);
    assert_int_equal(box_open(&box, &b, &why), 0);
    assert_string_equal(box.report, "rank 2 was killed\n");
    assert_non_null(strstr(box.host, "\ntutti: "));
    assert_int_equal(box.size, RANKS);
    assert_int_equal(box.ranks[2].ended, 9 << 1 | 1);
    assert_string_equal(box.ranks[2].state, "running");
    assert_int_equal(box.ranks[5].pid, getpid());
    assert_int_equal(box.moment->pid, getpid());
    struct arena_bytes from = box_arena(&box);
    assert_int_equal(arena_copy_from(&g, &from, ARENA_COPY_MOST, &why), 0);
    assert_int_equal(arena_copy_take(&live, arena_fd(&arena), &why), 0);
    const struct arena_header *h = live.arena.header;
    assert_int_equal(g.comms, 3);
    assert_memory_equal(g.arena.base, live.arena.base, h->keys_at);
    for (uint32_t i = 0; i < 3; i += 2) {
        uint32_t size = arena_slot(&live.arena, i)->size;
        struct slot *copy = arena_slot(&g.arena, i);
        assert_memory_equal(copy->world_rank, arena_slot(&live.arena, i)->world_rank,
                            size * sizeof(uint32_t));
        for (uint32_t r = 0; r < size; r++) {
            struct member *m = arena_member(copy, r);
            assert_int_equal(load_relaxed64(&m->head), 77 + r);
            assert_int_equal(load_relaxed64(&m->arrival[1].seq), 1001 + i);
            assert_int_equal(load_relaxed64(&m->arrival[r % 2].payload[3]), 0);
        }
    }
    arena_copy_drop(&g);
    arena_copy_drop(&live);
    box_drop(&box);
    arena_detach(&arena);
}

static void no_contents(void **state)
{
    (void)state;
    struct arena arena;
    struct box_bytes b;
    uint64_t secret = SECRET;
    make(&arena);
    develop(&arena, &b);
    assert_true(holds(&b, "night run/7", 11));
    assert_false(holds(&b, &secret, sizeof secret));
    assert_true(b.n < 1 << 20);
    free(b.at);
    arena_detach(&arena);
}

/* A program may close the arena's descriptor. */
static void without_descriptor(void **state)
{
    (void)state;
    struct arena arena;
    struct box_bytes b;
    struct box box;
    make(&arena);
    kept_close(&arena.file);
    develop(&arena, &b);
    assert_int_equal(box_open(&box, &b, &why), 0);
    box_drop(&box);
    arena_detach(&arena);
}

static void bounded(void **state)
{
    (void)state;
    enum { MANY = 512 };
    struct arena arena;
    struct arena_copy g;
    struct box_bytes b;
    struct box box;
    struct arena_plan plan = { .size = MANY, .job = "many", .span_bytes = 2 << 20 };
    assert_int_equal(arena_create(&arena, &plan, &why), 0);
    store_relaxed32(&arena.join->reached, 10);
    for (uint32_t i = 0; i < 10; i++)
        fill_slot(&arena, i, MANY);
    develop(&arena, &b);
    assert_true(b.n <= BOX_MOST);
    assert_int_equal(box_open(&box, &b, &why), 0);
    struct arena_bytes from = box_arena(&box);
    assert_int_equal(arena_copy_from(&g, &from, ARENA_COPY_MOST, &why), 0);
    uint32_t there = 0;
    for (uint32_t i = 0; i < 10; i++)
        there += load_relaxed32(&arena_slot(&g.arena, i)->state) == SLOT_USED;
    assert_true(there > 0 && there < 10);
    assert_int_equal(load_relaxed32(&arena_slot(&g.arena, 0)->state), SLOT_USED);
    assert_int_equal(box.moment->left_out, 10 - there);
    arena_copy_drop(&g);
    box_drop(&box);
    arena_detach(&arena);
}

/* ---- broken ones ---- */

static void refused(const struct box_bytes *b, const char *words)
{
    struct box box;
    struct box_bytes copy = { malloc(b->n + 1), b->n };
    memcpy(copy.at, b->at, b->n);
    text_clear(&why);
    int error = box_open(&box, &copy, &why);
    if (error == 0 || !why.used || strchr(why_room, '\n') || (words && !strstr(why_room, words)))
        fail_msg("%d, \"%s\"", error, why_room);
    free(copy.at);
}

static void broken(void **state)
{
    (void)state;
    struct arena arena;
    struct box_bytes b;
    make(&arena);
    develop(&arena, &b);
    char *whole = malloc(b.n);
    memcpy(whole, b.at, b.n);
    for (int i = 0; i < BROKEN; i++) {
        struct box_bytes bad = b;
        uint64_t word = dice();
        if (i % 3 == 0) {
            bad.n = dice() % b.n;
            refused(&bad, bad.n < 16 ? "no black box" : "cut off");
        } else if (i % 3 == 1) {
            ((struct box_head *)(void *)b.at)->version += 1 + (uint32_t)(dice() % 1000);
            refused(&bad, "format");
        } else {
            size_t at = dice() % (b.n - sizeof word);
            memcpy(b.at + at, &word, sizeof word);
            refused(&bad, NULL);
        }
        memcpy(b.at, whole, b.n);
    }
    free(whole);
    free(b.at);
    arena_detach(&arena);
}

/* Somebody has made the sum anew. The answer may be anything; it comes, and nothing breaks. */
static void forged(void **state)
{
    (void)state;
    struct arena arena;
    struct box_bytes b;
    make(&arena);
    develop(&arena, &b);
    int opened = 0;
    for (int i = 0; i < BROKEN; i++) {
        struct box_bytes bad = { malloc(b.n), b.n };
        struct box_head *head = (struct box_head *)(void *)bad.at;
        struct arena_copy g;
        struct box box;
        memcpy(bad.at, b.at, b.n);
        for (int k = 1 << dice() % 10; k > 0; k--) {
            uint64_t word = dice() % 2 ? dice() : dice() % 64 << dice() % 40;
            size_t at = sizeof *head + dice() % (dice() % 2 ? 4096 : b.n - sizeof *head - 8);
            memcpy(bad.at + at, &word, sizeof word);
        }
        head->sum = text_hash(bad.at + sizeof *head, bad.n - sizeof *head, BOX_VERSION);
        text_clear(&why);
        if (box_open(&box, &bad, &why) != 0) {
            assert_true(why.used);
            free(bad.at);
            continue;
        }
        struct arena_bytes from = box_arena(&box);
        if (arena_copy_from(&g, &from, ARENA_COPY_MOST, &why) == 0) {
            opened++;
            arena_copy_drop(&g);
        }
        box_drop(&box);
    }
    assert_true(opened > 0 && opened < BROKEN);
    free(b.at);
    arena_detach(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_written), cmocka_unit_test(no_contents),
        cmocka_unit_test(without_descriptor), cmocka_unit_test(bounded),
        cmocka_unit_test(broken), cmocka_unit_test(forged)
    };
    const char *given = getenv("TUTTI_TEST_SEED");
    seed = given ? strtoull(given, NULL, 0) : clock_ns() | 1;
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
