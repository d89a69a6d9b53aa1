/* Job: copy memory that nobody will read soon, past the caches.
 * Owns: nothing.
 * Never: decides when that is worth while.
 *
 * A plain store to a line that is not in the caches fetches it first; a streaming store does not. It loses where the line is there, or
 * is read again soon. */
#ifndef TUTTI_BASE_COPY_H
#define TUTTI_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
enum { COPY_STREAMS = 1 };

/* No overlap. Ordered before all later stores of this thread. */
static inline void copy_streaming(void *to, const void *from, size_t bytes)
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
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)s), b = _mm_loadu_si128((const __m128i *)(const void *)(s + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(s + 32)), e = _mm_loadu_si128((const __m128i *)(const void *)(s + 48));
        _mm_stream_si128((__m128i *)(void *)d, a);
        _mm_stream_si128((__m128i *)(void *)(d + 16), b);
        _mm_stream_si128((__m128i *)(void *)(d + 32), c);
        _mm_stream_si128((__m128i *)(void *)(d + 48), e);
    }
    memcpy(d, s, bytes);
    _mm_sfence();
}
#else
enum { COPY_STREAMS = 0 };
static inline void copy_streaming(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
#endif

#endif
