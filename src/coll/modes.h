/* Job: arithmetic under the default floating-point modes, whatever the caller has set: a rank that runs with flush-to-zero would otherwise get 0
 *      where the others get 6e-39. Looking costs 2 ns.
 * Owns: the modes of the calling thread, from enter to leave.
 * Never: arithmetic. */
#ifndef TUTTI_COLL_MODES_H
#define TUTTI_COLL_MODES_H

#include <stdbool.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { MODES_DEFAULT = 0x1f80, MODES_MASK = 0xffc0 };        /* all exceptions masked, round to nearest, no FTZ, no DAZ; flags ignored */
static inline bool modes_usual(void) { return (_mm_getcsr() & MODES_MASK) == MODES_DEFAULT; }

static inline unsigned modes_enter(void)
{
    unsigned modes = _mm_getcsr();
    if ((modes & MODES_MASK) != MODES_DEFAULT)
        _mm_setcsr(MODES_DEFAULT);
    return modes;
}

static inline void modes_leave(unsigned modes)
{
    if ((modes & MODES_MASK) != MODES_DEFAULT)
        _mm_setcsr(modes);
}
#else
#include <fenv.h>
static inline bool modes_usual(void) { return fegetround() == FE_TONEAREST; }

static inline unsigned modes_enter(void)
{
    int round = fegetround();
    if (round != FE_TONEAREST)
        fesetround(FE_TONEAREST);
    return (unsigned)round;
}

static inline void modes_leave(unsigned modes)
{
    if ((int)modes != FE_TONEAREST)
        fesetround((int)modes);
}
#endif

#endif
