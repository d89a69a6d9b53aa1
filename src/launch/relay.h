/* Job: bring what the ranks write to our stdout and stderr: whole lines, in the order in which they
 *      were written.
 * Owns: our ends of the ranks' pipes.
 * Never: finds out why a rank writes or ends.
 *
 * The order. Each rank has pipes of its own, since lines would mix in a common one. But then
 * nothing says which of two pipes was written first, and "A on rank 0, barrier, B on rank 1" may
 * come out as B, A. So each pipe sends a queued signal at each write, before that write returns
 * (O_ASYNC, F_SETSIG). The queue of signals is the order of the writes of all ranks, as far as one
 * rank could see another's write. Each pipe is also a packet pipe (O_DIRECT): one read gives one
 * write, and no more.
 *
 *     round: which pipes are readable?  take all signals: append their pipes to the queue
 *            for each pipe in the queue: read one write
 *            the queue is empty: read one write of each pipe that was readable    (a)
 *
 * (a) is for writes whose signal is still on its way. They have not returned, so nothing can come
 * after them yet; the signal is dropped when it comes. (a) is also for the tails of writes of more
 * than a page, for ends, for pipes that a program opened anew as /dev/stdout, and for kernels
 * without such signals or packets. There the order is that of the ranks' numbers. */
#ifndef TUTTI_LAUNCH_RELAY_H
#define TUTTI_LAUNCH_RELAY_H

#include "launch/output_stream.h"
#include "launch/same_reports.h"

#include <poll.h>
#include <stdint.h>

struct relay_source;

struct relay_queue { struct relay_source **at; size_t from, to, room; };

struct relay {
    /* stdout, stderr; only the first is used if both lead to the same place */
    struct output_stream outlets[2];
    struct relay_queue queues[2];        /* whose writes come next, per outlet */
    struct output_stream *out, *err;
    int writes;                          /* from launch/signals */
    bool tag, prompts;
    bool tty;                            /* a terminal for each rank, in place of two pipes */
    int size, open;                      /* ranks; pipes that have not ended */
    struct same_reports same;
    struct relay_source *sources;        /* 2 per rank */
    struct relay_source **by_fd;
    int by_fd_room;
    char *packet;
    size_t packet_room;
};

int  relay_begin(struct relay *r, int writes, bool tag);    /* 0 or -errno */
void relay_end(struct relay *r);                            /* waits until all is written, frees */

/* For one attempt. relay_gather makes sources for `size` ranks. relay_pipes gives a pair of
 * descriptors for the child of a rank, to be closed after its start. */
int  relay_gather(struct relay *r, int size);
int  relay_pipes(struct relay *r, int rank, int ends[2]);
void relay_finish(struct relay *r);  /* reads what is there, unfinished lines as they are, closes */

/* The loop. relay_poll fills at most relay_polls() entries and returns their number. relay_round is
 * one round, after poll. */
int  relay_polls(const struct relay *r);
int  relay_poll(struct relay *r, struct pollfd *polls);
void relay_round(struct relay *r, const struct pollfd *polls, int n, uint64_t now_ns);
/* When to show what is held back: an unfinished line of rank 0, which may be a prompt; the
 * beginning of a report; UINT64_MAX: there is none. */
uint64_t relay_due(const struct relay *r);

/* True: the reader of an output is gone (EPIPE), and what was to be written there is lost. */
bool relay_unread(const struct relay *r);

/* Whole lines. */
void relay_show(struct relay *r, const char *lines, size_t n);
/* Writes a line of the launcher's own to stderr, among those of the ranks. */
__attribute__((format(printf, 2, 3))) void relay_say(struct relay *r, const char *format, ...);

#endif
