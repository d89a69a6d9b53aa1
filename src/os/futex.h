/* Job: sleep on a word until it changes, and wake those who do.
 * Owns: nothing.
 * Never: why somebody sleeps. All words are shared between processes. */
#ifndef TUTTI_OS_FUTEX_H
#define TUTTI_OS_FUTEX_H

#include "base/atomic.h"

enum { FUTEX_WORDS = 128 };                      /* most words one sleep can watch */

struct futex_word { shared32 *word; uint32_t seen; };

/* Sleeps while *word == seen, at most timeout_ns. 0 woken or changed (spurious returns are legal),
   -ETIMEDOUT, -EINTR. The time is measured on CLOCK_MONOTONIC. */
int futex_wait(shared32 *word, uint32_t seen, uint64_t timeout_ns);

/* Sleeps while every word holds what was seen. 0 woken or one changed, -ETIMEDOUT, -EINTR;
   -ENOSYS where the kernel or a seccomp filter (EPERM) has no futex_waitv: the caller then uses
   futex_wait in slices. */
int futex_wait_any(const struct futex_word *words, int n, uint64_t timeout_ns);

/* Wakes up to n sleepers; all: n = INT_MAX. Returns how many, or a negative errno. Safe in a
 * signal handler. */
int futex_wake(shared32 *word, int n);

#endif
