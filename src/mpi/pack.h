/* Job: the bytes of a buffer as they are moved: where they lie, if the type has no gaps, else
 *      packed by the MPI.
 * Owns: the memory they are packed into.
 * Never: compares datatypes: ranks may describe the same bytes by different ones. */
#ifndef TUTTI_MPI_PACK_H
#define TUTTI_MPI_PACK_H

#include "mpi/below.h"

#include <stdbool.h>

/* A datatype, looked up once for a call. */
struct layout {
    MPI_Datatype type;
    MPI_Comm comm;
    size_t size;                       /* bytes of data of one */
    size_t extent;                     /* from one to the next */
    bool dense;                        /* its bytes lie in a row, from its address on */
};

/* False: the MPI refuses the type. */
bool layout_of(MPI_Datatype type, MPI_Comm comm, struct layout *layout);

/* `count` elements from buf on. */
struct packed {
    const struct layout *layout;
    void *buf;
    size_t count;
    char *at;                          /* the bytes; never NULL */
    size_t bytes;
    bool own;                          /* `at` is to be freed */
};

/* Room for the bytes. 0, or -ENOMEM. */
int  pack_room(struct packed *p, const struct layout *layout, const void *buf, size_t count);
/* n elements from number `from` on, into their bytes and out of them. 0, or -EIO. */
int  pack_in(struct packed *p, size_t from, size_t n);
int  pack_out(struct packed *p, size_t from, size_t n);
void pack_free(struct packed *p);

#endif
