/* splitmix64 (Steele, Lea and Flood, 2014) of the base, then of the sum with the rank: neighbouring
 * ranks and bases share nothing. */
#include "order/order.h"

static uint64_t seed_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t order_seed(uint64_t base, uint64_t rank)
{
    return seed_mix(seed_mix(base) + rank);
}
