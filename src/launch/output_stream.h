/* Job: write one stream of the launcher (its stdout or stderr): hold back what the reader does not
 *      take yet, keep lines whole.
 * Owns: nothing shared.
 * Never: finds out where bytes come from; it only compares `by`. */
#ifndef TUTTI_LAUNCH_OUTPUT_STREAM_H
#define TUTTI_LAUNCH_OUTPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

struct output_stream {
    int fd;
    int error;     /* not 0: nothing can be written any more (EPIPE …); new bytes are dropped */
    size_t chunk;  /* most bytes of one write that cannot block when poll says so */
    char *bytes;
    size_t from, to, room;
    const void *open_by;         /* whose unfinished line stands at the end, NULL: nobody's */
};

void output_stream_open(struct output_stream *o, int fd);
void output_stream_close(struct output_stream *o);  /* frees; what is still held back is lost */

/* Appends tag and bytes. After another writer's unfinished line a newline comes first. After the
 * writer's own unfinished line there is no newline and no tag. */
void output_stream_put(struct output_stream *o, const void *by, const char *tag, const char *bytes,
                       size_t n, bool ends_line);
void output_stream_write(struct output_stream *o);  /* as much as goes without blocking */
/* Writes everything, however long the reader takes. */
void output_stream_write_all(struct output_stream *o);
/* True: something is held back; poll the stream for POLLOUT. */
bool output_stream_waits(const struct output_stream *o);
/* True: more may be put. False: leave it with the rank, whose write then blocks. */
bool output_stream_has_room(const struct output_stream *o);

#endif
