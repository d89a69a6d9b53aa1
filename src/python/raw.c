/* A tensor costs two integers here, no view.
 *
 * A comm is used by one thread at a time, a framework's group by any: the door lets them in one by one. From the second thread on no call
 * blocks behind it: it starts work, leaves, and waits outside; a send or receive does so as soon as there is a second thread in the
 * program, since another thread's call may be what it waits for.
 * Cost: a site, an uncontended lock. */
#include "python/raw.h"

#include "python/object.h"
#include "python/site.h"
#include "python/table.h"
#include "python/work.h"

#include <errno.h>
#include <limits.h>
#include <pythread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { ARGUMENTS = 13, ARGUMENTS_LEAST = 7 };

struct raw_door {
    PyThread_type_lock lock;
    unsigned long      inside;          /* the thread behind it; under the interpreter's lock */
    unsigned long      first;           /* who came first of all */
    int                shared;          /* others came, too */
    pid_t              pid;             /* in a fork whoever was inside is not there to leave */
};

static PyObject *threads_count;         /* _thread._count */

/* ---- the door ---- */

static struct raw_door *door_of(comm_object *self)
{
    if (self->door)
        return self->door;
    struct raw_door *d = calloc(1, sizeof *d);
    if (!d || !(d->lock = PyThread_allocate_lock())) {
        free(d);
        PyErr_NoMemory();
        return NULL;
    }
    d->first = PyThread_get_thread_ident();
    d->pid = getpid();
    return self->door = d;
}

/* 0: this thread is behind it already, a signal handler in a blocked call, or this is a fork: the library will say what it says to that. */
static int door_in(struct raw_door *d)
{
    unsigned long me = PyThread_get_thread_ident();
    if (d->first != me)
        d->shared = 1;
    if (d->inside == me)
        return 0;
    if (!PyThread_acquire_lock(d->lock, NOWAIT_LOCK)) {
        if (d->pid != getpid())
            return 0;
        PyThreadState *state = PyEval_SaveThread();
        PyThread_acquire_lock(d->lock, WAIT_LOCK);
        PyEval_RestoreThread(state);
    }
    d->inside = me;
    return 1;
}

static void door_out(struct raw_door *d)
{
    d->inside = 0;
    PyThread_release_lock(d->lock);
}

void raw_forget(comm_object *self)
{
    if (self->door)
        PyThread_free_lock(self->door->lock);
    free(self->door);
    self->door = NULL;
}

/* ---- arguments ---- */

static int side_list(struct side *s, PyObject *addresses, PyObject *counts)
{
    Py_ssize_t n = PySequence_Size(addresses);
    if (n < 0 || PySequence_Size(counts) != n) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "_raw: as many counts as addresses");
        return -1;
    }
    s->views = calloc((size_t)n + 1, sizeof *s->views);
    s->ptrs = calloc((size_t)n + 1, sizeof *s->ptrs);
    s->counts = calloc((size_t)n + 1, sizeof *s->counts);
    if (!s->views || !s->ptrs || !s->counts) {
        PyErr_NoMemory();
        return -1;
    }
    s->n = (int)n;
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        PyObject *address = PySequence_GetItem(addresses, i), *count = PySequence_GetItem(counts, i);
        s->ptrs[i] = address ? PyLong_AsVoidPtr(address) : NULL;
        s->counts[i] = count ? PyLong_AsSize_t(count) : 0;
        Py_XDECREF(address);
        Py_XDECREF(count);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static void side_one(struct side *s, void *address, size_t count)
{
    s->views = &s->one;
    s->ptrs = &s->one_ptr;
    s->counts = &s->one_count;
    s->n = 1;
    s->one_ptr = address;
    s->one_count = count;
}

static int side_raw(struct side *s, PyObject *address, PyObject *count)
{
    if (address != Py_None && !PyLong_Check(address))
        return side_list(s, address, count);
    side_one(s, address == Py_None ? NULL : PyLong_AsVoidPtr(address), address == Py_None ? 0 : PyLong_AsSize_t(count));
    s->n = address != Py_None;
    return PyErr_Occurred() ? -1 : 0;
}

static int whole(PyObject *number)
{
    long value = PyLong_AsLong(number);
    return value < INT_MIN ? INT_MIN : value > INT_MAX ? INT_MAX : (int)value;
}

static int arguments(struct asked *a, struct flight *f, PyObject *const *args, Py_ssize_t n)
{
    bool all = n == ARGUMENTS;
    a->kind = f->kind = whole(args[0]);
    a->type = whole(args[5]);
    a->op = whole(args[6]);
    a->root = all ? whole(args[7]) : 0;
    a->timeout_ms = all ? whole(args[8]) : 0;
    a->stream = all ? (uintptr_t)PyLong_AsVoidPtr(args[9]) : 0;
    if (PyErr_Occurred() || side_raw(&f->send, args[1], args[2]) < 0 || side_raw(&f->recv, args[3], args[4]) < 0
        || side_raw(&f->factor, all ? args[10] : Py_None, args[0]) < 0)       /* one element, whatever number stands for its count */
        return -1;
    if (a->kind >= 0 && a->kind < KINDS)
        return 0;
    PyErr_SetString(PyExc_ValueError, "_raw: no such call");
    return -1;
}

