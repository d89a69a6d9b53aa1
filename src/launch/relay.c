/* A read is cut into lines at once; only an unfinished line is kept, with its rank. A carriage return ends a line too, so that
 * a progress bar of rank 0 moves. A line of more than LINE_MOST bytes goes on in pieces.
 * Backpressure: where the reader of our output is slow, the pipes that lead there are not read, and the ranks' writes block;
 * the other stream and everything else go on.
 * Cost of a line: one signal, three system calls and one copy here; some 0.4 us more than a plain pipe in the rank's write. */
#include "launch/relay.h"

#include "base/clock.h"
#include "launch/signals.h"
#include "os/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_MOST = 64 * 1024, PACKET_LEAST = 64 * 1024,
    QUEUE_MOST = 1 << 20,                /* beyond, order is given up, not data */
    SLOTS_ALL = 1024, SLOTS_MOST = 64,   /* pages of all pipes together, and of one: a user's pipes have a common limit */
    PROMPT_NS = 100 * 1000 * 1000
};

struct relay_source {
    int fd;                              /* -1: ended, or not there yet */
    int rank;
    struct outlet *out;
    struct relay_queue *queue;
    char *line;                          /* the unfinished one */
    size_t used, room;
    unsigned ahead;                      /* writes read before their signal came */
    bool after_return;                   /* the last line ended in \r: a \n now is the rest of that end */
    uint64_t since_ns;                   /* of the unfinished line */
    char tag[16];
};

