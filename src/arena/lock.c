/* The lock over the directories: robust, so that a holder's death passes it on. Whoever gets it
 * then finds nothing to repair, because each change under it is made valid by one last store; it
 * only says that the lock is whole again. */
#include "arena/arena.h"
#include "arena/robust.h"

#include <errno.h>

int arena_lock(const struct arena *arena, uint64_t timeout_ns)
{
    int error = robust_lock(&arena->join->lock, timeout_ns);
    return error == -EOWNERDEAD ? robust_mend(&arena->join->lock) : error;
}

void arena_unlock(const struct arena *arena)
{
    robust_unlock(&arena->join->lock);
}
