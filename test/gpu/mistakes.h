/* Job: MISTAKE for src/gpu built with its known mistakes (folder mistakes): the one that the
 *      environment names is made.
 * Owns: nothing.
 * Never: in a product. The mistakes are listed in mistakes.txt. */
#ifndef TUTTI_TEST_GPU_MISTAKES_H
#define TUTTI_TEST_GPU_MISTAKES_H

#include <stdbool.h>

bool mistake_made(const char *name);                 /* TUTTI_MISTAKE=name */
#define MISTAKE(bug) mistake_made(#bug)

#endif
