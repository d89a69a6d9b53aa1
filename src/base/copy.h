/* Job: copy memory where memcpy is not the fastest: between two places of bad relative alignment,
 *      and past the caches.
 * Owns: nothing.
 * Never: decides when a streaming copy is worth while.
 *
 * A plain store to a line that is not in the caches fetches it first; a streaming store does not. A
 * streaming store is slower if the line is in the caches, or is read again soon.
 *
 * The C library copies some KiB and more by one instruction (rep movsb). Two places are bad for it.
 * On AMD's Zen 3 and 4 it takes 15 times as long if the target lies 1 to 31 bytes behind the source
 * within their pages, as large blocks of malloc and our whole pages do: 64 KiB 19 to 32 us in place
 * of 1.2. And out of lines that another CPU has just written it takes up to twice as long as a loop
 * of 32-byte loads and stores, which is never slower: a broadcast of 256 KiB between two ranks of a
 * Zen 4 that share a cache 17 us and 7.6, of 64 KiB between far ones 5.8 and 5.0. A loop of 16
 * bytes takes half as long again, one of 64 as long. Streaming stores of 32 bytes take 0.85 to 0.91
 * of the time of those of 16.
 *
 * On AMD's Zen 5 no place is bad for the instruction. It does not fetch the lines that it
 * overwrites: into 64 KiB that another CPU has read it takes 0.6 us if both share a cache, 1.4 if
 * they do not, and the loop takes 1.9 and 8.5. */
#ifndef TUTTI_BASE_COPY_H
#define TUTTI_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef void copy_fn(void *to, const void *from, size_t bytes);

#if defined(__x86_64__)
#include <emmintrin.h>
enum { COPY_STREAMS = 1, COPY_BY_INSTRUCTION = 2048 };

/* No overlap. `streaming` is a constant in each call. */
static inline __attribute__((always_inline)) void copy_lines(void *to, const void *from,
                                                             size_t bytes, int streaming)
{
    char *d = to;
    const char *s = from;
    size_t head = -(uintptr_t)d & 63;
    head = head < bytes ? head : bytes;
    memcpy(d, s, head);
    d += head;
    s += head;
    bytes -= head;
    for (; bytes >= 64; bytes -= 64, d += 64, s += 64) {
        __m128i x[4];
        for (int i = 0; i < 4; i++)
            x[i] = _mm_loadu_si128((const __m128i *)(const void *)(s + 16 * i));
        for (int i = 0; i < 4; i++)
            if (streaming)
                _mm_stream_si128((__m128i *)(void *)(d + 16 * i), x[i]);
            else
                _mm_store_si128((__m128i *)(void *)(d + 16 * i), x[i]);
    }
    memcpy(d, s, bytes);
}

/* As memcpy, for what the C library would copy by one instruction. */
void copy_long(void *to, const void *from, size_t bytes);
void copy_long_by_loop(void *to, const void *from, size_t bytes);

/* True: the plain copy of so many bytes takes lines over from other caches without reading them. */
bool copy_takes_over(size_t bytes);
static inline void copy_plain(void *to, const void *from, size_t bytes)
{
    if (bytes >= COPY_BY_INSTRUCTION)
        copy_long(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/* The same by a loop, for what a peer folds while this rank folds what that peer gave: there the
   instruction takes 1.02 to 1.11 of the time on the Zen 5. */
static inline void copy_by_loop(void *to, const void *from, size_t bytes)
{
    if (bytes >= COPY_BY_INSTRUCTION)
        copy_long_by_loop(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/* As copy_plain, into a few KiB that another CPU has read. The stores of a loop get their lines
   from the other cache few at a time; so each line is asked for 1 KiB ahead. On a Zen 3, broadcast
   of 2 and 4 KiB between two ranks, the mean of both, takes 0.8 and 0.7 of the time near, 0.7 far.
   Not from 16 KiB on, where a ring of slots has let the lines go: 1.08 near, 1.2 far. */
void copy_long_over_read(void *to, const void *from, size_t bytes);
static inline void copy_over_read(void *to, const void *from, size_t bytes)
{
    if (bytes >= COPY_BY_INSTRUCTION)
        copy_long_over_read(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

/* The same past the caches. copy_ordered: before all later stores of this thread. */
void copy_unordered(void *to, const void *from, size_t bytes);
static inline void copy_ordered(void) { _mm_sfence(); }

/* A plain copy to `to`, and one of as many bytes past the caches, a KiB by turns. Ordered. The
   streaming stores go out while the plain copy finds its lines: on the Zen 4, 4 MiB each and two
   ranks at it, both take 0.82 to 0.87 of the time of one after the other. */
void copy_beside(void *to, const void *from, void *past, const void *kept, size_t bytes);
#else
enum { COPY_STREAMS = 0 };
static inline bool copy_takes_over(size_t bytes)
{
    (void)bytes;
    return false;
}
static inline void copy_plain(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }

static inline void copy_by_loop(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static inline void copy_over_read(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static inline void copy_unordered(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static inline void copy_ordered(void) { }

static inline void copy_beside(void *to, const void *from, void *past, const void *kept,
                               size_t bytes)
{
    memcpy(to, from, bytes);
    memcpy(past, kept, bytes);
}
#endif

/* Past the caches, ordered before all later stores of this thread. */
static inline void copy_streaming(void *to, const void *from, size_t bytes)
{
    copy_unordered(to, from, bytes);
    copy_ordered();
}

#endif
