/* Job: count what this process holds, for tests that nothing is left over.
 * Owns: nothing.
 * Never: releases anything. */
#ifndef TUTTI_TEST_SUPPORT_RESOURCES_H
#define TUTTI_TEST_SUPPORT_RESOURCES_H

/* Entries of /proc/self/fd; the descriptor that reads them counts, too. */
int resources_descriptors(void);
/* Mappings of an arena, which is a memfd that begins with "tutti". */
int resources_arena_maps(void);

#endif
