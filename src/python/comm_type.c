/* The type of a comm, and its life. A thread that waits in the library calls an interrupt function:
 * it runs Python's signal handlers. So Ctrl-C ends a blocked call by KeyboardInterrupt, within a
 * slice of a sleep.
 *
 * If a program has not finalized a world, the library leaves it at the end of the process, when no
 * Python code can read its memory any more. Nothing here leaves it earlier. */
#include "python/comm_type.h"

#include "python/fail.h"
#include "python/feed.h"
#include "python/methods.h"
#include "python/object.h"
#include "python/ops.h"
#include "python/shown.h"
#include "python/site.h"
#include "python/table.h"
#include "python/work.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static PyTypeObject *comm_type;

/* Python runs signal handlers in the main thread only, so other threads need not ask. So the
 * library's own thread stays out of Python. */
static int signals_asked(void *arg)
{
    (void)arg;
    if (syscall(SYS_gettid) != getpid() || !Py_IsInitialized())
        return 0;
    PyGILState_STATE state = PyGILState_Ensure();
    int stop = PyErr_Occurred() || PyErr_CheckSignals() < 0;
    PyGILState_Release(state);
    return stop;
}

static PyObject *comm_wrap(PyTypeObject *type, tutti_comm *comm, comm_object *world)
{
    comm_object *self = object_new(type);
    if (!self)
        return NULL;
    self->comm = comm;
    self->world = world;
    Py_XINCREF((PyObject *)world);
    return (PyObject *)self;
}

static void comm_dealloc(comm_object *self)
{
    if (self->world && self->comm && self->world->comm) {
        work_reap(self, 1);
        tutti_comm_free(self->comm);
        ops_drop(self);
    }
    Py_CLEAR(self->told);
    Py_CLEAR(self->raised);
    Py_CLEAR(self->world);
    object_free(self);
}

PyObject *comm_init(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *type;
    unsigned long long span;
    tutti_options o = { .interrupt = signals_asked };
    if (!PyArg_ParseTuple(args, "OziiiiiIIK", &type, &o.job, &o.rank, &o.size, &o.timeout_ms,
                          &o.join_timeout_ms, &o.warn_ms, &o.spin_us, &o.flags, &span))
        return NULL;
    o.span_bytes = (size_t)span;
    tutti_comm *comm;
    PyThreadState *state = PyEval_SaveThread();
    int r = tutti_init(&comm, &o);
    PyEval_RestoreThread(state);
    if (r < 0)
        return PyErr_Occurred() ? NULL : fail_comm(r, NULL, NULL, NULL);
    PyObject *world = PyErr_Occurred() ? NULL : comm_wrap((PyTypeObject *)type, comm, NULL);
    if (!world)
        tutti_finalize(comm);
    return world;
}

static int comm_is_free(comm_object *self, const char *name)
{
    if (self->inside) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s: another thread is inside this comm: wait for it first", name);
        return 0;
    }
    work_reap(self, 1);
    return 1;
}

static PyObject *comm_finalize(comm_object *self, PyObject *none)
{
    (void)none;
    if (!self->comm)
        Py_RETURN_NONE;
    if (self->world)
        return PyErr_Format(PyExc_ValueError,
                            "finalize: this is not a world; give a comm back by free()");
    if (self->regions)
        return PyErr_Format(PyExc_BufferError,
                            "finalize: %zd arrays of share() or load() are still there: delete "
                            "them first, "
                            "or leave the world to the end of the program",
                            self->regions);
    if (!comm_is_free(self, "finalize"))
        return NULL;
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = tutti_finalize_at(site, self->comm);
    comm_leave(self, state);
    if (comm_result(self, r) < 0)
        return NULL;
    self->comm = NULL;
    ops_drop(self);
    Py_RETURN_NONE;
}

static PyObject *comm_free(comm_object *self, PyObject *none)
{
    (void)none;
    if (!self->comm || !comm_world(self)->comm)
        Py_RETURN_NONE;
    if (!comm_is_free(self, "free") || comm_result(self, tutti_comm_free(self->comm)) < 0)
        return NULL;
    self->comm = NULL;
    ops_drop(self);
    Py_RETURN_NONE;
}

/* ---- comms of comms ---- */

static PyObject *comm_child(comm_object *self, int result, tutti_comm *child)
{
    if (comm_result(self, result) < 0) {
        if (result >= 0 && child)
            tutti_comm_free(child);
        return NULL;
    }
    if (!child)
        Py_RETURN_NONE;
    PyObject *made = comm_wrap(Py_TYPE((PyObject *)self), child, comm_world(self));
    if (!made)
        tutti_comm_free(child);
    return made;
}

