/* A site is the last folder, the file and the line, "train/main.py:12": short enough for a line of
 * a report. There is one text per (file, line), in a dict by the file name's cached hash. There are
 * at most SITES_MAX: a shell may invent file names without end. A table of a few places remembers
 * what was found for a place in some code. It holds a reference to the code, so that no other code
 * can have its address. Cost: 50 ns a frame. */
#include "python/site.h"

#include "python/object.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES_MAX = 65536, TEXT_MAX = 112, PLACES = 256 };
enum { WHOLE = -2 };                        /* as a place's lasti: all of its code is passed over */

static PyObject *texts;    /* (file name, line) -> address of the text */
static PyObject *package;  /* the folder of the package: its frames do not count as the caller */
static PyObject *name_filename, *name_back, *name_lasti;
/* under the interpreter's lock; text NULL: passed over */
static struct call_place { PyObject *code; long lasti; const char *text; } places[PLACES];

static struct call_place *place_of(PyObject *code, long lasti)
{
    return &places[((uintptr_t)code >> 4 ^ (uintptr_t)code >> 12 ^ (uintptr_t)lasti) % PLACES];
}

static bool place_is(const struct call_place *p, PyObject *code, long lasti)
{
    return p->code == code && p->lasti == lasti;
}

static void place_keep(PyObject *code, long lasti, const char *text)
{
    struct call_place *p = place_of(code, lasti);
    PyObject *before = p->code;
    Py_INCREF(code);
    *p = (struct call_place){ code, lasti, text };
    Py_XDECREF(before);                                 /* last: it may run code that calls this */
}

static void offsets_forget(void)
{
    for (int i = 0; i < PLACES; i++) {
        PyObject *code = places[i].code;
        places[i] = (struct call_place){ 0 };
        Py_XDECREF(code);
    }
}

static PyObject *site_set_package(PyObject *module, PyObject *folder)
{
    (void)module;
    offsets_forget();
    return object_keep(&package, folder);
}

static int site_is_below(PyObject *file, PyObject *folder)
{
    return folder ? (int)PyUnicode_Tailmatch(file, folder, 0, PY_SSIZE_T_MAX, -1) : 0;
}

static char *site_make(PyObject *file, int line)
{
    Py_ssize_t n;
    const char *path = PyUnicode_AsUTF8AndSize(file, &n);
    if (!path)
        return NULL;
    const char *from = path + n;
    for (int slashes = 0; from > path; from--)
        if (from[-1] == '/' && ++slashes == 2)
            break;
    if (strlen(from) > TEXT_MAX - 12)
        from += strlen(from) - (TEXT_MAX - 12);
    while (((unsigned char)*from & 0xC0) == 0x80)      /* not in the middle of a character */
        from++;
    char *text = malloc(TEXT_MAX);
    if (text)
        snprintf(text, TEXT_MAX, "%s:%d", from, line);
    return text;
}

static const char *site_find(PyObject *file, int line)
{
    PyObject *number = PyLong_FromLong(line);
    PyObject *key = number ? PyTuple_Pack(2, file, number) : NULL;
    PyObject *there = key ? PyDict_GetItemWithError(texts, key) : NULL;
    char *text = there ? PyLong_AsVoidPtr(there) : NULL;
    if (key && !there && PyDict_Size(texts) < SITES_MAX && (text = site_make(file, line))) {
        PyObject *address = PyLong_FromVoidPtr(text);
        if (!address || PyDict_SetItem(texts, key, address) < 0)
            PyErr_Clear();                              /* the text is made again next time */
        Py_XDECREF(address);
    }
    Py_XDECREF(number);
    Py_XDECREF(key);
    return text;
}

/* The index of a frame's current instruction; -1: unknown. */
static long site_lasti(PyObject *frame)
{
    PyObject *number = PyObject_GetAttr(frame, name_lasti);
    long lasti = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    return lasti < 0 ? -1 : lasti;
}

/* The text of a frame that is in no place yet. NULL with *over false: the frame is passed over. */
static const char *site_look(PyObject *frame, PyObject *code, long lasti, bool *over)
{
    const char *text = NULL;
    PyObject *file = PyObject_GetAttr(code, name_filename);
    int ours = file ? site_is_below(file, package) : -1;
    if (ours == 0)
        text = site_find(file, PyFrame_GetLineNumber((PyFrameObject *)frame));
    *over = ours != 1;
    if (ours == 1)
        place_keep(code, WHOLE, NULL);
    else if (text && lasti >= 0)
        place_keep(code, lasti, text);
    Py_XDECREF(file);
    return text;
}

const char *site_of_caller(void)
{
    const char *text = NULL;
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    Py_XINCREF(frame);
    for (bool over = false; frame && frame != Py_None;) {
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        if (!place_is(place_of(code, WHOLE), code, WHOLE)) {
            long lasti = site_lasti(frame);
            const struct call_place *known = place_of(code, lasti);
            if (lasti >= 0 && place_is(known, code, lasti)) {
                text = known->text;
                over = true;
            } else
                text = site_look(frame, code, lasti, &over);
        }
        Py_DECREF(code);
        if (over)
            break;
        PyObject *back = PyObject_GetAttr(frame, name_back);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    PyErr_Clear();
    return text ? text : "?";
}

static PyMethodDef site_methods[] = {
    { "set_package", site_set_package, METH_O, NULL },
    { 0 }
};

int site_setup(PyObject *module)
{
    texts = PyDict_New();
    name_filename = PyUnicode_InternFromString("co_filename");
    name_back = PyUnicode_InternFromString("f_back");
    name_lasti = PyUnicode_InternFromString("f_lasti");
    return texts && name_filename && name_back && name_lasti
        ? PyModule_AddFunctions(module, site_methods)
        : -1;
}
