/* Job: find the call site of a call from Python: file and line of the first frame outside the
 *      package.
 * Owns: the texts of call sites, which live as long as the process, as the library requires.
 * Never: raises an exception: an unknown site is "?". */
#ifndef PYTHON_SITE_H
#define PYTHON_SITE_H

#include <Python.h>

int         site_setup(PyObject *module);
const char *site_of_caller(void);

#endif