static bool same_place(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int relay_begin(struct relay *r, int writes, bool tag)
{
    *r = (struct relay){ .writes = writes, .tag = tag };
    outlet_open(&r->outlets[0], STDOUT_FILENO);
    outlet_open(&r->outlets[1], STDERR_FILENO);
    r->out = &r->outlets[0];
    r->err = same_place(STDOUT_FILENO, STDERR_FILENO) ? r->out : &r->outlets[1];
    r->prompts = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    r->packet_room = memory_page() > PACKET_LEAST ? memory_page() : PACKET_LEAST;
    r->packet = malloc(r->packet_room);
    return r->packet ? 0 : -ENOMEM;
}

void relay_end(struct relay *r)
{
    for (int i = 0; i < 2; i++) {
        outlet_write_all(&r->outlets[i]);
        outlet_close(&r->outlets[i]);
        free(r->queues[i].at);
    }
    free(r->packet);
}

/* ---- pipes ---- */

int relay_gather(struct relay *r, int size)
{
    r->size = size;
    r->open = 0;
    r->sources = calloc((size_t)size * 2, sizeof *r->sources);
    if (!r->sources)
        return -ENOMEM;
    for (int i = 0; i < 2 * size; i++) {
        struct relay_source *s = &r->sources[i];
        s->fd = -1;
        s->rank = i / 2;
        s->out = i % 2 ? r->err : r->out;
        s->queue = &r->queues[s->out - r->outlets];
        if (r->tag)
            snprintf(s->tag, sizeof s->tag, "[%d] ", s->rank);
    }
    return 0;
}

static int remember(struct relay *r, struct relay_source *s)
{
    if (s->fd >= r->by_fd_room) {
        int room = s->fd + 64;
        struct relay_source **by_fd = realloc(r->by_fd, (size_t)room * sizeof *by_fd);
        if (!by_fd)
            return -ENOMEM;
        memset(by_fd + r->by_fd_room, 0, (size_t)(room - r->by_fd_room) * sizeof *by_fd);
        r->by_fd = by_fd;
        r->by_fd_room = room;
    }
    r->by_fd[s->fd] = s;
    return 0;
}

static int open_pipe(struct relay *r, struct relay_source *s, int *end)
{
    int ends[2], slots = SLOTS_ALL / r->size;
    if (pipe2(ends, O_CLOEXEC | O_DIRECT) < 0 && (errno != EINVAL || pipe2(ends, O_CLOEXEC) < 0))
        return -errno;
    s->fd = ends[0];
    *end = ends[1];
    r->open++;
    if (slots > 16)                      /* each write takes a page of its own: room for as many lines as a plain pipe has */
        fcntl(s->fd, F_SETPIPE_SZ, (slots < SLOTS_MOST ? slots : SLOTS_MOST) * (int)memory_page());
    fcntl(s->fd, F_SETSIG, signals_of_writes());
    fcntl(s->fd, F_SETOWN, getpid());
    fcntl(s->fd, F_SETFL, O_NONBLOCK | O_ASYNC);
    return remember(r, s);
}

int relay_pipes(struct relay *r, int rank, int ends[2])
{
    ends[0] = ends[1] = -1;
    int error = open_pipe(r, &r->sources[2 * rank], &ends[0]);
    if (!error)
        error = open_pipe(r, &r->sources[2 * rank + 1], &ends[1]);
    return error;
}

/* ---- lines ---- */

static void keep(struct relay_source *s, const char *bytes, size_t n)
{
    if (s->used + n > s->room) {
        size_t room = s->room ? s->room : 256;
        while (room < s->used + n)
            room *= 2;
        char *line = realloc(s->line, room);
        if (!line)
            return;
        s->line = line;
        s->room = room;
    }
    if (s->used == 0)
        s->since_ns = clock_ns();
    memcpy(s->line + s->used, bytes, n);
    s->used += n;
}

static void pass_unfinished(struct relay_source *s)
{
    if (s->used)
        outlet_put(s->out, s, s->tag, s->line, s->used, false);
    s->used = 0;
}

static void pass_line(struct relay_source *s, const char *bytes, size_t n)
{
    if (s->used) {
        keep(s, bytes, n);
        outlet_put(s->out, s, s->tag, s->line, s->used, true);
        s->used = 0;
    } else {
        outlet_put(s->out, s, s->tag, bytes, n, true);
    }
}

/* How many bytes the first line has, its end included; 0: it does not end here. */
static size_t first_line(const char *bytes, size_t n)
{
    const char *feed = memchr(bytes, '\n', n);
    size_t most = feed ? (size_t)(feed - bytes) : n;
    const char *back = memchr(bytes, '\r', most);
    if (!back)
        return feed ? most + 1 : 0;
    return (size_t)(back - bytes) + (back + 1 == feed ? 2 : 1);
}

/* How many bytes all lines that end here have. Where no tag goes between them they are passed on as one. */
static size_t all_lines(const char *bytes, size_t n)
{
    const char *feed = memrchr(bytes, '\n', n);
    size_t to = feed ? (size_t)(feed - bytes) + 1 : 0;
    const char *back = memrchr(bytes + to, '\r', n - to);
    return back ? (size_t)(back - bytes) + 1 : to;
}

static void pass(struct relay_source *s, const char *bytes, size_t n)
{
    size_t (*lines)(const char *, size_t) = s->tag[0] ? first_line : all_lines;
    if (s->after_return && bytes[0] == '\n' && s->used == 0) {
        outlet_put(s->out, s, NULL, bytes, 1, true);
        bytes++;
        n--;
    }
    s->after_return = false;
    for (size_t end; n > 0 && (end = lines(bytes, n)) > 0; bytes += end, n -= end) {
        pass_line(s, bytes, end);
        s->after_return = bytes[end - 1] == '\r';
    }
    if (n == 0)
        return;
    s->after_return = false;
    keep(s, bytes, n);
    if (s->used > LINE_MOST)
        pass_unfinished(s);
}

static void source_end(struct relay *r, struct relay_source *s)
{
    pass_unfinished(s);
    r->by_fd[s->fd] = NULL;
    close(s->fd);
    s->fd = -1;
    r->open--;
}

/* One write of the rank: packets up to the first that does not fill its page. false: there is nothing now. */
static bool read_one(struct relay *r, struct relay_source *s)
{
    bool any = false;
    for (int packets = 0; packets < SLOTS_MOST && s->fd >= 0; packets++) {
        ssize_t n = read(s->fd, r->packet, r->packet_room);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n <= 0) {
            source_end(r, s);
            break;
        }
        any = true;
        pass(s, r->packet, (size_t)n);
        if ((size_t)n < memory_page() || !outlet_has_room(s->out))
            break;
    }
    return any;
}

/* ---- order ---- */

static void queue_push(struct relay_queue *q, struct relay_source *s)
{
    if (q->from == q->to)
        q->from = q->to = 0;
    if (q->to == q->room) {
        size_t room = q->room ? 2 * q->room : 256;
        struct relay_source **at = room <= QUEUE_MOST ? realloc(q->at, room * sizeof(struct relay_source *)) : NULL;
        if (!at)
            return;
        q->at = at;
        q->room = room;
    }
    q->at[q->to++] = s;
}

