/* What every method of a comm needs. The type with its methods is in comm_type.c, above the methods
 * in the order of includes. Cost: two counters a call. */
#include "python/comm.h"

#include "python/fail.h"

tutti_comm *comm_of(comm_object *self)
{
    if (self->comm && comm_world(self)->comm)
        return self->comm;
    PyErr_SetString(PyExc_ValueError,
                    "this comm has been freed, or its world finalized: it can be used no more");
    return NULL;
}

PyThreadState *comm_enter(comm_object *self)
{
    self->inside++;
    if (self->world)
        self->world->inside++;
    return PyEval_SaveThread();
}

void comm_leave(comm_object *self, PyThreadState *state)
{
    PyEval_RestoreThread(state);
    self->inside--;
    if (self->world)
        self->world->inside--;
}

int comm_result(comm_object *self, int result)
{
    if (PyErr_Occurred())
        return -1;
    if (self->raised) {
        PyErr_SetObject((PyObject *)Py_TYPE(self->raised), self->raised);
        Py_CLEAR(self->raised);
        return -1;
    }
    if (result >= 0)
        return result;
    fail_comm(result, self->comm, &self->told, &self->told_error);
    return -1;
}
