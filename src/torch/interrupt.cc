/* The main thread waits for a future in torch's C++ code (the end of a backward pass). Python's
 * handler has noted the signal. It would run in the main thread, which does not return to Python.
 * So a thread of ours ends the futures with an exception from which Python makes KeyboardInterrupt.
 * It does so only if SIGINT has Python's default handler: a program with a handler of its own
 * decides itself, and the wait continues.
 *
 * Our handler gets the signal first and calls Python's. Cost: one sigaction() for each future that
 * torch gets while it is incomplete. */
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

static PyObject *is_default;            /* never released */
static struct sigaction before;
static sem_t called;
static std::mutex *hooking = new std::mutex;
static bool watched;

/* Calls Python's handler first, so that the woken thread finds the signal noted. */
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
        return;                         /* SIGINT ends the process, or is ignored */
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
