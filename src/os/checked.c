/* By the library that it puts into each program, which is the one sign that needs no header of valgrind's. */
#include "os/checked.h"

#include <link.h>
#include <string.h>

static int is_memcheck(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    *(bool *)found |= info->dlpi_name && strstr(info->dlpi_name, "vgpreload_memcheck");
    return 0;
}

bool checked_by_memcheck(void)
{
    bool found = false;
    dl_iterate_phdr(is_memcheck, &found);
    return found;
}
