/* A buffer describes its elements by a format of the struct module; NumPy's complex types are "Zf"
 * and "Zd". Integers and floats are found by letter and size, since a letter's size depends on the
 * machine. tutti/_foreign.py reads an array without the buffer protocol. Its view is filled here,
 * and holds that array. It also checks an array that may be more than its buffer: a class derived
 * from another (a masked array), or elements of no type of the library. Cost: for such an array
 * some microseconds; for all others one look at a bit of their class. */
#include "python/buffer.h"

#include <stdlib.h>
#include <string.h>

static const unsigned char sizes[] = {
    [TUTTI_I8] = 1, [TUTTI_U8] = 1, [TUTTI_I16] = 2, [TUTTI_U16] = 2, [TUTTI_I32] = 4,
    [TUTTI_U32] = 4, [TUTTI_I64] = 8, [TUTTI_U64] = 8, [TUTTI_F16] = 2, [TUTTI_BF16] = 2,
    [TUTTI_F32] = 4, [TUTTI_F64] = 8, [TUTTI_BOOL] = 1, [TUTTI_C64] = 8, [TUTTI_C128] = 16,
    [TUTTI_F8E4M3] = 1, [TUTTI_F8E5M2] = 1
};

size_t type_size(int type) { return type >= 0 && type < (int)sizeof sizes ? sizes[type] : 1; }

static int by_size(Py_ssize_t size, int one, int two, int four, int eight)
{
    return size == 1 ? one : size == 2 ? two : size == 4 ? four : size == 8 ? eight : -1;
}

static int type_of(const char *format, Py_ssize_t size)
{
    if (!format)
        return TUTTI_U8;
    int other = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<';
    if ((*format == other || *format == '!') && size > 1)
        return -1;
    if (*format && strchr("@=<>!|", *format))
        format++;
    if (format[0] == 'Z' && (format[1] == 'f' || format[1] == 'd') && !format[2])
        return format[1] == 'f' ? TUTTI_C64 : TUTTI_C128;
    if (!format[0] || format[1])
        return -1;
    switch (format[0]) {
    case 'b': case 'h': case 'i': case 'l': case 'q': case 'n':
        return by_size(size, TUTTI_I8, TUTTI_I16, TUTTI_I32, TUTTI_I64);
    case 'B': case 'H': case 'I': case 'L': case 'Q': case 'N': case 'c':
        return by_size(size, TUTTI_U8, TUTTI_U16, TUTTI_U32, TUTTI_U64);
    case 'e': case 'f': case 'd':
        return by_size(size, -1, TUTTI_F16, TUTTI_F32, TUTTI_F64);
    case '?':
        return by_size(size, TUTTI_BOOL, -1, -1, -1);
    default:
        return -1;
    }
}

/* The type that the caller asks for must fit the elements, or divide the bytes. */
static int asked_type(const Py_buffer *view, int asked, const char *what)
{
    Py_ssize_t size = (Py_ssize_t)type_size(asked);
    if (asked == TYPE_AS_BYTES)
        return TUTTI_U8;
    if ((view->itemsize == size || view->itemsize == 1) && view->len % size == 0)
        return asked;
    PyErr_Format(PyExc_TypeError,
                 "%s: dtype has %zd bytes an element, the array %zd: view it as elements of that "
                 "size",
                 what, size, view->itemsize);
    return -1;
}

static int own_type(const Py_buffer *view, const char *what)
{
    int type = type_of(view->format, view->itemsize);
    if (type < 0)
        PyErr_Format(PyExc_TypeError,
                     "%s: elements of format '%s' (%zd bytes) are no type of tutti: use integers, "
                     "bool, floats of 2 to 8 "
                     "bytes or complex, in this machine's byte order; or say dtype=",
                     what, view->format ? view->format : "B", view->itemsize);
    return type;
}

/* Calls tutti/_foreign.py with the object. 0, or -1 with the exception that it raised. */
static int foreign_says(const char *function, PyObject *object, const char *what, int asked)
{
    PyObject *module = PyImport_ImportModule("tutti._foreign"),
             *as_bytes = asked == TYPE_AS_BYTES ? Py_True : Py_False;
    int looks = strcmp(function, "look") == 0;
    PyObject *none = !module ? NULL
        : looks ? PyObject_CallMethod(module, function, "OsO", object, what, as_bytes)
        : PyObject_CallMethod(module, function, "Os", object, what);
    Py_XDECREF(module);
    Py_XDECREF(none);
    return none ? 0 : -1;
}

/* Gets a view with a format: 1. Some arrays have a buffer but no format: then 0 if none is needed.
 * Else -1 with an exception. */
static int view_get(Py_buffer *view, PyObject *object, int asked, int writable, const char *what)
{
    int flags = PyBUF_STRIDES | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags | PyBUF_FORMAT) == 0)
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError))
        return -1;
    PyErr_Clear();
    if (asked != TYPE_BY_BUFFER) {
        if (PyObject_GetBuffer(object, view, flags) == 0)
            return 0;
        PyErr_Clear();
    }
    if (foreign_says("refuse", object, what, asked) == 0)
        PyErr_Format(PyExc_ValueError, "%s: the array gives no buffer", what);
    return -1;
}

/* True for a class derived from another, as a masked array is from NumPy's: it may be more. */
static int is_derived(PyTypeObject *type)
{
    return PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE
        && PyType_GetSlot(type, Py_tp_base) != (void *)&PyBaseObject_Type;
}

