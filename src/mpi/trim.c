/* glibc gives the end of the heap back to the kernel as soon as 128 KiB of it are free. A program
 * that takes and frees such memory in each step faults it in each time; where the MPI makes the
 * calls, blocks of its own often lie at the end and hold it. From a freed mapping of 4 MiB glibc
 * learns to keep 8 MiB, unless its user has set the bounds; any other malloc learns nothing. From
 * then on blocks of up to 4 MiB come from the heap, too, which is slower for some programs: so the
 * end must have been seen to go down some times. */
#define TUTTI_NO_SITES
#include "mpi/trim.h"

#include <stdlib.h>

enum { TRIMS = 8, BLOCKS = 4 };
struct trim trim;

/* A block out of the heap's free memory teaches nothing: the next one may be a mapping. */
static void learn(void)
{
    void *block[BLOCKS];
    int n = 0;
    do
        block[n] = malloc((size_t)4 << 20);
    while ((uintptr_t)block[n++] < (uintptr_t)__curbrk && n < BLOCKS);
    __asm__ volatile("" : : "r"(block) : "memory");   /* or the compiler leaves out all of it */
    while (n)
        free(block[--n]);
}

void trim_moved(uintptr_t end)
{
    /* relaxed: as in trim_look */
    uint64_t before = load_relaxed64(&trim.end);
    store_relaxed64(&trim.end, end);                         /* relaxed: as in trim_look */
    if (end < before && fetch_add32(&trim.seen, 1) + 1 == TRIMS)
        learn();
}
