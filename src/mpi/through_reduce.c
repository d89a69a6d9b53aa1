/* The reductions: predefined types and operations that tutti has too, which MPI wants to be the
 * same on all ranks. All others fall through: operations of the program's own, MINLOC and MAXLOC,
 * long double. The fold goes in rank order, so the bits are the same in each run. */
#define TUTTI_NO_SITES
#include "mpi/through.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a reduction needs to know, found once a call. */
struct folding { struct link *link; const struct element *element; int op; enum fell fell; };

/* fell: through_fell or through_fell_far */
static inline struct folding folding_of(MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                        enum fell fell(const struct link *))
{
    struct folding f = { link_of(comm), element_of(type), -1, FELL_NOT };
    f.fell = fell(f.link);
    if (!f.fell && (f.op = element_op(f.element, op)) < 0)
        f.fell = FELL_REDUCTION;
    return f;
}

/* Rank 0's prefix is its own value, which tutti's logical operations would make 0 or 1. */
static inline struct folding prefix_of(MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    struct folding f = folding_of(type, op, comm, through_fell);
    if (!f.fell && (f.op == TUTTI_LAND || f.op == TUTTI_LOR || f.op == TUTTI_LXOR))
        f.fell = FELL_REDUCTION;
    return f;
}

#define TYPE_AND_OP(f) (tutti_type)(f).element->tutti, (tutti_op)(f).op
#define FOLD(f) &(struct fold){ type, op, (f).element, (f).op }

int through_allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                      MPI_Comm comm)
{
    static const char me[] = "MPI_Allreduce";
    struct folding f = folding_of(type, op, comm, through_fell_far);
    if (!f.fell && count < 0)
        f.fell = FELL_ARGUMENT;
    if (f.fell)
        return FALL(f.fell, Allreduce(send, recv, count, type, op, comm));
    if (f.link->spread)
        return through_end(f.link, me,
                           across_reduce(f.link, me, send == MPI_IN_PLACE ? recv : send, recv,
                                         (size_t)count, FOLD(f), -1));
    return through_end(f.link, me,
                       tutti_all_reduce_at(me, send == MPI_IN_PLACE ? recv : send, recv,
                                           (size_t)count, TYPE_AND_OP(f), f.link->tutti, NULL));
}

int through_reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root,
                   MPI_Comm comm)
{
    static const char me[] = "MPI_Reduce";
    struct folding f = folding_of(type, op, comm, through_fell_far);
    if (!f.fell && (count < 0 || root < 0 || root >= f.link->size))
        f.fell = FELL_ARGUMENT;
    if (f.fell)
        return FALL(f.fell, Reduce(send, recv, count, type, op, root, comm));
    if (f.link->rank != root)
        recv = NULL;
    if (f.link->spread)
        return through_end(f.link, me,
                           across_reduce(f.link, me, send == MPI_IN_PLACE ? recv : send, recv,
                                         (size_t)count, FOLD(f), root));
    return through_end(f.link, me,
                       tutti_reduce_at(me, send == MPI_IN_PLACE ? recv : send, recv, (size_t)count,
                                       TYPE_AND_OP(f), root, f.link->tutti, NULL));
}

int through_scan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm)
{
    static const char me[] = "MPI_Scan";
    struct folding f = prefix_of(type, op, comm);
    if (!f.fell && count < 0)
        f.fell = FELL_ARGUMENT;
    if (f.fell)
        return FALL(f.fell, Scan(send, recv, count, type, op, comm));
    return through_end(f.link, me,
                       tutti_scan_at(me, send == MPI_IN_PLACE ? recv : send, recv, (size_t)count,
                                     TYPE_AND_OP(f), f.link->tutti, NULL));
}

int through_exscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm)
{
    static const char me[] = "MPI_Exscan";
    struct folding f = prefix_of(type, op, comm);
    if (!f.fell && count < 0)
        f.fell = FELL_ARGUMENT;
    if (f.fell)
        return FALL(f.fell, Exscan(send, recv, count, type, op, comm));
    return through_end(f.link, me,
                       tutti_exscan_at(me, send == MPI_IN_PLACE ? recv : send, recv,
                                       (size_t)count, TYPE_AND_OP(f), f.link->tutti, NULL));
}

