/* Job: NUMA nodes by libnuma: how many, which CPUs, bind a thread to one.
 * Owns: nothing.
 * Never: ranks.
 * The linker knows numa_bind as os_numa_bind: libnuma exports a function of that name and another shape, and a program
 * that links our static library and libnuma must get its own. */
#ifndef TUTTI_OS_NUMA_H
#define TUTTI_OS_NUMA_H

#include <stdint.h>

int numa_nodes(void);                        /* nodes with CPUs this process may use; 1 where there is no NUMA */
/* The index-th such node: its number, which of its CPUs this process may use (the first n, ascending; how many is returned), its memory and what
   of it is free, 0 where that is not known. -ENOENT: there is no such node, or no NUMA. */
struct numa_facts { int node; uint64_t bytes, free; };
int numa_look(int index, struct numa_facts *facts, int *cpus, int n);
/* the calling thread to the CPUs and memory of the index-th such node (modulo); node or -errno */
int numa_bind(int index) __asm__("os_numa_bind");

#endif
