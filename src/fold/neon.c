/* aarch64: registers of 16 bytes; NEON and its f16 conversions belong to the base, so there is nothing to look for. */
#include "fold/table.h"

#if defined(__aarch64__) && defined(__ARM_NEON)

#include <arm_neon.h>

#define LANES_BYTES 16
#include "fold/few.h"
#include "fold/lanes.h"

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
    vst1_u8(to, vreinterpret_u8_u16(vmovn_u32((uint32x4_t)lanes_round_bf16(v))));
}

#define KERNELS_TABLE table_neon
#define KERNELS_ISA "neon"
#include "fold/kernels.h"

#else
const struct table table_neon = {.isa = "neon"};
#endif
