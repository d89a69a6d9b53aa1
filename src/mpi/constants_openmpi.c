/* The handles of Open MPI: each is the address of an object that its library shows. A program that
 * is linked with it may have copies of them, which its library then uses, too: they are looked for
 * first. Where a module has loaded the library for itself, there are none. */
#include "mpi/constants.h"

#include <dlfcn.h>
#include <stdio.h>
#include <tutti.h>

static void *used(void *mpi, const char *symbol)
{
    void *copy = dlsym(RTLD_DEFAULT, symbol);
    return copy ? copy : dlsym(mpi, symbol);
}

static void *object(void *mpi, const char *prefix, const char *name)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "ompi_mpi_%s%s", prefix, name);
    return used(mpi, symbol);
}

int abi_find(struct abi *abi, void *mpi)
{
    *abi = (struct abi){
        .world = object(mpi, "", "comm_world"), .self = object(mpi, "", "comm_self"),
        .no_comm = object(mpi, "", "comm_null"), .no_info = object(mpi, "", "info_null"),
        .no_type = object(mpi, "", "datatype_null"), .type_int = object(mpi, "", "int"),
        .type_byte = object(mpi, "", "byte"), .fortran_integer = object(mpi, "", "integer"),
        .op_min = object(mpi, "op_", "min"),
        .errors_return = object(mpi, "", "errors_return"),
        .no_request = used(mpi, "ompi_request_null")
    };
    return abi->world && abi->self && abi->no_comm && abi->no_info && abi->no_type && abi->type_int
        && abi->type_byte && abi->fortran_integer && abi->op_min
        && abi->errors_return && abi->no_request ? 0 : -1;
}

bool abi_type(void *mpi, const struct named_type *name, MPI_Datatype *type, size_t *size)
{
    int bytes = 0;
    MPI_Aint lower = 0, extent = 0;
    *type = object(mpi, "", name->symbol);
    if (!*type || below.Type_size(*type, &bytes) || below.Type_get_extent(*type, &lower, &extent))
        return false;
    *size = lower == 0 && extent == bytes ? (size_t)bytes : 0;
    return true;
}

bool abi_op(void *mpi, int op, MPI_Op *found)
{
    static const char *const names[] = {
        [TUTTI_SUM] = "sum", [TUTTI_PROD] = "prod", [TUTTI_MIN] = "min", [TUTTI_MAX] = "max",
        [TUTTI_BAND] = "band", [TUTTI_BOR] = "bor", [TUTTI_BXOR] = "bxor", [TUTTI_LAND] = "land",
        [TUTTI_LOR] = "lor", [TUTTI_LXOR] = "lxor"
    };
    *found = names[op] ? object(mpi, "op_", names[op]) : NULL;
    return *found != NULL;
}

void abi_fortran(void *mpi, struct abi_fortran *f)
{
    static const char *const in_place[] = {
        "mpi_fortran_in_place", "mpi_fortran_in_place_", "mpi_fortran_in_place__",
        "MPI_FORTRAN_IN_PLACE"
    };
    static const char *const bottom[] = {
        "mpi_fortran_bottom", "mpi_fortran_bottom_", "mpi_fortran_bottom__", "MPI_FORTRAN_BOTTOM"
    };
    for (int i = 0; i < 4; i++) {
        f->in_place[i] = used(mpi, in_place[i]);
        f->bottom[i] = used(mpi, bottom[i]);
    }
}
