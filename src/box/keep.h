/* Job: find the place where black boxes are kept, write one there, and keep the number of those
 *      down that nobody has asked for.
 * Owns: the files tutti-*.box of the user's state folder.
 * Never: makes a half-written file visible, touches a file of another name, follows a link. */
#ifndef TUTTI_BOX_KEEP_H
#define TUTTI_BOX_KEEP_H

#include "box/box.h"

enum { KEEP_PATH = 4096, KEEP_MOST = 20 };

/* state: it is the user's state folder, in which there are at most KEEP_MOST. */
struct keep { char folder[KEEP_PATH]; bool state; };

/* TUTTI_BOX; where that is not set, and by_default, the user's state folder. False: none is to
 * be written. */
bool keep_wanted(struct keep *k, bool by_default);

/* Writes tutti-<job>-<time>.box there, and its path to `path`. 0; or -errno, and why. */
int  keep_box(const struct keep *k, const char *job, uint64_t wall_ns, const struct box_bytes *b,
              struct text *path, struct text *why);
/* Writes that file; one that is there is replaced. */
int  keep_file(const char *file, const struct box_bytes *b, struct text *why);

#endif
