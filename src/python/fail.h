/* Job: make the exception of tutti/errors.py from a negative result of the library.
 * Owns: nothing.
 * Never: makes its own text if the library has a report. */
#ifndef PYTHON_FAIL_H
#define PYTHON_FAIL_H

#include <Python.h>

#include "tutti.h"

/* Raises with the report of comm; comm NULL: of tutti_init. Always NULL. `told` and `told_error`
 * (may be NULL): the report of this comm's last exception, kept here. After a call that was out of
 * place the library keeps its older report: that text is not shown then. */
PyObject *fail_comm(int error, const tutti_comm *comm, PyObject **told, int *told_error);

/* Raises with its own text, if the library has none. error: an errno, positive. Always NULL. */
PyObject *fail_said(int error, const char *text);

/* Raises tutti/_number.py's exception for a number that does not fit into an int, or for a timeout
 * if `what` is NULL. Releases `what`. */
void fail_number(PyObject *what, PyObject *number);

/* The ranks known to be dead or gone, as a tuple. */
PyObject *fail_ranks(const tutti_comm *comm);

/* A text of the library. Bytes that are not UTF-8 (a path in a call site) become U+FFFD. */
PyObject *fail_text(const char *text);

#endif
