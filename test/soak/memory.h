/* Job: memory for operations: pieces with guards around and between them, private or in the arena; tiles into and out of it.
 * Owns: the memory, between take and give.
 * Never: what the pieces mean. */
#ifndef TUTTI_TEST_SOAK_MEMORY_H
#define TUTTI_TEST_SOAK_MEMORY_H

#include "soak.h"

enum { BUFFER_GUARD = 64, BUFFER_BYTE = 0xa5 };

struct buffer { unsigned char *mem; size_t bytes, offset; bool shared; int n; size_t at[SOAK_BLOCKS], length[SOAK_BLOCKS]; };

void buffer_add(struct buffer *b, size_t bytes, size_t gap);                         /* one more piece; then take */
bool buffer_take(struct buffer *b, tutti_comm *world, bool shared, size_t offset);
void buffer_give(struct buffer *b, tutti_comm *world);
unsigned char *buffer_piece(const struct buffer *b, int i);
bool buffer_whole(const struct buffer *b);                                            /* nothing was written beside the pieces */

void   tile_fill(unsigned char *to, size_t bytes, const unsigned char *tile, size_t period);
size_t tile_differs(const unsigned char *is, size_t bytes, const unsigned char *tile, size_t period);     /* first byte; SIZE_MAX: none */

/* Memory of this rank that peers can read: the two places to change for another allocator. */
void *arena_take(tutti_comm *comm, size_t bytes);
void  arena_give(tutti_comm *comm, void *at);

#endif
