/* What the system has for ranks besides GPUs: asked for as a rank would, by trying. */
#include "cli/doctor.h"

#include "os/transfer.h"

#include <stdio.h>

void doctor_host(void)
{
    const char *why, *way = transfer_way(&why);
    printf("files: read and written by %s%s%s\n", way, *why ? ": " : "", why);
    if (*why)
        printf("  the results are the same; io_uring wants the seccomp profile of a container\n"
               "  to allow it, and the sysctl kernel.io_uring_disabled to be 0\n");
    fflush(stdout);
}
