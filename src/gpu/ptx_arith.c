/* The arithmetic of cells. It has no branches. Every operation on floats is an instruction of its
 * own, with its rounding (.rn). The assembler makes no fused multiply-add of those, so the bits are
 * the CPU's. fold/vector.h says what the CPU's side does and why.
 *
 * MIN and MAX of floats: if the magnitude bits of negative numbers are inverted, the order of
 * floats is the order of signed integers, -0 < +0 included. A small float is at the upper end of
 * its cell. A NaN gets the sign that makes it win. */
#include "gpu/ptx_cell.h"

#include "fold/fold.h"

#include <inttypes.h>

static const char *bits_of(const struct ptx *p, char kind)
{
    static const char *const names[5][2] = {
        { "b32", "b64" }, { "s32", "s64" }, { "u32", "u64" }, { "f32", "f64" }
    };
    int row = kind == 'b' ? 0 : kind == 's' ? 1 : kind == 'u' ? 2 : 3;
    return names[row][p->cell == 64];
}

static void same(const struct ptx *p, struct reg to, struct reg from)
{
    if (to.letter != from.letter || to.n != from.n)
        ptx_say(p, "mov.%s %%%c%d, %%%c%d", bits_of(p, 'b'), to.letter, to.n, from.letter, from.n);
}

/* %d0: the divisor in the type of a cell. */
void ptx_begin(const struct ptx *p)
{
    if (p->op != TUTTI_AVG)
        return;
    if (p->way == WAY_FLOAT)
        ptx_say(p, "cvt.rn.%s.u32 %%d0, %%divisor", bits_of(p, 'f'));
    else if (p->cell == 64)
        ptx_say(p, "cvt.u64.u32 %%d0, %%divisor");
    else
        ptx_say(p, "mov.b32 %%d0, %%divisor");
}

/* ---- integers -------------------------------------------------------------------------------- */

static void take_truth(const struct ptx *p, struct reg cell, struct reg word, int at)
{
    if (p->word == 64)
        ptx_say(p, "setp.ne.u64 %%p0, %%%c%d, 0", word.letter, word.n);
    else if (p->part == 4)
        ptx_say(p, "setp.ne.u32 %%p0, %%%c%d, 0", word.letter, word.n);
    else {
        ptx_say(p, "and.b32 %%x0, %%%c%d, 0x%x", word.letter, word.n,
                ((1u << 8 * p->part) - 1) << 8 * p->part * at);
        ptx_say(p, "setp.ne.u32 %%p0, %%x0, 0");
    }
    ptx_say(p, "selp.b32 %%%c%d, 1, 0, %%p0", cell.letter, cell.n);
}

static void take_integer(const struct ptx *p, struct reg cell, struct reg word, int at)
{
    char kind = p->sign ? 's' : 'u';
    if (8 * p->part == p->cell)
        same(p, cell, word);
    else if (p->part < 4)
        ptx_say(p, "bfe.%c32 %%%c%d, %%%c%d, %d, %d", kind, cell.letter, cell.n, word.letter,
                word.n, 8 * p->part * at, 8 * p->part);
    else
        ptx_say(p, "cvt.%c64.%c32 %%%c%d, %%%c%d", kind, kind, cell.letter, cell.n, word.letter,
                word.n);
}

/* ---- MIN and MAX of floats ------------------------------------------------------------------- */

static uint64_t ones(const struct ptx *p) { return p->cell == 64 ? INT64_MAX : INT32_MAX; }

/* The greatest magnitude that is no NaN; below, the quiet NaN. Both at the lower end. */
static uint64_t largest(tutti_type type)
{
    switch ((int)type) {
    case TUTTI_F8E4M3: return 0x7e;
    case TUTTI_F8E5M2: return 0x7c;
    case TUTTI_F16: return 0x7c00;
    case TUTTI_BF16: return 0x7f80;
    case TUTTI_F32: case TUTTI_C64: return 0x7f800000;
    default: return UINT64_C(0x7ff0000000000000);
    }
}

static uint64_t quiet(tutti_type type)
{
    switch ((int)type) {
    case TUTTI_F8E4M3: return 0x7f;
    case TUTTI_F8E5M2: return 0x7e;
    case TUTTI_F16: return 0x7e00;
    case TUTTI_BF16: return 0x7fc0;
    case TUTTI_F32: case TUTTI_C64: return 0x7fc00000;
    default: return UINT64_C(0x7ff8000000000000);
    }
}

