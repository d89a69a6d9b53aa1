/* The collectives that move bytes. Ranks may describe one signature by different types, so all is
 * counted in bytes, and what has gaps is packed; that is each rank's own business. */
#define TUTTI_NO_SITES
#include "mpi/through.h"

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
        return FALL(fell, Barrier(comm));
    if (link->spread)
        return through_end(link, "MPI_Barrier", across_barrier(link, "MPI_Barrier"));
    return through_end(link, "MPI_Barrier", tutti_barrier_at("MPI_Barrier", link->tutti, NULL));
}

int through_bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    static const char me[] = "MPI_Bcast";
    struct link *link = link_of(comm);
    enum fell fell = through_fell_far(link);
    struct layout l;
    struct packed p;
    if (!fell && (count < 0 || root < 0 || root >= link->size || !layout_of(type, comm, &l)))
        fell = FELL_ARGUMENT;
    if (fell)
        return FALL(fell, Bcast(buf, count, type, root, comm));
    size_t n = (size_t)count;
    int e = pack_room(&p, &l, buf, n);
    if (e == 0 && link->rank == root)
        e = pack_in(&p, 0, n);
    e = e ? through_lack(link, me, e)
        : link->spread ? across_bcast(link, me, p.at, p.bytes, root)
                       : tutti_broadcast_at(me, p.at, p.bytes, TUTTI_U8, root, link->tutti, NULL);
    if (e == 0 && link->rank != root)
        e = pack_out(&p, 0, n);
    pack_free(&p);
    return through_end(link, me, e);
}

/* The two sides of a call: what this rank gives and what it gets, n and m elements. A side that it
 * does not take part in has no elements. */
struct both_sides { struct layout out, in; struct packed give, get; };

static int sides_open(struct both_sides *s, const void *send, size_t n, void *recv, size_t m)
{
    int e = pack_room(&s->give, &s->out, send, n);
    int e2 = pack_room(&s->get, &s->in, recv, m);
    return e ? e : e2;
}

