/* Job: describe one piece of a file to be read or written, and its completion.
 * Owns: nothing.
 * Never: moves it (transfer.h). */
#ifndef TUTTI_OS_PIECE_H
#define TUTTI_OS_PIECE_H

#include <stddef.h>
#include <stdint.h>

/* SYNC: fsync; at, bytes, offset are not used */
enum transfer_kind { TRANSFER_READ, TRANSFER_WRITE, TRANSFER_SYNC };

struct transfer_piece { enum transfer_kind kind; int fd; void *at; size_t bytes; uint64_t offset; };
/* result: bytes moved, maybe fewer than asked for; or -errno */
struct transfer_end { unsigned tag; int64_t result; };

#endif
