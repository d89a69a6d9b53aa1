/* Job: cut what one rank writes to one stream into lines, and put them into the outlet.
 * Owns: nothing shared.
 * Never: descriptors, order among ranks. */
#ifndef TUTTI_LAUNCH_LINES_H
#define TUTTI_LAUNCH_LINES_H

#include "launch/outlet.h"

#include <stdint.h>

struct lines {
    struct outlet *out;
    char tag[16];                        /* "" for none */
    char *unfinished;                    /* the line whose end has not come */
    size_t used, room;
    uint64_t since_ns;                   /* when it began */
    bool after_return;                   /* the last line ended in \r: a \n now is the rest of that end */
};

void lines_take(struct lines *l, const char *bytes, size_t n);   /* n > 0 */
void lines_show(struct lines *l);        /* the unfinished line as it is: it may be a prompt */
void lines_end(struct lines *l);         /* the same, and frees */

#endif
