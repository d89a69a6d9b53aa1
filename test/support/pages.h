/* Job: which pages of shared memory the system has.
 * Owns: nothing.
 * Never: touches one. */
#ifndef TUTTI_TEST_SUPPORT_PAGES_H
#define TUTTI_TEST_SUPPORT_PAGES_H

#include <stdbool.h>
#include <stddef.h>

enum { PAGE_BYTES = 4096 };

/* seen[i]: is page i there? false: the system does not say. */
bool pages_seen(const void *at, size_t bytes, unsigned char *seen);
/* How many bytes of them are; SIZE_MAX: it does not say. */
size_t pages_there(const void *at, size_t bytes);
/* Do they come one by one, of PAGE_BYTES, and does the system say so? Not where it gives shared
 * memory huge pages unasked. */
bool pages_single(void);

#endif
