/* Job: the buffers of one side of a call: one object with the buffer protocol, or a list of them.
 * Owns: the views, from side_take to side_drop; while they are held nobody can move or free the memory.
 * Never: a copy. */
#ifndef PYTHON_BUFFER_H
#define PYTHON_BUFFER_H

#include <Python.h>

#include "tutti.h"

enum { TYPE_BY_BUFFER = -1 };

/* Counts are in elements of type. Do not move it: the pointers may lead into it. */
struct side {
    int        n;                       /* buffers; 0: none was given */
    int        type;                    /* TYPE_BY_BUFFER: none was given, or all of a list are None */
    Py_buffer *views;
    void     **ptrs;
    size_t    *counts;
    Py_buffer  one;
    void      *one_ptr;
    size_t     one_count;
};

/* type: a tutti_type, or TYPE_BY_BUFFER. None is no buffer. -1 with an exception: what is no buffer, is read-only and is to be written,
 * does not lie in one piece in C order, or has elements that are no type of the library. Nothing is held then. */
int  side_take(struct side *, PyObject *object, int type, int writable, const char *what);
int  side_take_list(struct side *, PyObject *list, int type, int writable, const char *what);
void side_drop(struct side *);

static inline void  *side_ptr(const struct side *s)   { return s->n ? s->ptrs[0] : NULL; }
static inline size_t side_count(const struct side *s) { return s->n ? s->counts[0] : 0; }

/* The bytes of one element. */
size_t type_size(int type);

#endif
