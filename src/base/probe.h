/* Job: the library's static probes (USDT), by which bpftrace, perf, gdb and systemtap look on.
 * Owns: nothing.
 * Never: does anything: a probe is one instruction that does nothing, and a note in the file that
 *        says where it is and where its arguments are. Arguments are what is at hand: no call, no
 *        system call, no shared word for a probe's sake.
 *
 * They are there where <sys/sdt.h> was when the library was built (TUTTI_PROBES).
 *
 *   op_begin  comm, number, kind, count      an operation begins on this thread
 *   op_end    comm, number, result           it has ended: 0 or -errno
 *   sleep     words, ns                      this thread sleeps, until one of so many words changes
 *   wake      result                         it does so no more: 0, -ETIMEDOUT, -EINTR
 *   death     comm, rank, pid                this rank finds that one dead; of the world, both
 *   verdict   comm, number, result, rank     a comm has failed, by -errno, for that rank of it
 *
 * comm, kind: texts. number: of the comm's collectives; 0 or -1: it is none. */
#ifndef TUTTI_BASE_PROBE_H
#define TUTTI_BASE_PROBE_H

#ifdef TUTTI_PROBES
#include <sys/sdt.h>
#define PROBE1(name, a)          STAP_PROBE1(tutti, name, a)
#define PROBE2(name, a, b)       STAP_PROBE2(tutti, name, a, b)
#define PROBE3(name, a, b, c)    STAP_PROBE3(tutti, name, a, b, c)
#define PROBE4(name, a, b, c, d) STAP_PROBE4(tutti, name, a, b, c, d)
#else
#define PROBE1(name, a)          ((void)0)
#define PROBE2(name, a, b)       ((void)0)
#define PROBE3(name, a, b, c)    ((void)0)
#define PROBE4(name, a, b, c, d) ((void)0)
#endif

#endif
