/* Job: give a program's own operation, a Python function, a number of the library.
 * Owns: the slots: each is a C function for the library, with the Python function behind it.
 * Never: keeps a comm alive; its slots end with it. */
#ifndef PYTHON_OPS_H
#define PYTHON_OPS_H

#include "python/comm.h"

/* _op_create(function) -> number. function(in, inout, type) gets memoryviews of bytes: it reads in
 * and writes inout. Its exception aborts the comm, and this rank's call raises it
 * (comm_object.raised). */
PyObject *ops_create(comm_object *, PyObject *function);
PyObject *ops_free(comm_object *, PyObject *number);

/* For a comm that was freed, or whose world was left. */
void ops_drop(comm_object *);

/* ops_close(): from now on no function runs; for the end of the program */
int ops_setup(PyObject *module);

#endif
