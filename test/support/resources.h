/* Job: counts what this process holds, for tests that nothing is left behind.
 * Owns: nothing.
 * Never: gives anything back. */
#ifndef TUTTI_TEST_SUPPORT_RESOURCES_H
#define TUTTI_TEST_SUPPORT_RESOURCES_H

/* Entries of /proc/self/fd; the descriptor that reads them counts, too. */
int resources_descriptors(void);
/* Mappings of an arena, which is a memfd that begins with "tutti". */
int resources_arena_maps(void);

#endif
