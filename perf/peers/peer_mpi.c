/* A rank of Open MPI or MPICH, whichever compiles it, by its launcher: peer_mpi STAGE. One function
 * for each operation and its twin that starts it and waits; buffers and turns are those of every
 * other system. */
#include "harness/member.h"
#include "peers/mpi_version.h"

#include <errno.h>
#include <mpi.h>
#include <string.h>

static MPI_Request request;

static int answer(int error) { return error == MPI_SUCCESS ? 0 : -EIO; }
static int count(const struct rank *r) { return (int)(r->bytes / sizeof(float)); }
static void *broadcast_buffer(const struct rank *r) { return r->me == 0 ? r->send : r->recv; }
static int next(const struct rank *r) { return (r->me + 1) % r->size; }
static int before(const struct rank *r) { return (r->me + r->size - 1) % r->size; }

static int finish(int error)
{
    return answer(error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error);
}

/* NAME runs MPI_CALL(arguments), NAME_start MPI_ICALL(arguments, &request) and waits. */
#define BOTH(name, blocking, starting, ...)                                                        \
    static int name(struct rank *r) { (void)r; return answer(blocking(__VA_ARGS__)); }             \
    static int name##_start(struct rank *r)                                                        \
    {                                                                                              \
        (void)r;                                                                                   \
        return finish(starting(__VA_ARGS__, &request));                                            \
    }

BOTH(barrier, MPI_Barrier, MPI_Ibarrier, MPI_COMM_WORLD)
BOTH(all_reduce, MPI_Allreduce, MPI_Iallreduce, r->send, r->recv, count(r), MPI_FLOAT, MPI_SUM,
     MPI_COMM_WORLD)
BOTH(broadcast, MPI_Bcast, MPI_Ibcast, broadcast_buffer(r), count(r), MPI_FLOAT, 0, MPI_COMM_WORLD)
BOTH(reduce, MPI_Reduce, MPI_Ireduce, r->send, r->recv, count(r), MPI_FLOAT, MPI_SUM, 0,
     MPI_COMM_WORLD)
BOTH(reduce_scatter, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, r->send, r->recv,
     count(r), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD)
BOTH(all_gather, MPI_Allgather, MPI_Iallgather, r->send, count(r), MPI_FLOAT, r->recv, count(r),
     MPI_FLOAT, MPI_COMM_WORLD)
BOTH(gather, MPI_Gather, MPI_Igather, r->send, count(r), MPI_FLOAT, r->recv, count(r), MPI_FLOAT, 0,
     MPI_COMM_WORLD)
BOTH(scatter, MPI_Scatter, MPI_Iscatter, r->send, count(r), MPI_FLOAT, r->recv, count(r), MPI_FLOAT,
     0, MPI_COMM_WORLD)
BOTH(all_to_all, MPI_Alltoall, MPI_Ialltoall, r->send, count(r), MPI_FLOAT, r->recv, count(r),
     MPI_FLOAT, MPI_COMM_WORLD)
BOTH(scan, MPI_Scan, MPI_Iscan, r->send, r->recv, count(r), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD)
BOTH(exscan, MPI_Exscan, MPI_Iexscan, r->send, r->recv, count(r), MPI_FLOAT, MPI_SUM,
     MPI_COMM_WORLD)

static int sendrecv(struct rank *r)
{
    return answer(MPI_Sendrecv(r->send, count(r), MPI_FLOAT, next(r), 0, r->recv, count(r),
                               MPI_FLOAT, before(r), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static int sendrecv_start(struct rank *r)
{
    MPI_Request both[2];
    MPI_Status status[2];
    int error = MPI_Irecv(r->recv, count(r), MPI_FLOAT, before(r), 0, MPI_COMM_WORLD, &both[0]);
    if (error == MPI_SUCCESS)
        error = MPI_Isend(r->send, count(r), MPI_FLOAT, next(r), 0, MPI_COMM_WORLD, &both[1]);
    return answer(error == MPI_SUCCESS ? MPI_Waitall(2, both, status) : error);
}

static int pingpong(struct rank *r)
{
    int peer = operation_partner(r), error = MPI_SUCCESS;
    if (peer == r->me)
        memcpy(r->recv, r->send, r->bytes);
    if (r->me < peer)
        error = MPI_Send(r->send, count(r), MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
    if (peer != r->me && error == MPI_SUCCESS)
        error = MPI_Recv(r->recv, count(r), MPI_FLOAT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (r->me > peer && error == MPI_SUCCESS)
        error = MPI_Send(r->send, count(r), MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
    return answer(error);
}

static int send_start(struct rank *r, int peer)
{
    return finish(MPI_Isend(r->send, count(r), MPI_FLOAT, peer, 0, MPI_COMM_WORLD, &request));
}

static int pingpong_start(struct rank *r)
{
    int peer = operation_partner(r), error = 0;
    if (peer == r->me)
        memcpy(r->recv, r->send, r->bytes);
    if (r->me < peer)
        error = send_start(r, peer);
    if (peer != r->me && error == 0)
        error = finish(MPI_Irecv(r->recv, count(r), MPI_FLOAT, peer, 0, MPI_COMM_WORLD, &request));
    if (r->me > peer && error == 0)
        error = send_start(r, peer);
    return error;
}

static const struct system mpi = SYSTEM_HAS_ALL;

int main(int argc, char **argv)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int me, size;
    uint64_t began = member_now();
    MPI_Init(&argc, &argv);
    uint64_t took = member_now() - began;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct stage *stage = argc == 2 ? member_join(argv[1]) : NULL;
    if (!stage || size != member_ranks(stage))
        return 2;
    member_up(stage, me, took);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    member_first(stage, me);
    if (me == 0)
        member_version(stage, mpi_version(text));
    int failed = member_serve(stage, me, &mpi);
    if (failed)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return MPI_Finalize() != MPI_SUCCESS;
}
