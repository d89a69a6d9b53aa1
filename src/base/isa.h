/* Job: find which instruction sets this processor and its system can run.
 * Owns: nothing.
 * Never: chooses one (fold.c, copy.c).
 *
 * Asked by cpuid, which costs some 3 us a question in a virtual machine: not for every operation.
 * The compiler's own query (__builtin_cpu_supports) would ask ten of them in a constructor, at the
 * start of each program that is linked with us. */
#ifndef BASE_ISA_H
#define BASE_ISA_H

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

/* What the system saves of the wide registers, bits of xcr0: of AVX, and of AVX-512 as well. */
enum { ISA_SAVES_AVX = 0x06, ISA_SAVES_AVX512 = 0xe6 };

/* bits: of EBX of leaf 7; they and F16C are there, and the system saves these registers. */
static inline int isa_has(unsigned bits, unsigned saves)
{
    const unsigned basic = bit_OSXSAVE | bit_AVX | bit_F16C;
    unsigned a, b, c = 0, d, saved, high;
    if (__get_cpuid_max(0, NULL) < 7)
        return 0;
    __cpuid(1, a, b, c, d);
    if ((c & basic) != basic)
        return 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    __cpuid_count(7, 0, a, b, c, d);
    return (saved & saves) == saves && (b & bits) == bits;
}

static inline int isa_has_avx2(void) { return isa_has(bit_AVX2, ISA_SAVES_AVX); }

static inline int isa_has_avx512(void)
{
    return isa_has(bit_AVX2 | bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL,
                   ISA_SAVES_AVX512);
}

/* 0: not AMD. */
enum { ISA_ZEN5 = 0x1a };
static inline unsigned isa_amd_family(void)
{
    enum { AUTH = 0x68747541, ENTI = 0x69746e65, CAMD = 0x444d4163 };
    unsigned a, b, c, d, family;
    __cpuid(0, a, b, c, d);
    if (b != AUTH || d != ENTI || c != CAMD)
        return 0;
    __cpuid(1, a, b, c, d);
    family = a >> 8 & 15;
    return family == 15 ? family + (a >> 20 & 255) : family;
}

#else

static inline int isa_has_avx2(void) { return 0; }
static inline int isa_has_avx512(void) { return 0; }

#endif

#endif
