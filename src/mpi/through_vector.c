/* The collectives with a count for each rank. Blocks are packed one by one where the type has gaps:
 * what lies between two blocks is not touched. */
#define TUTTI_NO_SITES
#include "mpi/through.h"

#include <errno.h>
#include <stdlib.h>

/* One block for each rank. */
struct blocks {
    int n;
    struct packed *each;
    void **at;
    size_t *bytes;
};

static bool counts_fit(const void *counts, const void *places, int n, enum form form)
{
    for (int i = 0; i < n; i++)
        if (!counts || !places || count_of(form, counts, i) < 0)
            return false;
    return true;
}

static int blocks_open(struct blocks *b, int n, const struct layout *l, const void *buf,
                       const void *counts, const void *places, enum form form)
{
    *b = (struct blocks){ n, calloc((size_t)n, sizeof *b->each), malloc((size_t)n * sizeof *b->at),
                          malloc((size_t)n * sizeof *b->bytes) };
    if (!b->each || !b->at || !b->bytes)
        return -ENOMEM;
    for (int p = 0; p < n; p++) {
        ptrdiff_t place = (ptrdiff_t)count_of(form, places, p) * (ptrdiff_t)l->extent;
        int e = pack_room(&b->each[p], l, (const void *)((uintptr_t)buf + (uintptr_t)place),
                          (size_t)count_of(form, counts, p));
        if (e)
            return e;
        b->at[p] = b->each[p].at;
        b->bytes[p] = b->each[p].bytes;
    }
    return 0;
}

/* All of them, or that of one rank. */
static int blocks_in(struct blocks *b, int only)
{
    int e = 0;
    for (int p = only < 0 ? 0 : only; e == 0 && p < (only < 0 ? b->n : only + 1); p++)
        e = pack_in(&b->each[p], 0, b->each[p].count);
    return e;
}

static int blocks_out(struct blocks *b)
{
    int e = 0;
    for (int p = 0; e == 0 && p < b->n; p++)
        e = pack_out(&b->each[p], 0, b->each[p].count);
    return e;
}

static void blocks_close(struct blocks *b)
{
    for (int p = 0; b->each && p < b->n; p++)
        pack_free(&b->each[p]);
    free(b->each);
    free(b->at);
    free(b->bytes);
}

int through_allgatherv(const void *send, MPI_Count sendcount, MPI_Datatype sendtype, void *recv,
                       const void *counts, const void *places, MPI_Datatype recvtype,
                       MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Allgatherv";
    struct link *link = link_of(comm);
    enum fell fell = through_fell_far(link);
    struct layout in, out;
    struct blocks get;
    struct packed give = { .own = false };
    bool here = send == MPI_IN_PLACE;
    if (!fell && (!counts_fit(counts, places, link->size, form) || !layout_of(recvtype, comm, &in)
                  || (!here && (sendcount < 0 || !layout_of(sendtype, comm, &out)))))
        fell = FELL_ARGUMENT;
    if (fell)
        return FALL(fell, form, Allgatherv(send, (int)sendcount, sendtype, recv, counts, places,
                                           recvtype, comm),
                    Allgatherv_c(send, sendcount, sendtype, recv, counts, places, recvtype, comm));
    int e = blocks_open(&get, link->size, &in, recv, counts, places, form);
    if (e == 0 && here)
        e = blocks_in(&get, link->rank);
    else if (e == 0 && (e = pack_room(&give, &out, send, (size_t)sendcount)) == 0)
        e = pack_in(&give, 0, give.count);
    const char *from = e ? NULL : here ? get.at[link->rank] : give.at;
    e = e            ? through_lack(link, me, e)
        : link->spread ? across_all_gather(link, me, from, get.at, get.bytes)
        : tutti_all_gather_v_at(me, from, here ? get.bytes[link->rank] : give.bytes, get.at,
                                get.bytes, TUTTI_U8, link->tutti, NULL);
    if (e == 0)
        e = blocks_out(&get);
    pack_free(&give);
    blocks_close(&get);
    return through_end(link, me, e);
}

