/* Job: bring what the ranks write to our stdout and stderr: whole lines, in the order in which they
 *      were written.
 * Owns: the pipes of the ranks, our side.
 * Never: why a rank writes or ends.
 *
 * The order. Each rank has pipes of its own, or lines would mix; but then nothing says which of
 * two pipes was written first, and "A on rank 0, barrier, B on rank 1" may come out as B, A. So
 * each pipe is told (O_ASYNC, F_SETSIG) to send a queued signal at each write, before that write
 * returns: the queue of signals is the order of the writes of all ranks, as far as one could
 * have known of the other. And each pipe is a packet pipe (O_DIRECT): one read gives one write,
 * and no more.
 *
 *     round: which pipes are readable?  take all signals: append their pipes to the queue
 *            for each pipe in the queue: read one write
 *            the queue is empty: read one write of each pipe that was readable    (a)
 *
 * (a) is for writes whose signal is still on its way (they have not returned, so nothing can come
 * after them yet; the signal is dropped when it comes), for the tails of writes of more than a
 * page, for ends, for pipes that a program opened anew as /dev/stdout, and for kernels without the
 * one or the other: there the order is that of the ranks' numbers. */
#ifndef TUTTI_LAUNCH_RELAY_H
#define TUTTI_LAUNCH_RELAY_H

#include "launch/output_stream.h"

#include <poll.h>
#include <stdint.h>

struct relay_source;

struct relay_queue { struct relay_source **at; size_t from, to, room; };

struct relay {
    /* stdout, stderr; only the first if both lead to the same place */
    struct output_stream outlets[2];
    struct relay_queue queues[2];        /* whose writes come next, per outlet */
    struct output_stream *out, *err;
    int writes;                          /* from launch/signals */
    bool tag, prompts;
    int size, open;                      /* ranks; pipes that have not ended */
    struct relay_source *sources;        /* 2 per rank */
    struct relay_source **by_fd;
    int by_fd_room;
    char *packet;
    size_t packet_room;
};

int  relay_begin(struct relay *r, int writes, bool tag);    /* 0 or -errno */
void relay_end(struct relay *r);                            /* waits until all is written, frees */

/* For one attempt: sources for `size` ranks; then per rank a pair of descriptors for the child, to
 * be closed after its start. */
int  relay_gather(struct relay *r, int size);
int  relay_pipes(struct relay *r, int rank, int ends[2]);
void relay_finish(struct relay *r);  /* reads what is there, unfinished lines as they are, closes */

/* The loop: fills at most relay_polls() entries and returns how many; then, after poll,
 * one round. */
int  relay_polls(const struct relay *r);
int  relay_poll(struct relay *r, struct pollfd *polls);
void relay_round(struct relay *r, const struct pollfd *polls, int n, uint64_t now_ns);
/* When an unfinished line of rank 0 is to be shown because it may be a prompt; UINT64_MAX:
 * there is none. */
uint64_t relay_due(const struct relay *r);

/* The reader of an output has gone, and what was to be written there is lost (EPIPE). */
bool relay_unread(const struct relay *r);

/* A line of the launcher's own on stderr, among those of the ranks. */
__attribute__((format(printf, 2, 3))) void relay_say(struct relay *r, const char *format, ...);

#endif
