/* A node counts if this thread may run on one of its CPUs: a job confined to one socket has one
 * node. libnuma knows the topology. The binding is by system call, because libnuma prints its
 * errors and cannot stay within the affinity mask that we were given.
 *
 * libnuma is loaded by name where it is first asked, and never linked: its constructor makes 25
 * system calls, a fifth of what an empty program takes, and most machines have one node. It stays
 * loaded, so nothing is kept about it here.
 * Cost: one read of /sys where there is one node; where there are more, the loading as well. */
#define numa_bind libnuma_bind_unused    /* its declaration contradicts ours */
#include <numa.h>
#undef numa_bind
#include <numaif.h>

#include "os/numa.h"

#include "os/cpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A mode's number lies below its flags. MPOL_LOCAL is newer than some headers. */
enum { MODE = (1 << 13) - 1, LOCAL = 4 };

void numa_set_add(struct numa_set *set, int node)
{
    if (node >= 0 && node < NUMA_NODES_MOST)
        set->bits[(size_t)node / NUMA_WORD] |= 1ul << ((size_t)node % NUMA_WORD);
}

int numa_set_count(const struct numa_set *set)
{
    int count = 0;
    for (size_t i = 0; i < NUMA_NODES_MOST / NUMA_WORD; i++)
        count += __builtin_popcountl(set->bits[i]);
    return count;
}

/* ---- libnuma ---- */

#define LIBRARY "libnuma.so.1"
/* What is asked of it. */
#define SYMBOLS(_) \
    _(numa_available) _(numa_max_node) _(numa_node_to_cpus) _(numa_node_size64) \
    _(numa_allocate_cpumask) _(numa_bitmask_isbitset) _(numa_bitmask_free) _(numa_all_nodes_ptr)

struct libnuma {
#define FIELD_(symbol) __typeof__(symbol) *symbol;
    SYMBOLS(FIELD_)
#undef FIELD_
};

/* A function pointer cannot be converted from void *, but its bytes are the same. */
static bool find(void *library, const char *symbol, void *field, size_t size)
{
    void *found = dlsym(library, symbol);
    memcpy(field, &found, size);
    return found;
}

/* False: the library is not installed, or it knows no nodes. */
static bool load(struct libnuma *numa)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    bool whole = library;
#define FIND_(symbol) whole = whole && find(library, #symbol, &numa->symbol, sizeof numa->symbol);
    SYMBOLS(FIND_)
#undef FIND_
    if (library)
        dlclose(library);
    return whole && numa->numa_available() >= 0;
}

/* ---- the nodes ---- */

/* False: the kernel lists one node with memory, or none. */
static bool listed_several(void)
{
    char list[2 * NUMA_NODES_MOST];
    int fd = open("/sys/devices/system/node/has_memory", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, list, sizeof list);
    if (fd >= 0)
        close(fd);
    return n > 0 && (memchr(list, '-', (size_t)n) || memchr(list, ',', (size_t)n));
}

/* True: the node has memory that this process may use. */
static bool is_ours(const struct libnuma *numa, int node)
{
    return node < NUMA_NODES_MOST
        && numa->numa_bitmask_isbitset(*numa->numa_all_nodes_ptr, (unsigned)node);
}

bool numa_several(void)
{
    struct libnuma numa;
    int count = 0;
    if (!listed_several() || !load(&numa))
        return false;
    for (int i = 0; i <= numa.numa_max_node(); i++)
        count += is_ours(&numa, i);
    return count > 1;
}

