/* Job: list all algorithms in one table, with the functions of each.
 * Owns: nothing; the rows are constants.
 * Never: chooses (select does); has code of its own: a row names functions of its rooms.
 *
 * To add an algorithm: add a row, and a file for functions that are not there yet. Rows of one kind
 * stand together. */
#ifndef TUTTI_COLL_ALGORITHMS_H
#define TUTTI_COLL_ALGORITHMS_H

#include "coll/coll.h"

/* Numbers of the rows that code names; they change if a row is added before one. A compare with
 * such a row is a compare with a constant address. */
enum {
    ALGORITHM_OP_CREATE,               /* no rule chooses it */
    ALGORITHM_FIRST,                   /* from here on: those that rules choose from */
    ALGORITHM_BARRIER_FLAGS = ALGORITHM_FIRST,
    ALGORITHM_ALL_REDUCE_INLINE = 12,
    ALGORITHM_ALL_REDUCE_EAGER
};

/* A row without a name ends the table. Hidden also in the declaration, so that the compiler makes a
 * row's address one constant, not a sum. */
extern const struct algorithm algorithm_table[] __attribute__((visibility("hidden")));

/* "flags": of a number from the journal; "?": of any that is none. */
const char *algorithm_name(uint32_t number);

/* For the journal: the place of its row + 1; 0: none. */
static inline uint32_t algorithm_number(const struct algorithm *a)
{
    return a ? (uint32_t)(a - algorithm_table) + 1 : 0;
}

/* The functions that only a row uses, of rooms without a header. */
int barrier_flags_advance(struct op *op);
int barrier_central_advance(struct op *op);
int many_eager_before(struct coll *c);
int many_eager_after(struct coll *c);
int same_before(struct coll *c);
int same_after(struct coll *c);

#endif
