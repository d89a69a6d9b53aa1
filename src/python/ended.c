/* The library calls ending_done in whichever thread ends a work, also in its own, which must not
 * wait. So there is no lock here. The word of a work ends as ENDED, from 0 or from a watch. The
 * thread that replaces a watch puts it on a list and posts a semaphore. That wakes the package's
 * thread, which takes the whole list at once. A descriptor would do, too, but a program may close
 * it. Cost of an end that is watched: three atomic steps and a wake; of another one: one step.
 *
 * Edges:
 * E90 ended: ending_done stores the error, then ENDED into the word (swap); a thread that finds
 *     ENDED there loads the error.
 * E91 watched: ending_done puts a watch at the head of the list (swap); the thread that takes the
 *     list reads the watches in it. */
#include "python/ended.h"

#include "python/object.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

enum { ENDED = 1 };

struct end_watch {
    struct end_watch *next;
    PyObject     *work;                 /* owned */
};

static shared64 list;                                   /* of struct end_watch, the latest first */
static sem_t bell;
static int listens;                                     /* under the interpreter's lock */

static void ring(void)
{
    (void)sem_post(&bell);                              /* fails only if it is full */
}

static void ending_done(int error, void *arg)
{
    struct ending *e = arg;
    uint64_t word = 0, head = 0;
    e->error = error;
    while (!swap_if64(&e->word, &word, ENDED))           /* E90 */
        ;
    struct end_watch *watch = (struct end_watch *)(uintptr_t)word;
    if (!watch)
        return;
    do
        watch->next = (struct end_watch *)(uintptr_t)head;
    while (!swap_if64(&list, &head, (uint64_t)(uintptr_t)watch));       /* E91 */
    ring();
}

int ended_listens(void) { return listens; }

void ending_tell(struct ending *e, tutti_call *call)
{
    e->told = 1;
    call->done = ending_done;
    call->done_arg = e;
}

/* E90 acquire */
int ending_is_over(const struct ending *e) { return load_acquire64(&e->word) == ENDED; }

int ending_watch(struct ending *e, PyObject *work)
{
    uint64_t nobody = 0;
    struct end_watch *watch = malloc(sizeof *watch);
    if (!watch) {
        PyErr_NoMemory();
        return -1;
    }
    *watch = (struct end_watch){ NULL, work };
    Py_INCREF(work);
    if (swap_if64(&e->word, &nobody, (uint64_t)(uintptr_t)watch))
        return 1;
    Py_DECREF(work);
    free(watch);
    return 0;
}

/* Uses a clock that nobody sets. Several posts count as one. */
static void sleep_until_rung(double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long ms = seconds < 0 ? 0 : (long)(seconds * 1000);
    until.tv_sec += ms / 1000 + (until.tv_nsec + ms % 1000 * 1000000) / 1000000000;
    until.tv_nsec = (until.tv_nsec + ms % 1000 * 1000000) % 1000000000;
    if ((seconds < 0 ? sem_wait(&bell) : sem_clockwait(&bell, CLOCK_MONOTONIC, &until)) == 0)
        while (sem_trywait(&bell) == 0)
            ;
}

/* Waits until a work has ended, ended_wake() is called, or the seconds have passed. Negative: no
 * limit. */
static PyObject *ended_fetch(PyObject *module, PyObject *args)
{
    (void)module;
    double seconds;
    if (!PyArg_ParseTuple(args, "d", &seconds))
        return NULL;
    uint64_t head = 0;
    PyThreadState *state = PyEval_SaveThread();
    sleep_until_rung(seconds);
    PyEval_RestoreThread(state);
    PyObject *ended = PyList_New(0);
    while (ended && !swap_if64(&list, &head, 0))         /* E91 */
        ;
    for (struct end_watch *watch = ended ? (struct end_watch *)(uintptr_t)head : NULL, *next; watch;
         watch = next) {
        next = watch->next;
        if (PyList_Append(ended, watch->work) < 0)
            PyErr_Clear();
        Py_DECREF(watch->work);
        free(watch);
    }
    if (ended)
        PyList_Reverse(ended);
    return ended;
}

static PyObject *ended_wake(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    ring();
    Py_RETURN_NONE;
}

/* False is for a fork, in which no thread waits. */
static PyObject *ended_listen(PyObject *module, PyObject *yes)
{
    (void)module;
    listens = 0;
    int wanted = PyObject_IsTrue(yes);
    if (wanted < 0)
        return NULL;
    sem_init(&bell, 0, 0);              /* in a fork it may count a waiter that is gone */
    listens = wanted;
    Py_RETURN_NONE;
}

static PyMethodDef ended_methods[] = {
    OBJECT_METHOD("ended", ended_fetch, METH_VARARGS, NULL),
    OBJECT_METHOD("ended_wake", ended_wake, METH_NOARGS, NULL),
    OBJECT_METHOD("ended_listen", ended_listen, METH_O, NULL),
    { 0 }
};

int ended_setup(PyObject *module) { return PyModule_AddFunctions(module, ended_methods); }
