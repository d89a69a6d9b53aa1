/* A program that asks at run time whether a function is there finds the trampoline's, also where
 * the MPI below is older than MPI 4. So each of them works there as far as ints go, which is what
 * such a program does by itself without it. Arrays are read where they count: at the root, and not
 * for what is in place. Only what is packed may be larger: it is sent to oneself. */
#include "mpi/narrow.h"

#include "mpi/mpi_job.h"

#include <limits.h>
#include <stdlib.h>

static bool wide(MPI_Count n) { return n > INT_MAX || n < INT_MIN; }

static int refuse(MPI_Comm comm)
{
    below.Comm_call_errhandler(comm, MPI_ERR_COUNT);
    return MPI_ERR_COUNT;
}

/* Of each of n ranks a count and, behind all counts, a place. NULL: one is no int, or no memory. */
static int *ints_of(const MPI_Count *counts, const MPI_Aint *places, int n)
{
    int *to = calloc((size_t)n + 1, 2 * sizeof *to);
    for (int p = 0; to && p < n; p++) {
        MPI_Count place = places ? places[p] : 0;
        if (wide(counts[p]) || wide(place)) {
            free(to);
            return NULL;
        }
        to[p] = (int)counts[p];
        to[n + p] = (int)place;
    }
    return to;
}

/* How many ranks a call names: those of the other side, where there are two. */
static int peers_of(MPI_Comm comm, int *between)
{
    int n = 0;
    *between = 0;
    below.Comm_test_inter(comm, between);
    if (*between)
        below.Comm_remote_size(comm, &n);
    else
        below.Comm_size(comm, &n);
    return n;
}

/* The ranks whose counts are read here: all at the root, else none. */
static int peers_at(MPI_Comm comm, int root)
{
    int rank = 0, between, n = peers_of(comm, &between);
    below.Comm_rank(comm, &rank);
    return root == (between ? MPI_ROOT : rank) ? n : 0;
}

static int bcast(void *b, MPI_Count n, MPI_Datatype t, int root, MPI_Comm c)
{
    return wide(n) ? refuse(c) : below.Bcast(b, (int)n, t, root, c);
}

static int reduce(const void *s, void *r, MPI_Count n, MPI_Datatype t, MPI_Op op, int root,
                  MPI_Comm c)
{
    return wide(n) ? refuse(c) : below.Reduce(s, r, (int)n, t, op, root, c);
}

#define FOLD_LIKE(name, Name) \
    static int name(const void *s, void *r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c) \
    { \
        return wide(n) ? refuse(c) : below.Name(s, r, (int)n, t, op, c); \
    }
FOLD_LIKE(allreduce, Allreduce)
FOLD_LIKE(reduce_scatter_block, Reduce_scatter_block)
FOLD_LIKE(scan, Scan)
FOLD_LIKE(exscan, Exscan)

static int reduce_scatter(const void *s, void *r, const MPI_Count *counts, MPI_Datatype t,
                          MPI_Op op, MPI_Comm c)
{
    int n = 0;
    below.Comm_size(c, &n);
    int *ints = ints_of(counts, NULL, n);
    int e = ints ? below.Reduce_scatter(s, r, ints, t, op, c) : refuse(c);
    free(ints);
    return e;
}

#define MOVE_LIKE(name, Name) \
    static int name(const void *s, MPI_Count n, MPI_Datatype out, void *r, MPI_Count m, \
                    MPI_Datatype in, MPI_Comm c) \
    { \
        return wide(n) || wide(m) ? refuse(c) : below.Name(s, (int)n, out, r, (int)m, in, c); \
    }
MOVE_LIKE(allgather, Allgather)
MOVE_LIKE(alltoall, Alltoall)

#define ROOT_LIKE(name, Name) \
    static int name(const void *s, MPI_Count n, MPI_Datatype out, void *r, MPI_Count m, \
                    MPI_Datatype in, int root, MPI_Comm c) \
    { \
        return wide(n) || wide(m) ? refuse(c) \
                                  : below.Name(s, (int)n, out, r, (int)m, in, root, c); \
    }
ROOT_LIKE(gather, Gather)
ROOT_LIKE(scatter, Scatter)

static int allgatherv(const void *s, MPI_Count n, MPI_Datatype out, void *r,
                      const MPI_Count *counts, const MPI_Aint *places, MPI_Datatype in, MPI_Comm c)
{
    int between, peers = peers_of(c, &between), *ints = ints_of(counts, places, peers);
    int e = wide(n) || !ints ? refuse(c)
                             : below.Allgatherv(s, (int)n, out, r, ints, ints + peers, in, c);
    free(ints);
    return e;
}

