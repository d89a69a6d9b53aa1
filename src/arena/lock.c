/* The lock over the directories is robust: a holder's death passes it on. The next holder has
 * nothing to repair, because one last store makes each change valid; it only marks the lock as
 * consistent. Cost: that of robust.c. */
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
