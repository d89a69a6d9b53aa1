/* Which CPUs belong together, and staying there. A node counts if this thread may run on one of its CPUs: a job confined
 * to one socket has one node. libnuma knows the topology; the binding itself is by system call, because libnuma prints its
 * errors and offers no way to stay within the affinity mask we were given. Cost: some reads of /sys, once at start. */
#define numa_bind libnuma_bind_unused    /* its declaration contradicts ours */
#include <numa.h>
#undef numa_bind
#include <numaif.h>

#include "os/numa.h"

#include "os/cpu.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MASK_WORDS = 512, NODES_MOST = 1024, BITS = 8 * (int)sizeof(unsigned long) };

/* The CPUs of the node among the allowed ones; false: none. */
static bool node_cpus(int node, struct bitmask *scratch, const uint64_t *allowed, uint64_t *cpus)
{
    bool any = false;
    memset(cpus, 0, MASK_WORDS * sizeof cpus[0]);
    if (!numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned)node) || numa_node_to_cpus(node, scratch) != 0)
        return false;
    for (unsigned cpu = 0; cpu < scratch->size && cpu < MASK_WORDS * 64; cpu++) {
        if (numa_bitmask_isbitset(scratch, cpu) && (allowed[cpu / 64] >> (cpu % 64) & 1)) {
            cpus[cpu / 64] |= (uint64_t)1 << (cpu % 64);
            any = true;
        }
    }
    return any;
}

/* Walks the usable nodes up to the nth. How many were met; *node and cpus are those of the last one. */
static int walk_nodes(int nth, int *node, uint64_t *cpus)
{
    uint64_t allowed[MASK_WORDS], here[MASK_WORDS];
    int met = 0;
    if (numa_available() < 0 || cpu_mask(allowed, MASK_WORDS) < 0)
        return 0;
    struct bitmask *scratch = numa_allocate_cpumask();
    if (!scratch)
        return 0;
    for (int i = 0; i <= numa_max_node() && met <= nth; i++) {
        if (!node_cpus(i, scratch, allowed, here))
            continue;
        met++;
        *node = i;
        memcpy(cpus, here, sizeof here);
    }
    numa_bitmask_free(scratch);
    return met;
}

int numa_nodes(void)
{
    uint64_t cpus[MASK_WORDS];
    int node, met = walk_nodes(NODES_MOST, &node, cpus);
    return met > 0 ? met : 1;
}

int numa_look(int index, struct numa_facts *facts, int *list, int n)
{
    uint64_t cpus[MASK_WORDS];
    long long spare = 0;
    int count = 0;
    if (index < 0 || walk_nodes(index, &facts->node, cpus) != index + 1)
        return -ENOENT;
    long long bytes = numa_node_size64(facts->node, &spare);
    facts->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    facts->free = bytes > 0 && spare > 0 ? (uint64_t)spare : 0;
    for (int cpu = 0; cpu < MASK_WORDS * 64; cpu++) {
        bool set = cpus[cpu / 64] >> (cpu % 64) & 1;
        if (set && count < n)
            list[count] = cpu;
        count += set;
    }
    return count;
}

/* Preferred, not bound: a full node then means slower memory and not a killed process. Containers often forbid the call
 * (EPERM); a thread that stays on the node's CPUs gets its memory there by first touch anyway. */
static int prefer_memory_of(int node)
{
    unsigned long nodes[NODES_MOST / BITS] = { 0 };
    if (node >= NODES_MOST)
        return -EINVAL;
    nodes[node / BITS] = 1ul << (node % BITS);
    if (set_mempolicy(MPOL_PREFERRED, nodes, NODES_MOST) == 0 || errno == EPERM || errno == ENOSYS)
        return 0;
    return -errno;
}

int numa_bind(int index)
{
    uint64_t cpus[MASK_WORDS];
    int node = 0;
    if (index < 0)
        return -EINVAL;
    int count = walk_nodes(NODES_MOST, &node, cpus);
    if (count == 0)
        return 0;
    walk_nodes(index % count, &node, cpus);
    if (syscall(SYS_sched_setaffinity, 0, sizeof cpus, cpus) != 0)
        return -errno;
    int error = prefer_memory_of(node);
    return error ? error : node;
}
