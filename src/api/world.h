/* Job: open and close worlds.
 * Owns: the process's list of its worlds (so that an exit handler can leave them all).
 * Never: runs operations. */
#ifndef TUTTI_API_WORLD_H
#define TUTTI_API_WORLD_H

#include "group/comm.h"

/* Makes the world of a joined arena and takes over the arena. 0 or -errno (then the arena is the
 * caller's again). */
int world_begin(struct tutti_comm **world, struct arena *arena, int rank, int host_fd,
                const tutti_options *options, int several, struct text *why);
int  world_close(struct tutti_comm *world);          /* -EBUSY with work under way */
/* For an orderly end of the process: leaves every world, touches nothing else. */
void world_leave_all(void);

/* Resolves every field from options, environment and defaults; timeout_ms 0: nobody has given one.
 * 0 or -EINVAL. */
int  world_options(tutti_options *resolved, const tutti_options *given, struct text *why);

/* Makes the plan of an arena for this job, with the environment's algorithms, all checked. The
 * texts are not copied. 0 or -EINVAL, -ENOMEM. */
int world_plan(struct arena_plan *plan, int size, const char *job, const tutti_options *options,
               struct text *why);

/* Binds the calling thread as the flags ask. 0 or -errno. */
int  world_bind(int rank, unsigned flags, struct text *why);

/* The text of tutti_explain(NULL) in this thread. */
extern _Thread_local char world_report[2048];

#endif
