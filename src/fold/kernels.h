/* Job:   the walk of a kernel over memory, and the table of all kernels of one instruction set.
 * Owns:  nothing.
 * Never: instructions. The including file has defined LANES_BYTES, included lanes.h and written
 *        f16_load, f16_store, bf16_load, bf16_store   a register of f32 from and to LANES_BYTES / 4 halves
 *        few_load, few_store                          fewer bytes than a register from and to memory, touching no byte beside them
 *        KERNELS_TABLE, KERNELS_ISA                   what the table is called, and its instruction set
 *
 * The walk. A unit is what one register carries: LANES_BYTES of storage, or half of that where halves are widened. For each tile
 * of four units it reads every contribution once, in order, into four registers, and writes the result once: accumulators never
 * touch memory, so a half is never rounded on the way. Reads and writes are n + 1 per element, each line is used up at once.
 * Four registers hide the latency of one addition behind three others.
 *
 * The tail. Elements after the last whole unit belong to a last unit that overlaps the one before. It is folded first, while dst,
 * which may be one of the contributions, is still as it was, and written last: the overlap gets the same bits twice. Less than one
 * unit in all goes through a register-sized buffer. So no element ever takes another path of arithmetic than its neighbours. */
#ifndef FOLD_KERNELS_H
#define FOLD_KERNELS_H

#include "fold/average.h"
#include "fold/lanes.h"
#include "fold/table.h"

/* Constants where it is inlined, which is what makes one walk into a tight loop per kernel. */
struct shape {
    size_t unit; /* bytes of storage per register */
    vec (*load)(const uint8_t *from);
    vec (*step)(vec acc, vec next);
    vec (*finish)(vec acc, int divisor);
    void (*store)(uint8_t *to, vec v);
};

#define KERNELS_INLINE static inline __attribute__((always_inline))

KERNELS_INLINE vec kernels_unit(const void *const src[], int n, size_t at, int divisor, struct shape s)
{
    vec acc = s.load((const uint8_t *)src[0] + at);
    for (int r = 1; r < n; r++)
        acc = s.step(acc, s.load((const uint8_t *)src[r] + at));
    return s.finish(acc, divisor);
}

KERNELS_INLINE void kernels_tile(uint8_t *to, const void *const src[], int n, size_t at, int divisor, struct shape s)
{
    const uint8_t *from = (const uint8_t *)src[0] + at;
    vec a = s.load(from), b = s.load(from + s.unit), c = s.load(from + 2 * s.unit), d = s.load(from + 3 * s.unit);
    for (int r = 1; r < n; r++) {
        from = (const uint8_t *)src[r] + at;
        a = s.step(a, s.load(from));
        b = s.step(b, s.load(from + s.unit));
        c = s.step(c, s.load(from + 2 * s.unit));
        d = s.step(d, s.load(from + 3 * s.unit));
    }
    s.store(to + at, s.finish(a, divisor));
    s.store(to + at + s.unit, s.finish(b, divisor));
    s.store(to + at + 2 * s.unit, s.finish(c, divisor));
    s.store(to + at + 3 * s.unit, s.finish(d, divisor));
}

KERNELS_INLINE vec kernels_load_few(const void *from, size_t bytes, struct shape s)
{
    uint8_t buffer[LANES_BYTES];
    lanes_store(buffer, few_load(from, bytes));
    return s.load(buffer);
}

KERNELS_INLINE void kernels_few(uint8_t *to, const void *const src[], int n, size_t bytes, int divisor, struct shape s)
{
    vec acc = kernels_load_few(src[0], bytes, s);
    for (int r = 1; r < n; r++)
        acc = s.step(acc, kernels_load_few(src[r], bytes, s));
    uint8_t buffer[LANES_BYTES];
    s.store(buffer, s.finish(acc, divisor));
    few_store(to, buffer, bytes);
}

KERNELS_INLINE void kernels_span(uint8_t *to, const void *const src[], int n, size_t bytes, int divisor, struct shape s)
{
    size_t at = 0;
    vec    last = {0};
    if (bytes % s.unit != 0)
        last = kernels_unit(src, n, bytes - s.unit, divisor, s);
    for (; bytes - at >= 4 * s.unit; at += 4 * s.unit)
        kernels_tile(to, src, n, at, divisor, s);
    for (; bytes - at >= s.unit; at += s.unit)
        s.store(to + at, kernels_unit(src, n, at, divisor, s));
    if (at < bytes)
        s.store(to + bytes - s.unit, last);
}

/* Two contributions have a walk of their own: its pointers stay in registers. */
KERNELS_INLINE void kernels_walk(void *dst, const void *const src[], int n, size_t bytes, int divisor, struct shape s)
{
    const void *const two[2] = {src[0], src[n > 1]};
    if (bytes == 0)
        return;
    if (bytes < s.unit)
        kernels_few(dst, src, n, bytes, divisor, s);
    else if (n == 2)
        kernels_span(dst, two, 2, bytes, divisor, s);
    else
        kernels_span(dst, src, n, bytes, divisor, s);
}

#define KERNEL(name, size, unit, load, step, finish, store)                                                            \
    static void kernel_##name(void *dst, const void *const src[], int n, size_t count, int divisor)                    \
    {                                                                                                                  \
        kernels_walk(dst, src, n, count * (size), divisor, (struct shape){unit, load, step, finish, store});           \
    }

