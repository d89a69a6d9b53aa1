/* Job: operations of a program's own: a Python function under the number that the library
 *      knows it by.
 * Owns: the slots, each a C function that the library can call, with the Python function behind it.
 * Never: a comm kept alive; its slots go with it. */
#ifndef PYTHON_OPS_H
#define PYTHON_OPS_H

#include "python/comm.h"

/* _op_create(function) -> number; function(in, inout, type) gets memoryviews of bytes, in to be
 * read, inout to be written. What it raises aborts the comm, and is what the call on this rank
 * raises (comm_object.raised). */
PyObject *ops_create(comm_object *, PyObject *function);
PyObject *ops_free(comm_object *, PyObject *number);

/* The comm is freed, or its world left. */
void ops_drop(comm_object *);

/* ops_close(): no function runs any more, at the end of the program */
int ops_setup(PyObject *module);

#endif
