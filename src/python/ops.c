/* The library calls a function without a context argument. So each operation has a C function of
 * its own, from a fixed number of them. It runs in any thread that folds, also in the library's
 * own, and waits there for the interpreter's lock. Cost: a few microseconds for each 4 KiB, and no
 * progress for other operations of this process meanwhile.
 *
 * At the end of the program Python would end a thread that waits for the interpreter's lock, inside
 * the library. So the package closes the slots first (atexit): ops_close() waits for calls under
 * way, and later calls break their comm without Python. */
#include "python/ops.h"

#include "base/atomic.h"
#include "python/buffer.h"
#include "python/object.h"
#include "python/site.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

enum { SLOTS = 32, TEXT = 112 };

static struct op_slot {
    comm_object *comm;                  /* borrowed; NULL: free */
    tutti_comm  *library;               /* its comm, for use without the interpreter's lock */
    PyObject    *function;              /* owned */
    tutti_op     number;
} slots[SLOTS];

static shared32 closed, running;        /* running: calls in Python, or about to be */

/* Keeps the function's exception for this rank's call. The other ranks get its text. */
static void failed(struct op_slot *s)
{
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (trace)
        PyException_SetTraceback(error, trace);
    PyObject *name = PyObject_GetAttrString(type, "__name__");
    PyObject *words = name ? PyUnicode_FromFormat("its own operation raised %U: %S", name, error)
                           : NULL;
    const char *utf8 = words ? PyUnicode_AsUTF8AndSize(words, NULL) : NULL;
    char text[TEXT];
    snprintf(text, sizeof text, "%s", utf8 ? utf8 : "its own operation raised an exception");
    PyErr_Clear();
    tutti_comm_abort_at(site_of_caller(), s->library, text);
    Py_XDECREF(words);
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    if (s->comm->raised)
        Py_XDECREF(error);
    else
        s->comm->raised = error;
}

static void release(PyObject *view)
{
    if (!view)
        return;
    /* it fails if an array still shows the memory: then the program is responsible */
    PyObject *none = PyObject_CallMethod(view, "release", NULL);
    Py_XDECREF(none);
    PyErr_Clear();
    Py_DECREF(view);
}

static void in_python(struct op_slot *s, const void *in, void *inout, size_t bytes, tutti_type type)
{
    PyObject *before, *error, *trace;
    /* perhaps Ctrl-C in this wait: the comm is about to end */
    PyErr_Fetch(&before, &error, &trace);
    if (s->comm && !s->comm->raised) {
        PyObject *from = PyMemoryView_FromMemory((char *)(uintptr_t)in, (Py_ssize_t)bytes,
                                                 PyBUF_READ);
        PyObject *to = PyMemoryView_FromMemory(inout, (Py_ssize_t)bytes, PyBUF_WRITE);
        PyObject *none = from && to ? PyObject_CallFunction(s->function, "OOi", from, to, (int)type)
                                    : NULL;
        if (!none)
            failed(s);
        Py_XDECREF(none);
        release(from);
        release(to);
    }
    PyErr_Restore(before, error, trace);
}

static void call(int slot, const void *in, void *inout, size_t count, tutti_type type)
{
    struct op_slot *s = &slots[slot];
    fetch_add32(&running, 1);
    if (!load_acquire32(&closed)) {
        PyGILState_STATE state = PyGILState_Ensure();
        in_python(s, in, inout, count * type_size((int)type), type);
        PyGILState_Release(state);
    } else
        tutti_comm_abort(s->library, "its program has ended, and its own operation with it");
    fetch_sub32(&running, 1);
}

#define FOUR(each, n) each(n##0) each(n##1) each(n##2) each(n##3)
#define ALL(each) FOUR(each, 0) FOUR(each, 1) FOUR(each, 2) FOUR(each, 3) FOUR(each, 4) \
    FOUR(each, 5) FOUR(each, 6) FOUR(each, 7)
#define PLACE(n) (0x##n / 16 * 4 + 0x##n % 16)           /* from two digits: 0 to 7, then 0 to 3 */
#define FUNCTION(n)                                                                  \
    static void slot_##n(const void *in, void *inout, size_t count, tutti_type type) \
    {                                                                                \
        call(PLACE(n), in, inout, count, type);                                      \
    }
#define NAME(n) [PLACE(n)] = slot_##n,

ALL(FUNCTION)

static void (*const functions[SLOTS])(const void *, void *, size_t, tutti_type) = { ALL(NAME) };

PyObject *ops_create(comm_object *self, PyObject *function)
{
    int i = 0;
    tutti_comm *comm = comm_of(self);
    if (!comm)
        return NULL;
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "op: %R is no function", function);
    while (i < SLOTS && slots[i].comm)
        i++;
    if (i == SLOTS)
        return PyErr_Format(PyExc_RuntimeError,
                            "op: %d operations of one's own are all that a process can have: "
                            "free() some first",
                            SLOTS);
    Py_INCREF(function);
    slots[i] = (struct op_slot){ self, comm, function, (tutti_op)0 };
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = tutti_op_create_at(site, functions[i], 1, &slots[i].number, comm);
    comm_leave(self, state);
    if (comm_result(self, r) >= 0)
        return PyLong_FromLong((long)slots[i].number);
    if (r >= 0)
        tutti_op_free_at(site, &slots[i].number, comm);
    slots[i] = (struct op_slot){ 0 };
    Py_DECREF(function);
    return NULL;
}

PyObject *ops_free(comm_object *self, PyObject *number)
{
    long wanted = PyLong_AsLong(number);
    tutti_comm *comm = comm_of(self);
    if (!comm || PyErr_Occurred())
        return NULL;
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].comm == self && (long)slots[i].number == wanted) {
            if (comm_result(self, tutti_op_free_at(site_of_caller(), &slots[i].number, comm)) < 0)
                return NULL;
            Py_CLEAR(slots[i].function);
            slots[i] = (struct op_slot){ 0 };
            Py_RETURN_NONE;
        }
    return PyErr_Format(PyExc_ValueError, "free: this operation has been freed");
}

void ops_drop(comm_object *comm)
{
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].comm && (slots[i].comm == comm || slots[i].comm->world == comm)) {
            PyObject *function = slots[i].function;
            slots[i] = (struct op_slot){ 0 };
            Py_DECREF(function);
        }
}

static PyObject *ops_close(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    fetch_or32(&closed, 1);
    PyThreadState *state = PyEval_SaveThread();
    while (load_acquire32(&running))
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    PyEval_RestoreThread(state);
    Py_RETURN_NONE;
}

static PyMethodDef ops_methods[] = {
    OBJECT_METHOD("ops_close", ops_close, METH_NOARGS, NULL),
    { 0 }
};

int ops_setup(PyObject *module) { return PyModule_AddFunctions(module, ops_methods); }
