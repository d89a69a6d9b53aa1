/* What was read is cut at once and passed on from the read buffer; only an unfinished line is kept.
 * A carriage return ends a line, too, so that a progress bar moves. A line of more than LINE_MOST
 * bytes is passed on in pieces.
 * Cost: a search for the ends, and a copy of what is unfinished. */
#include "launch/line_splitter.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 64 * 1024 };

static void keep(struct line_splitter *l, const char *bytes, size_t n)
{
    if (l->used + n > l->room) {
        size_t room = l->room ? l->room : 256;
        while (room < l->used + n)
            room *= 2;
        char *line = realloc(l->unfinished, room);
        if (!line)
            return;
        l->unfinished = line;
        l->room = room;
    }
    if (l->used == 0)
        l->since_ns = clock_ns();
    memcpy(l->unfinished + l->used, bytes, n);
    l->used += n;
}

void line_splitter_show(struct line_splitter *l)
{
    if (l->used)
        output_stream_put(l->out, l, l->tag, l->unfinished, l->used, false);
    l->used = 0;
}

static void pass_line(struct line_splitter *l, const char *bytes, size_t n)
{
    if (l->used) {
        keep(l, bytes, n);
        output_stream_put(l->out, l, l->tag, l->unfinished, l->used, true);
        l->used = 0;
    } else {
        output_stream_put(l->out, l, l->tag, bytes, n, true);
    }
}

/* Bytes of the first line, its end included; 0: it does not end here. */
static size_t first_line(const char *bytes, size_t n)
{
    const char *feed = memchr(bytes, '\n', n);
    size_t most = feed ? (size_t)(feed - bytes) : n;
    const char *back = memchr(bytes, '\r', most);
    if (!back)
        return feed ? most + 1 : 0;
    return (size_t)(back - bytes) + (back + 1 == feed ? 2 : 1);
}

/* Bytes of all lines that end here. If no tag goes between them, they are passed on as one. */
static size_t all_lines(const char *bytes, size_t n)
{
    const char *feed = memrchr(bytes, '\n', n);
    size_t to = feed ? (size_t)(feed - bytes) + 1 : 0;
    const char *back = memrchr(bytes + to, '\r', n - to);
    return back ? (size_t)(back - bytes) + 1 : to;
}

void line_splitter_take(struct line_splitter *l, const char *bytes, size_t n)
{
    size_t (*lines)(const char *, size_t) = l->tag[0] ? first_line : all_lines;
    if (l->after_return && bytes[0] == '\n' && l->used == 0) {
        output_stream_put(l->out, l, NULL, bytes, 1, true);
        bytes++;
        n--;
    }
    l->after_return = false;
    for (size_t end; n > 0 && (end = lines(bytes, n)) > 0; bytes += end, n -= end) {
        pass_line(l, bytes, end);
        l->after_return = bytes[end - 1] == '\r';
    }
    if (n == 0)
        return;
    l->after_return = false;
    keep(l, bytes, n);
    if (l->used > LINE_MOST)
        line_splitter_show(l);
}

void line_splitter_end(struct line_splitter *l)
{
    line_splitter_show(l);
    free(l->unfinished);
    l->unfinished = NULL;
    l->room = 0;
}
