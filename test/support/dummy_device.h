/* Job: play a rank whose buffers are device memory, on a machine without a device, with any failure
 *      that a test asks for.
 * Owns: nothing shared but such a rank's arrival.
 * Never: copies by anything but memcpy. The "device memory" is `to`. The algorithm works on host
 *        memory that nobody else looks at. */
#ifndef TUTTI_TEST_SUPPORT_DUMMY_DEVICE_H
#define TUTTI_TEST_SUPPORT_DUMMY_DEVICE_H

#include "coll/coll.h"

enum dummy_end { DUMMY_GOOD, DUMMY_FAILS, DUMMY_NO_MEMORY, DUMMY_DIES, DUMMY_NEVER };

struct device_call {
    /* how often the dummy answers WAITING: before this rank arrives; and when it gets the result */
    unsigned before, after;
    enum dummy_end end;               /* its answer after that */
    bool early;                       /* the end comes before the arrival */
    void *to;
    size_t bytes;
    const struct algorithm *under;    /* does the work */
    struct algorithm row;
    unsigned asked;
};

#define DUMMY_WORDS "dummyCopy: the dummy fell off the bus (7)"

/* Replaces c->algorithm, which has been chosen, by one that asks the dummy. */
void dummy_plays(struct coll *c, struct device_call *d);
/* The same as a public function of an even kind. d NULL: with host memory. */
int dummy_call(tutti_comm *comm, enum kind kind, const void *send, void *recv, size_t count,
               tutti_type type, tutti_op op, int root, struct device_call *d,
               const tutti_call *call);

#endif
