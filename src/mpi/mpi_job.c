/* How a job begins. The vote over MPI_COMM_WORLD is a call of the MPI below; nothing else can be
 * under way on it before MPI_Init has returned. That ranks share a host is what the MPI says; the
 * proof is that they meet in the arena: if they do not, all ranks of that host go on without.
 *
 * A deadline is not the library's to set in an MPI program, and it may wait for long: neither
 * deadline nor roll-call unless the environment asks for them. A rank that waits in tutti turns
 * the MPI's progress, or a peer that waits in the MPI for this rank would wait for ever. */
#define TUTTI_NO_SITES
#include "mpi/mpi_job.h"

#include "base/atomic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct mpi_job job;

void job_turn(void *arg)
{
    int flag = 0;
    MPI_Status status;
    (void)arg;
    below.Test(&job.never, &flag, &status);
}

/* Of the request that never ends; it is of the generalized kind, which is in no queue of the MPI.
 * A probe would not do: MPICH's, of a communicator of one rank, makes no progress. */
static int never_asked(void *extra, MPI_Status *status)
{
    (void)extra, (void)status;
    return MPI_SUCCESS;
}
static int never_freed(void *extra) { (void)extra; return MPI_SUCCESS; }
static int never_cancelled(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

tutti_options job_options(const char *name, int rank, int size)
{
    return (tutti_options){
        .job = name, .rank = rank, .size = size, .progress = job_turn,
        .flags = getenv("TUTTI_FLAGS") ? 0 : TUTTI_AHEAD | TUTTI_LEAVE,
        .timeout_ms = getenv("TUTTI_TIMEOUT_MS") ? 0 : -1,
        .warn_ms = getenv("TUTTI_WARN_MS") ? 0 : -1
    };
}

void job_name(char name[64])
{
    static shared32 before;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, 64, "mpi.%d.%llx.%u", (int)getpid(),
             (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec,
             fetch_add32(&before, 1));
}

/* On all ranks of MPI_COMM_WORLD the same. */
static bool vote(bool able, enum contests contests)
{
    int level = 0, mine[3], all[3] = { 0, 0, 0 };
    below.Query_thread(&level);
    mine[0] = able;
    mine[1] = level < MPI_THREAD_MULTIPLE;
    mine[2] = (int)contests;
    if (below.Allreduce(mine, all, 3, job.abi.type_int, job.abi.op_min, job.abi.world))
        return false;
    job.threads = !all[1];
    job.contests = (enum contests)all[2];
    return all[0];
}

/* Which ranks are on this host, and where in its communicator. */
static int find_places(MPI_Comm host)
{
    int mine[2] = { job.rank, 0 }, *all = calloc((size_t)job.size, sizeof mine);
    int r = below.Comm_rank(host, &mine[1]);
    r = r ? r : below.Bcast(&mine[0], 1, job.abi.type_int, 0, host);
    job.place = calloc((size_t)job.size, sizeof *job.place);
    job.host = calloc((size_t)job.size, sizeof *job.host);
    int mem = all && job.place && job.host, mems = 0;
    r |= below.Allreduce(&mem, &mems, 1, job.abi.type_int, job.abi.op_min, job.abi.world);
    if (!r && mems)
        r = below.Allgather(mine, 2, job.abi.type_int, all, 2, job.abi.type_int, job.abi.world);
    r |= !mems;
    for (int p = 0; r == 0 && p < job.size; p++) {
        job.host[p] = all[2 * p];
        job.place[p] = all[2 * p + 1];
    }
    free(all);
    return r ? -1 : 0;
}

/* All ranks of the host come to the same end. */
static void meet(MPI_Comm host, int rank, int size)
{
    char name[64] = "";
    job_name(name);
    below.Bcast(name, sizeof name, job.abi.type_byte, 0, host);
    tutti_options o = job_options(name, rank, size);
    int error = tutti_init(&job.world, &o), well = error == 0, all = 0;
    if (!well)
        fprintf(stderr, "tutti: rank %d: MPI calls go to the MPI as they are: %s\n", job.rank,
                tutti_explain(NULL));
    below.Allreduce(&well, &all, 1, job.abi.type_int, job.abi.op_min, host);
    if (!all && well) {
        tutti_finalize(job.world);
        job.world = NULL;
    }
}

void job_begin(bool able, below_copy *copied, below_delete *deleted)
{
    MPI_Comm host;
    int size = 0, rank = 0;
    const char *said = getenv("TUTTI_MPI"), *limit = getenv("TUTTI_TIMEOUT_MS");
    job.timeout_ms = limit ? atoi(limit) : 0;
    below.Comm_rank(job.abi.world, &job.rank);
    below.Comm_size(job.abi.world, &job.size);
    if (!vote(able && !(said && !strcmp(said, "0")),
              !said                       ? CONTESTS_LATER
                  : !strcmp(said, "all") ? CONTESTS_NONE
                  : !strcmp(said, "try") ? CONTESTS_AT_ONCE
                                         : CONTESTS_LATER))
        return;
    if (below.Comm_split_type(job.abi.world, MPI_COMM_TYPE_SHARED, job.rank, job.abi.no_info,
                              &host))
        return;
    below.Comm_rank(host, &rank);
    below.Comm_size(host, &size);
    int r = below.Grequest_start(never_asked, never_freed, never_cancelled, NULL, &job.never)
        || below.Comm_group(job.abi.world, &job.group)
        || below.Comm_create_keyval(copied, deleted, &job.keyval, NULL) || find_places(host);
    if (!r && job.size > 1)
        meet(host, rank, size);
    below.Comm_free(&host);
    job.on = !r;
}

void job_end(void)
{
    job.on = false;
    if (job.world)
        tutti_finalize(job.world);
    job.world = NULL;
    free(job.place);
    free(job.host);
    job.place = job.host = NULL;
}
