/* Job: tutti_load and tutti_save as collectives: a gate, then each rank moves its stripe of the
 *      file, then all exchange their outcomes.
 * Owns: a call's descriptors, transfer and names; in the arena arrival.more[0 … 4] of its
 *       own operations.
 * Never: fails the comm for a disk error: that is the operation's result, the same on all ranks.
 *
 * Words of arrival.more. Before the arrival (E1):
 *   [0]  an offset in the arena, by rank 0. load: the file's memory; save: the new file's name
 *   [1]  bytes of the file
 *   [2]  identity of the file (disk_which)
 *   [3]  outcome of the start
 * Before `given` (E22):
 *   [4]  outcome of the stripe
 * C(k) asks for the `given` of all ranks. So a rank that succeeds has seen all outcomes, and a
 * death before that fails the operation. */
#ifndef TUTTI_DISK_DISK_H
#define TUTTI_DISK_DISK_H

#include "coll/coll.h"

/* Sets algorithm, ways and disk in c, after check_describe. 0 or -ENOMEM. The caller's pointers are
 * used until the end of the operation. */
int disk_load(struct coll *c, struct tutti_comm *comm, const char *path, const void **data,
              size_t *bytes);
int disk_save(struct coll *c, struct tutti_comm *comm, const char *path, const void *data,
              size_t bytes);

#endif
