/* The extension _tutti: what Python code cannot do itself. The package tutti above it has the
 * names, the texts and the defaults. */
#include "python/comm_type.h"
#include "python/ended.h"
#include "python/feed.h"
#include "python/object.h"
#include "python/ops.h"
#include "python/shown.h"
#include "python/site.h"
#include "python/table.h"
#include "python/work.h"

static PyObject *module_version(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return PyUnicode_FromString(tutti_version());
}

static PyMethodDef module_methods[] = {
    OBJECT_METHOD("init", comm_init, METH_VARARGS, NULL),
    OBJECT_METHOD("version", module_version, METH_NOARGS, NULL),
    { 0 }
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_tutti", NULL, -1, module_methods, NULL, NULL, NULL, NULL
};

PyMODINIT_FUNC PyInit__tutti(void);

PyMODINIT_FUNC PyInit__tutti(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    int (*const setups[])(PyObject *) = {
        site_setup, table_setup, comm_setup, work_setup, ended_setup, ops_setup, shown_setup,
        feed_setup
    };
    for (size_t i = 0; module && i < sizeof setups / sizeof *setups; i++)
        if (setups[i](module) < 0)
            Py_CLEAR(module);
    return module;
}