static void take_signals(struct relay *r)
{
    struct signalfd_siginfo news[32];
    ssize_t n;
    while ((n = read(r->writes, news, sizeof news)) > 0)
        for (size_t i = 0; i < (size_t)n / sizeof news[0]; i++) {
            int fd = (int)news[i].ssi_fd;
            struct relay_source *s = (int)news[i].ssi_signo == signals_of_writes() && fd < r->by_fd_room ? r->by_fd[fd] : NULL;
            if (s && s->ahead)
                s->ahead--;
            else if (s)
                queue_push(s->queue, s);
        }
}

static void serve_queue(struct relay *r, struct relay_queue *q, bool all)
{
    struct outlet *out = &r->outlets[q - r->queues];
    while (q->from < q->to && (all || outlet_has_room(out))) {
        struct relay_source *s = q->at[q->from++];
        if (s->fd >= 0)
            read_one(r, s);
    }
}

int relay_polls(const struct relay *r)
{
    return 2 * r->size + 3;
}

int relay_poll(struct relay *r, struct pollfd *polls)
{
    int n = 0;
    for (int i = 0; i < 2; i++)
        if (outlet_waits(&r->outlets[i]))
            polls[n++] = (struct pollfd){ r->outlets[i].fd, POLLOUT, 0 };
    if (r->sources && (outlet_has_room(r->out) || outlet_has_room(r->err)))
        polls[n++] = (struct pollfd){ r->writes, POLLIN, 0 };
    for (int i = 0; r->sources && i < 2 * r->size; i++)
        if (r->sources[i].fd >= 0 && outlet_has_room(r->sources[i].out))
            polls[n++] = (struct pollfd){ r->sources[i].fd, POLLIN, 0 };
    return n;
}

void relay_round(struct relay *r, const struct pollfd *polls, int n, uint64_t now_ns)
{
    take_signals(r);
    bool waiting[2];
    for (int i = 0; i < 2; i++) {
        waiting[i] = r->queues[i].from < r->queues[i].to;
        serve_queue(r, &r->queues[i], false);
    }
    for (int i = 0; i < n; i++) {
        struct relay_source *s = polls[i].revents && polls[i].fd < r->by_fd_room ? r->by_fd[polls[i].fd] : NULL;
        if (!s || waiting[s->queue - r->queues] || !outlet_has_room(s->out))
            continue;
        if (read_one(r, s))
            s->ahead++;
    }
    if (now_ns >= relay_due(r))
        pass_unfinished(&r->sources[0]);
    outlet_write(r->out);
    if (r->err != r->out)
        outlet_write(r->err);
}

uint64_t relay_due(const struct relay *r)
{
    const struct relay_source *s = r->sources;
    return r->prompts && s && s->used ? s->since_ns + PROMPT_NS : UINT64_MAX;
}

/* What stands in a pipe now can be read without its writer, who may be a child of a rank that lives on: so no wait for the end.
 * It is held back whole, however slow the reader is: pipes are small. */
void relay_finish(struct relay *r)
{
    if (!r->sources)
        return;
    take_signals(r);
    for (int i = 0; i < 2; i++)
        serve_queue(r, &r->queues[i], true);
    for (int i = 0; i < 2 * r->size; i++) {
        struct relay_source *s = &r->sources[i];
        int left = 0;
        if (s->fd >= 0)
            ioctl(s->fd, FIONREAD, &left);
        while (left > 0 && s->fd >= 0 && read_one(r, s)) {
            left = 0;
            if (s->fd >= 0)
                ioctl(s->fd, FIONREAD, &left);
        }
        if (s->fd >= 0)
            source_end(r, s);
        free(s->line);
    }
    free(r->sources);
    free(r->by_fd);
    r->sources = NULL;
    r->by_fd = NULL;
    r->by_fd_room = r->size = 0;
    take_signals(r);                     /* what is still pending would end us when unblocked */
    r->queues[0].from = r->queues[0].to = r->queues[1].from = r->queues[1].to = 0;
}

void relay_say(struct relay *r, const char *format, ...)
{
    char line[1024];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    if (n < 0)
        return;
    size_t len = (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
    line[len++] = '\n';
    outlet_put(r->err, r, NULL, line, len, true);
    outlet_write(r->err);
}
