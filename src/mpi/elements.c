/* Two small hash tables by handle, since a call looks up one type or two. Only what is without
 * gaps stands there: its bytes are moved as they lie. Sizes are asked of the MPI, so a type that
 * is 4 bytes with one compiler and 8 with another is right. Cost: some ten instructions. */
#include "mpi/elements.h"

#include <string.h>

enum { ROOM = 256 };

static struct element table[ROOM];
static struct { MPI_Op op; int tutti; } ops[TUTTI_LXOR + 1];

static const struct named_type named[] = {
    { "char", 0x4c000101, MOVED }, { "signed_char", 0x4c000118, SIGNED },
    { "unsigned_char", 0x4c000102, UNSIGNED }, { "byte", 0x4c00010d, BYTES },
    { "wchar", 0x4c00040e, MOVED }, { "short", 0x4c000203, SIGNED },
    { "unsigned_short", 0x4c000204, UNSIGNED }, { "int", 0x4c000405, SIGNED },
    { "unsigned", 0x4c000406, UNSIGNED }, { "long", 0x4c000807, SIGNED },
    { "unsigned_long", 0x4c000808, UNSIGNED }, { "float", 0x4c00040a, REAL },
    { "double", 0x4c00080b, REAL }, { "long_double", 0x4c00100c, MOVED },
    { "long_long_int", 0x4c000809, SIGNED }, { "unsigned_long_long", 0x4c000819, UNSIGNED },
    { "packed", 0x4c00010f, MOVED }, { "2int", 0x4c000816, MOVED },
    { "float_int", 0, MOVED },
    { "int8_t", 0x4c000137, SIGNED }, { "int16_t", 0x4c000238, SIGNED },
    { "int32_t", 0x4c000439, SIGNED }, { "int64_t", 0x4c00083a, SIGNED },
    { "uint8_t", 0x4c00013b, UNSIGNED }, { "uint16_t", 0x4c00023c, UNSIGNED },
    { "uint32_t", 0x4c00043d, UNSIGNED }, { "uint64_t", 0x4c00083e, UNSIGNED },
    { "aint", 0x4c000843, SIGNED }, { "offset", 0x4c000844, SIGNED },
    { "count", 0x4c000845, SIGNED }, { "c_bool", 0x4c00013f, LOGICAL },
    { "c_float_complex", 0x4c000840, COMPLEX }, { "c_double_complex", 0x4c001041, COMPLEX },
    { "c_long_double_complex", 0x4c002042, MOVED }, { "cxx_bool", 0x4c000133, LOGICAL },
    { "cxx_cplex", 0x4c000834, COMPLEX }, { "cxx_dblcplex", 0x4c001035, COMPLEX },
    { "cxx_ldblcplex", 0x4c002036, MOVED },
    { "character", 0x4c00011a, MOVED }, { "logical", 0x4c00041d, MOVED },
    { "integer", 0x4c00041b, SIGNED }, { "integer1", 0x4c00012d, SIGNED },
    { "integer2", 0x4c00022f, SIGNED }, { "integer4", 0x4c000430, SIGNED },
    { "integer8", 0x4c000831, SIGNED }, { "real", 0x4c00041c, REAL },
    { "real4", 0x4c000427, REAL }, { "real8", 0x4c000829, REAL },
    { "dblprec", 0x4c00081f, REAL }, { "cplex", 0x4c00081e, COMPLEX },
    { "dblcplex", 0x4c001022, COMPLEX }, { "complex8", 0x4c000828, COMPLEX },
    { "complex16", 0x4c00102a, COMPLEX }, { "2integer", 0x4c000820, MOVED },
    { "2real", 0x4c000821, MOVED }, { "2dblprec", 0x4c001023, MOVED },
};

static size_t place_of(MPI_Datatype type)
{
    return (size_t)((uint64_t)(uintptr_t)type * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static int tutti_of(enum element_class kind, size_t size)
{
    static const int of[][5] = {                     /* by the logarithm of the size */
        [MOVED] = { -1, -1, -1, -1, -1 },
        [SIGNED] = { TUTTI_I8, TUTTI_I16, TUTTI_I32, TUTTI_I64, -1 },
        [UNSIGNED] = { TUTTI_U8, TUTTI_U16, TUTTI_U32, TUTTI_U64, -1 },
        [REAL] = { -1, -1, TUTTI_F32, TUTTI_F64, -1 },
        [COMPLEX] = { -1, -1, -1, TUTTI_C64, TUTTI_C128 },
        [LOGICAL] = { TUTTI_BOOL, -1, -1, -1, -1 },
        [BYTES] = { TUTTI_U8, -1, -1, -1, -1 },
    };
    for (int i = 0; i < 5; i++)
        if (size == (size_t)1 << i)
            return of[kind][i];
    return -1;
}

static void element_add(const struct named_type *name, MPI_Datatype type, size_t size)
{
    size_t at = place_of(type);
    while (table[at].size && table[at].type != type)
        at = (at + 1) % ROOM;
    if (!table[at].size)                             /* two names of one type: the first */
        table[at] = (struct element){ type, size, name->kind, tutti_of(name->kind, size) };
}

void elements_find(void *mpi)
{
    memset(table, 0, sizeof table);
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        MPI_Datatype type;
        size_t size = 0;
        if (abi_type(mpi, &named[i], &type, &size) && size)
            element_add(&named[i], type, size);
    }
    for (int op = 0; op <= TUTTI_LXOR; op++)
        ops[op].tutti = abi_op(mpi, op, &ops[op].op) ? op : -1;
}

const struct element *element_of(MPI_Datatype type)
{
    for (size_t at = place_of(type); table[at].size; at = (at + 1) % ROOM)
        if (table[at].type == type)
            return &table[at];
    return NULL;
}

static bool allowed(enum element_class kind, int op)
{
    bool bitwise = op == TUTTI_BAND || op == TUTTI_BOR || op == TUTTI_BXOR;
    bool logical = op == TUTTI_LAND || op == TUTTI_LOR || op == TUTTI_LXOR;
    switch (kind) {
    case SIGNED:
    case UNSIGNED:
        return true;
    case REAL:
        return !bitwise && !logical;
    case COMPLEX:
        return op == TUTTI_SUM || op == TUTTI_PROD;
    case LOGICAL:
        return logical;
    case BYTES:
        return bitwise;
    case MOVED:
        return false;
    }
    return false;
}

int element_op(const struct element *element, MPI_Op op)
{
    if (!element || element->tutti < 0)
        return -1;
    for (int i = 0; i <= TUTTI_LXOR; i++)
        if (ops[i].tutti >= 0 && ops[i].op == op)
            return allowed(element->kind, i) ? i : -1;
    return -1;
}
