/* The other half of text.h: numbers as people write them, each with an explicit end and no silent
 * wrap. strtoll is not used: it skips blanks, accepts forms like "+5", and needs errno; own code
 * for digits is easier to check. */
#include "base/text.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* Decimal digits at *s, at least one; *s moves behind them. False: none, or more than 64 bits. */
static bool take_digits(const char **s, uint64_t *value)
{
    const char *at = *s;
    uint64_t v = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (v > (UINT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    if (at == *s)
        return false;
    *s = at;
    *value = v;
    return true;
}

int text_parse_duration_ms(const char *s, int64_t *ms)
{
    static const struct { const char *name; uint64_t factor; } units[] = {
        { "", 1 }, { "ms", 1 }, { "s", 1000 }, { "min", 60000 }, { "h", 3600000 },
    };
    if (strcmp(s, "-1") == 0 || strcmp(s, "never") == 0 || strcmp(s, "none") == 0) {
        *ms = -1;
        return 0;
    }
    uint64_t v;
    if (!take_digits(&s, &v))
        return -EINVAL;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(s, units[i].name) != 0)
            continue;
        if (v > (uint64_t)INT64_MAX / 1000000 / units[i].factor)     /* clocks count nanoseconds */
            return -EINVAL;
        *ms = (int64_t)(v * units[i].factor);
        return 0;
    }
    return -EINVAL;
}

/* k, kb and kib are the same: 64k for a buffer never means 64,000. */
int text_parse_bytes(const char *s, uint64_t *bytes)
{
    static const char letters[] = "kmgtpe";
    uint64_t v;
    if (!take_digits(&s, &v))
        return -EINVAL;
    int shift = 0;
    for (int i = 0; letters[i] && *s; i++) {
        if ((*s | 0x20) == letters[i]) {
            shift = 10 * (i + 1);
            s++;
            break;
        }
    }
    if (*s && strcasecmp(s, "b") != 0 && (shift == 0 || strcasecmp(s, "ib") != 0))
        return -EINVAL;
    if (v > UINT64_MAX >> shift)
        return -EINVAL;
    *bytes = v << shift;
    return 0;
}

int text_parse_int(const char *s, int64_t low, int64_t high, int64_t *value)
{
    bool minus = *s == '-';
    if (minus)
        s++;
    uint64_t v;
    if (!take_digits(&s, &v) || *s)
        return -EINVAL;
    if (v > (uint64_t)INT64_MAX + minus)
        return -EINVAL;
    int64_t whole = minus ? -(int64_t)(v / 2) - (int64_t)(v - v / 2) : (int64_t)v;
    if (whole < low || whole > high)
        return -EINVAL;
    *value = whole;
    return 0;
}

/* FNV-1a mixes its last bytes badly into the high bits; the finaliser of MurmurHash3 makes every
 * bit depend on all. */
uint64_t text_hash(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *at = bytes;
    uint64_t h = 0xCBF29CE484222325u ^ seed;
    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * 0x100000001B3u;
    h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCDu;
    h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53u;
    return h ^ (h >> 33);
}
