/* Job: make a Python exception from a negative result of the library: tutti.RankDied, Mismatch,
 *      Timeout …, which are torch.distributed.DistBackendError, too.
 * Owns: only the function that makes them, which Python has passed in.
 * Never: takes the interpreter's lock while a lock of ours is held, or while the interpreter
 *        ends. */
#ifndef TORCH_FAILURE_H
#define TORCH_FAILURE_H

#include <exception>
#include <string>
#include <vector>

#include <torch/csrc/Exceptions.h>

#include "tutti.h"

namespace tutti {

/* How an operation failed. */
struct Failure {
    int error = 0;                      /* negative */
    std::string report;                 /* of the library, or a text of ours */
    std::vector<int> ranks;             /* known to be dead or gone */
};

/* The library's report of comm's last failure. comm null: of tutti_init in this thread. */
Failure failure_of(int error, const tutti_comm *comm);

/* The same as an exception of Python, which any thread may throw any number of times. */
std::exception_ptr failure_exception(const Failure &);

/* For a wait of ours: in the main thread, runs Python's signal handlers and throws what they raise.
 * Any thread may call it, without the interpreter's lock. */
void signals_look();

/* Throws the failure. In the main thread it first runs signal handlers: if Ctrl-C was the cause,
 * KeyboardInterrupt is thrown instead. */
[[noreturn]] void fail(const Failure &);

/* Throws tutti.Invalid, "the op: why": an error found before any memory was touched. */
[[noreturn]] void refuse(const char *what, const std::string &why);

/* What Ctrl-C puts into a future that the main thread may wait for: KeyboardInterrupt, or what the
 * program's own handler raises. */
std::exception_ptr interrupt_exception();

/* The exception that is set in this thread. Call it with the interpreter's lock. */
std::exception_ptr exception_set();

/* make(errno, kind, report, ranks) -> exception; interrupted: a class of KeyboardInterrupt. */
void failure_setup(pybind11::object make, pybind11::object interrupted);

/* True: Python can be called: it runs, and is not about to end. */
bool python_runs();

}

#endif
