/* Job: find the kind of memory at an address of this process.
 * Owns: nothing.
 * Never: changes a mapping. */
#ifndef TUTTI_OS_MAPS_H
#define TUTTI_OS_MAPS_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping {
    uintptr_t from, to;
    bool readable, writable, executable, shared, file;
    char name[64];
};

/* The mapping that holds the address, or the next one above it. 0. -ENOENT: none. -errno: /proc
 * cannot be read. */
int maps_at(uintptr_t at, struct mapping *m);
bool maps_asks(void);                               /* true: this kernel has PROCMAP_QUERY */
/* The same by the text of /proc/self/maps, for older kernels and the test. */
int maps_at_by_text(uintptr_t at, struct mapping *m);

/* 0: all of it is private anonymous memory, readable and writable, and no stack (stacks of other
   threads are not recognised). -EINVAL: it is not; why says what it is. -errno: cannot be found
   out; why says so. */
int maps_ordinary(const void *at, size_t bytes, struct text *why);

#endif
