/* Job: answer the signals that are no request to end: SIGQUIT asks why the ranks wait, SIGUSR1 and
 *      SIGUSR2 are for the ranks.
 * Owns: nothing.
 * Never: ends a rank.
 */
#ifndef TUTTI_LAUNCH_REQUESTS_H
#define TUTTI_LAUNCH_REQUESTS_H

#include "launch/children.h"
#include "launch/job.h"
#include "launch/relay.h"
#include "launch/signals.h"

void requests_answer(const struct job *job, const struct children *children, struct relay *relay,
                     const struct signals_news *news);

#endif
