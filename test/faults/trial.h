/* Job: one job, one operation, one of its ranks killed at one exact point; then what the others
 *      got, and whether they can go on.
 * Owns: the job's processes and the page they share with the test; all are reaped when
 *       trial_run returns.
 * Never: which points are tried (kill_each_step_test), what an operation is (acts). */
#ifndef TUTTI_TEST_FAULTS_TRIAL_H
#define TUTTI_TEST_FAULTS_TRIAL_H

#include "trial_role.h"

/* The point. release: 0: the others are in the operation and asleep before the victim begins; n:
   when it has done n steps; -1: when it first sleeps, or is over. Steps are counted from the start,
   or, with `after`, from the release. */
struct point {
    const struct act *act;
    int victim;
    long release;
    bool events;                      /* steps are events; else instructions */
    bool after, asleep;               /* asleep: killed in its first sleep */
    long n;                           /* LONG_MAX: at its end */
    long tail;                        /* and so many instructions further */
    /* rank + 1 of another one, which is caught when the first is dead, led on, and killed
     * too; 0: none */
    int second;
    bool second_events;
    long second_n;                    /* so many events or instructions further */
    /* by instructions to the end, and noted how many lie between one event and the next */
    bool measure;
};

enum { GAPS = 1000 };

struct trial_result {
    bool wrong, hang;
    /* the victim came to the point; else it was killed at its end */
    bool reached;
    /* the second one was killed; else it ended before by itself, and is one of the others */
    bool two;
    long second_steps;                /* how far it came */
    long before, after;               /* steps taken before and after the release */
    /* measured: instructions from event e, 0 the start, to the next; before and after
     * the release */
    long gap[2][GAPS];
    long gaps[2];                     /* how many of these */
    int gave;                         /* what the first survivor got */
    uint64_t worst_ns;                /* from the kill to the last survivor's first error */
    char text[4096];                  /* what is wrong */
};

void trial_open(void);
bool trial_allowed(char *why, size_t bytes);  /* false: this system lets no process trace another */
void trial_run(const struct point *p, struct trial_result *r);
/* of one that is led until it has ended by itself, and killed then: how it ended */
int  trial_led_to_its_end(bool events);
bool trial_next_job(char *text, size_t bytes);  /* the next job of that name: starts, works, ends */

void trial_say(const struct point *p, char *text, size_t bytes);     /* as TUTTI_KILL_AT takes it */
bool trial_read(struct point *p, const char *text);

#endif
