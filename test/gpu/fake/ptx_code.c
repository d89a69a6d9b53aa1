/* The list of instructions that there are. A row: the name, the modifiers that must stand (one of
 * each group), the kinds and sizes of its last type, what it is, how many sources. */
#include "fake/ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct row { const char *name, *mode; const char *types; enum ptx_code code; int sources; };

#define INTEGERS "b16 u16 s16 b32 u32 s32 b64 u64 s64"
#define WHOLE "u16 s16 u32 s32 u64 s64"
#define UNSIGNED "u16 u32 u64"
#define SIGNED "s16 s32 s64"

/* mode: "", a word that must stand, or "rn?" that may. */
static const struct row table[] = {
    { "add", "", WHOLE, PTX_ADD, 2 }, { "add", "rn?", "f32", PTX_ADD_F, 2 },
    { "add", "rn?", "f64", PTX_ADD_D, 2 }, { "sub", "", WHOLE, PTX_SUB, 2 },
    { "sub", "rn?", "f32", PTX_SUB_F, 2 }, { "sub", "rn?", "f64", PTX_SUB_D, 2 },
    { "mul", "lo", WHOLE, PTX_MUL, 2 }, { "mul", "rn?", "f32", PTX_MUL_F, 2 },
    { "mul", "rn?", "f64", PTX_MUL_D, 2 }, { "mul", "hi", UNSIGNED, PTX_MUL_HI, 2 },
    { "mul", "hi", SIGNED, PTX_MUL_HI_S, 2 }, { "mul", "wide", "u16 u32", PTX_MUL_WIDE, 2 },
    { "mul", "wide", "s16 s32", PTX_MUL_WIDE_S, 2 },
    { "mad", "lo", WHOLE, PTX_MAD, 3 },
    { "mad", "wide", "u16 u32", PTX_MAD_WIDE, 3 }, { "mad", "wide", "s16 s32", PTX_MAD_WIDE_S, 3 },
    { "fma", "rn", "f32", PTX_FMA_F, 3 }, { "fma", "rn", "f64", PTX_FMA_D, 3 },
    { "div", "", UNSIGNED, PTX_DIV, 2 }, { "div", "", SIGNED, PTX_DIV_S, 2 },
    { "div", "rn", "f32", PTX_DIV_F, 2 }, { "div", "rn", "f64", PTX_DIV_D, 2 },
    { "rem", "", UNSIGNED, PTX_REM, 2 }, { "rem", "", SIGNED, PTX_REM_S, 2 },
    { "neg", "", SIGNED, PTX_NEG_S, 1 },
    { "neg", "", "f32", PTX_NEG_F, 1 },
    { "neg", "", "f64", PTX_NEG_D, 1 },
    { "abs", "", SIGNED, PTX_ABS_S, 1 },
    { "abs", "", "f32", PTX_ABS_F, 1 },
    { "abs", "", "f64", PTX_ABS_D, 1 },
    { "min", "", UNSIGNED, PTX_MIN, 2 },
    { "min", "", SIGNED, PTX_MIN_S, 2 },
    { "min", "", "f32", PTX_MIN_F, 2 },
    { "min", "", "f64", PTX_MIN_D, 2 },
    { "max", "", UNSIGNED, PTX_MAX, 2 },
    { "max", "", SIGNED, PTX_MAX_S, 2 },
    { "max", "", "f32", PTX_MAX_F, 2 },
    { "max", "", "f64", PTX_MAX_D, 2 },
    { "sqrt", "rn", "f32", PTX_SQRT_F, 1 },
    { "sqrt", "rn", "f64", PTX_SQRT_D, 1 },
    { "and", "", "pred b16 b32 b64", PTX_AND, 2 },
    { "or", "", "pred b16 b32 b64", PTX_OR, 2 },
    { "xor", "", "pred b16 b32 b64", PTX_XOR, 2 },
    { "not", "", "pred b16 b32 b64", PTX_NOT, 1 },
    { "shl", "", "b16 b32 b64", PTX_SHL, 2 },
    { "shr", "", "b16 u16 b32 u32 b64 u64", PTX_SHR, 2 },
    { "shr", "", SIGNED, PTX_SHR_S, 2 },
    { "bfe", "", "u32 u64", PTX_BFE, 3 },
    { "bfe", "", "s32 s64", PTX_BFE_S, 3 },
    { "bfi", "", "b32 b64", PTX_BFI, 4 },
    { "prmt", "", "b32", PTX_PRMT, 3 },
    { "mov", "", "pred f32 f64 " INTEGERS, PTX_MOV, 1 },
    { "selp", "", "f32 f64 " INTEGERS, PTX_SELP, 3 },
    { "setp", "", "f32 f64 " INTEGERS, PTX_SETP, 2 },
    { "cvt", "", "u8 s8 f16 f32 f64 u16 s16 u32 s32 u64 s64", PTX_CVT, 1 },
    { "cvta", "", "u64", PTX_MOV, 1 },
    { "ld", "", "u8 s8 b8 f32 f64 " INTEGERS, PTX_LD, 1 },
    { "st", "", "u8 s8 b8 f32 f64 " INTEGERS, PTX_ST, 1 }, { "bra", "", "", PTX_BRA, 0 },
    { "ret", "", "", PTX_RET, 0 }, { "exit", "", "", PTX_RET, 0 },
    { "bar", "sync", "", PTX_BAR, 1 }, { "barrier", "sync", "", PTX_BAR, 1 },
};

