/* The job's store, and probe(). get() tries a small buffer first. If the value is longer, it tries
 * again with the length that the library gave. Cost: one malloc and one copy for get(). */
#include "python/methods.h"

#include "python/site.h"

#include <errno.h>
#include <stdlib.h>

PyObject *methods_set(comm_object *self, PyObject *args)
{
    const char *key;
    Py_buffer value;
    tutti_comm *comm = comm_of(self);
    if (!comm || !PyArg_ParseTuple(args, "sy*", &key, &value))
        return NULL;
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = tutti_set_at(site, key, value.buf, (size_t)value.len, comm);
    comm_leave(self, state);
    PyBuffer_Release(&value);
    if (comm_result(self, r) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *methods_get(comm_object *self, PyObject *args)
{
    const char *key, *site = site_of_caller();
    tutti_call call = { 0 };
    tutti_comm *comm = methods_key(self, args, &key, &call);
    if (!comm)
        return NULL;
    for (size_t room = 256, len;;) {
        char *value = malloc(room);
        if (!value)
            return PyErr_NoMemory();
        len = room;
        PyThreadState *state = comm_enter(self);
        int r = tutti_get_at(site, key, value, &len, comm, &call);
        comm_leave(self, state);
        int again = r == -EMSGSIZE && len > room && !PyErr_Occurred();
        PyObject *bytes = again || comm_result(self, r) < 0
            ? NULL
            : PyBytes_FromStringAndSize(value, (Py_ssize_t)len);
        free(value);
        if (!again)
            return bytes;
        room = len;
    }
}

PyObject *methods_add(comm_object *self, PyObject *args)
{
    const char *key;
    long long delta;
    int64_t now = 0;
    tutti_comm *comm = comm_of(self);
    if (!comm || !PyArg_ParseTuple(args, "sL", &key, &delta))
        return NULL;
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = tutti_add_at(site, key, delta, &now, comm);
    comm_leave(self, state);
    return comm_result(self, r) < 0 ? NULL : PyLong_FromLongLong(now);
}

PyObject *methods_compare_set(comm_object *self, PyObject *args)
{
    const char *key;
    Py_buffer expected, desired;
    tutti_comm *comm = comm_of(self);
    if (!comm || !PyArg_ParseTuple(args, "sy*y*", &key, &expected, &desired))
        return NULL;
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = tutti_compare_set_at(site, key, expected.buf, (size_t)expected.len, desired.buf,
                                 (size_t)desired.len, comm);
    comm_leave(self, state);
    PyBuffer_Release(&expected);
    PyBuffer_Release(&desired);
    return comm_result(self, r) < 0 ? NULL : PyBool_FromLong(r);
}

PyObject *methods_delete(comm_object *self, PyObject *args)
{
    const char *key;
    tutti_comm *comm = comm_of(self);
    if (!comm || !PyArg_ParseTuple(args, "s", &key))
        return NULL;
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = tutti_delete_at(site, key, comm);
    comm_leave(self, state);
    if (r != -ENOENT && comm_result(self, r) < 0)
        return NULL;
    return PyErr_Occurred() ? NULL : PyBool_FromLong(r == 0);
}

PyObject *methods_probe(comm_object *self, PyObject *args)
{
    int from, tag;
    tutti_call call = { 0 };
    tutti_message got = { 0 };
    tutti_comm *comm = comm_of(self);
    if (!comm || !PyArg_ParseTuple(args, "iii", &from, &tag, &call.timeout_ms))
        return NULL;
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = tutti_probe_at(site, from, tag, &got, comm, &call);
    comm_leave(self, state);
    return comm_result(self, r) < 0
        ? NULL
        : Py_BuildValue("iin", got.from, got.tag, (Py_ssize_t)got.count);
}
