/* Job: stop glibc from giving the end of the heap back again and again, where it does.
 * Owns: what this process has seen of its heap's end.
 * Never: changes a bound of malloc that its user has set. */
#ifndef TUTTI_MPI_TRIM_H
#define TUTTI_MPI_TRIM_H

#include "base/atomic.h"
#include "os/host_memory.h"

struct trim { shared64 end; shared32 seen; };
extern struct trim trim;

void trim_moved(uintptr_t end);

/* After every collective that went through tutti: below 1 ns. */
static inline void trim_look(void)
{
    /* relaxed: a hint; threads that look at once may miss a move, or count one too many */
    if (&__curbrk && (uintptr_t)__curbrk != load_relaxed64(&trim.end))
        trim_moved((uintptr_t)__curbrk);
}

#endif
