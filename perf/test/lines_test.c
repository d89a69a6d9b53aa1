/* The model of caches, by hand: what each access costs, who waits for whom, where a line is
 * afterwards. */
#include "lines/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static _Alignas(64) char line[8][64];

/* Six cores, three a domain; 0 to 2, 3 to 5. */
static struct model *fresh(enum protocol protocol, int ahead)
{
    struct machine_model m = {
        6, 3, protocol, ahead,
        { .hit = 1, .near = 20, .far = 100, .queue = 7, .write_back = 50, .probe = 3, .pause = 10 }
    };
    struct model *model = model_open(&m);
    assert_non_null(model);
    return model;
}

static double now(struct model *m, int core) { return model_core(m, core)->now; }

static void at(struct model *m, double when)
{
    for (int c = 0; c < 6; c++)
        model_core(m, c)->now = when;
}

/* Core 0 has line 0 alone, at 1000. */
static struct model *owned(enum protocol protocol)
{
    struct model *m = fresh(protocol, 1);
    model_store(m, 0, line[0]);
    at(m, 1000);
    return m;
}

static void test_a_line_comes_from_where_it_is(void **state)
{
    (void)state;
    struct model *m = owned(MOESI);
    model_load(m, 0, line[0]);
    assert_true(now(m, 0) == 1001);                  /* its own */
    model_load(m, 1, line[0]);
    assert_true(now(m, 1) == 1020);                  /* of its domain */
    model_load(m, 3, line[0]);
    assert_true(now(m, 3) == 1100);                  /* of the other */
    model_core(m, 4)->now = 1200;
    model_load(m, 4, line[0]);
    assert_true(now(m, 4) == 1220);                  /* from core 3, which has it now */
    model_load(m, 4, line[0]);
    assert_true(now(m, 4) == 1221);
    model_close(m);
}

static void test_requests_queue_at_a_line(void **state)
{
    (void)state;
    struct model *m = owned(MOESI);
    model_load(m, 1, line[0]);
    model_load(m, 2, line[0]);
    assert_true(now(m, 1) == 1020 && now(m, 2) == 1027);
    model_load(m, 3, line[0]);
    assert_true(now(m, 3) == 1100);                  /* at its home nobody stands before it */
    model_close(m);
}

static void test_a_dirty_line_goes_home_first_with_mesi(void **state)
{
    (void)state;
    struct model *m = owned(MESI);
    model_load(m, 3, line[0]);
    assert_true(now(m, 3) == 1150);
    at(m, 2000);
    model_store(m, 0, line[1]);
    at(m, 3000);
    model_load(m, 3, line[1]);
    assert_true(now(m, 3) == 3150);
    model_close(m);
}

static void test_a_write_takes_all_copies_away(void **state)
{
    (void)state;
    struct model *m = owned(MOESI);
    model_load(m, 1, line[0]);
    model_load(m, 3, line[0]);
    at(m, 2000);
    model_store(m, 0, line[0]);
    assert_true(now(m, 0) == 2001);                  /* it does not wait */
    model_fence(m, 0);
    assert_true(now(m, 0) == 2100);                  /* but for a fence: the other domain had it */
    model_load(m, 1, line[0]);
    assert_true(now(m, 1) == 2120);                  /* the write was under way */
    model_close(m);
}

static void test_there_may_be_many_cores(void **state)
{
    (void)state;
    struct machine_model large = { 130, 65, MOESI, 1, costs_usual };
    struct model *m = model_open(&large);
    model_store(m, 0, line[0]);
    model_core(m, 129)->now = 1000;
    model_load(m, 129, line[0]);
    assert_true(now(m, 129) == 1000 + costs_usual.far);
    model_core(m, 0)->now = 2000;
    model_change(m, 0, line[0]);
    model_core(m, 129)->now = 3000;
    model_load(m, 129, line[0]);                     /* its copy is gone */
    assert_true(now(m, 129) == 3000 + costs_usual.far);
    model_close(m);
}

