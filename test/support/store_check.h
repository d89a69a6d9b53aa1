/* Job: is a store whole? Walks blocks, chains and lists and compares them with the books.
 * Owns: nothing.
 * Never: beside writers: nobody may be in the store meanwhile. */
#ifndef TUTTI_TEST_SUPPORT_STORE_CHECK_H
#define TUTTI_TEST_SUPPORT_STORE_CHECK_H

#include "arena/store.h"

#include <stdbool.h>

/* Lets the store repair what a dead writer left, then walks. False: it has been said on stderr what
 * is wrong. */
bool store_whole(const struct arena *arena);

#endif
