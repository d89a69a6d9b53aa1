/* Every contribution is drawn on the CPU, copied to the device, folded there and on the CPU, copied
 * back, compared bit for bit. */
#include "kernel_check.h"

#include "child_case.h"
#include "fold/fold.h"
#include "gpu/kernels.h"
#include "gpu/ptx.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPS = KERNELS_OPS,
    MOST = KERNEL_INPUTS,
    SLOT = 8192,
    WIDE = 65536 * 2,
    ROOM = (MOST + 2) * SLOT
};

static struct kernels k;
static CUstream stream;
static CUdeviceptr device;                          /* ROOM bytes: contributions, then the result */
static unsigned char *seen;                         /* the CPU's copy of it */
static uint64_t state = 1;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du >> 11;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int fraction_bits(tutti_type type)
{
    switch ((int)type) {
    case TUTTI_F8E4M3: return 3;
    case TUTTI_F8E5M2: return 2;
    case TUTTI_F16: return 10;
    case TUTTI_BF16: return 7;
    case TUTTI_F32: case TUTTI_C64: return 23;
    case TUTTI_F64: case TUTTI_C128: return 52;
    default: return 0;
    }
}

static size_t part_of(tutti_type type)
{
    return fold_type_size(type) / (type == TUTTI_C64 || type == TUTTI_C128 ? 2 : 1);
}

/* An exponent at a border or near 1, a fraction at a border or any. */
static uint64_t draw_float(int fraction, int bits)
{
    int exponent_bits = bits - 1 - fraction;
    uint64_t most = (UINT64_C(1) << exponent_bits) - 1, one = most >> 1,
             ones = (UINT64_C(1) << fraction) - 1;
    const uint64_t exponents[] = {
        0, 0, 1, 2, one - 1, one, one + 1, most - 2, most - 1, most,
        one + draw() % 5 - 2, draw() & most
    };
    const uint64_t fractions[] = {
        0, 1, ones, ones >> 1, (ones >> 1) + 1, draw() & ones, draw() & ones, draw() & ones
    };
    uint64_t exponent = exponents[draw() % 12] & most;
    if (draw() % 3)
        exponent = one + draw() % 4;                 /* most sums are of numbers alike */
    return (draw() & 1) << (bits - 1) | exponent << fraction | fractions[draw() % 8];
}

static uint64_t draw_integer(int bits)
{
    const uint64_t borders[] = {
        0, 1, UINT64_MAX, UINT64_C(1) << (bits - 1),
        (UINT64_C(1) << (bits - 1)) - 1, 2, UINT64_MAX - 1, 0x80
    };
    uint64_t value = draw() << 32 ^ draw();
    return draw() % 4 ? value : borders[draw() % 8];
}

static void draw_elements(unsigned char *to, tutti_type type, size_t elements)
{
    size_t part = part_of(type);
    for (size_t at = 0; at < elements * fold_type_size(type); at += part) {
        uint64_t v = fraction_bits(type) ? draw_float(fraction_bits(type), 8 * (int)part)
                                         : draw_integer(8 * (int)part);
        if (type == TUTTI_BOOL && draw() % 2)
            v = draw() % 2;
        memcpy(to + at, &v, part);
    }
}

/* ---- one launch ------------------------------------------------------------------------------ */

struct shape { int n, in_place, divisor; size_t count, slot; bool aligned; unsigned grid, block; };

static unsigned char expected[WIDE + 64], factors[MOST][16];

const char *kernel_check_name(tutti_type type, tutti_op op)
{
    static char name[PTX_NAME];
    struct text text = TEXT_IN(name);
    text_clear(&text);
    ptx_name(&text, type, op);
    return name;
}

static void on_cpu(const char *isa, tutti_type type, tutti_op op, const struct shape *s,
                   const void *const in[])
{
    const void *factor[MOST];
    for (int i = 0; i < MOST; i++)
        factor[i] = factors[i];
    if (op == TUTTI_PREMUL_SUM)
        (isa ? fold_find_scaled_isa(isa, type) : fold_find_scaled(type, NULL))(expected, in, factor,
                                                                               s->n, s->count);
    else
        (isa ? fold_find_isa(isa, type, op) : fold_find(type, op, NULL))(expected, in, s->n,
                                                                         s->count, s->divisor);
}

