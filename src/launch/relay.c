/* The pipes, and the order in which they are read; launch/line_splitter makes lines of their
 * content. Backpressure: if the reader of our output is slow, the pipes that lead there are not
 * read, and the ranks' writes block. The other stream and all else continue.
 * Cost of a line: one signal, three system calls and one copy here; in the rank a write takes 0.4
 * us instead of 0.2. */
#include "launch/relay.h"

#include "launch/line_splitter.h"
#include "launch/signals.h"
#include "launch/terminal.h"
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
    PACKET_LEAST = 64 * 1024,
    QUEUE_MOST = 1 << 20,                /* beyond it the order is lost, no data */
    /* writes that all pipes hold, and that one holds: all pipes of a user share a limit of 16,384
     * pages */
    SLOTS_ALL = 4096, SLOTS_MOST = 256,
    SLOTS_USUAL = 16,
    PROMPT_NS = 100 * 1000 * 1000,
    TERMINAL_MS = 50
};

struct relay_source {
    int fd;                              /* -1: ended, or not there yet */
    struct relay_queue *queue;
    struct line_splitter lines;
    struct report_hold hold;             /* of stderr */
    unsigned slots;                      /* writes that fit into the pipe */
    unsigned ahead;                      /* writes read before their signal came */
    /* its places in the queue; the next `empty` of them have no write */
    unsigned queued, empty;
};

