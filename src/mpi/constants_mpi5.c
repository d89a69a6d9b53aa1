/* The handles of the ABI of MPI 5: small numbers that its text lists. Which size a type has is
 * asked of the MPI: that of Fortran's types is its compiler's affair. */
#include "mpi/constants.h"

#include <string.h>
#include <tutti.h>

#define HANDLE(kind, number) ((kind)(uintptr_t)(number))

int abi_find(struct abi *abi, void *mpi)
{
    (void)mpi;
    *abi = (struct abi){
        .world = HANDLE(MPI_Comm, 0x101), .self = HANDLE(MPI_Comm, 0x102),
        .no_comm = HANDLE(MPI_Comm, 0x100), .no_info = HANDLE(MPI_Info, 0x130),
        .no_type = HANDLE(MPI_Datatype, 0x200), .type_int = HANDLE(MPI_Datatype, 0x209),
        .type_byte = HANDLE(MPI_Datatype, 0x247), .fortran_integer = HANDLE(MPI_Datatype, 0x219),
        .op_min = HANDLE(MPI_Op, 0x22), .errors_return = HANDLE(MPI_Errhandler, 0x143),
        .no_request = HANDLE(MPI_Request, 0x180)
    };
    return 0;
}

/* By Open MPI's names, which elements.c has for all. */
static const struct { const char *symbol; int number; } types[] = {
    { "aint", 0x201 }, { "count", 0x202 }, { "offset", 0x203 }, { "packed", 0x207 },
    { "short", 0x208 }, { "int", 0x209 }, { "long", 0x20a }, { "long_long_int", 0x20b },
    { "unsigned_short", 0x20c }, { "unsigned", 0x20d }, { "unsigned_long", 0x20e },
    { "unsigned_long_long", 0x20f }, { "float", 0x210 }, { "c_float_complex", 0x212 },
    { "cxx_cplex", 0x213 }, { "double", 0x214 }, { "c_double_complex", 0x216 },
    { "cxx_dblcplex", 0x217 }, { "logical", 0x218 }, { "integer", 0x219 }, { "real", 0x21a },
    { "cplex", 0x21b }, { "dblprec", 0x21c }, { "dblcplex", 0x21d }, { "character", 0x21e },
    { "long_double", 0x220 }, { "c_long_double_complex", 0x224 }, { "cxx_ldblcplex", 0x225 },
    { "float_int", 0x228 }, { "2int", 0x22b }, { "2real", 0x230 }, { "2dblprec", 0x231 },
    { "2integer", 0x232 }, { "c_bool", 0x238 }, { "cxx_bool", 0x239 }, { "wchar", 0x23c },
    { "int8_t", 0x240 }, { "uint8_t", 0x241 }, { "char", 0x243 }, { "signed_char", 0x244 },
    { "unsigned_char", 0x245 }, { "byte", 0x247 }, { "int16_t", 0x248 }, { "uint16_t", 0x249 },
    { "int32_t", 0x250 }, { "uint32_t", 0x251 }, { "int64_t", 0x258 }, { "uint64_t", 0x259 },
    { "integer1", 0x2c1 }, { "integer2", 0x2c9 }, { "integer4", 0x2d1 }, { "real4", 0x2d2 },
    { "integer8", 0x2d9 }, { "real8", 0x2da }, { "complex8", 0x2db }, { "complex16", 0x2e3 },
};

bool abi_type(void *mpi, const struct named_type *name, MPI_Datatype *type, size_t *size)
{
    int bytes = 0, number = 0;
    MPI_Aint lower = 0, extent = 0;
    (void)mpi;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].symbol, name->symbol) == 0)
            number = types[i].number;
    *type = HANDLE(MPI_Datatype, number);
    if (!number || below.Type_size(*type, &bytes) || bytes <= 0
        || below.Type_get_extent(*type, &lower, &extent))
        return false;
    *size = lower == 0 && extent == bytes ? (size_t)bytes : 0;
    return true;
}

bool abi_op(void *mpi, int op, MPI_Op *found)
{
    static const int numbers[] = {
        [TUTTI_SUM] = 0x21, [TUTTI_MIN] = 0x22, [TUTTI_MAX] = 0x23, [TUTTI_PROD] = 0x24,
        [TUTTI_BAND] = 0x28, [TUTTI_BOR] = 0x29, [TUTTI_BXOR] = 0x2a, [TUTTI_LAND] = 0x30,
        [TUTTI_LOR] = 0x31, [TUTTI_LXOR] = 0x32
    };
    (void)mpi;
    *found = HANDLE(MPI_Op, numbers[op]);
    return numbers[op] != 0;
}

void abi_fortran(void *mpi, struct abi_fortran *f)
{
    (void)mpi;
    memset(f, 0, sizeof *f);
}
