/* Job: write a journal as a rank does, by records that can be recognised: each field is a function
 *      of the record's number.
 * Owns: the writing process; it ends with the test.
 * Never: an arena. */
#ifndef TUTTI_TEST_SUPPORT_RECORDER_H
#define TUTTI_TEST_SUPPORT_RECORDER_H

#include "watch/history.h"

#include <sys/types.h>

/* Operation `number` of a comm in an arena whose numbers begin at first_seq. */
void  recorder_write(struct member *m, uint64_t first_seq, uint64_t number);
/* A process that writes one after another, from `number` on, as fast as it can. */
pid_t recorder_start(struct member *m, uint64_t first_seq, uint64_t number);
void  recorder_stop(pid_t pid);                      /* kills it */
void  recorder_hold(pid_t pid);                      /* it stands still from here on, anywhere */
void  recorder_go_on(pid_t pid);
/* Is it what recorder_write wrote? Else prints it. */
bool  recorder_whole(const struct history_op *op);

#endif