static bool same_place(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int relay_begin(struct relay *r, int writes, bool tag)
{
    *r = (struct relay){ .writes = writes, .tag = tag, .same = { .due_ns = UINT64_MAX } };
    output_stream_open(&r->outlets[0], STDOUT_FILENO);
    output_stream_open(&r->outlets[1], STDERR_FILENO);
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
        output_stream_write_all(&r->outlets[i]);
        output_stream_close(&r->outlets[i]);
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
    same_reports_begin(&r->same, size);
    for (int i = 0; i < 2 * size; i++) {
        struct relay_source *s = &r->sources[i];
        s->fd = -1;
        s->lines.out = i % 2 ? r->err : r->out;
        s->queue = &r->queues[s->lines.out - r->outlets];
        if (r->tag)
            snprintf(s->lines.tag, sizeof s->lines.tag, "[%d] ", i / 2);
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
    int ends[2], slots = SLOTS_ALL / 2 / r->size;
    if (pipe2(ends, O_CLOEXEC | O_DIRECT) < 0 && (errno != EINVAL || pipe2(ends, O_CLOEXEC) < 0))
        return -errno;
    s->fd = ends[0];
    *end = ends[1];
    r->open++;
    /* each write takes a page of its own: this makes room for as many lines as in a plain pipe */
    if (slots > SLOTS_USUAL)
        fcntl(s->fd, F_SETPIPE_SZ, (slots < SLOTS_MOST ? slots : SLOTS_MOST) * (int)memory_page());
    int size = fcntl(s->fd, F_GETPIPE_SZ);
    s->slots = size > 0 ? (unsigned)size / (unsigned)memory_page() : SLOTS_USUAL;
    fcntl(s->fd, F_SETSIG, signals_of_writes());
    fcntl(s->fd, F_SETOWN, getpid());
    fcntl(s->fd, F_SETFL, O_NONBLOCK | O_ASYNC);
    return remember(r, s);
}

/* Both streams of a rank; no signals: each round reads what is there, rank by rank. */
static int open_terminal(struct relay *r, struct relay_source *s, int ends[2])
{
    int fds[2], error = terminal_open(fds);
    if (error)
        return error;
    s->fd = fds[0];
    s->slots = SLOTS_MOST;
    ends[0] = fds[1];
    ends[1] = fcntl(fds[1], F_DUPFD_CLOEXEC, 0);
    r->open++;
    return ends[1] < 0 ? -errno : remember(r, s);
}

int relay_pipes(struct relay *r, int rank, int ends[2])
{
    ends[0] = ends[1] = -1;
    if (r->tty)
        return open_terminal(r, &r->sources[2 * rank], ends);
    int error = open_pipe(r, &r->sources[2 * rank], &ends[0]);
    if (!error)
        error = open_pipe(r, &r->sources[2 * rank + 1], &ends[1]);
    return error;
}

/* ---- reading ---- */

static void source_show(struct relay_source *s, const char *bytes, size_t n)
{
    if (n)
        line_splitter_take(&s->lines, bytes, n);
}

static void source_release(struct relay_source *s)
{
    size_t n;
    const char *held = same_reports_release(&s->hold, &n);
    source_show(s, held, n);
}

/* The bytes of one write. */
static void source_take(struct relay *r, struct relay_source *s, size_t n)
{
    int at = (int)(s - r->sources);
    const char *bytes = r->packet;
    if (at % 2 || r->tty)
        bytes = same_reports_take(&r->same, &s->hold, at / 2, bytes, &n);
    source_show(s, bytes, n);
}

static void source_end(struct relay *r, struct relay_source *s)
{
    source_release(s);
    free(s->hold.text);
    line_splitter_end(&s->lines);
    r->by_fd[s->fd] = NULL;
    close(s->fd);
    s->fd = -1;
    r->open--;
}

/* Reads one write of the rank: packets up to the first that does not fill its page. False: there is
 * nothing now. */
static bool read_one(struct relay *r, struct relay_source *s)
{
    bool any = false, more = true, over = false;
    size_t used = 0;
    for (int packets = 0; packets < SLOTS_MOST && more; packets++) {
        ssize_t n = read(s->fd, r->packet + used, r->packet_room - used);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        over = n <= 0;
        if (over)
            break;
        any = true;
        used += (size_t)n;
        more = (size_t)n >= memory_page() && output_stream_has_room(s->lines.out);
        if (r->packet_room - used < memory_page()) {
            source_take(r, s, used);
            used = 0;
        }
    }
    if (used)
        source_take(r, s, used);
    if (over)
        source_end(r, s);
    return any;
}

static bool nothing_left(const struct relay_source *s)
{
    int left = 0;
    return s->fd < 0 || (ioctl(s->fd, FIONREAD, &left) == 0 && left == 0);
}

/* ---- order ---- */

/* A write into a full pipe sends a signal when it begins to wait, and another one when it is done.
 * The first is recognised: as many writes are queued already as the pipe holds. This holds only if
 * nothing was read since it came, so signals are taken before every read. One can slip through
 * between the two system calls. It is found when the pipe runs empty; until then this rank's writes
 * are read one place too early. */
static void queue_push(struct relay_queue *q, struct relay_source *s)
{
    if (s->queued - s->empty >= s->slots)
        return;
    if (q->from == q->to)
        q->from = q->to = 0;
    if (q->to == q->room) {
        size_t room = q->room ? 2 * q->room : 256;
        struct relay_source **at = room <= QUEUE_MOST
            ? realloc(q->at, room * sizeof(struct relay_source *))
            : NULL;
        if (!at)
            return;
        q->at = at;
        q->room = room;
    }
    q->at[q->to++] = s;
    s->queued++;
}

static void take_signals(struct relay *r)
{
    struct signalfd_siginfo news[32];
    ssize_t n;
    while ((n = read(r->writes, news, sizeof news)) > 0)
        for (size_t i = 0; i < (size_t)n / sizeof news[0]; i++) {
            int fd = (int)news[i].ssi_fd;
            struct relay_source *s = (int)news[i].ssi_signo == signals_of_writes()
                    && fd < r->by_fd_room
                ? r->by_fd[fd]
                : NULL;
            if (s && s->ahead)
                s->ahead--;
            else if (s)
                queue_push(s->queue, s);
        }
}

static void serve_queue(struct relay *r, struct relay_queue *q, bool all)
{
    struct output_stream *out = &r->outlets[q - r->queues];
    while (q->from < q->to && (all || output_stream_has_room(out))) {
        take_signals(r);
        struct relay_source *s = q->at[q->from++];
        s->queued--;
        if (s->empty > 0) {
            s->empty--;
            continue;
        }
        if (s->fd >= 0)
            read_one(r, s);
        if (s->queued > 0 && nothing_left(s))
            s->empty = s->queued;
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
        if (output_stream_waits(&r->outlets[i]))
            polls[n++] = (struct pollfd){ r->outlets[i].fd, POLLOUT, 0 };
    if (r->sources && (output_stream_has_room(r->out) || output_stream_has_room(r->err)))
        polls[n++] = (struct pollfd){ r->writes, POLLIN, 0 };
    for (int i = 0; r->sources && i < 2 * r->size; i++)
        if (r->sources[i].fd >= 0 && output_stream_has_room(r->sources[i].lines.out))
            polls[n++] = (struct pollfd){ r->sources[i].fd, POLLIN, 0 };
    return n;
}

static uint64_t prompt_due(const struct relay *r)
{
    const struct relay_source *s = r->sources;
    return r->prompts && s && s->lines.used ? s->lines.since_ns + PROMPT_NS : UINT64_MAX;
}

static void tell_same(struct relay *r)
{
    char said[512];
    while (same_reports_tell(&r->same, said, sizeof said))
        relay_say(r, "tutti run: %s", said);
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
        struct relay_source *s = polls[i].revents && polls[i].fd < r->by_fd_room
            ? r->by_fd[polls[i].fd]
            : NULL;
        if (!s || waiting[s->queue - r->queues] || !output_stream_has_room(s->lines.out))
            continue;
        if (read_one(r, s))
            s->ahead++;
    }
    if (now_ns >= prompt_due(r))
        line_splitter_show(&r->sources[0].lines);
    for (int i = 0; r->sources && i < 2 * r->size; i++)
        if (now_ns >= same_reports_due(&r->sources[i].hold))
            source_release(&r->sources[i]);
    if (now_ns >= r->same.due_ns)
        tell_same(r);
    output_stream_write(r->out);
    if (r->err != r->out)
        output_stream_write(r->err);
}

uint64_t relay_due(const struct relay *r)
{
    uint64_t due = prompt_due(r);
    due = r->same.due_ns < due ? r->same.due_ns : due;
    for (int i = 0; r->sources && i < 2 * r->size; i++) {
        uint64_t held = same_reports_due(&r->sources[i].hold);
        due = held < due ? held : due;
    }
    return due;
}

/* What was written to a terminal takes a moment to come through. */
static void finish_terminal(struct relay *r, struct relay_source *s)
{
    while (s->fd >= 0) {
        struct pollfd p = { s->fd, POLLIN, 0 };
        if (poll(&p, 1, TERMINAL_MS) <= 0 || !read_one(r, s))
            break;
    }
}

/* Reads what is in the pipes now. It does not wait for their ends: a writer may be a child of a
 * rank, and live on. All of it is held back, however slow the reader is: pipes are small. */
void relay_finish(struct relay *r)
{
    if (!r->sources)
        return;
    take_signals(r);
    for (int i = 0; i < 2; i++)
        serve_queue(r, &r->queues[i], true);
    for (int i = 0; i < 2 * r->size; i++) {
        struct relay_source *s = &r->sources[i];
        if (r->tty)
            finish_terminal(r, s);
        while (!nothing_left(s) && read_one(r, s))
            ;
        if (s->fd >= 0)
            source_end(r, s);
    }
    tell_same(r);
    same_reports_end(&r->same);
    free(r->sources);
    free(r->by_fd);
    r->sources = NULL;
    r->by_fd = NULL;
    r->by_fd_room = r->size = 0;
    take_signals(r);                     /* a pending signal would end us when unblocked */
    for (int i = 0; i < 2; i++) {
        r->queues[i].from = r->queues[i].to = 0;
        /* its writer is gone: no later bytes continue that line */
        if (r->outlets[i].open_by)
            r->outlets[i].open_by = &r->queues[i];
    }
}

bool relay_unread(const struct relay *r)
{
    return r->out->error == EPIPE || r->err->error == EPIPE;
}

void relay_show(struct relay *r, const char *lines, size_t n)
{
    if (n)
        output_stream_put(r->err, r, NULL, lines, n, true);
    output_stream_write(r->err);
}

void relay_say(struct relay *r, const char *format, ...)
{
    char line[5120];                     /* a path may be in it */
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    if (n < 0)
        return;
    size_t len = (size_t)n < sizeof line - 1 ? (size_t)n : sizeof line - 2;
    line[len++] = '\n';
    output_stream_put(r->err, r, NULL, line, len, true);
    output_stream_write(r->err);
}
