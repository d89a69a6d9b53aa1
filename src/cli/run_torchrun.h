/* Job: understand the options of torchrun that tutti run is given in its place.
 * Owns: what each of them means here.
 * Never: starts anything. */
#ifndef TUTTI_CLI_RUN_TORCHRUN_H
#define TUTTI_CLI_RUN_TORCHRUN_H

#include "launch/job.h"

enum { OPT_TORCHRUN = 1024, OPT_TORCHRUN_MODULE = OPT_TORCHRUN + 14 };

/* The rows of run's table of options. */
#define RUN_TORCHRUN_OPTIONS \
    { "standalone", no_argument, NULL, OPT_TORCHRUN }, \
    { "no-python", no_argument, NULL, OPT_TORCHRUN + 1 }, \
    { "nnodes", required_argument, NULL, OPT_TORCHRUN + 2 }, \
    { "node-rank", required_argument, NULL, OPT_TORCHRUN + 3 }, \
    { "rdzv-backend", required_argument, NULL, OPT_TORCHRUN + 4 }, \
    { "rdzv-endpoint", required_argument, NULL, OPT_TORCHRUN + 5 }, \
    { "rdzv-id", required_argument, NULL, OPT_TORCHRUN + 6 }, \
    { "rdzv-conf", required_argument, NULL, OPT_TORCHRUN + 7 }, \
    { "master-addr", required_argument, NULL, OPT_TORCHRUN + 8 }, \
    { "master-port", required_argument, NULL, OPT_TORCHRUN + 9 }, \
    { "monitor-interval", required_argument, NULL, OPT_TORCHRUN + 10 }, \
    { "start-method", required_argument, NULL, OPT_TORCHRUN + 11 }, \
    { "role", required_argument, NULL, OPT_TORCHRUN + 12 }, \
    { "local-addr", required_argument, NULL, OPT_TORCHRUN + 13 }, \
    { "module", no_argument, NULL, OPT_TORCHRUN_MODULE }, \
    { "run-path", no_argument, NULL, OPT_TORCHRUN + 15 }, \
    { "log-dir", required_argument, NULL, OPT_TORCHRUN + 16 }, \
    { "redirects", required_argument, NULL, OPT_TORCHRUN + 17 }, \
    { "tee", required_argument, NULL, OPT_TORCHRUN + 18 }, \
    { "local-ranks-filter", required_argument, NULL, OPT_TORCHRUN + 19 }, \
    { "numa-binding", required_argument, NULL, OPT_TORCHRUN + 20 }, \
    { "virtual-local-rank", no_argument, NULL, OPT_TORCHRUN + 21 }, \
    { "shutdown-timeout", required_argument, NULL, OPT_TORCHRUN + 22 }, \
    { "signals-to-handle", required_argument, NULL, OPT_TORCHRUN + 23 }, \
    { "event-log-handler", required_argument, NULL, OPT_TORCHRUN + 24 }, \
    { "logs-specs", required_argument, NULL, OPT_TORCHRUN + 25 }, \
    { "duplicate-stdout-filters", required_argument, NULL, OPT_TORCHRUN + 26 }, \
    { "duplicate-stderr-filters", required_argument, NULL, OPT_TORCHRUN + 27 }

/* 0, or the status to exit with; what is wrong has been said. *silent: the option's name, where it
 * is understood, and nothing is done for it. */
int run_torchrun(struct job *job, int option, const char *value, const char **silent);

#endif
