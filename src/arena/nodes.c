/* A policy on shared memory belongs to the memory: a peer that touches a page of my span first gets
 * it on my node. First touch alone cannot do that. A rank needs it, as it reads its own letters and
 * staging far more often than any peer does.
 *
 * Memory that all ranks write and read is interleaved, page by page:
 *   slots         arrival lines travel from cache to cache, and the coherence traffic goes to the
 *                 node of their memory; on one node it would load one memory controller. One policy
 *                 per member would take one mapping per member, of some 65,000 that a process has.
 *   loaded files  all ranks mostly read a file from its beginning at the same time; with each
 *                 stripe on the node of the rank that loaded it, all would read from one node, then
 *                 from the next.
 * Header and seats are a few pages, made before the ranks are known. The header is read in private
 * copies, the seats seldom.
 *
 * Cost: one small file with one node; else a look at /sys: once a rank, twice for the last
 *       one, once for each loaded file. */
#include "arena/nodes.h"

#include "arena/offsets.h"
#include "os/cpu.h"
#include "os/memory.h"

#include <string.h>

enum { SEAT_WORDS = RANKS_MAX / 64 };

/* A policy that the rank has set itself wins; its peers follow it, too. */
struct numa_policy nodes_of_rank(const struct numa_map *map, const uint64_t *cpus, int words,
                                 const struct numa_policy *asked)
{
    if (!numa_policy_is_local(asked))
        return *asked;
    struct numa_set set = numa_map_of(map, cpus, words);
    return numa_set_count(&set) == 1 ? numa_prefer(&set) : (struct numa_policy){ 0 };
}

struct numa_policy nodes_of_all(const struct numa_map *map, const uint64_t *cpus, int words)
{
    struct numa_set set = numa_map_of(map, cpus, words);
    return numa_prefer(&set);
}

/* A refusal is no error: the pages then come from any node. */
static void bind_pages(char *at, uint64_t bytes, const struct numa_policy *policy)
{
    if (!numa_policy_is_local(policy))
        (void)numa_policy_set(at, bytes, policy);
}

void nodes_bind_span(const struct arena *arena, uint32_t rank)
{
    uint64_t mask[NUMA_CPU_WORDS];
    struct numa_policy asked;
    struct numa_map map;
    if (!numa_several() || cpu_mask(mask, NUMA_CPU_WORDS) < 0 || numa_policy_mine(&asked) < 0
        || numa_map_read(&map) < 0)
        return;
    struct numa_policy policy = nodes_of_rank(&map, mask, NUMA_CPU_WORDS, &asked);
    numa_map_free(&map);
    bind_pages(arena_span(arena, rank), arena->header->span_bytes, &policy);
}

/* The policy for the union of all seats' CPUs. Local: nothing is known. */
static struct numa_policy shared_policy(const struct arena *arena)
{
    uint64_t cpus[SEAT_WORDS] = { 0 };
    struct numa_map map;
    for (uint32_t p = 0; p < arena->header->size; p++)
        for (int i = 0; i < SEAT_WORDS; i++)
            cpus[i] |= arena->seats[p].cpu_mask[i];
    if (numa_map_read(&map) < 0)
        return (struct numa_policy){ 0 };
    struct numa_policy policy = nodes_of_all(&map, cpus, SEAT_WORDS);
    numa_map_free(&map);
    return policy;
}

void nodes_bind_shared(const struct arena *arena)
{
    const struct arena_header *h = arena->header;
    if (!numa_several())
        return;
    struct numa_policy policy = shared_policy(arena);
    bind_pages(arena->base + h->sites_at, h->spans_at - h->sites_at, &policy);
}

void nodes_share(const struct arena *arena, char *at, uint64_t bytes, struct numa_policy *before)
{
    *before = (struct numa_policy){ 0 };
    if (!numa_several() || numa_policy_at(at, before) < 0)
        return;
    struct numa_policy policy = shared_policy(arena);
    memory_release(arena_fd(arena), arena->base, at, bytes);
    bind_pages(at, bytes, &policy);
}

void nodes_unshare(char *at, uint64_t bytes, const struct numa_policy *before)
{
    if (numa_several())
        (void)numa_policy_set(at, bytes, before);
}
