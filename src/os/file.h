/* Job: small files of /proc and /sys as strings, and descriptors out of the way of programs.
 * Owns: nothing.
 * Never: what a file means. */
#ifndef TUTTI_OS_FILE_H
#define TUTTI_OS_FILE_H

#include <stddef.h>

/* Up to room - 1 bytes from the file's beginning, 0 behind them. Their number or a negative errno
 * (text is "" then). */
int file_read(const char *path, char *text, size_t room);

/* The same descriptor at a number of 100 or more, CLOEXEC; `fd` is closed. Where the limits forbid
   it, fd itself: a low number is a nuisance to programs that count descriptors, not a failure. */
int file_move_up(int fd);
/* A second descriptor of the same, placed likewise, or a negative errno: -EMFILE where no
 * number is free. */
int file_copy_up(int fd);

#endif