struct ptx_type ptx_type_of(const char *word)
{
    static const char *const names[] = {
        "pred", "b8", "u8", "s8", "b16", "u16", "s16", "f16", "b32", "u32", "s32",
        "f32", "b64", "u64", "s64", "f64"
    };
    static const unsigned char bits[] = {
        1, 8, 8, 8, 16, 16, 16, 16, 32, 32, 32, 32, 64, 64, 64, 64
    };
    for (size_t i = 0; i < sizeof bits; i++)
        if (!strcmp(word, names[i]))
            return (struct ptx_type){ names[i][0], bits[i] };
    return (struct ptx_type){ 0, 0 };
}

int ptx_special(const char *word)
{
    static const struct { const char *name; int row; } all[] = {
        { "%tid.", PTX_TID }, { "%ntid.", PTX_NTID }, { "%ctaid.", PTX_CTAID },
        { "%nctaid.", PTX_NCTAID },
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        size_t n = strlen(all[i].name);
        if (!strncmp(word, all[i].name, n) && word[n] >= 'x' && word[n] <= 'z' && !word[n + 1])
            return all[i].row + word[n] - 'x';
    }
    return strcmp(word, "%laneid") ? -1 : PTX_LANEID;
}

bool ptx_constant(const char *word, uint64_t *value)
{
    char *end;
    if (word[0] == '0' && (word[1] == 'f' || word[1] == 'F' || word[1] == 'd' || word[1] == 'D')) {
        *value = strtoull(word + 2, &end, 16);
        return !*end && strlen(word) == (tolower((unsigned char)word[1]) == 'f' ? 10u : 18u);
    }
    bool minus = word[0] == '-';
    if (!isdigit((unsigned char)word[minus]))
        return false;
    *value = strtoull(word + minus, &end, 0);
    if (minus)
        *value = 0 - *value;
    return !*end || !strcmp(end, "U") || !strcmp(end, "u");
}

static bool lists(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == 0 || at[n] == ' '))
            return true;
    return false;
}

static bool compare(struct ptx_op *op, const char *word)
{
    static const struct { const char *word; enum ptx_compare compare; bool unordered; } all[] = {
        { "eq", PTX_EQ, 0 }, { "ne", PTX_NE, 0 }, { "lt", PTX_LT, 0 }, { "le", PTX_LE, 0 },
        { "gt", PTX_GT, 0 }, { "ge", PTX_GE, 0 }, { "lo", PTX_LT, 0 }, { "ls", PTX_LE, 0 },
        { "hi", PTX_GT, 0 }, { "hs", PTX_GE, 0 }, { "equ", PTX_EQ, 1 }, { "neu", PTX_NE, 1 },
        { "ltu", PTX_LT, 1 }, { "leu", PTX_LE, 1 }, { "gtu", PTX_GT, 1 }, { "geu", PTX_GE, 1 },
        { "num", PTX_NUM, 0 }, { "nan", PTX_NAN, 1 },
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!strcmp(word, all[i].word)) {
            op->compare = all[i].compare;
            op->unordered = all[i].unordered;
            return true;
        }
    return false;
}

