/* A message that a reader looks at is an object with a read-only buffer. It is released when
 * nothing shows it any more. Until then finalize() of the world is refused, as for all memory of
 * the arena. Cost: one small object a message.
 * Objects are packed and unpacked here: after a few ms of sleep each function of Python costs some
 * 10 us, for nothing of it is in the caches. */
#include "python/feed.h"

#include "python/fail.h"
#include "python/object.h"
#include "python/site.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 16 };                     /* as _STEP in _queue.py */
enum { FEW = 6 };                       /* parts of a message that need no memory */

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
    size_t before, behind;              /* bytes of it that its buffer does not show */
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
    char *data = (char *)(uintptr_t)m->message.data + m->before;
    size_t bytes = m->message.bytes - m->before - m->behind;
    return PyBuffer_FillInfo(view, (PyObject *)m, data, (Py_ssize_t)bytes, 1, flags);
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

/* ---- objects ---- */

/* The parts of a message, as _queue.py has it: a head, a pickle, buffers. */
struct parts {
    Py_buffer *view;
    const void **part;
    size_t *bytes;
    uint64_t *head;
    Py_ssize_t views, parts;
    void *memory;
    struct {
        Py_buffer view[FEW];
        const void *part[FEW];
        size_t bytes[FEW];
        uint64_t head[FEW];
    } few;
};

static int packed_begin(struct parts *p, Py_ssize_t written, Py_ssize_t buffers)
{
    size_t n = (size_t)(2 + written + 2 * buffers);
    p->views = p->parts = 0;
    p->memory = NULL;
    p->view = p->few.view;
    p->part = p->few.part;
    p->bytes = p->few.bytes;
    p->head = p->few.head;
    if (n <= FEW)
        return 0;
    size_t each = sizeof *p->view + sizeof *p->head + sizeof *p->part + sizeof *p->bytes;
    p->memory = calloc(n, each);
    if (!p->memory) {
        PyErr_NoMemory();
        return -1;
    }
    p->view = p->memory;
    p->head = (uint64_t *)(void *)(p->view + n);
    p->part = (const void **)(void *)(p->head + n);
    p->bytes = (size_t *)(void *)(p->part + n);
    return 0;
}

static void packed_end(struct parts *p)
{
    while (p->views > 0)
        PyBuffer_Release(&p->view[--p->views]);
    free(p->memory);
}

static void packed_add(struct parts *p, const void *part, size_t bytes)
{
    p->part[p->parts] = part;
    p->bytes[p->parts++] = bytes;
}

/* -1: an exception is set; else its length. A pickler refuses buffers that are not contiguous. */
static Py_ssize_t packed_view(struct parts *p, PyObject *from, int flags)
{
    Py_buffer *view = &p->view[p->views];
    if (!from || PyObject_GetBuffer(from, view, flags) < 0)
        return -1;
    p->views++;
    packed_add(p, view->buf, (size_t)view->len);
    return view->len;
}

static int packed_fill(struct parts *p, PyObject *written, PyObject *buffers)
{
    static const char zeros[STEP];
    Py_ssize_t n = PyList_Size(buffers);
    size_t head = (size_t)(2 + n) * sizeof *p->head, all = head;
    packed_add(p, p->head, head);
    for (Py_ssize_t i = 0; i < PyList_Size(written); i++) {
        Py_ssize_t length = packed_view(p, PyList_GetItem(written, i), PyBUF_SIMPLE);
        if (length < 0)
            return -1;
        all += (size_t)length;
    }
    p->head[0] = (uint64_t)n;
    p->head[1] = all - head;
    for (Py_ssize_t i = 0; i < n; i++) {
        packed_add(p, zeros, -all % STEP);
        all += -all % STEP;
        Py_ssize_t length = packed_view(p, PyList_GetItem(buffers, i), PyBUF_FULL_RO);
        if (length < 0)
            return -1;
        p->head[2 + i] = (uint64_t)length;
        all += (size_t)length;
    }
    return 0;
}

static int queue_put_packed(queue_object *self, tutti_queue *queue, PyObject *written,
                            PyObject *buffers, const tutti_call *call)
{
    struct parts p;
    int r = packed_begin(&p, PyList_Size(written), PyList_Size(buffers));
    if (r == 0)
        r = packed_fill(&p, written, buffers);
    if (r == 0) {
        const char *site = site_of_caller();
        PyThreadState *state = comm_enter(self->world);
        r = tutti_queue_put_v_at(site, queue, p.part, p.bytes, (int)p.parts, call);
        comm_leave(self->world, state);
        r = queue_result(self, r);
    }
    packed_end(&p);
    return r;
}

