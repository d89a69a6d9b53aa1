/* A node counts if this thread may run on one of its CPUs: a job confined to one socket has one
 * node. The topology is read from /sys, and the binding is by system call: libnuma, which does
 * both, prints its errors, cannot stay within the affinity mask that we were given, takes 25 system
 * calls before the program has begun, and knows no nodes where a container forbids get_mempolicy.
 * Cost: one system call where there is one node, or one read of /sys where that call is forbidden;
 * where there are more, reads of /sys as well, one a node. */
#include "os/numa.h"

#include "base/text.h"
#include "os/cpu.h"
#include "os/file.h"

#include <errno.h>
#include <linux/mempolicy.h>
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

/* ---- what the kernel tells ---- */

#define NODES "/sys/devices/system/node/"
/* A list of every second one of 1,500 CPUs; a path; the allowed nodes stand at the end of
 * .../status, behind a mask of 8,192 CPUs. */
enum { LIST_ROOM = 8192, PATH_ROOM = 80, STATUS_ROOM = 8192, MEMINFO_ROOM = 4096 };

struct numbers { unsigned long first, last; };

/* The next range of a list like "0-3,8". */
static bool next_numbers(const char **at, struct numbers *numbers)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    numbers->first = numbers->last = strtoul(*at, &end, 10);
    if (*end == '-')
        numbers->last = strtoul(end + 1, &end, 10);
    *at = *end == ',' ? end + 1 : end;
    return true;
}

static struct numa_set listed(const char *list)
{
    struct numa_set set = { { 0 } };
    struct numbers part;
    while (next_numbers(&list, &part))
        for (unsigned long i = part.first; i <= part.last && i < NUMA_NODES_MOST; i++)
            numa_set_add(&set, (int)i);
    return set;
}

static bool is_in(const struct numa_set *set, int node)
{
    return set->bits[(size_t)node / NUMA_WORD] >> ((size_t)node % NUMA_WORD) & 1;
}

/* The nodes that a cpuset leaves this process; all, where nobody says. */
static struct numa_set allowed(void)
{
    static const char name[] = "\nMems_allowed_list:\t";
    char status[STATUS_ROOM];
    const char *line = file_read("/proc/self/status", status, sizeof status) > 0
        ? strstr(status, name)
        : NULL;
    return listed(line ? line + sizeof name - 1 : "0-1023");
}

/* The nodes with memory for this process; -ENOSYS: the kernel knows none. */
static int nodes_of_ours(struct numa_set *ours)
{
    char list[LIST_ROOM];
    if (file_read(NODES "has_memory", list, sizeof list) <= 0)
        return -ENOSYS;
    *ours = listed(list);
    if (numa_set_count(ours) <= 1)
        return 0;
    struct numa_set may = allowed();
    for (size_t i = 0; i < NUMA_NODES_MOST / NUMA_WORD; i++)
        ours->bits[i] &= may.bits[i];
    return 0;
}

/* The kernel's own answer. A set of CPUs may also allow nodes that have no memory: then /sys is
 * asked. */
static bool one_allowed(void)
{
    struct numa_set set = { { 0 } };
    return syscall(SYS_get_mempolicy, NULL, set.bits, (unsigned long)NUMA_NODES_MOST, NULL,
                   (unsigned long)MPOL_F_MEMS_ALLOWED)
            == 0
        && numa_set_count(&set) == 1;
}

bool numa_several(void)
{
    struct numa_set ours;
    return !one_allowed() && nodes_of_ours(&ours) == 0 && numa_set_count(&ours) > 1;
}

/* A file of a node; "": none, or longer than the room. */
static void read_of(int node, const char *file, char *text, size_t room)
{
    char name[PATH_ROOM];
    struct text path = TEXT_IN(name);
    text_add(&path, NODES "node%d/%s", node, file);
    if (file_read(name, text, room) == (int)room - 1)
        text[0] = '\0';
}

static void read_cpus(struct numa_node *node)
{
    char list[LIST_ROOM];
    struct numbers part;
    read_of(node->number, "cpulist", list, sizeof list);
    for (const char *at = list; next_numbers(&at, &part);)
        for (unsigned long cpu = part.first; cpu <= part.last && cpu < NUMA_CPU_WORDS * 64; cpu++)
            node->cpus[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

/* Bytes by a line of a node's "meminfo", which counts KiB; 0: it has none. */
static uint64_t memory_of(const char *meminfo, const char *name)
{
    const char *line = strstr(meminfo, name);
    return line ? strtoull(line + strlen(name), NULL, 10) * 1024 : 0;
}

/* ---- the nodes ---- */

int numa_map_read(struct numa_map *map)
{
    struct numa_set ours;
    *map = (struct numa_map){ 0 };
    int error = nodes_of_ours(&ours);
    if (error || numa_set_count(&ours) == 0)
        return -ENOSYS;
    map->node = calloc((size_t)numa_set_count(&ours), sizeof *map->node);
    if (!map->node)
        return -ENOMEM;
    for (int i = 0; i < NUMA_NODES_MOST; i++) {
        if (!is_in(&ours, i))
            continue;
        struct numa_node *node = &map->node[map->count++];
        node->number = i;
        read_cpus(node);
    }
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
    char meminfo[MEMINFO_ROOM];
    int count = 0;
    read_of(facts->node, "meminfo", meminfo, sizeof meminfo);
    facts->bytes = memory_of(meminfo, " MemTotal:");
    facts->free = memory_of(meminfo, " MemFree:");
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
