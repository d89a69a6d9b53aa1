/* Job: the names of all scenarios.
 * Owns: nothing.
 * Never: what they do. */
#ifndef TUTTI_EXPLORE_SCENARIOS_H
#define TUTTI_EXPLORE_SCENARIOS_H

#include "explore/explore.h"

#define EXPLORE_SCENARIOS(S) \
    S(barrier_flags) S(barrier_flags_events) S(barrier_flags_tso) S(barrier_flags_yield) \
    S(barrier_central) S(barrier_central_tso) S(barrier_central_events) S(central_deadline) \
    S(central_abort) S(inline) S(inline_events) S(inline_tso) S(inline_weak) S(deadline) \
    S(verdict) S(verdict_events) S(verdict_abort) S(leave) S(leave_events) S(abort) \
    S(abort_events) S(verdict3) S(verdict3_late) S(kill3) S(late3) S(eager) S(eager_events) \
    S(eager_weak) S(eager_lent) S(eager_lent_events) S(swap) S(swap_events) S(pipelined) \
    S(pipelined_events) S(pipelined_swap) S(beside) \
    S(pipelined_rounds_events) S(pipelined_tso) S(broadcast_inline) S(broadcast_eager) \
    S(left_inline) S(left_eager) S(left_events) S(left_deadline) \
    S(broadcast_pipelined) S(broadcast_events) S(broadcast_inline_events) \
    S(broadcast_eager_events) S(broadcast_inline_deadline) S(broadcast_eager_deadline) \
    S(broadcast_inline_abort) S(broadcast_eager_abort) S(inline_deadline) S(eager_deadline) \
    S(pipelined_deadline) S(broadcast_deadline) S(inline_abort) S(eager_abort) \
    S(pipelined_abort) S(broadcast_abort) S(once) S(once_events) S(once_deadline) S(once_abort) \
    S(first) S(first_events) S(first_deadline) S(first_abort) S(turn) S(turn_events) \
    S(turn_deadline) S(turn_abort) S(turn_canceled) S(store) S(store_events) S(store_deadline) \
    S(store_abort) S(store_canceled) S(store_wait_tso) S(split) S(split_events) \
    S(split_deadline) S(split_abort) S(shrink) S(shrink_events) S(shrink_kill3) \
    S(shrink_deadline) S(shrink_abort) S(agree_events) S(agree_late) S(agree_abort) S(letter) \
    S(letter_events) S(letter_deadline) S(letter_abort) S(letter_canceled) S(offer) \
    S(offer_events) S(offer_deadline) S(offer_abort) S(overlap) S(overlap_events) \
    S(overlap_deadline) S(overlap_abort) S(work) S(work_events) S(work_carried) \
    S(work_carried_events) S(flags3) S(flags4_tso) S(central3) S(device) S(device_tso) \
    S(device_weak) S(device_central) S(device_pipelined) S(device_poll) S(device_events) \
    S(device_poll_events) S(device_fails) S(device_fails_events) S(device_deadline) \
    S(device_abort) S(inline4_weak) S(eager3_tso) S(pipelined3) S(broadcast3) S(verdict4) \
    S(abort3) S(once3) S(first3) S(turn3) S(store3) S(split3) S(shrink3) S(agree3) \
    S(journal) S(journal_weak) S(journal_events) S(feed) S(feed_weak) S(feed_events) \
    S(feed_hold) S(feed_loan) S(feed_full) S(feed_close) S(feed_gets) \
    S(feed_gets_events) S(feed_gets_abort) S(feed_puts) S(feed3) S(hand) S(hand_events) \
    S(early) S(early_weak) S(early_events) \
    S(early_pieces) S(early_pieces_events) S(early_scan) S(early_scan_events)

#define S(name) extern const struct scenario scenario_##name;
EXPLORE_SCENARIOS(S)
#undef S

/* What must hold of a failure by a death. */
void barriers(int rank, tutti_comm *world);
void inlines(int rank, tutti_comm *world);
void eagers(int rank, tutti_comm *world);
void pipelines(int rank, tutti_comm *world);
void broadcasts(int rank, tutti_comm *world);
void onces(int rank, tutti_comm *world);
void firsts(int rank, tutti_comm *world);
void turns(int rank, tutti_comm *world);
void stores(int rank, tutti_comm *world);
void splits(int rank, tutti_comm *world);
void shrinks(int rank, tutti_comm *world);
void letters(int rank, tutti_comm *world);
void offers(int rank, tutti_comm *world);
void overlap(int rank, tutti_comm *world);
void hands(int rank, tutti_comm *world);
void check_letters_death(void);
void agrees(int rank, tutti_comm *world);
void aborts(int rank, tutti_comm *world);
void devices(int rank, tutti_comm *world);
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

int  explore_came(int rank, int which, int r, uint64_t began);       /* scenarios_order.c */
/* a barrier, where there are deadlines or aborts */
void explore_whole(int rank, tutti_comm *world, bool failed);
void check_alone(void);
void check_canceled(void);
void check_all_canceled(void);
void check_death(void);               /* what must hold of a failure by a death */
void check_good(void);                /* nobody had an error */

#endif