static int differs(tutti_type type, tutti_op op, const struct shape *s, const unsigned char *got,
                   const char *isa)
{
    size_t size = fold_type_size(type), at = 0;
    if (memcmp(got, expected, s->count * size) == 0)
        return 0;
    while (memcmp(got + at * size, expected + at * size, size) == 0)
        at++;
    fprintf(stderr,
            "%s, %d inputs, %zu elements, %s, in place %d, divisor %d: element %zu against %s: ",
            kernel_check_name(type, op), s->n, s->count, s->aligned ? "aligned" : "not aligned",
            s->in_place, s->divisor, at, isa);
    for (size_t i = size; i-- > 0;)
        fprintf(stderr, "%02x", got[at * size + i]);
    fprintf(stderr, " and not ");
    for (size_t i = size; i-- > 0;)
        fprintf(stderr, "%02x", expected[at * size + i]);
    fprintf(stderr, "\n");
    return 1;
}

/* Contributions are in their slots. In place: which contribution is overwritten; -1: the slot after
 * the last. */
static int one_launch(tutti_type type, tutti_op op, const struct shape *s)
{
    static unsigned char plain[WIDE + 64];
    struct kernel_fold fold = {
        .count = s->count, .inputs = (uint32_t)s->n, .divisor = (uint32_t)s->divisor
    };
    const void *in[MOST];
    size_t part = part_of(type), bytes = s->count * fold_type_size(type);
    for (int i = 0; i < s->n; i++) {
        size_t off = (size_t)i * s->slot + (s->aligned ? 0 : (size_t)(i % 5) * part);
        fold.in[i] = device + off;
        in[i] = seen + off;
        memcpy(fold.factor[i], factors[i], 16);
    }
    size_t out = s->in_place >= 0 ? fold.in[s->in_place] - device
                                  : (size_t)s->n * s->slot + (s->aligned ? 16 : 3 * part);
    fold.out = device + out;
    on_cpu("plain", type, op, s, in);
    memcpy(plain, expected, bytes);
    on_cpu(NULL, type, op, s, in);
    CUfunction f;
    IS(kernels_get(&k, &cu, type, op, &f, NULL), 0);
    OK(cu.cuMemcpyHtoDAsync_v2(device, seen, (size_t)s->n * s->slot + s->slot, stream));
    OK(cu.cuLaunchKernel(f, s->grid, 1, 1, s->block, 1, 1, 0, stream, (void *[]){ &fold }, NULL));
    OK(cu.cuMemcpyDtoHAsync_v2(seen + out, device + out, bytes, stream));
    OK(cu.cuStreamSynchronize(stream));
    if (differs(type, op, s, seen + out, "the best"))
        return 1;
    memcpy(expected, plain, bytes);
    return differs(type, op, s, seen + out, "plain");
}

int kernel_check_begin(CUstream s)
{
    stream = s;
    kernels_begin(&k);
    OK(cu.cuMemAlloc_v2(&device, ROOM));
    YES(seen = calloc(1, ROOM));
    return 0;
}

int kernel_check_end(void)
{
    kernels_end(&k, &cu);
    free(seen);
    OK(cu.cuMemFree_v2(device));
    return 0;
}

bool kernel_check_exist(int type, int op)
{
    return op == TUTTI_PREMUL_SUM ? fold_find_scaled((tutti_type)type, NULL) != NULL
                                  : fold_find((tutti_type)type, (tutti_op)op, NULL) != NULL;
}

/* ---- every pair of a type and an operation --------------------------------------------------- */

