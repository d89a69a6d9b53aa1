/* Job: keep a descriptor for long, and notice when its number has become another file.
 * Owns: the descriptor that it was given.
 * Never: knows what the descriptor is for.
 *
 * A program may close all numbers that it did not open (closefrom, a daemon's start) and use them
 * for files of its own. So a kept descriptor is known by its file, which is checked before each use
 * and before the close. One that has become another file is lost: it is neither used nor closed.
 * There is no guard against a thread that closes it between check and use. */
#ifndef TUTTI_OS_KEPT_H
#define TUTTI_OS_KEPT_H

#include <stdbool.h>
#include <stdint.h>

/* file: from device, inode, kind. number: of a process or an eventfd, which share one inode on many
 * kernels; 0: none. */
struct kept { int fd; uint64_t file, number; };

#define KEPT_NONE ((struct kept){ -1, 0, 0 })

/* The file behind fd now; fd < 0: KEPT_NONE. 0.3 us; some 5 us by /proc for an eventfd, or for a
 * process before Linux 6.9. */
struct kept kept_of(int fd);
bool kept_is(const struct kept *kept);            /* true: the number is still that file */
int  kept_fd(const struct kept *kept);            /* its number; -EBADF: lost, or never there */
void kept_close(struct kept *kept);               /* closes it if not lost; KEPT_NONE afterwards */

#endif
