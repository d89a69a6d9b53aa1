/* A rank of Open MPI or MPICH, whichever compiles it: rank_mpi PAGE, by mpirun. MPI_ERRORS_RETURN
 * is set, so that the program hears of errors, unless the page asks for the default,
 * MPI_ERRORS_ARE_FATAL. MPI has no deadlines to ask for. */
#include "faults/scenario.h"
#include "peers/mpi_version.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

static MPI_Comm comms[3];

static const char *kind_of(int class)
{
    switch (class) {
    case MPI_ERR_TRUNCATE: return "MPI_ERR_TRUNCATE";
    case MPI_ERR_OTHER:    return "MPI_ERR_OTHER";
    case MPI_ERR_INTERN:   return "MPI_ERR_INTERN";
    case MPI_ERR_UNKNOWN:  return "MPI_ERR_UNKNOWN";
    case MPI_ERR_COUNT:    return "MPI_ERR_COUNT";
    case MPI_ERR_TYPE:     return "MPI_ERR_TYPE";
    case MPI_ERR_ROOT:     return "MPI_ERR_ROOT";
    default:               return "an MPI error";
    }
}

static int answer(int error, struct failure *why)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int class, length;
    if (error == MPI_SUCCESS)
        return 0;
    MPI_Error_class(error, &class);
    MPI_Error_string(error, text, &length);
    snprintf(why->kind, sizeof why->kind, "%s", kind_of(class));
    snprintf(why->text, sizeof why->text, "%s", text);
    return -1;
}

static int barrier(int comm, struct failure *why)
{
    return answer(MPI_Barrier(comms[comm]), why);
}

static int all_reduce(void *data, size_t count, enum element type, struct failure *why)
{
    return answer(MPI_Allreduce(MPI_IN_PLACE, data, (int)count,
                                type == ELEMENT_FLOAT ? MPI_FLOAT : MPI_DOUBLE, MPI_SUM, comms[0]),
                  why);
}

static int broadcast(float *data, size_t count, int root, struct failure *why)
{
    return answer(MPI_Bcast(data, (int)count, MPI_FLOAT, root, comms[0]), why);
}

static int version(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    const char *number = mpi_version(text);
    return printf("%s %s\n", strstr(text, "Open") ? "Open MPI" : "MPICH", number) < 0;
}

int main(int argc, char **argv)
{
    static const struct peer peer = { NULL, barrier, all_reduce, broadcast };
    int me;
    if (argc == 2 && !strcmp(argv[1], "--version"))
        return version();
    struct page *page = argc == 2 ? page_map(argv[1], 0) : NULL;
    if (!page)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    comms[0] = MPI_COMM_WORLD;
    if (!page->fatal)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 1; page->fault == CYCLE && i < 3; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);         /* the error handler goes with it */
    scenario_play(page, me, &peer);
}
