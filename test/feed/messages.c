/* A byte is computed from the message's number and its place by a product, so that neither a shift
 * nor a mixture of two messages looks right. */
#include "messages.h"

size_t message_bytes(uint64_t n, size_t most)
{
    uint64_t z = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z ^= z >> 31;
    size_t sort[] = { 0, 48, 1 + z % 63, 64 + z % 200, most / 4, z % (most / 4 + 1), most,
                      z % (most + 1) };
    return sort[n % 8];
}

static unsigned char byte_of(uint64_t n, size_t i)
{
    return (unsigned char)(((n + 1) * UINT64_C(0x9e3779b1) + i * UINT64_C(0x85ebca77)) >> 13);
}

void message_fill(unsigned char *to, uint64_t n, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = byte_of(n, i);
}

bool message_is(const unsigned char *at, uint64_t n, size_t bytes, size_t most)
{
    if (bytes != message_bytes(n, most))
        return false;
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != byte_of(n, i))
            return false;
    return true;
}
