/* Job: tells Python of works that have ended, in a thread of the package: the library's own threads
 *      never wait for the interpreter.
 * Owns: the list of ends that nobody has fetched yet, and the semaphore that says there are some.
 * Never: Python code run here; tutti/_later.py calls what a program has added. */
#ifndef PYTHON_ENDED_H
#define PYTHON_ENDED_H

#include <Python.h>

#include "base/atomic.h"
#include "tutti.h"

/* In a flight. The words are 0, the address of a watch, or ENDED. */
struct ending {
    shared64 word;
    int      told;                  /* the library will call ending_done: the word becomes ENDED */
    int      error;                 /* of what has ended */
};

/* Whether new works are told of: from the first watch in the process on, since a work with `done`
 * counts, to the library, as one that may still end any other wait. */
int ended_listens(void);

/* Before the starting call: the library tells of it. */
void ending_tell(struct ending *, tutti_call *);
int  ending_is_over(const struct ending *);

/* 1: `work` will be among what ended() returns; it is held until then. 0: it has ended before. -1:
 * with an exception. */
int  ending_watch(struct ending *, PyObject *work);

/* ended(seconds) -> list of Works; ended_wake(); ended_listen(bool) */
int  ended_setup(PyObject *module);

#endif
