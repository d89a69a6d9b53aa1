/* Job: the ranks of an MPI job find out at MPI_Init whether all of them use tutti, and which share
 *      a host; and leave at MPI_Finalize.
 * Owns: the world of this host's ranks, a request by which the MPI's progress is turned.
 * Never: touches a communicator of the program but MPI_COMM_WORLD, inside MPI_Init. */
#ifndef TUTTI_MPI_MPI_JOB_H
#define TUTTI_MPI_MPI_JOB_H

#include "mpi/below.h"

#include <stdbool.h>
#include <tutti.h>

/* From when on the MPI is tried. The least of what the ranks want is done. */
enum contests { CONTESTS_NONE, CONTESTS_LATER, CONTESTS_AT_ONCE };

struct mpi_job {
    bool on;                           /* all ranks of MPI_COMM_WORLD said yes */
    bool threads;                      /* some rank may call from several threads at a time */
    enum contests contests;            /* contest.h */
    int rank, size;
    int timeout_ms;                    /* what the environment asks for; 0: none */
    struct abi abi;
    MPI_Request never;                 /* never ends: a test of it turns the MPI's progress */
    MPI_Group group;                   /* of MPI_COMM_WORLD */
    int keyval;                        /* of links; see link.h */
    tutti_comm *world;                 /* of the ranks of this host; NULL: it is not used */
    int *place;                        /* [size] each rank's in the world of its host */
    int *host;                         /* [size] the lowest rank of each rank's host */
    bool ended;                        /* MPI_Finalize has begun */
};
extern struct mpi_job job;

/* After the MPI's own init. able: this rank can. */
void job_begin(bool able, below_copy *copied, below_delete *deleted);
/* After the MPI's own finalize. */
void job_end(void);

/* One turn of the MPI's progress. */
void job_turn(void *arg);
/* What every world of this process is opened with. name lives until then. */
tutti_options job_options(const char *name, int rank, int size);
/* A name that no other world has. */
void job_name(char name[64]);

#endif
