/* Job: open device memory of peers in this process, and close it before its owner frees it.
 * Owns: the openings, by (peer, buffer); in the arena this rank's bit in the loans of others
 *       (ipc_export.h).
 * Never: lends, copies, waits.
 *
 * Memory that its owner keeps (tutti_cuda_alloc, tutti_register) stays open after the operation, at
 * most HANDLES_KEPT pieces of it. Once its owner has called it back, it is closed by the next call
 * about device memory, or by the next opening. It is closed as well when another buffer is at its
 * addresses, or when it is the least recently used. The staging of a comm stays open besides
 * these, until that comm is freed here. All other memory is open only while it is taken. A buffer
 * of a thread of this process is used by its own address; it is taken and given like the others. */
#ifndef TUTTI_GPU_IPC_IMPORT_H
#define TUTTI_GPU_IPC_IMPORT_H

#include "gpu/driver.h"
#include "group/comm.h"

enum { HANDLES_KEPT = 64 };

struct ipc_import;
struct descriptors;                                  /* descriptors.h */

/* mine: this rank's seat. descriptors: where peers' descriptors come. NULL: no memory. */
struct ipc_import *ipc_import_new(const struct arena *arena, uint32_t mine,
                                  struct descriptors *descriptors);
void ipc_import_free(struct ipc_import *handles);       /* closes all; nothing is taken any more */

/* Where memory is opened: in the primary context of one of our devices. */
struct ipc_import_at { const struct cuda_api *call; CUcontext context; int device; };

/* Opens what the rank in seat `owner` lends, unless it is open. *at: the address, here, of the
   call's part of it, until ipc_import_give with the same owner and buffer. The driver has confirmed
   the number of bytes. 0. -ENOTSUP: it cannot be opened here, or could not be closed, and is not
   tried again for this buffer. -ECANCELED: its owner has called it back. DAMAGED: what is said of
   it cannot be true. -EBUSY: it is in use here in another manner. Else CUDA's. */
int ipc_import_take(struct ipc_import *handles, const struct ipc_import_at *where, uint32_t owner,
                    const struct lent *lent, CUdeviceptr *at, struct text *why);
void ipc_import_give(struct ipc_import *handles, uint32_t owner, uint64_t buffer);
/* Instead of give, of what is taken: the device may read it for ever. It stays open, and its loan
 * is not returned. */
void ipc_import_lose(struct ipc_import *handles, uint32_t owner, uint64_t buffer);

/* Closes what is called back and not taken. The driver waits for all work of this process on the
 * device, so this is for calls that the program makes about device memory. */
void ipc_import_sweep(struct ipc_import *handles);
/* The same, except handles of cuIpcOpenMemHandle, and unless another thread is about it. Waits for
 * nothing: a load for each open piece. */
void ipc_import_sweep_at_once(struct ipc_import *handles);
/* Closes all that is not taken; staging: also the staging of peers' comms. */
void ipc_import_close_idle(struct ipc_import *handles, bool staging);
void ipc_import_close(struct ipc_import *handles, uint32_t owner, uint64_t buffer);
int  ipc_import_open_count(struct ipc_import *handles);  /* for tests */

#endif
