/* Job: the names of all scenarios.
 * Owns: nothing.
 * Never: what they do. */
#ifndef TUTTI_EXPLORE_SCENARIOS_H
#define TUTTI_EXPLORE_SCENARIOS_H

#include "explore/explore.h"

#define EXPLORE_SCENARIOS(S) \
    S(barrier_flags) S(barrier_flags_events) S(barrier_flags_tso) S(barrier_flags_yield) S(barrier_central) S(barrier_central_events) \
    S(line) S(line_events) S(line_tso) S(line_weak) S(deadline) S(abort) S(verdict3) S(verdict3_late) \
    S(flat) S(flat_events) S(flat_weak) S(ring) S(ring_events) S(ring_tso) S(broadcast_line) S(broadcast_flat) S(broadcast_ring) \
    S(broadcast_events) S(once) S(once_events) S(first) S(first_events) S(turn) S(turn_events) S(store) S(store_events) \
    S(split) S(split_events) S(shrink) S(shrink_events) S(agree_events)

#define S(name) extern const struct scenario scenario_##name;
EXPLORE_SCENARIOS(S)
#undef S

/* What must hold of a failure by a death. */
void check_death(void);
void check_good(void);                /* nobody had an error */

#endif
