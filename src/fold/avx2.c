/* x86-64 with AVX2 and F16C: registers of 32 bytes; halves are widened and narrowed by instructions. Fused multiply-add is not
 * asked for: folding never may fuse. Compiled for a processor the machine may not have; fold.c looks before anything here runs. */
#include "fold/table.h"

#if defined(__AVX2__) && defined(__F16C__)

#include <immintrin.h>

#define LANES_BYTES 32
#include "fold/few.h"
#include "fold/lanes.h"

static vec f16_load(const uint8_t *from)
{
    return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const void *)from));
}

static void f16_store(uint8_t *to, vec v)
{
    _mm_storeu_si128((void *)to, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}

static vec bf16_load(const uint8_t *from)
{
    return (vec)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)from)), 16);
}

static void bf16_store(uint8_t *to, vec v)
{
    __m256i rounded = (__m256i)lanes_round_bf16(v);
    __m256i packed = _mm256_packus_epi32(rounded, rounded); /* within each half of the register */
    _mm_storeu_si128((void *)to, _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x8)));
}

#define KERNELS_TABLE table_avx2
#define KERNELS_ISA "avx2"
#include "fold/kernels.h"

#else
const struct table table_avx2 = {.isa = "avx2"};
#endif
