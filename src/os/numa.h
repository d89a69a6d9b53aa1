/* Job: find NUMA nodes and their CPUs; bind a thread to a node; set the memory policy of
 *      a range.
 * Owns: nothing.
 * Never: knows ranks; chooses policies (arena/nodes).
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
/* Reads this machine's map. 0. -ENOMEM, -ENOSYS: no node is known, and there is nothing to free. */
int  numa_map_read(struct numa_map *map);
void numa_map_free(struct numa_map *map);
/* The nodes that have a CPU of the mask. */
struct numa_set numa_map_of(const struct numa_map *map, const uint64_t *mask, int words);
/* The number of the index-th of them (modulo), and its CPUs in the mask. -1: none. */
int numa_map_pick(const struct numa_map *map, const uint64_t *mask, int index,
                  uint64_t cpus[NUMA_CPU_WORDS]);

/* True: memory on more than one node. With one node no more than a small file is read. */
bool numa_several(void);
int  numa_nodes(void);          /* nodes with CPUs this process may use; 1 without NUMA */
/* Facts of the index-th such node: its number, memory and free memory (0: unknown); and the first n
   of its CPUs that this process may use, ascending. Returns how many it may use. -ENOENT: no such
   node, or no NUMA. */
struct numa_facts { int node; uint64_t bytes, free; };
int  numa_look(int index, struct numa_facts *facts, int *cpus, int n);
/* Binds the calling thread to CPUs and memory of the index-th such node (modulo). Node or -errno.
 * */
int  numa_bind(int index) __asm__("os_numa_bind");

/* As in set_mempolicy(2), with flags. {0}: none: a page comes from the node of its first toucher.
 * */
struct numa_policy { int mode; struct numa_set nodes; };
/* One node: preferred. Several nodes: interleaved page by page. */
struct numa_policy numa_prefer(const struct numa_set *nodes);
bool numa_policy_is_local(const struct numa_policy *policy);        /* true: it names no node */
/* The policy of the calling thread; of an address. 0 or -errno. */
int  numa_policy_mine(struct numa_policy *policy);
int  numa_policy_at(void *at, struct numa_policy *policy);
/* Sets the policy of pages of the range that are not there yet. On shared memory it holds for every
   process, until it is set again. 0 or -errno (-EPERM, -ENOSYS: forbidden, often in containers) */
int  numa_policy_set(void *at, size_t bytes, const struct numa_policy *policy);
int  numa_policy_try(void);                  /* tries it on a page of its own; as numa_policy_set */

#endif
