/* A policy set on shared memory belongs to the memory: a peer that is the first to touch a page of
 * my span gets it on my node. That is what first touch alone cannot do, and what a rank needs that
 * reads its own letters and staging far more often than anybody else.
 *
 * In turn, what all write and read: arrival lines travel from cache to cache, and their memory
 * matters only as the place where that is negotiated, so that it is spread; on the node of whoever
 * makes a comm, all of that would be one controller's work. Each member's lines on its own node
 * would be one mapping a member in the process that makes the comm, of some 65,000 that a process
 * may have. A loaded file is read by all ranks, whichever of them has fetched which stripe from the
 * disk, and mostly by all from its beginning at the same time: with each stripe on the node of
 * whoever fetched it they would all read from one node, then at the next. Header and seats are a
 * few pages, made before it is known who comes; the header is read in private copies, the seats
 * once in a while.
 *
 * Cost: nothing where there is one node; else libnuma's look at /sys, once a rank, twice for the
 *       last one, once for each loaded file. */
#include "arena/nodes.h"

#include "arena/offsets.h"
#include "os/cpu.h"
#include "os/memory.h"

#include <string.h>

enum { SEAT_WORDS = RANKS_MAX / 64 };

/* Who has said where its memory shall lie is obeyed, by peers as well. */
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

/* Refused or not: the pages come from somewhere. */
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

/* The union of what the ranks said when they sat down. Local: nothing is known. */
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
