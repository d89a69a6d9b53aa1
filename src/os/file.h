/* Job: read small files of /proc and /sys; give descriptors high numbers, which programs seldom
 *      use.
 * Owns: nothing.
 * Never: interprets a file. */
#ifndef TUTTI_OS_FILE_H
#define TUTTI_OS_FILE_H

#include <stddef.h>

/* Reads up to room - 1 bytes from the file's beginning, and ends them with 0. Their number, or a
 * negative errno with text "". */
int file_read(const char *path, char *text, size_t room);

/* Moves a descriptor to a number of 100 or more, CLOEXEC, and closes `fd`. If the limits forbid
   that, fd itself: a low number only disturbs programs that count descriptors. */
int file_move_up(int fd);
/* A duplicate at a number of 100 or more, or a negative errno; -EMFILE: no number is free. */
int file_copy_up(int fd);

#endif
