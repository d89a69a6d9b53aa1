/* Job: the line of the Python program that this thread is in, without the interpreter's lock.
 * Owns: the texts of call sites, which live as long as the process, as the library asks.
 * Never: a decision about what is done: a line that cannot be told is "?". */
#ifndef TORCH_LINE_H
#define TORCH_LINE_H

#ifdef __cplusplus
extern "C" {
#endif

/* "train/main.py:12", of the innermost frame of this thread whose file lies in none of the folders
 * that are passed over; or "?". */
const char *site_here(void);

/* With the interpreter's lock. Frames of files below this folder (UTF-8, ends in a slash) are not
 * the program's. Up to 6; a file's own path will do. */
void site_pass_over(const char *folder);

/* With the interpreter's lock, called from Python code: compares what is read without the lock to
 * what the interpreter says, and gives up reading for good where they differ. 1: they agree; 0:
 * every line is "?". */
int site_check(void);

#ifdef __cplusplus
}
#endif
#endif
