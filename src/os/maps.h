/* Job: what kind of memory lies at an address of this process.
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

/* The mapping that holds the address, or the next one above it. 0; -ENOENT none; -errno: /proc
 * cannot be read. */
int maps_at(uintptr_t at, struct mapping *m);
bool maps_asks(void);                               /* does this kernel answer for one address? */
/* the same without the newer way to ask, for older kernels and the test */
int maps_at_by_text(uintptr_t at, struct mapping *m);

/* Is all of it private anonymous memory of the ordinary kind, readable and writable, and no stack
   (others' thread stacks cannot be told)? 0, or -EINVAL with what it is in why; -errno: cannot be
   told, which is said, too. */
int maps_ordinary(const void *at, size_t bytes, struct text *why);

#endif
