/* Job: a negative result of the library becomes the exception that Python programs catch:
 *   tutti.RankDied, Mismatch, Timeout …, which are torch.distributed.DistBackendError, too.
 * Owns: nothing but the function that makes them, which Python has handed in.
 * Never: the interpreter's lock while a lock of ours is held, or once the interpreter is going. */
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

/* What the library says of comm's last failure. comm null: of tutti_init in this thread. */
Failure failure_of(int error, const tutti_comm *comm);

/* As an exception of Python, to be thrown in any thread, any number of times. */
std::exception_ptr failure_exception(const Failure &);

/* In a wait of ours: runs Python's signal handlers if this is the main thread; throws what they
 * raise. Any thread, without the interpreter's lock. */
void signals_look();

/* Throws it. The main thread looks at signals first: Ctrl-C may be the cause, and then
 * KeyboardInterrupt is what comes out. */
[[noreturn]] void fail(const Failure &);

/* "the op: why", as tutti.Invalid: found before anything was touched. */
[[noreturn]] void refuse(const char *what, const std::string &why);

/* What Ctrl-C leaves in a future that the main thread may be waiting for: KeyboardInterrupt, or
 * what the program's own handler raises. */
std::exception_ptr interrupt_exception();

/* The exception that is set in this thread, with the interpreter's lock. */
std::exception_ptr exception_set();

/* make(errno, kind, report, ranks) -> exception; interrupted: a class of KeyboardInterrupt. */
void failure_setup(pybind11::object make, pybind11::object interrupted);

/* Python can be asked: it runs, and is not on its way out. */
bool python_runs();

}

#endif
