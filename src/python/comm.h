/* Job: one rank's hold on a group of ranks, as a Python object; the base of tutti.Comm.
 * Owns: the tutti_comm behind it, until free or finalize; what is under way on it; how many
 *       threads are inside.
 * Never: a decision about arguments (tutti/comm.py makes them), or a call with the interpreter's
 *        lock held that may wait. */
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
    int                 inside;  /* calls that run without the lock; of a world: on all its comms */
    PyObject           *told;    /* the report of the last exception, and its number */
    int                 told_error;
    /* by an operation of the program's own: for the next call that ends here */
    PyObject           *raised;
    /* of a world: memory of the arena that Python objects show */
    Py_ssize_t          regions;
} comm_object;

/* The comm, or NULL with a ValueError: it was freed. */
tutti_comm *comm_of(comm_object *self);

static inline comm_object *comm_world(comm_object *self)
{
    return self->world ? self->world : self;
}

/* Around a call that may wait: gives the lock away and takes it again. */
PyThreadState *comm_enter(comm_object *self);
void           comm_leave(comm_object *self, PyThreadState *state);

/* The end of a call: a negative result, or an exception that a signal handler has raised meanwhile,
 * is -1 with an exception set. */
int comm_result(comm_object *self, int result);

#endif
