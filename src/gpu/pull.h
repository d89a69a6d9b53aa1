/* Job: large operations whose buffers are device memory at all ranks, without a way through the host: each rank reads the others' where it lies.
 * Owns: what of its peers' memory is open for the operation; this rank's cards in the arena.
 * Never: writes memory of another rank; waits.
 *
 * It stands in front of the ring protocol (coll/ring.h), as a mover that is not ready until all of the operation is done: after the gate
 * every rank opens what it needs of the others' memory and says whether it could (E71). If all could, the result is folded and copied by the
 * devices, and the ring finds nothing left to do; else, at all ranks alike, the ring takes over as if nothing had been tried. */
#ifndef TUTTI_GPU_PULL_H
#define TUTTI_GPU_PULL_H

#include "gpu/device.h"
#include "gpu/ipc_export.h"
#include "pattern/chunk.h"

/* What a rank of the operation may be asked for, and what of it is open here. */
struct pull_peer { struct lent send, recv; CUdeviceptr send_at, recv_at; bool send_open, recv_open; };

enum pull_state { PULL_OFFERED, PULL_TRIED, PULL_SAID, PULL_FOLDING, PULL_FOLDED, PULL_COPYING, PULL_OVER };

struct pull {
    enum pull_state state;
    bool leader;                       /* one rank folds for all; else each a share. Before the gate: if all are on one GPU */
    bool folds;                        /* the kind folds */
    bool could;                        /* this rank could open what it needs */
    struct pull_peer mine;             /* what this rank lends; nothing of it is open */
    struct pull_peer *peers;           /* [ranks] */
    uint64_t marks;                    /* of the streams', that are waited for */
};

/* In the place of pinned_choose, where the rules name a road for this operation. */
void pull_choose(struct coll *c);
/* The operation has ended with result, and none of its copies is under way: closes what is open for it; after a failure, sees to it that
   what this rank lent is closed, too, for at most a second. */
void pull_end(struct coll *c, int result);

/* For the parts in pull_fold.c and pull_move.c: where p's buffer is for the device of this rank. */
CUdeviceptr pull_send(const struct coll *c, uint32_t p);
CUdeviceptr pull_recv(const struct coll *c, uint32_t p);

/* Can the device of this rank fold that, as it is called? If not, why. */
bool pull_can_fold(struct coll *c, struct text *why);
/* This rank's first part: hands it to the device. 0 or -errno, explained. Does this rank have one? */
int  pull_fold(struct coll *c);
bool pull_has_fold(const struct coll *c, uint32_t p);
/* All copies of this rank: of blocks, or of what others have folded. 0 or -errno, explained. */
int  pull_copy(struct coll *c);
/* Elements [first, first + count) that rank p folds of an operation whose result all ranks want. */
struct chunk pull_share(const struct coll *c, uint32_t p);

/* Whose send buffer, whose receive buffer does this rank read? */
bool pull_reads_send(const struct coll *c, uint32_t p);
bool pull_reads_recv(const struct coll *c, uint32_t p);
bool pull_is_kind(enum kind kind);

#endif
