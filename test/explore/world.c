/* A world of several ranks in one process, made by the product's own code, one rank after another:
 * nobody waits for anybody, since each takes its seat before the first opens its world. */
#include "explore/engine.h"

#include "api/world.h"
#include "engine/guard.h"
#include "group/assemble.h"
#include "group/join.h"
#include "group/seat.h"

#include <stdio.h>
#include <stdlib.h>

enum { CPUS = 2 };  /* whatever this machine has: ranks that share one choose other algorithms */

tutti_comm *explore_world[ACTORS_MOST];
int world_making;

static void must(int error, const char *what, struct text *why)
{
    if (error >= 0)
        return;
    fprintf(stderr, "explore: %s: %d %s\n", what, error, why->at);
    exit(2);
}

void world_open(const struct scenario *s)
{
    static char said[1024];
    struct text why = TEXT_IN(said);
    struct arena arena;
    struct arena_plan plan = {
        s->ranks, "explore", 16 << 20, s->rules ? s->rules : "", 0, 2 << 20, 0
    };
    pages_open();
    must(arena_create(&arena, &plan, &why), "arena", &why);
    for (world_making = 0; world_making < s->ranks; world_making++) {
        struct seat_card card;
        struct assembly gather = {
            .arena = &arena, .rank = (uint32_t)world_making, .timeout_ms = -1, .end_ns = UINT64_MAX
        };
        seat_card(&card, 1);
        must(seat_take(&arena, (uint32_t)world_making, &card, &why), "seat", &why);
        assemble_seated(&gather);
    }
    store_release32(&arena.join->cpus, CPUS);
    for (world_making = 0; world_making < s->ranks; world_making++) {
        tutti_options o = {
            .timeout_ms = s->timeout_ms[world_making] ? s->timeout_ms[world_making] : -1,
            .warn_ms = -1, .flags = TUTTI_NO_SPIN
        };
        struct arena copy = arena;
        tutti_comm **world = &explore_world[world_making];
        must(world_begin(world, &copy, world_making, -1, &o, 1, &why), "world", &why);
        (*world)->world->yield_ticks = 0;
        (*world)->watch.budget = (struct wait_budget){ 0, s->yields, 0, 0, 0 };
        guard_site(*world, "explore");  /* interned before, so that runs need not */
        pages_watch((*world)->world->fork_page, 4096);
    }
    for (int p = 0; p < s->ranks; p++)
        for (int i = 0; i < 2; i++)    /* payloads are folded in place */
            words_declare((void *)explore_world[0]->watch.members[p].arrival[i].lead,
                          sizeof(shared64[COUNT_WORD + 1]));
    for (int p = 0; p < s->ranks && (s->events & KILL); p++)
        /* the kernel writes there */
        words_declare((void *)process_mark_word(&arena.seats[p].mark), 8);
    pages_watch(arena.base, arena.bytes);
    pages_freeze();
}
