/* Job: NUMA nodes by libnuma: how many, which CPUs, bind a thread to one.
 * Owns: nothing.
 * Never: ranks.
 * The linker knows numa_bind as os_numa_bind: libnuma exports a function of that name and another shape, and a program
 * that links our static library and libnuma must get its own. */
#ifndef TUTTI_OS_NUMA_H
#define TUTTI_OS_NUMA_H

int numa_nodes(void);                        /* nodes with CPUs this process may use; 1 where there is no NUMA */
/* the calling thread to the CPUs and memory of the index-th such node (modulo); node or -errno */
int numa_bind(int index) __asm__("os_numa_bind");

#endif
