/* Job: what ranks of tutti wait in for a late one, as contenders run it in FORM_LATE.
 * Owns: r->nth[0].
 * Never: a figure. */
#ifndef PERF_WAIT_CONTENDERS_H
#define PERF_WAIT_CONTENDERS_H

#include "harness/job.h"

int waits_handle(struct rank *r, uint64_t times);        /* a barrier, started and waited for */
int waits_receive(struct rank *r, uint64_t times);       /* of a message of the late rank's */
int waits_letter(struct rank *r, uint64_t times);        /* the same, started and waited for */
int waits_get(struct rank *r, uint64_t times);           /* of a key that the late rank sets */
int waits_turn(struct rank *r, uint64_t times);          /* LATE_FIRST */
int waits_once(struct rank *r, uint64_t times);          /* LATE_HOLDS, as the next */
int waits_first(struct rank *r, uint64_t times);

#endif
