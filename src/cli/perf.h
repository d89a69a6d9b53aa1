/* Job: start a measuring program for `tutti perf`.
 * Owns: nothing.
 * Never: measures. */
#ifndef TUTTI_CLI_PERF_H
#define TUTTI_CLI_PERF_H

/* perf_exec.c: becomes the measuring program. It returns only if it cannot: the exit status, after
 * a line on stderr. */
int perf_exec(const char *program, char **args);

#endif
