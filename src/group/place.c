/* Memory of tutti_alloc and tutti_view lies in one of the arena's two mappings. Cost: a few
 * comparisons. */
#include "group/place.h"

#include "arena/registered.h"
#include "arena/shared_map.h"

static bool inside(uintptr_t at, size_t bytes, uintptr_t base, uint64_t whole)
{
    return base && at >= base && at - base <= whole && bytes <= whole - (at - base);
}

const char *place_readonly(struct world *world, int *error)
{
    pthread_mutex_lock(&world->lock);
    const char *base = (const char *)(uintptr_t)load_acquire64(&world->readonly_base);
    if (!base) {
        base = shared_map_take(arena_fd(&world->arena), world->arena.bytes, 1, error);
        if (base)
            shared_map_not_for_forks((void *)(uintptr_t)base);
        store_release64(&world->readonly_base, (uint64_t)(uintptr_t)base);
    }
    pthread_mutex_unlock(&world->lock);
    return base;
}

void place_keep(struct world *world)
{
    int error;
    /* never given back; a failure changes nothing */
    shared_map_take(arena_fd(&world->arena), world->arena.bytes, 0, &error);
}

struct place comm_place(const struct tutti_comm *comm, const void *ptr, size_t bytes)
{
    const struct world *world = comm->world;
    uintptr_t at = (uintptr_t)ptr, base = (uintptr_t)world->arena.base,
              other = (uintptr_t)load_acquire64(&world->readonly_base);
    struct place place = { 0, 0, 0 };
    uint64_t offset;
    if (inside(at, bytes, base, world->arena.bytes))
        return (struct place){ at - base, 0, bytes };
    if (inside(at, bytes, other, world->arena.bytes))
        return (struct place){ at - other, 0, bytes };
    if (registered_find(world->registered, ptr, bytes, &offset, &place.lo, &place.hi))
        place.at = offset - place.lo;
    return place;
}