static int gatherv(const void *s, MPI_Count n, MPI_Datatype out, void *r, const MPI_Count *counts,
                   const MPI_Aint *places, MPI_Datatype in, int root, MPI_Comm c)
{
    int peers = peers_at(c, root), *ints = ints_of(counts, places, peers);
    int e = wide(n) || !ints ? refuse(c)
                             : below.Gatherv(s, (int)n, out, r, ints, ints + peers, in, root, c);
    free(ints);
    return e;
}

static int scatterv(const void *s, const MPI_Count *counts, const MPI_Aint *places,
                    MPI_Datatype out, void *r, MPI_Count m, MPI_Datatype in, int root, MPI_Comm c)
{
    int peers = peers_at(c, root), *ints = ints_of(counts, places, peers);
    int e = wide(m) || !ints ? refuse(c)
                             : below.Scatterv(s, ints, ints + peers, out, r, (int)m, in, root, c);
    free(ints);
    return e;
}

static int alltoallv(const void *s, const MPI_Count *counts, const MPI_Aint *places,
                     MPI_Datatype out, void *r, const MPI_Count *in_counts,
                     const MPI_Aint *in_places, MPI_Datatype in, MPI_Comm c)
{
    int between, peers = peers_of(c, &between);
    int *give = ints_of(counts, places, s == MPI_IN_PLACE ? 0 : peers);
    int *get = ints_of(in_counts, in_places, peers);
    int e = give && get ? below.Alltoallv(s, give, give + peers, out, r, get, get + peers, in, c)
                        : refuse(c);
    free(give);
    free(get);
    return e;
}

/* So many bytes as one element. */
static int type_of_bytes(size_t bytes, MPI_Datatype *type)
{
    enum { PIECE = 1 << 30 };
    int n = (int)((bytes + PIECE - 1) / PIECE), r = MPI_ERR_OTHER;
    int *lengths = calloc((size_t)n + 1, sizeof *lengths);
    MPI_Aint *places = calloc((size_t)n + 1, sizeof *places);
    for (int i = 0; lengths && places && i < n; i++) {
        places[i] = (MPI_Aint)i * PIECE;
        lengths[i] = i + 1 < n ? PIECE : (int)(bytes - (size_t)places[i]);
    }
    if (lengths && places)
        r = below.Type_create_hindexed(n, lengths, places, job.abi.type_byte, type);
    free(lengths);
    free(places);
    return r ? r : below.Type_commit(type);
}

/* n elements of `type` at `elements`, and their bytes: from the one to the other. */
static int send_to_oneself(void *elements, int n, MPI_Datatype type, char *at, MPI_Count bytes,
                           bool out)
{
    MPI_Datatype packed;
    MPI_Comm self;
    MPI_Status status;
    int r = type_of_bytes((size_t)bytes, &packed);
    if (r)
        return r;
    if ((r = below.Comm_dup(job.abi.self, &self)) == 0) {
        r = out ? below.Sendrecv(at, 1, packed, 0, 0, elements, n, type, 0, 0, self, &status)
                : below.Sendrecv(elements, n, type, 0, 0, at, 1, packed, 0, 0, self, &status);
        below.Comm_free(&self);
    }
    below.Type_free(&packed);
    return r;
}

/* As mpi/pack calls them: all of the bytes, from the first on. */
static int pack(const void *from, MPI_Count n, MPI_Datatype type, void *to, MPI_Count size,
                MPI_Count *at, MPI_Comm c)
{
    int end = 0;
    int r = wide(size)
        ? send_to_oneself((void *)(uintptr_t)from, (int)n, type, to, size, false)
        : below.Pack(from, (int)n, type, to, (int)size, &end, c);
    *at = wide(size) ? size : end;
    return r;
}

static int unpack(const void *from, MPI_Count size, MPI_Count *at, void *to, MPI_Count n,
                  MPI_Datatype type, MPI_Comm c)
{
    int end = 0;
    int r = wide(size)
        ? send_to_oneself(to, (int)n, type, (void *)(uintptr_t)from, size, true)
        : below.Unpack(from, (int)size, &end, to, (int)n, type, c);
    *at = wide(size) ? size : end;
    return r;
}

static const struct below narrow = {
    .Bcast_c = bcast, .Reduce_c = reduce, .Allreduce_c = allreduce,
    .Reduce_scatter_block_c = reduce_scatter_block, .Reduce_scatter_c = reduce_scatter,
    .Scan_c = scan, .Exscan_c = exscan, .Allgather_c = allgather, .Gather_c = gather,
    .Scatter_c = scatter, .Alltoall_c = alltoall, .Allgatherv_c = allgatherv,
    .Gatherv_c = gatherv, .Scatterv_c = scatterv, .Alltoallv_c = alltoallv, .Pack_c = pack,
    .Unpack_c = unpack
};

void narrow_fill(void)
{
#define NARROW_FILL(name, args) below.name = below.name ? below.name : narrow.name;
    BELOW_COUNTS(NARROW_FILL)
#undef NARROW_FILL
}
