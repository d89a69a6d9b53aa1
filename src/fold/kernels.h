/* Job:   define all kernels of one instruction set, and their table.
 * Owns:  nothing.
 * Never: uses instructions; walks over memory (loop.h).
 *
 * The including file has defined LANES_BYTES, included vector.h, written what loop.h and complex.h
 * need, and
 *        f16_load, f16_store, bf16_load, bf16_store           a register of f32 from and to
 *                                                             LANES_BYTES / 4 halves
 *        f8e4m3_load, f8e5m2_load                             a register of f32 from LANES_BYTES /
 *                                                             4 8-bit floats
 *        bytes_store                                          the low byte of each lane of 32 bits
 *                                                             to LANES_BYTES / 4 bytes
 *        KERNELS_TABLE, KERNELS_ISA                           the table's name, and its instruction
 *                                                             set */
#ifndef FOLD_KERNELS_H
#define FOLD_KERNELS_H

#include "fold/average.h"
#include "fold/vector.h"
#include "fold/complex.h"
#include "fold/fp8.h"
#include "fold/table.h"
#include "fold/loop.h"

static inline void f8e4m3_store(uint8_t *to, vec v) { bytes_store(to, fp8_round_e4m3(v)); }
static inline void f8e5m2_store(uint8_t *to, vec v) { bytes_store(to, fp8_round_e5m2(v)); }

#define KERNEL(name, size, unit, load, step, finish, store)                                        \
    static void kernel_##name(void *dst, const void *const src[], int n, size_t count,             \
                              int divisor)                                                         \
    {                                                                                              \
        loop_all(dst, src, n, count, (struct given){divisor, NULL, NULL},                          \
                 (struct fold_shape){size, unit, load, step, finish, store, NULL});                \
    }

#define KERNEL_SCALED(name, size, unit, load, scale, step, finish, store)                          \
    static void scaled_##name(void *dst, const void *const src[], const void *const factor[],      \
                              int n, size_t count)                                                 \
    {                                                                                              \
        loop_scaled(dst, src, factor, n, count, (struct fold_shape){size, unit, load, step,        \
                                                                    finish, store, scale});        \
    }

/* Complex operations that treat the parts separately: twice as many parts. */
#define KERNEL_PARTS(name, parts)                                                                  \
    static void kernel_##name(void *dst, const void *const src[], int n, size_t count,             \
                              int divisor)                                                         \
    {                                                                                              \
        kernel_##parts(dst, src, n, 2 * count, divisor);                                           \
    }

#define KERNEL_PLAIN(name, size, step) KERNEL(name, size, LANES_BYTES, vector_load, step, \
                                              vector_as_is, vector_store)

#define KERNEL_TRUTH(name, bits, step)                                                             \
    KERNEL(name, bits / 8, LANES_BYTES, vector_truth_##bits, step, vector_one_##bits,              \
           vector_store)

