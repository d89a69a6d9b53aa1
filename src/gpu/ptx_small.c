/* Halves and 8-bit floats to f32, exactly, and back, rounded once to nearest even; the same steps
 * as in fold/half.h and fold/fp8.h.
 *
 * Of these types sm_70 converts only f16. A bf16 is the upper half of an f32. An E5M2 is the upper
 * half of an f16. An E4M3's magnitude, shifted down by one bit, reads as an f16 that is 256 times
 * too small. Only its NaN then reads as a number (480). Back: above the smallest normal number
 * rounding is an integer addition, which carries into the exponent by itself. Below it, a number is
 * added whose last bit weighs as much as the smallest denormal. */
#include "gpu/ptx_cell.h"

void ptx_widen(const struct ptx *p, struct reg cell, struct reg word, int at)
{
    char c = cell.letter, w = word.letter;
    switch ((int)p->type) {
    case TUTTI_BF16:
        if (at == 0)
            ptx_say(p, "shl.b32 %%%c%d, %%%c%d, 16", c, cell.n, w, word.n);
        else
            ptx_say(p, "and.b32 %%%c%d, %%%c%d, 0xffff0000", c, cell.n, w, word.n);
        break;
    case TUTTI_F16:
        ptx_say(p, "mov.b32 {%%h0, %%h1}, %%%c%d", w, word.n);
        ptx_say(p, "cvt.f32.f16 %%%c%d, %%h%d", c, cell.n, at);
        break;
    case TUTTI_F8E5M2:
        ptx_say(p, "prmt.b32 %%x0, %%%c%d, 0, 0x%d444", w, word.n, at);
        ptx_say(p, "mov.b32 {%%h0, %%h1}, %%x0");
        ptx_say(p, "cvt.f32.f16 %%%c%d, %%h1", c, cell.n);
        break;
    default:
        ptx_say(p, "prmt.b32 %%x0, %%%c%d, 0, 0x%d444", w, word.n, at);
        ptx_say(p, "shr.s32 %%x1, %%x0, 1");
        ptx_say(p, "and.b32 %%x1, %%x1, 0xbf800000"); /* the sign went into the bit below it, too */
        ptx_say(p, "mov.b32 {%%h0, %%h1}, %%x1");
        ptx_say(p, "cvt.f32.f16 %%%c%d, %%h1", c, cell.n);
        ptx_say(p, "mul.rn.f32 %%%c%d, %%%c%d, 0f43800000", c, cell.n, c, cell.n);
        ptx_say(p, "and.b32 %%x0, %%x0, 0x7f000000");
        ptx_say(p, "setp.eq.u32 %%p0, %%x0, 0x7f000000");
        ptx_say(p, "selp.b32 %%%c%d, 0x7fc00000, %%%c%d, %%p0", c, cell.n, c, cell.n);
    }
}

/* Puts an f32's magnitude into %x0 and its code as a small float, without the sign, into %x1.
 * least: the smallest normal number. counter: 2^23 of the smallest denormals. fraction, bias: of
 * the small float. */
static void round_small(const struct ptx *p, struct reg cell, int fraction, unsigned bias,
                        unsigned least, unsigned counter)
{
    int shift = 23 - fraction;
    ptx_say(p, "and.b32 %%x0, %%%c%d, 0x7fffffff", cell.letter, cell.n);
    ptx_say(p, "add.rn.f32 %%x1, %%x0, 0f%08X", counter);
    ptx_say(p, "sub.u32 %%x1, %%x1, 0x%08x", counter);
    ptx_say(p, "bfe.u32 %%x2, %%x0, %d, 1", shift);
    ptx_say(p, "add.u32 %%x2, %%x2, %%x0");
    ptx_say(p, "add.u32 %%x2, %%x2, 0x%08x", ((1u << (shift - 1)) - 1) - ((127u - bias) << 23));
    ptx_say(p, "shr.u32 %%x2, %%x2, %d", shift);
    ptx_say(p, "setp.ge.u32 %%p0, %%x0, 0x%08x", least);
    ptx_say(p, "selp.b32 %%x1, %%x2, %%x1, %%p0");
}

static void add_sign(const struct ptx *p, struct reg cell)
{
    ptx_say(p, "shr.u32 %%x2, %%%c%d, 24", cell.letter, cell.n);
    ptx_say(p, "and.b32 %%x2, %%x2, 0x80");
    ptx_say(p, "or.b32 %%x1, %%x1, %%x2");
}

void ptx_narrow(const struct ptx *p, struct reg cell)
{
    char c = cell.letter;
    int n = cell.n;
    switch ((int)p->type) {
    case TUTTI_BF16:                                 /* the addition may turn a NaN into anything */
        ptx_say(p, "setp.nan.f32 %%p0, %%%c%d, %%%c%d", c, n, c, n);
        ptx_say(p, "bfe.u32 %%x0, %%%c%d, 16, 1", c, n);
        ptx_say(p, "add.u32 %%x0, %%x0, 0x7fff");
        ptx_say(p, "add.u32 %%x0, %%x0, %%%c%d", c, n);
        ptx_say(p, "shr.u32 %%x0, %%x0, 16");
        ptx_say(p, "selp.b32 %%%c%d, 0x7fc0, %%x0, %%p0", c, n);
        break;
    case TUTTI_F16:
        ptx_say(p, "setp.nan.f32 %%p0, %%%c%d, %%%c%d", c, n, c, n);
        ptx_say(p, "cvt.rn.f16.f32 %%h0, %%%c%d", c, n);
        ptx_say(p, "cvt.u32.u16 %%x0, %%h0");
        ptx_say(p, "selp.b32 %%%c%d, 0x7e00, %%x0, %%p0", c, n);
        break;
    /* rounding gives infinity from 61440 on by itself; from 65536 on it would go beyond */
    case TUTTI_F8E5M2:
        round_small(p, cell, 2, 15, 0x38800000, 0x43000000);
        ptx_say(p, "setp.gt.u32 %%p0, %%x0, 0x47800000");
        ptx_say(p, "selp.b32 %%x1, 0x7c, %%x1, %%p0");
        add_sign(p, cell);
        ptx_say(p, "setp.gt.u32 %%p0, %%x0, 0x7f800000");
        ptx_say(p, "selp.b32 %%%c%d, 0x7e, %%x1, %%p0", c, n);
        break;
    default:                            /* 464, halfway to 480, which has no code, rounds to 448 */
        round_small(p, cell, 3, 7, 0x3c800000, 0x46800000);
        add_sign(p, cell);
        ptx_say(p, "setp.gt.u32 %%p0, %%x0, 0x43e80000");
        ptx_say(p, "selp.b32 %%%c%d, 0x7f, %%x1, %%p0", c, n);
    }
}
