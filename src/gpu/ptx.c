/* How a kernel walks over memory. What it does with a cell is in ptx_arith.c.
 *
 * If all addresses are multiples of 16, a block takes a tile at a time: one to four rows. A row has
 * 16 bytes for each thread of the block, side by side. A thread loads its part of all rows of one
 * contribution before it computes: 64 bytes in most kernels. So some 50 KB are under way in each
 * multiprocessor, more than the memory's latency times its share of the bandwidth. The accumulators
 * stay in registers, and each byte is read and written once. What is left after the last whole tile
 * is folded element by element, neighbours by neighbouring threads. So is everything if an address
 * is less aligned. This is correct, but several times slower for small types.
 *
 * A thread reads an element of all contributions before it writes it, and no other thread touches
 * it. So out may be one of them. For the same reason the loads are plain ones, not those of the
 * read-only cache (.nc). */
#include "gpu/ptx.h"

#include "fold/fold.h"
#include "gpu/kernel.h"
#include "gpu/ptx_cell.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void ptx_say(const struct ptx *p, const char *format, ...)
{
    char line[160];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    text_add(p->out, "    %s;\n", line);
}

void ptx_name(struct text *into, tutti_type type, tutti_op op)
{
    text_add(into, KERNEL_FOLD_PREFIX "%s_%s", fold_type_name(type), fold_op_name(op));
}

/* ---- what a kernel is like ------------------------------------------------------------------- */

static bool is_float(tutti_type t) { return t >= TUTTI_F16 && t != TUTTI_BOOL; }

static bool is_signed(tutti_type t)
{
    return t == TUTTI_I8 || t == TUTTI_I16 || t == TUTTI_I32 || t == TUTTI_I64;
}

static enum ptx_way way_of(tutti_type type, tutti_op op)
{
    if (type == TUTTI_BOOL || op == TUTTI_LAND || op == TUTTI_LOR || op == TUTTI_LXOR)
        return WAY_TRUTH;
    if (op == TUTTI_BAND || op == TUTTI_BOR || op == TUTTI_BXOR)
        return WAY_WORDS;
    if (!is_float(type))
        return WAY_INTEGER;
    return op == TUTTI_MIN || op == TUTTI_MAX ? WAY_EXTREME : WAY_FLOAT;
}

static struct ptx describe(struct text *out, tutti_type type, tutti_op op)
{
    struct ptx p = {
        .out = out, .type = type, .op = op, .way = way_of(type, op), .sign = is_signed(type),
        .size = (int)fold_type_size(type)
    };
    p.complex = type == TUTTI_C64 || type == TUTTI_C128;
    p.pairs = p.complex && (op == TUTTI_PROD || op == TUTTI_PREMUL_SUM);
    p.part = p.complex ? p.size / 2 : p.size;
    p.word = p.part == 8 ? 64 : 32;
    p.cell = p.way == WAY_TRUTH ? 32 : p.word;
    if (p.way == WAY_INTEGER && op == TUTTI_AVG && p.part == 4)
        p.cell = 64;                /* sums of smaller ones over KERNEL_INPUTS ranks are < 2^31 */
    p.per_word = p.way == WAY_WORDS ? 1 : p.word / 8 / p.part;
    int registers = 128 / p.word * p.per_word * p.cell / 32;    /* the accumulators of 16 bytes */
    p.vectors = registers <= 8 ? 4 : 32 / registers;
    return p;
}

/* ---- the text -------------------------------------------------------------------------------- */

static void label(const struct ptx *p, const char *name) { text_add(p->out, "%s:\n", name); }

static void remark(const struct ptx *p, const char *words)
{
    text_add(p->out, "\n    // %s\n", words);
}

