/* Job: messages that tell their number, length and contents apart from any other.
 * Owns: nothing.
 * Never: knows a queue. */
#ifndef TUTTI_TEST_FEED_MESSAGES_H
#define TUTTI_TEST_FEED_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of message n: of each sort one after another, up to `most`. */
size_t message_bytes(uint64_t n, size_t most);
void message_fill(unsigned char *to, uint64_t n, size_t bytes);
/* True: it is message n, whole. */
bool message_is(const unsigned char *at, uint64_t n, size_t bytes, size_t most);

#endif
