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
#include "gpu/device_slots.h"
#include "gpu/ipc_export.h"
#include "gpu/kernel.h"
#include "gpu/proof.h"
#include "pattern/chunk.h"

/* What a rank of the operation lends, and what of it is open here. */
struct direct_peer {
    struct lent send, recv, staging;
    CUdeviceptr send_at, recv_at, staging_at;
    bool send_open, recv_open, staging_open;
};

/* Through the staging: rounds of `piece` elements of each block. Of them, how many have been copied
   in, folded and copied out at this rank; before each, how many were handed to the device. */
struct direct_rounds {
    size_t piece, pitch;               /* elements; bytes from a block to the next in a slot */
    uint64_t total, asked, in, folding, folded, taking, out;
    uint64_t fold_mark[DEVICE_SLOTS], out_mark[DEVICE_SLOTS];
};

enum direct_state {
    DIRECT_OFFERED, DIRECT_OPENED, DIRECT_TRIED, DIRECT_SAID, DIRECT_FOLDING,
    DIRECT_FOLDED, DIRECT_COPYING, DIRECT_OVER
};

struct direct {
    enum direct_state state;
    /* one rank folds for all; else each folds a share. Set after the gate */
    bool leader;
    bool staged;                       /* through the staging, not out of the callers' buffers */
    bool folds;                        /* the kind folds */
    bool could;                        /* this rank could open what it needs */
    struct direct_peer mine;           /* what this rank lends; nothing of it is open */
    struct direct_peer *peers;         /* [ranks] */
    uint64_t marks;                    /* of the stream, to wait for */
    struct direct_rounds rounds;
    struct proof proof;                /* of memory of rank `proving`, while that is asked for */
    uint32_t proving;
    struct lent page;                  /* its page; page_open: at page_at, here */
    CUdeviceptr page_at;
    bool page_open;
};

/* Replaces pinned_choose if the rules name a road for this operation. */
void direct_choose(struct coll *c);
/* The operation has ended with result, and none of its copies is under way. Closes what is open for
   it. After a failure, calls back what this rank lent, and waits for its return at most a
   second. */
void direct_end(struct coll *c, int result);

/* direct_offer.c: fills in this rank's card. Its offset in the arena; 0, *why: it gives none. */
uint64_t direct_offer(struct coll *c, struct text *why);

/* direct_proof.c. offer: adds this rank's page to its card. Else as of a state: can what this rank
 * has opened be read? 1: it can. 0: it cannot, *why. DIRECT_WAITS: ask again. -errno, *why. */
enum { DIRECT_WAITS = 2 };
void direct_offer_proof(struct coll *c, struct ipc_export *share, struct card *card);
int  direct_prove(struct coll *c, struct text *why);
void direct_prove_end(struct coll *c);
/* The GPU of what a rank lends for this operation, by its card. */
const unsigned char *direct_device(const struct coll *c, const struct card *card);
/* For direct_proof.c: lends; p's card, NULL: what p says of it cannot be true; opens, if p lends as
 * many bytes. */
int  direct_lend(struct coll *c, struct ipc_export *share, const struct driver_pointer *pointer,
                 size_t bytes, struct lent *lent, struct text *why);
const struct card *direct_card(const struct coll *c, uint32_t p);
int  direct_take(struct coll *c, uint32_t p, const struct lent *lent, size_t least,
                 CUdeviceptr *at, bool *open, struct text *why);

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
/* The parts of it. How many ranks' elements this rank folds, from rank 0 on; one of them, which lie
 * at this address; the launch; a copy on the device. 0 or -errno, explained. */
uint32_t direct_fold_ranks(const struct coll *c);
void direct_add_input(struct coll *c, struct kernel_fold *fold, uint32_t p, CUdeviceptr at);
int  direct_launch(struct coll *c, const struct kernel_fold *fold);
int  direct_move(struct coll *c, int side, CUdeviceptr to, CUdeviceptr from, size_t bytes);
/* Of count elements, those that rank p folds if all ranks get the result. */
struct chunk direct_share(const struct coll *c, size_t count, uint32_t p);

/* True: `reader` reads what p gives; this rank does; it reads what p has folded. */
bool direct_reads(const struct coll *c, uint32_t p, uint32_t reader);
bool direct_reads_send(const struct coll *c, uint32_t p);
bool direct_reads_recv(const struct coll *c, uint32_t p);
bool direct_is_kind(enum kind kind);

/* direct_staged.c. brings: this rank puts something into its slots. begin: false: not in the rounds
 * that the pipeline would have; all ranks get the same answer. step: DONE: the result is in place.
 * WAITING with op->wait, -errno. */
bool direct_brings(const struct coll *c);
bool direct_reads_staging(const struct coll *c, uint32_t p, uint32_t reader);
bool direct_begin_rounds(struct coll *c);
int  direct_step_rounds(struct coll *c);

#endif
