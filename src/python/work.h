/* Job: one call under way with what it holds, and tutti.Work, a program's hold on it.
 * Owns: the views of the buffers until the call has ended: a Work that nobody holds any more goes
 *       on, and its comm ends it.
 * Never: memory given back that an operation still reads or writes. */
#ifndef PYTHON_WORK_H
#define PYTHON_WORK_H

#include "python/buffer.h"
#include "python/comm.h"
#include "python/ended.h"

enum kind {
    KIND_BARRIER, KIND_BROADCAST, KIND_REDUCE, KIND_ALL_REDUCE, KIND_REDUCE_SCATTER,
    KIND_ALL_GATHER, KIND_GATHER, KIND_SCATTER, KIND_ALL_TO_ALL, KIND_SCAN, KIND_EXSCAN, KIND_SAME,
    KIND_ALL_REDUCE_MANY, KIND_ALL_GATHER_V, KIND_GATHER_V, KIND_SCATTER_V, KIND_REDUCE_SCATTER_V,
    KIND_ALL_TO_ALL_V, KIND_SEND, KIND_RECV, KINDS,
    KIND_LOAD = KINDS, KIND_SAVE        /* no rows: of no array's elements */
};

struct flight {
    struct flight *next;                /* in comm_object.left */
    int            kind;                /* a row of the table, or KIND_LOAD, KIND_SAVE */
    int            keep;                /* TUTTI_KEEP */
    struct array_side    send, recv, factor;
    /* owned: what wait() returns; of recv: what is called with (from, tag, count) */
    PyObject      *result;
    tutti_message  got;
    tutti_work    *work;
    struct ending  ending;
    comm_object   *comm;                /* borrowed; of a load, which gives memory of that world */
    PyObject    *(*loaded)(struct flight *);    /* what a load returns that has ended well */
    const void    *data;
    size_t         bytes;
};

/* Before the starting call: where it leaves its handle, and who is told of its end. */
void      flight_start(struct flight *, tutti_call *, int keep);

/* What the call returns to Python; a new reference. */
PyObject *flight_value(struct flight *, int result);
void      flight_drop(struct flight *);

/* Takes over the flight, which is under way. */
PyObject *work_new(comm_object *, struct flight *);

/* Ends what is left of the comm and over; wait: also what is not over yet. Keeps an exception
 * that is set. */
void work_reap(comm_object *, int wait);

int work_setup(PyObject *module);

#endif
