/* Job: is the caller a function of a framework that waits at once for what it starts?
 * Owns: which functions do.
 * Never: a guess: a function that was not told is none. */
#ifndef PYTHON_WAITER_H
#define PYTHON_WAITER_H

#include <Python.h>

/* Of a frame, owned: the function's locals, or True, if it waits; False; None: it is none of those that were told. Raises nothing. */
PyObject *waiter_answer(PyObject *frame);

int waiter_setup(PyObject *module);

#endif
