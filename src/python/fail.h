/* Job: a negative result of the library becomes the exception of tutti/errors.py.
 * Owns: nothing.
 * Never: a text of its own where the library has a report. */
#ifndef PYTHON_FAIL_H
#define PYTHON_FAIL_H

#include <Python.h>

#include "tutti.h"

/* Raises with the report of comm; comm NULL: of tutti_init. Always NULL. `told` and `told_error`
 * (may be NULL): the report of the last exception of this comm, kept here. The library leaves its
 * report alone where a call was out of place: an older text is not shown then. */
PyObject *fail_comm(int error, const tutti_comm *comm, PyObject **told, int *told_error);

/* Raises with a text of one's own, where the library has none: an errno, positive. Always NULL. */
PyObject *fail_said(int error, const char *text);

/* Raises what tutti/_number.py says of a number that does not fit into an int; or of a timeout,
 * where `what` is NULL. `what` is the callee's from then on. */
void fail_number(PyObject *what, PyObject *number);

/* The ranks known to be dead or gone, as a tuple. */
PyObject *fail_ranks(const tutti_comm *comm);

/* Text of the library: bytes that are no UTF-8 (a path in a call site) become marks. */
PyObject *fail_text(const char *text);

#endif
