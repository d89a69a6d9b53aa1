/* Job: the way from `tutti perf` to a measuring program.
 * Owns: nothing.
 * Never: measures. */
#ifndef TUTTI_CLI_PERF_H
#define TUTTI_CLI_PERF_H

/* perf_exec.c: becomes the measuring program; returns only if it cannot: the exit status, after a
 * line on stderr. */
int perf_exec(const char *program, char **args);

#endif
