/* Names for mkdtemp and mkstemp in the folder of this test (TMPDIR), which test/needs/scratch.c
 * makes and removes, however the test ends. A test that is started by itself has /tmp. */
#ifndef TUTTI_TEST_SCRATCH_H
#define TUTTI_TEST_SCRATCH_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static inline char *scratch_name(char *room, size_t bytes, const char *name)
{
    const char *folder = getenv("TMPDIR");
    int n = folder && *folder ? snprintf(room, bytes, "%s/tutti-%s-XXXXXX", folder, name) : -1;
    if (n < 0 || (size_t)n >= bytes)
        snprintf(room, bytes, "/tmp/tutti-%s-XXXXXX", name);
    return room;
}

#endif