/* ---- the call ---- */

/* Besides the main one. */
static int has_threads(void)
{
    PyObject *count = PyObject_CallNoArgs(threads_count);
    int has = !count || PyLong_AsLong(count) != 0;
    Py_XDECREF(count);
    PyErr_Clear();
    return has;
}

/* A while for what was started; -EAGAIN says that it goes on, and is then no failure. */
static int raw_linger(comm_object *self, const char *site, struct flight *f, int patience_ms)
{
    PyThreadState *state = comm_enter(self);
    int r = tutti_wait_at(site, f->work, patience_ms);
    comm_leave(self, state);
    if (r == -EAGAIN)
        return 0;
    f->work = NULL;
    return r;
}

/* patience_ms: how long work that was asked for is awaited here; 0: not at all. */
static int raw_run(comm_object *self, const struct asked *a, struct flight *f, tutti_comm *comm, int patience_ms)
{
    struct raw_door *d = door_of(self);
    if (!d)
        return -ENOMEM;
    const char *site = site_of_caller();
    int entered = door_in(d);
    int by_work = a->mode || d->shared || ((a->kind == KIND_SEND || a->kind == KIND_RECV) && has_threads());
    tutti_call call = { .timeout_ms = a->timeout_ms, .work = by_work ? &f->work : NULL, .stream = (void *)a->stream, .factor = side_ptr(&f->factor) };
    if (a->mode & MODE_WORK)
        flight_start(f, &call, 0);
    PyThreadState *state = comm_enter(self);
    int r = table_run(site, a, f, comm, &call);
    comm_leave(self, state);
    if (entered)
        door_out(d);
    if (!f->work || (a->mode && !patience_ms))
        return r;
    return raw_linger(self, site, f, a->mode ? patience_ms : -1);
}

/* The value of a call that is over, or a Work; takes the flight over, which is the heap's where a Work was asked for. */
static PyObject *raw_go(comm_object *self, const struct asked *a, struct flight *f, tutti_comm *comm, int patience_ms)
{
    int r = raw_run(self, a, f, comm, patience_ms);
    if (f->work)
        return work_new(self, f);
    PyObject *value = comm_result(self, r) < 0 ? NULL : flight_value(f, r);
    flight_drop(f);
    if (a->mode)
        free(f);
    return value;
}

int raw_all_reduce(comm_object *self, void *address, size_t count, int type, int op)
{
    tutti_comm *comm = comm_of(self);
    if (!comm)
        return -1;
    work_reap(self, 0);
    struct asked a = { .kind = KIND_ALL_REDUCE, .type = type, .op = op, .rank = tutti_rank(comm), .size = tutti_size(comm) };
    struct flight f = { .kind = KIND_ALL_REDUCE, .result = Py_None, .owner = Py_None };
    Py_INCREF(Py_None);
    Py_INCREF(Py_None);
    side_one(&f.send, address, count);
    side_one(&f.recv, address, count);
    PyObject *value = raw_go(self, &a, &f, comm, 0);
    Py_XDECREF(value);
    return value ? 0 : -1;
}

PyObject *raw_collective(PyObject *object, PyObject *const *args, Py_ssize_t n)
{
    comm_object *self = (comm_object *)object;
    struct asked a;
    struct flight here = { 0 }, *f = &here;
    tutti_comm *comm = comm_of(self);
    if (!comm)
        return NULL;
    if (n != ARGUMENTS && n != ARGUMENTS_LEAST)
        return PyErr_Format(PyExc_TypeError, "_raw: %d or %d arguments", ARGUMENTS_LEAST, ARGUMENTS);
    work_reap(self, 0);
    a.mode = n == ARGUMENTS && args[11] != Py_False ? MODE_WORK : 0;
    int patience_ms = a.mode && args[11] != Py_True ? whole(args[11]) : 0;
    if (a.mode && !(f = calloc(1, sizeof *f)))
        return PyErr_NoMemory();
    f->result = a.mode ? args[12] : Py_None;
    f->owner = n == ARGUMENTS ? args[12] : Py_None;
    Py_INCREF(f->result);
    Py_INCREF(f->owner);
    if (arguments(&a, f, args, n) == 0) {
        a.rank = tutti_rank(comm);
        a.size = tutti_size(comm);
        return raw_go(self, &a, f, comm, patience_ms);
    }
    flight_drop(f);
    if (a.mode)
        free(f);
    return NULL;
}

int raw_setup(PyObject *module)
{
    (void)module;
    PyObject *threads = PyImport_ImportModule("_thread");
    threads_count = threads ? PyObject_GetAttrString(threads, "_count") : NULL;
    Py_XDECREF(threads);
    return threads_count ? 0 : -1;
}
