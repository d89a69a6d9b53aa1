/* Job: device memory of peers, opened in this process, and closed again before its owner frees it.
 * Owns: the openings, by (peer, buffer); in the arena its bit in the loans of others (share.h).
 * Never: lends, copies, waits.
 *
 * Memory that its owner keeps (tutti_cuda_alloc, tutti_register) stays open behind the operation, at most HANDLES_KEPT pieces of it, until
 * its owner calls it back, another buffer lies at its addresses, or others have been used more lately. All other memory is open only while
 * somebody has taken it. A buffer of a thread of this process is used by its own address, and taken and given like the others. */
#ifndef TUTTI_GPU_HANDLES_H
#define TUTTI_GPU_HANDLES_H

#include "gpu/driver.h"
#include "group/comm.h"

enum { HANDLES_KEPT = 64 };

struct handles;
struct descriptors;                                  /* descriptors.h */

/* mine: this rank's seat; what comes there are the descriptors of peers' memory. NULL: no memory. */
struct handles *handles_new(const struct arena *arena, uint32_t mine, struct descriptors *descriptors);
void handles_free(struct handles *handles);                                          /* closes all; nothing is taken any more */

/* Where it is opened: the primary context of one of our devices. */
struct handles_at { const struct cuda_api *call; CUcontext context; int device; };

/* Opens what the rank in seat `owner` lends, unless it is open. *at: the address here of the call's part of it, until handles_give with the
   same owner and buffer. The number of bytes was checked against what the driver says. 0; -ENOTSUP: it cannot be opened here, or could not be
   closed, and is not tried again for this buffer; -ECANCELED: its owner has called it back; -EPROTO: what is said of it cannot be true; else CUDA's. */
int  handles_take(struct handles *handles, const struct handles_at *where, uint32_t owner, const struct lent *lent, CUdeviceptr *at, struct text *why);
void handles_give(struct handles *handles, uint32_t owner, uint64_t buffer);

/* Closes what nobody has taken and its owner has called back. Costs a load for each piece that is open. */
void handles_sweep(struct handles *handles);
void handles_close_idle(struct handles *handles);    /* all that nobody has taken */
int  handles_open_count(struct handles *handles);    /* for tests */

#endif
