/* Job: open and close worlds.
 * Owns: the process's list of its worlds (so that an exit handler can leave them all), and how
 *       often each job was joined.
 * Never: operations. */
#ifndef TUTTI_API_WORLD_H
#define TUTTI_API_WORLD_H

#include "group/comm.h"

/* The world of a joined arena: takes over the arena. 0 or -errno (then the arena is the
 * caller's again). */
int world_begin(struct tutti_comm **world, struct arena *arena, int rank, int host_fd,
                const tutti_options *options, int several, struct text *why);
int  world_close(struct tutti_comm *world);          /* -EBUSY with work under way */
/* an orderly end of the process: leave every world, touch nothing else */
void world_leave_all(void);

/* Lays options over their environment twins: every field resolved; timeout_ms 0: nobody has given
 * one. 0 or -EINVAL. */
int  world_options(tutti_options *resolved, const tutti_options *given, struct text *why);

/* The plan of an arena for this job, the environment's algorithms and all, checked. The texts are
 * not copied. 0 or -EINVAL, -ENOMEM. */
int world_plan(struct arena_plan *plan, int size, const char *job, const tutti_options *options,
               struct text *why);

/* Binds the calling thread as the flags ask. 0 or -errno. */
int  world_bind(int rank, unsigned flags, struct text *why);

/* What tutti_explain(NULL) shows in this thread. */
extern _Thread_local char world_report[2048];

#endif
