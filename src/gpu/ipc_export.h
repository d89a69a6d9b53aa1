/* Job: lend device memory of this rank to peers: its handle, its loan, its return.
 * Owns: the loans in this rank's span, except the borrowers' bits; private, the list of what is
 *       lent.
 * Never: opens peers' memory (ipc_import.h), copies.
 *
 * The result is undefined if a process frees memory that another process has open. So the lender
 * must see when nobody reads any more: each buffer that is lent has a loan, with a bit for each
 * rank that has it open. The lender calls the loan back before it frees the memory, or when an
 * operation that it lent for has failed. From then on nobody opens the memory, and the lender waits
 * until all bits are clear. Bits of dead ranks do not count.
 *
 * E72 loan: the lender stores state (called back), full fence, then looks at the bits. A borrower
 *    sets its bit, full fence, then looks at state. At least one of the two sees the other.
 * E73 returned: the borrower has closed the memory, then clears its bit (release). The lender looks
 *    at the bits (acquire), then frees. */
#ifndef TUTTI_GPU_IPC_EXPORT_H
#define TUTTI_GPU_IPC_EXPORT_H

#include "gpu/driver.h"
#include "group/comm.h"

struct ipc_export;                                  /* of a world: what it lends, what it borrows */
struct ipc_import;                                  /* ipc_import.h */

/* The world's share, made by the first call, of any of its threads. NULL: no memory (*why). */
struct ipc_export *share_of(struct world *world, struct text *why);
struct ipc_export *ipc_export_if(struct world *world);  /* NULL: there is none yet */
struct ipc_import *ipc_export_handles(struct ipc_export *share);
/* The beginning of an operation with device memory: closes what peers have called back, and takes
 * the descriptors that peers have handed out. */
void ipc_export_begin(struct ipc_export *share);

/* Lends `length` bytes at pointer->address and fills *lent, which is to be published. The buffer's
   context is current. 0; with lent->how = LENT_NOT only threads of this process can use it: *why
   says why, and later calls say so without asking again. -ENOSPC: peers have all loans open.
   -EBUSY: it was called back, and a peer still has it open. Else -errno of CUDA's. */
int ipc_export_lend(struct ipc_export *share, const struct cuda_api *call,
                    const struct driver_pointer *pointer, size_t length, struct lent *lent,
                    struct text *why);

/* For memory that is lent by a descriptor: hands the descriptor to each member in another process
 * that has not opened the memory yet, before the arrival. 0 or -errno. */
int ipc_export_hand_out(struct ipc_export *share, const struct lent *lent, const struct watch *w,
                        struct text *why);

/* After a failed operation: from now on nobody opens for it what this rank lent. Waits until all
   who opened it for that operation have closed it, or until the time is over. True: all have.
   Memory that is kept stays open. */
bool ipc_export_take_back(struct ipc_export *share, const struct lent *lent, uint64_t timeout_ns);

/* Keeps memory open at peers: that of tutti_cuda_alloc (ours), or what the caller registered. 0.
 * -EINVAL: part of it is kept already. -ENOMEM. */
int ipc_export_keep(struct ipc_export *share, uint64_t at, size_t bytes, uint64_t buffer,
                    bool ours);
/* Ends that for the memory that begins at `at`: calls it back at once. 0: nobody has it open.
   -EBUSY: a peer still has; ours then comes out of ipc_export_next_returned, for other memory ask
   again. -EINVAL: no such memory of that sort begins there. */
int ipc_export_let_go(struct ipc_export *share, uint64_t at, bool ours, uint64_t timeout_ns,
                      struct text *why);
/* True: all of it is kept, as the driver knows the buffer now. */
bool ipc_export_stays(struct ipc_export *share, const struct driver_pointer *pointer,
                      size_t length);
bool ipc_export_is_kept(struct ipc_export *share, uint64_t at, bool ours);
/* The next memory of ours that ended with -EBUSY and has been returned since; it leaves the list.
 * 0: none. */
uint64_t ipc_export_next_returned(struct ipc_export *share);
/* Waits until some such memory has been returned. False: there is none, or the time is over. */
bool ipc_export_await_gone(struct ipc_export *share, uint64_t timeout_ns);
/* At the end: the next memory of ours that nobody has open, in the same way. */
uint64_t ipc_export_next_ours(struct ipc_export *share);

/* The reason why the last large operation with device memory went through the staging though the
 * rules named another road. "": there was none. */
void ipc_export_note(struct ipc_export *share, const char *words);
void ipc_export_noted(struct ipc_export *share, char *words, size_t room);

/* The world's end. recall_all calls all back and waits at most that long. close then closes what
 * was borrowed, and frees the share. */
void ipc_export_recall_all(struct ipc_export *share, uint64_t timeout_ns);
void ipc_export_close(struct world *world);

#endif
