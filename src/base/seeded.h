/* Job: places where a known bug can be switched on, so that a checker can be asked whether it finds it.
 * Owns: nothing.
 * Never: anything in a product: there it is the constant 0, and what depends on it is no code. The bugs are listed in test/explore. */
#ifndef TUTTI_BASE_SEEDED_H
#define TUTTI_BASE_SEEDED_H

#if defined(TUTTI_EXPLORE)
#include <explore/bugs.h>
#else
#define SEEDED(bug) 0
#define TINY(normal, tiny) (normal)    /* a size that the checker wants small, so that few words make several rounds */
#endif

#endif
