/* Job: the buffers of one side of a call: one object with the buffer protocol, DLPack or
 *      __cuda_array_interface__, or a list of them.
 * Owns: the views, from side_take to side_drop; while they are held nobody can move or
 *       free the memory.
 * Never: a copy. */
#ifndef PYTHON_BUFFER_H
#define PYTHON_BUFFER_H

#include <Python.h>

#include "tutti.h"

/* what the elements say; whatever they are, as TUTTI_U8 */
enum { TYPE_BY_BUFFER = -1, TYPE_AS_BYTES = -2 };

/* Counts are in elements of type. Do not move it: the pointers may lead into it. */
struct array_side {
    int        n;                   /* buffers; 0: none was given */
    int        type;                /* TYPE_BY_BUFFER: none was given, or all of a list are None */
    Py_buffer *views;
    void     **ptrs;
    size_t    *counts;
    Py_buffer  one;
    void      *one_ptr;
    size_t     one_count;
    /* borrowed: what the program says of the stream, before side_take; NULL: nothing */
    PyObject  *said;
    uintptr_t  stream;                  /* the one that a device array names itself; 0: none */
    int        device;                  /* an array lies where only a device reaches it */
};

/* type: a tutti_type, or TYPE_BY_BUFFER, TYPE_AS_BYTES. None is no buffer. -1 with an exception:
 * what is no buffer, is read-only and is to be written, does not lie in one piece in C order, has
 * elements that are no type of the library, or is something else than its bytes say
 * (tutti/_foreign.py). Nothing is held then. */
int  side_take(struct array_side *, PyObject *object, int type, int writable, const char *what);
int  side_take_list(struct array_side *, PyObject *list, int type, int writable, const char *what);
/* 1: the same object stands there, and need not be asked again */
int  side_lend(struct array_side *to, PyObject *object, const struct array_side *from);
void side_drop(struct array_side *);

static inline void  *side_ptr(const struct array_side *s)   { return s->n ? s->ptrs[0] : NULL; }
static inline size_t side_count(const struct array_side *s) { return s->n ? s->counts[0] : 0; }

/* The bytes of one element. */
size_t type_size(int type);

#endif