static int view_buffer(Py_buffer *view, PyObject *object, int asked, int writable, const char *what)
{
    int told = view_get(view, object, asked, writable, what);
    if (told < 0)
        return -1;
    int usual = told && type_of(view->format, view->itemsize) >= 0;
    if ((!usual || is_derived(Py_TYPE(object))) && foreign_says("look", object, what, asked) < 0)
        return -1;
    if (PyBuffer_IsContiguous(view, 'C'))
        return asked == TYPE_BY_BUFFER ? own_type(view, what) : asked_type(view, asked, what);
    PyErr_Format(PyExc_ValueError,
                 "%s: the array does not lie in one piece in C order: give "
                 "numpy.ascontiguousarray() of it",
                 what);
    return -1;
}

static int view_foreign(Py_buffer *view, struct array_side *s, PyObject *object, int asked,
                        int writable, const char *what)
{
    PyObject *module = PyImport_ImportModule("tutti._foreign"), *holder;
    PyObject *told = module
        ? PyObject_CallMethod(module, "take", "OisOi", object, writable, what,
                              s->said ? s->said : Py_None, asked != TYPE_BY_BUFFER)
        : NULL;
    unsigned long long address, stream;
    int type, device;
    Py_XDECREF(module);
    int r = told
            && PyArg_ParseTuple(told, "KnniKpO", &address, &view->len, &view->itemsize, &type,
                                &stream, &device, &holder)
        ? 0
        : -1;
    if (r == 0 && stream && s->stream && s->stream != stream && !s->said) {
        PyErr_Format(PyExc_ValueError,
                     "%s: the arrays are in use on two streams: say stream=, and order the other "
                     "before it",
                     what);
        r = -1;
    }
    if (r == 0) {
        Py_INCREF(holder);
        view->obj = holder;
        view->buf = (void *)(uintptr_t)address;
        s->stream = stream ? (uintptr_t)stream : s->stream;
        s->device |= device;
        r = asked == TYPE_BY_BUFFER ? type : asked_type(view, asked, what);
    }
    Py_XDECREF(told);
    return r;
}

/* The type of the elements, with the view held; or -1, with nothing held. */
static int view_take(struct array_side *s, Py_buffer *view, PyObject *object, int asked,
                     int writable, const char *what)
{
    memset(view, 0, sizeof *view);
    int buffer = PyObject_CheckBuffer(object);
    int type = buffer ? view_buffer(view, object, asked, writable, what)
                      : view_foreign(view, s, object, asked, writable, what);
    if (type < 0 && view->obj)
        PyBuffer_Release(view);
    return type;
}

/* For one buffer at most, none of them taken so far. */
static void side_begin(struct array_side *s, int type)
{
    s->n = 0;
    s->type = type == TYPE_AS_BYTES ? TUTTI_U8 : type;
    s->views = &s->one;
    s->ptrs = &s->one_ptr;
    s->counts = &s->one_count;
    s->stream = 0;
    s->device = 0;
}

static void side_has_one(struct array_side *s, size_t size)
{
    s->n = 1;
    s->one_ptr = s->one.buf;
    s->one_count = (size_t)s->one.len / size;
}

int side_take(struct array_side *s, PyObject *object, int type, int writable, const char *what)
{
    side_begin(s, type);
    if (object == Py_None)
        return 0;
    s->type = view_take(s, &s->one, object, type, writable, what);
    if (s->type < 0)
        return -1;
    side_has_one(s, type_size(s->type));
    return 0;
}

/* Appends one. The first that is not None gives the type for all. */
static int side_add(struct array_side *s, PyObject *object, int asked, int writable,
                    const char *what)
{
    int i = s->n;
    if (object != Py_None) {
        int type = view_take(s, &s->views[i], object, asked, writable, what);
        if (type < 0)
            return -1;
        if (s->type != TYPE_BY_BUFFER && s->type != type) {
            PyErr_Format(PyExc_TypeError,
                         "%s: array %d has another type than those before it: give one type to all",
                         what, i);
            PyBuffer_Release(&s->views[i]);
            return -1;
        }
        s->type = type;
        s->ptrs[i] = s->views[i].buf;
        s->counts[i] = (size_t)s->views[i].len / type_size(type);
    }
    s->n = i + 1;
    return 0;
}

int side_take_list(struct array_side *s, PyObject *list, int type, int writable, const char *what)
{
    side_begin(s, type);
    if (list == Py_None)
        return 0;
    Py_ssize_t n = PySequence_Size(list);
    if (n < 0)
        return -1;
    s->views = calloc((size_t)n + 1, sizeof *s->views);
    s->ptrs = calloc((size_t)n + 1, sizeof *s->ptrs);
    s->counts = calloc((size_t)n + 1, sizeof *s->counts);
    if (!s->views || !s->ptrs || !s->counts) {
        side_drop(s);
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        int r = item ? side_add(s, item, type, writable, what) : -1;
        Py_XDECREF(item);
        if (r < 0) {
            side_drop(s);
            return -1;
        }
    }
    return 0;
}

int side_lend(struct array_side *to, PyObject *object, const struct array_side *from)
{
    if (object == Py_None || PyObject_CheckBuffer(object) || from->n != 1
        || from->views != &from->one)
        return 0;               /* each view of the buffer protocol needs its own release */
    side_begin(to, from->type);
    to->one = from->one;
    Py_INCREF(to->one.obj);
    to->n = 1;
    to->one_ptr = from->one_ptr;
    to->one_count = from->one_count;
    to->stream = from->stream;
    to->device = from->device;
    return 1;
}

void side_drop(struct array_side *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->views[i].obj)
            PyBuffer_Release(&s->views[i]);
    if (s->views != &s->one) {
        free(s->views);
        free(s->ptrs);
        free(s->counts);
    }
    s->views = &s->one;
    s->n = 0;
}