static void test_what_nobody_has_touched_is_there(void **state)
{
    (void)state;
    struct model *m = fresh(MOESI, 1);
    model_load(m, 3, line[0]);
    model_change(m, 3, line[1]);
    assert_true(now(m, 3) == 2 && model_transfers(m).far + model_transfers(m).near == 0);
    model_close(m);
}

static void test_a_change_waits(void **state)
{
    (void)state;
    struct model *m = owned(MOESI);
    model_change(m, 3, line[0]);
    assert_true(now(m, 3) == 1100);
    model_change(m, 4, line[0]);
    assert_true(now(m, 4) == 1120);                  /* behind core 3 */
    model_change(m, 4, line[0]);
    assert_true(now(m, 4) == 1121);
    model_close(m);
}

static void test_a_line_fetched_ahead_is_there(void **state)
{
    (void)state;
    struct model *m = owned(MOESI);
    model_own(m, 3, line[0]);
    model_fence(m, 3);
    assert_true(now(m, 3) == 1001);                  /* a hint: nobody waits for it */
    model_core(m, 3)->now = 1200;
    model_change(m, 3, line[0]);
    assert_true(now(m, 3) == 1201);
    model_close(m);
}

static void test_loads_that_are_foreseen_overlap(void **state)
{
    (void)state;
    for (int ahead = 1; ahead <= 4; ahead += 3) {
        struct model *m = fresh(MOESI, ahead);
        double took = 0;
        for (int k = 0; k < 3; k++) {
            at(m, 1000 * (k + 1));
            for (int i = 0; i < 4; i++)
                model_store(m, 0, line[i]);
            at(m, 1000 * (k + 1) + 500);
            model_operation(m, 3);
            for (int i = 0; i < 4; i++)
                model_load(m, 3, line[i]);
            took = now(m, 3) - 1000 * (k + 1) - 500;
        }
        /* one after the other; at once, and hits then */
        assert_true(ahead == 1 ? took == 400 : took >= 100 && took <= 110);
        model_close(m);
    }
}

/* Two cores that write a line each and wait for the other's: what leads to the end is the other's
 * write, and the way of its line. */
static void test_the_path_goes_through_who_was_waited_for(void **state)
{
    (void)state;
    struct model *m = fresh(MOESI, 1);
    model_store(m, 0, line[0]);
    model_store(m, 4, line[1]);
    model_load(m, 3, line[0]);
    model_load(m, 0, line[1]);                       /* the writer has more behind it */
    at(m, 1000);
    struct path was = model_core(m, 3)->path;
    model_change(m, 0, line[0]);                     /* takes it away from core 3: far */
    struct path writer = model_core(m, 0)->path;
    model_load(m, 3, line[0]);                       /* fetches it: far */
    struct path after = model_core(m, 3)->path;
    assert_true(was.far == 1 && writer.far == 2);
    assert_true(after.far == writer.far + 1 && after.near == 0);
    assert_true(now(m, 3) == 1200);
    assert_true(model_transfers(m).far == 4);
    model_close(m);
}

static void test_a_machine_that_is_too_large_is_refused(void **state)
{
    (void)state;
    struct machine_model m = { CORES_MOST + 1, 16, MESI, 1, costs_usual };
    assert_null(model_open(&m));
    m.cores = 2 * DOMAINS_MOST;
    m.domain = 1;
    assert_null(model_open(&m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_comes_from_where_it_is),
        cmocka_unit_test(test_requests_queue_at_a_line),
        cmocka_unit_test(test_a_dirty_line_goes_home_first_with_mesi),
        cmocka_unit_test(test_a_write_takes_all_copies_away),
        cmocka_unit_test(test_there_may_be_many_cores),
        cmocka_unit_test(test_what_nobody_has_touched_is_there),
        cmocka_unit_test(test_a_change_waits),
        cmocka_unit_test(test_a_line_fetched_ahead_is_there),
        cmocka_unit_test(test_loads_that_are_foreseen_overlap),
        cmocka_unit_test(test_the_path_goes_through_who_was_waited_for),
        cmocka_unit_test(test_a_machine_that_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
