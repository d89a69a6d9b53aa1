/* What another terminal copies of a journal is whole, while its rank writes as fast as it can; of
 * the table of call sites nothing is left out. */
/* ctest: timeout=240 */
#include "box/arena_copy.h"

#include "base/clock.h"
#include "support/recorder.h"
#include "watch/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

enum { RANKS = 3, LOOKS = 3000, FIRST_SEQ = 1000 };

static void make(struct arena *arena)
{
    char room[256];
    struct text why = TEXT_IN(room);
    struct arena_plan plan = {
        .size = RANKS, .job = "copied", .span_bytes = 2 << 20, .first_seq = FIRST_SEQ,
        .store_bytes = 2 << 20
    };
    text_clear(&why);
    assert_int_equal(arena_create(arena, &plan, &why), 0);
    struct slot *slot = arena_slot(arena, 0);
    slot->size = RANKS;
    slot->birth = 1;
    for (uint32_t r = 0; r < RANKS; r++)
        slot->world_rank[r] = r;
    store_relaxed32(&arena->join->reached, 1);       /* relaxed: nobody else is there */
    store_relaxed32(&slot->state, SLOT_USED);        /* relaxed: as above */
}

static void copied_while_it_is_written(void **state)
{
    struct arena arena;
    uint64_t seen = 0, left_out = 0;
    (void)state;
    make(&arena);
    pid_t pid = recorder_start(arena_member(arena_slot(&arena, 0), 1), FIRST_SEQ, 1);
    for (int i = 0; i < LOOKS || !left_out || !seen; i++) {
        char room[256];
        struct text why = TEXT_IN(room);
        struct arena_copy g;
        struct history h;
        assert_int_equal(arena_copy_take(&g, arena_fd(&arena), &why), 0);
        assert_int_equal(history_read(&h, &g.arena, 0, clock_now()), 0);
        assert_int_equal(h.rank[0].n + h.rank[2].n, 0);
        for (uint32_t k = 0; k < h.rank[1].n; k++) {
            const struct history_op *op = &h.rank[1].op[k];
            assert_true(recorder_whole(op));
            assert_int_equal(op->number, h.rank[1].begun - h.rank[1].n + 1 + k);
        }
        seen += h.rank[1].n;
        left_out += h.rank[1].n < JOURNAL_RECORDS - 1;
        history_drop(&h);
        arena_copy_drop(&g);
    }
    recorder_stop(pid);
    printf("%llu records seen in %d looks; %llu looks left some out\n", (unsigned long long)seen,
           LOOKS, (unsigned long long)left_out);
    arena_detach(&arena);
}

/* Call sites lie here and there in a table that is mostly holes. What does not make one keeps away
 * from the arena: to read a hole would fill it. */
static void call_sites_between_holes(void **state)
{
    enum { SITES = 60 };
    char room[256], site[64];
    struct text why = TEXT_IN(room);
    struct arena arena;
    struct arena_copy g;
    uint32_t number[SITES];
    (void)state;
    make(&arena);
    for (int n = 0; n < SITES; n++) {
        snprintf(site, sizeof site, "some/program-%d.c:%d", n, n * 7);
        number[n] = arena_site(&arena, site);
        assert_int_not_equal(number[n], 0);
        assert_int_equal(arena_copy_take(&g, arena_fd(&arena), &why), 0);
        for (int k = 0; k <= n; k++) {
            snprintf(site, sizeof site, "some/program-%d.c:%d", k, k * 7);
            assert_string_equal(arena_site_text(&g.arena, number[k]), site);
        }
        arena_copy_drop(&g);
    }
    arena_detach(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copied_while_it_is_written), cmocka_unit_test(call_sites_between_holes)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
