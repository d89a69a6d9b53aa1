/* x86-64 with AVX-512 F, BW, DQ and VL: registers of 64 bytes, as large as a cache line. Masked
 * loads and stores touch exactly the bytes of a short tail. This is compiled for a processor that
 * the machine may not have: fold.c checks before anything here runs. */
#include "fold/table.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include <immintrin.h>

#define LANES_BYTES 64
#include "fold/vector.h"
#include "fold/fp8.h"

static vec f16_load(const uint8_t *from)
{
    return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)from));
}

/* The mask takes every lane. The form without a mask is a macro that gcc warns about at -O0. */
static void f16_store(uint8_t *to, vec v)
{
    __m256i all = _mm512_maskz_cvtps_ph((__mmask16)0xffff, (__m512)v, _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256((void *)to, all);
}

static vec bf16_load(const uint8_t *from)
{
    return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)from)),
                                  16);
}

/* Not vcvtneps2bf16: it flushes denormals. */
static void bf16_store(uint8_t *to, vec v)
{
    _mm256_storeu_si256((void *)to, _mm512_cvtepi32_epi16((__m512i)vector_round_bf16(v)));
}

static vec tail_load(const uint8_t *from, size_t bytes)
{
    return (vec)_mm512_maskz_loadu_epi8((UINT64_C(1) << bytes) - 1, from);
}

static void tail_store(uint8_t *to, const uint8_t *from, size_t bytes)
{
    _mm512_mask_storeu_epi8(to, (UINT64_C(1) << bytes) - 1, (__m512i)vector_load(from));
}

/* E5M2 is the top byte of an f16. E4M3 has an exponent one bit shorter: its magnitude goes one bit
 * lower, its sign to the top. */
static vec f8e5m2_load(const uint8_t *from)
{
    __m256i bytes = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)from));
    return (vec)_mm512_cvtph_ps(_mm256_slli_epi16(bytes, 8));
}

static vec f8e4m3_load(const uint8_t *from)
{
    __m256i bytes = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)from)), 7);
    return fp8_from_f16_e4m3(
        (vec)_mm512_cvtph_ps(_mm256_and_si256(bytes, _mm256_set1_epi16((short)0xbfff))));
}

static void bytes_store(uint8_t *to, vec v)
{
    _mm_storeu_si128((void *)to, _mm512_cvtepi32_epi8((__m512i)v));
}

static vec pair_even_32(vec v) { return (vec)_mm512_moveldup_ps((__m512)v); }
static vec pair_odd_32(vec v) { return (vec)_mm512_movehdup_ps((__m512)v); }
static vec pair_swap_32(vec v) { return (vec)_mm512_permute_ps((__m512)v, 0xb1); }
static vec pair_even_64(vec v) { return (vec)_mm512_movedup_pd((__m512d)v); }
static vec pair_odd_64(vec v) { return (vec)_mm512_permute_pd((__m512d)v, 0xff); }
static vec pair_swap_64(vec v) { return (vec)_mm512_permute_pd((__m512d)v, 0x55); }

#define KERNELS_TABLE table_avx512
#define KERNELS_ISA "avx512"
#include "fold/kernels.h"

#else
const struct table table_avx512 = {.isa = "avx512"};
#endif
