/* Job: a broadcast queue of bytes as a Python object; it is the base of tutti.Queue.
 * Owns: the tutti_queue, until it is freed or its world is finalized; what its reader looks at.
 * Never: pickles, or decides about arguments (tutti/_queue.py does). */
#ifndef PYTHON_FEED_H
#define PYTHON_FEED_H

#include "python/comm.h"

/* _queue(type, writer, room, flags) -> an object of that type, of a comm's ranks */
PyObject *feed_create(comm_object *, PyObject *args);
int feed_setup(PyObject *module);

#endif
