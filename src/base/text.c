/* A message is built in a buffer of fixed size, by appending, without allocation, so that a rank
 * without memory can write a report. Text that does not fit is dropped at a character's border.
 * Numbers for people have at most one decimal and are cut, not rounded: 999.96 us is "999.9 us" and
 * never "1000 us". */
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_clear(struct text *t)
{
    t->used = 0;
    if (t->room > 0)
        t->at[0] = 0;
}

/* The buffer was cut at `used`: removes the head of a UTF-8 character whose tail is gone. */
static void drop_half_character(struct text *t)
{
    size_t tail = 0;
    while (tail < 3 && tail < t->used
           && ((unsigned char)t->at[t->used - 1 - tail] & 0xC0u) == 0x80u)
        tail++;
    if (tail == t->used)
        return;
    unsigned char head = (unsigned char)t->at[t->used - 1 - tail];
    size_t wanted = head >= 0xF0u ? 3 : head >= 0xE0u ? 2 : head >= 0xC0u ? 1 : 0;
    if (wanted > tail) {
        t->used -= tail + 1;
        t->at[t->used] = 0;
    }
}

void text_add(struct text *t, const char *format, ...)
{
    if (t->room == 0 || t->used + 1 >= t->room)
        return;
    size_t left = t->room - t->used;
    va_list list;
    va_start(list, format);
    int wanted = vsnprintf(t->at + t->used, left, format, list);
    va_end(list);
    if (wanted < 0) {
        t->at[t->used] = 0;
    } else if ((size_t)wanted < left) {
        t->used += (size_t)wanted;
    } else {
        t->used = t->room - 1;
        drop_half_character(t);
    }
}

/* whole and tenths of value / unit, ".0" left out. */
static void add_tenths(struct text *t, uint64_t value, uint64_t unit, const char *name)
{
    uint64_t whole = value / unit;
    unsigned tenth = (unsigned)(value % unit / (unit / 10));
    if (tenth > 9)                       /* if ten does not divide the unit (1024) */
        tenth = 9;
    if (tenth == 0)
        text_add(t, "%llu %s", (unsigned long long)whole, name);
    else
        text_add(t, "%llu.%u %s", (unsigned long long)whole, tenth, name);
}

void text_add_duration(struct text *t, uint64_t ns)
{
    uint64_t s = ns / 1000000000u;
    if (ns < 1000u)
        text_add(t, "%llu ns", (unsigned long long)ns);
    else if (ns < 1000000u)
        add_tenths(t, ns, 1000u, "us");
    else if (s < 1)
        add_tenths(t, ns, 1000000u, "ms");
    else if (s < 60)
        add_tenths(t, ns, 1000000000u, "s");
    else if (s < 3600)
        text_add(t, s % 60 ? "%llu min %llu s" : "%llu min", (unsigned long long)(s / 60),
                 (unsigned long long)(s % 60));
    else
        text_add(t, s / 60 % 60 ? "%llu h %llu min" : "%llu h", (unsigned long long)(s / 3600),
                 (unsigned long long)(s / 60 % 60));
}

void text_add_bytes(struct text *t, uint64_t bytes)
{
    static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    int i = 0;
    while (i < 6 && bytes >> (10 * (i + 1)) != 0)
        i++;
    if (i == 0)
        text_add(t, "%llu B", (unsigned long long)bytes);
    else
        add_tenths(t, bytes, (uint64_t)1 << (10 * i), names[i]);
}

/* Three and more in a row become a range; two stay as they are. */
void text_add_ranks(struct text *t, const int *ranks, int n)
{
    for (int i = 0; i < n;) {
        int last = i;
        while (last + 1 < n && ranks[last + 1] == ranks[last] + 1)
            last++;
        if (last - i < 2)
            last = i;
        const char *comma = i > 0 ? ", " : "";
        if (last > i)
            text_add(t, "%s%d-%d", comma, ranks[i], ranks[last]);
        else
            text_add(t, "%s%d", comma, ranks[i]);
        i = last + 1;
    }
}

void text_add_name(struct text *t, const char *name, size_t most)
{
    enum { HASH = 17 };                  /* with the sign before it */
    size_t n = strlen(name), cut = most - HASH;
    if (n <= most) {
        text_add(t, "%s", name);
        return;
    }
    for (int i = 0; i < 3 && cut > 0 && ((unsigned char)name[cut] & 0xC0u) == 0x80u; i++)
        cut--;                           /* cuts at a character's border */
    text_add(t, "%.*s~%016llx", (int)cut, name, (unsigned long long)text_hash(name, n, 0));
}

/* Bytes of the UTF-8 character at s that may be shown; 0: none. Not: overlong forms, halves of
   pairs, controls, marks that turn the direction of writing or take no place. */
static size_t shown(const unsigned char *s, size_t n)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    static const struct { uint32_t from, to; } hidden[] = {
        { 0x80, 0x9f }, { 0xad, 0xad }, { 0x61c, 0x61c }, { 0x200b, 0x200f }, { 0x2028, 0x202e },
        { 0x2060, 0x206f }, { 0xd800, 0xf8ff }, { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },
        { 0xfff0, 0xffff }, { 0xe0000, UINT32_MAX },
    };
    size_t bytes = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 1;
    if (bytes == 1)
        return s[0] >= 0x20 && s[0] < 0x7f && s[0] != '\\';
    uint32_t code = s[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (i >= n || (s[i] & 0xc0u) != 0x80u)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (code >= hidden[i].from && code <= hidden[i].to)
            return 0;
    return code >= least[bytes] ? bytes : 0;
}

void text_add_foreign(struct text *t, const char *s, size_t n)
{
    size_t end = strnlen(s, n);
    for (size_t i = 0; i < end;) {
        size_t bytes = shown((const unsigned char *)s + i, end - i);
        if (bytes)
            text_add(t, "%.*s", (int)bytes, s + i);
        else
            text_add(t, "\\x%02x", (unsigned char)s[i]);
        i += bytes ? bytes : 1;
    }
}

/* printf pads by bytes; a column holds a character. */
void text_add_padded(struct text *t, const char *s, int width)
{
    int columns = 0;
    for (const char *c = s; *c; c++)
        columns += ((unsigned char)*c & 0xC0u) != 0x80u;
    text_add(t, "%s%*s", s, width > columns ? width - columns : 0, "");
}
