/* One function for each barrier that runs in a job of tutti: the library's, those out of the
 * textbook, the C library's. Loops of a line, so that a barrier back to back is little more than
 * the barrier. */
#include "reports/barrier_contenders.h"

#include "base/backoff.h"
#include "base/clock.h"

#include <errno.h>

enum { NTH_FLAGS, NTH_CENTRAL, NTH_DISSEMINATION, NTH_MCS, NTH_WAITS };

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

/* Stores and looks as the library does (engine/fastpath.h, watch_soon): two lines of a rank by
 * turns, a store with a fence, a delay before the first look that is found by the same trials, a
 * few short steps, then pauses, and the next line is fetched for writing. There is nothing else. */
int barriers_exchange_waits(struct rank *r, uint64_t times)
{
    enum { USUAL = 32, SOON = 4, SOON_STEPS = 16 };
    static struct backoff delay;
    while (times--) {
        uint64_t nth = ++r->nth[NTH_WAITS];
        shared64 *mine = &r->bare->turn[nth & 1][r->me].word,
                 *theirs = &r->bare->turn[nth & 1][!r->me].word;
        store_fence64(mine, nth);
        const void *at = (const char *)theirs + cpu_later(backoff_steps(&delay, USUAL));
        uint64_t there = load_acquire64((const shared64 *)at);
        for (int i = 0; there < nth; i++) {
            if (i < SOON)
                cpu_steps(SOON_STEPS);
            else
                cpu_pause();
            there = load_acquire64(theirs);
        }
        cpu_own_all(&r->bare->turn[!(nth & 1)][r->me], sizeof(struct bare_line));
        if (backoff_due(nth))
            backoff_block(&delay, nth, clock_tick(), nth);
    }
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
