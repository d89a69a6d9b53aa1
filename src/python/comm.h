/* Job: represent one rank's hold on a group of ranks in Python; it is the base of tutti.Comm.
 * Owns: the tutti_comm, until free or finalize; the operations under way on it; the number of
 *       threads that are inside.
 * Never: decides about arguments (tutti/comm.py does), or makes a call that may wait while it holds
 *        the interpreter's lock. */
#ifndef PYTHON_COMM_H
#define PYTHON_COMM_H

#include <Python.h>

#include "tutti.h"

/* All fields are read and written with the interpreter's lock held. */
typedef struct comm_object {
    PyObject_HEAD
    tutti_comm         *comm;    /* NULL: freed, or its world is finalized */
    struct comm_object *world;   /* owned; NULL: this is a world */
    struct flight      *left;    /* operations whose Work nobody holds any more */
    int                 inside;  /* calls that run without the lock; in a world: of all its comms */
    PyObject           *told;    /* the report of the last exception, and its number */
    int                 told_error;
    /* an exception of the program's own operation: the next call that ends here raises it */
    PyObject           *raised;
    /* in a world: how many regions of the arena Python objects show */
    Py_ssize_t          regions;
} comm_object;

/* The comm, or NULL with a ValueError if it was freed. */
tutti_comm *comm_of(comm_object *self);

static inline comm_object *comm_world(comm_object *self)
{
    return self->world ? self->world : self;
}

/* Around a call that may wait: release the interpreter's lock and take it again. */
PyThreadState *comm_enter(comm_object *self);
void           comm_leave(comm_object *self, PyThreadState *state);

/* The end of a call. -1 with an exception set, if the result is negative or a signal handler has
 * raised meanwhile. */
int comm_result(comm_object *self, int result);

#endif
