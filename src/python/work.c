/* wait() releases the interpreter's lock. Only one thread waits in the library, because the library
 * frees the handle when it reports the end. Other threads wait at a lock of this Work until the
 * first one is back. The result is kept: every later wait() returns it again.
 *
 * With keep, -ETIMEDOUT has two meanings: the deadline has passed, the operation continues and
 * nothing is freed; or the operation has ended with that error. `ending` tells them apart: for
 * works with keep the library always calls ending_done. Cost: a malloc for each work. */
#include "python/work.h"

#include "python/fail.h"
#include "python/object.h"
#include "python/site.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

struct work_object {
    PyObject_HEAD
    comm_object   *comm;                /* owned */
    struct flight *flight;              /* NULL: it has ended */
    PyObject      *value, *failure;     /* after the end: one of them is set */
    int            waiting;             /* a thread is in tutti_wait */
    /* held by the waiting thread, once another one has waited here; NULL: none ever did */
    PyThread_type_lock others;
};

/* the base class, and the package's subclass of it */
static PyTypeObject *work_type, *work_made;

void flight_start(struct flight *f, tutti_call *call, int keep)
{
    f->keep = keep;
    call->flags = keep ? TUTTI_KEEP : 0;
    call->work = &f->work;
    if (keep || ended_listens())
        ending_tell(&f->ending, call);
}

static int flight_is_over(const struct flight *f)
{
    return ending_is_over(&f->ending) || (!f->keep && tutti_test(f->work) != -EAGAIN);
}

PyObject *flight_value(struct flight *f, int result)
{
    if (f->loaded)
        return f->loaded(f);
    if (f->kind == KIND_SAME)
        return PyBool_FromLong(result);
    if (f->kind == KIND_RECV && f->result != Py_None)
        return PyObject_CallFunction(f->result, "iin", f->got.from, f->got.tag,
                                     (Py_ssize_t)f->got.count);
    Py_INCREF(f->result);
    return f->result;
}

void flight_drop(struct flight *f)
{
    side_drop(&f->send);
    side_drop(&f->recv);
    side_drop(&f->factor);
    Py_CLEAR(f->result);
    if (f->data && comm_world(f->comm)->comm)           /* loaded, but not passed on */
        tutti_free((void *)(uintptr_t)f->data, comm_world(f->comm)->comm);
    f->data = NULL;
}

PyObject *work_new(comm_object *comm, struct flight *f)
{
    struct work_object *w = object_new(work_made ? work_made : work_type);
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
        if (!wait && !flight_is_over(f)) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        PyThreadState *state = comm_enter(comm);
        int r = tutti_wait(f->work, -1);
        comm_leave(comm, state);
        PyErr_Clear();
        if (r < 0)
            f->data = NULL;
        flight_drop(f);
        free(f);
        at = &comm->left;                               /* another thread may have changed it */
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
    if (w->others)
        PyThread_free_lock(w->others);
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

/* The library has freed the handle. Keeps the result. An exception that is set already (Ctrl-C) is
 * raised in this caller instead, once. */
static PyObject *work_over(struct work_object *w, int result)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    struct flight *f = w->flight;
    w->value = comm_result(w->comm, result) < 0 ? NULL : flight_value(f, result);
    if (!w->value) {
        PyObject *kind, *failure, *where;
        PyErr_Fetch(&kind, &failure, &where);
        PyErr_NormalizeException(&kind, &failure, &where);
        w->failure = failure;
        Py_XDECREF(kind);
        Py_XDECREF(where);
    }
    w->flight = NULL; /* now only: Python code ran above, and may have asked for the end */
    flight_drop(f);
    free(f);
    if (!type)
        return work_end(w);
    PyErr_Restore(type, value, trace);
    return NULL;
}

/* timeout: seconds, or None. */
static int patience(PyObject *timeout, int *ms)
{
    double seconds = timeout == Py_None ? 0 : PyFloat_AsDouble(timeout);
    if (PyErr_Occurred())
        return -1;
    int none = seconds < 0 || (seconds > 0 && isinf(seconds));
    if (!none && !(seconds <= INT_MAX / 1000)) {         /* also true for a NaN */
        fail_number(NULL, timeout);
        return -1;
    }
    *ms = timeout == Py_None ? 0 : none ? -1 : seconds < 0.001 ? 1 : (int)(seconds * 1000);
    return 0;
}

static PyObject *not_yet(void)
{
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TimeoutError, "not done yet: the operation goes on, wait() again");
    return NULL;
}

/* Waits until the thread in the library's wait is back. 0, or -1 with an exception: the patience
 * has passed, or a signal handler raised. */
static int stand_by(struct work_object *w, int ms)
{
    if (!w->others
        && (!(w->others = PyThread_allocate_lock())
            || !PyThread_acquire_lock(w->others, NOWAIT_LOCK))) {
        PyErr_NoMemory();
        return -1;
    }
    for (;;) {
        PyThreadState *state = PyEval_SaveThread();
        PyLockStatus got = PyThread_acquire_lock_timed(w->others,
                                                       ms > 0 ? (PY_TIMEOUT_T)ms * 1000 : -1, 1);
        if (got == PY_LOCK_ACQUIRED)
            /* for the next thread here, or for one in await(), which has the interpreter's lock */
            PyThread_release_lock(w->others);
        PyEval_RestoreThread(state);
        if (got == PY_LOCK_ACQUIRED)
            return 0;
        if (got == PY_LOCK_FAILURE)
            not_yet();
        if (got == PY_LOCK_FAILURE || PyErr_CheckSignals() < 0)
            return -1;
    }
}

