/* Job: keep one call under way with what it holds, and implement tutti.Work, a program's hold on
 *      it.
 * Owns: the views of the buffers until the call has ended. If nobody holds the Work any more, the
 *       call continues, and its comm ends it.
 * Never: releases memory that an operation still reads or writes. */
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
    KIND_LOAD = KINDS, KIND_SAVE        /* no rows: they move bytes of files */
};

struct flight {
    struct flight *next;                /* in comm_object.left */
    int            kind;                /* a row of the table, or KIND_LOAD, KIND_SAVE */
    int            keep;                /* TUTTI_KEEP */
    struct array_side    send, recv, factor;
    /* owned: what wait() returns; in recv: a function, called with (from, tag, count) */
    PyObject      *result;
    tutti_message  got;
    tutti_work    *work;
    struct ending  ending;
    comm_object   *comm;                /* borrowed; of a load, whose memory is of that world */
    PyObject    *(*loaded)(struct flight *);    /* makes a load's result */
    const void    *data;
    size_t         bytes;
};

/* Before the starting call: asks for a handle, and for a report of its end if one is needed. */
void      flight_start(struct flight *, tutti_call *, int keep);

/* The call's result in Python; a new reference. */
PyObject *flight_value(struct flight *, int result);
void      flight_drop(struct flight *);

/* Takes over a flight that is under way. */
PyObject *work_new(comm_object *, struct flight *);

/* Ends those operations of comm->left that are over; with wait, all of them. Keeps an exception
 * that is set. */
void work_reap(comm_object *, int wait);

int work_setup(PyObject *module);

#endif
