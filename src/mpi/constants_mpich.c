/* The handles of MPICH: numbers, the same in all its versions since 3, in Intel MPI and others that
 * keep its ABI. The second byte of a predefined type's is its size. */
#include "mpi/constants.h"

#include <string.h>
#include <tutti.h>

int abi_find(struct abi *abi, void *mpi)
{
    (void)mpi;
    *abi = (struct abi){
        .world = 0x44000000, .self = 0x44000001, .no_comm = 0x04000000, .no_info = 0x1c000000,
        .no_type = 0x0c000000, .type_int = 0x4c000405, .type_byte = 0x4c00010d,
        .fortran_integer = 0x4c000405, .op_min = 0x58000002,
        .errors_return = 0x54000001, .no_request = 0x2c000000
    };
    return 0;
}

bool abi_type(void *mpi, const struct named_type *name, MPI_Datatype *type, size_t *size)
{
    (void)mpi;
    *type = (MPI_Datatype)name->number;
    *size = name->number >> 8 & 0xff;
    return name->number != 0;
}

bool abi_op(void *mpi, int op, MPI_Op *found)
{
    static const MPI_Op numbers[] = {
        [TUTTI_MAX] = 0x58000001, [TUTTI_MIN] = 0x58000002, [TUTTI_SUM] = 0x58000003,
        [TUTTI_PROD] = 0x58000004, [TUTTI_LAND] = 0x58000005, [TUTTI_BAND] = 0x58000006,
        [TUTTI_LOR] = 0x58000007, [TUTTI_BOR] = 0x58000008, [TUTTI_LXOR] = 0x58000009,
        [TUTTI_BXOR] = 0x5800000a
    };
    (void)mpi;
    *found = numbers[op];
    return *found != 0;
}

/* Its Fortran library translates, and calls the functions of C. */
void abi_fortran(void *mpi, struct abi_fortran *f)
{
    (void)mpi;
    memset(f, 0, sizeof *f);
}
