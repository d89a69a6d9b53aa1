/* Job: one stream out of the launcher (its stdout or stderr): holds back what the reader does not take yet, keeps lines whole.
 * Owns: nothing shared.
 * Never: where the bytes come from; `by` is only compared. */
#ifndef TUTTI_LAUNCH_OUTLET_H
#define TUTTI_LAUNCH_OUTLET_H

#include <stdbool.h>
#include <stddef.h>

struct outlet {
    int fd;
    int error;                   /* not 0: nothing can be written any more (EPIPE …), and what comes is dropped */
    size_t chunk;                /* most bytes of one write that cannot block when poll says so */
    char *bytes;
    size_t from, to, room;
    const void *open_by;         /* whose unfinished line stands at the end, NULL: nobody's */
};

void outlet_open(struct outlet *o, int fd);
void outlet_close(struct outlet *o);             /* frees; what is still held back is lost */

/* Appends tag and bytes. Behind somebody else's unfinished line a newline comes first; behind one's own nothing, no tag either. */
void outlet_put(struct outlet *o, const void *by, const char *tag, const char *bytes, size_t n, bool ends_line);
void outlet_write(struct outlet *o);             /* as much as goes without blocking */
void outlet_write_all(struct outlet *o);         /* everything, however long the reader takes */
bool outlet_waits(const struct outlet *o);       /* holds something back: poll it for POLLOUT */
bool outlet_has_room(const struct outlet *o);    /* may be given more; else leave it with the rank, whose write then blocks */

#endif