static void turn(const struct ptx *p, struct reg c, char scratch)
{
    ptx_say(p, "shr.%s %%%c1, %%%c%d, %d", bits_of(p, 's'), scratch, c.letter, c.n, p->cell - 1);
    ptx_say(p, "and.%s %%%c1, %%%c1, 0x%" PRIx64, bits_of(p, 'b'), scratch, scratch, ones(p));
    ptx_say(p, "xor.%s %%%c%d, %%%c%d, %%%c1", bits_of(p, 'b'), c.letter, c.n, c.letter, c.n,
            scratch);
}

/* Puts the magnitude into scratch 0. %p0: it is a NaN. */
static void ask_nan(const struct ptx *p, struct reg c, char scratch)
{
    int unused = p->cell - 8 * p->part;
    ptx_say(p, "and.%s %%%c0, %%%c%d, 0x%" PRIx64, bits_of(p, 'b'), scratch, c.letter, c.n,
            ones(p));
    ptx_say(p, "setp.gt.%s %%p0, %%%c0, 0x%" PRIx64, bits_of(p, 'u'), scratch,
            largest(p->type) << unused);
}

static void take_extreme(const struct ptx *p, struct reg cell, struct reg word, int at)
{
    char scratch = p->cell == 64 ? 'y' : 'x';
    if (8 * p->part == p->cell)
        same(p, cell, word);
    else if (p->part == 2 && at)
        ptx_say(p, "and.b32 %%%c%d, %%%c%d, 0xffff0000", cell.letter, cell.n, word.letter, word.n);
    else if (p->part == 2)
        ptx_say(p, "shl.b32 %%%c%d, %%%c%d, 16", cell.letter, cell.n, word.letter, word.n);
    else
        ptx_say(p, "prmt.b32 %%%c%d, %%%c%d, 0, 0x%d444", cell.letter, cell.n, word.letter, word.n,
                at);
    ask_nan(p, cell, scratch);
    if (p->op == TUTTI_MIN)
        ptx_say(p, "or.%s %%%c0, %%%c0, 0x%" PRIx64, bits_of(p, 'b'), scratch, scratch,
                ones(p) + 1);
    ptx_say(p, "selp.%s %%%c%d, %%%c0, %%%c%d, %%p0", bits_of(p, 'b'), cell.letter, cell.n, scratch,
            cell.letter, cell.n);
    turn(p, cell, scratch);
}

static void finish_extreme(const struct ptx *p, struct reg c)
{
    char scratch = p->cell == 64 ? 'y' : 'x';
    turn(p, c, scratch);
    ask_nan(p, c, scratch);
    if (8 * p->part < p->cell)
        ptx_say(p, "shr.u32 %%%c%d, %%%c%d, %d", c.letter, c.n, c.letter, c.n,
                p->cell - 8 * p->part);
    ptx_say(p, "selp.%s %%%c%d, 0x%" PRIx64 ", %%%c%d, %%p0", bits_of(p, 'b'), c.letter, c.n,
            quiet(p->type), c.letter, c.n);
}

/* ---- all ways -------------------------------------------------------------------------------- */

void ptx_take(const struct ptx *p, struct reg cell, struct reg word, int at)
{
    switch (p->way) {
    case WAY_TRUTH:
        take_truth(p, cell, word, at);
        break;
    case WAY_INTEGER:
        take_integer(p, cell, word, at);
        break;
    case WAY_EXTREME:
        take_extreme(p, cell, word, at);
        break;
    case WAY_FLOAT:
        if (p->part < 4) {
            ptx_widen(p, cell, word, at);
            break;
        }
        same(p, cell, word);
        break;
    case WAY_WORDS:
        same(p, cell, word);
    }
}

/* (a + bi)(c + di) = (ac - bd) + (ad + bc)i, of the pair at `left` and the pair at `right`, into
 * `left`. */
static void multiply_pairs(const struct ptx *p, struct reg left, struct reg right)
{
    const char *t = bits_of(p, 'f');
    char s = p->cell == 64 ? 'y' : 'x', l = left.letter, r = right.letter;
    int a = left.n, c = right.n;
    ptx_say(p, "mul.rn.%s %%%c0, %%%c%d, %%%c%d", t, s, l, a, r, c);
    ptx_say(p, "mul.rn.%s %%%c1, %%%c%d, %%%c%d", t, s, l, a + 1, r, c + 1);
    ptx_say(p, "mul.rn.%s %%%c2, %%%c%d, %%%c%d", t, s, l, a, r, c + 1);
    ptx_say(p, "mul.rn.%s %%%c3, %%%c%d, %%%c%d", t, s, l, a + 1, r, c);
    ptx_say(p, "sub.rn.%s %%%c%d, %%%c0, %%%c1", t, l, a, s, s);
    ptx_say(p, "add.rn.%s %%%c%d, %%%c2, %%%c3", t, l, a + 1, s, s);
}

