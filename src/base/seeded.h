/* Job: places where a known bug can be switched on, so that a checker can be asked whether it finds it.
 * Owns: nothing.
 * Never: anything in a product: there it is the constant 0, and what depends on it is no code. The bugs are listed in test/explore,
 * the mistakes of src/gpu in test/gpu. */
#ifndef TUTTI_BASE_SEEDED_H
#define TUTTI_BASE_SEEDED_H

#if defined(TUTTI_EXPLORE)
#include <explore/bugs.h>
#else
#define SEEDED(bug) 0
#define PLAINLY(at, bytes) ((void)0)   /* shared words of this rank's were there; now it writes there without their names */
/* A size that the checker wants small, so that few words make several rounds; tests do so, too. */
#if defined(TUTTI_TINY)
#define TINY(normal, tiny) (tiny)
#else
#define TINY(normal, tiny) (normal)
#endif
#endif

#if defined(TUTTI_MISTAKES)            /* src/gpu alone: one at a time, by its name in the environment */
#include <gpu/mistakes.h>
#else
#define MISTAKE(name) 0
#endif

#endif
