/* Job: every access to memory that another rank can see, under a name that says its order.
 * Owns: no word; only the vocabulary.
 * Never: what a word means. A caller writes the edge it is an end of (E1 …) beside the call.
 *
 * Why wrappers: the orders are greppable, a test build can put a scheduler behind them, and
 * ThreadSanitizer, which does not model stand-alone fences, gets a read-modify-write instead. */
#ifndef TUTTI_BASE_ATOMIC_H
#define TUTTI_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* gcc has a macro for ThreadSanitizer, clang a question. */
#if defined(__SANITIZE_THREAD__)
#define TUTTI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TUTTI_TSAN 1
#endif
#endif

typedef _Atomic(uint8_t) shared8;      /* of one process: what several of its threads note */
typedef _Atomic(uint32_t) shared32;
typedef _Atomic(uint64_t) shared64;

_Static_assert(sizeof(shared32) == 4 && sizeof(shared64) == 8, "shared words are plain words");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "shared words need no lock");

static inline uint8_t load_relaxed8(const shared8 *w)
{
    return atomic_load_explicit(w, memory_order_relaxed);
}

static inline void store_relaxed8(shared8 *w, uint8_t v)
{
    atomic_store_explicit(w, v, memory_order_relaxed);
}

#if defined(TUTTI_EXPLORE)
#include <explore/atomic.h>           /* the same names, behind a scheduler: test/explore */
#else

#define SHARED_LOAD(w, order) atomic_load_explicit(w, order)

static inline uint32_t load_acquire32(const shared32 *w)
{
    return SHARED_LOAD(w, memory_order_acquire);
}

static inline uint64_t load_acquire64(const shared64 *w)
{
    return SHARED_LOAD(w, memory_order_acquire);
}

static inline uint32_t load_relaxed32(const shared32 *w)
{
    return SHARED_LOAD(w, memory_order_relaxed);
}

static inline uint64_t load_relaxed64(const shared64 *w)
{
    return SHARED_LOAD(w, memory_order_relaxed);
}

static inline void store_release32(shared32 *w, uint32_t v)
{
    atomic_store_explicit(w, v, memory_order_release);
}

static inline void store_release64(shared64 *w, uint64_t v)
{
    atomic_store_explicit(w, v, memory_order_release);
}

static inline void store_relaxed32(shared32 *w, uint32_t v)
{
    atomic_store_explicit(w, v, memory_order_relaxed);
}

static inline void store_relaxed64(shared64 *w, uint64_t v)
{
    atomic_store_explicit(w, v, memory_order_relaxed);
}

/* Read-modify-writes: acquire and release at once; on x86 each is a full fence besides. */
static inline uint32_t fetch_add32(shared32 *w, uint32_t v)
{
    return atomic_fetch_add_explicit(w, v, memory_order_seq_cst);
}

static inline uint32_t fetch_sub32(shared32 *w, uint32_t v)
{
    return atomic_fetch_sub_explicit(w, v, memory_order_seq_cst);
}

static inline uint64_t fetch_add64(shared64 *w, uint64_t v)
{
    return atomic_fetch_add_explicit(w, v, memory_order_seq_cst);
}

static inline uint32_t fetch_or32(shared32 *w, uint32_t v)
{
    return atomic_fetch_or_explicit(w, v, memory_order_seq_cst);
}

static inline uint32_t fetch_and32(shared32 *w, uint32_t v)
{
    return atomic_fetch_and_explicit(w, v, memory_order_seq_cst);
}

static inline bool swap_if32(shared32 *w, uint32_t *seen, uint32_t v)
{
    return atomic_compare_exchange_strong_explicit(w, seen, v, memory_order_seq_cst,
                                                   memory_order_acquire);
}
static inline bool swap_if64(shared64 *w, uint64_t *seen, uint64_t v)
{
    return atomic_compare_exchange_strong_explicit(w, seen, v, memory_order_seq_cst,
                                                   memory_order_acquire);
}

/* fence_full orders every access before it against every access after it, stores before loads
 * included. store_fence64 is a release store followed by a full fence. Not one xchg, on x86 as
 * good: that begins when all stores before it are done, so that of two to one line, as an arrival
 * is, a reader who spins there comes between them, and the line has to be fetched back. As stores
 * they leave together. Measured on Zen 5, an all_gather of 4 bytes: 57 ns for 90. */
#if defined(TUTTI_TSAN)
static inline void fence_full(void)
{
    static shared32 dummy;
    fetch_add32(&dummy, 0);
}

static inline void store_fence64(shared64 *w, uint64_t v)
{
    (void)atomic_exchange_explicit(w, v, memory_order_seq_cst);
}
#else
static inline void fence_full(void) { atomic_thread_fence(memory_order_seq_cst); }
static inline void store_fence64(shared64 *w, uint64_t v)
{
    store_release64(w, v);
    fence_full();
}
#endif

/* About so many cycles, without a look at memory. */
static inline void cpu_steps(uint32_t n)
{
    while (n--)
        __asm__ __volatile__("");
}

/* 0, some n cycles from now. Added to an address it makes that load late, and nothing else: a loop
 * would hold up what stands behind it, takes what two ranks on the halves of one core have least
 * of, turns, and a load behind it starts whenever the processor foresees its end, which it now does
 * and now does not. */
static inline size_t cpu_later(uint32_t n)
{
    enum { PRODUCT = 3 };           /* cycles of a product, on all processors that matter here */
    size_t zero = 0, one = 1;
    __asm__ __volatile__("" : "+r"(zero), "+r"(one));       /* no compiler knows what they are */
    for (; n >= PRODUCT; n -= PRODUCT) {
        zero *= one;
        __asm__ __volatile__("" : "+r"(zero));
    }
    return zero;
}

/* The line at `at` will soon be written here: fetch it, and take it away from whoever has read
 * it. A hint. */
static inline void cpu_own(const void *at)
{
#if defined(__x86_64__)
    /* compilers make this of __builtin_prefetch only for some processors */
    __asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)at));
#else
    __builtin_prefetch(at, 1, 3);
#endif
}

static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
}

#endif

enum { CPU_LINE = 64 };                /* of the caches: half of what the arena keeps apart */

/* All lines from `at`, the beginning of one, to at + bytes. */
static inline void cpu_own_all(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += CPU_LINE)
        cpu_own((const char *)at + i);
}

/* The low half of a 64-bit word, which is what a futex can sleep on. */
static inline shared32 *low_half(shared64 *w)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (shared32 *)(void *)w;
#else
    return (shared32 *)(void *)w + 1;
#endif
}

#endif