static int shapes_of(tutti_type type, tutti_op op, int turns)
{
    static const int divisors[] = { 1, 2, 3, 7, 64, 1000, 2147483647 };
    static const struct {
        unsigned grid, block;
    } grids[] = { { 1, 1 }, { 3, 32 }, { 2, 33 }, { 1, 160 } };
    size_t size = fold_type_size(type), room = (SLOT - 512) / size;
    for (int turn = 0; turn < turns; turn++) {
        static const int ns[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, MOST };
        struct shape s = {
            .n = ns[turn % 11], .aligned = turn & 1, .slot = SLOT, .in_place = -1,
            .divisor = divisors[turn % 7]
        };
        const size_t counts[] = { 1, 2048 / size + 3, 31, 4096 / size, 129, room - 3, 2048 / size };
        s.grid = grids[turn / 2 % 4].grid;
        s.block = grids[turn / 2 % 4].block;
        s.count = counts[turn % 7] > room ? room : counts[turn % 7];
        if (s.n == MOST || (s.grid == 1 && s.block == 1))
            s.count = s.count > 300 ? 300 : s.count;
        if (turn % 3 == 0)
            s.in_place = (int)(draw() % (uint64_t)s.n);
        for (int i = 0; i < s.n; i++) {
            draw_elements(seen + (size_t)i * SLOT, type, SLOT / size);
            draw_elements(factors[i], type, 1);
        }
        if (one_launch(type, op, &s))
            return 1;
    }
    return 0;
}

int kernel_check_every_pair(tutti_type from, tutti_type to, int turns)
{
    int pairs = 0;
    for (int type = (int)from; type <= (int)to; type++)
        for (int op = 0; op < OPS; op++)
            if (kernel_check_exist(type, op)) {
                pairs++;
                if (shapes_of((tutti_type)type, (tutti_op)op, turns))
                    return 1;
            }
    YES(pairs);
    return 0;
}

/* ---- small floats, all of them --------------------------------------------------------------- */

static int complex_of_bytes(tutti_type type, tutti_op op, int divisor)
{
    struct shape s = {
        .n = 2, .aligned = true, .slot = WIDE, .in_place = -1, .divisor = divisor,
        .count = 65536, .grid = 4, .block = 128
    };
    for (int i = 0; i < 65536; i++) {
        seen[i] = (unsigned char)i;
        seen[WIDE + i] = (unsigned char)(i >> 8);
    }
    return one_launch(type, op, &s);
}

/* Each byte with each factor. */
static int products_of_bytes(tutti_type type)
{
    struct shape s = {
        .n = 1, .slot = WIDE, .in_place = -1, .divisor = 1, .count = 256, .grid = 1, .block = 128
    };
    for (int f = 0; f < 256; f++) {
        for (int i = 0; i < 256; i++)
            seen[i] = (unsigned char)i;
        factors[0][0] = (unsigned char)f;
        s.aligned = f & 1;
        if (one_launch(type, TUTTI_PREMUL_SUM, &s))
            return 1;
    }
    return 0;
}

int kernel_check_bytes(void)
{
    for (int type = TUTTI_F8E4M3; type <= TUTTI_F8E5M2; type++) {
        for (int op = TUTTI_SUM; op <= TUTTI_AVG; op++)
            if (complex_of_bytes((tutti_type)type, (tutti_op)op, 2)
                || (op == TUTTI_AVG && complex_of_bytes((tutti_type)type, (tutti_op)op, 3)))
                return 1;
        if (products_of_bytes((tutti_type)type))
            return 1;
    }
    return 0;
}

int kernel_check_halves(void)
{
    static const uint16_t f16[] = { 0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc01,
                                    0x7bff, 0xfbff, 0x7c00, 0xfc00,
                                    0x7c01, 0xfe00, 0x2800, 0x1400 };
    static const uint16_t bf16[] = { 0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x3f80, 0xbf81,
                                     0x7f7f, 0xff7f, 0x7f80, 0xff80,
                                     0x7f81, 0xffc0, 0x3b80, 0x0080 };
    for (int type = TUTTI_F16; type <= TUTTI_BF16; type++)
        for (int op = TUTTI_SUM; op <= TUTTI_AVG; op++)
            for (int i = 0; i < 16; i++) {
                uint16_t value = type == TUTTI_F16 ? f16[i] : bf16[i];
                struct shape s = {
                    .n = 2, .aligned = true, .slot = WIDE, .in_place = -1, .divisor = 3,
                    .count = 65536, .grid = 4, .block = 128
                };
                for (int x = 0; x < 65536; x++) {
                    memcpy(seen + 2 * x, &(uint16_t){ (uint16_t)x }, 2);
                    memcpy(seen + WIDE + 2 * x, &value, 2);
                }
                if (one_launch((tutti_type)type, (tutti_op)op, &s))
                    return 1;
            }
    return 0;
}
