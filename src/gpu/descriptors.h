/* Job: descriptors of device memory on their way from the rank that lends it to those that
 *      may open it.
 * Owns: this rank's box, and what has come and was not used yet.
 * Never: what is done with one (handles.h), what is lent (share.h).
 *
 * Memory of cuMemCreate is shared by a descriptor of the driver's, which another process can only
 * be handed: to open it by its number in /proc would open the driver anew, and to fetch it
 * (pidfd_getfd) is forbidden in most containers. So a rank puts it into the boxes of the others
 * before it arrives; who has come through the gate finds it there. A box that is not there, as
 * before a rank's first operation with device memory, or that is full, means another road. */
#ifndef TUTTI_GPU_DESCRIPTORS_H
#define TUTTI_GPU_DESCRIPTORS_H

#include "base/text.h"

struct descriptors;

/* birth: of the arena; mine: this rank's seat. NULL: no memory. A box that cannot be made is one
 * into which nobody can put anything. */
struct descriptors *descriptors_new(uint64_t birth, uint32_t mine);
void descriptors_free(struct descriptors *d);

/* Into the box of rank `to`. 0; -EAGAIN it is full; -ECONNREFUSED it is not there; -errno. */
int  descriptors_put(struct descriptors *d, uint32_t to, uint64_t buffer, int fd);
/* takes out what has come; a newer one for the same buffer takes the place of an older */
void descriptors_gather(struct descriptors *d);
/* the caller's now; -1: none has come */
int  descriptors_take(struct descriptors *d, uint32_t owner, uint64_t buffer);

#endif
