/* Job: find the line of the Python program that this thread runs, without the interpreter's lock.
 * Owns: the texts of call sites, which live as long as the process, as the library requires.
 * Never: decides anything by a line: an unknown line is "?". */
#ifndef TORCH_LINE_H
#define TORCH_LINE_H

#ifdef __cplusplus
extern "C" {
#endif

/* "train/main.py:12" of this thread's innermost frame whose file is in no folder of
 * site_pass_over(); "?": unknown. */
const char *site_here(void);

/* Frames of files below this folder (UTF-8, ends in a slash) do not count as the program's. Up to 6
 * folders; a file's own path is allowed. Call it with the interpreter's lock. */
void site_pass_over(const char *folder);

/* Compares what is read without the lock with the interpreter's answer. 1: they agree. 0: they
 * differ, and from now on every line is "?". Call it with the interpreter's lock, from Python
 * code. */
int site_check(void);

#ifdef __cplusplus
}
#endif
#endif
