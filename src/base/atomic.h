/* Job: give each access to memory that another rank can see a name that says its order.
 * Owns: no word; only the names.
 * Never: knows the meaning of a word. A caller writes the edge it is an end of (E1 …) beside the
 *        call.
 *
 * Why wrappers: the orders can be searched for, a test build can put a scheduler behind them, and
 * ThreadSanitizer, which does not model stand-alone fences, gets a read-modify-write instead. */
#ifndef TUTTI_BASE_ATOMIC_H
#define TUTTI_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* gcc has a macro for ThreadSanitizer, clang a feature test. */
#if defined(__SANITIZE_THREAD__)
#define TUTTI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TUTTI_TSAN 1
#endif
#endif

typedef _Atomic(uint8_t) shared8;      /* of one process: flags that several of its threads set */
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

/* Read-modify-writes: acquire and release at once; on x86 each is also a full fence. */
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
 * included. store_fence64 is a release store followed by a full fence. One xchg would order as much
 * on x86. But it begins only when all stores before it are done. An arrival stores two words to one
 * line: a reader that spins there would take the line between the two, and the line would have to
 * be fetched back. Two plain stores leave together. Measured on Zen 5, an all_gather of 4 bytes: 57
 * ns instead of 90. */
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

/* fence_full right behind a read-modify-write of this thread, which is one already on x86. */
static inline void fence_behind_change(void)
{
#if defined(__x86_64__) || defined(__i386__)
    atomic_signal_fence(memory_order_seq_cst);
#else
    fence_full();
#endif
}

/* Takes about n cycles, without an access to memory. */
static inline void cpu_steps(uint32_t n)
{
    while (n--)
        __asm__ __volatile__("");
}

/* 0, some n cycles from now. Added to an address it delays that load and nothing else. A loop would
 * delay all code after it. It uses execution slots, which two ranks on the halves of one core lack
 * most. And a load after it starts early whenever the processor predicts the loop's end, which it
 * does only sometimes. */
static inline size_t cpu_later(uint32_t n)
{
    enum { PRODUCT = 3 };       /* cycles of a multiplication, on all processors that matter here */
    size_t zero = 0, one = 1;
    __asm__ __volatile__("" : "+r"(zero), "+r"(one));       /* hides the values from the compiler */
    for (; n >= PRODUCT; n -= PRODUCT) {
        zero *= one;
        __asm__ __volatile__("" : "+r"(zero));
    }
    return zero;
}

/* A hint: the line at `at` will soon be written here. Fetches it, and takes it away from its
 * readers. */
static inline void cpu_own(const void *at)
{
#if defined(__x86_64__)
    /* compilers make this of __builtin_prefetch for some processors only */
    __asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)at));
#else
    __builtin_prefetch(at, 1, 3);
#endif
}

/* A hint: the line at `at` will soon be read here. */
static inline void cpu_fetch(const void *at) { __builtin_prefetch(at, 0, 3); }

static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
}

#endif

enum { CPU_LINE = 64 };               /* of the caches: half of the distance that the arena keeps */

/* Calls cpu_own for all lines from `at`, the beginning of one, to at + bytes. */
static inline void cpu_own_all(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += CPU_LINE)
        cpu_own((const char *)at + i);
}

/* The low half of a 64-bit word: a futex can sleep on it. */
static inline shared32 *low_half(shared64 *w)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (shared32 *)(void *)w;
#else
    return (shared32 *)(void *)w + 1;
#endif
}

#endif
