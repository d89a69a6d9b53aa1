/* Job: sleep on a word until it changes; wake its sleepers.
 * Owns: nothing.
 * Never: knows the meaning of a word. All words are shared between processes. */
#ifndef TUTTI_OS_FUTEX_H
#define TUTTI_OS_FUTEX_H

#include "base/atomic.h"

enum { FUTEX_WORDS = 128 };                      /* most words one sleep can watch */

struct futex_word { shared32 *word; uint32_t seen; };

/* Sleeps while *word == seen, at most timeout_ns of CLOCK_MONOTONIC. 0: woken or changed (may be
   spurious). -ETIMEDOUT, -EINTR. */
int futex_wait(shared32 *word, uint32_t seen, uint64_t timeout_ns);

/* Sleeps while every word == its `seen`. 0: woken or one changed. -ETIMEDOUT, -EINTR. -ENOSYS: no
   futex_waitv (old kernel, or a seccomp filter): the caller uses futex_wait in slices. */
int futex_wait_any(const struct futex_word *words, int n, uint64_t timeout_ns);

/* Wakes up to n sleepers; all: n = INT_MAX. Returns how many, or a negative errno. Safe in a
 * signal handler. */
int futex_wake(shared32 *word, int n);

#endif
