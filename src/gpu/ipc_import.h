/* Job: device memory of peers, opened in this process, and closed again before its owner frees it.
 * Owns: the openings, by (peer, buffer); in the arena its bit in the loans of others (share.h).
 * Never: lends, copies, waits.
 *
 * Memory that its owner keeps (tutti_cuda_alloc, tutti_register) stays open behind the operation,
 * at most HANDLES_KEPT pieces of it, until its owner calls it back, another buffer lies at its
 * addresses, or others have been used more lately. All other memory is open only while somebody has
 * taken it. A buffer of a thread of this process is used by its own address, and taken and given
 * like the others. */
#ifndef TUTTI_GPU_IPC_IMPORT_H
#define TUTTI_GPU_IPC_IMPORT_H

#include "gpu/driver.h"
#include "group/comm.h"

enum { HANDLES_KEPT = 64 };

struct ipc_import;
struct descriptors;                                  /* descriptors.h */

/* mine: this rank's seat; what comes there are the descriptors of peers' memory. NULL:
 * no memory. */
struct ipc_import *ipc_import_new(const struct arena *arena, uint32_t mine,
                                  struct descriptors *descriptors);
void ipc_import_free(struct ipc_import *handles);       /* closes all; nothing is taken any more */

/* Where it is opened: the primary context of one of our devices. */
struct ipc_import_at { const struct cuda_api *call; CUcontext context; int device; };

/* Opens what the rank in seat `owner` lends, unless it is open. *at: the address here of the call's
   part of it, until ipc_import_give with the same owner and buffer. The number of bytes was checked
   against what the driver says. 0; -ENOTSUP: it cannot be opened here, or could not be closed, and
   is not tried again for this buffer; -ECANCELED: its owner has called it back; -EPROTO: what is
   said of it cannot be true; else CUDA's. */
int ipc_import_take(struct ipc_import *handles, const struct ipc_import_at *where, uint32_t owner,
                    const struct lent *lent, CUdeviceptr *at, struct text *why);
void ipc_import_give(struct ipc_import *handles, uint32_t owner, uint64_t buffer);

/* Closes what nobody has taken and its owner has called back. Costs a load for each piece
 * that is open. */
void ipc_import_sweep(struct ipc_import *handles);
void ipc_import_close_idle(struct ipc_import *handles);  /* all that nobody has taken */
int  ipc_import_open_count(struct ipc_import *handles);  /* for tests */

#endif
