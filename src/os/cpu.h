/* Job: find the CPUs that this process may use; bind a thread to one of them.
 * Owns: nothing.
 * Never: knows ranks.
 * CPUs allowed = affinity mask ∩ cgroup quota (v1 cpu.cfs_quota_us / cfs_period_us, v2 cpu.max, all
 * ancestors), rounded up, at least 1. */
#ifndef TUTTI_OS_CPU_H
#define TUTTI_OS_CPU_H

#include <stddef.h>
#include <stdint.h>

int cpu_allowed(void);                       /* affinity ∩ quota of the calling thread, >= 1 */
/* affinity as bits, n words of 64; number of CPUs in it or -errno */
int cpu_mask(uint64_t *words, int n);
int cpu_count_mask(const uint64_t *words, int n);
int cpu_here(void);                          /* that the thread runs on, at this moment; -1 */
int cpu_quota(void);                         /* CPUs by cgroup quota, rounded up; 0: no quota */
/* Binds the calling thread to the index-th CPU of its mask (index modulo their number). The CPU
 * or -errno. */
int cpu_bind(int index);
/* cpu_quota with a root instead of /sys/fs/cgroup and a text instead of /proc/self/cgroup: for
 * tests. */
int cpu_quota_at(const char *root, const char *cgroup_text);
/* The machine's identity: CPUs online (of all, within the cgroup's quota); the processor's name, or
 * "unknown processor". */
int cpu_machine(void);
void cpu_model(char *name, size_t room);
/* Hardware threads of CPU 0's core, CPU 0 included; >= 1. */
int cpu_siblings(void);
size_t cpu_cache_bytes(int level);  /* data cache of CPU 0; 0: unknown */

#endif
