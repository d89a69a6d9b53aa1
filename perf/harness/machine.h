/* Job: say in a line or two where the figures come from.
 * Owns: nothing.
 * Never: judges. */
#ifndef PERF_MACHINE_H
#define PERF_MACHINE_H

#include <stdint.h>

struct machine {
    char cpu[128], system[160], build[96], date[32];
    char version[64], command[256];          /* of tutti; by which the figures were made */
    int cpus;
};

/* From this share on of the time of our CPUs a machine is busy with other things. */
#define MACHINE_BUSY 0.15

void machine_describe(struct machine *m);
/* Watches for a fifth of a second what share of the time of the CPUs that this process may use goes
 * to others; 0 where nobody can say. */
double machine_busy(void);
/* The same of two texts of /proc/stat, and the CPUs as bits, n words of 64. */
double machine_busy_between(const char *before, const char *after, const uint64_t *cpus, int n);

#endif
