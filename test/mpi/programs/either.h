/* MPI's collectives in either of their two forms, with counts of int or of 64 bits, by turns, on
 * each rank at another time. An MPI older than MPI 4 has no other form than that of int;
 * libtutti-mpi.so shows both. Included once. */
#include <mpi.h>
#include <stdlib.h>

enum { MOST_RANKS = 64 };
static int forms;
/* The rank is the world's: that of a communicator may turn with its calls. */
static int other(void)
{
    static int me = -1;
    if (me < 0)
        MPI_Comm_rank(MPI_COMM_WORLD, &me);
    return (forms++ + me) % 2;
}

/* Arrays of 64 bits, of as many as there are ranks. */
struct wide { MPI_Count counts[MOST_RANKS]; MPI_Aint places[MOST_RANKS]; };
static void widen(struct wide *w, const int *counts, const int *places, MPI_Comm comm)
{
    int n;
    MPI_Comm_size(comm, &n);
    for (int p = 0; counts && p < n; p++) {
        w->counts[p] = counts[p];
        w->places[p] = places ? places[p] : 0;
    }
}

#define FORMS(name, types, args, wide_types, wide_args, prepare) \
    __attribute__((weak)) int MPI_##name##_c wide_types; \
    static int either_##name types \
    { \
        if (!other() || !MPI_##name##_c) \
            return MPI_##name args; \
        prepare \
        return MPI_##name##_c wide_args; \
    }
#define SAME(name, types, wide_types, args) FORMS(name, types, args, wide_types, args, )

SAME(Bcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm c),
     (void *b, MPI_Count n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c))
SAME(Reduce, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c),
     (const void *s, void *r, MPI_Count n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c),
     (s, r, n, t, o, root, c))
#define FOLD(name) \
    SAME(name, (const void *s, void *r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), \
         (const void *s, void *r, MPI_Count n, MPI_Datatype t, MPI_Op o, MPI_Comm c), \
         (s, r, n, t, o, c))
FOLD(Allreduce)
FOLD(Reduce_scatter_block)
FOLD(Scan)
FOLD(Exscan)
#define MOVE(name) \
    SAME(name, \
         (const void *s, int n, MPI_Datatype a, void *r, int m, MPI_Datatype b, MPI_Comm c), \
         (const void *s, MPI_Count n, MPI_Datatype a, void *r, MPI_Count m, MPI_Datatype b, \
          MPI_Comm c), (s, n, a, r, m, b, c))
MOVE(Allgather)
MOVE(Alltoall)
#define ROOTED(name) \
    SAME(name, (const void *s, int n, MPI_Datatype a, void *r, int m, MPI_Datatype b, int root, \
                MPI_Comm c), \
         (const void *s, MPI_Count n, MPI_Datatype a, void *r, MPI_Count m, MPI_Datatype b, \
          int root, MPI_Comm c), (s, n, a, r, m, b, root, c))
ROOTED(Gather)
ROOTED(Scatter)

#define WIDEN(counts, places) struct wide w; widen(&w, counts, places, c);
FORMS(Reduce_scatter,
      (const void *s, void *r, const int *n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
      (s, r, n, t, o, c),
      (const void *s, void *r, const MPI_Count *n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
      (s, r, w.counts, t, o, c), WIDEN(n, NULL))
FORMS(Allgatherv,
      (const void *s, int n, MPI_Datatype a, void *r, const int *m, const int *at, MPI_Datatype b,
       MPI_Comm c), (s, n, a, r, m, at, b, c),
      (const void *s, MPI_Count n, MPI_Datatype a, void *r, const MPI_Count *m, const MPI_Aint *at,
       MPI_Datatype b, MPI_Comm c), (s, n, a, r, w.counts, w.places, b, c), WIDEN(m, at))
FORMS(Gatherv,
      (const void *s, int n, MPI_Datatype a, void *r, const int *m, const int *at, MPI_Datatype b,
       int root, MPI_Comm c), (s, n, a, r, m, at, b, root, c),
      (const void *s, MPI_Count n, MPI_Datatype a, void *r, const MPI_Count *m, const MPI_Aint *at,
       MPI_Datatype b, int root, MPI_Comm c), (s, n, a, r, w.counts, w.places, b, root, c),
      WIDEN(m, at))
FORMS(Scatterv,
      (const void *s, const int *n, const int *at, MPI_Datatype a, void *r, int m, MPI_Datatype b,
       int root, MPI_Comm c), (s, n, at, a, r, m, b, root, c),
      (const void *s, const MPI_Count *n, const MPI_Aint *at, MPI_Datatype a, void *r, MPI_Count m,
       MPI_Datatype b, int root, MPI_Comm c), (s, w.counts, w.places, a, r, m, b, root, c),
      WIDEN(n, at))
FORMS(Alltoallv,
      (const void *s, const int *n, const int *at, MPI_Datatype a, void *r, const int *m,
       const int *to, MPI_Datatype b, MPI_Comm c), (s, n, at, a, r, m, to, b, c),
      (const void *s, const MPI_Count *n, const MPI_Aint *at, MPI_Datatype a, void *r,
       const MPI_Count *m, const MPI_Aint *to, MPI_Datatype b, MPI_Comm c),
      (s, w.counts, w.places, a, r, v.counts, v.places, b, c),
      WIDEN(n, at) struct wide v; widen(&v, m, to, c);)