static void sides_close(struct both_sides *s)
{
    pack_free(&s->give);
    pack_free(&s->get);
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

int through_allgather(const void *send, int sendcount, MPI_Datatype sendtype, void *recv,
                      int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    static const char me[] = "MPI_Allgather";
    struct link *link = link_of(comm);
    enum fell fell = through_fell_far(link);
    struct both_sides s;
    bool here = send == MPI_IN_PLACE;
    if (!fell && (recvcount < 0 || !layout_of(recvtype, comm, &s.in)
                  || (!here && (sendcount < 0 || !layout_of(sendtype, comm, &s.out)))))
        fell = FELL_ARGUMENT;
    if (fell)
        return FALL(fell, Allgather(send, sendcount, sendtype, recv, recvcount, recvtype, comm));
    size_t m = (size_t)recvcount, n = here ? 0 : (size_t)sendcount, rank = (size_t)link->rank;
    if (here)
        s.out = s.in;
    int e = sides_open(&s, send, n, recv, m * (size_t)link->size);
    if (e == 0)
        e = here ? pack_in(&s.get, rank * m, m) : pack_in(&s.give, 0, n);
    size_t bytes = here ? m * s.in.size : s.give.bytes;
    const char *from = here ? s.get.at + rank * bytes : s.give.at;
    e = e ? through_lack(link, me, e)
        : link->spread ? all_gather_far(link, me, from, s.get.at, bytes)
          : tutti_all_gather_at(me, bytes ? from : s.get.at, s.get.at, bytes, TUTTI_U8,
                                link->tutti, NULL);
    if (e == 0)
        e = pack_out(&s.get, 0, s.get.count);
    sides_close(&s);
    return through_end(link, me, e);
}

int through_gather(const void *send, int sendcount, MPI_Datatype sendtype, void *recv,
                   int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    static const char me[] = "MPI_Gather";
    struct link *link = link_of(comm);
    enum fell fell = through_fell(link);
    struct both_sides s;
    bool mine = link && link->rank == root, here = mine && send == MPI_IN_PLACE;
    if (!fell && (root < 0 || root >= link->size
                  || (mine && (recvcount < 0 || !layout_of(recvtype, comm, &s.in)))
                  || (!here && (sendcount < 0 || !layout_of(sendtype, comm, &s.out)))))
        fell = FELL_ARGUMENT;
    if (fell)
        return FALL(fell, Gather(send, sendcount, sendtype, recv, recvcount, recvtype, root,
                                 comm));
    if (here)
        s.out = s.in;
    else if (!mine)
        s.in = s.out;
    size_t m = mine ? (size_t)recvcount : 0, n = here ? 0 : (size_t)sendcount;
    int e = sides_open(&s, send, n, recv, m * (size_t)link->size);
    if (e == 0)
        e = here ? pack_in(&s.get, (size_t)root * m, m) : pack_in(&s.give, 0, n);
    size_t bytes = here ? m * s.in.size : s.give.bytes;
    const char *from = here ? s.get.at + (size_t)root * bytes : s.give.at;
    e = e ? through_lack(link, me, e)
          : tutti_gather_at(me, bytes ? from : s.get.at, s.get.at, bytes, TUTTI_U8, root,
                            link->tutti, NULL);
    if (e == 0 && mine)
        e = pack_out(&s.get, 0, s.get.count);
    sides_close(&s);
    return through_end(link, me, e);
}

int through_scatter(const void *send, int sendcount, MPI_Datatype sendtype, void *recv,
                    int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    static const char me[] = "MPI_Scatter";
    struct link *link = link_of(comm);
    enum fell fell = through_fell(link);
    struct both_sides s;
    bool mine = link && link->rank == root, here = mine && recv == MPI_IN_PLACE;
    if (!fell && (root < 0 || root >= link->size
                  || (mine && (sendcount < 0 || !layout_of(sendtype, comm, &s.out)))
                  || (!here && (recvcount < 0 || !layout_of(recvtype, comm, &s.in)))))
        fell = FELL_ARGUMENT;
    if (fell)
        return FALL(fell, Scatter(send, sendcount, sendtype, recv, recvcount, recvtype, root,
                                  comm));
    if (here)
        s.in = s.out;
    else if (!mine)
        s.out = s.in;
    size_t n = mine ? (size_t)sendcount : 0, m = here ? 0 : (size_t)recvcount;
    int e = sides_open(&s, send, n * (size_t)link->size, recv, m);
    if (e == 0 && mine)
        e = pack_in(&s.give, 0, s.give.count);
    size_t bytes = here ? n * s.out.size : s.get.bytes;
    char *to = here ? s.give.at + (size_t)root * bytes : s.get.at;
    e = e ? through_lack(link, me, e)
          : tutti_scatter_at(me, s.give.at, bytes ? to : s.give.at, bytes, TUTTI_U8, root,
                             link->tutti, NULL);
    if (e == 0 && !here)
        e = pack_out(&s.get, 0, m);
    sides_close(&s);
    return through_end(link, me, e);
}

int through_alltoall(const void *send, int sendcount, MPI_Datatype sendtype, void *recv,
                     int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    static const char me[] = "MPI_Alltoall";
    struct link *link = link_of(comm);
    enum fell fell = through_fell(link);
    struct both_sides s;
    bool here = send == MPI_IN_PLACE;
    if (!fell && (recvcount < 0 || !layout_of(recvtype, comm, &s.in)
                  || (!here && (sendcount < 0 || !layout_of(sendtype, comm, &s.out)))))
        fell = FELL_ARGUMENT;
    if (fell)
        return FALL(fell, Alltoall(send, sendcount, sendtype, recv, recvcount, recvtype, comm));
    size_t size = (size_t)link->size, m = (size_t)recvcount, n = here ? 0 : (size_t)sendcount;
    if (here)
        s.out = s.in;
    int e = sides_open(&s, send, n * size, recv, m * size);
    if (e == 0)
        e = here ? pack_in(&s.get, 0, m * size) : pack_in(&s.give, 0, n * size);
    size_t bytes = s.get.bytes / size;
    e = e ? through_lack(link, me, e)
          : tutti_all_to_all_at(me, here ? s.get.at : s.give.at, s.get.at, bytes, TUTTI_U8,
                                link->tutti, NULL);
    if (e == 0)
        e = pack_out(&s.get, 0, m * size);
    sides_close(&s);
    return through_end(link, me, e);
}