/* One of the pool's, or a new one: (dump, forget, written, buffers). Two threads never have the
 * same. */
static PyObject *packer_take(PyObject *pool, PyObject *make)
{
    Py_ssize_t n = PyList_Size(pool);
    if (!n)
        return PyObject_CallFunctionObjArgs(make, NULL);
    PyObject *packer = PyList_GetItem(pool, n - 1);
    Py_INCREF(packer);
    if (PyList_SetSlice(pool, n - 1, n, NULL) == 0)
        return packer;
    Py_DECREF(packer);
    return NULL;
}

/* It keeps nothing of the object. Keeps the exception that is set. */
static void packer_give(PyObject *pool, PyObject *packer)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *forgot = PyObject_CallFunctionObjArgs(PyTuple_GetItem(packer, 1), NULL);
    int kept = forgot ? 0 : -1;
    Py_XDECREF(forgot);
    for (int i = 2; i < 4 && kept == 0; i++)
        kept = PyList_SetSlice(PyTuple_GetItem(packer, i), 0, PY_SSIZE_T_MAX, NULL);
    if (kept == 0)
        kept = PyList_Append(pool, packer);
    Py_DECREF(packer);
    PyErr_Restore(type, value, trace);
}

/* _send(pool, make, object, timeout_ms, flags): packs it and puts it */
static PyObject *queue_send(queue_object *self, PyObject *args)
{
    PyObject *pool, *make, *value;
    tutti_call call = { 0 };
    tutti_queue *queue = queue_of(self);
    if (!queue || !PyArg_ParseTuple(args, "O!OOiI", &PyList_Type, &pool, &make, &value,
                                    &call.timeout_ms, &call.flags))
        return NULL;
    PyObject *packer = packer_take(pool, make);
    if (!packer)
        return NULL;
    PyObject *dumped = PyObject_CallFunctionObjArgs(PyTuple_GetItem(packer, 0), value, NULL);
    int r = !dumped || !queue_of(self)
        ? -1
        : queue_put_packed(self, self->queue, PyTuple_GetItem(packer, 2),
                           PyTuple_GetItem(packer, 3), &call);
    Py_XDECREF(dumped);
    packer_give(pool, packer);
    if (r < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The object of a message without buffers. What keeps a view of the pickle keeps the message. NULL:
 * an exception is set. */
static PyObject *message_loads(message_object *m, PyObject *loads, uint64_t length)
{
    m->before = 2 * sizeof(uint64_t);
    m->behind = m->message.bytes - m->before - length;
    return PyObject_CallFunctionObjArgs(loads, (PyObject *)m, NULL);
}

/* _take(loads, unpack, copy, timeout_ms, flags) -> the next object: loads(pickle), or, of a message
 * with buffers, unpack(message, copy) */
static PyObject *queue_take(queue_object *self, PyObject *args)
{
    PyObject *loads, *unpack, *copy;
    tutti_call call = { 0 };
    tutti_queue *queue = queue_of(self);
    if (!queue || !PyArg_ParseTuple(args, "OOOiI", &loads, &unpack, &copy, &call.timeout_ms,
                                    &call.flags))
        return NULL;
    tutti_queue_message got;
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self->world);
    int r = tutti_queue_look_at(site, queue, &got, &call);
    comm_leave(self->world, state);
    message_object *m = r < 0 ? NULL : object_new(message_type);
    if (!m) {
        if (r >= 0)
            tutti_queue_release(queue, &got);
        queue_result(self, r);
        return NULL;
    }
    m->queue = self;
    m->message = got;
    Py_INCREF((PyObject *)self);
    self->world->regions++;
    uint64_t head[2] = { 1, 0 };
    if (queue_result(self, r) < 0) {
        Py_DECREF((PyObject *)m);
        return NULL;
    }
    if (got.bytes >= sizeof head)
        memcpy(head, got.data, sizeof head);
    PyObject *value = !head[0] && head[1] <= got.bytes - sizeof head
        ? message_loads(m, loads, head[1])
        : PyObject_CallFunctionObjArgs(unpack, (PyObject *)m, copy, NULL);
    Py_DECREF((PyObject *)m);
    return value;
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
    OBJECT_METHOD("_send", queue_send, METH_VARARGS, NULL),
    OBJECT_METHOD("_take", queue_take, METH_VARARGS, NULL),
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
