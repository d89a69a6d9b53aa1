/* SPDX-License-Identifier: MIT */
/* Job: the command line of train, and its help.
 * Never: knows that there are ranks; its caller sets opterr to 0 where complaints are not to
 *        be printed. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdint.h>

struct options {
    int         steps, batch;           /* batch: characters per step, all ranks together */
    uint64_t    seed;
    const char *cache, *checkpoint;     /* NULL: not given */
    int         quiet, bar, files;
    char *const *file;
};

/* 0; 1: help is wanted; -EINVAL: said why on stderr, if opterr. */
int options_read(int argc, char **argv, struct options *options);

extern const char options_help[];

#endif
