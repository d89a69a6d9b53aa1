/* A site is the last folder, the file and the line, "train/main.py:12": short enough for a report's line. One text per (file, line), found
 * in a dict by the file name's cached hash; a program that makes up file names without end (a shell) stops at SITES_MAX of them.
 * Cost: a tenth of a microsecond a frame, one lookup. */
#include "python/site.h"

#include "python/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES_MAX = 65536, TEXT_MAX = 112 };

static PyObject *texts;                                 /* (file name, line) -> address of the text */
static PyObject *package;                               /* the folder of the package: frames of its files are not the caller's */
static PyObject *passed;                                /* another such folder, or NULL: of a framework between us and the caller */
static PyObject *name_code, *name_filename, *name_back;

static PyObject *site_set_package(PyObject *module, PyObject *folder)
{
    (void)module;
    return object_keep(&package, folder);
}

static PyObject *site_pass_over(PyObject *module, PyObject *folder)
{
    (void)module;
    return object_keep(&passed, folder);
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
            PyErr_Clear();                              /* it is made once more next time */
        Py_XDECREF(address);
    }
    Py_XDECREF(number);
    Py_XDECREF(key);
    return text;
}

static PyObject *site_file(PyObject *frame)
{
    PyObject *code = PyObject_GetAttr(frame, name_code);
    PyObject *file = code ? PyObject_GetAttr(code, name_filename) : NULL;
    Py_XDECREF(code);
    return file;
}

const char *site_of_caller(void)
{
    const char *text = NULL;
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame && frame != Py_None) {
        PyObject *file = site_file(frame);
        int ours = file ? site_is_below(file, package) : 0;
        if (ours == 0 && file)
            ours = site_is_below(file, passed);
        if (file && ours == 0)
            text = site_find(file, PyFrame_GetLineNumber((PyFrameObject *)frame));
        Py_XDECREF(file);
        if (!file || ours != 1)
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
    { "pass_over", site_pass_over, METH_O, NULL },
    { 0 }
};

int site_setup(PyObject *module)
{
    texts = PyDict_New();
    name_code = PyUnicode_InternFromString("f_code");
    name_filename = PyUnicode_InternFromString("co_filename");
    name_back = PyUnicode_InternFromString("f_back");
    return texts && name_code && name_filename && name_back ? PyModule_AddFunctions(module, site_methods) : -1;
}
