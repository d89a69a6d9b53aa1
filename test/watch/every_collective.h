/* Job: every collective, with data whose right result each rank can compute by itself, for tests
 *      that end operations before their time.
 * Owns: the buffers of one rank, private or in the arena.
 * Never: kills anybody; compares with other ranks. */
#ifndef TUTTI_TEST_WATCH_EVERY_COLLECTIVE_H
#define TUTTI_TEST_WATCH_EVERY_COLLECTIVE_H

#include "watch/fingerprint.h"

#include <stddef.h>
#include <stdint.h>
#include <tutti.h>

enum { EVERY_BUFFERS = 5, EVERY_RANKS = 8 };

/* The kinds that move or synchronise something: EVERY_KINDS of them. */
extern const enum kind every_kind[];
extern const int every_kinds;

/* What all ranks agree on. skew, for one that shall not: it takes block (from -> to) to be one
 * element longer, 1 + from * EVERY_RANKS + to. */
struct every {
    enum kind kind;
    size_t count;
    uint64_t nth;
    tutti_op oper;
    tutti_type type;
    int skew;
};

/* One rank's: send and recv hold EVERY_RANKS blocks of `most` elements each. */
struct every_room {
    size_t most;
    int32_t *send, *recv;
    const void *sends[EVERY_RANKS];
    void *recvs[EVERY_RANKS];
    size_t send_counts[EVERY_RANKS], recv_counts[EVERY_RANKS];
};

/* By span_take in the arena, or by malloc; 2: the receive buffer alone in the arena, 3: the send
 * buffer alone. 0 or -ENOMEM. */
int  every_open(struct every_room *room, size_t most, int in_arena, tutti_comm *comm);
void every_close(struct every_room *room, int in_arena, tutti_comm *comm);

/* Fills the buffers and calls. What the call returns. */
int every_call(const struct every *e, struct every_room *room, tutti_comm *comm,
               const tutti_call *call);
/* After the end: how many elements are not as they should be; `result` is what the
 * operation returned. */
uint64_t every_wrong(const struct every *e, const struct every_room *room, int result,
                     tutti_comm *comm);

/* TUTTI_ALGORITHM: everything that has it by "inline", "eager", "pipelined", "rooted", where the
 * size lets it; gate: "flags", "central". */
const char *every_rules(const char *algorithm, const char *gate);

/* An operation of one's own that is the sum, for struct every.oper. */
void every_sum(const void *in, void *inout, size_t count, tutti_type type);

/* Elements of block (from -> to) of an uneven kind. */
size_t every_count(const struct every *e, int from, int to);

static inline int every_root(const struct every *e, int size)
{
    return (int)(e->nth % (uint64_t)size);
}

#endif