static void declare(const struct ptx *p)
{
    int words = p->vectors * 128 / p->word;
    text_add(p->out, "    .reg .pred %%p<4>;\n    .reg .b16 %%h<2>;\n");
    text_add(p->out,
             "    .reg .b32 %%x<8>, %%g<2>, %%k, %%inputs, %%divisor, %%thread, %%threads, "
             "%%block, %%blocks;\n");
    text_add(p->out,
             "    .reg .b64 %%y<8>, %%out, %%in, %%count, %%bytes, %%call, %%next, %%row, %%tile, "
             "%%begin, %%hop, %%at;\n");
    text_add(p->out, "    .reg .b64 %%o<%d>;\n    .reg .b%d %%w<%d>;\n", p->vectors, p->word,
             words);
    text_add(p->out, "    .reg .b%d %%a<%d>, %%n<2>, %%f<2>, %%d<1>;\n", p->cell,
             words * p->per_word);
}

static void head(const struct ptx *p)
{
    text_add(p->out, "\n// %s of %s\n.visible .entry ", fold_op_name(p->op),
             fold_type_name(p->type));
    ptx_name(p->out, p->type, p->op);
    text_add(p->out, "(.param .align 8 .b8 call[%d])\n{\n", KERNEL_BYTES);
    declare(p);
    text_add(p->out, "\n");
    ptx_say(p, "ld.param.u64 %%out, [call+%d]", KERNEL_AT_OUT);
    ptx_say(p, "ld.param.u64 %%count, [call+%d]", KERNEL_AT_COUNT);
    ptx_say(p, "ld.param.u32 %%inputs, [call+%d]", KERNEL_AT_INPUTS);
    ptx_say(p, "ld.param.u32 %%divisor, [call+%d]", KERNEL_AT_DIVISOR);
    ptx_say(p, "mov.u64 %%call, call");
    ptx_say(p, "cvta.to.global.u64 %%out, %%out");
    ptx_say(p, "mov.u32 %%thread, %%tid.x");
    ptx_say(p, "mov.u32 %%threads, %%ntid.x");
    ptx_say(p, "mov.u32 %%block, %%ctaid.x");
    ptx_say(p, "mov.u32 %%blocks, %%nctaid.x");
    ptx_say(p, "mul.lo.u64 %%bytes, %%count, %d", p->size);
    ptx_begin(p);
}

static void ask_alignment(const struct ptx *p)
{
    remark(p, "is every address a multiple of 16?");
    ptx_say(p, "mov.u64 %%at, 0");          /* where the walk by elements begins */
    ptx_say(p, "mov.u64 %%y0, %%out");
    ptx_say(p, "mov.u64 %%next, %%call");
    ptx_say(p, "mov.u32 %%k, 0");
    label(p, "ASK");
    ptx_say(p, "ld.param.u64 %%in, [%%next+%d]", KERNEL_AT_IN);
    ptx_say(p, "or.b64 %%y0, %%y0, %%in");
    ptx_say(p, "add.s64 %%next, %%next, 8");
    ptx_say(p, "add.u32 %%k, %%k, 1");
    ptx_say(p, "setp.lt.u32 %%p0, %%k, %%inputs");
    ptx_say(p, "@%%p0 bra ASK");
    ptx_say(p, "and.b64 %%y0, %%y0, %d", KERNEL_ALIGNED - 1);
    ptx_say(p, "setp.ne.u64 %%p0, %%y0, 0");
    ptx_say(p, "@%%p0 bra SINGLE");
}

/* A body: the tile's part of one thread (vectors > 0), or one element at %at (0). */
struct body { int vectors, words, per_word; };

static void load(const struct ptx *p, struct body b)
{
    for (int v = 0; v < b.vectors; v++) {
        ptx_say(p, "add.s64 %%y%d, %%in, %%o%d", v, v);
        if (p->word == 64)
            ptx_say(p, "ld.global.v2.u64 {%%w%d, %%w%d}, [%%y%d]", 2 * v, 2 * v + 1, v);
        else
            ptx_say(p, "ld.global.v4.u32 {%%w%d, %%w%d, %%w%d, %%w%d}, [%%y%d]", 4 * v, 4 * v + 1,
                    4 * v + 2, 4 * v + 3, v);
    }
    if (!b.vectors)
        ptx_say(p, "add.s64 %%y0, %%in, %%at");
    for (int w = 0; w < b.words && !b.vectors; w++)
        ptx_say(p, "ld.global.u%d %%w%d, [%%y0+%d]", 8 * p->part, w, w * p->part);
}