static const char restart_guard_text[] =
    "the deadline of this operation has passed; it goes on, and the comm is whole: wait() again";

/* The library's answer to this thread, the only one inside. *late: with keep, the deadline has
 * passed and the operation continues. */
static int await(struct work_object *w, const char *site, int ms, int *late)
{
    struct flight *f = w->flight;
    w->waiting = 1;
    if (w->others)
        /* free now or in a moment: a thread that stood by releases it at once */
        PyThread_acquire_lock(w->others, WAIT_LOCK);
    PyThreadState *state = comm_enter(w->comm);
    int known = ending_is_over(&f->ending);
    int r = tutti_wait_at(site, f->work, ms);
    *late = 0;
    if (r == -ETIMEDOUT && f->keep && !known) {
        *late = !ending_is_over(&f->ending);
        /* it has ended just now; if with -ETIMEDOUT, a handle of a broken comm may be left */
        if (!*late && f->ending.error != -ETIMEDOUT)
            r = tutti_wait_at(site, f->work, -1);
    }
    comm_leave(w->comm, state);
    return r;
}

static PyObject *work_wait(struct work_object *w, PyObject *args, PyObject *words)
{
    static char *names[] = { "timeout", NULL };
    PyObject *timeout = Py_None;
    int ms, late;
    if (!PyArg_ParseTupleAndKeywords(args, words, "|O", names, &timeout)
        || patience(timeout, &ms) < 0)
        return NULL;
    while (w->flight && w->waiting)
        if (stand_by(w, ms) < 0)
            return NULL;
    if (!w->flight)
        return work_end(w);
    if (!comm_of(w->comm))
        return NULL;
    int r = await(w, site_of_caller(), ms, &late);
    PyObject *value = late && !PyErr_Occurred() ? fail_said(ETIMEDOUT, restart_guard_text)
        : late || r == -EAGAIN ? not_yet()
        : work_over(w, r);
    w->waiting = 0;
    if (w->others)
        PyThread_release_lock(w->others);
    return value;
}

static PyObject *work_test(struct work_object *w, PyObject *none)
{
    (void)none;
    if (!w->flight || ending_is_over(&w->flight->ending))
        Py_RETURN_TRUE;
    if (w->waiting)
        Py_RETURN_FALSE;                                /* the waiting thread frees the handle */
    if (!comm_of(w->comm))
        return NULL;
    if (!w->flight->keep)
        return PyBool_FromLong(tutti_test(w->flight->work) != -EAGAIN);
    tutti_test(w->flight->work);
    return PyBool_FromLong(ending_is_over(&w->flight->ending));
}

/* True: ended() will return this Work. False: it has ended. None: nothing reports its end, so call
 * test(). */
static PyObject *work_watch(struct work_object *w, PyObject *none)
{
    (void)none;
    if (!w->flight)
        Py_RETURN_FALSE;
    if (!w->flight->ending.told)
        Py_RETURN_NONE;
    int r = ending_watch(&w->flight->ending, (PyObject *)w);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

static PyObject *work_set_class(PyObject *module, PyObject *class)
{
    (void)module;
    if (!PyType_Check(class) || !PyType_IsSubtype((PyTypeObject *)class, work_type))
        return PyErr_Format(PyExc_TypeError, "set_work: a subclass of Work");
    Py_INCREF(class);
    Py_XDECREF((PyObject *)work_made);
    work_made = (PyTypeObject *)class;
    Py_RETURN_NONE;
}

static const char work_wait_doc[] =
    "wait(timeout=None)\n--\n\n"
    "Waits for the operation and returns what the blocking call returns, or raises what it "
    "raises.\n"
    "\n"
    "timeout: seconds of this call's patience; then TimeoutError, and the operation goes on. None: "
    "as long as\n"
    "the operation's own deadline; negative: until it ends. Of a call with keep=True a deadline "
    "that has passed is\n"
    "Timeout, once or again; the operation goes on. Any number of threads may wait.";

static PyMethodDef work_methods[] = {
    OBJECT_METHOD("wait", work_wait, METH_VARARGS | METH_KEYWORDS, work_wait_doc),
    OBJECT_METHOD("test", work_test, METH_NOARGS,
                  "True when the operation has ended, well or not: wait() then returns at once. "
                  "Any thread."),
    OBJECT_METHOD("_watch", work_watch, METH_NOARGS, NULL),
    { 0 }
};

static PyMethodDef work_functions[] = {
    OBJECT_METHOD("set_work", work_set_class, METH_O, NULL),
    { 0 }
};

static PyType_Slot work_slots[] = {
    { Py_tp_dealloc, (void *)work_dealloc },
    { Py_tp_methods, work_methods },
    { 0, NULL }
};

static PyType_Spec work_spec = {
    "_tutti.Work", sizeof(struct work_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, work_slots
};

int work_setup(PyObject *module)
{
    work_type = (PyTypeObject *)PyType_FromSpec(&work_spec);
    return work_type && PyModule_AddFunctions(module, work_functions) == 0
        ? PyModule_AddType(module, work_type)
        : -1;
}
