/* Job: carry descriptors of device memory from the rank that lends it to the ranks that may open
 *      it.
 * Owns: this rank's box; the descriptors that have come and were not used yet.
 * Never: opens memory (ipc_import.h); chooses what is lent (ipc_export.h).
 *
 * Memory of cuMemCreate is shared by a descriptor of the driver. This descriptor must be handed
 * over: to open it by its number in /proc would open the driver anew, and most containers forbid to
 * fetch it (pidfd_getfd). So a rank puts it into the boxes of the others before it arrives. A rank
 * that has passed the gate finds it in its box. If a box is full, or missing, as before a rank's
 * first operation with device memory, the operation takes another road. */
#ifndef TUTTI_GPU_DESCRIPTORS_H
#define TUTTI_GPU_DESCRIPTORS_H

#include "base/text.h"

struct descriptors;

/* birth: of the arena. mine: this rank's seat. NULL: no memory. If the box cannot be made, nobody
 * can put anything into it. */
struct descriptors *descriptors_new(uint64_t birth, uint32_t mine);
void descriptors_free(struct descriptors *d);

/* Puts fd into the box of rank `to`. 0. -EAGAIN: it is full. -ECONNREFUSED: it is not there.
 * -errno. */
int  descriptors_put(struct descriptors *d, uint32_t to, uint64_t buffer, int fd);
/* Takes all that has come out of the box. A newer descriptor of a buffer replaces an older one. */
void descriptors_gather(struct descriptors *d);
/* The descriptor, from now on the caller's. -1: none has come. */
int  descriptors_take(struct descriptors *d, uint32_t owner, uint64_t buffer);

#endif
