/* Job: make and free objects of the extension's types.
 * Owns: nothing.
 * Never: makes an object of a type that is not from PyType_FromSpec: Python does not count such a
 *        type's references. */
#ifndef PYTHON_OBJECT_H
#define PYTHON_OBJECT_H

#include <Python.h>

/* A row of methods. CPython's documentation asks for this cast. */
#define OBJECT_METHOD(name, function, flags, doc) { name, (PyCFunction)(void (*)(void))(function), \
                                                    flags, doc }

/* All bytes after the head are 0. A subclass made by Python code is allowed. */
static inline void *object_new(PyTypeObject *type) { return PyType_GenericAlloc(type, 0); }

/* A method that keeps its argument and releases the one before. */
static inline PyObject *object_keep(PyObject **place, PyObject *object)
{
    Py_INCREF(object);
    Py_XDECREF(*place);
    *place = object;
    Py_RETURN_NONE;
}

static inline void object_free(void *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc give_back = (freefunc)PyType_GetSlot(type, Py_tp_free);
    give_back(self);
    Py_DECREF((PyObject *)type);
}

#endif
