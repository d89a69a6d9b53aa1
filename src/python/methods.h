/* Job: provide once, first, turn, seed, probe, and the job's store, as methods of a comm.
 * Owns: nothing.
 * Never: makes a key itself. */
#ifndef PYTHON_METHODS_H
#define PYTHON_METHODS_H

#include "python/comm.h"

/* The first step of methods with a key and a deadline: reads (key, timeout_ms). NULL with an
 * exception. */
tutti_comm *methods_key(comm_object *, PyObject *args, const char **key, tutti_call *);

/* _once(key, function, timeout_ms) -> (ran, value) */
PyObject *methods_once(comm_object *, PyObject *args);
/* _first_begin(key, timeout_ms) -> bool */
PyObject *methods_first_begin(comm_object *, PyObject *args);
PyObject *methods_first_end(comm_object *, PyObject *args);       /* _first_end(key, error) */
PyObject *methods_turn_begin(comm_object *, PyObject *args);      /* _turn_begin(timeout_ms) */
PyObject *methods_turn_end(comm_object *, PyObject *none);
PyObject *methods_seed(comm_object *, PyObject *args);            /* seed(base) -> int */

PyObject *methods_set(comm_object *, PyObject *args);             /* _set(key, value) */
PyObject *methods_get(comm_object *, PyObject *args);           /* _get(key, timeout_ms) -> bytes */
PyObject *methods_add(comm_object *, PyObject *args);             /* _add(key, delta) -> int */
/* _compare_set(key, expected, desired) -> bool */
PyObject *methods_compare_set(comm_object *, PyObject *args);
PyObject *methods_delete(comm_object *, PyObject *args);          /* _delete(key) -> bool */
/* _probe(from, tag, timeout_ms) -> (from, tag, bytes) */
PyObject *methods_probe(comm_object *, PyObject *args);

#endif
