/* Job: check and make the calls on buffers.
 * Owns: nothing.
 * Never: starts a call before all buffers are checked, or releases a buffer that the library may
 *        still use. */
#ifndef PYTHON_TABLE_H
#define PYTHON_TABLE_H

#include <Python.h>

#include "python/work.h"

enum { MODE_WORK = 1, MODE_KEEP = 2 };

/* The arguments of a call. send() and recv() have the peer in root and the tag in op. mode: 0:
 * blocking; MODE_WORK: async_; MODE_KEEP with it: keep. stream: a CUstream. */
struct asked { int kind, type, op, root, timeout_ms, mode, rank, size; uintptr_t stream; };

/* Calls the library's function of that kind, with the pointers and counts of the flight's sides.
 * Without the interpreter's lock. */
int table_run(const char *site, const struct asked *, struct flight *, tutti_comm *,
              const tutti_call *);

/* collective(kind, send, recv, type, op, root, timeout_ms, mode, value, factor, stream): returns
 * value, or a Work whose wait() returns it. send, recv: an array, a list of arrays, or None. */
PyObject *table_collective(PyObject *self, PyObject *const *args, Py_ssize_t n);

int table_setup(PyObject *module);

#endif
