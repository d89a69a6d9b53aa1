/* A status says SIGKILL, and not by whom. The kernel counts whom it has killed; who makes the arena
 * notes that number, and a parent that has seen such an end raises it by one. A kill by hand right
 * after one by the kernel is told wrongly if there is no launcher to account for the first.
 * Cost: two small files, after a SIGKILL. */
#include "arena/cause.h"

#include "os/oom.h"

#include <signal.h>
#include <sys/wait.h>

void cause_begin(const struct arena *arena)
{
    store_relaxed64(&arena->join->oom_known, oom_kills()); /* relaxed: nobody has the arena yet */
}

int cause_of(const struct arena *arena, int status)
{
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        return status;
    bool oom = oom_kills() > load_acquire64(&arena->join->oom_known);
    return oom ? status | PROCESS_END_OOM : status;
}

void cause_note(const struct arena *arena, uint32_t rank, int status)
{
    store_release32(&arena->seats[rank].status, (uint32_t)status << 1 | 1);
    if (status & PROCESS_END_OOM) {
        /* relaxed: the parent's own word by now */
        uint64_t known = load_relaxed64(&arena->join->oom_known);
        store_release64(&arena->join->oom_known, known + 1);
    }
}
