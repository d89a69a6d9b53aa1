/* By the library that memcheck puts into each program, which is the one sign that needs no header
 * of valgrind's. The environment tells it. The loader's own list would be under a lock that a fork
 * can leave held for ever. */
#include "os/checked.h"

#include <stdlib.h>
#include <string.h>

bool checked_by_memcheck(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "vgpreload_memcheck");
}
