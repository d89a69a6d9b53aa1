/* Job: the calls on buffers: what each takes, and the call itself.
 * Owns: nothing.
 * Never: a result before all buffers are checked, or a buffer given back while the library
 *        may use it. */
#ifndef PYTHON_TABLE_H
#define PYTHON_TABLE_H

#include <Python.h>

#include "python/work.h"

enum { MODE_WORK = 1, MODE_KEEP = 2 };

/* A call as it was asked for. send() and recv() have the peer in root and the tag in op. mode: 0
 * blocking, MODE_WORK for async_, with MODE_KEEP for keep. stream: a CUstream. */
struct asked { int kind, type, op, root, timeout_ms, mode, rank, size; uintptr_t stream; };

/* The library's function of that kind, on the pointers and counts of the flight's sides. Without
 * the interpreter's lock. */
int table_run(const char *site, const struct asked *, struct flight *, tutti_comm *,
              const tutti_call *);

/* collective(kind, send, recv, type, op, root, timeout_ms, mode, value, factor, stream): returns
 * value, or a Work that will. send, recv: an array, a list of arrays, or None. */
PyObject *table_collective(PyObject *self, PyObject *const *args, Py_ssize_t n);

int table_setup(PyObject *module);

#endif
