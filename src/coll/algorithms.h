/* Job: the one table of algorithms: what there is to choose from, and which code a choice means.
 * Owns: nothing; the rows are constants.
 * Never: chooses (select does), or has code of its own: a row names functions of its rooms.
 *
 * To add an algorithm: a row, and a file where its functions are not there yet. Rows of one kind
 * stand together. */
#ifndef TUTTI_COLL_ALGORITHMS_H
#define TUTTI_COLL_ALGORITHMS_H

#include "coll/coll.h"

/* Numbers of the rows that code names; a row put before one moves it. What is compared in every
 * call is then a constant address. */
enum {
    ALGORITHM_OP_CREATE,               /* no rule chooses it */
    ALGORITHM_FIRST,                   /* from here on: those that rules choose from */
    ALGORITHM_BARRIER_FLAGS = ALGORITHM_FIRST,
    ALGORITHM_ALL_REDUCE_INLINE = 11,
    ALGORITHM_ALL_REDUCE_EAGER
};

/* Behind the last: one without a name. Hidden where it is declared, too, so that a row's address is
 * one constant and not a sum. */
extern const struct algorithm algorithm_table[] __attribute__((visibility("hidden")));

/* The functions that only a row names, of rooms without a header. */
int barrier_flags_advance(struct op *op);
int barrier_central_advance(struct op *op);
int many_eager_before(struct coll *c);
int many_eager_after(struct coll *c);
int same_before(struct coll *c);
int same_after(struct coll *c);

#endif