/* A modifier of those that a row does not name. */
static const char *modifier(struct ptx_op *op, const char *word)
{
    if (op->code == PTX_SETP)
        return compare(op, word) ? NULL : "no such comparison";
    if (op->code == PTX_LD || op->code == PTX_ST) {
        if (!strcmp(word, "v2") || !strcmp(word, "v4"))
            op->vector = word[1] - '0';
        else if (!strcmp(word, "global") || !strcmp(word, "param") || !strcmp(word, "shared"))
            op->space = word[0] == 'g' ? PTX_GLOBAL : word[0] == 'p' ? PTX_PARAM : PTX_SHARED;
        else if (!lists("nc ca cg cs volatile", word))
            return "no such modifier of a load or store here";
        return NULL;
    }
    if (op->code == PTX_CVT
        && (!strcmp(word, "rn") || !strcmp(word, "rni") || !strcmp(word, "rzi"))) {
        op->round = !strcmp(word, "rn") ? PTX_RN : !strcmp(word, "rni") ? PTX_RNI : PTX_RZI;
        return NULL;
    }
    if (op->code == PTX_MOV && (!strcmp(word, "to") || !strcmp(word, "global")))
        return NULL;                                 /* cvta.to.global: addresses are the same */
    return op->code == PTX_BRA && !strcmp(word, "uni") ? NULL
        : op->code == PTX_BAR && !strcmp(word, "aligned") ? NULL
        : "no such modifier";
}

/* Floats are rounded when they are made from something wider or whole, and only then. */
static const char *check_cvt(const struct ptx_op *op)
{
    bool to = op->type.kind == 'f', from = op->from.kind == 'f';
    if (!op->from.bits)
        return "no type to convert from";
    if (to && (!from || op->from.bits > op->type.bits) && op->round != PTX_RN)
        return "wants .rn";
    if (!to && from && op->round != PTX_RZI && op->round != PTX_RNI)
        return "wants .rzi or .rni";
    if (((to && from && op->from.bits <= op->type.bits) || (!to && !from)) && op->round)
        return "is exact and has no rounding";
    if ((op->type.bits == 16 && to && !(from && op->from.bits == 32))
        || (op->from.bits == 16 && from && !(to && op->type.bits == 32)))
        return "f16 is converted from and to f32 here";
    return NULL;
}

const char *ptx_decode(struct ptx_op *op, char part[PTX_PARTS][16], int parts, int *sources)
{
    const char *why = "no such instruction";
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct row *row = &table[i];
        int last = parts - 1, at = 1;
        if (strcmp(part[0], row->name) != 0)
            continue;
        why = "no such type or mode of it";
        struct ptx_type type = last > 0 ? ptx_type_of(part[last]) : (struct ptx_type){ 0, 0 };
        if (row->types[0] ? !type.bits || !lists(row->types, part[last]) : type.bits != 0)
            continue;
        if (row->mode[0] && !strcmp(row->mode, "rn?"))
            at += parts > 2 && !strcmp(part[1], "rn");
        else if (row->mode[0] && (parts < 2 || strcmp(part[at++], row->mode) != 0))
            continue;
        op->code = row->code;
        op->type = type;
        *sources = row->sources;
        int end = row->types[0] ? last : parts;
        if (op->code == PTX_CVT && end - at >= 1) {
            op->from = type;
            op->type = ptx_type_of(part[--end]);
            if (!op->type.bits || !lists(row->types, part[end]))
                return "no type to convert to";
        }
        for (; at < end; at++)
            if ((why = modifier(op, part[at])) != NULL)
                return why;
        return op->code == PTX_CVT ? check_cvt(op) : NULL;
    }
    return why;
}
