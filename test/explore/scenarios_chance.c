/* Three and four ranks, where all schedules are too many: random ones, with up to two
 * events each. */
#include "explore/scenarios.h"

#define EVENTS (KILL | STOP | SPURIOUS | TIMER | JUMP)
#define BY_CHANCE(named, n, does, checks, ...)                                     \
    const struct scenario scenario_##named = {                                     \
        .name = #named, .ranks = n, .body = does, .check = checks, .chance = true, \
        .events = EVENTS, __VA_ARGS__                                              \
    };

BY_CHANCE(flags3, 3, barriers, check_death, .rules = "barrier:-inf=flags", .yields = 1)
BY_CHANCE(flags4_tso, 4, barriers, check_death, .rules = "barrier:-inf=flags", .memory = MEMORY_TSO)
BY_CHANCE(central3, 3, barriers, check_death, .rules = "barrier:-inf=central")
BY_CHANCE(inline4_weak, 4, inlines, check_death, .memory = MEMORY_WEAK)
BY_CHANCE(eager3_tso, 3, eagers, check_death, .rules = "all_reduce:-inf=eager",
          .memory = MEMORY_TSO)
BY_CHANCE(pipelined3, 3, pipelines, check_death, .rules = "all_reduce:-inf=pipelined",
          .commits = true)
BY_CHANCE(broadcast3, 3, broadcasts, check_death, .rules = "broadcast:-inf=pipelined", .count = 20,
          .commits = true)
BY_CHANCE(abort3, 3, barriers, check_abort_death, .rules = "barrier:-inf=central", .helpers = 1,
          .helper = aborts, .patience = PATIENCE_FIRST)
BY_CHANCE(once3, 3, onces, check_once, .own_ends = true)
BY_CHANCE(first3, 3, firsts, check_first, .own_ends = true)
BY_CHANCE(turn3, 3, turns, check_turns_death, .own_ends = true)
BY_CHANCE(store3, 3, stores, check_store, .own_ends = true, .after = true, .patience = PATIENCE_ALL)
BY_CHANCE(split3, 3, splits, check_split_death, .rules = NULL)
BY_CHANCE(shrink3, 3, shrinks, check_shrink, .rules = NULL)
BY_CHANCE(agree3, 3, agrees, check_agree, .memory = MEMORY_TSO)