static PyObject *comm_split(comm_object *self, PyObject *args)
{
    int color, key;
    tutti_comm *comm, *child = NULL;
    const char *site = site_of_caller();
    if (!PyArg_ParseTuple(args, "ii", &color, &key) || !(comm = comm_of(self)))
        return NULL;
    PyThreadState *state = comm_enter(self);
    int r = tutti_comm_split_at(site, comm, color, key, &child);
    comm_leave(self, state);
    return comm_child(self, r, child);
}

static PyObject *comm_create(comm_object *self, PyObject *list)
{
    tutti_comm *comm = comm_of(self), *child = NULL;
    const char *site = site_of_caller();
    Py_ssize_t n = comm ? PySequence_Size(list) : -1;
    if (n < 0)
        return NULL;
    int *ranks = calloc((size_t)n + 1, sizeof *ranks);
    if (!ranks)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(list, i);
        int beyond = 0;
        long rank = item ? PyLong_AsLongAndOverflow(item, &beyond) : -1;
        if (beyond || rank < INT_MIN || rank > INT_MAX)
            fail_number(PyUnicode_FromString("create: a rank"), item);
        ranks[i] = (int)rank;
        Py_XDECREF(item);
    }
    int r = -1;
    if (!PyErr_Occurred()) {
        PyThreadState *state = comm_enter(self);
        r = tutti_comm_create_at(site, comm, ranks, (int)n, &child);
        comm_leave(self, state);
    }
    free(ranks);
    return comm_child(self, r, child);
}

static PyObject *comm_shrink(comm_object *self, PyObject *none)
{
    (void)none;
    tutti_comm *comm = comm_of(self), *child = NULL;
    if (!comm)
        return NULL;
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = tutti_comm_shrink_at(site, comm, &child);
    comm_leave(self, state);
    return comm_child(self, r, child);
}

static PyObject *comm_agree(comm_object *self, PyObject *args)
{
    int flag;
    tutti_comm *comm;
    const char *site = site_of_caller();
    if (!PyArg_ParseTuple(args, "i", &flag) || !(comm = comm_of(self)))
        return NULL;
    PyThreadState *state = comm_enter(self);
    int r = tutti_comm_agree_at(site, comm, &flag);
    comm_leave(self, state);
    return comm_result(self, r) < 0 ? NULL : PyLong_FromLong(flag);
}

static PyObject *comm_abort(comm_object *self, PyObject *args)
{
    const char *why, *site = site_of_caller();
    tutti_comm *comm;
    if (!PyArg_ParseTuple(args, "s", &why) || !(comm = comm_of(self)))
        return NULL;
    int r = tutti_comm_abort_at(site, comm, why);
    if (comm_result(self, r) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- what is known without a wait ---- */

static PyObject *comm_failed(comm_object *self, PyObject *none)
{
    (void)none;
    tutti_comm *comm = comm_of(self);
    return comm ? fail_ranks(comm) : NULL;
}

static PyObject *comm_stats(comm_object *self, PyObject *none)
{
    (void)none;
    tutti_figures f = { 0 };
    tutti_comm *comm = comm_of(self);
    if (!comm || comm_result(self, tutti_stats(comm, &f)) < 0)
        return NULL;
    return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsKsK}", "operations", f.operations, "bytes", f.bytes,
                         "wait_ns", f.wait_ns, "fold_ns", f.fold_ns, "waits", f.waits, "sleeps",
                         f.sleeps, "compared", f.compared, "came_last", f.came_last,
                         "late_median_ns", f.late_median_ns, "late_p99_ns", f.late_p99_ns,
                         "late_cost_ns", f.late_cost_ns);
}

