/* The kernels every machine can run: registers of 16 bytes, which the compiler maps to what the target's base has (SSE2 on
 * x86-64, scalars where there are none), halves converted one element at a time by half.h. It is the yardstick the other sets are
 * held against, bit for bit. In cache it has about a third of avx512's speed; halves
 * cost a few ns per element. */
#define LANES_BYTES 16
#include "fold/few.h"
#include "fold/half.h"
#include "fold/lanes.h"

static vec plain_widen(const uint8_t *from, float (*widen)(uint16_t))
{
    uint16_t half[LANES_BYTES / 4];
    float    wide[LANES_BYTES / 4];
    memcpy(half, from, sizeof half);
    for (size_t i = 0; i < LANES_BYTES / 4; i++)
        wide[i] = widen(half[i]);
    return lanes_load((const uint8_t *)wide);
}

static void plain_narrow(uint8_t *to, vec v, uint16_t (*narrow)(float))
{
    uint16_t half[LANES_BYTES / 4];
    float    wide[LANES_BYTES / 4];
    lanes_store((uint8_t *)wide, v);
    for (size_t i = 0; i < LANES_BYTES / 4; i++)
        half[i] = narrow(wide[i]);
    memcpy(to, half, sizeof half);
}

static vec  f16_load(const uint8_t *from) { return plain_widen(from, half_f32_from_f16); }
static void f16_store(uint8_t *to, vec v) { plain_narrow(to, v, half_f16_from_f32); }
static vec  bf16_load(const uint8_t *from) { return plain_widen(from, half_f32_from_bf16); }
static void bf16_store(uint8_t *to, vec v) { plain_narrow(to, v, half_bf16_from_f32); }

#define KERNELS_TABLE table_plain
#define KERNELS_ISA "plain"
#include "fold/kernels.h"
