/* Each collective in MPI's two forms, with counts of int and of 64 bits: what the trampoline jumps
 * to. One function stands behind both. */
#include "mpi/interposed.h"
#include "mpi/through.h"

#define SHAPES(T, form) \
    static int bcast_##form(void *b, T n, MPI_Datatype t, int root, MPI_Comm c) \
    { \
        return through_bcast(b, n, t, root, c, form); \
    } \
    static int reduce_##form(const void *s, void *r, T n, MPI_Datatype t, MPI_Op op, int root, \
                             MPI_Comm c) \
    { \
        return through_reduce(s, r, n, t, op, root, c, form); \
    } \
    FOLD_LIKE(allreduce, T, form) \
    FOLD_LIKE(reduce_scatter_block, T, form) \
    FOLD_LIKE(scan, T, form) \
    FOLD_LIKE(exscan, T, form) \
    static int reduce_scatter_##form(const void *s, void *r, const void *counts, MPI_Datatype t, \
                                     MPI_Op op, MPI_Comm c) \
    { \
        return through_reduce_scatter(s, r, counts, t, op, c, form); \
    } \
    MOVE_LIKE(allgather, T, form) \
    MOVE_LIKE(alltoall, T, form) \
    ROOT_LIKE(gather, T, form) \
    ROOT_LIKE(scatter, T, form) \
    static int allgatherv_##form(const void *s, T n, MPI_Datatype out, void *r, \
                                 const void *counts, const void *places, MPI_Datatype in, \
                                 MPI_Comm c) \
    { \
        return through_allgatherv(s, n, out, r, counts, places, in, c, form); \
    } \
    static int gatherv_##form(const void *s, T n, MPI_Datatype out, void *r, const void *counts, \
                              const void *places, MPI_Datatype in, int root, MPI_Comm c) \
    { \
        return through_gatherv(s, n, out, r, counts, places, in, root, c, form); \
    } \
    static int scatterv_##form(const void *s, const void *counts, const void *places, \
                               MPI_Datatype out, void *r, T m, MPI_Datatype in, int root, \
                               MPI_Comm c) \
    { \
        return through_scatterv(s, counts, places, out, r, m, in, root, c, form); \
    } \
    static int alltoallv_##form(const void *s, const void *counts, const void *places, \
                                MPI_Datatype out, void *r, const void *in_counts, \
                                const void *in_places, MPI_Datatype in, MPI_Comm c) \
    { \
        return through_alltoallv(s, counts, places, out, r, in_counts, in_places, in, c, form); \
    }

#define FOLD_LIKE(name, T, form) \
    static int name##_##form(const void *s, void *r, T n, MPI_Datatype t, MPI_Op op, MPI_Comm c) \
    { \
        return through_##name(s, r, n, t, op, c, form); \
    }
#define MOVE_LIKE(name, T, form) \
    static int name##_##form(const void *s, T n, MPI_Datatype out, void *r, T m, MPI_Datatype in, \
                             MPI_Comm c) \
    { \
        return through_##name(s, n, out, r, m, in, c, form); \
    }
#define ROOT_LIKE(name, T, form) \
    static int name##_##form(const void *s, T n, MPI_Datatype out, void *r, T m, MPI_Datatype in, \
                             int root, MPI_Comm c) \
    { \
        return through_##name(s, n, out, r, m, in, root, c, form); \
    }

SHAPES(int, INTS)
SHAPES(MPI_Count, COUNTS)

#define SET(Name, name) \
    table[AT_##Name] = (uintptr_t)name##_INTS; \
    table[AT_##Name##_c] = (uintptr_t)name##_COUNTS;

void through_forms(uintptr_t *table)
{
    table[AT_Barrier] = (uintptr_t)through_barrier;
    SET(Bcast, bcast)
    SET(Reduce, reduce)
    SET(Allreduce, allreduce)
    SET(Reduce_scatter_block, reduce_scatter_block)
    SET(Reduce_scatter, reduce_scatter)
    SET(Scan, scan)
    SET(Exscan, exscan)
    SET(Allgather, allgather)
    SET(Gather, gather)
    SET(Scatter, scatter)
    SET(Alltoall, alltoall)
    SET(Allgatherv, allgatherv)
    SET(Gatherv, gatherv)
    SET(Scatterv, scatterv)
    SET(Alltoallv, alltoallv)
}
