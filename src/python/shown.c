/* A Memory prevents finalize() of its world: NumPy arrays may show its memory, and nothing tells
 * them that a mapping has ended. Cost: one small object for each region. */
#include "python/shown.h"

#include "python/object.h"
#include "python/site.h"
#include "python/table.h"

#include <stdlib.h>
#include <string.h>

struct shown_object {
    PyObject_HEAD
    comm_object *world;                 /* owned */
    const void  *data;
    size_t       bytes;
    int          loaded;                /* tutti_free must release it */
};

static PyTypeObject *shown_type;

static PyObject *shown_new(comm_object *self, const void *data, size_t bytes, int loaded)
{
    struct shown_object *m = object_new(shown_type);
    if (!m)
        return NULL;
    m->world = comm_world(self);
    m->world->regions++;
    Py_INCREF((PyObject *)m->world);
    m->data = data;
    m->bytes = bytes;
    m->loaded = loaded;
    return (PyObject *)m;
}

static void shown_dealloc(struct shown_object *m)
{
    m->world->regions--;
    if (m->loaded && m->world->comm)
        tutti_free((void *)(uintptr_t)m->data, m->world->comm);
    Py_CLEAR(m->world);
    object_free(m);
}

static int shown_buffer(struct shown_object *m, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, (PyObject *)m, (void *)(uintptr_t)m->data, (Py_ssize_t)m->bytes,
                             1, flags);
}

static PyObject *shown_loaded(struct flight *f)
{
    PyObject *memory = shown_new(f->comm, f->data, f->bytes, 1);
    if (!memory)
        return NULL;
    f->data = NULL;                                     /* the Memory owns it now */
    PyObject *view = PyMemoryView_FromObject(memory);
    Py_DECREF(memory);
    return view;
}

/* The last step of a starting or a blocking call. `f` has all that the call uses. */
static PyObject *go(comm_object *self, struct flight *f, int kind, PyObject *path, tutti_call *call,
                    int mode)
{
    tutti_comm *comm = self->comm;
    const char *site = site_of_caller(), *name = PyBytes_AsString(path);
    f->kind = kind;
    f->loaded = kind == KIND_LOAD ? shown_loaded : NULL;
    f->comm = self;
    Py_INCREF(Py_None);
    f->result = Py_None;
    if (mode & MODE_WORK)
        flight_start(f, call, mode & MODE_KEEP);
    PyThreadState *state = comm_enter(self);
    int r = kind == KIND_LOAD
        ? tutti_load_at(site, name, &f->data, &f->bytes, comm, call)
        : tutti_save_at(site, name, side_ptr(&f->send), side_count(&f->send), comm, call);
    comm_leave(self, state);
    Py_DECREF(path);
    if (f->work)
        return work_new(self, f);
    if (r < 0)
        f->data = NULL;
    PyObject *value = comm_result(self, r) < 0 ? NULL : flight_value(f, r);
    flight_drop(f);
    free(f);
    return value;
}

PyObject *shown_load(comm_object *self, PyObject *args)
{
    PyObject *path;
    int mode;
    tutti_call call = { 0 };
    if (!comm_of(self)
        || !PyArg_ParseTuple(args, "O&ii", PyUnicode_FSConverter, &path, &call.timeout_ms, &mode))
        return NULL;
    work_reap(self, 0);
    struct flight *f = calloc(1, sizeof *f);
    if (f)
        return go(self, f, KIND_LOAD, path, &call, mode);
    Py_DECREF(path);
    return PyErr_NoMemory();
}

PyObject *shown_save(comm_object *self, PyObject *args)
{
    PyObject *path, *data;
    int mode;
    tutti_call call = { 0 };
    if (!comm_of(self)
        || !PyArg_ParseTuple(args, "O&Oii", PyUnicode_FSConverter, &path, &data, &call.timeout_ms,
                             &mode))
        return NULL;
    work_reap(self, 0);
    struct flight *f = calloc(1, sizeof *f);
    if (f && data != Py_None && side_take(&f->send, data, TYPE_AS_BYTES, 0, "save") == 0) {
        if (!f->send.device)
            return go(self, f, KIND_SAVE, path, &call, mode);
        side_drop(&f->send);
        PyErr_SetString(PyExc_ValueError,
                        "save: an array in device memory; what is saved is in host memory: copy "
                        "it");
    } else if (f && data == Py_None)
        PyErr_SetString(PyExc_TypeError, "save: None is no array");
    Py_DECREF(path);
    free(f);
    return f ? NULL : PyErr_NoMemory();
}

PyObject *shown_give(comm_object *self, PyObject *object)
{
    Py_buffer data;
    uint64_t handle = 0;
    tutti_comm *comm = comm_of(self);
    if (!comm || PyObject_GetBuffer(object, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    PyThreadState *state = comm_enter(self);
    void *copy = tutti_alloc(data.len > 0 ? (size_t)data.len : 1, comm);
    if (copy)
        memcpy(copy, data.buf, (size_t)data.len);
    int r = copy ? tutti_handle(copy, &handle, comm) : 0;
    comm_leave(self, state);
    PyBuffer_Release(&data);
    if (!copy)
        return PyErr_Format(PyExc_MemoryError, "share: %s", tutti_explain(comm));
    return comm_result(self, r) < 0 ? NULL : PyLong_FromUnsignedLongLong(handle);
}

PyObject *shown_view(comm_object *self, PyObject *args)
{
    unsigned long long handle;
    Py_ssize_t bytes;
    tutti_comm *comm = comm_of(self);
    if (!comm || !PyArg_ParseTuple(args, "Kn", &handle, &bytes))
        return NULL;
    const void *data = tutti_view_readonly(handle, comm);
    if (!data)
        return PyErr_Format(PyExc_MemoryError, "share: %s", tutti_explain(comm));
    return shown_new(self, data, (size_t)bytes, 0);
}

static PyType_Slot shown_slots[] = {
    { Py_tp_dealloc, (void *)shown_dealloc },
    { Py_bf_getbuffer, (void *)shown_buffer },
    { 0, NULL }
};

static PyType_Spec shown_spec = {
    "tutti.Memory", sizeof(struct shown_object), 0, Py_TPFLAGS_DEFAULT, shown_slots
};

int shown_setup(PyObject *module)
{
    shown_type = (PyTypeObject *)PyType_FromSpec(&shown_spec);
    return shown_type ? PyModule_AddType(module, shown_type) : -1;
}
