/* The function of once() runs in this thread, inside the library's call, with the interpreter's
 * lock. Its exception is raised on its own rank only. The library gets an error, and the next rank
 * that waits takes over. Cost: one change of the lock. */
#include "python/methods.h"

#include "python/site.h"

#include <errno.h>

/* The function's exception is kept here while the library continues: the interrupt function would
 * take it for Ctrl-C. */
struct python_call { PyObject *function, *value, *kind, *raised, *trace; };

static int once_run(void *arg)
{
    struct python_call *mine = arg;
    PyGILState_STATE state = PyGILState_Ensure();
    mine->value = PyObject_CallNoArgs(mine->function);
    int r = mine->value ? 0 : -ECANCELED;
    if (r < 0)
        PyErr_Fetch(&mine->kind, &mine->raised, &mine->trace);
    PyGILState_Release(state);
    return r;
}

tutti_comm *methods_key(comm_object *self, PyObject *args, const char **key, tutti_call *call)
{
    tutti_comm *comm = comm_of(self);
    return comm && PyArg_ParseTuple(args, "si", key, &call->timeout_ms) ? comm : NULL;
}

PyObject *methods_once(comm_object *self, PyObject *args)
{
    struct python_call mine = { 0 };
    const char *key;
    tutti_call call = { 0 };
    tutti_comm *comm = comm_of(self);
    if (!comm || !PyArg_ParseTuple(args, "sOi", &key, &mine.function, &call.timeout_ms))
        return NULL;
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = tutti_once_at(site, key, once_run, &mine, comm, &call);
    comm_leave(self, state);
    PyObject *both = NULL;
    if (mine.kind)
        PyErr_Restore(mine.kind, mine.raised, mine.trace);
    else if (comm_result(self, r) >= 0)
        both = Py_BuildValue("NO", PyBool_FromLong(mine.value != NULL),
                             mine.value ? mine.value : Py_None);
    Py_XDECREF(mine.value);
    return both;
}

PyObject *methods_first_begin(comm_object *self, PyObject *args)
{
    const char *key, *site = site_of_caller();
    tutti_call call = { 0 };
    tutti_comm *comm = methods_key(self, args, &key, &call);
    if (!comm)
        return NULL;
    PyThreadState *state = comm_enter(self);
    int r = tutti_first_begin_at(site, key, comm, &call);
    comm_leave(self, state);
    if (comm_result(self, r) >= 0)
        return PyBool_FromLong(r);
    if (r == 1)
        /* a signal's exception stops this rank: the next rank is first */
        tutti_first_end_at(site, key, -EINTR, comm);
    return NULL;
}

PyObject *methods_first_end(comm_object *self, PyObject *args)
{
    const char *key;
    int error;
    tutti_comm *comm = comm_of(self);
    if (!comm || !PyArg_ParseTuple(args, "si", &key, &error))
        return NULL;
    int r = tutti_first_end_at(site_of_caller(), key, error, comm);
    if (r != error && comm_result(self, r) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *methods_turn_begin(comm_object *self, PyObject *args)
{
    tutti_call call = { 0 };
    tutti_comm *comm = comm_of(self);
    if (!comm || !PyArg_ParseTuple(args, "i", &call.timeout_ms))
        return NULL;
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = tutti_turn_begin_at(site, comm, &call);
    comm_leave(self, state);
    if (comm_result(self, r) >= 0)
        Py_RETURN_NONE;
    if (r >= 0)
        tutti_turn_end_at(site, comm);
    return NULL;
}

PyObject *methods_turn_end(comm_object *self, PyObject *none)
{
    (void)none;
    tutti_comm *comm = comm_of(self);
    if (!comm || comm_result(self, tutti_turn_end_at(site_of_caller(), comm)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *methods_seed(comm_object *self, PyObject *args)
{
    unsigned long long base;
    tutti_comm *comm = comm_of(self);
    if (!comm || !PyArg_ParseTuple(args, "K", &base))
        return NULL;
    return PyLong_FromUnsignedLongLong(tutti_seed_at(site_of_caller(), base, comm));
}