static void store(const struct ptx *p, struct body b)
{
    for (int v = 0; v < b.vectors; v++) {
        ptx_say(p, "add.s64 %%y%d, %%out, %%o%d", v, v);
        if (p->word == 64)
            ptx_say(p, "st.global.v2.u64 [%%y%d], {%%w%d, %%w%d}", v, 2 * v, 2 * v + 1);
        else
            ptx_say(p, "st.global.v4.u32 [%%y%d], {%%w%d, %%w%d, %%w%d, %%w%d}", v, 4 * v,
                    4 * v + 1, 4 * v + 2, 4 * v + 3);
    }
    if (!b.vectors)
        ptx_say(p, "add.s64 %%y0, %%out, %%at");
    for (int w = 0; w < b.words && !b.vectors; w++)
        ptx_say(p, "st.global.u%d [%%y0+%d], %%w%d", 8 * p->part, w * p->part, w);
}

/* Fetches the contribution whose address is at %next + KERNEL_AT_IN, and its factor, which is at
 * %y7 + KERNEL_AT_FACTOR. */
static void fetch(const struct ptx *p, struct body b, bool first)
{
    ptx_say(p, "ld.param.u64 %%in, [%%next+%d]", KERNEL_AT_IN);
    ptx_say(p, "cvta.to.global.u64 %%in, %%in");
    load(p, b);
    int parts = p->complex ? 2 : 1;
    bool scaled = p->op == TUTTI_PREMUL_SUM;
    for (int i = 0; i < parts && scaled; i++) {
        char g = p->word == 64 ? 'y' : 'g';          /* y0 and y1 are free again */
        ptx_say(p, "ld.param.u%d %%%c%d, [%%y7+%d]", 8 * p->part, g, i,
                KERNEL_AT_FACTOR + i * p->part);
        ptx_take(p, REG('f', i), REG(g, i), 0);
    }
    for (int cell = 0; cell < b.words * b.per_word; cell += parts) {
        bool direct = first && !scaled;
        for (int i = 0; i < parts; i++)
            ptx_take(p, direct ? REG('a', cell + i) : REG('n', i),
                     REG('w', (cell + i) / b.per_word), (cell + i) % b.per_word);
        if (scaled)
            ptx_scale(p, parts);
        for (int i = 0; i < parts && scaled && first; i++)
            ptx_say(p, "mov.b%d %%a%d, %%n%d", p->cell, cell + i, i);
        if (!first)
            ptx_step(p, cell, parts);
    }
}

static void fold(const struct ptx *p, struct body b, const char *name)
{
    bool scaled = p->op == TUTTI_PREMUL_SUM;
    ptx_say(p, "mov.u64 %%next, %%call");
    if (scaled)
        ptx_say(p, "mov.u64 %%y7, %%call");
    ptx_say(p, "mov.u32 %%k, 1");
    fetch(p, b, true);
    text_add(p->out, "%s_NEXT:\n", name);
    ptx_say(p, "setp.ge.u32 %%p0, %%k, %%inputs");
    ptx_say(p, "@%%p0 bra %s_DONE", name);
    ptx_say(p, "add.u32 %%k, %%k, 1");
    ptx_say(p, "add.s64 %%next, %%next, 8");
    if (scaled)
        ptx_say(p, "add.s64 %%y7, %%y7, 16");
    fetch(p, b, false);
    ptx_say(p, "bra %s_NEXT", name);
    text_add(p->out, "%s_DONE:\n", name);
    for (int cell = 0; cell < b.words * b.per_word; cell++) {
        ptx_finish(p, REG('a', cell));
        ptx_give(p, REG('w', cell / b.per_word), REG('a', cell), cell % b.per_word);
    }
    store(p, b);
}

