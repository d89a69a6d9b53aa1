/* Job: hold the buffers of one side of a call: one object with the buffer protocol, DLPack or
 *      __cuda_array_interface__, or a list of them.
 * Owns: the views, from side_take to side_drop. While they are held, nobody can move or free the
 *       memory.
 * Never: copies data. */
#ifndef PYTHON_BUFFER_H
#define PYTHON_BUFFER_H

#include <Python.h>

#include "tutti.h"

/* the type of the elements; any elements, as TUTTI_U8 */
enum { TYPE_BY_BUFFER = -1, TYPE_AS_BYTES = -2 };

/* Counts are in elements of type. Do not move the struct: its pointers may point into it. */
struct array_side {
    int        n;                   /* buffers; 0: none was given */
    int        type;                /* TYPE_BY_BUFFER: none was given, or all of a list are None */
    Py_buffer *views;
    void     **ptrs;
    size_t    *counts;
    Py_buffer  one;
    void      *one_ptr;
    size_t     one_count;
    /* borrowed: the program's stream argument, set before side_take; NULL: none */
    PyObject  *said;
    uintptr_t  stream;                  /* the stream that a device array names; 0: none */
    int        device;                  /* 1: an array is in memory of a device */
};

/* type: a tutti_type, or TYPE_BY_BUFFER, TYPE_AS_BYTES. None: no buffer. -1 with an exception, and
 * nothing is held: the object has no buffer; it is read-only but must be written; it is not in one
 * piece in C order; its elements have no type of the library; or its bytes are not its value
 * (tutti/_foreign.py). */
int  side_take(struct array_side *, PyObject *object, int type, int writable, const char *what);
int  side_take_list(struct array_side *, PyObject *list, int type, int writable, const char *what);
/* 1: both sides have the same object, and `to` takes its view from `from`. 0: it cannot. */
int  side_lend(struct array_side *to, PyObject *object, const struct array_side *from);
void side_drop(struct array_side *);

static inline void  *side_ptr(const struct array_side *s)   { return s->n ? s->ptrs[0] : NULL; }
static inline size_t side_count(const struct array_side *s) { return s->n ? s->counts[0] : 0; }

/* The bytes of one element. */
size_t type_size(int type);

#endif
