/* One function for each barrier that runs in a job of tutti: the library's, those out of the
 * textbook, the C library's. Loops of a line, so that a barrier back to back is little more than
 * the barrier. */
#include "reports/barrier_contenders.h"

#include <errno.h>

enum { NTH_FLAGS, NTH_CENTRAL, NTH_DISSEMINATION, NTH_MCS };

int barriers_tutti(struct rank *r, uint64_t times)
{
    int error = 0;
    while (times-- && error == 0)
        error = tutti_barrier(r->comm, NULL);
    return error;
}

int barriers_all_reduce(struct rank *r, uint64_t times)
{
    int error = 0;
    for (float x = 1, sum = 0; times-- && error == 0; x = 1)
        error = tutti_all_reduce(&x, &sum, 1, TUTTI_F32, TUTTI_SUM, r->comm, NULL);
    return error;
}

int barriers_exchange(struct rank *r, uint64_t times)
{
    while (times--)
        bare_exchange(r->bare, r->me, ++r->nth[NTH_FLAGS]);
    return 0;
}

int barriers_flags(struct rank *r, uint64_t times)
{
    while (times--)
        bare_flags(r->bare, r->me, r->size, ++r->nth[NTH_FLAGS], r->crowded);
    return 0;
}

int barriers_central(struct rank *r, uint64_t times)
{
    while (times--)
        bare_central(r->bare, r->size, ++r->nth[NTH_CENTRAL], r->crowded);
    return 0;
}

int barriers_dissemination(struct rank *r, uint64_t times)
{
    while (times--)
        bare_dissemination(r->bare, r->me, r->size, ++r->nth[NTH_DISSEMINATION], r->crowded);
    return 0;
}

int barriers_mcs(struct rank *r, uint64_t times)
{
    while (times--)
        bare_mcs(r->bare, r->me, r->size, ++r->nth[NTH_MCS], r->crowded);
    return 0;
}

int barriers_posix(struct rank *r, uint64_t times)
{
    while (times--)
        if (pthread_barrier_wait(&r->bare->posix) > 0)
            return -EIO;
    return 0;
}

int barriers_yields(struct rank *r, uint64_t times)
{
    while (times--)
        bare_central(r->bare, r->size, ++r->nth[NTH_CENTRAL], true);
    return 0;
}
