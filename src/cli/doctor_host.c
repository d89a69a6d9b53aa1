/* What the system has for ranks besides GPUs, found by trying, as a rank would. Each section has a
 * file; this is their order. */
#include "cli/doctor.h"

#include "os/transfer.h"

#include <stdio.h>

static void files(void)
{
    const char *why, *way = transfer_way(&why);
    printf("files: read and written by %s%s%s\n", way, *why ? ": " : "", why);
    if (*why)
        printf("  the results are the same; io_uring wants the seccomp profile of a container\n"
               "  to allow it, and the sysctl kernel.io_uring_disabled to be 0\n");
}

void doctor_host(struct doctor *d)
{
    doctor_kernel(d);
    doctor_cpu();
    doctor_memory(d);
    files();
    doctor_launcher(d);
    doctor_settings(d);
    doctor_rules(d);
    fflush(stdout);
}
