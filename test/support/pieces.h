/* Job: provide memory for operations: pieces with guards around and between them, private or in the
 *      arena; write and compare tiles in it.
 * Owns: the memory, between take and give.
 * Never: interprets the pieces. */
#ifndef TUTTI_TEST_SUPPORT_PIECES_H
#define TUTTI_TEST_SUPPORT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <tutti.h>

enum { PIECES_MOST = 16, PIECES_GUARD = 64, PIECES_BYTE = 0xa5 };

/* seen: where the CPU sees mem. It is mem itself, except for a device's memory (`device`): its
 * taker releases that. */
struct pieces {
    unsigned char *mem, *seen;
    size_t bytes, offset;
    bool shared, registered, device;
    int n;
    size_t at[PIECES_MOST], length[PIECES_MOST];
};

void pieces_add(struct pieces *b, size_t bytes, size_t gap);        /* adds a piece; before take */
bool pieces_take(struct pieces *b, tutti_comm *world, bool shared, size_t offset);
/* The same in malloc memory that is registered, if the span has room. Its ends share pages with
 * other data. Call it only while no work is under way. */
bool pieces_take_registered(struct pieces *b, tutti_comm *world, size_t offset);
void pieces_give(struct pieces *b, tutti_comm *world);
unsigned char *pieces_piece(const struct pieces *b, int i);
size_t pieces_room(const struct pieces *b);             /* bytes from mem on, guards included */
/* fills memory that the caller has taken, of pieces_room bytes */
void pieces_fill(struct pieces *b, unsigned char *mem, unsigned char *seen, size_t offset);
bool pieces_has(const struct pieces *b, const void *at);
unsigned char *pieces_see(const struct pieces *b, const void *at);
bool pieces_whole(const struct pieces *b);              /* true: all guards are unchanged */

void   tile_fill(unsigned char *to, size_t bytes, const unsigned char *tile, size_t period);
/* the first byte that differs; SIZE_MAX: none */
size_t tile_differs(const unsigned char *is, size_t bytes, const unsigned char *tile,
                    size_t period);

#endif
