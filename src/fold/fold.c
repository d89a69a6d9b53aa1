/* Names, sizes, refusals, and the choice of an instruction set.
 *
 * The first caller makes the choice. It never changes: threads that come together make the same.
 * After it fold_find is four loads. */
#include "fold/fold.h"

#include <string.h>

#include "base/atomic.h"
#include "base/knob.h"
#include "base/isa.h"
#include "fold/table.h"

struct type_row {
    const char *name;
    size_t      size;
    const char *refused; /* why some operations are not allowed; NULL: all are */
};

#define FLOAT(name)                                                                                \
    "bitwise and logical operations need an integer type or bool; " name                           \
        " has TUTTI_SUM, PROD, MIN, MAX, AVG, PREMUL_SUM"
#define COMPLEX(name) "complex numbers have no order and no bits to combine; " name \
    " has TUTTI_SUM, PROD, AVG, PREMUL_SUM"

static const struct type_row types[] = {
    [TUTTI_I8] = {"i8", 1, NULL},
    [TUTTI_U8] = {"u8", 1, NULL},
    [TUTTI_I16] = {"i16", 2, NULL},
    [TUTTI_U16] = {"u16", 2, NULL},
    [TUTTI_I32] = {"i32", 4, NULL},
    [TUTTI_U32] = {"u32", 4, NULL},
    [TUTTI_I64] = {"i64", 8, NULL},
    [TUTTI_U64] = {"u64", 8, NULL},
    [TUTTI_F16] = {"f16", 2, FLOAT("f16")},
    [TUTTI_BF16] = {"bf16", 2, FLOAT("bf16")},
    [TUTTI_F32] = {"f32", 4, FLOAT("f32")},
    [TUTTI_F64] = {"f64", 8, FLOAT("f64")},
    [TUTTI_BOOL] = {"bool", 1, "bool has no average; count with TUTTI_SUM over an integer type"},
    [TUTTI_C64] = {"c64", 8, COMPLEX("c64")},
    [TUTTI_C128] = {"c128", 16, COMPLEX("c128")},
    [TUTTI_F8E4M3] = {"f8e4m3", 1, FLOAT("f8e4m3")},
    [TUTTI_F8E5M2] = {"f8e5m2", 1, FLOAT("f8e5m2")},
};

static const char *const ops[] = {
    [TUTTI_SUM] = "sum",   [TUTTI_PROD] = "prod", [TUTTI_MIN] = "min",   [TUTTI_MAX] = "max",
    [TUTTI_AVG] = "avg",   [TUTTI_BAND] = "band", [TUTTI_BOR] = "bor",   [TUTTI_BXOR] = "bxor",
    [TUTTI_LAND] = "land", [TUTTI_LOR] = "lor", [TUTTI_LXOR] = "lxor",
    [TUTTI_PREMUL_SUM] = "premul_sum",
};

enum { TYPES = sizeof types / sizeof types[0], OPS = sizeof ops / sizeof ops[0] };

/* The number of a table + 1; 0: nobody has asked. Every writer writes the same. */
static shared32 chosen;

static const struct table *fold_table_of(const char *isa);

/* TUTTI_ISA's table, if this machine and build have it, else the best. Joining refuses a set that
 * is missing. */
static const struct table *fold_choose(void)
{
    const char *wanted;
    const struct table *table = knob_text(KNOB_ISA, &wanted) ? fold_table_of(wanted) : NULL;
    if (table)
        return table;
    if (table_avx512.fn[0][0] && isa_has_avx512())
        return &table_avx512;
    if (table_avx2.fn[0][0] && isa_has_avx2())
        return &table_avx2;
    if (table_neon.fn[0][0])
        return &table_neon;
    return &table_plain;
}

/* Chosen by the first that asks, and not at the start of the program, which may fold nothing. */
static const struct table *fold_table(void)
{
    static const struct table *const tables[] = {
        &table_plain, &table_avx2, &table_avx512, &table_neon
    };
    uint32_t number = load_relaxed32(&chosen);               /* relaxed: the tables are constants */
    if (number)
        return tables[number - 1];
    const struct table *table = fold_choose();
    while (tables[number] != table)
        number++;
    store_relaxed32(&chosen, number + 1);                                    /* relaxed: as above */
    return table;
}

/* NULL: there is no such set, or this machine or build lacks it. */
static const struct table *fold_table_of(const char *isa)
{
    if (strcmp(isa, "plain") == 0)
        return &table_plain;
    if (strcmp(isa, "avx2") == 0 && isa_has_avx2())
        return &table_avx2;
    if (strcmp(isa, "avx512") == 0 && isa_has_avx512())
        return &table_avx512;
    if (strcmp(isa, "neon") == 0 && table_neon.fn[0][0])
        return &table_neon;
    return NULL;
}

static fold_fn *fold_in(const struct table *table, tutti_type type, tutti_op op)
{
    if (!table || (unsigned)type >= TABLE_TYPES || (unsigned)op >= TABLE_OPS)
        return NULL;
    return table->fn[type][op];
}

static fold_scaled_fn *fold_scaled_in(const struct table *table, tutti_type type)
{
    return table && (unsigned)type < TABLE_TYPES ? table->scaled[type] : NULL;
}

static const char *fold_refusal(tutti_type type, tutti_op op)
{
    if ((unsigned)type >= TYPES)
        return "the type is none of tutti's; give one of TUTTI_I8 to TUTTI_F8E5M2";
    if ((unsigned)op >= TUTTI_OP_USER && (unsigned)op <= TUTTI_OP_MAX)
        return "this comm has no such operation; make it with tutti_op_create";
    if ((unsigned)op >= OPS)
        return "the operation is none of tutti's; give one of TUTTI_SUM to TUTTI_PREMUL_SUM";
    if (op == TUTTI_PREMUL_SUM && type == TUTTI_BOOL)
        return "bool has no products to add; use TUTTI_PREMUL_SUM with an integer type";
    if (op == TUTTI_PREMUL_SUM)
        return "TUTTI_PREMUL_SUM needs a factor; give one element of the type";
    return types[type].refused;
}

fold_fn *fold_find(tutti_type type, tutti_op op, const char **why)
{
    fold_fn *fn = fold_in(fold_table(), type, op);
    if (why)
        *why = fn ? NULL : fold_refusal(type, op);
    return fn;
}

fold_scaled_fn *fold_find_scaled(tutti_type type, const char **why)
{
    fold_scaled_fn *fn = fold_scaled_in(fold_table(), type);
    if (why)
        *why = fn ? NULL : fold_refusal(type, TUTTI_PREMUL_SUM);
    return fn;
}

fold_fn *fold_find_isa(const char *isa, tutti_type type, tutti_op op)
{
    return fold_in(fold_table_of(isa), type, op);
}

fold_scaled_fn *fold_find_scaled_isa(const char *isa, tutti_type type)
{
    return fold_scaled_in(fold_table_of(isa), type);
}

const char *fold_isa(void)
{
    return fold_table()->isa;
}

size_t fold_type_size(tutti_type type)
{
    return (unsigned)type < TYPES ? types[type].size : 0;
}

const char *fold_type_name(tutti_type type)
{
    return (unsigned)type < TYPES ? types[type].name : "?";
}

const char *fold_op_name(tutti_op op)
{
    if ((unsigned)op < OPS)
        return ops[op];
    return (unsigned)op >= TUTTI_OP_USER && (unsigned)op <= TUTTI_OP_MAX ? "user" : "?";
}
