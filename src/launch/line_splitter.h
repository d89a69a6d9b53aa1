/* Job: cut what one rank writes to one stream into lines, and put them into the output stream.
 * Owns: nothing shared.
 * Never: handles descriptors, or the order among ranks. */
#ifndef TUTTI_LAUNCH_LINE_SPLITTER_H
#define TUTTI_LAUNCH_LINE_SPLITTER_H

#include "launch/output_stream.h"

#include <stdint.h>

struct line_splitter {
    struct output_stream *out;
    char tag[16];                        /* "" for none */
    char *unfinished;                    /* the line whose end has not come */
    size_t used, room;
    uint64_t since_ns;            /* when it began */
    bool after_return;            /* the last line ended in \r: a \n now is the rest of that end */
};

void line_splitter_take(struct line_splitter *l, const char *bytes, size_t n);  /* n > 0 */
/* Shows the unfinished line as it is: it may be a prompt. */
void line_splitter_show(struct line_splitter *l);
void line_splitter_end(struct line_splitter *l);  /* the same, and frees */

#endif
