/* The collectives that move bytes. Ranks may describe one signature by different types, so all is
 * counted in bytes, and what has gaps is packed; that is each rank's own business. */
#define TUTTI_NO_SITES
#include "mpi/through.h"

#include "mpi/letters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int through_lack(struct link *link, const char *function, int error)
{
    char why[120];
    if (link->spread)
        return leaders_fail(link, function, error);
    snprintf(why, sizeof why, "%s: rank %d could not pack its buffer: %s", function, link->rank,
             tutti_strerror(error));
    tutti_comm_abort(link->tutti, why);
    return error;
}

int through_barrier(MPI_Comm comm)
{
    struct link *link = link_of(comm);
    enum fell fell = through_fell_far(link);
    if (fell)
        return FALL(fell, INTS, Barrier(comm), Barrier(comm));
    if (link->spread)
        return through_end(link, "MPI_Barrier", across_barrier(link, "MPI_Barrier"));
    return through_end(link, "MPI_Barrier", tutti_barrier_at("MPI_Barrier", link->tutti, NULL));
}

int through_bcast(void *buf, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm,
                  enum form form)
{
    static const char me[] = "MPI_Bcast";
    struct link *link = link_of(comm);
    enum fell fell = through_fell_far(link);
    struct layout l;
    struct packed p;
    struct heat heat = { .entry = NULL };
    if (!fell && (count < 0 || root < 0 || root >= link->size || !layout_of(type, comm, &l)))
        fell = FELL_ARGUMENT;
    size_t n = (size_t)count;
    if (!fell)
        fell = contest_begin(&heat, &link->contest, link->tutti, CONTEST_BCAST, n * l.size, root);
    if (fell)
        return contest_end(&heat, FALL(fell, form, Bcast(buf, (int)count, type, root, comm),
                                       Bcast_c(buf, count, type, root, comm)));
    int e = pack_room(&p, &l, buf, n);
    if (e == 0 && link->rank == root)
        e = pack_in(&p, 0, n);
    e = e ? through_lack(link, me, e)
        : link->spread               ? across_bcast(link, me, p.at, p.bytes, root)
        : letters_fit(link, p.bytes) ? letters_bcast(link, me, p.at, p.bytes, root)
                                     : tutti_broadcast_at(me, p.at, p.bytes, TUTTI_U8, root,
                                                          link->tutti, NULL);
    if (e == 0 && link->rank != root)
        e = pack_out(&p, 0, n);
    pack_free(&p);
    return contest_end(&heat, through_end(link, me, e));
}

/* One side of a call: so many elements, from here on. */
struct side { const void *buf; MPI_Count n; MPI_Datatype type; struct layout layout; };

/* A call that moves one block of each rank between `all`, where they lie in a row, and `own`, where
 * this rank's is alone. `all` is at the root, or at each rank. In place the own block is the one in
 * `all`. */
struct blocks_of_all {
    struct link *link;
    struct side all, own;
    int root;
    bool everywhere;                   /* there is no root */
    bool mine, here;                   /* this rank has `all`; its own block is in there */
    struct packed all_packed, own_packed;
    char *block;                       /* its own block, packed */
    size_t bytes;                      /* of a block */
};

/* Fills in what follows from both sides. Why the call falls through, or FELL_NOT. */
static enum fell all_open(struct blocks_of_all *b, MPI_Comm comm,
                          enum fell fell_of(const struct link *))
{
    struct link *link = b->link = link_of(comm);
    enum fell fell = fell_of(link);
    if (fell)
        return fell;
    b->mine = b->everywhere || b->root == link->rank;
    b->here = b->mine && b->own.buf == MPI_IN_PLACE;
    if (b->root < 0 || b->root >= link->size
        || (b->mine && (b->all.n < 0 || !layout_of(b->all.type, comm, &b->all.layout)))
        || (!b->here && (b->own.n < 0 || !layout_of(b->own.type, comm, &b->own.layout))))
        return FELL_ARGUMENT;
    if (b->here)
        b->own = (struct side){ .layout = b->all.layout };
    else if (!b->mine)
        b->all = (struct side){ .layout = b->own.layout };
    return FELL_NOT;
}

/* 0, or why this rank cannot take part. gives: its own block goes to others; else all blocks do. */
static int all_pack(struct blocks_of_all *b, bool gives)
{
    size_t n = (size_t)b->all.n, rank = (size_t)b->link->rank;
    int e = pack_room(&b->all_packed, &b->all.layout, b->all.buf, n * (size_t)b->link->size);
    int e2 = pack_room(&b->own_packed, &b->own.layout, b->own.buf, (size_t)b->own.n);
    e = e ? e : e2;
    b->bytes = b->here ? n * b->all.layout.size : b->own_packed.bytes;
    b->block = !b->bytes ? b->all_packed.at
        : b->here        ? b->all_packed.at + rank * b->bytes
                         : b->own_packed.at;
    if (e)
        return e;
    if (!gives)
        return b->mine ? pack_in(&b->all_packed, 0, b->all_packed.count) : 0;
    return b->here ? pack_in(&b->all_packed, rank * n, n)
                   : pack_in(&b->own_packed, 0, b->own_packed.count);
}

/* The call has ended with `error`. */
static int all_close(struct blocks_of_all *b, const char *function, int error, bool gave)
{
    if (error == 0 && gave && b->mine)
        error = pack_out(&b->all_packed, 0, b->all_packed.count);
    else if (error == 0 && !gave && !b->here)
        error = pack_out(&b->own_packed, 0, b->own_packed.count);
    pack_free(&b->all_packed);
    pack_free(&b->own_packed);
    return through_end(b->link, function, error);
}

