/* The main thread stands in a future's wait, in torch's C++ code (the end of a backward pass).
 * Python's handler has noted the signal, and would run in the main thread, which does not come
 * back. So a thread of ours ends the futures with an exception that Python makes KeyboardInterrupt
 * of. It does so only where SIGINT has Python's own handler: a program that has set another one
 * wants to decide itself, and goes on.
 *
 * The handler stands in front of Python's and calls it. Cost: one sigaction() for each future that
 * is given away while it is incomplete. */
#include "torch/interrupt.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "torch/failure.h"

namespace py = pybind11;

namespace tutti {

static PyObject *is_default;            /* held for good */
static struct sigaction before;
static sem_t called;
static std::mutex *hooking = new std::mutex;
static bool watched;

/* Python's handler first: whoever is woken here finds the signal noted there. */
static void on_interrupt(int number, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    int saved = errno;
    sem_post(&called);
    errno = saved;
}

static bool raises()
{
    if (!is_default || !python_runs())
        return false;
    py::gil_scoped_acquire lock;
    PyObject *answer = PyObject_CallNoArgs(is_default);
    bool yes = answer && PyObject_IsTrue(answer) == 1;
    Py_XDECREF(answer);
    PyErr_Clear();
    return yes;
}

static void watch(void (*ends)())
{
    for (;;) {
        while (sem_wait(&called) != 0) {
        }
        if (raises())
            ends();
    }
}

void signals_hook(void (*ends)())
{
    struct sigaction now;
    if (sigaction(SIGINT, nullptr, &now) != 0
        || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_interrupt))
        return;
    std::lock_guard<std::mutex> hold(*hooking);
    if (!(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN))
        return;                         /* it ends the process, or is nobody's affair */
    if (!watched) {
        sem_init(&called, 0, 0);
        std::thread(watch, ends).detach();
        watched = true;
    }
    before = now;
    struct sigaction ours = now;
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = on_interrupt;
    sigaction(SIGINT, &ours, nullptr);
}

void interrupt_setup(void *function) { is_default = (PyObject *)function; }

}
