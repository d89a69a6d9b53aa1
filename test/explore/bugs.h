/* Job: the bugs that can be switched on in the explorer's build of the library, one at a time.
 * Owns: explore_bug.
 * Never: how a bug is found. Each name stands once in src/ as SEEDED(name), and in scenarios.c with the scenario that must find it. */
#ifndef TUTTI_EXPLORE_BUGS_H
#define TUTTI_EXPLORE_BUGS_H

#include <stddef.h>

#define EXPLORE_BUGS(B) \
    B(lost_wake)                /* an arriver wakes nobody */ \
    B(lost_wake_confirm)        /* nor does who confirms a verdict */ \
    B(no_look_before_sleep)     /* a sleeper sleeps on the word as it is, although it has come */ \
    B(no_second_look)           /* a proposal is confirmed without looking at the flags again */ \
    B(weak_release)             /* the arrival's number may be seen before what it says */ \
    B(weak_acquire)             /* what it says may be read before its number */ \
    B(no_fence_completer)       /* an arriver looks for sleepers before its store is out */ \
    B(no_fence_sleeper)         /* a sleeper looks at the word before it is known as one */ \
    B(reset_counter)            /* an arriver clears the count of its sleepers, which is theirs */ \
    B(verdict_without_recheck)  /* who lost the confirming swap proposes again at once */ \
    B(wait_for_proposer)        /* a proposal of another's is left to him, who may be dead */ \
    B(store_half_written)       /* a chain leads to an entry before it is written */ \
    B(takeover_twice)           /* a key is taken by a store, not by a swap */ \
    B(wrong_rank)               /* another than the dead is named */ \
    B(lender_leaves)            /* a rank returns while a buffer of its caller's is still read where it lies */ \
    B(torn_payload)             /* a rank arrives before its payload is written */ \
    B(no_verdict_load)          /* success without a look at the verdict */ \
    B(proposal_ignored)         /* a proposal of another's is no reason to do anything */ \
    B(number_not_compared)      /* a verdict on another operation is taken for one on this */ \
    B(withdraw_by_store)        /* a proposal is withdrawn by a store, not by a swap */ \
    B(confirm_by_store)         /* a verdict is confirmed by a store */ \
    B(dead_after_flag)          /* a flag is read before the alive word of who did not raise it */ \
    B(news_before_quit)         /* who aborts says that there is news before there is */ \
    B(verdict_not_watched)      /* a sleeper does not watch the verdict */ \
    B(one_alive_word)           /* … and watches the life of but one other */ \
    B(no_pass_on)               /* the one sleeper that a death wakes does not wake the others */ \
    B(no_licence)               /* a ring's slot is written again before it was read */ \
    B(decide_by_store)          /* an agreement is decided by a store */ \
    B(stale_shrink)             /* who made a list of the living goes by it, though another's was decided */ \
    B(placed_not_asked)         /* a rank is done when its own result is in place, though another's may never be */ \
    B(no_fence_store)           /* who sets a key looks for sleepers before the version is out */ \
    B(version_late)             /* who finds no key reads the version when the lock is given back */ \
    B(news_not_watched)         /* who waits for one rank does not hear of an abort */ \
    B(turn_not_taken)           /* a turn whose begin failed stays with its rank */ \
    B(late_breaks)              /* a deadline of once or first breaks the comm */ \
    B(late_counts)              /* a first_begin that failed has taken its round */ \
    B(bell_not_rung)            /* a letter comes, and its receiver is not told */ \
    B(letter_early)             /* a letter's number is there before what it says */ \
    B(offer_withdrawn)          /* an offer is withdrawn, though it may just have been granted */ \
    B(broken_refused)           /* agree is refused on a broken comm */ \
    B(abort_is_gone)            /* who has aborted is left out of what is agreed */ \
    B(no_fence_central)         /* who sees that all have come looks for sleepers before the sense is out */ \
    B(no_kick)                  /* the progress thread is not told that there is work */ \
    B(deaths_left_out)          /* of the explorer: a death is offered at that rank's own steps only */ \
    B(words_left_out)           /* of the explorer: states are taken for the same whatever is in memory, and whoever is asleep */

enum explore_bug {
    BUG_none,
#define B(name) BUG_##name,
    EXPLORE_BUGS(B)
#undef B
    BUG_COUNT
};

extern enum explore_bug explore_bug;
#define SEEDED(bug) (explore_bug == BUG_##bug)
#define TINY(normal, tiny) (tiny)
#define PLAINLY(at, bytes) explore_plainly(at, bytes)
void explore_plainly(const void *at, size_t bytes);

#endif
