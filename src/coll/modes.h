/* Job: set the default floating-point modes for arithmetic, whatever the caller has set: a rank
 *      with flush-to-zero would else get 0 where others get 6e-39.
 * Owns: the modes of the calling thread, from enter to leave.
 * Never: computes.
 *
 * To read the modes serialises the processor: it takes 2 ns alone, and 15 to 20 ns after a wait or
 * before an arrival, where it delays all else. So an operation with a wait reads them between
 * arrival and wait, where it costs nothing: modes_usual, then modes_enter_as. */
#ifndef TUTTI_COLL_MODES_H
#define TUTTI_COLL_MODES_H

#include <stdbool.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
/* All exceptions masked, round to nearest, no FTZ, no DAZ; flags ignored. */
enum { MODES_DEFAULT = 0x1f80, MODES_MASK = 0xffc0, MODES_USUAL = MODES_DEFAULT };
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
#elif defined(__aarch64__)
/* Of FPCR: traps, FZ16, rounding, FZ, DN, AHP, and FIZ, AH, NEP of later processors: 0 is the
 * default of all. */
enum { MODES_DEFAULT = 0, MODES_MASK = 0x07c8ff07, MODES_USUAL = MODES_DEFAULT };

static inline unsigned modes_get(void)
{
    unsigned long modes;
    __asm__ volatile("mrs %0, fpcr" : "=r"(modes));
    return (unsigned)modes;
}

static inline void modes_set(unsigned modes)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((unsigned long)modes));
}

static inline bool modes_usual(void) { return (modes_get() & MODES_MASK) == MODES_DEFAULT; }

static inline unsigned modes_enter(void)
{
    unsigned modes = modes_get();
    if ((modes & MODES_MASK) != MODES_DEFAULT)
        modes_set(modes & ~(unsigned)MODES_MASK);
    return modes;
}

static inline void modes_leave(unsigned modes)
{
    if ((modes & MODES_MASK) != MODES_DEFAULT)
        modes_set(modes);
}
#else
#include <fenv.h>
enum { MODES_USUAL = FE_TONEAREST };
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

/* usual: the modes are already found to be the usual ones. */
static inline unsigned modes_enter_as(bool usual)
{
    return usual ? (unsigned)MODES_USUAL : modes_enter();
}

#endif
