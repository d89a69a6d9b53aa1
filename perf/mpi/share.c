/* How much of an MPI program's time passes in MPI: preloaded in front of it, and of libtutti-mpi.so
 * if that is to be there. Prints one line a rank at MPI_Finalize: seconds since MPI_Init, of these
 * in collectives, and in what else waits.
 *   mpicc -shared -fPIC -O2 -o share.so perf/mpi/share.c
 *   mpirun -n 2 env LD_PRELOAD="share.so libtutti-mpi.so" PROGRAM */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double began, collectives, others;
static int depth;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* An MPI may call its own functions by these names: the outermost one counts. */
#define TIMED(sum, name, parameters, arguments) \
    int name parameters \
    { \
        static int (*next) parameters; \
        if (!next) \
            *(void **)&next = dlsym(RTLD_NEXT, #name); \
        double at = depth++ ? 0 : now(); \
        int r = next arguments; \
        if (--depth == 0) \
            sum += now() - at; \
        return r; \
    }
#define OUT const void *a, int n, MPI_Datatype t
#define IN void *b, int m, MPI_Datatype u
#define FOLD const void *a, void *b, int n, MPI_Datatype t, MPI_Op o
#define COLLECTIVE(name, parameters, arguments) TIMED(collectives, name, parameters, arguments)
#define OTHER(name, parameters, arguments) TIMED(others, name, parameters, arguments)

COLLECTIVE(MPI_Barrier, (MPI_Comm c), (c))
COLLECTIVE(MPI_Bcast, (IN, int r0, MPI_Comm c), (b, m, u, r0, c))
COLLECTIVE(MPI_Allreduce, (FOLD, MPI_Comm c), (a, b, n, t, o, c))
COLLECTIVE(MPI_Reduce, (FOLD, int r0, MPI_Comm c), (a, b, n, t, o, r0, c))
COLLECTIVE(MPI_Scan, (FOLD, MPI_Comm c), (a, b, n, t, o, c))
COLLECTIVE(MPI_Reduce_scatter, (const void *a, void *b, const int *n, MPI_Datatype t, MPI_Op o,
                                MPI_Comm c), (a, b, n, t, o, c))
COLLECTIVE(MPI_Gather, (OUT, IN, int r0, MPI_Comm c), (a, n, t, b, m, u, r0, c))
COLLECTIVE(MPI_Scatter, (OUT, IN, int r0, MPI_Comm c), (a, n, t, b, m, u, r0, c))
COLLECTIVE(MPI_Allgather, (OUT, IN, MPI_Comm c), (a, n, t, b, m, u, c))
COLLECTIVE(MPI_Alltoall, (OUT, IN, MPI_Comm c), (a, n, t, b, m, u, c))
COLLECTIVE(MPI_Allgatherv, (OUT, void *b, const int *m, const int *d, MPI_Datatype u, MPI_Comm c),
           (a, n, t, b, m, d, u, c))
COLLECTIVE(MPI_Alltoallv, (const void *a, const int *n, const int *e, MPI_Datatype t, void *b,
                           const int *m, const int *d, MPI_Datatype u, MPI_Comm c),
           (a, n, e, t, b, m, d, u, c))
OTHER(MPI_Send, (OUT, int to, int tag, MPI_Comm c), (a, n, t, to, tag, c))
OTHER(MPI_Ssend, (OUT, int to, int tag, MPI_Comm c), (a, n, t, to, tag, c))
OTHER(MPI_Rsend, (OUT, int to, int tag, MPI_Comm c), (a, n, t, to, tag, c))
OTHER(MPI_Recv, (IN, int to, int tag, MPI_Comm c, MPI_Status *s), (b, m, u, to, tag, c, s))
OTHER(MPI_Isend, (OUT, int to, int tag, MPI_Comm c, MPI_Request *q), (a, n, t, to, tag, c, q))
OTHER(MPI_Irecv, (IN, int to, int tag, MPI_Comm c, MPI_Request *q), (b, m, u, to, tag, c, q))
OTHER(MPI_Sendrecv, (OUT, int to, int tag, IN, int from, int tag2, MPI_Comm c, MPI_Status *s),
      (a, n, t, to, tag, b, m, u, from, tag2, c, s))
OTHER(MPI_Wait, (MPI_Request *q, MPI_Status *s), (q, s))
OTHER(MPI_Waitall, (int n, MPI_Request *q, MPI_Status *s), (n, q, s))
OTHER(MPI_Waitany, (int n, MPI_Request *q, int *i, MPI_Status *s), (n, q, i, s))
OTHER(MPI_Test, (MPI_Request *q, int *f, MPI_Status *s), (q, f, s))
OTHER(MPI_Testany, (int n, MPI_Request *q, int *i, int *f, MPI_Status *s), (n, q, i, f, s))
OTHER(MPI_Iprobe, (int from, int tag, MPI_Comm c, int *f, MPI_Status *s), (from, tag, c, f, s))

int MPI_Init(int *argc, char ***argv)
{
    int (*next)(int *, char ***);
    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Init");
    depth++;
    int r = next(argc, argv);
    depth--;
    began = now();
    return r;
}

int MPI_Finalize(void)
{
    int (*next)(void), rank = 0;
    double all = now() - began;
    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Finalize");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "share: rank %d: %.3f s, collectives %.3f s (%.1f %%), other MPI %.3f s "
            "(%.1f %%)\n", rank, all, collectives, 100 * collectives / all, others,
            100 * others / all);
    depth++;
    return next();
}
