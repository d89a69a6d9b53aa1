/* Job: plays a rank whose buffers are device memory, where there is no device: what goes wrong with
 *      one, on demand.
 * Owns: nothing shared beyond what such a rank says in its arrival.
 * Never: copies by anything but memcpy. The "device memory" is `to`; what the algorithm works on is
 *        host memory that nobody looks at. */
#ifndef TUTTI_TEST_SUPPORT_DUMMY_DEVICE_H
#define TUTTI_TEST_SUPPORT_DUMMY_DEVICE_H

#include "coll/coll.h"

enum dummy_end { DUMMY_GOOD, DUMMY_FAILS, DUMMY_NO_MEMORY, DUMMY_DIES, DUMMY_NEVER };

struct device_call {
    /* how often it is asked in vain: before this rank arrives, and when the result is
     * brought to it */
    unsigned before, after;
    enum dummy_end end;               /* then */
    bool early;                       /* … or before it arrives */
    void *to;
    size_t bytes;
    const struct algorithm *under;    /* that does the work */
    struct algorithm row;
    unsigned asked;
};

#define DUMMY_WORDS "dummyCopy: the dummy fell off the bus (7)"

/* c->algorithm is chosen: another one takes its place, that asks the dummy. */
void dummy_plays(struct coll *c, struct device_call *d);
/* As a public function of even parts; d NULL: on host memory. */
int dummy_call(tutti_comm *comm, enum kind kind, const void *send, void *recv, size_t count,
               tutti_type type, tutti_op op, int root, struct device_call *d,
               const tutti_call *call);

#endif
