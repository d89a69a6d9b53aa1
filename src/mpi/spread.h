/* Job: of a communicator whose ranks are on several hosts: which rank is where, and who leads.
 * Owns: the leaders' communicator, and one of all ranks for notes of failures; both are made by the
 *       MPI below and unknown to the program.
 * Never: moves the program's data. */
#ifndef TUTTI_MPI_SPREAD_H
#define TUTTI_MPI_SPREAD_H

#include "mpi/mpi_job.h"

#define ENDED_BY_MPI "is ended by the MPI"       /* in the last word of a rank */
enum { HOST_NAME = 64, NOTE_TEXT = 240, ROOMS = 4 };

/* What broke a communicator; it goes from host to host. */
struct mishap { int error, host; char text[NOTE_TEXT]; };

/* Hosts are numbered by their lowest rank, which leads. A host's ranks ascend. */
struct spread {
    int size, hosts, mine;
    int *host, *place;                 /* [size] of each rank: its host, its rank there */
    int *order;                        /* [size] the ranks, host by host */
    int *seats;                        /* of the ranks of this host, in job.world */
    int *first, *number;               /* [hosts] where it begins in `order`, how many it has */
    bool leads;
    bool ordered;                      /* order[i] == i */
    char name[HOST_NAME];              /* of this host */
    char (*names)[HOST_NAME];          /* [hosts] */
    MPI_Comm all;                      /* of the same ranks in the same order */
    MPI_Comm leaders;                  /* ranks are the numbers of hosts; leaders alone have it */
    MPI_Request *requests, *notes;     /* [2 * hosts], [hosts] those under way */
    int under_way;
    bool unsent;                       /* a message to another host has not gone (unsent.h) */
    struct mishap broken;                /* error 0: nothing has failed */
    struct { char *at; size_t bytes; } room[ROOMS];  /* what the MPI may use after a failure, too */
};

/* hosts[p]: a number that ranks of one host share, and no others. All ranks of comm call it and
 * come to the same end; well: this rank can. NULL: it falls through. */
struct spread *spread_make(MPI_Comm comm, int rank, int size, const int *hosts, bool well);
/* ended: the MPI is. */
void spread_free(struct spread *s, bool ended);

/* Says that `who` has lost the connection to another host, which only leaders know by name. */
void spread_lost(const struct spread *s, char text[NOTE_TEXT], const char *who);

/* A buffer of this rank that lasts until the next call with this number. NULL: no memory. */
char *spread_room(struct spread *s, int number, size_t bytes);

#endif
