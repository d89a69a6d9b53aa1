/* The kernels that every machine can run: registers of 16 bytes, which the compiler maps to the
 * target's base (SSE2 on x86-64, scalars if it has no vectors). half.h converts halves one element
 * at a time; fp8.h converts 8-bit floats four at a time. The other sets are tested against this
 * one, bit for bit. In cache it has about a third of avx512's speed. Halves cost a few ns per
 * element, 8-bit floats about one. */
#define LANES_BYTES 16
#include "fold/tail.h"
#include "fold/half.h"
#include "fold/vector.h"
#include "fold/fp8.h"

static vec plain_widen(const uint8_t *from, float (*widen)(uint16_t))
{
    uint16_t half[LANES_BYTES / 4];
    float    wide[LANES_BYTES / 4];
    memcpy(half, from, sizeof half);
    for (size_t i = 0; i < LANES_BYTES / 4; i++)
        wide[i] = widen(half[i]);
    return vector_load((const uint8_t *)wide);
}

static void plain_narrow(uint8_t *to, vec v, uint16_t (*narrow)(float))
{
    uint16_t half[LANES_BYTES / 4];
    float    wide[LANES_BYTES / 4];
    vector_store((uint8_t *)wide, v);
    for (size_t i = 0; i < LANES_BYTES / 4; i++)
        half[i] = narrow(wide[i]);
    memcpy(to, half, sizeof half);
}

static vec  f16_load(const uint8_t *from) { return plain_widen(from, half_f32_from_f16); }
static void f16_store(uint8_t *to, vec v) { plain_narrow(to, v, half_f16_from_f32); }
static vec  bf16_load(const uint8_t *from) { return plain_widen(from, half_f32_from_bf16); }
static void bf16_store(uint8_t *to, vec v) { plain_narrow(to, v, half_bf16_from_f32); }

static vec plain_bytes(const uint8_t *from)
{
    return (vec)(u32v){from[0], from[1], from[2], from[3]};
}

static vec f8e4m3_load(const uint8_t *from) { return fp8_wide_e4m3(plain_bytes(from)); }
static vec f8e5m2_load(const uint8_t *from) { return fp8_wide_e5m2(plain_bytes(from)); }

static void bytes_store(uint8_t *to, vec v)
{
    u32v bytes = (u32v)v;
    for (size_t i = 0; i < LANES_BYTES / 4; i++)
        to[i] = (uint8_t)bytes[i];
}

static vec pair_even_32(vec v) { u32v x = (u32v)v; return (vec)(u32v){x[0], x[0], x[2], x[2]}; }
static vec pair_odd_32(vec v) { u32v x = (u32v)v; return (vec)(u32v){x[1], x[1], x[3], x[3]}; }
static vec pair_swap_32(vec v) { u32v x = (u32v)v; return (vec)(u32v){x[1], x[0], x[3], x[2]}; }
static vec pair_even_64(vec v) { u64v x = (u64v)v; return (vec)(u64v){x[0], x[0]}; }
static vec pair_odd_64(vec v) { u64v x = (u64v)v; return (vec)(u64v){x[1], x[1]}; }
static vec pair_swap_64(vec v) { u64v x = (u64v)v; return (vec)(u64v){x[1], x[0]}; }

#define KERNELS_TABLE table_plain
#define KERNELS_ISA "plain"
#include "fold/kernels.h"
