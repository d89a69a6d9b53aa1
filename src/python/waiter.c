/* What a blocking call saves over work that is waited for at once (no handle, no wake of the progress thread) is worth as much as a small
 * operation. So a backend asks whether its caller is a function that waits before anybody else sees the Work: those are told once, by
 * watch_callers(), with the name of the local that says "do not wait". Cost: a look into the caller's frame. */
#include "python/waiter.h"

#include "python/object.h"

static PyObject *waiters;               /* address of a function's code -> the name of its local, or None: it always waits */
static PyObject *last_code, *last_name; /* the one found last; its code is the program's as long as it runs, and not held here */
static PyObject *name_back, *name_locals;

static PyObject *waiter_watch_callers(PyObject *module, PyObject *table)
{
    (void)module;
    last_code = last_name = NULL;
    return object_keep(&waiters, table);
}

/* The frame's locals if the one of that name is False there; else NULL. */
static PyObject *locals_that_say_no(PyObject *frame, PyObject *name)
{
    PyObject *locals = PyObject_GetAttr(frame, name_locals);
    PyObject *value = locals ? PyObject_GetItem(locals, name) : NULL;
    if (value != Py_False)
        Py_CLEAR(locals);
    Py_XDECREF(value);
    return locals;
}

/* Borrowed. */
static PyObject *waiter_name(PyObject *code)
{
    if (code == last_code)
        return last_name;
    PyObject *address = waiters ? PyLong_FromVoidPtr(code) : NULL;
    PyObject *name = address ? PyDict_GetItemWithError(waiters, address) : NULL;
    Py_XDECREF(address);
    if (name) {
        last_code = code;
        last_name = name;
    }
    return name;
}

PyObject *waiter_answer(PyObject *frame)
{
    PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame), *name = waiter_name(code);
    PyObject *answer = name == Py_None ? Py_True : name ? Py_False : Py_None;
    PyObject *locals = answer == Py_False ? locals_that_say_no(frame, name) : NULL;
    Py_DECREF(code);
    PyErr_Clear();
    if (locals)
        return locals;
    Py_INCREF(answer);
    return answer;
}

/* Of the function that called the one which asks. */
static PyObject *waiter_caller_waits(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    PyObject *asking = (PyObject *)PyEval_GetFrame();
    PyObject *frame = asking ? PyObject_GetAttr(asking, name_back) : NULL;
    PyErr_Clear();
    if (frame && frame != Py_None) {
        PyObject *answer = waiter_answer(frame);
        Py_DECREF(frame);
        return answer;
    }
    Py_XDECREF(frame);
    Py_RETURN_NONE;
}

static PyMethodDef waiter_methods[] = {
    { "watch_callers", waiter_watch_callers, METH_O, NULL },
    { "caller_waits", waiter_caller_waits, METH_NOARGS, NULL },
    { 0 }
};

int waiter_setup(PyObject *module)
{
    name_back = PyUnicode_InternFromString("f_back");
    name_locals = PyUnicode_InternFromString("f_locals");
    return name_back && name_locals ? PyModule_AddFunctions(module, waiter_methods) : -1;
}
