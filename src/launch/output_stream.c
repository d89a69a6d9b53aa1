/* The launcher must never block in a write, since a signal or a deadline may come. It cannot make
 * its stdout non-blocking: that flag belongs to all who share the stream, the user's shell among
 * them. So it asks poll, and then writes no more than PIPE_BUF, which a ready pipe or terminal
 * takes without blocking. A file takes any number of bytes at once.
 * Cost: a copy of each byte. At most HELD_MOST bytes are held back, plus what one read of a pipe
 * gives. */
#include "launch/output_stream.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HELD_MOST = 128 * 1024, FILE_CHUNK = 1024 * 1024 };

void output_stream_open(struct output_stream *o, int fd)
{
    struct stat st;
    *o = (struct output_stream){ .fd = fd, .chunk = PIPE_BUF };
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        o->chunk = FILE_CHUNK;
}

void output_stream_close(struct output_stream *o)
{
    free(o->bytes);
    *o = (struct output_stream){ .fd = -1, .error = EBADF };
}

bool output_stream_waits(const struct output_stream *o)
{
    return o->to > o->from && !o->error;
}

bool output_stream_has_room(const struct output_stream *o)
{
    return o->error || o->to - o->from < HELD_MOST;
}

static bool make_room(struct output_stream *o, size_t n)
{
    if (o->from > 0 && (o->to + n > o->room || o->from == o->to)) {
        memmove(o->bytes, o->bytes + o->from, o->to - o->from);
        o->to -= o->from;
        o->from = 0;
    }
    if (o->to + n <= o->room)
        return true;
    size_t room = o->room ? o->room : 16384;
    while (room < o->to + n)
        room *= 2;
    char *bytes = realloc(o->bytes, room);
    if (!bytes)
        return false;
    o->bytes = bytes;
    o->room = room;
    return true;
}

static void append(struct output_stream *o, const char *bytes, size_t n)
{
    if (n)
        memcpy(o->bytes + o->to, bytes, n);
    o->to += n;
}

void output_stream_put(struct output_stream *o, const void *by, const char *tag, const char *bytes,
                       size_t n, bool ends_line)
{
    bool goes_on = o->open_by && o->open_by == by;
    size_t tag_len = tag && !goes_on ? strlen(tag) : 0;
    if (o->error || !make_room(o, n + tag_len + 1))
        return;
    if (o->open_by && !goes_on)
        append(o, "\n", 1);
    append(o, tag, tag_len);
    append(o, bytes, n);
    o->open_by = ends_line ? NULL : by;
}

/* False: not now, or never again. */
static bool write_some(struct output_stream *o)
{
    size_t n = o->to - o->from;
    ssize_t done = write(o->fd, o->bytes + o->from, n < o->chunk ? n : o->chunk);
    if (done > 0)
        o->from += (size_t)done;
    else if (done < 0 && errno != EAGAIN && errno != EINTR)
        o->error = errno;
    return done > 0;
}

static bool may_write(const struct output_stream *o, int wait_ms)
{
    struct pollfd p = { o->fd, POLLOUT, 0 };
    return o->chunk == FILE_CHUNK || poll(&p, 1, wait_ms) > 0;
}

void output_stream_write(struct output_stream *o)
{
    while (output_stream_waits(o) && may_write(o, 0))
        if (!write_some(o))
            return;
}

void output_stream_write_all(struct output_stream *o)
{
    while (output_stream_waits(o))
        if (may_write(o, -1))
            write_some(o);
}
