/* Job: device memory of this rank that peers read: its handle, its loan, and how it comes back.
 * Owns: the loans in this rank's span, all but the borrowers' bits; private, the list of
 *       what is lent.
 * Never: opens peers' memory (handles.h), copies.
 *
 * Whoever lends must know when nobody reads any more: what a process frees while another one has it
 * open is undefined. So each buffer that is lent has a loan, with a bit for each rank that has it
 * open. It is called back before its memory is freed, or when an operation that it was lent for has
 * failed; from then on nobody opens it, and the owner waits for the bits, which those of the dead
 * do not count for.
 *
 * E72 loan: the lender stores state (called back), full fence, then looks at the bits. A borrower
 *    sets its bit, full fence, then looks at state: at least one of the two sees the other.
 * E73 returned: the borrower has closed the memory, then clears its bit (release). The lender looks
 *     at the bits (acquire), then frees. */
#ifndef TUTTI_GPU_IPC_EXPORT_H
#define TUTTI_GPU_IPC_EXPORT_H

#include "gpu/driver.h"
#include "group/comm.h"

struct ipc_export;                                  /* of a world: what it lends, what it borrows */
struct ipc_import;                                  /* handles.h */

/* The world's, made when it is first asked for, by any of its threads. NULL: no memory (*why). */
struct ipc_export *share_of(struct world *world, struct text *why);
struct ipc_export *ipc_export_if(struct world *world);  /* NULL: there is none yet */
struct ipc_import *ipc_export_handles(struct ipc_export *share);
/* The beginning of an operation with device memory: closes what peers want back, and takes in what
 * they have handed out. */
void ipc_export_begin(struct ipc_export *share);

/* Lends bytes [at, at + length) of the buffer that `pointer` is in, as it is to be published. The
   buffer's context is current. 0; -ENOTSUP: it cannot be lent, and later calls say so without
   asking again; else -errno of CUDA's. */
int ipc_export_lend(struct ipc_export *share, const struct cuda_api *call,
                    const struct driver_pointer *pointer, size_t length, struct lent *lent,
                    struct text *why);

/* What is lent by a descriptor: hands it to the other members that are processes of their own,
 * before the arrival. 0 or -errno. */
int ipc_export_hand_out(struct ipc_export *share, const struct lent *lent, const struct watch *w,
                        struct text *why);

/* The end of an operation that has failed: nobody opens for it what this rank lent any more, and,
   unless the time is over before that, those who have it open for that operation have closed it.
   true: all have. */
bool ipc_export_take_back(struct ipc_export *share, const struct lent *lent, uint64_t timeout_ns);

/* Memory that may stay open at peers: what tutti_cuda_alloc made and what was registered. 0,
 * -EINVAL (part of it is known already), -ENOMEM. */
int ipc_export_keep(struct ipc_export *share, uint64_t at, size_t bytes, uint64_t buffer,
                    bool ours);
/* The end of that, for the stretch that begins there: called back at once. 0: nobody has it open;
   -EBUSY: somebody still has, ask again; -EINVAL: no such stretch of that sort. */
int ipc_export_let_go(struct ipc_export *share, uint64_t at, bool ours, uint64_t timeout_ns,
                      struct text *why);
bool ipc_export_is_kept(struct ipc_export *share, uint64_t at, bool ours);
/* Stretches of ours that were let go too early and have come back since: the next one, out of the
 * list; 0: none. */
uint64_t ipc_export_next_returned(struct ipc_export *share);
/* the end: every stretch of ours that nobody has open, as above */
uint64_t ipc_export_next_ours(struct ipc_export *share);

/* Why the last large operation with device memory went through the staging though the rules named
 * another road; "": none did. */
void ipc_export_note(struct ipc_export *share, const char *words);
void ipc_export_noted(struct ipc_export *share, char *words, size_t room);

/* The world's end: all is called back, and waited for at most that long. Then what was borrowed is
 * closed, and the share is gone. */
void ipc_export_recall_all(struct ipc_export *share, uint64_t timeout_ns);
void ipc_export_close(struct world *world);

#endif
