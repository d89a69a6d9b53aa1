/* Job: an environment that is poorer than usual, and what a job of tutti does in it: a course of
 *      operations with known results, and
 * three ways in which waiting ends badly.
 * Owns: nothing that outlives the process it poisons: filters and limits are set in ranks, never in
 *       the test itself.
 * Never: waits without a bound, or by time alone. */
#ifndef TUTTI_TEST_FAULTS_ENVIRONMENT_H
#define TUTTI_TEST_FAULTS_ENVIRONMENT_H

#include "support/team.h"

#include <stddef.h>

/* From now on this process and its children get -error from these system calls. 0, or the negative
 * errno: no filter can be had here. */
int env_forbid(const long *calls, size_t n, int error);
int env_advise_less(void);
/* No seals: fcntl refuses to add any, and, if `look` is set, to tell them. */
int env_no_seals(bool look);

/* Every kind of operation once or more, with right results: 0, or the line in environment.c of the
 * first that was wrong (said on stderr). */
int env_course(tutti_comm *world);

/* Steps of the same body in all of these tests: the course; a deadline on a comm of its own, which
   the victim makes pass; the victim's death, while one survivor is in a barrier, another in a recv
   and the rest in work. `how` ends the victim, by itself or by awaiting the test's kill. */
enum { ENV_READY = 1, ENV_BACK = 2, ENV_MET = 3, ENV_LATE_MS = 120 };   /* said by ranks */
enum { ENV_START = 1, ENV_COME = 2, ENV_END = 3 };           /* told to them */
/* where in team_rank.error */
enum env_error { ENV_INIT, ENV_COURSE, ENV_LATE, ENV_DEATH, ENV_AFTER, ENV_FINALIZE };

/* All of that for a rank that has its world (or has not, if init failed: then error[ENV_INIT] is
 * set, and the report is tutti_init's). */
int env_life(tutti_comm *world, int rank, struct team *team, int victim, void (*how)(void));
void env_killed(void);                                    /* SIGKILL to oneself */
void env_stays(void);                                     /* until env_kill_through has killed it */

/* Drives a team of env_life to its end, and looks at what everybody got: asserts. The report of the
   death must hold `why`. kill: the test kills it, and `how` was env_stays. */
void env_see_through(struct team *team, int victim, const char *why);
void env_kill_through(struct team *team, int victim, const char *why);
/* The same where the reason may be known later than a report waits for it, and is then missing: one
   that the system kills for want of memory takes long to end. */
void env_starve_through(struct team *team, int victim, const char *why);

/* A name that no other job has, new for each call. */
const char *env_job(void);
bool env_hosted(const char *job);   /* until a rank listens for the others of that job: bounded */

/* What lies about: our names in /dev/shm, this process's jobs in /tmp and among sockets, open
 * descriptors. Before and after. */
struct env_traces { int files, sockets, descriptors; };
void env_look(struct env_traces *traces);
/* asserts; no process of ours is left, either */
void env_expect_nothing_new(const struct env_traces *before);
void env_adopt(void);   /* once: whatever is orphaned below comes to this process, and is seen */

#endif
