/* Job: a bar on the terminal while a program measures.
 * Owns: one line of stderr, if that is a terminal; else, of a program with a limit, a line for each
 *       tenth of its time.
 * Never: written while a sample is being taken. */
#ifndef PERF_PROGRESS_H
#define PERF_PROGRESS_H

void progress_show(double share, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress_clear(void);

#endif
