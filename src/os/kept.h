/* Job: a descriptor that is kept while the program runs, and is what it was or is
 *      nobody's business.
 * Owns: the descriptor, once it is given.
 * Never: what it is for.
 *
 * A program may close all numbers that it did not open (closefrom, a daemon's beginning) and give
 * them to files of its own. So each kept one is known by its file, and is looked at before it is
 * used and before it is closed: one that has become another file is lost, and is neither. A thread
 * that closes between the look and the use is not guarded against. */
#ifndef TUTTI_OS_KEPT_H
#define TUTTI_OS_KEPT_H

#include <stdbool.h>
#include <stdint.h>

/* file: of device, inode, kind; number: of a process or an eventfd, which on many kernels share one
 * inode; 0: none. */
struct kept { int fd; uint64_t file, number; };

#define KEPT_NONE ((struct kept){ -1, 0, 0 })

/* What fd is now; < 0: KEPT_NONE. 0.3 us; of what has no file (eventfd, a process before Linux 6.9)
 * some 5 us, by /proc. */
struct kept kept_of(int fd);
bool kept_is(const struct kept *kept);            /* is it still that? */
int  kept_fd(const struct kept *kept);            /* its number, or -EBADF: lost, or never there */
void kept_close(struct kept *kept);               /* if it still is that; KEPT_NONE afterwards */

#endif
