/* Job: once, first, turn, seed, and the job's store, as methods of a comm.
 * Owns: nothing.
 * Never: a key of its own. */
#ifndef PYTHON_ORDER_H
#define PYTHON_ORDER_H

#include "python/comm.h"

PyObject *order_once(comm_object *, PyObject *args);            /* _once(key, function, timeout_ms) -> (ran, value) */
PyObject *order_first_begin(comm_object *, PyObject *args);     /* _first_begin(key, timeout_ms) -> bool */
PyObject *order_first_end(comm_object *, PyObject *args);       /* _first_end(key, error) */
PyObject *order_turn_begin(comm_object *, PyObject *args);      /* _turn_begin(timeout_ms) */
PyObject *order_turn_end(comm_object *, PyObject *none);
PyObject *order_seed(comm_object *, PyObject *args);            /* seed(base) -> int */

PyObject *store_set(comm_object *, PyObject *args);             /* _set(key, value) */
PyObject *store_get(comm_object *, PyObject *args);             /* _get(key, timeout_ms) -> bytes */
PyObject *store_add(comm_object *, PyObject *args);             /* _add(key, delta) -> int */
PyObject *store_compare_set(comm_object *, PyObject *args);     /* _compare_set(key, expected, desired) -> bool */
PyObject *store_delete(comm_object *, PyObject *args);          /* _delete(key) -> bool */
PyObject *store_probe(comm_object *, PyObject *args);           /* _probe(from, tag, timeout_ms) -> (from, tag, bytes) */

#endif
