/* One entry for all calls on buffers. A row states what a call takes on each side. The counts are
 * checked here, because the arrays' sizes are known here: with a wrong count from Python the
 * library would read or write beyond an array. A rank may give None for a buffer that it does not
 * need. If it needs it, the library reports the error.
 * Cost: two views of buffers; an allocation only if work is left under way. */
#include "python/table.h"

#include "python/comm.h"
#include "python/fail.h"
#include "python/site.h"
#include "python/work.h"

#include <stdlib.h>

/* SOME: count elements; BLOCKS: size x count; LIST: a buffer per rank */
enum rule { NOTHING, SOME, BLOCKS, LIST };

static const struct kind_row { const char *name; enum rule send, recv; } rows[KINDS] = {
    [KIND_BARRIER]          = { "barrier",          NOTHING, NOTHING },
    [KIND_BROADCAST]        = { "broadcast",        NOTHING, SOME },
    [KIND_REDUCE]           = { "reduce",           SOME,    SOME },
    [KIND_ALL_REDUCE]       = { "all_reduce",       SOME,    SOME },
    [KIND_REDUCE_SCATTER]   = { "reduce_scatter",   BLOCKS,  SOME },
    [KIND_ALL_GATHER]       = { "all_gather",       SOME,    BLOCKS },
    [KIND_GATHER]           = { "gather",           SOME,    BLOCKS },
    [KIND_SCATTER]          = { "scatter",          BLOCKS,  SOME },
    [KIND_ALL_TO_ALL]       = { "all_to_all",       BLOCKS,  BLOCKS },
    [KIND_SCAN]             = { "scan",             SOME,    SOME },
    [KIND_EXSCAN]           = { "exscan",           SOME,    SOME },
    [KIND_SAME]             = { "same",             SOME,    NOTHING },
    [KIND_ALL_REDUCE_MANY]  = { "all_reduce_many",  LIST,    LIST },
    [KIND_ALL_GATHER_V]     = { "all_gather_v",     SOME,    LIST },
    [KIND_GATHER_V]         = { "gather_v",         SOME,    LIST },
    [KIND_SCATTER_V]        = { "scatter_v",        LIST,    SOME },
    [KIND_REDUCE_SCATTER_V] = { "reduce_scatter_v", LIST,    SOME },
    [KIND_ALL_TO_ALL_V]     = { "all_to_all_v",     LIST,    LIST },
    [KIND_SEND]             = { "send",             SOME,    NOTHING },
    [KIND_RECV]             = { "recv",             NOTHING, SOME },
};

enum { ARGUMENTS = 11 };

static int take(struct array_side *s, PyObject *object, enum rule rule, int type, int writable,
                const char *name)
{
    return rule == LIST ? side_take_list(s, object, type, writable, name)
                        : side_take(s, object, type, writable, name);
}

static int wrong(const char *name, const char *which, size_t is, size_t should)
{
    PyErr_Format(PyExc_ValueError, "%s: %s has %zu elements; expected %zu", name, which, is,
                 should);
    return -1;
}

/* Checks both sides of a call with one count: how many elements a rank gives or gets. */
static int counted(const struct asked *a, const struct flight *f, const struct kind_row *row)
{
    size_t size = (size_t)a->size, send = side_count(&f->send), recv = side_count(&f->recv);
    if (row->send == BLOCKS && f->send.n && send % size) {
        PyErr_Format(PyExc_ValueError,
                     "%s: the array has %zu elements, which cannot be divided among %d ranks",
                     row->name, send, a->size);
        return -1;
    }
    if (!f->send.n || !f->recv.n)
        return 0;
    size_t should = row->send == row->recv ? send : row->send == BLOCKS ? send / size : send * size;
    return recv == should ? 0 : wrong(row->name, "out", recv, should);
}

static int listed(const struct asked *a, const struct flight *f, const struct kind_row *row)
{
    const struct array_side *sides[] = { &f->send, &f->recv };
    enum rule rules[] = { row->send, row->recv };
    int buffers = a->kind == KIND_ALL_REDUCE_MANY ? f->send.n : a->size;
    for (int i = 0; i < 2; i++)
        if (rules[i] == LIST && sides[i]->n && sides[i]->n != buffers) {
            PyErr_Format(PyExc_ValueError, "%s: a list of %d arrays; expected %d", row->name,
                         sides[i]->n, buffers);
            return -1;
        }
    if (a->kind == KIND_ALL_REDUCE_MANY)
        for (int i = 0; i < buffers; i++)
            if (f->recv.n != buffers || f->recv.counts[i] != f->send.counts[i])
                return wrong(row->name, "an array of out",
                             f->recv.n == buffers ? f->recv.counts[i] : 0, f->send.counts[i]);
    if (a->kind == KIND_REDUCE_SCATTER_V && f->send.n
        && f->send.counts[a->rank] != side_count(&f->recv))
        return wrong(row->name, "out", side_count(&f->recv), f->send.counts[a->rank]);
    return 0;
}

