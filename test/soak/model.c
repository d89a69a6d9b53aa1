/* What is given and what must come out, one element at a time. Whole numbers wrap as unsigned
 * ones; floats are small whole numbers, so that no order of adding could matter and every result
 * is exact. */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

uint64_t soak_any(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

size_t model_width(tutti_type type)
{
    switch (type) {
    case TUTTI_U8: return 1;
    case TUTTI_I16: return 2;
    case TUTTI_I32: case TUTTI_U32: case TUTTI_F32: return 4;
    default: return 8;
    }
}

bool model_each(enum kind kind)
{
    return kind == KIND_REDUCE_SCATTER || kind == KIND_REDUCE_SCATTER_V || kind == KIND_SCATTER
        || kind == KIND_SCATTER_V || kind == KIND_ALL_TO_ALL || kind == KIND_ALL_TO_ALL_V
        || kind == KIND_ALL_REDUCE_MANY;
}

bool model_folds(enum kind kind)
{
    return kind == KIND_REDUCE || kind == KIND_ALL_REDUCE || kind == KIND_ALL_REDUCE_MANY
        || kind == KIND_REDUCE_SCATTER || kind == KIND_REDUCE_SCATTER_V || kind == KIND_SCAN
        || kind == KIND_EXSCAN;
}

bool model_uneven(enum kind kind)
{
    return kind == KIND_REDUCE_SCATTER_V || kind == KIND_ALL_GATHER_V || kind == KIND_GATHER_V
        || kind == KIND_SCATTER_V || kind == KIND_ALL_TO_ALL_V;
}

size_t model_count(const struct step *s, const struct group *g, int from, int to)
{
    bool list = s->kind == KIND_ALL_REDUCE_MANY || s->kind == KIND_REDUCE_SCATTER_V
        || s->kind == KIND_SCATTER_V;
    bool pairs = s->kind == KIND_ALL_TO_ALL_V;
    int by = list ? to : pairs ? from * g->size + to : from;
    uint64_t seed = s->salt ^ (uint64_t)(by + 1) * 0x1234567;
    if (!model_uneven(s->kind) && s->kind != KIND_ALL_REDUCE_MANY)
        return s->count;
    switch (s->uneven) {
    case 0: return 0;                                                /* nobody anything */
    case 1: return by == (int)(s->salt % (uint64_t)g->size) ? s->count : 0;          /* one alone */
    case 2: return by == (int)(s->salt % (uint64_t)g->size) ? s->count : s->count / 100;
    default: return soak_any(&seed) % 3 == 0 ? 0 : (size_t)(soak_any(&seed) % (s->count + 1));
    }
}

static uint64_t mask_of(tutti_type type) { return UINT64_MAX >> (64 - 8 * model_width(type)); }
static bool is_float(tutti_type type) { return type == TUTTI_F32 || type == TUTTI_F64; }

static bool is_signed(tutti_type type)
{
    return type == TUTTI_I16 || type == TUTTI_I32 || type == TUTTI_I64;
}

static uint64_t float_bits(double x, tutti_type type)
{
    float f = (float)x;
    uint32_t low;
    uint64_t bits;
    memcpy(&low, &f, 4);
    memcpy(&bits, &x, 8);
    return type == TUTTI_F32 ? low : bits;
}

static double float_of(uint64_t bits, tutti_type type)
{
    uint32_t low = (uint32_t)bits;
    float f;
    double x;
    memcpy(&f, &low, 4);
    memcpy(&x, &bits, 8);
    return type == TUTTI_F32 ? (double)f : x;
}

static uint64_t value(const struct step *s, uint64_t any)
{
    if (!is_float(s->type))
        return any & mask_of(s->type);
    if (s->op == TUTTI_PROD)                         /* twelve of them stay exact */
        return float_bits((any & 1 ? -1.0 : 1.0) * (double)(1 + (any >> 1 & 1)), s->type);
    return float_bits((double)(int)(any % 201) - 100, s->type);
}

uint64_t model_factor(const struct step *s, int rank)
{
    uint64_t seed = s->salt * 31 + (uint64_t)rank, any = soak_any(&seed);
    return is_float(s->type) ? float_bits((double)(any % 9) - 4, s->type) : any & mask_of(s->type);
}

static void store(unsigned char *tile, size_t i, uint64_t bits, size_t width)
{
    memcpy(tile + i * width, &bits, width);
}

void model_give(void *tile, const struct step *s, int from, int to)
{
    size_t width = model_width(s->type);
    uint64_t seed = s->salt ^ (uint64_t)(from * 64 + to + 1) * UINT64_C(0xd1342543de82ef95);
    for (size_t i = 0; i < SOAK_PERIOD; i++)
        store(tile, i, value(s, soak_any(&seed)), width);
}

static int64_t as_signed(uint64_t v, tutti_type type)
{
    return type == TUTTI_I16 ? (int16_t)v : type == TUTTI_I32 ? (int32_t)v : (int64_t)v;
}

/* Affine maps of whole numbers modulo 2^16 or 2^32: x -> a x + b, as one number. Putting them
 * together is associative, not commutative. */
static uint64_t affine(uint64_t left, uint64_t right, unsigned half)
{
    uint64_t mask = (UINT64_C(1) << half) - 1, a = left & mask, b = left >> half, c = right & mask,
             d = right >> half;
    return (a * c & mask) | ((a * d + b) & mask) << half;
}

void model_user(const void *in, void *inout, size_t count, tutti_type type)
{
    size_t width = model_width(type);
    for (size_t i = 0; i < count; i++) {
        uint64_t a = 0, b = 0;
        memcpy(&a, (const char *)in + i * width, width);
        memcpy(&b, (char *)inout + i * width, width);
        b = affine(a, b, (unsigned)(4 * width));
        memcpy((char *)inout + i * width, &b, width);
    }
}

static uint64_t float_fold(const struct step *s, uint64_t acc, uint64_t v)
{
    double a = float_of(acc, s->type), b = float_of(v, s->type);
    switch (s->op) {
    case TUTTI_PROD: a *= b; break;
    case TUTTI_MIN: a = b < a ? b : a; break;
    case TUTTI_MAX: a = b > a ? b : a; break;
    default: a += b; break;
    }
    return float_bits(a, s->type);
}

static uint64_t fold(const struct step *s, uint64_t acc, uint64_t v)
{
    uint64_t mask = mask_of(s->type);
    bool less = is_signed(s->type) ? as_signed(v, s->type) < as_signed(acc, s->type) : v < acc;
    if (s->op < 0)
        return affine(acc, v, (unsigned)(4 * model_width(s->type)));
    if (is_float(s->type))
        return float_fold(s, acc, v);
    switch (s->op) {
    case TUTTI_SUM: case TUTTI_PREMUL_SUM: return (acc + v) & mask;
    case TUTTI_PROD: return (acc * v) & mask;
    case TUTTI_MIN: return less ? v : acc;
    case TUTTI_MAX: return less ? acc : v;
    case TUTTI_BAND: return acc & v;
    case TUTTI_BOR: return acc | v;
    case TUTTI_BXOR: return acc ^ v;
    default: abort();
    }
}

static uint64_t scaled(const struct step *s, uint64_t v, int rank)
{
    uint64_t factor = model_factor(s, rank);
    if (s->op != TUTTI_PREMUL_SUM)
        return v;
    return is_float(s->type) ? float_bits(float_of(v, s->type) * float_of(factor, s->type), s->type)
                             : (v * factor) & mask_of(s->type);
}

/* Of ranks 0 … ranks - 1: their block `to`. */
static void model_fold(void *tile, const struct step *s, int ranks, int to)
{
    size_t width = model_width(s->type);
    unsigned char theirs[SOAK_PERIOD * 8];
    for (int p = 0; p < ranks; p++) {
        model_give(theirs, s, p, to);
        for (size_t i = 0; i < SOAK_PERIOD; i++) {
            uint64_t v = 0, acc = 0;
            memcpy(&v, theirs + i * width, width);
            memcpy(&acc, (char *)tile + i * width, width);
            v = scaled(s, v, p);
            store(tile, i, p ? fold(s, acc, v) : v, width);
        }
    }
}

void model_get(void *tile, const struct step *s, const struct group *g, int me, int from)
{
    switch (s->kind) {
    case KIND_SCAN: model_fold(tile, s, me + 1, 0); return;
    case KIND_EXSCAN: model_fold(tile, s, me, 0); return;
    case KIND_REDUCE: case KIND_ALL_REDUCE: model_fold(tile, s, g->size, 0); return;
    /* `from` is the buffer */
    case KIND_ALL_REDUCE_MANY: model_fold(tile, s, g->size, from); return;
    case KIND_REDUCE_SCATTER: case KIND_REDUCE_SCATTER_V: model_fold(tile, s, g->size, me); return;
    case KIND_BROADCAST: model_give(tile, s, s->root, 0); return;
    case KIND_SCATTER: case KIND_SCATTER_V: model_give(tile, s, s->root, me); return;
    case KIND_ALL_TO_ALL: case KIND_ALL_TO_ALL_V: model_give(tile, s, from, me); return;
    default: model_give(tile, s, from, 0); return;
    }
}
