/* Job: what libtutti-mpi knows of a communicator of the program: the comm of the same ranks, or why
 *      there is none.
 * Owns: that comm, from the communicator's first collective to its end: an attribute of it.
 * Never: looks at what a call moves. */
#ifndef TUTTI_MPI_LINK_H
#define TUTTI_MPI_LINK_H

#include "mpi/contest.h"
#include "mpi/mpi_job.h"
#include "mpi/spread.h"
#include "mpi/tally.h"

struct link {
    MPI_Comm comm;
    int rank, size;
    tutti_comm *tutti;                 /* NULL: it falls through, or so it does for some */
    enum fell fell;
    struct spread *spread;             /* ranks of several hosts; NULL: not, or not by tutti. tutti
                                          is of this host's ranks, and fell is FELL_HOSTS */
    bool own_world;                    /* tutti is a world, to be finalized */
    bool failed;                       /* a failure has been told on stderr */
    struct link *next, **at;           /* in the list of all */
    struct contest contest;
};

/* All ranks of the communicator call it in the same collective, and get the same: a link, or NULL
 * where tutti is not used at all. The first call may talk to them by the MPI. */
struct link *link_of(MPI_Comm comm);

/* Callbacks of the attribute: no copy gets it; it ends with the communicator. */
below_copy link_copied;
below_delete link_deleted;

/* Behind the MPI's finalize: what is left. */
void link_end(void);

/* tutti's error as the MPI's, by the communicator's error handler; the report goes to stderr. */
int link_raise(struct link *link, const char *function, int error);

#endif
