/* Job: a bar on the terminal while a program measures.
 * Owns: one line of stderr, if that is a terminal.
 * Never: written while a sample is being taken. */
#ifndef PERF_PROGRESS_H
#define PERF_PROGRESS_H

void progress_show(double share, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress_clear(void);

#endif
