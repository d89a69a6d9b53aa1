/* Open MPI's Fortran library calls the MPI by its profiling names, past everybody who stands in
 * front of those of C. So its names are stood in front of, too: handles are numbers there, and
 * MPI_IN_PLACE and MPI_BOTTOM are addresses of objects. Fortran's integers are C's ints: where they
 * are not, the job does without tutti. */
#include "mpi/interposed.h"
#include "mpi/through.h"

#include <dlfcn.h>

static struct {
    MPI_Comm (*comm)(int);
    MPI_Datatype (*type)(int);
    MPI_Op (*op)(int);
    struct abi_fortran said;
} f;

static void *buffer(void *at)
{
    for (int i = 0; i < 4; i++) {
        if (at && at == f.said.in_place[i])
            return MPI_IN_PLACE;
        if (at && at == f.said.bottom[i])
            return MPI_BOTTOM;
    }
    return at;
}

static void end(int *error, int r)
{
    if (error)
        *error = r;
}

static void f_init(int *error) { end(error, through_init(NULL, NULL)); }
static void f_finalize(int *error) { end(error, through_finalize()); }

static void f_init_thread(const int *required, int *provided, int *error)
{
    end(error, through_init_thread(NULL, NULL, *required, provided));
}

static void f_barrier(const int *comm, int *error)
{
    end(error, through_barrier(f.comm(*comm)));
}

static void f_bcast(void *b, const int *n, const int *type, const int *root, const int *comm,
                    int *error)
{
    end(error, through_bcast(buffer(b), *n, f.type(*type), *root, f.comm(*comm), INTS));
}

static void f_reduce(void *s, void *r, const int *n, const int *type, const int *op,
                     const int *root, const int *comm, int *error)
{
    end(error, through_reduce(buffer(s), buffer(r), *n, f.type(*type), f.op(*op), *root,
                              f.comm(*comm), INTS));
}

#define FOLD_LIKE(name) \
    static void f_##name(void *s, void *r, const int *n, const int *type, const int *op, \
                         const int *comm, int *error) \
    { \
        end(error, through_##name(buffer(s), buffer(r), *n, f.type(*type), f.op(*op), \
                                  f.comm(*comm), INTS)); \
    }
FOLD_LIKE(allreduce)
FOLD_LIKE(scan)
FOLD_LIKE(exscan)
FOLD_LIKE(reduce_scatter_block)

static void f_reduce_scatter(void *s, void *r, const int *counts, const int *type, const int *op,
                             const int *comm, int *error)
{
    end(error, through_reduce_scatter(buffer(s), buffer(r), counts, f.type(*type), f.op(*op),
                                      f.comm(*comm), INTS));
}

#define MOVE_LIKE(name) \
    static void f_##name(void *s, const int *n, const int *out, void *r, const int *m, \
                         const int *in, const int *comm, int *error) \
    { \
        end(error, through_##name(buffer(s), *n, f.type(*out), buffer(r), *m, f.type(*in), \
                                  f.comm(*comm), INTS)); \
    }
MOVE_LIKE(allgather)
MOVE_LIKE(alltoall)

#define ROOT_LIKE(name) \
    static void f_##name(void *s, const int *n, const int *out, void *r, const int *m, \
                         const int *in, const int *root, const int *comm, int *error) \
    { \
        end(error, through_##name(buffer(s), *n, f.type(*out), buffer(r), *m, f.type(*in), *root, \
                                  f.comm(*comm), INTS)); \
    }
ROOT_LIKE(gather)
ROOT_LIKE(scatter)

static void f_allgatherv(void *s, const int *n, const int *out, void *r, const int *counts,
                         const int *places, const int *in, const int *comm, int *error)
{
    end(error, through_allgatherv(buffer(s), *n, f.type(*out), buffer(r), counts, places,
                                  f.type(*in), f.comm(*comm), INTS));
}

static void f_gatherv(void *s, const int *n, const int *out, void *r, const int *counts,
                      const int *places, const int *in, const int *root, const int *comm,
                      int *error)
{
    end(error, through_gatherv(buffer(s), *n, f.type(*out), buffer(r), counts, places,
                               f.type(*in), *root, f.comm(*comm), INTS));
}

static void f_scatterv(void *s, const int *counts, const int *places, const int *out, void *r,
                       const int *m, const int *in, const int *root, const int *comm, int *error)
{
    end(error, through_scatterv(buffer(s), counts, places, f.type(*out), buffer(r), *m,
                                f.type(*in), *root, f.comm(*comm), INTS));
}

static void f_alltoallv(void *s, const int *n, const int *from, const int *out, void *r,
                        const int *m, const int *to, const int *in, const int *comm, int *error)
{
    end(error, through_alltoallv(buffer(s), n, from, f.type(*out), buffer(r), m, to, f.type(*in),
                                 f.comm(*comm), INTS));
}

void through_fortran(void *mpi, uintptr_t *table)
{
    *(void **)&f.comm = dlsym(mpi, "PMPI_Comm_f2c");
    *(void **)&f.type = dlsym(mpi, "PMPI_Type_f2c");
    *(void **)&f.op = dlsym(mpi, "PMPI_Op_f2c");
    abi_fortran(mpi, &f.said);
    table[AT_FORTRAN_INIT] = (uintptr_t)f_init;
    table[AT_FORTRAN_INIT_THREAD] = (uintptr_t)f_init_thread;
    table[AT_FORTRAN_FINALIZE] = (uintptr_t)f_finalize;
    table[AT_FORTRAN_BARRIER] = (uintptr_t)f_barrier;
    table[AT_FORTRAN_BCAST] = (uintptr_t)f_bcast;
    table[AT_FORTRAN_REDUCE] = (uintptr_t)f_reduce;
    table[AT_FORTRAN_ALLREDUCE] = (uintptr_t)f_allreduce;
    table[AT_FORTRAN_REDUCE_SCATTER_BLOCK] = (uintptr_t)f_reduce_scatter_block;
    table[AT_FORTRAN_REDUCE_SCATTER] = (uintptr_t)f_reduce_scatter;
    table[AT_FORTRAN_SCAN] = (uintptr_t)f_scan;
    table[AT_FORTRAN_EXSCAN] = (uintptr_t)f_exscan;
    table[AT_FORTRAN_ALLGATHER] = (uintptr_t)f_allgather;
    table[AT_FORTRAN_GATHER] = (uintptr_t)f_gather;
    table[AT_FORTRAN_SCATTER] = (uintptr_t)f_scatter;
    table[AT_FORTRAN_ALLTOALL] = (uintptr_t)f_alltoall;
    table[AT_FORTRAN_ALLGATHERV] = (uintptr_t)f_allgatherv;
    table[AT_FORTRAN_GATHERV] = (uintptr_t)f_gatherv;
    table[AT_FORTRAN_SCATTERV] = (uintptr_t)f_scatterv;
    table[AT_FORTRAN_ALLTOALLV] = (uintptr_t)f_alltoallv;
}
