/* Job: bring the ranks of a job together in one arena, each in its seat.
 * Owns: its own seat; join.joined and join.state together with the other joiners.
 * Never: opens comms or runs operations.
 *
 * Edges: E11 seated: a joiner fills its seat, then state JOINED (release) and joined + 1; readers
 *        load state (acquire), then the seat.
 *        E12 joined: the last joiner writes cpus, a finder of failure writes failed_rank, then
 *            join.state by CAS (release); readers acquire. */
#ifndef TUTTI_GROUP_JOIN_H
#define TUTTI_GROUP_JOIN_H

#include "group/join_request.h"

/* Blocks until all `size` ranks have a seat. On failure writes the sentence into why and leaves
   nothing behind.
   An inherited arena that this rank was in before, or that the others have given up, is left for
   the name; without a name -ESTALE, and the others' deadline ends our wait.
   -ETIMEDOUT: the sentence names the missing ranks. -EOWNERDEAD: a rank died after it came.
   -EEXIST: this rank has come already. -EPROTO: another size or build. -EPERM: another user's job.
   -EINVAL, -ENOMEM … *host_fd: a descriptor to keep open and to close at the end, or -1. */
int join_world(struct arena *arena, const struct join_request *request, int *host_fd,
               struct text *why);

#endif
