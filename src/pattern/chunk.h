/* Job: cut a vector of elements into rounds of one piece per rank.
 * Owns: nothing; pure arithmetic.
 * Never: touches memory; knows real ranks.
 *
 * A round covers `parts` pieces of `piece` elements; piece p of a round belongs to rank p. The last
 * round may be short: its pieces are filled from the front, so the last ones may be short or
 * empty. */
#ifndef TUTTI_PATTERN_CHUNK_H
#define TUTTI_PATTERN_CHUNK_H

#include <stddef.h>
#include <stdint.h>

struct chunk { size_t first, count; };               /* elements */

/* Elements of a piece: at most `most`, fewer if count is small; rounded up to whole cache lines of
 * 64 bytes. At least 1. */
static inline size_t chunk_piece(size_t count, size_t parts, size_t width, size_t most)
{
    size_t line = width < 64 ? 64 / width : 1, piece = count / parts + (count % parts != 0);
    piece = (piece + line - 1) / line * line;
    return piece == 0 ? 1 : piece < most ? piece : most;
}

static inline uint64_t chunk_rounds(size_t count, size_t parts, size_t piece)
{
    size_t round = parts * piece;
    return count / round + (count % round != 0);
}

/* Piece p of round r. */
static inline struct chunk chunk_of(size_t count, size_t parts, size_t piece, uint64_t r, size_t p)
{
    size_t first = (size_t)r * parts * piece + p * piece;
    if (first >= count)
        return (struct chunk){ count, 0 };
    return (struct chunk){ first, count - first < piece ? count - first : piece };
}

#endif
