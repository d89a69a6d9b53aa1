/* Job: the names of all scenarios.
 * Owns: nothing.
 * Never: what they do. */
#ifndef TUTTI_EXPLORE_SCENARIOS_H
#define TUTTI_EXPLORE_SCENARIOS_H

#include "explore/explore.h"

#define EXPLORE_SCENARIOS(S) \
    S(barrier_flags) S(barrier_flags_events) S(barrier_flags_tso) S(barrier_flags_yield) S(barrier_central) S(barrier_central_events) \
    S(line) S(line_events) S(line_tso) S(line_weak) S(deadline) S(verdict) S(verdict_events) S(leave) S(leave_events) \
    S(abort) S(abort_events) S(verdict3) S(verdict3_late) S(kill3) S(late3) \
    S(flat) S(flat_events) S(flat_weak) S(ring) S(ring_events) S(ring_tso) S(broadcast_line) S(broadcast_flat) S(broadcast_ring) \
    S(broadcast_events) S(line_deadline) S(flat_deadline) S(ring_deadline) S(broadcast_deadline) S(line_abort) S(flat_abort) \
    S(ring_abort) S(broadcast_abort) S(once) S(once_events) S(first) S(first_events) S(turn) S(turn_events) S(store) S(store_events) \
    S(split) S(split_events) S(shrink) S(shrink_events) S(agree_events) S(agree_late) \
    S(flags3) S(flags4_tso) S(central3) S(line4_weak) S(flat3_tso) S(ring3) S(broadcast3) S(verdict4) S(abort3) S(once3) S(first3) S(turn3) \
    S(store3) \
    S(split3) S(shrink3) S(agree3)

#define S(name) extern const struct scenario scenario_##name;
EXPLORE_SCENARIOS(S)
#undef S

/* What must hold of a failure by a death. */
void barriers(int rank, tutti_comm *world);
void lines(int rank, tutti_comm *world);
void flats(int rank, tutti_comm *world);
void rings(int rank, tutti_comm *world);
void broadcasts(int rank, tutti_comm *world);
void onces(int rank, tutti_comm *world);
void firsts(int rank, tutti_comm *world);
void turns(int rank, tutti_comm *world);
void stores(int rank, tutti_comm *world);
void splits(int rank, tutti_comm *world);
void shrinks(int rank, tutti_comm *world);
void agrees(int rank, tutti_comm *world);
void aborts(int rank, tutti_comm *world);
void check_once(void);
void check_first(void);
void check_turns_death(void);
void check_store(void);
void check_split_death(void);
void check_shrink(void);
void check_agree(void);
void check_abort(void);
void check_abort_death(void);
void check_verdict(void);

void check_death(void);               /* what must hold of a failure by a death */
void check_good(void);                /* nobody had an error */

#endif
