/* On aarch64: NEON's kernels give the bits of the plain ones, for random bits, every type and
 * operation, lengths with and without a tail, also while the program has flush to zero, another
 * f16, another rounding; these are back afterwards. cpu_pause is there. Ends with 0 if all is so;
 * BITS_BREAK in the environment breaks one element, which it has to see. */
#include "base/atomic.h"
#include "base/knob.h"
#include "coll/modes.h"
#include "fold/fold.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No setting is asked for here: TUTTI_ISA has another test. */
int knob_text(enum knob_id id, const char **value)
{
    (void)id;
    *value = NULL;
    return 0;
}

enum { SOURCES = 3, MOST = 71, ELEMENT = 16, BYTES = MOST * ELEMENT + 1 };

/* FPCR: FZ, AHP, round to minus infinity, FZ16 */
static const unsigned fpcr[] = { 0, 1u << 24, 1u << 26, 2u << 22, 1u << 19 };

static uint8_t  source[SOURCES][BYTES], factor[SOURCES][ELEMENT];
static uint64_t state = 88172645463325252u;

static uint8_t random_byte(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint8_t)(state >> 32);
}

static void fold_as(const char *isa, tutti_type type, tutti_op op, size_t count, size_t off,
                    uint8_t *to)
{
    const void *from[SOURCES], *factors[SOURCES];
    for (int i = 0; i < SOURCES; i++)
        from[i] = source[i] + off, factors[i] = factor[i];
    unsigned modes = modes_enter();
    if (op == TUTTI_PREMUL_SUM)
        fold_find_scaled_isa(isa, type)(to + off, from, factors, SOURCES, count);
    else
        fold_find_isa(isa, type, op)(to + off, from, SOURCES, count, SOURCES);
    modes_leave(modes);
}

static int differs(tutti_type type, tutti_op op, size_t count, size_t off)
{
    static uint8_t plain[BYTES], neon[BYTES];
    memset(plain, 0x5a, sizeof plain);
    memset(neon, 0x5a, sizeof neon);
    modes_set(0);
    fold_as("plain", type, op, count, off, plain);
    for (size_t i = 0; i < sizeof fpcr / sizeof *fpcr; i++) {
        modes_set(fpcr[i]);
        fold_as("neon", type, op, count, off, neon);
        unsigned kept = modes_get() & MODES_MASK;
        modes_set(0);
        if (getenv("BITS_BREAK"))
            neon[off] ^= 1;
        if (kept != (fpcr[i] & kept) || memcmp(plain, neon, sizeof neon) != 0) {
            fprintf(stderr, "%s %s of %zu elements, FPCR 0x%x: other bits than plain\n",
                    fold_type_name(type), fold_op_name(op), count, fpcr[i]);
            return 1;
        }
    }
    return 0;
}

int main(void)
{
    static const size_t counts[] = { 1, 7, 16, 33, MOST };
    int pairs = 0, bad = 0;
    for (tutti_type type = 0; fold_type_size(type); type++)
        for (tutti_op op = 0; op <= TUTTI_PREMUL_SUM; op++) {
            bool scaled = op == TUTTI_PREMUL_SUM;
            if (scaled ? !fold_find_scaled_isa("plain", type) : !fold_find_isa("plain", type, op))
                continue;
            pairs++;
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                for (int s = 0; s < SOURCES; s++)
                    for (size_t b = 0; b < BYTES; b++)
                        source[s][b] = random_byte() & (type == TUTTI_BOOL ? 1 : 255);
                for (int s = 0; s < SOURCES; s++)
                    memcpy(factor[s], source[s], ELEMENT);
                bad += differs(type, op, counts[i], i & 1);
            }
        }
    cpu_pause();
    printf("%d pairs of type and operation, by %s\n", pairs, fold_isa());
    return bad || pairs < 80 || strcmp(fold_isa(), "neon") != 0;
}
