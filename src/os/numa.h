/* Job: NUMA nodes by libnuma: which there are, with which CPUs; bind a thread to one; say where the
 *      pages of a stretch shall lie.
 * Owns: nothing.
 * Never: ranks; which stretch belongs where (arena/nodes).
 * The linker knows numa_bind as os_numa_bind: libnuma exports a function of that name and another
 * shape, and a program that links our static library and libnuma must get its own. */
#ifndef TUTTI_OS_NUMA_H
#define TUTTI_OS_NUMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NUMA_NODES_MOST = 1024, NUMA_CPU_WORDS = 512, NUMA_WORD = 8 * sizeof(unsigned long) };

struct numa_set { unsigned long bits[NUMA_NODES_MOST / NUMA_WORD]; };
void numa_set_add(struct numa_set *set, int node);
int  numa_set_count(const struct numa_set *set);

/* The nodes with memory for this process, in the order of their numbers, and all CPUs of each. */
struct numa_node { int number; uint64_t cpus[NUMA_CPU_WORDS]; };
struct numa_map { int count; struct numa_node *node; };
/* Of this machine: 0, or -ENOMEM, -ENOSYS: none is known. Then numa_map_free has nothing to do. */
int  numa_map_read(struct numa_map *map);
void numa_map_free(struct numa_map *map);
/* Those that have a CPU of the mask. */
struct numa_set numa_map_of(const struct numa_map *map, const uint64_t *mask, int words);
/* The index-th of them (modulo), and its CPUs among the mask's; -1: none. */
int numa_map_pick(const struct numa_map *map, const uint64_t *mask, int index,
                  uint64_t cpus[NUMA_CPU_WORDS]);

/* memory on more than one node? Costs no system call: libnuma has looked when it was loaded */
bool numa_several(void);
int  numa_nodes(void);          /* nodes with CPUs this process may use; 1 where there is no NUMA */
/* The index-th such node: its number, which of its CPUs this process may use (the first n,
   ascending; how many is returned), its memory and what of it is free, 0 where that is not known.
   -ENOENT: there is no such node, or no NUMA. */
struct numa_facts { int node; uint64_t bytes, free; };
int  numa_look(int index, struct numa_facts *facts, int *cpus, int n);
/* the calling thread to the CPUs and memory of the index-th such node (modulo); node or -errno */
int  numa_bind(int index) __asm__("os_numa_bind");

/* As in set_mempolicy(2), flags and all. {0}: none, so that a page comes from where the thread runs
 * that touches it first. */
struct numa_policy { int mode; struct numa_set nodes; };
/* a single node: there, else near it; several: page by page in turn */
struct numa_policy numa_prefer(const struct numa_set *nodes);
bool numa_policy_is_local(const struct numa_policy *policy);        /* does it name no node? */
/* Of the calling thread, and of a place in memory: 0 or -errno. */
int  numa_policy_mine(struct numa_policy *policy);
int  numa_policy_at(void *at, struct numa_policy *policy);
/* For pages of the stretch that are not there yet. In shared memory it is the memory's own: it
   holds for every process, until said anew. 0 or -errno (-EPERM, -ENOSYS: forbidden, as in
   many containers). */
int  numa_policy_set(void *at, size_t bytes, const struct numa_policy *policy);
int  numa_policy_try(void);                  /* can it be done here? As numa_policy_set */

#endif
