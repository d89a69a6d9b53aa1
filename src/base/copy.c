/* By one instruction where that is best (Zen 5), else by loops of 32-byte loads and stores where
 * the processor has them (AVX2). Of 1 MiB and more the C library's own copy is as good as the plain
 * one: it goes by such a loop there, too.
 * Cost: 3 us for the first call, which asks what the processor has. */
#include "base/copy.h"

#if defined(__x86_64__)

#include "base/atomic.h"
#include "base/isa.h"

#include <immintrin.h>

enum { COPY_PAGE = 4096, COPY_BADLY = 64, BY_LOOP = 1 << 20, STREAM_LEAST = 512, BESIDE = 1024 };
enum { VECTOR = 32, TURN = 4 * VECTOR, OWN_AHEAD = 8 * TURN };
enum { NOT_ASKED, MEMCPY, VECTORS, INSTRUCTION };
/* Bytes; less takes no longer by a loop. Up to BY_LOOP, that size too, as the largest message that
   is copied whole has it: sendrecv of it takes 0.89 to 0.95 of the time near. */
enum { BY_INSTRUCTION = 4096 };
#if defined(TUTTI_TSAN) || defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };                /* it does not see what the instruction touches */
#else
enum { SANITIZED = 0 };
#endif

/* One of the above. Every writer writes the same. */
static shared32 way;

static void by_instruction(void *to, const void *from, size_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

__attribute__((target("avx2")))
static inline __m256i load(const char *from) { return _mm256_loadu_si256((const void *)from); }

__attribute__((target("avx2")))
static inline void store(char *to, __m256i x, bool streaming)
{
    if (streaming)
        _mm256_stream_si256((__m256i *)(void *)to, x);
    else
        _mm256_store_si256((__m256i *)(void *)to, x);
}

/* Turns, to a whole VECTOR. Four variables: an array of them goes through the stack. */
__attribute__((target("avx2"), always_inline))
static inline void turns(char *to, const char *from, size_t bytes, bool streaming)
{
    for (; bytes >= TURN; to += TURN, from += TURN, bytes -= TURN) {
        __m256i x = load(from), y = load(from + VECTOR), z = load(from + 2 * VECTOR),
                last = load(from + 3 * VECTOR);
        store(to, x, streaming);
        store(to + VECTOR, y, streaming);
        store(to + 2 * VECTOR, z, streaming);
        store(to + 3 * VECTOR, last, streaming);
    }
}

__attribute__((target("avx2"), always_inline))
static inline void by_vectors(char *to, const char *from, size_t bytes, bool streaming)
{
    size_t head = -(uintptr_t)to % VECTOR, whole = (bytes - head) / TURN * TURN;
    memcpy(to, from, head);
    turns(to + head, from + head, whole, streaming);
    memcpy(to + head + whole, from + head + whole, bytes - head - whole);
}

__attribute__((target("avx2")))
static void plain_vectors(char *to, const char *from, size_t bytes)
{
    by_vectors(to, from, bytes, false);
}

/* From where `to` is at a whole VECTOR. */
__attribute__((target("avx2")))
static void owning_vectors(char *to, const char *from, size_t bytes)
{
    size_t head = -(uintptr_t)to % VECTOR;
    memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    cpu_own_all(to, bytes < OWN_AHEAD ? bytes : OWN_AHEAD);
    for (; bytes >= OWN_AHEAD + TURN; to += TURN, from += TURN, bytes -= TURN) {
        cpu_own_all(to + OWN_AHEAD, TURN);
        turns(to, from, TURN, false);
    }
    by_vectors(to, from, bytes, false);
}

__attribute__((target("avx2")))
static void streaming_vectors(char *to, const char *from, size_t bytes)
{
    by_vectors(to, from, bytes, true);
}

/* Either begins at a whole VECTOR of its own. */
__attribute__((target("avx2")))
static void beside_vectors(char *to, const char *from, char *past, const char *kept, size_t bytes)
{
    size_t head = -(uintptr_t)to % VECTOR, skip = -(uintptr_t)past % VECTOR, done = 0;
    memcpy(to, from, head);
    memcpy(past, kept, skip);
    for (; done + BESIDE + VECTOR <= bytes; done += BESIDE) {
        turns(to + head + done, from + head + done, BESIDE, false);
        turns(past + skip + done, kept + skip + done, BESIDE, true);
    }
    memcpy(to + head + done, from + head + done, bytes - head - done);
    memcpy(past + skip + done, kept + skip + done, bytes - skip - done);
}

static uint32_t copy_way(void)
{
    uint32_t now = load_relaxed32(&way);                 /* relaxed: what it says is a constant */
    if (now == NOT_ASKED) {
        now = !isa_has_avx2()                             ? MEMCPY
            : isa_amd_family() >= ISA_ZEN5 && !SANITIZED ? INSTRUCTION
                                                          : VECTORS;
        store_relaxed32(&way, now);                      /* relaxed: as above */
    }
    return now;
}

bool copy_takes_over(size_t bytes)
{
    return bytes >= BY_INSTRUCTION && bytes <= BY_LOOP && copy_way() == INSTRUCTION;
}

void copy_long(void *to, const void *from, size_t bytes)
{
    if (copy_takes_over(bytes))
        by_instruction(to, from, bytes);
    else
        copy_long_by_loop(to, from, bytes);
}

void copy_long_over_read(void *to, const void *from, size_t bytes)
{
    if (bytes < BY_LOOP && copy_way() == VECTORS)
        owning_vectors(to, from, bytes);
    else
        copy_long(to, from, bytes);
}

void copy_long_by_loop(void *to, const void *from, size_t bytes)
{
    size_t behind = ((uintptr_t)to - (uintptr_t)from) % COPY_PAGE;
    if (bytes < BY_LOOP && copy_way() != MEMCPY)
        plain_vectors(to, from, bytes);
    else if (behind && behind < COPY_BADLY)
        copy_lines(to, from, bytes, 0);
    else
        memcpy(to, from, bytes);
}

void copy_unordered(void *to, const void *from, size_t bytes)
{
    if (bytes >= STREAM_LEAST && copy_way() != MEMCPY)
        streaming_vectors(to, from, bytes);
    else
        copy_lines(to, from, bytes, 1);
}

void copy_beside(void *to, const void *from, void *past, const void *kept, size_t bytes)
{
    if (bytes >= STREAM_LEAST && copy_way() != MEMCPY)
        beside_vectors(to, from, past, kept, bytes);
    else {
        copy_plain(to, from, bytes);
        copy_unordered(past, kept, bytes);
    }
    copy_ordered();
}

#endif
