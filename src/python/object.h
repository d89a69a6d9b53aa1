/* Job: what the extension's types have in common: how an object is made and freed.
 * Owns: nothing.
 * Never: an object of a type that was not made by PyType_FromSpec: those are not counted. */
#ifndef PYTHON_OBJECT_H
#define PYTHON_OBJECT_H

#include <Python.h>

/* A row of methods; the cast is the one that CPython's documentation asks for. */
#define OBJECT_METHOD(name, function, flags, doc) { name, (PyCFunction)(void (*)(void))(function), \
                                                    flags, doc }

/* All bytes behind the head are 0. A subclass that Python code made is fine. */
static inline void *object_new(PyTypeObject *type) { return PyType_GenericAlloc(type, 0); }

/* A method that keeps its argument, in place of what it kept before. */
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
