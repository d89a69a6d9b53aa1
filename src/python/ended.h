/* Job: report ended works to Python in a thread of the package: the library's own threads never
 *      wait for the interpreter.
 * Owns: the list of ended works that nobody has fetched yet, and the semaphore that counts them.
 * Never: runs Python code; tutti/_later.py calls the program's callbacks. */
#ifndef PYTHON_ENDED_H
#define PYTHON_ENDED_H

#include <Python.h>

#include "base/atomic.h"
#include "tutti.h"

/* A part of a flight. word: 0, the address of a watch, or ENDED. */
struct ending {
    shared64 word;
    int      told;                  /* the library will call ending_done: the word becomes ENDED */
    int      error;                 /* the error of the ended work */
};

/* True: the library reports the end of new works: from the first watch in the process on, not
 * before. To the library a work with `done` is one that may still end any other wait. */
int ended_listens(void);

/* Before the starting call: asks the library to report the end. */
void ending_tell(struct ending *, tutti_call *);
int  ending_is_over(const struct ending *);

/* 1: ended() will return `work`, which is held until then. 0: it has ended already. -1: an
 * exception is set. */
int  ending_watch(struct ending *, PyObject *work);

/* ended(seconds) -> list of Works; ended_wake(); ended_listen(bool) */
int  ended_setup(PyObject *module);

#endif
