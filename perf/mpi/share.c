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

/* The names of Fortran, whose library may call the MPI below C's: there each argument is an
 * address. */
#define P2 void *a, void *b
#define P4 P2, void *c, void *d
#define P6 P4, void *e, void *f
#define P8 P6, void *g, void *h
#define FORTRAN(sum, name, parameters, arguments) \
    void name parameters; \
    void name parameters \
    { \
        static void (*next) parameters; \
        if (!next) \
            *(void **)&next = dlsym(RTLD_NEXT, #name); \
        double at = depth++ ? 0 : now(); \
        next arguments; \
        if (--depth == 0) \
            sum += now() - at; \
    }
FORTRAN(collectives, mpi_barrier_, (P2), (a, b))
FORTRAN(collectives, mpi_bcast_, (P6), (a, b, c, d, e, f))
FORTRAN(collectives, mpi_allreduce_, (P6, void *g), (a, b, c, d, e, f, g))
FORTRAN(collectives, mpi_reduce_, (P8), (a, b, c, d, e, f, g, h))
FORTRAN(collectives, mpi_allgather_, (P8), (a, b, c, d, e, f, g, h))
FORTRAN(collectives, mpi_alltoall_, (P8), (a, b, c, d, e, f, g, h))
FORTRAN(collectives, mpi_gather_, (P8, void *i), (a, b, c, d, e, f, g, h, i))
FORTRAN(collectives, mpi_scatter_, (P8, void *i), (a, b, c, d, e, f, g, h, i))
FORTRAN(collectives, mpi_allgatherv_, (P8, void *i), (a, b, c, d, e, f, g, h, i))
FORTRAN(collectives, mpi_gatherv_, (P8, void *i, void *j), (a, b, c, d, e, f, g, h, i, j))
FORTRAN(collectives, mpi_alltoallv_, (P8, void *i, void *j), (a, b, c, d, e, f, g, h, i, j))
FORTRAN(others, mpi_send_, (P6, void *g), (a, b, c, d, e, f, g))
FORTRAN(others, mpi_recv_, (P8), (a, b, c, d, e, f, g, h))
FORTRAN(others, mpi_isend_, (P8), (a, b, c, d, e, f, g, h))
FORTRAN(others, mpi_irecv_, (P8), (a, b, c, d, e, f, g, h))
FORTRAN(others, mpi_wait_, (P2, void *c), (a, b, c))
FORTRAN(others, mpi_waitall_, (P4), (a, b, c, d))

static void report(void)
{
    int rank = 0;
    double all = now() - began;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "share: rank %d: %.3f s, collectives %.3f s (%.1f %%), other MPI %.3f s "
            "(%.1f %%)\n", rank, all, collectives, 100 * collectives / all, others,
            100 * others / all);
    depth++;
}

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

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int (*next)(int *, char ***, int, int *);
    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Init_thread");
    depth++;
    int r = next(argc, argv, required, provided);
    depth--;
    began = now();
    return r;
}

/* Fortran's */
void mpi_init_(void *error);
void mpi_init_(void *error)
{
    void (*next)(void *);
    *(void **)&next = dlsym(RTLD_NEXT, "mpi_init_");
    depth++;
    next(error);
    depth--;
    began = now();
}

void mpi_init_thread_(void *required, void *provided, void *error);
void mpi_init_thread_(void *required, void *provided, void *error)
{
    void (*next)(void *, void *, void *);
    *(void **)&next = dlsym(RTLD_NEXT, "mpi_init_thread_");
    depth++;
    next(required, provided, error);
    depth--;
    began = now();
}

int MPI_Finalize(void)
{
    int (*next)(void);
    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Finalize");
    report();
    return next();
}

void mpi_finalize_(void *error);
void mpi_finalize_(void *error)
{
    void (*next)(void *);
    *(void **)&next = dlsym(RTLD_NEXT, "mpi_finalize_");
    report();
    next(error);
}
