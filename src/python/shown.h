/* Job: show memory of the arena as a Python object with the buffer protocol, read-only.
 * Owns: the memory of load(), as long as the object. Memory of share() stays until its rank leaves
 *       the world.
 * Never: lets a world be finalized while such an object exists: its users would lose the memory. */
#ifndef PYTHON_SHOWN_H
#define PYTHON_SHOWN_H

#include "python/comm.h"
#include "python/work.h"

/* _load(path, timeout_ms, mode) -> memoryview of a Memory, or Work */
PyObject *shown_load(comm_object *, PyObject *args);
PyObject *shown_save(comm_object *, PyObject *args);    /* _save(path, data, timeout_ms, mode) */
/* _give(data) -> handle: a copy in this rank's span */
PyObject *shown_give(comm_object *, PyObject *data);
PyObject *shown_view(comm_object *, PyObject *args);           /* _view(handle, bytes) -> Memory */

int shown_setup(PyObject *module);

#endif
