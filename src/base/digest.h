/* Job: make a fast 64-bit digest of many bytes, to find out whether two buffers are equal.
 * Owns: nothing.
 * Never: protects secrets: two buffers with one digest can be constructed. */
#ifndef TUTTI_BASE_DIGEST_H
#define TUTTI_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

uint64_t digest(const void *bytes, size_t n, uint64_t seed);

#endif
