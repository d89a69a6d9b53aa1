/* Job: calls on addresses: for memory that has no buffer object (tensors). The caller has checked types and sizes.
 * Owns: the door of a comm that several threads call.
 * Never: a check of a pointer. */
#ifndef PYTHON_RAW_H
#define PYTHON_RAW_H

#include <Python.h>

#include "python/comm.h"

/* _raw(kind, send, sent, recv, received, type, op, root, timeout_ms, stream, factor, work, keep): a side is an address and a count, or two
 * sequences of them, or None. work False: blocks, and returns None; True: a Work, whose wait() returns keep; a number: keep itself if all was over
 * within so many milliseconds, else a Work. Of recv (from, tag, count) instead, always. keep is held until the operation has ended. factor: the
 * address of one element. Any thread, several at once. What comes after op may be left out, all of it: 0, 0, 0, None, False, None. */
PyObject *raw_collective(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* all_reduce in place, blocking: -1 with an exception. */
int raw_all_reduce(comm_object *, void *address, size_t count, int type, int op);

/* With the comm. */
void raw_forget(comm_object *);

int raw_setup(PyObject *module);

#endif
