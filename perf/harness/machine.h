/* Job: say in a line or two where the figures come from.
 * Owns: nothing.
 * Never: judges. */
#ifndef PERF_MACHINE_H
#define PERF_MACHINE_H

struct machine { char cpu[128], system[160], build[96], date[32]; int cpus; };

void machine_describe(struct machine *m);

#endif
