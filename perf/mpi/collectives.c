/* How long MPI's collectives take, by the method of OSU's benchmarks: each call is timed alone, a
 * barrier stands between two calls, the mean of all ranks' means counts. An MPI program like any
 * other: compare.sh compiles it, and runs it with libtutti-mpi.so and without. Prints lines
 * "function bytes microseconds". Arguments: the most bytes, seconds per line, the least bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 4, WARM = 20, LOOK = 10, LARGE = 1 << 18, FEW = 2 };
static int rank, size, *counts;
static char *from, *to;

static void call(int which, int bytes)
{
    int n = bytes / 4;
    switch (which) {
    case 0:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case 1:
        MPI_Allreduce(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case 2:
        MPI_Bcast(from, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
        break;
    case 3:
        MPI_Reduce(from, to, n, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
        break;
    case 4:
        MPI_Allgather(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD);
        break;
    case 5:
        MPI_Alltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD);
        break;
    case 6:
        MPI_Reduce_scatter(from, to, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    default:
        MPI_Reduce_scatter_block(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
}

static const char *const names[] = {
    "Barrier", "Allreduce", "Bcast", "Reduce", "Allgather", "Alltoall", "Reduce_scatter",
    "Reduce_scatter_block"
};
enum { FUNCTIONS = sizeof names / sizeof names[0] };

/* Calls until `seconds` have passed on rank 0. */
static double measure(int which, int bytes, double seconds)
{
    double spent = 0, all = 0, began;
    int go = 1, n = 0, look = bytes < LARGE ? LOOK : FEW;
    for (int p = 0; p < size; p++)
        counts[p] = bytes / 4;
    for (int i = 0; i < WARM; i++)
        call(which, bytes);
    began = MPI_Wtime();
    while (go) {
        for (int i = 0; i < look; i++, n++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double at = MPI_Wtime();
            call(which, bytes);
            spent += MPI_Wtime() - at;
        }
        go = MPI_Wtime() - began < seconds;
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    spent /= n;
    MPI_Reduce(&spent, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return all / size * 1e6;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int most = argc > 1 ? atoi(argv[1]) : 1 << 20;
    double seconds = argc > 2 ? atof(argv[2]) : 0.02;
    int least = argc > 3 ? atoi(argv[3]) : LEAST;
    from = malloc((size_t)most * (size_t)size);
    to = malloc((size_t)most * (size_t)size);
    counts = calloc((size_t)size, sizeof *counts);
    if (!from || !to || !counts)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(from, 1, (size_t)most * (size_t)size);              /* pages that are read are its own */
    memset(to, 0, (size_t)most * (size_t)size);
    for (int which = 0; which < FUNCTIONS; which++)
        for (int bytes = least; bytes <= most; bytes *= 4) {
            double us = measure(which, bytes, seconds);
            if (rank == 0)
                printf("%s %d %.3f\n", names[which], which ? bytes : 0, us);
            if (which == 0)
                break;
        }
    MPI_Finalize();
    return 0;
}
