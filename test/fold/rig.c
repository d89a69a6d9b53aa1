/* See rig.h. Factors lie at odd addresses, each at another. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <stdlib.h>
#include <string.h>

#include "model.h"

enum { GUARD = 96, FILL = 0xa5, MOST = 16 };

static const char *const isas[] = {"plain", "avx2", "avx512", "neon"};
static const size_t      counts[] = {
    0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 63, 64, 65, 127, 129, 257, 1000
};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

struct where {
    const char *isa;
    size_t      count, shift; /* how far pointers are off their alignment */
    int         place;        /* which contribution dst is; n: none */
};

static void print_bytes(const char *what, int r, const uint8_t *from, size_t size)
{
    char text[2 * MOST + 1] = "";
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = "0123456789abcdef"[from[size - 1 - i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[from[size - 1 - i] & 15];
        text[2 * i + 2] = 0;
    }
    print_error("  %s[%d] 0x%s\n", what, r, text);
}

static void complain(const struct rig *rig, struct where w, const uint8_t *got)
{
    size_t size = model_size(rig->type), i = 0;
    while (memcmp(got + i * size, rig->expected + i * size, size) == 0)
        i++;
    for (int r = 0; r < rig->n; r++) {
        print_bytes("source", r, rig->source[r] + i * size, size);
        if (rig->op == TUTTI_PREMUL_SUM)
            print_bytes("factor", r, rig->factor[r], size);
    }
    print_bytes("got", rig->n, got + i * size, size);
    print_bytes("expected", rig->n, rig->expected + i * size, size);
    fail_msg("%s %s %s, %d ranks, divisor %d, element %zu of %zu, dst is %d, shift %zu", w.isa,
             fold_type_name(rig->type), fold_op_name(rig->op), rig->n, rig->divisor, i, w.count,
             w.place, w.shift);
}

static void call(const struct rig *rig, struct where w, void *dst, const void *const src[])
{
    uint8_t     odd[RIG_RANKS][MOST + 8];
    const void *factor[RIG_RANKS];
    if (rig->op != TUTTI_PREMUL_SUM) {
        fold_find_isa(w.isa, rig->type, rig->op)(dst, src, rig->n, w.count, rig->divisor);
        return;
    }
    for (int r = 0; r < rig->n; r++) {
        uint8_t *at = odd[r] + (1 + r) % 8;
        memset(odd[r], FILL, sizeof odd[r]);
        memcpy(at, rig->factor[r], model_size(rig->type));
        factor[r] = at;
    }
    fold_find_scaled_isa(w.isa, rig->type)(dst, src, factor, rig->n, w.count);
}

static void check(const struct rig *rig, struct where w, uint8_t *room)
{
    size_t      bytes = w.count * model_size(rig->type);
    size_t      each = (bytes + 2 * GUARD + 64) / 64 * 64;
    const void *src[RIG_RANKS];
    uint8_t    *dst = room + (size_t)rig->n * each + GUARD + w.shift;
    memset(room, FILL, (size_t)(rig->n + 1) * each);
    for (int r = 0; r < rig->n; r++) {
        uint8_t *at = room + (size_t)r * each + GUARD
            + (w.shift ? (w.shift + 2 * (size_t)r) % 8 : 0);
        if (bytes)
            memcpy(at, rig->source[r], bytes);
        src[r] = at;
        if (r == w.place)
            dst = at;
    }
    call(rig, w, dst, src);
    if (memcmp(dst, rig->expected, bytes) != 0)
        complain(rig, w, dst);
    for (const uint8_t *p = room + (size_t)w.place * each; p < room + (size_t)(w.place + 1) * each;
         p++)
        if ((p < dst || p >= dst + bytes) && *p != FILL)
            fail_msg("%s %s %s, %d ranks, %zu elements: wrote %td bytes from dst", w.isa,
                     fold_type_name(rig->type), fold_op_name(rig->op), rig->n, w.count, p - dst);
    for (int r = 0; r < rig->n; r++)
        if (r != w.place && memcmp(src[r], rig->source[r], bytes) != 0)
            fail_msg("%s %s %s: changed contribution %d", w.isa, fold_type_name(rig->type),
                     fold_op_name(rig->op), r);
}

static uint8_t *room_for(const struct rig *rig)
{
    size_t   each = rig->count * model_size(rig->type) + 2 * GUARD + 128;
    uint8_t *room = aligned_alloc(64, ((size_t)(rig->n + 1) * each + 63) / 64 * 64);
    assert_non_null(room);
    return room;
}

static int there(const char *isa) { return fold_find_isa(isa, TUTTI_F32, TUTTI_SUM) != NULL; }

void rig_all(const struct rig *rig)
{
    uint8_t *room = room_for(rig);
    for (size_t i = 0; i < LENGTH(isas); i++)
        if (there(isas[i]))
            check(rig, (struct where){isas[i], rig->count, 0, rig->n}, room);
    free(room);
}

void rig_short(const struct rig *rig)
{
    uint8_t *room = room_for(rig);
    for (size_t i = 0; i < LENGTH(isas); i++)
        for (size_t c = 0; there(isas[i]) && c < LENGTH(counts); c++) {
            if (counts[c] > rig->count)
                break;
            check(rig, (struct where){isas[i], counts[c], 0, rig->n}, room);
            check(rig, (struct where){isas[i], counts[c], 1 + c % 7, rig->n}, room);
            check(rig, (struct where){isas[i], counts[c], 1 + c % 5, 0}, room);
            check(rig, (struct where){isas[i], counts[c], 0, rig->n / 2}, room);
            check(rig, (struct where){isas[i], counts[c], 1 + c % 3, rig->n - 1}, room);
        }
    free(room);
}

static void fill(uint8_t *to, size_t count, tutti_type type)
{
    size_t part = model_size(type) / (model_is_complex(type) ? 2 : 1);
    for (size_t i = 0; i < count * model_size(type); i += part)
        model_put(to + i, model_any(type), part);
}

void rig_random(tutti_type type, tutti_op op, int n, int divisor, size_t count)
{
    size_t     size = model_size(type);
    uint8_t *source = malloc((size_t)(n + 1) * count * size),
            *expected = source + (size_t)n * count * size;
    uint8_t    factor[RIG_RANKS][MOST];
    struct rig rig = {
        .type = type, .op = op, .n = n, .divisor = divisor, .count = count, .expected = expected
    };
    assert_non_null(source);
    fill(source, (size_t)n * count, type);
    for (int r = 0; r < n; r++) {
        fill(factor[r], 1, type);
        rig.source[r] = source + (size_t)r * count * size;
        rig.factor[r] = factor[r];
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t *values[RIG_RANKS];
        for (int r = 0; r < n; r++)
            values[r] = rig.source[r] + i * size;
        model_fold(expected + i * size, values, op == TUTTI_PREMUL_SUM ? rig.factor : NULL, n,
                   divisor, type, op);
    }
    rig_short(&rig);
    rig_all(&rig);
    free(source);
}
