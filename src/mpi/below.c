/* The table of the MPI's functions: a variant asks the library that is loaded for each by its
 * name, because a library that was linked with one MPI could not be preloaded where another is.
 * Cost: some seventy look-ups, once. */
#include "mpi/below.h"

#include <dlfcn.h>

struct below below;

int below_find(void *mpi)
{
    int lacks = 0;
#define BELOW_FIND(name, args) \
    *(void **)&below.name = dlsym(mpi, "PMPI_" #name); \
    lacks |= !below.name;
    BELOW(BELOW_FIND)
#undef BELOW_FIND
#define BELOW_FIND(name, args) \
    *(void **)&below.name = dlsym(mpi, "PMPI_" #name);
    BELOW_COUNTS(BELOW_FIND)
#undef BELOW_FIND
    return lacks ? -1 : 0;
}
