/* Job: what one leader of each host does with the others, by the MPI below; and how all ranks of
 *      all hosts come to know of a failure.
 * Owns: nothing but requests during a call.
 * Never: gives the MPI memory of the program: what failed may still be under way. Has a deadline
 *        that nobody has asked for. */
#ifndef TUTTI_MPI_LEADERS_H
#define TUTTI_MPI_LEADERS_H

#include "mpi/link.h"

/* What a collective is; alike on all hosts, or it fails. */
struct descriptor { const char *function; int type, op, root; size_t count; };

/* The bytes of an operation that come with the descriptor, so that a small one is one exchange. */
enum { HEADER = 128, INLINE = 896, MET = HEADER + INLINE };

/* Negative results of all of these: the failure has been spread. `link->spread` is not NULL. */

/* Each tells the others what it does; 0 to INLINE bytes come with it. *all: MET bytes of each
 * host, the header first; in room 0. */
int leaders_meet(struct link *link, const struct descriptor *d, const void *bytes, size_t n,
                 char **all);

/* Bytes for each host and from each; NULL with 0 bytes. Those of its own are not copied. */
struct far_bytes { char *at; size_t bytes; };
int leaders_exchange(struct link *link, const char *function, const struct far_bytes give[],
                     const struct far_bytes get[]);

/* The same in two halves, up to PIECE bytes each; one thing at a time is under way. */
enum { PIECE = 1 << 28 };
int leaders_start(struct link *link, const struct far_bytes give[], const struct far_bytes get[]);
int leaders_start_bcast(struct link *link, void *at, size_t bytes, int host);
int leaders_wait(struct link *link, const char *function);

/* A call of tutti on this rank, or the MPI, has failed with `error`: all ranks of all hosts learn
 * it. Returns what the collective ends with. */
int leaders_fail(struct link *link, const char *function, int error);

#endif
