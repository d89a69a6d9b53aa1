/* Job: a fast 64-bit digest of many bytes, to tell whether two buffers are the same.
 * Owns: nothing.
 * Never: secrets: whoever looks for two buffers of one digest will find them. */
#ifndef TUTTI_BASE_DIGEST_H
#define TUTTI_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

uint64_t digest(const void *bytes, size_t n, uint64_t seed);

#endif
