/* Job: tutti_load and tutti_save as collectives: a gate, then each rank its stripe of the file,
 *      then everybody's word of how that went.
 * Owns: a call's descriptors, transfer and names; in the arena arrival.more[0 … 4] of its
 *       own operations.
 * Never: fails the comm for what a disk did: such an error is the operation's result, the same
 *        on all ranks.
 *
 * more[0]: an offset in the arena, by rank 0 (load: the file's memory; save: the name of the file
 * that is written); [1]: bytes of the file; [2]: which file it is; [3]: how the start went. All
 * before the arrival (E1). [4]: how the stripe went, before `given` (E22). C(k) asks for
 * everybody's `given`: so all ranks that succeed have seen everybody's outcome, and a death before
 * it is one of the operation. */
#ifndef TUTTI_DISK_DISK_H
#define TUTTI_DISK_DISK_H

#include "coll/coll.h"

/* Describes the call in c (which check_describe has filled): algorithm, ways, disk. 0 or -ENOMEM.
 * The caller's pointers are used until the end. */
int disk_load(struct coll *c, struct tutti_comm *comm, const char *path, const void **data,
              size_t *bytes);
int disk_save(struct coll *c, struct tutti_comm *comm, const char *path, const void *data,
              size_t bytes);

#endif
