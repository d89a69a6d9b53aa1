/* The reductions: predefined types and operations that tutti has too, which MPI wants to be the
 * same on all ranks. All others fall through: operations of the program's own, MINLOC and MAXLOC,
 * long double. The fold goes in rank order, so the bits are the same in each run. */
#define TUTTI_NO_SITES
#include "mpi/through.h"

#include "mpi/letters.h"

#include <errno.h>
#include <limits.h>
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

/* Which of both a call that may go through tutti goes to. Sums of two ranks have the same bits
 * either way; the MPI's products of complex numbers, and its minima, may have others. */
static inline void folding_contest(struct heat *heat, struct folding *f, enum contest_of of,
                                   MPI_Count count, int root)
{
    if (!f->fell && f->op == TUTTI_SUM && f->link->contest.two)
        f->fell = contest_begin(heat, &f->link->contest, f->link->tutti, of,
                                (size_t)count * f->element->size, root);
}

#define TYPE_AND_OP(f) (tutti_type)(f).element->tutti, (tutti_op)(f).op
#define FOLD(f) &(struct fold){ type, op, (f).element, (f).op }

int through_allreduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                      MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Allreduce";
    struct folding f = folding_of(type, op, comm, through_fell_far);
    struct heat heat = { .entry = NULL };
    if (!f.fell && count < 0)
        f.fell = FELL_ARGUMENT;
    folding_contest(&heat, &f, CONTEST_ALLREDUCE, count, 0);
    if (f.fell)
        return contest_end(&heat, FALL(f.fell, form,
                                       Allreduce(send, recv, (int)count, type, op, comm),
                                       Allreduce_c(send, recv, count, type, op, comm)));
    if (f.link->spread)
        return through_end(f.link, me,
                           across_reduce(f.link, me, send == MPI_IN_PLACE ? recv : send, recv,
                                         (size_t)count, FOLD(f), -1));
    int e = tutti_all_reduce_at(me, send == MPI_IN_PLACE ? recv : send, recv, (size_t)count,
                                TYPE_AND_OP(f), f.link->tutti, NULL);
    return contest_end(&heat, through_end(f.link, me, e));
}

int through_reduce(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                   int root, MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Reduce";
    struct folding f = folding_of(type, op, comm, through_fell_far);
    struct heat heat = { .entry = NULL };
    if (!f.fell && (count < 0 || root < 0 || root >= f.link->size))
        f.fell = FELL_ARGUMENT;
    folding_contest(&heat, &f, CONTEST_REDUCE, count, root);
    if (f.fell)
        return contest_end(&heat, FALL(f.fell, form,
                                       Reduce(send, recv, (int)count, type, op, root, comm),
                                       Reduce_c(send, recv, count, type, op, root, comm)));
    if (f.link->rank != root)
        recv = NULL;
    if (f.link->spread)
        return through_end(f.link, me,
                           across_reduce(f.link, me, send == MPI_IN_PLACE ? recv : send, recv,
                                         (size_t)count, FOLD(f), root));
    if (letters_fit(f.link, (size_t)count * f.element->size))
        return through_end(f.link, me,
                           letters_reduce(f.link, me, send == MPI_IN_PLACE ? recv : send, recv,
                                          (size_t)count, FOLD(f), root));
    int e = tutti_reduce_at(me, send == MPI_IN_PLACE ? recv : send, recv, (size_t)count,
                            TYPE_AND_OP(f), root, f.link->tutti, NULL);
    return contest_end(&heat, through_end(f.link, me, e));
}

int through_scan(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Scan";
    struct folding f = prefix_of(type, op, comm);
    if (!f.fell && count < 0)
        f.fell = FELL_ARGUMENT;
    if (f.fell)
        return FALL(f.fell, form, Scan(send, recv, (int)count, type, op, comm),
                    Scan_c(send, recv, count, type, op, comm));
    return through_end(f.link, me,
                       tutti_scan_at(me, send == MPI_IN_PLACE ? recv : send, recv, (size_t)count,
                                     TYPE_AND_OP(f), f.link->tutti, NULL));
}

