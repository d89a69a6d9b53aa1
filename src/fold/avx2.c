/* x86-64 with AVX2 and F16C: registers of 32 bytes; instructions widen and narrow halves. The
 * compiler gets no fused multiply-add, since a fold must never fuse. This is compiled for a
 * processor that the machine may not have: fold.c checks before anything here runs. */
#include "fold/table.h"

#if defined(__AVX2__) && defined(__F16C__)

#include <immintrin.h>

#define LANES_BYTES 32
#include "fold/tail.h"
#include "fold/vector.h"
#include "fold/fp8.h"

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
    __m256i rounded = (__m256i)vector_round_bf16(v);
    __m256i packed = _mm256_packus_epi32(rounded, rounded); /* within each half of the register */
    _mm_storeu_si128((void *)to, _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x8)));
}

/* E5M2 is the top byte of an f16. E4M3 has an exponent one bit shorter: its magnitude goes one bit
 * lower, its sign to the top. */
static vec f8e5m2_load(const uint8_t *from)
{
    __m128i bytes = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)from));
    return (vec)_mm256_cvtph_ps(_mm_slli_epi16(bytes, 8));
}

static vec f8e4m3_load(const uint8_t *from)
{
    __m128i bytes = _mm_slli_epi16(_mm_cvtepi8_epi16(_mm_loadl_epi64((const void *)from)), 7);
    return fp8_from_f16_e4m3(
        (vec)_mm256_cvtph_ps(_mm_and_si128(bytes, _mm_set1_epi16((short)0xbfff))));
}

static void bytes_store(uint8_t *to, vec v)
{
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)v),
                                      _mm256_extracti128_si256((__m256i)v, 1));
    _mm_storel_epi64((void *)to, _mm_packus_epi16(packed, packed));
}

static vec pair_even_32(vec v) { return (vec)_mm256_moveldup_ps((__m256)v); }
static vec pair_odd_32(vec v) { return (vec)_mm256_movehdup_ps((__m256)v); }
static vec pair_swap_32(vec v) { return (vec)_mm256_permute_ps((__m256)v, 0xb1); }
static vec pair_even_64(vec v) { return (vec)_mm256_movedup_pd((__m256d)v); }
static vec pair_odd_64(vec v) { return (vec)_mm256_permute_pd((__m256d)v, 0xf); }
static vec pair_swap_64(vec v) { return (vec)_mm256_permute_pd((__m256d)v, 0x5); }

#define KERNELS_TABLE table_avx2
#define KERNELS_ISA "avx2"
#include "fold/kernels.h"

#else
const struct table table_avx2 = {.isa = "avx2"};
#endif
