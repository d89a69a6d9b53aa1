/* Job: run large operations whose buffers are device memory at all ranks, without host memory in
 *      between: each rank reads the others' memory in place.
 * Owns: the peers' memory that is open for the operation; this rank's cards in the arena.
 * Never: writes memory of another rank; waits.
 *
 * It stands before the pipeline protocol (coll/pipeline.h), as a mover that is not ready until the
 * whole operation is done. After the gate each rank opens what it needs of the others' memory and
 * says whether it could (E71). If all could, the devices fold and copy the result, and the pipeline
 * finds nothing left to do. Else the pipeline takes over at all ranks, as if nothing had been
 * tried. */
#ifndef TUTTI_GPU_DIRECT_H
#define TUTTI_GPU_DIRECT_H

#include "gpu/device.h"
#include "gpu/ipc_export.h"
#include "pattern/chunk.h"

/* The buffers that a rank of the operation lends, and which of them are open here. */
struct direct_peer {
    struct lent send, recv;
    CUdeviceptr send_at, recv_at;
    bool send_open, recv_open;
};

enum direct_state {
    DIRECT_OFFERED, DIRECT_TRIED, DIRECT_SAID, DIRECT_FOLDING,
    DIRECT_FOLDED, DIRECT_COPYING, DIRECT_OVER
};

struct direct {
    enum direct_state state;
    /* one rank folds for all; else each folds a share. Before the gate: what the rules say */
    bool leader;
    bool folds;                        /* the kind folds */
    bool could;                        /* this rank could open what it needs */
    struct direct_peer mine;           /* what this rank lends; nothing of it is open */
    struct direct_peer *peers;         /* [ranks] */
    uint64_t marks;                    /* of the stream, to wait for */
};

/* Replaces pinned_choose if the rules name a road for this operation. */
void direct_choose(struct coll *c);
/* The operation has ended with result, and none of its copies is under way. Closes what is open for
   it. After a failure, calls back what this rank lent, and waits for its return at most a
   second. */
void direct_end(struct coll *c, int result);

/* For direct_fold.c and direct_move.c: the address of p's buffer on this rank's device. */
CUdeviceptr direct_send(const struct coll *c, uint32_t p);
CUdeviceptr direct_recv(const struct coll *c, uint32_t p);

/* True: this rank's device can fold what is called. False: *why says why not. */
bool direct_can_fold(struct coll *c, struct text *why);
/* direct_fold hands this rank's part of the fold to the device. 0 or -errno, explained.
 * direct_has_fold: p has such a part. */
int  direct_fold(struct coll *c);
bool direct_has_fold(const struct coll *c, uint32_t p);
/* Hands all copies of this rank to the device: of blocks, or of what others have folded. 0 or
 * -errno, explained. */
int  direct_copy(struct coll *c);
/* Elements [first, first + count) that rank p folds if all ranks get the result. */
struct chunk direct_share(const struct coll *c, uint32_t p);

/* True: this rank reads p's send buffer; p's receive buffer. */
bool direct_reads_send(const struct coll *c, uint32_t p);
bool direct_reads_recv(const struct coll *c, uint32_t p);
bool direct_is_kind(enum kind kind);

#endif
