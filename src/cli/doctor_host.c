/* What the system has for ranks besides GPUs: asked for as a rank would, by trying. Each section is a file; this is their order. */
#include "cli/doctor.h"

#include "os/numa.h"
#include "os/transfer.h"

#include <stdio.h>
#include <string.h>

static void doctor_nodes(void)
{
    struct numa_map map;
    if (!numa_several()) {
        printf("NUMA: one node\n");
        return;
    }
    int error = numa_policy_try();
    if (error == 0 && (error = numa_map_read(&map)) == 0) {
        printf("NUMA: %d nodes; a rank bound to one has its memory there\n", map.count);
        numa_map_free(&map);
        return;
    }
    printf("NUMA: several nodes, but memory cannot be placed: %s\n"
           "  it lies where it is touched first, mostly near its rank if that is bound;\n"
           "  let the seccomp profile of the container allow mbind and get_mempolicy\n", strerrordesc_np(-error));
}

static void files(void)
{
    doctor_nodes();
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