#define KERNEL_PLAIN(name, size, step) KERNEL(name, size, LANES_BYTES, lanes_load, step, lanes_as_is, lanes_store)

#define KERNEL_TRUTH(name, bits, step)                                                                                 \
    KERNEL(name, bits / 8, LANES_BYTES, lanes_truth_##bits, step, lanes_one_##bits, lanes_store)

#define KERNELS_UNSIGNED(bits)                                                                                         \
    KERNEL_PLAIN(sum_##bits, bits / 8, lanes_sum_##bits)                                                               \
    KERNEL_PLAIN(prod_##bits, bits / 8, lanes_prod_##bits)                                                             \
    KERNEL_PLAIN(band_##bits, bits / 8, lanes_and)                                                                     \
    KERNEL_PLAIN(bor_##bits, bits / 8, lanes_or)                                                                       \
    KERNEL_PLAIN(bxor_##bits, bits / 8, lanes_xor)                                                                     \
    KERNEL_TRUTH(land_##bits, bits, lanes_and)                                                                         \
    KERNEL_TRUTH(lor_##bits, bits, lanes_or)                                                                           \
    KERNEL_TRUTH(lxor_##bits, bits, lanes_xor)                                                                         \
    KERNEL_PLAIN(min_u##bits, bits / 8, lanes_min_u##bits)                                                             \
    KERNEL_PLAIN(max_u##bits, bits / 8, lanes_max_u##bits)                                                             \
    KERNEL_PLAIN(min_i##bits, bits / 8, lanes_min_i##bits)                                                             \
    KERNEL_PLAIN(max_i##bits, bits / 8, lanes_max_i##bits)

/* acc: the type accumulated in; a half has half a register of storage per register of accumulators. */
#define KERNELS_FLOAT(type, size, acc, unit, load, store)                                                              \
    KERNEL(sum_##type, size, unit, load, lanes_sum_##acc, lanes_finish_##acc, store)                                   \
    KERNEL(prod_##type, size, unit, load, lanes_prod_##acc, lanes_finish_##acc, store)                                 \
    KERNEL(avg_##type, size, unit, load, lanes_sum_##acc, lanes_average_##acc, store)

#define KERNELS_EXTREME(type, bits)                                                                                    \
    KERNEL(min_##type, bits / 8, LANES_BYTES, lanes_low_##type, lanes_min_i##bits, lanes_back_##type, lanes_store)     \
    KERNEL(max_##type, bits / 8, LANES_BYTES, lanes_high_##type, lanes_max_i##bits, lanes_back_##type, lanes_store)

/* clang-format off */
KERNELS_UNSIGNED(8)
KERNELS_UNSIGNED(16)
KERNELS_UNSIGNED(32)
KERNELS_UNSIGNED(64)
KERNELS_FLOAT(f16, 2, f32, LANES_BYTES / 2, f16_load, f16_store)
KERNELS_FLOAT(bf16, 2, f32, LANES_BYTES / 2, bf16_load, bf16_store)
KERNELS_FLOAT(f32, 4, f32, LANES_BYTES, lanes_load, lanes_store)
KERNELS_FLOAT(f64, 8, f64, LANES_BYTES, lanes_load, lanes_store)
KERNELS_EXTREME(f16, 16)
KERNELS_EXTREME(bf16, 16)
KERNELS_EXTREME(f32, 32)
KERNELS_EXTREME(f64, 64)
/* clang-format on */

#define ROW_INTEGER(type, bits)                                                                                        \
    {                                                                                                                  \
        [TUTTI_SUM] = kernel_sum_##bits, [TUTTI_PROD] = kernel_prod_##bits, [TUTTI_MIN] = kernel_min_##type,           \
        [TUTTI_MAX] = kernel_max_##type, [TUTTI_AVG] = average_##type, [TUTTI_BAND] = kernel_band_##bits,              \
        [TUTTI_BOR] = kernel_bor_##bits, [TUTTI_BXOR] = kernel_bxor_##bits, [TUTTI_LAND] = kernel_land_##bits,         \
        [TUTTI_LOR] = kernel_lor_##bits, [TUTTI_LXOR] = kernel_lxor_##bits                                             \
    }

#define ROW_FLOAT(type)                                                                                                \
    {                                                                                                                  \
        [TUTTI_SUM] = kernel_sum_##type, [TUTTI_PROD] = kernel_prod_##type, [TUTTI_MIN] = kernel_min_##type,           \
        [TUTTI_MAX] = kernel_max_##type, [TUTTI_AVG] = kernel_avg_##type                                               \
    }

/* A bool is any byte: all its operations are the logical ones of u8, which write 0 or 1. */
#define ROW_BOOL                                                                                                       \
    {                                                                                                                  \
        [TUTTI_SUM] = kernel_lor_8, [TUTTI_MAX] = kernel_lor_8, [TUTTI_BOR] = kernel_lor_8,                            \
        [TUTTI_LOR] = kernel_lor_8, [TUTTI_PROD] = kernel_land_8, [TUTTI_MIN] = kernel_land_8,                         \
        [TUTTI_BAND] = kernel_land_8, [TUTTI_LAND] = kernel_land_8, [TUTTI_BXOR] = kernel_lxor_8,                      \
        [TUTTI_LXOR] = kernel_lxor_8                                                                                   \
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
    },
};

#endif
