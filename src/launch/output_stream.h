/* Job: one stream out of the launcher (its stdout or stderr): holds back what the reader does not
 *      take yet, keeps lines whole.
 * Owns: nothing shared.
 * Never: where the bytes come from; `by` is only compared. */
#ifndef TUTTI_LAUNCH_OUTPUT_STREAM_H
#define TUTTI_LAUNCH_OUTPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

struct output_stream {
    int fd;
    int error;     /* not 0: nothing can be written any more (EPIPE …), and what comes is dropped */
    size_t chunk;  /* most bytes of one write that cannot block when poll says so */
    char *bytes;
    size_t from, to, room;
    const void *open_by;         /* whose unfinished line stands at the end, NULL: nobody's */
};

void output_stream_open(struct output_stream *o, int fd);
void output_stream_close(struct output_stream *o);  /* frees; what is still held back is lost */

/* Appends tag and bytes. Behind somebody else's unfinished line a newline comes first; behind one's
 * own nothing, no tag either. */
void output_stream_put(struct output_stream *o, const void *by, const char *tag, const char *bytes,
                       size_t n, bool ends_line);
void output_stream_write(struct output_stream *o);  /* as much as goes without blocking */
/* everything, however long the reader takes */
void output_stream_write_all(struct output_stream *o);
/* holds something back: poll it for POLLOUT */
bool output_stream_waits(const struct output_stream *o);
/* may be given more; else leave it with the rank, whose write then blocks */
bool output_stream_has_room(const struct output_stream *o);

#endif
