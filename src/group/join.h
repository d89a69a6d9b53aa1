/* Job: bring the ranks of a job together in one arena, each in its seat.
 * Owns: its own seat; join.joined and join.state together with the other joiners.
 * Never: comms and operations.
 *
 * Edges: E11 seated: a joiner fills its seat, then state JOINED (release) and joined + 1; readers
 *        load state (acquire), then the seat.
 *        E12 joined: the last joiner writes cpus, a finder of failure writes failed_rank, then
 *            join.state by CAS (release); readers acquire. */
#ifndef TUTTI_GROUP_JOIN_H
#define TUTTI_GROUP_JOIN_H

#include "group/join_request.h"

/* Blocks until all `size` ranks sit, or fails with the sentence in why and nothing left behind. An
   inherited arena in which this rank has been before, or which others have given up, is left for
   the name. Without a name: -ESTALE, and their deadline is ours. -ETIMEDOUT names who did not come;
   -EOWNERDEAD: one that had come died; -EEXIST: this rank has come already; -EPROTO: another size
   or another build; -EPERM: the job is another user's; -EINVAL, -ENOMEM … *host_fd: a descriptor to
   keep open (and close at the end) or -1. */
int join_world(struct arena *arena, const struct join_request *request, int *host_fd,
               struct text *why);

#endif
