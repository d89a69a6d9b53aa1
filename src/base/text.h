/* Job: build a message in a bounded buffer; cut it off cleanly when it is full; never fail.
 * Owns: nothing.
 * Never: knows what the message is about. */
#ifndef TUTTI_BASE_TEXT_H
#define TUTTI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text { char *at; size_t room, used; };        /* at[used] is always 0; used < room */

#define TEXT_IN(array) ((struct text){ (array), sizeof(array), 0 })

void text_clear(struct text *t);
__attribute__((format(printf, 2, 3))) void text_add(struct text *t, const char *format, ...);
/* 850 ns, 12.3 us, 4.1 ms, 12.3 s, 4 min 10 s */
void text_add_duration(struct text *t, uint64_t ns);
void text_add_bytes(struct text *t, uint64_t bytes);  /* 512 B, 64 KiB, 1.5 GiB */
void text_add_ranks(struct text *t, const int *ranks, int n);     /* 0, 2-5, 7 */
/* left-justified, at least width columns */
void text_add_padded(struct text *t, const char *s, int width);
/* Text of at most n bytes that somebody else wrote: printable ASCII and UTF-8 as they are, all that
   could act on a terminal as \xNN. It ends at a 0. */
void text_add_foreign(struct text *t, const char *s, size_t n);
/* A name of at most `most` bytes (32 or more). A longer one is cut to its beginning, for people,
   and a hash of all of it, which keeps names apart. */
void text_add_name(struct text *t, const char *name, size_t most);

/* Parsing of numbers that people write. 0 and *value, or -EINVAL. The whole string must be used. */
/* "30s", "500ms", "2min", "1h"; a bare number is milliseconds; "-1", "never" and "none": -1; at
 * most 292 years, the range of a clock. */
int text_parse_duration_ms(const char *s, int64_t *ms);
/* "64k", "16M", "1GiB", "4096"; binary multiples, upper or lower case */
int text_parse_bytes(const char *s, uint64_t *bytes);
int text_parse_int(const char *s, int64_t low, int64_t high, int64_t *value);

/* FNV-1a with a final mix; stable across machines */
uint64_t text_hash(const void *bytes, size_t n, uint64_t seed);

#endif