#define KERNELS_UNSIGNED(bits)                                                                     \
    KERNEL_PLAIN(sum_##bits, bits / 8, vector_sum_##bits)                                          \
    KERNEL_PLAIN(prod_##bits, bits / 8, vector_prod_##bits)                                        \
    KERNEL_PLAIN(band_##bits, bits / 8, vector_and)                                                \
    KERNEL_PLAIN(bor_##bits, bits / 8, vector_or)                                                  \
    KERNEL_PLAIN(bxor_##bits, bits / 8, vector_xor)                                                \
    KERNEL_TRUTH(land_##bits, bits, vector_and)                                                    \
    KERNEL_TRUTH(lor_##bits, bits, vector_or)                                                      \
    KERNEL_TRUTH(lxor_##bits, bits, vector_xor)                                                    \
    KERNEL_PLAIN(min_u##bits, bits / 8, vector_min_u##bits)                                        \
    KERNEL_PLAIN(max_u##bits, bits / 8, vector_max_u##bits)                                        \
    KERNEL_PLAIN(min_i##bits, bits / 8, vector_min_i##bits)                                        \
    KERNEL_PLAIN(max_i##bits, bits / 8, vector_max_i##bits)                                        \
    KERNEL_SCALED(bits, bits / 8, LANES_BYTES, vector_load, vector_prod_##bits, vector_sum_##bits, \
                  vector_as_is, vector_store)

/* acc: the type accumulated in. A half has half a register of storage per register of accumulators,
 * and so on. */
#define KERNELS_FLOAT(type, size, acc, unit, load, store)                                          \
    KERNEL(sum_##type, size, unit, load, vector_sum_##acc, vector_finish_##acc, store)             \
    KERNEL(prod_##type, size, unit, load, vector_prod_##acc, vector_finish_##acc, store)           \
    KERNEL(avg_##type, size, unit, load, vector_sum_##acc, vector_average_##acc, store)            \
    KERNEL_SCALED(type, size, unit, load, vector_prod_##acc, vector_sum_##acc,                     \
                  vector_finish_##acc, store)

#define KERNELS_COMPLEX(type, size, part)                                                          \
    KERNEL_PARTS(sum_##type, sum_##part)                                                           \
    KERNEL_PARTS(avg_##type, avg_##part)                                                           \
    KERNEL(prod_##type, size, LANES_BYTES, vector_load, complex_prod_##type, vector_finish_##part, \
           vector_store)                                                                           \
    KERNEL_SCALED(type, size, LANES_BYTES, vector_load, complex_prod_##type, vector_sum_##part,    \
                  vector_finish_##part, vector_store)

#define KERNELS_EXTREME(type, bits) \
    KERNEL(min_##type, bits / 8, LANES_BYTES, vector_low_##type, vector_min_i##bits, \
           vector_back_##type, vector_store) \
    KERNEL(max_##type, bits / 8, LANES_BYTES, vector_high_##type, vector_max_i##bits, \
           vector_back_##type, vector_store)

/* clang-format off */
KERNELS_UNSIGNED(8)
KERNELS_UNSIGNED(16)
KERNELS_UNSIGNED(32)
KERNELS_UNSIGNED(64)
KERNELS_FLOAT(f8e4m3, 1, f32, LANES_BYTES / 4, f8e4m3_load, f8e4m3_store)
KERNELS_FLOAT(f8e5m2, 1, f32, LANES_BYTES / 4, f8e5m2_load, f8e5m2_store)
KERNELS_FLOAT(f16, 2, f32, LANES_BYTES / 2, f16_load, f16_store)
KERNELS_FLOAT(bf16, 2, f32, LANES_BYTES / 2, bf16_load, bf16_store)
KERNELS_FLOAT(f32, 4, f32, LANES_BYTES, vector_load, vector_store)
KERNELS_FLOAT(f64, 8, f64, LANES_BYTES, vector_load, vector_store)
KERNELS_COMPLEX(c64, 8, f32)
KERNELS_COMPLEX(c128, 16, f64)
KERNELS_EXTREME(f8e4m3, 8)
KERNELS_EXTREME(f8e5m2, 8)
KERNELS_EXTREME(f16, 16)
KERNELS_EXTREME(bf16, 16)
KERNELS_EXTREME(f32, 32)
KERNELS_EXTREME(f64, 64)
/* clang-format on */

#define ROW_INTEGER(type, bits)                                                                    \
    {                                                                                              \
        [TUTTI_SUM] = kernel_sum_##bits, [TUTTI_PROD] = kernel_prod_##bits,                        \
            [TUTTI_MIN] = kernel_min_##type,                                                       \
        [TUTTI_MAX] = kernel_max_##type, [TUTTI_AVG] = average_##type,                             \
            [TUTTI_BAND] = kernel_band_##bits,                                                     \
        [TUTTI_BOR] = kernel_bor_##bits, [TUTTI_BXOR] = kernel_bxor_##bits,                        \
            [TUTTI_LAND] = kernel_land_##bits,                                                     \
        [TUTTI_LOR] = kernel_lor_##bits, [TUTTI_LXOR] = kernel_lxor_##bits                         \
    }

#define ROW_FLOAT(type)                                                                            \
    {                                                                                              \
        [TUTTI_SUM] = kernel_sum_##type, [TUTTI_PROD] = kernel_prod_##type,                        \
            [TUTTI_MIN] = kernel_min_##type,                                                       \
        [TUTTI_MAX] = kernel_max_##type, [TUTTI_AVG] = kernel_avg_##type                           \
    }

#define ROW_COMPLEX(type)                                                                          \
    {                                                                                              \
        [TUTTI_SUM] = kernel_sum_##type, [TUTTI_PROD] = kernel_prod_##type,                        \
            [TUTTI_AVG] = kernel_avg_##type                                                        \
    }

/* A bool is any byte: all its operations are the logical ones of u8, which write 0 or 1. */
#define ROW_BOOL                                                                                   \
    {                                                                                              \
        [TUTTI_SUM] = kernel_lor_8, [TUTTI_MAX] = kernel_lor_8, [TUTTI_BOR] = kernel_lor_8,        \
        [TUTTI_LOR] = kernel_lor_8, [TUTTI_PROD] = kernel_land_8, [TUTTI_MIN] = kernel_land_8,     \
        [TUTTI_BAND] = kernel_land_8, [TUTTI_LAND] = kernel_land_8, [TUTTI_BXOR] = kernel_lxor_8,  \
        [TUTTI_LXOR] = kernel_lxor_8                                                               \
    }

const struct table KERNELS_TABLE = {
    .isa = KERNELS_ISA,
    .fn = {
        [TUTTI_I8] = ROW_INTEGER(i8, 8),
        [TUTTI_U8] = ROW_INTEGER(u8, 8),
        [TUTTI_I16] = ROW_INTEGER(i16, 16),
        [TUTTI_U16] = ROW_INTEGER(u16, 16),
        [TUTTI_I32] = ROW_INTEGER(i32, 32),
        [TUTTI_U32] = ROW_INTEGER(u32, 32),
        [TUTTI_I64] = ROW_INTEGER(i64, 64),
        [TUTTI_U64] = ROW_INTEGER(u64, 64),
        [TUTTI_F16] = ROW_FLOAT(f16),
        [TUTTI_BF16] = ROW_FLOAT(bf16),
        [TUTTI_F32] = ROW_FLOAT(f32),
        [TUTTI_F64] = ROW_FLOAT(f64),
        [TUTTI_BOOL] = ROW_BOOL,
        [TUTTI_C64] = ROW_COMPLEX(c64),
        [TUTTI_C128] = ROW_COMPLEX(c128),
        [TUTTI_F8E4M3] = ROW_FLOAT(f8e4m3),
        [TUTTI_F8E5M2] = ROW_FLOAT(f8e5m2),
    },
    .scaled = {
        [TUTTI_I8] = scaled_8, [TUTTI_U8] = scaled_8, [TUTTI_I16] = scaled_16,
        [TUTTI_U16] = scaled_16, [TUTTI_I32] = scaled_32, [TUTTI_U32] = scaled_32,
        [TUTTI_I64] = scaled_64, [TUTTI_U64] = scaled_64, [TUTTI_F16] = scaled_f16,
        [TUTTI_BF16] = scaled_bf16, [TUTTI_F32] = scaled_f32, [TUTTI_F64] = scaled_f64,
        [TUTTI_C64] = scaled_c64, [TUTTI_C128] = scaled_c128, [TUTTI_F8E4M3] = scaled_f8e4m3,
        [TUTTI_F8E5M2] = scaled_f8e5m2,
    },
};

#endif
