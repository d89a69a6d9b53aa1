/* A message that a reader looks at is an object with a read-only buffer. It is released when
 * nothing shows it any more. Until then finalize() of the world is refused, as for all memory of
 * the arena. Cost: one small object a message. */
#include "python/feed.h"

#include "python/fail.h"
#include "python/object.h"
#include "python/site.h"

#include <stdlib.h>

typedef struct queue_object {
    PyObject_HEAD
    tutti_queue *queue;                 /* NULL: none */
    comm_object *world;                 /* owned */
    PyObject    *told;                  /* as in comm_object */
    int          told_error;
} queue_object;

typedef struct message_object {
    PyObject_HEAD
    queue_object       *queue;          /* owned */
    tutti_queue_message message;
} message_object;

static PyTypeObject *queue_type, *message_type;

static tutti_queue *queue_of(queue_object *self)
{
    if (self->queue && self->world->comm)
        return self->queue;
    PyErr_SetString(PyExc_ValueError, "the world of this queue has been finalized");
    return NULL;
}

static int queue_result(queue_object *self, int result)
{
    if (PyErr_Occurred())
        return -1;
    if (result >= 0)
        return result;
    fail_comm(result, tutti_queue_comm(self->queue), &self->told, &self->told_error);
    return -1;
}

PyObject *feed_create(comm_object *self, PyObject *args)
{
    PyTypeObject *type;
    int writer;
    unsigned long long room;
    tutti_queue_options o = { 0 };
    tutti_comm *comm = comm_of(self);
    if (!comm || !PyArg_ParseTuple(args, "OiKI", &type, &writer, &room, &o.flags))
        return NULL;
    o.room = (size_t)room;
    queue_object *made = object_new(type);
    if (!made)
        return NULL;
    made->world = comm_world(self);
    Py_INCREF((PyObject *)made->world);
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = tutti_queue_create_at(site, comm, writer, &o, &made->queue);
    comm_leave(self, state);
    if (comm_result(self, r) == 0)
        return (PyObject *)made;
    Py_DECREF((PyObject *)made);
    return NULL;
}

static void queue_dealloc(queue_object *self)
{
    if (self->queue && self->world->comm)
        tutti_queue_free(self->queue);
    Py_CLEAR(self->told);
    Py_CLEAR(self->world);
    object_free(self);
}

/* ---- messages ---- */

static void message_dealloc(message_object *m)
{
    if (m->message.data && m->queue->world->comm)
        tutti_queue_release(m->queue->queue, &m->message);
    m->queue->world->regions--;
    Py_DECREF((PyObject *)m->queue);
    object_free(m);
}

static int message_buffer(message_object *m, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, (PyObject *)m, (void *)(uintptr_t)m->message.data,
                             (Py_ssize_t)m->message.bytes, 1, flags);
}

/* _look(timeout_ms, flags) -> a buffer */
static PyObject *queue_look(queue_object *self, PyObject *args)
{
    tutti_call call = { 0 };
    tutti_queue *queue = queue_of(self);
    if (!queue || !PyArg_ParseTuple(args, "iI", &call.timeout_ms, &call.flags))
        return NULL;
    message_object *m = object_new(message_type);
    if (!m)
        return NULL;
    m->queue = self;
    Py_INCREF((PyObject *)self);
    self->world->regions++;
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self->world);
    int r = tutti_queue_look_at(site, queue, &m->message, &call);
    comm_leave(self->world, state);
    if (queue_result(self, r) == 0)
        return (PyObject *)m;
    Py_DECREF((PyObject *)m);
    return NULL;
}

