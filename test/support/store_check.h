/* Job: check that a store is whole: walk blocks, chains and lists; compare them with its counts.
 * Owns: nothing.
 * Never: runs beside writers: nobody may be in the store meanwhile. */
#ifndef TUTTI_TEST_SUPPORT_STORE_CHECK_H
#define TUTTI_TEST_SUPPORT_STORE_CHECK_H

#include "arena/store.h"

#include <stdbool.h>

/* Lets the store repair what a dead writer left, then walks it. False: stderr says what is
 * wrong. */
bool store_whole(const struct arena *arena);

#endif