static int checked(struct asked *a, struct flight *f)
{
    const struct kind_row *row = &rows[a->kind];
    int send = f->send.type, recv = f->recv.type;
    if (send != TYPE_BY_BUFFER && recv != TYPE_BY_BUFFER && send != recv) {
        PyErr_Format(PyExc_TypeError,
                     "%s: out has another type of elements than the array: give the same",
                     row->name);
        return -1;
    }
    a->type = send != TYPE_BY_BUFFER ? send : recv != TYPE_BY_BUFFER ? recv : TUTTI_U8;
    return row->send == LIST || row->recv == LIST ? listed(a, f, row) : counted(a, f, row);
}

static int run_listed(const char *site, const struct asked *a, struct flight *f, tutti_comm *comm,
                      const tutti_call *call)
{
    const void *x = side_ptr(&f->send);
    void *y = side_ptr(&f->recv);
    size_t n = side_count(&f->send), m = side_count(&f->recv);
    tutti_type type = (tutti_type)a->type;
    tutti_op op = (tutti_op)a->op;
    const void *const *xs = f->send.n ? (const void *const *)f->send.ptrs : NULL;
    void *const *ys = f->recv.n ? f->recv.ptrs : NULL;
    const size_t *ns = f->send.n ? f->send.counts : NULL, *ms = f->recv.n ? f->recv.counts : NULL;
    switch (a->kind) {
    case KIND_ALL_REDUCE_MANY:
        return tutti_all_reduce_many_at(site, xs, ys, ns, f->send.n, type, op, comm, call);
    case KIND_ALL_GATHER_V:     return tutti_all_gather_v_at(site, x, n, ys, ms, type, comm, call);
    case KIND_GATHER_V: return tutti_gather_v_at(site, x, n, ys, ms, type, a->root, comm, call);
    case KIND_SCATTER_V: return tutti_scatter_v_at(site, xs, ns, y, m, type, a->root, comm, call);
    case KIND_REDUCE_SCATTER_V:
        return tutti_reduce_scatter_v_at(site, xs, ns, y, type, op, comm, call);
    default: return tutti_all_to_all_v_at(site, xs, ns, ys, ms, type, comm, call);
    }
}

int table_run(const char *site, const struct asked *a, struct flight *f, tutti_comm *comm,
              const tutti_call *call)
{
    const void *x = side_ptr(&f->send);
    void *y = side_ptr(&f->recv);
    size_t n = side_count(&f->send), m = side_count(&f->recv), size = (size_t)a->size;
    tutti_type type = (tutti_type)a->type;
    tutti_op op = (tutti_op)a->op;
    switch (a->kind) {
    case KIND_BARRIER:        return tutti_barrier_at(site, comm, call);
    case KIND_BROADCAST:      return tutti_broadcast_at(site, y, m, type, a->root, comm, call);
    case KIND_REDUCE:         return tutti_reduce_at(site, x, y, n, type, op, a->root, comm, call);
    case KIND_ALL_REDUCE:     return tutti_all_reduce_at(site, x, y, n, type, op, comm, call);
    case KIND_REDUCE_SCATTER: return tutti_reduce_scatter_at(site, x, y, m, type, op, comm, call);
    case KIND_ALL_GATHER:     return tutti_all_gather_at(site, x, y, n, type, comm, call);
    case KIND_GATHER:         return tutti_gather_at(site, x, y, n, type, a->root, comm, call);
    case KIND_SCATTER:        return tutti_scatter_at(site, x, y, m, type, a->root, comm, call);
    case KIND_ALL_TO_ALL:     return tutti_all_to_all_at(site, x, y, n / size, type, comm, call);
    case KIND_SCAN:           return tutti_scan_at(site, x, y, n, type, op, comm, call);
    case KIND_EXSCAN:         return tutti_exscan_at(site, x, y, n, type, op, comm, call);
    case KIND_SAME:           return tutti_same_at(site, x, n * type_size(a->type), comm, call);
    case KIND_SEND:           return tutti_send_at(site, x, n, type, a->root, a->op, comm, call);
    case KIND_RECV: return tutti_recv_at(site, y, m, type, a->root, a->op, &f->got, comm, call);
    default:                  return run_listed(site, a, f, comm, call);
    }
}

/* Runs the call. Its buffers are held and checked. */
static PyObject *go(comm_object *self, struct asked *a, struct flight *f, tutti_comm *comm)
{
    tutti_call call = {
        .timeout_ms = a->timeout_ms, .factor = side_ptr(&f->factor), .stream = (void *)a->stream
    };
    if (a->mode & MODE_WORK)
        flight_start(f, &call, a->mode & MODE_KEEP);
    const char *site = site_of_caller();
    PyThreadState *state = comm_enter(self);
    int r = table_run(site, a, f, comm, &call);
    comm_leave(self, state);
    if (f->work)
        return work_new(self, f);
    PyObject *value = comm_result(self, r) < 0 ? NULL : flight_value(f, r);
    flight_drop(f);
    if (a->mode & MODE_WORK)
        free(f);
    return value;
}