int through_gatherv(const void *send, MPI_Count sendcount, MPI_Datatype sendtype, void *recv,
                    const void *counts, const void *places, MPI_Datatype recvtype, int root,
                    MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Gatherv";
    struct link *link = link_of(comm);
    enum fell fell = through_fell(link);
    struct layout in, out;
    struct blocks get = { 0 };
    struct packed give = { .own = false };
    bool mine = link && link->rank == root, here = mine && send == MPI_IN_PLACE;
    if (!fell && (root < 0 || root >= link->size
                  || (mine && (!counts_fit(counts, places, link->size, form)
                               || !layout_of(recvtype, comm, &in)))
                  || (!here && (sendcount < 0 || !layout_of(sendtype, comm, &out)))))
        fell = FELL_ARGUMENT;
    if (fell)
        return FALL(fell, form, Gatherv(send, (int)sendcount, sendtype, recv, counts, places,
                                        recvtype, root, comm),
                    Gatherv_c(send, sendcount, sendtype, recv, counts, places, recvtype, root,
                              comm));
    int e = mine ? blocks_open(&get, link->size, &in, recv, counts, places, form) : 0;
    if (e == 0 && here)
        e = blocks_in(&get, root);
    else if (e == 0 && (e = pack_room(&give, &out, send, (size_t)sendcount)) == 0)
        e = pack_in(&give, 0, give.count);
    e = e ? through_lack(link, me, e)
          : tutti_gather_v_at(me, here ? get.at[root] : give.at,
                              here ? get.bytes[root] : give.bytes, get.at, get.bytes, TUTTI_U8,
                              root, link->tutti, NULL);
    if (e == 0)
        e = blocks_out(&get);
    pack_free(&give);
    blocks_close(&get);
    return through_end(link, me, e);
}

int through_scatterv(const void *send, const void *counts, const void *places,
                     MPI_Datatype sendtype, void *recv, MPI_Count recvcount, MPI_Datatype recvtype,
                     int root, MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Scatterv";
    struct link *link = link_of(comm);
    enum fell fell = through_fell(link);
    struct layout in, out;
    struct blocks give = { 0 };
    struct packed get = { .own = false };
    bool mine = link && link->rank == root, here = mine && recv == MPI_IN_PLACE;
    if (!fell && (root < 0 || root >= link->size
                  || (mine && (!counts_fit(counts, places, link->size, form)
                               || !layout_of(sendtype, comm, &out)))
                  || (!here && (recvcount < 0 || !layout_of(recvtype, comm, &in)))))
        fell = FELL_ARGUMENT;
    if (fell)
        return FALL(fell, form, Scatterv(send, counts, places, sendtype, recv, (int)recvcount,
                                         recvtype, root, comm),
                    Scatterv_c(send, counts, places, sendtype, recv, recvcount, recvtype, root,
                               comm));
    int e = mine ? blocks_open(&give, link->size, &out, send, counts, places, form) : 0;
    if (e == 0 && mine)
        e = blocks_in(&give, -1);
    if (e == 0 && !here)
        e = pack_room(&get, &in, recv, (size_t)recvcount);
    e = e ? through_lack(link, me, e)
          : tutti_scatter_v_at(me, (const void *const *)give.at, give.bytes,
                               here ? give.at[root] : get.at,
                               here ? give.bytes[root] : get.bytes, TUTTI_U8, root, link->tutti,
                               NULL);
    if (e == 0 && !here)
        e = pack_out(&get, 0, get.count);
    pack_free(&get);
    blocks_close(&give);
    return through_end(link, me, e);
}

int through_alltoallv(const void *send, const void *sendcounts, const void *sendplaces,
                      MPI_Datatype sendtype, void *recv, const void *recvcounts,
                      const void *recvplaces, MPI_Datatype recvtype, MPI_Comm comm, enum form form)
{
    static const char me[] = "MPI_Alltoallv";
    struct link *link = link_of(comm);
    enum fell fell = through_fell(link);
    struct layout in, out;
    struct blocks give = { 0 }, get = { 0 };
    bool here = send == MPI_IN_PLACE;
    if (!fell && (!counts_fit(recvcounts, recvplaces, link->size, form)
                  || !layout_of(recvtype, comm, &in)
                  || (!here && (!counts_fit(sendcounts, sendplaces, link->size, form)
                                || !layout_of(sendtype, comm, &out)))))
        fell = FELL_ARGUMENT;
    if (fell)
        return FALL(fell, form, Alltoallv(send, sendcounts, sendplaces, sendtype, recv, recvcounts,
                                          recvplaces, recvtype, comm),
                    Alltoallv_c(send, sendcounts, sendplaces, sendtype, recv, recvcounts,
                                recvplaces, recvtype, comm));
    int e = blocks_open(&get, link->size, &in, recv, recvcounts, recvplaces, form);
    if (e == 0 && !here)
        e = blocks_open(&give, link->size, &out, send, sendcounts, sendplaces, form);
    struct blocks *from = here ? &get : &give;
    if (e == 0)
        e = blocks_in(from, -1);
    e = e ? through_lack(link, me, e)
          : tutti_all_to_all_v_at(me, (const void *const *)from->at, from->bytes, get.at,
                                  get.bytes, TUTTI_U8, link->tutti, NULL);
    if (e == 0)
        e = blocks_out(&get);
    blocks_close(&give);
    blocks_close(&get);
    return through_end(link, me, e);
}
