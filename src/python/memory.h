/* Job: memory of the arena as a Python object with the buffer protocol, read-only.
 * Owns: the memory of load() until the object goes; of share() nothing: that stays until its rank leaves the world.
 * Never: a world left while such an object is there: its memory would go under its users. */
#ifndef PYTHON_MEMORY_H
#define PYTHON_MEMORY_H

#include "python/comm.h"

PyObject *memory_load(comm_object *, PyObject *args);           /* _load(path, timeout_ms) -> Memory */
PyObject *memory_save(comm_object *, PyObject *args);           /* _save(path, data, timeout_ms) */
PyObject *memory_give(comm_object *, PyObject *data);           /* _give(data) -> handle: a copy in this rank's span */
PyObject *memory_view(comm_object *, PyObject *args);           /* _view(handle, bytes) -> Memory */

int memory_setup(PyObject *module);

#endif
