/* Job:   walk over memory for a kernel of any type and operation.
 * Owns:  nothing.
 * Never: has instructions, types or operations: a kernel passes them as a shape.
 *
 * The including file has defined LANES_BYTES, included vector.h, and written tail_load and
 * tail_store. These move fewer bytes than a register from and to memory, and touch no other byte.
 *
 * A unit is the storage of one register: LANES_BYTES, or a half or a quarter of it if elements are
 * widened. For each tile of four units the walk reads every contribution once, in order, into four
 * registers, and writes the result once. Accumulators never touch memory, so a half is never
 * rounded on the way. There are n + 1 reads and writes per element, and each line is used up at
 * once. Four registers hide the latency of one addition behind three others.
 *
 * The tail. Elements after the last whole unit belong to a last unit that overlaps the one before.
 * It is folded first, while dst, which may be one of the contributions, is unchanged. It is written
 * last, so the overlap gets the same bits twice. Less than one unit in all goes through a buffer of
 * a register's size. So no element takes another path of arithmetic than its neighbours.
 *
 * Factors. The factor of a contribution is spread over a register: once per call for the first
 * LOOP_KEPT ranks, once per tile for the others, of any number. A shape without scale compiles to a
 * walk without factors. */
#ifndef FOLD_WALK_H
#define FOLD_WALK_H

#include "fold/vector.h"

enum { LOOP_KEPT = 16 };

/* Constants after inlining: so one walk becomes a tight loop per kernel. */
struct fold_shape {
    size_t size; /* bytes of one element */
    size_t unit; /* bytes of storage per register */
    vec (*load)(const uint8_t *from);
    vec (*step)(vec acc, vec next);
    vec (*finish)(vec acc, int divisor);
    void (*store)(uint8_t *to, vec v);
    vec (*scale)(vec v, vec factor); /* NULL: contributions have no factors */
};

/* What a call has beside its contributions. */
struct given {
    int                divisor;
    const void *const *factor;
    const vec         *kept; /* the first LOOP_KEPT factors, loaded */
};

#define LOOP_INLINE static inline __attribute__((always_inline))

/* One element in every place of a register, loaded as a contribution is. */
LOOP_INLINE vec loop_spread(const uint8_t *one, struct fold_shape s)
{
    uint8_t buffer[LANES_BYTES];
    vector_store(buffer, vector_spread(one, s.size));
    return s.load(buffer);
}

LOOP_INLINE vec loop_factor(int r, struct given g, struct fold_shape s)
{
    if (!s.scale)
        return (vec){0};
    return r < LOOP_KEPT ? g.kept[r] : loop_spread(g.factor[r], s);
}

LOOP_INLINE vec loop_take(const uint8_t *from, vec factor, struct fold_shape s)
{
    vec v = s.load(from);
    return s.scale ? s.scale(v, factor) : v;
}

LOOP_INLINE vec loop_unit(const void *const src[], int n, size_t at, struct given g,
                          struct fold_shape s)
{
    vec acc = loop_take((const uint8_t *)src[0] + at, loop_factor(0, g, s), s);
    for (int r = 1; r < n; r++)
        acc = s.step(acc, loop_take((const uint8_t *)src[r] + at, loop_factor(r, g, s), s));
    return s.finish(acc, g.divisor);
}

LOOP_INLINE void loop_tile(uint8_t *to, const void *const src[], int n, size_t at, struct given g,
                           struct fold_shape s)
{
    const uint8_t *from = (const uint8_t *)src[0] + at;
    vec            f = loop_factor(0, g, s);
    vec            a = loop_take(from, f, s), b = loop_take(from + s.unit, f, s);
    vec            c = loop_take(from + 2 * s.unit, f, s), d = loop_take(from + 3 * s.unit, f, s);
    for (int r = 1; r < n; r++) {
        from = (const uint8_t *)src[r] + at;
        f = loop_factor(r, g, s);
        a = s.step(a, loop_take(from, f, s));
        b = s.step(b, loop_take(from + s.unit, f, s));
        c = s.step(c, loop_take(from + 2 * s.unit, f, s));
        d = s.step(d, loop_take(from + 3 * s.unit, f, s));
    }
    s.store(to + at, s.finish(a, g.divisor));
    s.store(to + at + s.unit, s.finish(b, g.divisor));
    s.store(to + at + 2 * s.unit, s.finish(c, g.divisor));
    s.store(to + at + 3 * s.unit, s.finish(d, g.divisor));
}

LOOP_INLINE vec loop_take_tail(const void *from, size_t bytes, vec factor, struct fold_shape s)
{
    uint8_t buffer[LANES_BYTES];
    vector_store(buffer, tail_load(from, bytes));
    return loop_take(buffer, factor, s);
}

LOOP_INLINE void loop_tail(uint8_t *to, const void *const src[], int n, size_t bytes,
                           struct given g, struct fold_shape s)
{
    vec acc = loop_take_tail(src[0], bytes, loop_factor(0, g, s), s);
    for (int r = 1; r < n; r++)
        acc = s.step(acc, loop_take_tail(src[r], bytes, loop_factor(r, g, s), s));
    uint8_t buffer[LANES_BYTES];
    s.store(buffer, s.finish(acc, g.divisor));
    tail_store(to, buffer, bytes);
}

LOOP_INLINE void loop_span(uint8_t *to, const void *const src[], int n, size_t bytes,
                           struct given g, struct fold_shape s)
{
    size_t at = 0;
    vec    last = {0};
    if (bytes % s.unit != 0)
        last = loop_unit(src, n, bytes - s.unit, g, s);
    for (; bytes - at >= 4 * s.unit; at += 4 * s.unit)
        loop_tile(to, src, n, at, g, s);
    for (; bytes - at >= s.unit; at += s.unit)
        s.store(to + at, loop_unit(src, n, at, g, s));
    if (at < bytes)
        s.store(to + bytes - s.unit, last);
}

/* Two contributions have a walk of their own, whose pointers stay in registers. With factors that
 * gains little. */
LOOP_INLINE void loop_all(void *dst, const void *const src[], int n, size_t count, struct given g,
                          struct fold_shape s)
{
    const void *const two[2] = {src[0], src[n > 1]};
    size_t            bytes = count * s.size;
    if (bytes == 0)
        return;
    if (bytes < s.unit)
        loop_tail(dst, src, n, bytes, g, s);
    else if (n == 2 && !s.scale)
        loop_span(dst, two, 2, bytes, g, s);
    else
        loop_span(dst, src, n, bytes, g, s);
}

LOOP_INLINE void loop_scaled(void *dst, const void *const src[], const void *const factor[], int n,
                             size_t count, struct fold_shape s)
{
    vec kept[LOOP_KEPT];
    for (int r = 0; r < n && r < LOOP_KEPT; r++)
        kept[r] = loop_spread(factor[r], s);
    loop_all(dst, src, n, count, (struct given){1, factor, kept}, s);
}

#endif
