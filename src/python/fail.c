/* The exception classes are in tutti/errors.py. It is called only when there is an exception to
 * raise. Cost: none before. */
#include "python/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

PyObject *fail_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *fail_ranks(const tutti_comm *comm)
{
    int size = comm ? tutti_size(comm) : 0;
    int *ranks = calloc((size_t)(size > 0 ? size : 1), sizeof *ranks);
    if (!ranks)
        return PyErr_NoMemory();
    int n = comm ? tutti_failed(comm, ranks, size) : 0;
    PyObject *tuple = PyTuple_New(n > 0 ? n : 0);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *rank = PyLong_FromLong(ranks[i]);
        if (!rank || PyTuple_SetItem(tuple, i, rank) < 0)
            Py_CLEAR(tuple);
    }
    free(ranks);
    return tuple;
}

/* True: this report was shown before. A comm that has failed keeps its report. A later call may
 * show it (-ECANCELED) before the work that met the failure does. */
static int is_older(PyObject *report, int error, PyObject *told, int told_error)
{
    return told && error != told_error && error != -ECANCELED && told_error != -ECANCELED
        && PyUnicode_Compare(report, told) == 0;
}

static PyObject *report_of(int error, const tutti_comm *comm, PyObject **told, int *told_error)
{
    PyObject *report = fail_text(tutti_explain(comm));
    if (!report || !told)
        return report;
    if (is_older(report, error, *told, *told_error)) {
        Py_DECREF(report);
        return fail_text("");
    }
    Py_INCREF(report);
    Py_XDECREF(*told);
    *told = report;
    *told_error = error;
    return report;
}

/* Raises the exception for an error's number, kind, report and ranks. */
static PyObject *fail_raise(int error, PyObject *kind, PyObject *report, PyObject *ranks)
{
    PyObject *errors = PyImport_ImportModule("tutti.errors");
    PyObject *made = errors && report && kind && ranks
        ? PyObject_CallMethod(errors, "of", "iOOO", error, kind, report, ranks)
        : NULL;
    if (made)
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(made);
    Py_XDECREF(errors);
    Py_XDECREF(report);
    Py_XDECREF(kind);
    Py_XDECREF(ranks);
    return NULL;
}

PyObject *fail_said(int error, const char *text)
{
    return fail_raise(error, fail_text(text), fail_text(text), fail_ranks(NULL));
}

void fail_number(PyObject *what, PyObject *number)
{
    PyObject *module = PyErr_Occurred() ? NULL : PyImport_ImportModule("tutti._number");
    PyObject *none = !module ? NULL
        : what ? PyObject_CallMethod(module, "refuse", "OO", what, number)
        : PyObject_CallMethod(module, "refuse_timeout", "O", number);
    Py_XDECREF(none);
    Py_XDECREF(module);
    Py_XDECREF(what);
}

PyObject *fail_comm(int error, const tutti_comm *comm, PyObject **told, int *told_error)
{
    PyObject *report = report_of(error, comm, told, told_error);
    return fail_raise(-error, fail_text(tutti_strerror(error)), report, fail_ranks(comm));
}
