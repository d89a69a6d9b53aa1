/* The sign is the library that memcheck preloads into each program: it needs no header of valgrind.
 * It is read from the environment. The loader's own list is under a lock that a fork can leave held
 * for ever. Cost: one getenv. */
#include "os/checked.h"

#include <stdlib.h>
#include <string.h>

bool checked_by_memcheck(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "vgpreload_memcheck");
}
