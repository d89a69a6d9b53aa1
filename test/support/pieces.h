/* Job: memory for operations: pieces with guards around and between them, private or in the arena;
 *      tiles into and out of it.
 * Owns: the memory, between take and give.
 * Never: what the pieces mean. */
#ifndef TUTTI_TEST_SUPPORT_PIECES_H
#define TUTTI_TEST_SUPPORT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <tutti.h>

enum { PIECES_MOST = 16, PIECES_GUARD = 64, PIECES_BYTE = 0xa5 };

/* seen: where the CPU sees mem: there, unless it is a device's (`device`; then its giver has taken
 * it, and gives it back). */
struct pieces {
    unsigned char *mem, *seen;
    size_t bytes, offset;
    bool shared, registered, device;
    int n;
    size_t at[PIECES_MOST], length[PIECES_MOST];
};

void pieces_add(struct pieces *b, size_t bytes, size_t gap);        /* one more piece; then take */
bool pieces_take(struct pieces *b, tutti_comm *world, bool shared, size_t offset);
/* The same in malloc memory that is registered, if the span has room: its ends share pages with
 * strangers. Not while work is under way anywhere. */
bool pieces_take_registered(struct pieces *b, tutti_comm *world, size_t offset);
void pieces_give(struct pieces *b, tutti_comm *world);
unsigned char *pieces_piece(const struct pieces *b, int i);
size_t pieces_room(const struct pieces *b);             /* bytes from mem on, guards and all */
/* memory of a giver's own, of that room */
void pieces_fill(struct pieces *b, unsigned char *mem, unsigned char *seen, size_t offset);
bool pieces_has(const struct pieces *b, const void *at);
unsigned char *pieces_see(const struct pieces *b, const void *at);
bool pieces_whole(const struct pieces *b);              /* nothing was written beside the pieces */

void   tile_fill(unsigned char *to, size_t bytes, const unsigned char *tile, size_t period);
/* first byte; SIZE_MAX: none */
size_t tile_differs(const unsigned char *is, size_t bytes, const unsigned char *tile,
                    size_t period);

#endif