static void tiles(const struct ptx *p)
{
    remark(p,
           "whole tiles, one after another for each block: from %begin, %tile bytes in rows of "
           "%row, the next one %hop further");
    ptx_say(p, "mul.wide.u32 %%row, %%threads, 16");
    ptx_say(p, "mul.wide.u32 %%tile, %%threads, %d", 16 * p->vectors);
    ptx_say(p, "cvt.u64.u32 %%y0, %%block");
    ptx_say(p, "mul.lo.u64 %%begin, %%tile, %%y0");
    ptx_say(p, "cvt.u64.u32 %%y0, %%blocks");
    ptx_say(p, "mul.lo.u64 %%hop, %%tile, %%y0");
    label(p, "TILE");
    ptx_say(p, "add.s64 %%y0, %%begin, %%tile");
    ptx_say(p, "setp.gt.u64 %%p0, %%y0, %%bytes");
    ptx_say(p, "@%%p0 bra TILES_DONE");
    ptx_say(p, "mul.wide.u32 %%o0, %%thread, 16");
    ptx_say(p, "add.s64 %%o0, %%o0, %%begin");
    for (int v = 1; v < p->vectors; v++)
        ptx_say(p, "add.s64 %%o%d, %%o%d, %%row", v, v - 1);
    fold(p, (struct body){ p->vectors, p->vectors * 128 / p->word, p->per_word }, "TILE");
    ptx_say(p, "add.s64 %%begin, %%begin, %%hop");
    ptx_say(p, "bra TILE");
    label(p, "TILES_DONE");
    ptx_say(p, "div.u64 %%y0, %%bytes, %%tile");
    ptx_say(p, "mul.lo.u64 %%at, %%y0, %%tile");
}

static void singles(const struct ptx *p)
{
    remark(p, "the rest, element by element, from the byte %at on");
    label(p, "SINGLE");
    ptx_say(p, "mul.wide.u32 %%y0, %%block, %%threads");
    ptx_say(p, "cvt.u64.u32 %%y1, %%thread");
    ptx_say(p, "add.s64 %%y0, %%y0, %%y1");
    ptx_say(p, "mul.lo.u64 %%y0, %%y0, %d", p->size);
    ptx_say(p, "add.s64 %%at, %%at, %%y0");
    ptx_say(p, "mul.wide.u32 %%hop, %%blocks, %%threads");
    ptx_say(p, "mul.lo.u64 %%hop, %%hop, %d", p->size);
    label(p, "ELEMENT");
    ptx_say(p, "setp.ge.u64 %%p0, %%at, %%bytes");
    ptx_say(p, "@%%p0 bra END");
    fold(p, (struct body){ 0, p->complex ? 2 : 1, 1 }, "ELEMENT");
    ptx_say(p, "add.s64 %%at, %%at, %%hop");
    ptx_say(p, "bra ELEMENT");
    label(p, "END");
    ptx_say(p, "ret");
}

void ptx_module(struct text *into)
{
    text_add(into,
             "// tutti, by src/gpu/ptx.c\n"
             ".version 6.0\n"
             ".target sm_70\n"
             ".address_size 64\n");
}

bool ptx_has(tutti_type type, tutti_op op)
{
    return op == TUTTI_PREMUL_SUM ? fold_find_scaled(type, NULL) != NULL
                                  : fold_find(type, op, NULL) != NULL;
}

int ptx_kernel(struct text *into, tutti_type type, tutti_op op)
{
    if (!ptx_has(type, op))
        return -EINVAL;
    struct ptx p = describe(into, type, op);
    head(&p);
    ask_alignment(&p);
    tiles(&p);
    singles(&p);
    text_add(into, "}\n");
    return into->used + 1 < into->room ? 0 : -ENOSPC;
}

int ptx_fold(struct text *into, tutti_type type, tutti_op op)
{
    if (ptx_has(type, op))
        ptx_module(into);
    return ptx_kernel(into, type, op);
}
