/* How long MPI's collectives take, by the method of OSU's micro-benchmarks (osu_bcast.c and its
 * like, 5.6 to 7.3): a call is timed alone, a barrier behind it is not; the mean of all ranks'
 * means counts; 100 calls before 1,000, of more than 8 KiB 10 before 100; pages are whole. An MPI
 * program like any other: compare.sh compiles it, and runs it with libtutti-mpi.so and without.
 * Prints lines "function bytes microseconds". Arguments: the most bytes, seconds after which a line
 * ends early (0: never), the least bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 4, SKIP = 100, CALLS = 1000, LARGE = 8192, SKIP_LARGE = 10, CALLS_LARGE = 100 };
enum { LOOK = 10, PAGE = 4096 };
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

/* The seconds that up to `most` calls took, *n of them. Rank 0 says whether a line ends early. */
static double calls(int which, int bytes, int most, double seconds, int *n)
{
    double spent = 0, began = MPI_Wtime();
    int go = 1;
    for (*n = 0; go && *n < most; ++*n) {
        double at = MPI_Wtime();
        call(which, bytes);
        spent += MPI_Wtime() - at;
        if (which)
            MPI_Barrier(MPI_COMM_WORLD);
        if (seconds > 0 && *n % LOOK == LOOK - 1) {
            go = MPI_Wtime() - began < seconds;
            MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
    }
    return spent;
}

static double measure(int which, int bytes, double seconds)
{
    double spent, all = 0;
    int n;
    for (int p = 0; p < size; p++)
        counts[p] = bytes / 4;
    MPI_Barrier(MPI_COMM_WORLD);
    calls(which, bytes, bytes > LARGE ? SKIP_LARGE : SKIP, seconds / 2, &n);
    spent = calls(which, bytes, bytes > LARGE ? CALLS_LARGE : CALLS, seconds, &n) / n;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(&spent, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return all / size * 1e6;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int most = argc > 1 ? atoi(argv[1]) : 1 << 20;
    double seconds = argc > 2 ? atof(argv[2]) : 0;
    int least = argc > 3 ? atoi(argv[3]) : LEAST;
    size_t room = ((size_t)most * (size_t)size + PAGE - 1) / PAGE * PAGE;
    from = aligned_alloc(PAGE, room);
    to = aligned_alloc(PAGE, room);
    counts = calloc((size_t)size, sizeof *counts);
    if (!from || !to || !counts)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(from, 1, room);                           /* pages that are read are its own */
    memset(to, 0, room);
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
