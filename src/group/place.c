/* Memory of tutti_alloc and tutti_view lies in the arena's own mapping: two comparisons. */
#include "group/place.h"

struct place comm_place(const struct tutti_comm *comm, const void *ptr, size_t bytes)
{
    const struct arena *arena = &comm->world->arena;
    uintptr_t at = (uintptr_t)ptr, base = (uintptr_t)arena->base;
    if (at >= base && at - base <= arena->bytes && bytes <= arena->bytes - (at - base))
        return (struct place){ at - base, 0, bytes };
    return (struct place){ 0, 0, 0 };
}
