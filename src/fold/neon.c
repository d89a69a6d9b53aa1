/* aarch64: registers of 16 bytes. NEON and its f16 conversions belong to the base, so nothing is
 * checked. */
#include "fold/table.h"

#if defined(__aarch64__) && defined(__ARM_NEON)

#include <arm_neon.h>

#define LANES_BYTES 16
#include "fold/tail.h"
#include "fold/vector.h"
#include "fold/fp8.h"

static vec f16_load(const uint8_t *from)
{
    return (vec)vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(from)));
}

static void f16_store(uint8_t *to, vec v)
{
    vst1_u8(to, vreinterpret_u8_f16(vcvt_f16_f32((float32x4_t)v)));
}

static vec bf16_load(const uint8_t *from)
{
    return (vec)vshll_n_u16(vreinterpret_u16_u8(vld1_u8(from)), 16);
}

static void bf16_store(uint8_t *to, vec v)
{
    vst1_u8(to, vreinterpret_u8_u16(vmovn_u32((uint32x4_t)vector_round_bf16(v))));
}

static uint8x8_t neon_four(const uint8_t *from)
{
    uint32_t four;
    memcpy(&four, from, 4);
    return vreinterpret_u8_u32(vdup_n_u32(four));
}

/* E5M2 is the top byte of an f16. E4M3 has an exponent one bit shorter: its magnitude goes one bit
 * lower, its sign to the top. */
static vec f8e5m2_load(const uint8_t *from)
{
    uint16x4_t bytes = vget_low_u16(vshll_n_u8(neon_four(from), 8));
    return (vec)vcvt_f32_f16(vreinterpret_f16_u16(bytes));
}

static vec f8e4m3_load(const uint8_t *from)
{
    int16x4_t bytes = vget_low_s16(vshll_n_s8(vreinterpret_s8_u8(neon_four(from)), 7));
    return fp8_from_f16_e4m3(
        (vec)vcvt_f32_f16(vreinterpret_f16_s16(vand_s16(bytes, vdup_n_s16((int16_t)0xbfff)))));
}

static void bytes_store(uint8_t *to, vec v)
{
    uint16x4_t halves = vmovn_u32((uint32x4_t)v);
    uint32_t four = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(halves, halves))), 0);
    memcpy(to, &four, 4);
}

static vec pair_even_32(vec v) { return (vec)vtrn1q_f32((float32x4_t)v, (float32x4_t)v); }
static vec pair_odd_32(vec v) { return (vec)vtrn2q_f32((float32x4_t)v, (float32x4_t)v); }
static vec pair_swap_32(vec v) { return (vec)vrev64q_f32((float32x4_t)v); }
static vec pair_even_64(vec v) { return (vec)vdupq_laneq_f64((float64x2_t)v, 0); }
static vec pair_odd_64(vec v) { return (vec)vdupq_laneq_f64((float64x2_t)v, 1); }
static vec pair_swap_64(vec v) { return (vec)vextq_f64((float64x2_t)v, (float64x2_t)v, 1); }

#define KERNELS_TABLE table_neon
#define KERNELS_ISA "neon"
#include "fold/kernels.h"

#else
const struct table table_neon = {.isa = "neon"};
#endif
