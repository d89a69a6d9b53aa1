/* SPDX-License-Identifier: MIT */
/* Job: shows how far the work is: a bar on a terminal, a line every tenth otherwise.
 * Never: knows what is being worked on. */
#ifndef TRAIN_PROGRESS_H
#define TRAIN_PROGRESS_H

struct progress {
    int    quiet, bar;
    int    steps, tenths;               /* tenths: that many have been shown */
    double since;                       /* seconds */
};

double clock_seconds(void);

/* bar: a bar in any case; without it, where stdout is a terminal. */
void progress_begin(struct progress *progress, int steps, int quiet, int bar);
void progress_show(struct progress *progress, int done, double loss);

#endif