static int all_gather_far(struct link *link, const char *function, const char *from, char *to,
                          size_t bytes)
{
    size_t n = (size_t)link->size, *sizes = malloc(n * sizeof *sizes);
    void **at = malloc(n * sizeof *at);
    int e = -ENOMEM;
    for (size_t p = 0; at && sizes && p < n; p++) {
        at[p] = to + p * bytes;
        sizes[p] = bytes;
    }
    e = at && sizes ? across_all_gather(link, function, from, at, sizes)
                    : leaders_fail(link, function, e);
    free(at);
    free(sizes);
    return e;
}

int through_allgather(const void *send, MPI_Count sendcount, MPI_Datatype sendtype, void *recv,
                      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Allgather";
    struct blocks_of_all b = { .own = { .buf = send, .n = sendcount, .type = sendtype },
                               .all = { .buf = recv, .n = recvcount, .type = recvtype },
                               .everywhere = true };
    enum fell fell = all_open(&b, comm, through_fell_far);
    struct heat heat = { .entry = NULL };
    if (!fell)
        fell = contest_begin(&heat, &b.link->contest, b.link->tutti, CONTEST_ALLGATHER,
                             (size_t)recvcount * b.all.layout.size, 0);
    if (fell)
        return contest_end(&heat, FALL(fell, form,
                                       Allgather(send, (int)sendcount, sendtype, recv,
                                                 (int)recvcount, recvtype, comm),
                                       Allgather_c(send, sendcount, sendtype, recv, recvcount,
                                                   recvtype, comm)));
    int e = all_pack(&b, true);
    e = e ? through_lack(b.link, me, e)
        : b.link->spread ? all_gather_far(b.link, me, b.block, b.all_packed.at, b.bytes)
                         : tutti_all_gather_at(me, b.block, b.all_packed.at, b.bytes, TUTTI_U8,
                                               b.link->tutti, NULL);
    return contest_end(&heat, all_close(&b, me, e, true));
}

int through_gather(const void *send, MPI_Count sendcount, MPI_Datatype sendtype, void *recv,
                   MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                   enum form form)
{
    static const char me[] = "MPI_Gather";
    struct blocks_of_all b = { .own = { .buf = send, .n = sendcount, .type = sendtype },
                               .all = { .buf = recv, .n = recvcount, .type = recvtype },
                               .root = root };
    enum fell fell = all_open(&b, comm, through_fell);
    if (fell)
        return FALL(fell, form, Gather(send, (int)sendcount, sendtype, recv, (int)recvcount,
                                       recvtype, root, comm),
                    Gather_c(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm));
    int e = all_pack(&b, true);
    e = e ? through_lack(b.link, me, e)
          : tutti_gather_at(me, b.block, b.all_packed.at, b.bytes, TUTTI_U8, root, b.link->tutti,
                            NULL);
    return all_close(&b, me, e, true);
}

int through_scatter(const void *send, MPI_Count sendcount, MPI_Datatype sendtype, void *recv,
                    MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                    enum form form)
{
    static const char me[] = "MPI_Scatter";
    struct blocks_of_all b = { .all = { .buf = send, .n = sendcount, .type = sendtype },
                               .own = { .buf = recv, .n = recvcount, .type = recvtype },
                               .root = root };
    enum fell fell = all_open(&b, comm, through_fell);
    if (fell)
        return FALL(fell, form, Scatter(send, (int)sendcount, sendtype, recv, (int)recvcount,
                                        recvtype, root, comm),
                    Scatter_c(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm));
    int e = all_pack(&b, false);
    e = e ? through_lack(b.link, me, e)
          : tutti_scatter_at(me, b.all_packed.at, b.block, b.bytes, TUTTI_U8, root, b.link->tutti,
                             NULL);
    return all_close(&b, me, e, false);
}

/* Blocks of each rank on both sides; in place they change places in the one buffer. */
int through_alltoall(const void *send, MPI_Count sendcount, MPI_Datatype sendtype, void *recv,
                     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Alltoall";
    struct link *link = link_of(comm);
    enum fell fell = through_fell(link);
    struct layout in, out;
    struct packed give, get;
    struct heat heat = { .entry = NULL };
    bool here = send == MPI_IN_PLACE;
    if (!fell && (recvcount < 0 || !layout_of(recvtype, comm, &in)
                  || (!here && (sendcount < 0 || !layout_of(sendtype, comm, &out)))))
        fell = FELL_ARGUMENT;
    if (!fell)
        fell = contest_begin(&heat, &link->contest, link->tutti, CONTEST_ALLTOALL,
                             (size_t)recvcount * in.size, 0);
    if (fell)
        return contest_end(&heat, FALL(fell, form,
                                       Alltoall(send, (int)sendcount, sendtype, recv,
                                                (int)recvcount, recvtype, comm),
                                       Alltoall_c(send, sendcount, sendtype, recv, recvcount,
                                                  recvtype, comm)));
    size_t size = (size_t)link->size;
    int e = pack_room(&get, &in, recv, (size_t)recvcount * size);
    int e2 = pack_room(&give, here ? &in : &out, send, here ? 0 : (size_t)sendcount * size);
    struct packed *from = here ? &get : &give;
    e = e ? e : e2 ? e2 : pack_in(from, 0, from->count);
    e = e ? through_lack(link, me, e)
          : tutti_all_to_all_at(me, from->at, get.at, get.bytes / size, TUTTI_U8, link->tutti,
                                NULL);
    if (e == 0)
        e = pack_out(&get, 0, get.count);
    pack_free(&give);
    pack_free(&get);
    return contest_end(&heat, through_end(link, me, e));
}
