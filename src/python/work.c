/* wait() gives the interpreter's lock away; that only one thread waits for a Work is kept by its flag, since the library frees the handle
 * when it reports the end. An end is remembered: every later wait() returns it again. */
#include "python/work.h"

#include "python/object.h"
#include "python/site.h"
#include "python/table.h"

#include <errno.h>
#include <stdlib.h>

struct work_object {
    PyObject_HEAD
    comm_object   *comm;                /* owned */
    struct flight *flight;              /* NULL: over */
    PyObject      *value, *failure;     /* of one that is over; one of them */
    int            waiting;             /* a thread is in tutti_wait */
};

static PyTypeObject *work_type;

PyObject *flight_value(struct flight *f, int result)
{
    if (f->kind == KIND_SAME)
        return PyBool_FromLong(result);
    if (f->kind == KIND_RECV && f->keep)
        return Py_BuildValue("iin", f->got.from, f->got.tag, (Py_ssize_t)f->got.count);
    if (f->kind == KIND_RECV && f->result != Py_None)
        return PyObject_CallFunction(f->result, "iin", f->got.from, f->got.tag, (Py_ssize_t)f->got.count);
    Py_INCREF(f->result);
    return f->result;
}

void flight_drop(struct flight *f)
{
    side_drop(&f->send);
    side_drop(&f->recv);
    side_drop(&f->factor);
    Py_CLEAR(f->keep);
    Py_CLEAR(f->result);
}

PyObject *work_new(comm_object *comm, struct flight *f)
{
    struct work_object *w = object_new(work_type);
    if (!w) {
        f->next = comm->left;
        comm->left = f;
        return NULL;
    }
    Py_INCREF((PyObject *)comm);
    w->comm = comm;
    w->flight = f;
    return (PyObject *)w;
}

void work_reap(comm_object *comm, int wait)
{
    if (!comm->left)
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    for (struct flight **at = &comm->left; *at;) {
        struct flight *f = *at;
        if (!wait && tutti_test(f->work) == -EAGAIN) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        PyThreadState *state = comm_enter(comm);
        tutti_wait(f->work, -1);
        comm_leave(comm, state);
        PyErr_Clear();
        flight_drop(f);
        free(f);
        at = &comm->left;                               /* others may have been here meanwhile */
    }
    PyErr_Restore(type, value, trace);
}

static void work_dealloc(struct work_object *w)
{
    if (w->flight) {
        w->flight->next = w->comm->left;
        w->comm->left = w->flight;
        work_reap(w->comm, 0);
    }
    Py_CLEAR(w->comm);
    Py_CLEAR(w->value);
    Py_CLEAR(w->failure);
    object_free(w);
}

static PyObject *work_end(struct work_object *w)
{
    if (w->failure) {
        PyErr_SetObject((PyObject *)Py_TYPE(w->failure), w->failure);
        return NULL;
    }
    Py_INCREF(w->value);
    return w->value;
}

/* The handle is gone: what came of it is kept. An exception that is set (Ctrl-C) goes to this caller instead, once. */
static PyObject *work_over(struct work_object *w, int result)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    struct flight *f = w->flight;
    w->flight = NULL;
    w->value = comm_result(w->comm, result) < 0 ? NULL : flight_value(f, result);
    flight_drop(f);
    free(f);
    if (!w->value) {
        PyObject *kind, *failure, *where;
        PyErr_Fetch(&kind, &failure, &where);
        PyErr_NormalizeException(&kind, &failure, &where);
        w->failure = failure;
        Py_XDECREF(kind);
        Py_XDECREF(where);
    }
    if (!type)
        return work_end(w);
    PyErr_Restore(type, value, trace);
    return NULL;
}

/* Seconds, or None. */
static int patience(PyObject *timeout, int *ms)
{
    double seconds = timeout == Py_None ? 0 : PyFloat_AsDouble(timeout);
    if (PyErr_Occurred())
        return -1;
    *ms = timeout == Py_None ? 0 : seconds < 0 || seconds > 2e6 ? -1 : seconds < 0.001 ? 1 : (int)(seconds * 1000);
    return 0;
}

static PyObject *work_wait(struct work_object *w, PyObject *args, PyObject *words)
{
    static char *names[] = { "timeout", NULL };
    PyObject *timeout = Py_None;
    int ms;
    if (!PyArg_ParseTupleAndKeywords(args, words, "|O", names, &timeout) || patience(timeout, &ms) < 0)
        return NULL;
    if (!w->flight)
        return work_end(w);
    if (w->waiting)
        return PyErr_Format(PyExc_RuntimeError, "wait: another thread waits for this Work already");
    if (!comm_of(w->comm))
        return NULL;
    const char *site = site_of_caller();
    w->waiting = 1;
    PyThreadState *state = comm_enter(w->comm);
    int r = tutti_wait_at(site, w->flight->work, ms);
    comm_leave(w->comm, state);
    w->waiting = 0;
    if (r != -EAGAIN)
        return work_over(w, r);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TimeoutError, "not done yet: the operation goes on, wait() again");
    return NULL;
}

static PyObject *work_test(struct work_object *w, PyObject *none)
{
    (void)none;
    if (!w->flight)
        Py_RETURN_TRUE;
    if (w->waiting)
        Py_RETURN_FALSE;                                /* the thread that waits frees the handle */
    if (!comm_of(w->comm))
        return NULL;
    return PyBool_FromLong(tutti_test(w->flight->work) != -EAGAIN);
}

static const char work_wait_doc[] =
    "wait(timeout=None)\n--\n\n"
    "Waits for the operation and returns what the blocking call returns, or raises what it raises.\n\n"
    "timeout: seconds of this call's patience; then TimeoutError, and the operation goes on. None: as long as\n"
    "the operation's own deadline; negative: until it ends.";

static PyMethodDef work_methods[] = {
    TABLE_METHOD("wait", work_wait, METH_VARARGS | METH_KEYWORDS, work_wait_doc),
    TABLE_METHOD("test", work_test, METH_NOARGS, "True when the operation has ended, well or not: wait() then returns at once. Any thread."),
    { 0 }
};

static PyType_Slot work_slots[] = {
    { Py_tp_dealloc, (void *)work_dealloc },
    { Py_tp_methods, work_methods },
    { 0, NULL }
};

static PyType_Spec work_spec = { "tutti.Work", sizeof(struct work_object), 0, Py_TPFLAGS_DEFAULT, work_slots };

int work_setup(PyObject *module)
{
    work_type = (PyTypeObject *)PyType_FromSpec(&work_spec);
    return work_type ? PyModule_AddType(module, work_type) : -1;
}
