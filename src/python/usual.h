/* Job: the usual all_reduce of a backend, without Python code of ours: one dense tensor of the host's memory, and the caller waits.
 * Owns: nothing but the method.
 * Never: a word about what is not usual: the longer way, in Python, finds all of that. */
#ifndef PYTHON_USUAL_H
#define PYTHON_USUAL_H

#include <Python.h>

/* usual_all_reduce(longer, types, ops, Tensor, strided, done): a method all_reduce(self, tensors, opts) of a class whose objects have a tutti.Comm
 * in _comm. longer: the function for everything else. types: dtype -> number. ops: id of the caller's local `op` -> number. Returns done. */
int usual_setup(PyObject *module);

#endif
