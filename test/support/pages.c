/* Uses mincore: for shared memory it reports the pages that any process has touched. */
#include "support/pages.h"

#include "os/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

bool pages_seen(const void *at, size_t bytes, unsigned char *seen)
{
    return mincore((void *)(uintptr_t)at, bytes, seen) == 0;
}

size_t pages_there(const void *at, size_t bytes)
{
    size_t count = (bytes + PAGE_BYTES - 1) / PAGE_BYTES, there = 0;
    unsigned char *seen = malloc(count ? count : 1);
    bool said = seen && at && pages_seen(at, bytes, seen);
    for (size_t i = 0; said && i < count; i++)
        there += seen[i] & 1;
    free(seen);
    return said ? there * PAGE_BYTES : SIZE_MAX;
}

bool pages_single(void)
{
    enum { STRETCH = 4 << 20 };
    int error, fd = memory_create(STRETCH);
    char *at = fd < 0 ? NULL : memory_map(fd, STRETCH, &error);
    bool single = false;
    if (at) {
        at[0] = 1;
        single = memory_page() == PAGE_BYTES && pages_there(at, STRETCH) == PAGE_BYTES;
    }
    memory_unmap(at, STRETCH);
    if (fd >= 0)
        close(fd);
    return single;
}
