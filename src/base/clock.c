/* A calibration without a wait: two points, as far apart as the arena is old, and a straight line
 * through them. One point costs six reads of the clock and three of the counter (about 150 ns); one
 * conversion a 128-bit multiplication and division. The error of the line is that of its two
 * points, some tens of nanoseconds over the whole life of the arena. */
#include "base/clock.h"

__extension__ typedef unsigned __int128 wide;

enum { CLOCK_TRIES = 3 };

/* An interrupt between the two reads of the clock makes a wide gap: of several tries the narrowest
 * counts. */
struct clock_point clock_now(void)
{
    struct clock_point best = { 0, 0 };
    uint64_t best_gap = UINT64_MAX;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        uint64_t before = clock_ns();
        uint64_t tick = clock_tick();
        uint64_t gap = clock_ns() - before;
        if (gap < best_gap) {
            best_gap = gap;
            best = (struct clock_point){ tick, before + gap / 2 };
        }
    }
    return best;
}

uint64_t clock_tick_ns(uint64_t tick, struct clock_point then, struct clock_point now)
{
    if (tick <= then.tick || now.tick <= then.tick || now.ns <= then.ns)
        return then.ns;
    wide passed = (wide)(tick - then.tick) * (now.ns - then.ns) / (now.tick - then.tick);
    wide at = passed + then.ns;
    return at > UINT64_MAX ? UINT64_MAX : (uint64_t)at;
}

double clock_rate(struct clock_point then, struct clock_point now)
{
    const double least = 0.01, most = 10;
    if (now.ns <= then.ns || now.tick <= then.tick)
        return 1;
    double rate = (double)(now.tick - then.tick) / (double)(now.ns - then.ns);
    return rate < least ? least : rate > most ? most : rate;
}