void ptx_scale(const struct ptx *p, int parts)
{
    if (p->pairs)
        multiply_pairs(p, REG('n', 0), REG('f', 0));
    for (int i = 0; i < parts && !p->pairs; i++)
        if (p->way == WAY_FLOAT)
            ptx_say(p, "mul.rn.%s %%n%d, %%n%d, %%f%d", bits_of(p, 'f'), i, i, i);
        else
            ptx_say(p, "mul.lo.%s %%n%d, %%n%d, %%f%d", bits_of(p, 'u'), i, i, i);
}

static void step_one(const struct ptx *p, int cell, int next)
{
    const char *name = NULL, *type = bits_of(p, 'b');
    switch (p->way) {
    case WAY_WORDS:
        name = p->op == TUTTI_BAND ? "and" : p->op == TUTTI_BOR ? "or" : "xor";
        break;
    case WAY_TRUTH:
        name = p->op == TUTTI_LAND || p->op == TUTTI_PROD || p->op == TUTTI_MIN
                || p->op == TUTTI_BAND
            ? "and"
            : p->op == TUTTI_LXOR || p->op == TUTTI_BXOR ? "xor"
                                                         : "or";
        break;
    case WAY_INTEGER:
    case WAY_EXTREME:
        type = bits_of(p, p->sign || p->way == WAY_EXTREME ? 's' : 'u');
        name = p->op == TUTTI_MIN ? "min"
            : p->op == TUTTI_MAX ? "max"
            : p->op == TUTTI_PROD ? "mul.lo"
            : "add";
        break;
    case WAY_FLOAT:
        type = bits_of(p, 'f');
        name = p->op == TUTTI_PROD ? "mul.rn" : "add.rn";
    }
    ptx_say(p, "%s.%s %%a%d, %%a%d, %%n%d", name, type, cell, cell, next);
}

void ptx_step(const struct ptx *p, int cell, int parts)
{
    if (p->pairs && p->op == TUTTI_PROD)
        multiply_pairs(p, REG('a', cell), REG('n', 0));
    else
        for (int i = 0; i < parts; i++)
            step_one(p, cell + i, i);
}

void ptx_finish(const struct ptx *p, struct reg c)
{
    if (p->op == TUTTI_AVG && p->way == WAY_INTEGER)
        ptx_say(p, "div.%s %%%c%d, %%%c%d, %%d0", bits_of(p, p->sign ? 's' : 'u'), c.letter, c.n,
                c.letter, c.n);
    if (p->op == TUTTI_AVG && p->way == WAY_FLOAT)
        ptx_say(p, "div.rn.%s %%%c%d, %%%c%d, %%d0", bits_of(p, 'f'), c.letter, c.n, c.letter, c.n);
    if (p->way == WAY_EXTREME)
        finish_extreme(p, c);
    if (p->way != WAY_FLOAT)
        return;
    if (p->part < 4) {
        ptx_narrow(p, c);
        return;
    }
    ptx_say(p, "setp.nan.%s %%p0, %%%c%d, %%%c%d", bits_of(p, 'f'), c.letter, c.n, c.letter, c.n);
    ptx_say(p, "selp.%s %%%c%d, 0x%" PRIx64 ", %%%c%d, %%p0", bits_of(p, 'b'), c.letter, c.n,
            quiet(p->type), c.letter, c.n);
}

/* The first cell of a word may leave bits above its own: later cells overwrite them, or they are
 * not stored. */
void ptx_give(const struct ptx *p, struct reg word, struct reg cell, int at)
{
    if (at)
        ptx_say(p, "bfi.b32 %%%c%d, %%%c%d, %%%c%d, %d, %d", word.letter, word.n, cell.letter,
                cell.n, word.letter, word.n, 8 * p->part * at, 8 * p->part);
    else if (p->word != p->cell)
        ptx_say(p, "cvt.u%d.u%d %%%c%d, %%%c%d", p->word, p->cell, word.letter, word.n, cell.letter,
                cell.n);
    else
        same(p, word, cell);
}
