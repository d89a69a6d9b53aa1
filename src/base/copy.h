/* Job: copy memory where memcpy is not the fastest: between two places of bad relative alignment,
 *      and past the caches.
 * Owns: nothing.
 * Never: decides when a streaming copy is worth while.
 *
 * A plain store to a line that is not in the caches fetches it first; a streaming store does not. A
 * streaming store is slower if the line is in the caches, or is read again soon.
 *
 * The C library copies some KiB and more by one instruction (rep movsb). On AMD's Zen 3 that takes
 * 15 times as long if the target lies 1 to 31 bytes behind the source within their pages. Large
 * blocks of malloc and our whole pages lie so to each other. Measured, 64 KiB: 32 us instead of 1.3
 * us. For such places a loop copies. */
#ifndef TUTTI_BASE_COPY_H
#define TUTTI_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
enum { COPY_STREAMS = 1, COPY_BY_INSTRUCTION = 2048, COPY_PAGE = 4096, COPY_BADLY = 64 };

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

/* As memcpy, equally fast for all alignments. */
static inline void copy_plain(void *to, const void *from, size_t bytes)
{
    size_t behind = ((uintptr_t)to - (uintptr_t)from) % COPY_PAGE;
    if (bytes >= COPY_BY_INSTRUCTION && behind && behind < COPY_BADLY)
        copy_lines(to, from, bytes, 0);
    else
        memcpy(to, from, bytes);
}

/* The same past the caches. copy_ordered: before all later stores of this thread. */
static inline void copy_unordered(void *to, const void *from, size_t bytes)
{
    copy_lines(to, from, bytes, 1);
}

static inline void copy_ordered(void) { _mm_sfence(); }
#else
enum { COPY_STREAMS = 0 };
static inline void copy_plain(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }

static inline void copy_unordered(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static inline void copy_ordered(void) { }
#endif

/* Past the caches, ordered before all later stores of this thread. */
static inline void copy_streaming(void *to, const void *from, size_t bytes)
{
    copy_unordered(to, from, bytes);
    copy_ordered();
}

#endif
