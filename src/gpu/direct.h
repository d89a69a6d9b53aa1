/* Job: large operations whose buffers are device memory at all ranks, without a way through the
 *      host: each rank reads the others' where it lies.
 * Owns: what of its peers' memory is open for the operation; this rank's cards in the arena.
 * Never: writes memory of another rank; waits.
 *
 * It stands in front of the pipeline protocol (coll/pipeline.h), as a mover that is not ready until
 * all of the operation is done: after the gate every rank opens what it needs of the others' memory
 * and says whether it could (E71). If all could, the result is folded and copied by the devices,
 * and the pipeline finds nothing left to do; else, at all ranks alike, the pipeline takes over as
 * if nothing had been tried. */
#ifndef TUTTI_GPU_DIRECT_H
#define TUTTI_GPU_DIRECT_H

#include "gpu/device.h"
#include "gpu/ipc_export.h"
#include "pattern/chunk.h"

/* What a rank of the operation may be asked for, and what of it is open here. */
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
    /* one rank folds for all; else each a share. Before the gate: if all are on one GPU */
    bool leader;
    bool folds;                        /* the kind folds */
    bool could;                        /* this rank could open what it needs */
    struct direct_peer mine;           /* what this rank lends; nothing of it is open */
    struct direct_peer *peers;         /* [ranks] */
    uint64_t marks;                    /* of the streams', that are waited for */
};

/* In the place of pinned_choose, where the rules name a road for this operation. */
void direct_choose(struct coll *c);
/* The operation has ended with result, and none of its copies is under way: closes what is open for
   it; after a failure, sees to it that what this rank lent is closed, too, for at most a second. */
void direct_end(struct coll *c, int result);

/* For the parts in direct_fold.c and direct_move.c: where p's buffer is for the device of
 * this rank. */
CUdeviceptr direct_send(const struct coll *c, uint32_t p);
CUdeviceptr direct_recv(const struct coll *c, uint32_t p);

/* Can the device of this rank fold that, as it is called? If not, why. */
bool direct_can_fold(struct coll *c, struct text *why);
/* This rank's first part: hands it to the device. 0 or -errno, explained. Does this rank
 * have one? */
int  direct_fold(struct coll *c);
bool direct_has_fold(const struct coll *c, uint32_t p);
/* All copies of this rank: of blocks, or of what others have folded. 0 or -errno, explained. */
int  direct_copy(struct coll *c);
/* Elements [first, first + count) that rank p folds of an operation whose result all ranks want. */
struct chunk direct_share(const struct coll *c, uint32_t p);

/* Whose send buffer, whose receive buffer does this rank read? */
bool direct_reads_send(const struct coll *c, uint32_t p);
bool direct_reads_recv(const struct coll *c, uint32_t p);
bool direct_is_kind(enum kind kind);

#endif