static void read_cpus(const struct libnuma *numa, int node, struct bitmask *scratch,
                      uint64_t *cpus)
{
    memset(cpus, 0, NUMA_CPU_WORDS * sizeof cpus[0]);
    if (numa->numa_node_to_cpus(node, scratch) != 0)
        return;
    for (unsigned cpu = 0; cpu < scratch->size && cpu < NUMA_CPU_WORDS * 64; cpu++)
        if (numa->numa_bitmask_isbitset(scratch, cpu))
            cpus[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

int numa_map_read(struct numa_map *map)
{
    struct libnuma numa;
    *map = (struct numa_map){ 0 };
    if (!load(&numa))
        return -ENOSYS;
    struct bitmask *scratch = numa.numa_allocate_cpumask();
    map->node = calloc((size_t)numa.numa_max_node() + 1, sizeof *map->node);
    if (!scratch || !map->node) {
        if (scratch)
            numa.numa_bitmask_free(scratch);
        numa_map_free(map);
        return -ENOMEM;
    }
    for (int i = 0; i <= numa.numa_max_node(); i++) {
        if (!is_ours(&numa, i))
            continue;
        struct numa_node *node = &map->node[map->count++];
        node->number = i;
        read_cpus(&numa, i, scratch, node->cpus);
    }
    numa.numa_bitmask_free(scratch);
    return 0;
}

void numa_map_free(struct numa_map *map)
{
    free(map->node);
    *map = (struct numa_map){ 0 };
}

static bool has_cpu_of(const struct numa_node *node, const uint64_t *mask, int words)
{
    for (int i = 0; i < words && i < NUMA_CPU_WORDS; i++)
        if (node->cpus[i] & mask[i])
            return true;
    return false;
}

struct numa_set numa_map_of(const struct numa_map *map, const uint64_t *mask, int words)
{
    struct numa_set set = { { 0 } };
    for (int i = 0; i < map->count; i++)
        if (has_cpu_of(&map->node[i], mask, words))
            numa_set_add(&set, map->node[i].number);
    return set;
}

int numa_map_pick(const struct numa_map *map, const uint64_t *mask, int index,
                  uint64_t cpus[NUMA_CPU_WORDS])
{
    struct numa_set set = numa_map_of(map, mask, NUMA_CPU_WORDS);
    int count = numa_set_count(&set), left = count ? index % count : 0;
    for (int i = 0; i < map->count; i++) {
        const struct numa_node *node = &map->node[i];
        if (!has_cpu_of(node, mask, NUMA_CPU_WORDS) || left-- > 0)
            continue;
        for (int k = 0; k < NUMA_CPU_WORDS; k++)
            cpus[k] = node->cpus[k] & mask[k];
        return node->number;
    }
    return -1;
}

int numa_nodes(void)
{
    uint64_t mask[NUMA_CPU_WORDS];
    struct numa_map map;
    if (cpu_mask(mask, NUMA_CPU_WORDS) < 0 || numa_map_read(&map) < 0)
        return 1;
    struct numa_set set = numa_map_of(&map, mask, NUMA_CPU_WORDS);
    numa_map_free(&map);
    int count = numa_set_count(&set);
    return count ? count : 1;
}

int numa_look(int index, struct numa_facts *facts, int *list, int n)
{
    uint64_t mask[NUMA_CPU_WORDS], cpus[NUMA_CPU_WORDS];
    struct numa_map map;
    if (index < 0 || cpu_mask(mask, NUMA_CPU_WORDS) < 0 || numa_map_read(&map) < 0)
        return -ENOENT;
    struct numa_set set = numa_map_of(&map, mask, NUMA_CPU_WORDS);
    facts->node = index < numa_set_count(&set) ? numa_map_pick(&map, mask, index, cpus) : -1;
    numa_map_free(&map);
    if (facts->node < 0)
        return -ENOENT;
    struct libnuma numa;
    long long spare = 0, bytes = load(&numa) ? numa.numa_node_size64(facts->node, &spare) : 0;
    int count = 0;
    facts->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    facts->free = bytes > 0 && spare > 0 ? (uint64_t)spare : 0;
    for (int cpu = 0; cpu < NUMA_CPU_WORDS * 64; cpu++) {
        bool here = cpus[cpu / 64] >> (cpu % 64) & 1;
        if (here && count < n)
            list[count] = cpu;
        count += here;
    }
    return count;
}

/* ---- binding ---- */

/* Preferred, not bound: a full node then means slower memory and not a killed process. Containers
 * often forbid the call (EPERM); a thread that stays on the node's CPUs gets its memory there by
 * first touch anyway. */
static int prefer_memory_of(int node)
{
    struct numa_set nodes = { { 0 } };
    numa_set_add(&nodes, node);
    if (syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes.bits, (unsigned long)NUMA_NODES_MOST) == 0
        || errno == EPERM || errno == ENOSYS)
        return 0;
    return -errno;
}

int numa_bind(int index)
{
    uint64_t mask[NUMA_CPU_WORDS], cpus[NUMA_CPU_WORDS];
    struct numa_map map;
    if (index < 0)
        return -EINVAL;
    if (cpu_mask(mask, NUMA_CPU_WORDS) < 0 || numa_map_read(&map) < 0)
        return 0;
    int node = numa_map_pick(&map, mask, index, cpus);
    numa_map_free(&map);
    if (node < 0)
        return 0;
    if (syscall(SYS_sched_setaffinity, 0, sizeof cpus, cpus) != 0)
        return -errno;
    int error = prefer_memory_of(node);
    return error ? error : node;
}

/* ---- policies of memory ---- */

struct numa_policy numa_prefer(const struct numa_set *nodes)
{
    int count = numa_set_count(nodes);
    return (struct numa_policy){ count == 0 ? MPOL_DEFAULT
                                     : count == 1 ? MPOL_PREFERRED
                                     : MPOL_INTERLEAVE,
                                 *nodes };
}

bool numa_policy_is_local(const struct numa_policy *policy)
{
    int mode = policy->mode & MODE;
    return mode == MPOL_DEFAULT || mode == LOCAL
        || (mode == MPOL_PREFERRED && numa_set_count(&policy->nodes) == 0);
}

static int ask(void *at, unsigned long flags, struct numa_policy *policy)
{
    *policy = (struct numa_policy){ 0 };
    return syscall(SYS_get_mempolicy, &policy->mode, policy->nodes.bits,
                   (unsigned long)NUMA_NODES_MOST, at, flags)
            == 0
        ? 0
        : -errno;
}

int numa_policy_mine(struct numa_policy *policy) { return ask(NULL, 0, policy); }
int numa_policy_at(void *at, struct numa_policy *policy) { return ask(at, MPOL_F_ADDR, policy); }

int numa_policy_set(void *at, size_t bytes, const struct numa_policy *policy)
{
    bool any = numa_set_count(&policy->nodes) > 0;
    return syscall(SYS_mbind, at, bytes, (unsigned long)policy->mode,
                   any ? policy->nodes.bits : NULL, any ? (unsigned long)NUMA_NODES_MOST : 0ul, 0ul)
            == 0
        ? 0
        : -errno;
}

int numa_policy_try(void)
{
    struct numa_policy policy;
    struct numa_set first = { { 0 } };
    struct numa_map map;
    int error = numa_policy_mine(&policy);
    if (error || (error = numa_map_read(&map)))
        return error;
    if (map.count > 0)
        numa_set_add(&first, map.node[0].number);
    numa_map_free(&map);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return -errno;
    policy = numa_prefer(&first);
    error = numa_policy_set(at, page, &policy);
    munmap(at, page);
    return error;
}