/* Refuses a number that does not fit into an int, with the text of tutti/_number.py. */
static int refuse_number(int kind, int field, PyObject *number)
{
    enum { OP = 4, ROOT = 5 };
    int known = field > 0 && kind >= 0 && kind < KINDS,
        letter = kind == KIND_SEND || kind == KIND_RECV;
    const char *peer = kind == KIND_SEND ? "to" : letter ? "from_" : "root";
    const char *name = field == OP ? letter ? "tag" : "op" : field == ROOT ? peer : "a number";
    PyObject *what = PyUnicode_FromFormat("%s: %s", known ? rows[kind].name : "_collective", name);
    fail_number(what, number);
    return -1;
}

static int arguments(struct asked *a, PyObject *const *args, Py_ssize_t n)
{
    int *fields[] = { &a->kind, NULL, NULL, &a->type, &a->op, &a->root, &a->timeout_ms, &a->mode };
    if (n != ARGUMENTS) {
        PyErr_Format(PyExc_TypeError, "_collective: %d arguments", ARGUMENTS);
        return -1;
    }
    for (int i = 0; i < 8; i++)
        if (fields[i]) {
            int beyond;
            long value = PyLong_AsLongAndOverflow(args[i], &beyond);
            if (value == -1 && PyErr_Occurred())
                return -1;
            if (beyond || value < INT_MIN || value > INT_MAX)
                return refuse_number(a->kind, i, args[i]);
            *fields[i] = (int)value;
        }
    if (a->kind >= 0 && a->kind < KINDS)
        return 0;
    PyErr_SetString(PyExc_ValueError, "_collective: no such call");
    return -1;
}

/* Sets the stream that the call waits for: the program's, else the one that an array names. */
static int streamed(struct asked *a, const struct flight *f, PyObject *said)
{
    const char *name = rows[a->kind].name;
    a->stream = f->send.stream ? f->send.stream : f->recv.stream;
    if ((f->send.device || f->recv.device) && (a->kind == KIND_SEND || a->kind == KIND_RECV)) {
        PyErr_Format(PyExc_ValueError,
                     "%s: an array in device memory; messages are of host memory: copy it", name);
        return -1;
    }
    if (said != Py_None) {
        a->stream = (uintptr_t)PyLong_AsUnsignedLongLong(said);
        if (!PyErr_Occurred())
            return 0;
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            PyErr_Format(PyExc_ValueError, "%s: stream is %S: no CUstream is such a number", name,
                         said);
        }
        return -1;
    }
    if (!f->send.stream || !f->recv.stream || f->send.stream == f->recv.stream)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s: the arrays are in use on two streams: say stream=, and order the other "
                 "before it",
                 name);
    return -1;
}

/* factor: None, or one element of the type. */
static int take_factor(const struct asked *a, struct flight *f, PyObject *factor)
{
    if (factor == Py_None)
        return 0;
    if (side_take(&f->factor, factor, a->type, 0, "factor") < 0)
        return -1;
    if (f->factor.one_count == 1 && !f->factor.device)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "factor: %zu elements%s; expected one, of the array's type, in host memory",
                 f->factor.one_count, f->factor.device ? " on a device" : "");
    side_drop(&f->factor);
    return -1;
}

PyObject *table_collective(PyObject *object, PyObject *const *args, Py_ssize_t n)
{
    comm_object *self = (comm_object *)object;
    struct asked a;
    tutti_comm *comm = comm_of(self);
    if (!comm || arguments(&a, args, n) < 0)
        return NULL;
    work_reap(self, 0);
    a.rank = tutti_rank(comm);
    a.size = tutti_size(comm);
    struct flight here = { 0 }, *f = a.mode & MODE_WORK ? calloc(1, sizeof *f) : &here;
    if (!f)
        return PyErr_NoMemory();
    const struct kind_row *row = &rows[a.kind];
    /* the root's own array may be read-only */
    int written = a.kind != KIND_BROADCAST || a.root != a.rank;
    f->kind = a.kind;
    f->send.said = f->recv.said = args[10] == Py_None ? NULL : args[10];
    if (take(&f->recv, args[2], row->recv, a.type, written, row->name) == 0) {
        int lent = args[1] == args[2] && row->send != LIST
            && side_lend(&f->send, args[1], &f->recv);
        if (lent || take(&f->send, args[1], row->send, a.type, 0, row->name) == 0) {
            if (checked(&a, f) == 0 && streamed(&a, f, args[10]) == 0
                && take_factor(&a, f, args[9]) == 0) {
                Py_INCREF(args[8]);
                f->result = args[8];
                return go(self, &a, f, comm);
            }
            side_drop(&f->send);
        }
        side_drop(&f->recv);
    }
    if (a.mode & MODE_WORK)
        free(f);
    return NULL;
}

int table_setup(PyObject *module)
{
    PyObject *names = PyDict_New();
    int r = names ? 0 : -1;
    for (int i = 0; r == 0 && i < KINDS; i++) {
        PyObject *number = PyLong_FromLong(i);
        r = number ? PyDict_SetItemString(names, rows[i].name, number) : -1;
        Py_XDECREF(number);
    }
    if (r == 0)
        r = PyModule_AddObjectRef(module, "KINDS", names);
    Py_XDECREF(names);
    return r;
}