static PyObject *comm_set_timeout(comm_object *self, PyObject *args)
{
    int ms;
    tutti_comm *comm;
    if (!PyArg_ParseTuple(args, "i", &ms) || !(comm = comm_of(self))
        || comm_result(self, tutti_set_timeout(comm, ms)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *comm_fault(comm_object *self, PyObject *args)
{
    const char *what;
    tutti_comm *comm;
    if (!PyArg_ParseTuple(args, "s", &what) || !(comm = comm_of(self))
        || comm_result(self, tutti_fault(comm, what)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *comm_rank(comm_object *self, void *none)
{
    (void)none;
    tutti_comm *comm = comm_of(self);
    return comm ? PyLong_FromLong(tutti_rank(comm)) : NULL;
}

static PyObject *comm_size(comm_object *self, void *none)
{
    (void)none;
    tutti_comm *comm = comm_of(self);
    return comm ? PyLong_FromLong(tutti_size(comm)) : NULL;
}

static PyObject *comm_is_world(comm_object *self, void *none)
{
    (void)none;
    return PyBool_FromLong(!self->world);
}

static PyObject *comm_report(comm_object *self, void *none)
{
    (void)none;
    tutti_comm *comm = comm_of(self);
    return comm ? fail_text(tutti_explain(comm)) : NULL;
}

static PyMethodDef comm_methods[] = {
    OBJECT_METHOD("finalize", comm_finalize, METH_NOARGS,
                  "Leaves the world and frees all its comms. Waits for nobody."),
    OBJECT_METHOD("free", comm_free, METH_NOARGS,
                  "Frees this rank's hold on the comm; not for a world. Local."),
    OBJECT_METHOD("failed", comm_failed, METH_NOARGS,
                  "The ranks known to be dead or gone, ascending, as a tuple."),
    OBJECT_METHOD("stats", comm_stats, METH_NOARGS,
                  "This rank's figures since the comm began, by the names of tutti_figures, and\n"
                  "of its last collectives, `compared` of them, how often and by how much it\n"
                  "came last: came_last, late_median_ns, late_p99_ns, late_cost_ns. Times in ns."),
    OBJECT_METHOD("_split", comm_split, METH_VARARGS, NULL),
    OBJECT_METHOD("_create", comm_create, METH_O, NULL),
    OBJECT_METHOD("_shrink", comm_shrink, METH_NOARGS, NULL),
    OBJECT_METHOD("_agree", comm_agree, METH_VARARGS, NULL),
    OBJECT_METHOD("_abort", comm_abort, METH_VARARGS, NULL),
    OBJECT_METHOD("_set_timeout", comm_set_timeout, METH_VARARGS, NULL),
    OBJECT_METHOD("_fault", comm_fault, METH_VARARGS, NULL),
    OBJECT_METHOD("_collective", table_collective, METH_FASTCALL, NULL),
    OBJECT_METHOD("_op_create", ops_create, METH_O, NULL),
    OBJECT_METHOD("_op_free", ops_free, METH_O, NULL),
    OBJECT_METHOD("_once", methods_once, METH_VARARGS, NULL),
    OBJECT_METHOD("_first_begin", methods_first_begin, METH_VARARGS, NULL),
    OBJECT_METHOD("_first_end", methods_first_end, METH_VARARGS, NULL),
    OBJECT_METHOD("_turn_begin", methods_turn_begin, METH_VARARGS, NULL),
    OBJECT_METHOD("_turn_end", methods_turn_end, METH_NOARGS, NULL),
    OBJECT_METHOD("_seed", methods_seed, METH_VARARGS, NULL),
    OBJECT_METHOD("_set", methods_set, METH_VARARGS, NULL),
    OBJECT_METHOD("_get", methods_get, METH_VARARGS, NULL),
    OBJECT_METHOD("_add", methods_add, METH_VARARGS, NULL),
    OBJECT_METHOD("_compare_set", methods_compare_set, METH_VARARGS, NULL),
    OBJECT_METHOD("_delete", methods_delete, METH_VARARGS, NULL),
    OBJECT_METHOD("_probe", methods_probe, METH_VARARGS, NULL),
    OBJECT_METHOD("_load", shown_load, METH_VARARGS, NULL),
    OBJECT_METHOD("_save", shown_save, METH_VARARGS, NULL),
    OBJECT_METHOD("_give", shown_give, METH_O, NULL),
    OBJECT_METHOD("_view", shown_view, METH_VARARGS, NULL),
    OBJECT_METHOD("_queue", feed_create, METH_VARARGS, NULL),
    { 0 }
};

static PyGetSetDef comm_fields[] = {
    { "rank", (getter)comm_rank, NULL, "This rank's number in the comm, 0 to size - 1.", NULL },
    { "size", (getter)comm_size, NULL, "The number of ranks.", NULL },
    { "is_world", (getter)comm_is_world, NULL, "Whether it came from init().", NULL },
    { "report", (getter)comm_report, NULL,
      "The last failure of this rank on the comm, in words; '' if none.", NULL },
    { 0 }
};

static PyType_Slot comm_slots[] = {
    { Py_tp_dealloc, (void *)comm_dealloc },
    { Py_tp_methods, comm_methods },
    { Py_tp_getset, comm_fields },
    { 0, NULL }
};

static PyType_Spec comm_spec = {
    "_tutti.Comm", sizeof(comm_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, comm_slots
};

int comm_setup(PyObject *module)
{
    comm_type = (PyTypeObject *)PyType_FromSpec(&comm_spec);
    if (!comm_type)
        return -1;
    return PyModule_AddType(module, comm_type);
}