/* In place MPI's result is at the begin of the buffer that others' blocks are read from: it is
 * made elsewhere first. */
enum { ROOM = 1024 };
struct apart { void *at; uint64_t room[ROOM / 8]; };

static void *apart_open(struct apart *a, bool needed, void *recv, size_t bytes)
{
    a->at = !needed ? recv : bytes <= ROOM ? a->room : malloc(bytes);
    return a->at;
}

static void apart_close(struct apart *a, void *recv, size_t bytes, int error)
{
    if (a->at == recv)
        return;
    if (error == 0 && bytes)
        memcpy(recv, a->at, bytes);
    if (a->at != a->room)
        free(a->at);
}

int through_reduce_scatter_block(const void *send, void *recv, int recvcount, MPI_Datatype type,
                                 MPI_Op op, MPI_Comm comm)
{
    static const char me[] = "MPI_Reduce_scatter_block";
    struct folding f = folding_of(type, op, comm, through_fell_far);
    struct apart a;
    if (!f.fell && recvcount < 0)
        f.fell = FELL_ARGUMENT;
    if (f.fell)
        return FALL(f.fell, Reduce_scatter_block(send, recv, recvcount, type, op, comm));
    bool here = send == MPI_IN_PLACE;
    if (f.link->spread)
        return through_end(f.link, me, across_reduce_scatter(f.link, me, here ? recv : send, recv,
                                                             NULL, recvcount, FOLD(f)));
    size_t bytes = (size_t)recvcount * f.element->size;
    int e = apart_open(&a, here, recv, bytes) || !bytes ? 0 : -ENOMEM;
    e = e ? through_lack(f.link, me, e)
          : tutti_reduce_scatter_at(me, here ? recv : send, a.at, (size_t)recvcount,
                                    TYPE_AND_OP(f), f.link->tutti, NULL);
    apart_close(&a, recv, bytes, e);
    return through_end(f.link, me, e);
}

static bool counts_fit(const int counts[], int n)
{
    for (int i = 0; i < n; i++)
        if (counts[i] < 0)
            return false;
    return true;
}

int through_reduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type,
                           MPI_Op op, MPI_Comm comm)
{
    static const char me[] = "MPI_Reduce_scatter";
    struct folding f = folding_of(type, op, comm, through_fell_far);
    struct apart a;
    if (!f.fell && (!counts || !counts_fit(counts, f.link->size)))
        f.fell = FELL_ARGUMENT;
    if (f.fell)
        return FALL(f.fell, Reduce_scatter(send, recv, counts, type, op, comm));
    bool here = send == MPI_IN_PLACE;
    if (f.link->spread)
        return through_end(f.link, me, across_reduce_scatter(f.link, me, here ? recv : send, recv,
                                                             counts, 0, FOLD(f)));
    int size = f.link->size, e = 0;
    const char *from = here ? recv : send;
    size_t bytes = (size_t)counts[f.link->rank] * f.element->size;
    const void **blocks = malloc((size_t)size * sizeof *blocks);
    size_t *lengths = malloc((size_t)size * sizeof *lengths);
    if (!blocks || !lengths || (!apart_open(&a, here, recv, bytes) && bytes))
        e = -ENOMEM;
    for (int p = 0; e == 0 && p < size; p++) {
        blocks[p] = from;
        lengths[p] = (size_t)counts[p];
        from += lengths[p] * f.element->size;
    }
    e = e ? through_lack(f.link, me, e)
          : tutti_reduce_scatter_v_at(me, blocks, lengths, a.at, TYPE_AND_OP(f), f.link->tutti,
                                      NULL);
    if (blocks && lengths)
        apart_close(&a, recv, bytes, e);
    free(blocks);
    free(lengths);
    return through_end(f.link, me, e);
}
