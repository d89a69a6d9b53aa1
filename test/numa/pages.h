/* Job: what the kernel says: nodes and their CPUs by /sys, where pages lie by move_pages(2).
 *      Nothing of tutti is asked.
 * Owns: nothing.
 * Never: what is right. */
#ifndef TUTTI_TEST_NUMA_PAGES_H
#define TUTTI_TEST_NUMA_PAGES_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

enum { PAGE = 4096, NODES = 64, ABSENT = -1 };

/* Of online nodes with memory, as bits. */
uint64_t pages_nodes(void);
uint64_t pages_nodes_of(const cpu_set_t *cpus);      /* those that have one of these CPUs */
int pages_node_cpus(int node, cpu_set_t *cpus);      /* how many */
long pages_free_kib(int node);

/* The node of each page of the stretch, ABSENT where none is there. Makes none: what is absent
 * stays so. 0 or -errno. */
int pages_look(char *at, size_t bytes, int *node);

/* The policy of the calling thread, or of the place `at`: its mode, and the nodes as
 * bits; -errno. */
int pages_policy(void *at, uint64_t *nodes);

#endif
