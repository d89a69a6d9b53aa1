/* An exception class of torch that C++ throws always arrives in Python as plain DistBackendError. A
 * python_error keeps its class through blocking calls, works, futures, functional collectives,
 * compiled graphs and the backward pass. It must be made under the interpreter's lock. Cost: none
 * for an operation that succeeds. */
#include "torch/failure.h"

#include <c10/util/Exception.h>

#include <errno.h>
#include <unistd.h>

namespace py = pybind11;

namespace tutti {

/* never released: they are needed as long as the process has threads */
static PyObject *make, *interrupted;

bool python_runs()
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsInitialized() && !Py_IsFinalizing();
#else
    return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

Failure failure_of(int error, const tutti_comm *comm)
{
    Failure f;
    f.error = error;
    f.report = tutti_explain(comm);
    if (f.report.empty())
        f.report = tutti_strerror(error);
    int size = comm ? tutti_size(comm) : 0;
    if (size > 0) {
        f.ranks.resize(size);
        int n = tutti_failed(comm, f.ranks.data(), size);
        f.ranks.resize(n > 0 ? n : 0);
    }
    return f;
}

std::exception_ptr exception_set()
{
    python_error error;
    error.persist();
    return std::make_exception_ptr(std::move(error));
}

std::exception_ptr failure_exception(const Failure &f)
{
    if (!make || !python_runs())
        return std::make_exception_ptr(
            c10::DistBackendError({ __func__, __FILE__, __LINE__ }, f.report));
    py::gil_scoped_acquire lock;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);             /* the caller's exception, restored below */
    std::exception_ptr made;
    try {
        py::tuple ranks(f.ranks.size());
        for (size_t i = 0; i < f.ranks.size(); i++)
            ranks[i] = f.ranks[i];
        py::str report(py::reinterpret_steal<py::object>(
            PyUnicode_DecodeUTF8(f.report.data(), f.report.size(), "replace")));
        py::object error = py::handle(make)(-f.error, tutti_strerror(f.error), report, ranks);
        PyErr_SetObject((PyObject *)Py_TYPE(error.ptr()), error.ptr());
        made = exception_set();
    } catch (const py::error_already_set &) {
        PyErr_Clear();
        made = std::make_exception_ptr(
            c10::DistBackendError({ __func__, __FILE__, __LINE__ }, f.report));
    }
    PyErr_Restore(type, value, trace);
    return made;
}

void signals_look()
{
    if (gettid() != getpid() || !python_runs())
        return;
    py::gil_scoped_acquire lock;
    if (!PyErr_Occurred() && PyErr_CheckSignals() < 0)
        std::rethrow_exception(exception_set());
}

void fail(const Failure &f)
{
    signals_look();
    std::rethrow_exception(failure_exception(f));
}

void refuse(const char *what, const std::string &why)
{
    Failure f;
    f.error = -EINVAL;
    f.report = std::string(what) + ": " + why;
    fail(f);
}

/* Only the class, without an instance. The instance is made when the main thread is back in Python,
 * and the signal's handler runs there first. So the program gets one exception, not a second one
 * after it. */
std::exception_ptr interrupt_exception()
{
    if (!interrupted || !python_runs())
        return std::make_exception_ptr(
            c10::DistBackendError({ __func__, __FILE__, __LINE__ }, "interrupted"));
    py::gil_scoped_acquire lock;
    python_error error;
    Py_INCREF(interrupted);
    error.type = interrupted;
    error.message = "KeyboardInterrupt";
    return std::make_exception_ptr(std::move(error));
}

void failure_setup(py::object maker, py::object interrupt)
{
    make = maker.release().ptr();
    interrupted = interrupt.release().ptr();
}

}
