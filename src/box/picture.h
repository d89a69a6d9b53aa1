/* Job: take a picture of a job for a black box: its arena, and what the system says of its ranks.
 * Owns: the copy.
 * Never: decides when one is taken; writes a file. */
#ifndef TUTTI_BOX_PICTURE_H
#define TUTTI_BOX_PICTURE_H

#include "box/box.h"

struct picture { struct arena_copy copy; struct box_moment moment; struct box_rank *ranks; };

/* Of an arena that this process has mapped: by its descriptor while there is one. 0; or -errno,
 * and the reason. */
int  picture_take(struct picture *p, const struct arena *arena, struct text *why);
/* Of a copy, which becomes the picture's. The ranks are empty. 0 or -ENOMEM. */
int  picture_of(struct picture *p, struct arena_copy *copy);
void picture_drop(struct picture *p);

/* A file's bytes of it. report: lines, each ends with \n. 0 or -ENOMEM. */
int  picture_develop(struct box_bytes *b, struct picture *p, const char *report);

#endif
