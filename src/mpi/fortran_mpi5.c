/* A Fortran library over this ABI translates, and calls the functions of C, which are interposed:
 * nothing is to be done. */
#include "mpi/through.h"

void through_fortran(void *mpi, uintptr_t *table)
{
    (void)mpi;
    (void)table;
}