int through_exscan(const void *send, void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Exscan";
    struct folding f = prefix_of(type, op, comm);
    if (!f.fell && count < 0)
        f.fell = FELL_ARGUMENT;
    if (f.fell)
        return FALL(f.fell, form, Exscan(send, recv, (int)count, type, op, comm),
                    Exscan_c(send, recv, count, type, op, comm));
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

static int blocks_of_one_length(const struct folding *f, const char *me, const void *send,
                                void *recv, size_t n)
{
    struct apart a;
    bool here = send == MPI_IN_PLACE;
    size_t bytes = n * f->element->size;
    int e = apart_open(&a, here, recv, bytes) || !bytes ? 0 : -ENOMEM;
    e = e ? through_lack(f->link, me, e)
          : tutti_reduce_scatter_at(me, here ? recv : send, a.at, n, TYPE_AND_OP(*f),
                                    f->link->tutti, NULL);
    apart_close(&a, recv, bytes, e);
    return through_end(f->link, me, e);
}

int through_reduce_scatter_block(const void *send, void *recv, MPI_Count recvcount,
                                 MPI_Datatype type, MPI_Op op, MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Reduce_scatter_block";
    struct folding f = folding_of(type, op, comm, through_fell_far);
    struct heat heat = { .entry = NULL };
    if (!f.fell && recvcount < 0)
        f.fell = FELL_ARGUMENT;
    else if (!f.fell && f.link->spread && recvcount > INT_MAX)
        f.fell = FELL_HOSTS;
    folding_contest(&heat, &f, CONTEST_REDUCE_SCATTER, recvcount, 0);
    if (f.fell)
        return contest_end(&heat, FALL(f.fell, form,
                                       Reduce_scatter_block(send, recv, (int)recvcount, type, op,
                                                            comm),
                                       Reduce_scatter_block_c(send, recv, recvcount, type, op,
                                                              comm)));
    bool here = send == MPI_IN_PLACE;
    if (f.link->spread)
        return through_end(f.link, me, across_reduce_scatter(f.link, me, here ? recv : send, recv,
                                                             NULL, (int)recvcount, FOLD(f)));
    return contest_end(&heat, blocks_of_one_length(&f, me, send, recv, (size_t)recvcount));
}

/* Between hosts counts are ints: what is larger falls through, which all ranks see alike. */
static enum fell counts_fit(const struct link *link, const void *counts, enum form form)
{
    enum fell fell = counts ? FELL_NOT : FELL_ARGUMENT;
    for (int p = 0; !fell && p < link->size; p++) {
        MPI_Count n = count_of(form, counts, p);
        fell = n < 0 ? FELL_ARGUMENT : link->spread && n > INT_MAX ? FELL_HOSTS : FELL_NOT;
    }
    return fell;
}

/* The counts are the same array on all ranks. */
static bool counts_alike(const struct link *link, const void *counts, enum form form)
{
    for (int p = 1; p < link->size; p++)
        if (count_of(form, counts, p) != count_of(form, counts, 0))
            return false;
    return true;
}

static int reduce_scatter_far(const struct folding *f, const void *from, void *recv,
                              const void *counts, enum form form, const struct fold *fold)
{
    static const char me[] = "MPI_Reduce_scatter";
    struct link *link = f->link;
    int *n = malloc((size_t)link->size * sizeof *n);
    for (int p = 0; n && p < link->size; p++)
        n[p] = (int)count_of(form, counts, p);
    int e = n ? across_reduce_scatter(link, me, from, recv, n, 0, fold)
              : leaders_fail(link, me, -ENOMEM);
    free(n);
    return through_end(link, me, e);
}

int through_reduce_scatter(const void *send, void *recv, const void *counts, MPI_Datatype type,
                           MPI_Op op, MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Reduce_scatter";
    struct folding f = folding_of(type, op, comm, through_fell_far);
    struct apart a;
    if (!f.fell)
        f.fell = counts_fit(f.link, counts, form);
    if (f.fell)
        return FALL(f.fell, form, Reduce_scatter(send, recv, counts, type, op, comm),
                    Reduce_scatter_c(send, recv, counts, type, op, comm));
    bool here = send == MPI_IN_PLACE;
    if (f.link->spread)
        return reduce_scatter_far(&f, here ? recv : send, recv, counts, form, FOLD(f));
    if (counts_alike(f.link, counts, form))
        return blocks_of_one_length(&f, me, send, recv, (size_t)count_of(form, counts, 0));
    int size = f.link->size, e = 0;
    const char *from = here ? recv : send;
    size_t bytes = (size_t)count_of(form, counts, f.link->rank) * f.element->size;
    const void **blocks = malloc((size_t)size * sizeof *blocks);
    size_t *lengths = malloc((size_t)size * sizeof *lengths);
    if (!blocks || !lengths || (!apart_open(&a, here, recv, bytes) && bytes))
        e = -ENOMEM;
    for (int p = 0; e == 0 && p < size; p++) {
        blocks[p] = from;
        lengths[p] = (size_t)count_of(form, counts, p);
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
