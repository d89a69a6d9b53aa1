/* Job: what a barrier does beside meeting, by the promise it is done for, so that each can be left out where its price is measured.
 * Owns: nothing.
 * Never: anything in a product: there it is the constant 1. perf/promises.c alone compiles the barrier without some of it.
 *
 * fingerprint   what a rank calls is stored beside its arrival, and compared with what each peer calls: a mismatch is found, not computed on
 * journal       the record of the operation, its call site and times, and the figures: reports, tutti ps, stats
 * verdict       after all have come, the word by which others may have failed the operation, and that of devices: all or none
 * alive         that a dead or sleeping peer is noticed, and who calls: the fence of an arrival and the look at its sleepers; the bound of the
 *               spin, after which one looks for the dead; `ended`; is this the process that joined (fork), the thread (cycles), alone (busy)
 *
 * Not told apart: the attention word, by which work under way keeps its order as well, and the count of calls, which faults are struck by. */
#ifndef TUTTI_BASE_PROMISED_H
#define TUTTI_BASE_PROMISED_H

#if defined(TUTTI_WITHOUT)             /* the sum of those left out */
#include <stdint.h>
extern uint32_t promised_backoff;       /* who does less between arrival and first look must wait longer, or looks too early: see BACKOFF in api/run.h */
#define BACKOFF_STEPS(backoff, steps) promised_backoff
#define BACKOFF_TUNED 0                      /* … and its times are nothing for the library to choose by: nor does it count among its calls */
#define COUNTED(kind) ((kind) & 0)
enum { PROMISE_fingerprint = 1, PROMISE_journal = 2, PROMISE_verdict = 4, PROMISE_alive = 8 };
#define PROMISED(what) (!((TUTTI_WITHOUT) & PROMISE_##what))
#else
#define PROMISED(what) 1
#define BACKOFF_STEPS(backoff, steps) backoff_steps(&(backoff), steps)
#define BACKOFF_TUNED 1
#define COUNTED(kind) (kind)
#endif

#endif
