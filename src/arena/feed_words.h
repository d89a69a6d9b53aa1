/* Job: the words and bytes of a broadcast queue (feed/), in the span of the rank that writes it.
 * Owns: nothing; each word says who writes it, as in layout.h.
 * Never: more than layout. */
#ifndef TUTTI_ARENA_FEED_WORDS_H
#define TUTTI_ARENA_FEED_WORDS_H

#include "arena/layout.h"

/* One message, a piece of one, or what fills the ring up to its end. Records follow each other in
   the ring of bytes, each at a multiple of FEED_STEP. */
struct feed_record {
    /* writer: the position behind the record, when it is whole; 0 while it is not there | E96 */
    shared64 stamp;
    uint64_t what;                    /* writer, before stamp: feed_what() | E96 */
    char data[];
};
enum { FEED_STEP = 64, FEED_RECORD = 16 };
/* WHOLE: a message. FIRST, MORE: pieces of one. FILL: nothing. END: the writer has closed. LENT: a
   message elsewhere in the writer's span; data is its place in the arena. */
enum feed_kind { FEED_WHOLE = 1, FEED_FIRST, FEED_MORE, FEED_FILL, FEED_END, FEED_LENT };
enum { FEED_KIND_BITS = 3 };
/* bytes: of the message, from this piece on */
static inline uint64_t feed_what(enum feed_kind kind, uint64_t bytes)
{
    return bytes << FEED_KIND_BITS | (uint64_t)kind;
}

struct feed_reader {                  /* of one rank of the queue */
    /* reader: the position up to which it has read; FEED_AWAY: it has closed | E98 */
    _Alignas(LINE) shared64 tail;
    _Alignas(LINE) shared32 awaited;  /* writer: 1: it sleeps on tail | E99 */
    /* writer: the tail that leaves no room for its next record | E114 */
    shared64 full;
    /* reader: 1: it sleeps on head | E97 */
    shared32 asleep;
};
#define FEED_AWAY UINT64_MAX

/* Behind it, at FEED_HEAD + size * sizeof(struct feed_reader), rounded to pages, is the ring. */
struct feed_head {
    _Alignas(LINE) shared64 head;     /* writer: the position behind the last record | E97 */
    _Alignas(LINE) shared64 woke;     /* writer: the tick at which it last woke readers; a hint */
    _Alignas(LINE) struct feed_reader readers[];
};

static inline size_t feed_head_bytes(uint32_t size)
{
    return layout_round(sizeof(struct feed_head) + size * sizeof(struct feed_reader), 4096);
}

_Static_assert(offsetof(struct feed_record, data) == FEED_RECORD, "a record's head");
_Static_assert(sizeof(struct feed_reader) == 2 * LINE, "lines of a reader");

#endif
