/* The roll-call's columns stand in line whatever they hold: a wait of milliseconds, of minutes, of
 * hours. One rank alone; its journal and the arena's beginning are put back in time. */
#include "group/comm.h"
#include "watch/journal.h"
#include "watch/rollcall.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static void a_wait_of_any_age_is_in_line(void **state)
{
    (void)state;
    static const struct { uint64_t age; const char *shown; } ages[] = {
        { SECOND / 8, " " }, { 59 * SECOND, " 59" }, { 65 * SECOND, " 1 min" },
        { 60 * SECOND, " 1 min" }, { 250 * SECOND, " 4 min" }, { 3599 * SECOND, " 59 min" },
        { 9000 * SECOND, " 2 h" }, { 45240 * SECOND, " 12 h" }, { 4000 * 3600 * SECOND, " 4000 h" },
    };
    tutti_comm *world;
    assert_int_equal(tutti_init(&world, NULL), 0);
    assert_int_equal(tutti_barrier(world, NULL), 0);
    struct record *r = journal_hand(world->watch.mine);
    struct arena_header *h = world->world->arena.header;
    struct clock_point now = clock_now(), began = h->origin;
    double rate = clock_rate(began, now);
    for (size_t i = 0; i < sizeof ages / sizeof ages[0]; i++) {
        char room[8192];
        struct text t = TEXT_IN(room);
        text_clear(&t);
        now = clock_now();
        if (ages[i].age >= now.ns)                               /* before this machine started */
            continue;
        /* ticks and the clock go back alike; both are large enough */
        h->origin.ns = now.ns - ages[i].age;
        h->origin.tick = now.tick - (uint64_t)((double)ages[i].age * rate);
        store_relaxed64(&r->began, h->origin.tick);              /* relaxed: this test's own */
        store_relaxed64(&r->ended, 0);                           /* relaxed: as above */
        rollcall_table(&t, &world->watch, NULL);
        const char *row = strchr(room, '\n') + 1, *head = strstr(room, "for ");
        ptrdiff_t time = head - room, doing = strstr(room, "doing") - room;
        if (row[time] == ' ' || row[time - 1] != ' ' || row[doing - 1] != ' '
            || strncmp(row + doing, "in barrier #1", 13) != 0)
            fail_msg("not in line:\n%s", room);
        if (strncmp(row + time - 1, ages[i].shown, strlen(ages[i].shown)) != 0)
            fail_msg("\"%s\" is not shown:\n%s", ages[i].shown, room);
        /* the first has grown meanwhile, by as much as this machine is slow, and no further */
        double most = (double)(clock_now().ns - h->origin.ns) / 1e6, age = 0;
        char unit[4] = "";
        sscanf(row + time - 1, "%lf %3s", &age, unit);
        age *= strcmp(unit, "s") == 0 ? 1000 : 1;
        if (i == 0 && (age < 124 || age > most + 1))
            fail_msg("not from 125 to %.1f ms:\n%s", most, room);
    }
    h->origin = began;
    store_relaxed64(&r->ended, clock_tick());                    /* relaxed: as above */
    assert_int_equal(tutti_finalize(world), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_wait_of_any_age_is_in_line) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
