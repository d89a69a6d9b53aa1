/* Job: provide the type of a comm's object, with all its methods; make, free and leave a comm.
 * Owns: nothing.
 * Never: implements its other methods (methods.h, ops.h, shown.h, table.h). */
#ifndef PYTHON_COMM_TYPE_H
#define PYTHON_COMM_TYPE_H

#include <Python.h>

int comm_setup(PyObject *module);

/* init(class, job, rank, size, timeout_ms, join_timeout_ms, warn_ms, spin_us, flags, span_bytes) */
PyObject *comm_init(PyObject *module, PyObject *args);

#endif