/* _put(parts, timeout_ms, flags): a tuple of buffers */
static PyObject *queue_put(queue_object *self, PyObject *args)
{
    PyObject *parts;
    tutti_call call = { 0 };
    tutti_queue *queue = queue_of(self);
    if (!queue || !PyArg_ParseTuple(args, "O!iI", &PyTuple_Type, &parts, &call.timeout_ms,
                                    &call.flags))
        return NULL;
    Py_ssize_t n = PyTuple_Size(parts), got = 0;
    Py_buffer *view = calloc((size_t)n + 1, sizeof *view);
    const void **part = calloc((size_t)n + 1, sizeof *part);
    size_t *bytes = calloc((size_t)n + 1, sizeof *bytes);
    int r = view && part && bytes ? 0 : -1;
    if (r < 0)
        PyErr_NoMemory();
    for (; got < n && r == 0; got += r == 0) {
        r = PyObject_GetBuffer(PyTuple_GetItem(parts, got), &view[got], PyBUF_SIMPLE);
        part[got] = view[got].buf;
        bytes[got] = (size_t)view[got].len;
    }
    if (r == 0) {
        const char *site = site_of_caller();
        PyThreadState *state = comm_enter(self->world);
        r = tutti_queue_put_v_at(site, queue, part, bytes, (int)n, &call);
        comm_leave(self->world, state);
        r = queue_result(self, r);
    }
    while (got > 0)
        PyBuffer_Release(&view[--got]);
    free(view);
    free((void *)part);
    free(bytes);
    if (r < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Another thread's call ends at once; this waits for that, without the lock. */
static PyObject *queue_close(queue_object *self, PyObject *none)
{
    (void)none;
    if (self->queue && self->world->comm) {
        PyThreadState *state = comm_enter(self->world);
        int r = tutti_queue_close(self->queue);
        comm_leave(self->world, state);
        if (queue_result(self, r) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *queue_figures(queue_object *self, PyObject *none)
{
    (void)none;
    tutti_queue_figures f;
    tutti_queue *queue = queue_of(self);
    if (!queue || queue_result(self, tutti_queue_stats(queue, &f)) < 0)
        return NULL;
    return Py_BuildValue("KKKKKKKKK", f.messages, f.bytes, f.waits, f.sleeps, f.wakes, f.behind,
                         f.room, f.held, f.lost);
}

static PyObject *queue_rank(queue_object *self, void *none)
{
    (void)none;
    tutti_queue *queue = queue_of(self);
    return queue ? PyLong_FromLong(tutti_rank(tutti_queue_comm(queue))) : NULL;
}

static PyObject *queue_size(queue_object *self, void *none)
{
    (void)none;
    tutti_queue *queue = queue_of(self);
    return queue ? PyLong_FromLong(tutti_size(tutti_queue_comm(queue))) : NULL;
}

static PyMethodDef queue_methods[] = {
    OBJECT_METHOD("_put", queue_put, METH_VARARGS, NULL),
    OBJECT_METHOD("_look", queue_look, METH_VARARGS, NULL),
    OBJECT_METHOD("_close", queue_close, METH_NOARGS, NULL),
    OBJECT_METHOD("_figures", queue_figures, METH_NOARGS, NULL),
    { 0 }
};

static PyGetSetDef queue_fields[] = {
    { "rank", (getter)queue_rank, NULL, "This rank's number among those of the queue.", NULL },
    { "size", (getter)queue_size, NULL, "The number of ranks: one writer, and readers.", NULL },
    { 0 }
};

static PyType_Slot queue_slots[] = {
    { Py_tp_dealloc, (void *)queue_dealloc },
    { Py_tp_methods, queue_methods },
    { Py_tp_getset, queue_fields },
    { 0, NULL }
};

static PyType_Spec queue_spec = {
    "_tutti.Queue", sizeof(queue_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, queue_slots
};

static PyType_Slot message_slots[] = {
    { Py_tp_dealloc, (void *)message_dealloc },
    { Py_bf_getbuffer, (void *)message_buffer },
    { 0, NULL }
};

static PyType_Spec message_spec = {
    "_tutti.QueueMessage", sizeof(message_object), 0, Py_TPFLAGS_DEFAULT, message_slots
};

int feed_setup(PyObject *module)
{
    queue_type = (PyTypeObject *)PyType_FromSpec(&queue_spec);
    message_type = (PyTypeObject *)PyType_FromSpec(&message_spec);
    if (!queue_type || !message_type)
        return -1;
    return PyModule_AddType(module, queue_type);
}
