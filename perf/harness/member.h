/* Job: a rank of a job, whatever system it belongs to: waits asleep for a task, does it, says that
 *      it is ready.
 * Owns: this rank's pools.
 * Never: what a task is worth. Plain C and C++: ranks of peers read it, too. */
#ifndef PERF_MEMBER_H
#define PERF_MEMBER_H

#include "harness/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

struct stage;

/* Maps what the commander shares at `path`; NULL after a line on stderr. */
struct stage *member_join(const char *path);
int member_ranks(const struct stage *stage);

/* Right after this rank's first barrier: from the start to the last of these is how long the job
 * takes to stand. */
void member_first(struct stage *stage, int me);

/* How long this rank's call of its system's init took, in stamps. */
uint64_t member_now(void);
void member_up(struct stage *stage, int me, uint64_t took);

/* What this system calls its version, "4.1.4"; by rank 0. */
void member_version(struct stage *stage, const char *version);

/* Serves as rank `me` until the job is dismissed: 0, or 1 after a line on stderr. */
int member_serve(struct stage *stage, int me, const struct system *system);

#ifdef __cplusplus
}
#endif
#endif
