/* Job: find which pages of shared memory the system has allocated.
 * Owns: nothing.
 * Never: touches a page. */
#ifndef TUTTI_TEST_SUPPORT_PAGES_H
#define TUTTI_TEST_SUPPORT_PAGES_H

#include <stdbool.h>
#include <stddef.h>

enum { PAGE_BYTES = 4096 };

/* seen[i] & 1: page i is allocated. false: the system does not report it. */
bool pages_seen(const void *at, size_t bytes, unsigned char *seen);
/* The bytes of allocated pages; SIZE_MAX: the system does not report them. */
size_t pages_there(const void *at, size_t bytes);
/* True: pages are allocated one by one, of PAGE_BYTES, and the system reports it. False, for
 * example, if the system gives shared memory huge pages unasked. */
bool pages_single(void);

#endif
