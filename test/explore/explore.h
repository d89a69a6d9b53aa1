/* Job: what a scenario is: ranks, what they do, what may happen to them, and what must
 *      hold at the end.
 * Owns: what the ranks noted in this run.
 * Never: how they are scheduled.
 *
 * Ranks are coroutines of one process, each with a world of its own in one arena. They are stopped
 * only where they touch a word that more than one of them uses, or call the kernel; which words
 * these are is learned from the runs themselves. Schedules that can only come to what others came
 * to are left out (seen.c, events.c); that nothing else is left out, `explore same` shows.
 *
 * At every step of the schedules with at most one preemption, what may happen to which operation:
 *
 *   events: kill, stop, spurious wake, end of a slice; deadline: a jump of the clock; abort
 *
 *   barrier flags, central             barrier_flags_events, barrier_central_events;
 *                                      deadline, central_deadline; abort, central_abort
 *   all_reduce inline, eager,          inline_ eager_ pipelined_ pipelined_rounds_events;
 *   pipelined                          inline_ eager_ pipelined_deadline, and _abort
 *   broadcast inline, eager,           broadcast_inline_ broadcast_eager_ broadcast_events,
 *   pipelined                          likewise _deadline, _abort
 *   broadcast that the root leaves     left_events; left_deadline
 *   verdict                            verdict_events; deadline; verdict_abort, abort_events
 *   once, first, turn                  once_ first_ turn_events; _deadline; _abort, turn_canceled
 *   split, shrink, agree               split_ shrink_ agree_events;
 *                                      split_ shrink_deadline, agree_late; _abort
 *   the store                          store_events; store_deadline; _abort, _canceled
 *   letters, overlap, offers           letter_ overlap_ offer_events; _deadline; _abort, _canceled
 *   leaving                            leave_events
 *   the journal                        journal_events
 *   work under way                     work_ work_carried_events
 *   queues                             feed_events
 *
 * Not searched, since it has no meaning there: a deadline of agree and shrink other than the
 * comm's; an abort of a comm that a rank leaves (who has left is gone, and an abort before is
 * abort); set, add, compare_set, delete have no deadline. */
#ifndef TUTTI_EXPLORE_EXPLORE_H
#define TUTTI_EXPLORE_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <tutti.h>

enum { EXPLORE_RANKS = 4, NOTES = 8 };
enum event {
    EVENT_GO, EVENT_FLUSH, EVENT_KILL, EVENT_STOP, EVENT_SPURIOUS,
    EVENT_TIMER, EVENT_JUMP, EVENT_KINDS
};
enum {
    KILL = 1 << EVENT_KILL,
    STOP = 1 << EVENT_STOP,
    SPURIOUS = 1 << EVENT_SPURIOUS,
    TIMER = 1 << EVENT_TIMER,
    JUMP = 1 << EVENT_JUMP
};
/* stores at once; store buffers; these, out of order, and old loads */
enum memory { MEMORY_PLAIN, MEMORY_TSO, MEMORY_WEAK };

/* When all have come to sleep, may it take the end of a slice to go on? With a rank stopped:
   always. With one dead, or PATIENCE_FIRST: in the first slice, which looks at one word only.
   PATIENCE_ALL: somebody stays away. */
enum patience { PATIENCE_NONE, PATIENCE_FIRST, PATIENCE_ALL };

struct scenario {
    const char *name;
    int ranks, helpers;               /* helper h is another thread of rank h % ranks */
    const char *rules;                /* as TUTTI_ALGORITHM */
    void (*body)(int rank, tutti_comm *world);
    void (*helper)(int rank, tutti_comm *world);
    void (*check)(void);              /* besides what always holds; EXPLORE_WRONG */
    unsigned events;                  /* `events_most` in a run */
    enum memory memory;
    int preemptions, preemptions_event;
    int timeout_ms[EXPLORE_RANKS];    /* 0: none */
    unsigned yields;
    enum patience patience;
    bool chance;                      /* by random schedules instead of all */
    uint64_t tick_ns;                 /* by how much each look at the clock moves it */
    int events_most;                  /* in a run; 0: one, or two by chance */
    bool own_ends;                    /* no collective: each rank's call has an end of its own */
    /* points behind stores, too, where what is written plainly afterwards matters */
    bool after;
    /* the helpers are no threads of the scenario's, but those that the library makes, which
     * do not end */
    bool threads;
    bool commits;                     /* arrival is not all that a rank has to do */
    int count;                        /* for the body: elements, a deadline in ms */
};

/* What a rank came to. */
struct note {
    int result[NOTES];
    bool there[NOTES];
    int failed[EXPLORE_RANKS], failed_count;
    uint64_t verdict;
};
extern struct note note[EXPLORE_RANKS];
extern bool explore_killed[EXPLORE_RANKS], explore_ended[EXPLORE_RANKS];
int  explore_any_killed(void);        /* how many were */
extern uint64_t explore_shared[16];   /* plain words of the scenario, 0 when a run begins */

void explore_note(int rank, int which, int result);
void explore_failed(int rank, tutti_comm *comm);
/* had that rank done its part of the operation? */
bool explore_arrived(int rank, uint64_t verdict);
void explore_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
int  explore_count(void);             /* the scenario's */
bool explore_aborts(void);            /* has it a thread that aborts? */
uint64_t explore_now(void);           /* ns, of the clock in there */
void explore_nap(uint64_t ns);        /* this rank does something else, until all others wait */
void explore_step(void);              /* a point in the scenario's own code */

extern const struct scenario *const explore_scenarios[];
const struct scenario *explore_find(const char *name);

#endif
