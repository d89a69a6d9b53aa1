/* For each chunk: the arena's pages are made present, the caller's bytes are copied in, and the
 * arena's pages are mapped over the private ones, which frees those. So a gigabyte takes one chunk
 * of extra memory. The kernel joins the chunks to one mapping. Large ranges get huge pages
 * (os/memory_huge). The way back is the same, with new private pages; it also repairs a failure
 * half-way.
 * Cost: a copy and the kernel's clearing of pages: 0.7 s a GiB, and 0.6 s back; a page takes 15 us
 *       both ways.
 *
 * The table is an array sorted by address. Its lock is never held for a copy. A range enters the
 * table first, still without shared bytes, so two threads cannot register the same memory.
 * Cost of a look-up: one load while nothing is registered, else a lock and a binary search. */
#include "arena/registered.h"

#include "os/maps.h"
#include "os/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct range {
    uintptr_t from, to;                /* the caller's */
    uintptr_t lo, hi;                  /* the whole pages in it that are shared; lo == hi: none */
    uint64_t at;                       /* offset of lo in the arena */
    char *piece;                       /* of the span; NULL: none */
    bool moving;                       /* a thread is changing its mapping */
};

struct registered {
    struct span *span;
    struct arena arena;
    pthread_mutex_t *lock;
    pthread_mutex_t table_lock;
    shared32 count;
    struct range *ranges;              /* [ADOPT_MOST], by `from`; under table_lock */
};

struct registered *registered_open(struct span *span, const struct arena *arena,
                                   pthread_mutex_t *lock)
{
    struct registered *registered = calloc(1, sizeof *registered);
    struct range *ranges = calloc(ADOPT_MOST, sizeof *ranges);
    if (!registered || !ranges) {
        free(registered);
        free(ranges);
        return NULL;
    }
    registered->span = span;
    registered->arena = *arena;
    registered->lock = lock;
    registered->ranges = ranges;
    pthread_mutex_init(&registered->table_lock, NULL);
    return registered;
}

void registered_close(struct registered *registered)
{
    if (!registered)
        return;
    pthread_mutex_destroy(&registered->table_lock);
    free(registered->ranges);
    free(registered);
}

/* ---- the table; under table_lock ---- */

static uint32_t count_of(const struct registered *registered)
{
    /* relaxed: all writers hold the lock that we hold */
    return load_relaxed32(&registered->count);
}

/* The first range that ends above the address. */
static uint32_t first_behind(const struct registered *registered, uintptr_t at)
{
    uint32_t low = 0, high = count_of(registered);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (registered->ranges[middle].to <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct range *range_from(struct registered *registered, uintptr_t from)
{
    uint32_t i = first_behind(registered, from);
    return i < count_of(registered) && registered->ranges[i].from == from ? &registered->ranges[i]
                                                                          : NULL;
}

static int table_add(struct registered *registered, const struct range *range, struct text *why)
{
    uint32_t n = count_of(registered), i = first_behind(registered, range->from);
    if (i < n && registered->ranges[i].from < range->to) {
        text_add(why, "it overlaps memory that is registered already: %zu bytes at 0x%zx",
                 (size_t)(registered->ranges[i].to - registered->ranges[i].from),
                 (size_t)registered->ranges[i].from);
        return -EINVAL;
    }
    if (n == ADOPT_MOST) {
        text_add(why, "%d ranges are registered, which is the most", ADOPT_MOST);
        return -ENOSPC;
    }
    memmove(&registered->ranges[i + 1], &registered->ranges[i], (n - i) * sizeof *range);
    registered->ranges[i] = *range;
    store_release32(&registered->count, n + 1);
    return 0;
}

/* Updates the range in the table, or takes it out. */
static void table_set(struct registered *registered, const struct range *range, bool keep)
{
    pthread_mutex_lock(&registered->table_lock);
    struct range *r = range_from(registered, range->from);
    if (r && keep) {
        *r = *range;
        r->moving = false;
    } else if (r) {
        uint32_t n = count_of(registered) - 1, i = (uint32_t)(r - registered->ranges);
        memmove(r, r + 1, (n - i) * sizeof *r);
        store_release32(&registered->count, n);
    }
    pthread_mutex_unlock(&registered->table_lock);
}

/* ---- the memory ---- */

/* Chunks end on multiples of their size, so no huge page is split. */
static size_t chunk_of(uintptr_t from, uintptr_t to)
{
    size_t bytes = ADOPT_CHUNK - from % ADOPT_CHUNK;
    return to - from < bytes ? to - from : bytes;
}

static void piece_back(struct registered *registered, struct range *r)
{
    if (!r->piece)
        return;
    pthread_mutex_lock(registered->lock);
    span_give(registered->span, r->piece);
    pthread_mutex_unlock(registered->lock);
    r->piece = NULL;
}

/* Makes chunks private again and raises lo. A chunk without memory for private pages stays shared.
 * */
static int back(struct registered *registered, struct range *r)
{
    while (r->lo < r->hi) {
        size_t bytes = chunk_of(r->lo, r->hi);
        char *here = (char *)r->lo, *there = registered->arena.base + r->at;
        int error = memory_private_over(here, bytes);
        if (error)
            return error;
        error = memory_populate(here, bytes);
        if (error) {
            memory_map_over(arena_fd(&registered->arena), registered->arena.base, r->at, here,
                            bytes);
            return error;
        }
        memcpy(here, there, bytes);
        memory_release(arena_fd(&registered->arena), registered->arena.base, there, bytes);
        r->lo += bytes;
        r->at += bytes;
    }
    piece_back(registered, r);
    return 0;
}

/* Makes chunks from lo to hi shared. After a failure hi is the end of the shared ones. */
static int over(struct registered *registered, struct range *r)
{
    uintptr_t at = r->lo, end = r->hi;
    uint64_t offset = r->at;
    bool large = end - at >= MEMORY_HUGE_FROM;
    int error = 0;
    r->hi = r->lo;
    while (at < end && !error) {
        size_t bytes = chunk_of(at, end), huge;
        char *here = (char *)at, *there = registered->arena.base + offset;
        error = large ? memory_populate_huge(there, bytes, 0, &huge)
                      : memory_populate(there, bytes);
        if (!error) {
            memcpy(there, here, bytes);
            error = memory_map_over(arena_fd(&registered->arena), registered->arena.base, offset,
                                    here, bytes);
        }
        if (error) {
            memory_release(arena_fd(&registered->arena), registered->arena.base, there, bytes);
            break;
        }
        /* the pages are there: this only spares the caller page faults, and may fail */
        memory_populate(here, bytes);
        at += bytes;
        offset += bytes;
        r->hi = at;
    }
    return error;
}

/* A huge page is mapped as one only if address and offset are congruent modulo its size. So a large
   range gets a congruent offset, if the span has one. */
static int piece_find(struct registered *registered, struct range *r)
{
    int error;
    uint64_t bytes = r->hi - r->lo, lead = bytes >= MEMORY_HUGE_FROM ? r->lo % MEMORY_HUGE_PAGE : 0;
    pthread_mutex_lock(registered->lock);
    r->piece = span_reserve(registered->span, lead + bytes, SPAN_ADOPTED, &error);
    if (!r->piece && lead) {
        lead = 0;
        r->piece = span_reserve(registered->span, bytes, SPAN_ADOPTED, &error);
    }
    pthread_mutex_unlock(registered->lock);
    if (r->piece)
        r->at = (uint64_t)(r->piece - registered->arena.base) + lead;
    return error;
}

static int share(struct registered *registered, struct range *r, struct text *why)
{
    int error = piece_find(registered, r);
    if (!r->piece) {
        r->hi = r->lo;
        text_add(why,
                 error == -ENOSPC ? "the span has no place for it; raise TUTTI_SPAN_BYTES"
                                  : "no memory for the books");
        return error;
    }
    error = over(registered, r);
    if (!error)
        return 0;
    text_add(why, "the system has no memory (or no mappings) for it");
    if (back(registered, r) != 0)
        text_add(why,
                 ", nor for taking all of it back: what was shared stays so, and valid, until "
                 "tutti_unregister");
    return error;
}

static bool in_arena(const struct arena *arena, uintptr_t from, uintptr_t to)
{
    return from < (uintptr_t)arena->base + arena->bytes && to > (uintptr_t)arena->base;
}

static int check(const struct registered *registered, uintptr_t from, size_t bytes,
                 struct text *why)
{
    uintptr_t to = from + bytes;
    if (from == 0 || bytes == 0 || to < from) {
        text_add(why,
                 from == 0 ? "ptr is NULL"
                     : bytes == 0 ? "0 bytes"
                     : "it reaches beyond the end of all addresses");
        return -EINVAL;
    }
    if (in_arena(&registered->arena, from, to)) {
        text_add(why, "it lies in the arena already, and needs no registering");
        return -EINVAL;
    }
    return 0;
}

int registered_in(struct registered *registered, void *ptr, size_t bytes, struct text *why)
{
    uintptr_t from = (uintptr_t)ptr, to = from + bytes, page = memory_page();
    int error = check(registered, from, bytes, why);
    if (error)
        return error;
    struct range r = { .from = from, .to = to, .moving = true };
    pthread_mutex_lock(&registered->table_lock);
    error = table_add(registered, &r, why);
    pthread_mutex_unlock(&registered->table_lock);
    if (error)
        return error;
    r.lo = (from + page - 1) / page * page;
    r.hi = to / page * page;
    r.hi = r.hi > r.lo ? r.hi : r.lo;
    error = maps_ordinary(ptr, bytes, why);
    if (error)
        r.hi = r.lo;
    else if (r.lo < r.hi)
        error = share(registered, &r, why);
    table_set(registered, &r, !error || r.lo < r.hi);
    return error;
}

int registered_out(struct registered *registered, void *ptr, struct text *why)
{
    pthread_mutex_lock(&registered->table_lock);
    struct range *found = range_from(registered, (uintptr_t)ptr), r = { 0 };
    bool mine = found && !found->moving;
    if (mine) {
        r = *found;
        found->hi = found->lo;                       /* look-ups do not find it any more */
        found->moving = true;
    }
    pthread_mutex_unlock(&registered->table_lock);
    if (!mine) {
        text_add(why, "no registered memory begins at 0x%zx%s", (size_t)ptr,
                 found ? " (another thread is at it)" : "");
        return -EINVAL;
    }
    int error = back(registered, &r);
    if (error)
        text_add(why,
                 "no private memory for %zu of its bytes, which stay shared: free some and call "
                 "again",
                 (size_t)(r.hi - r.lo));
    table_set(registered, &r, error != 0);
    return error;
}

void registered_all_out(struct registered *registered)
{
    for (uint32_t i = 0; i < count_of(registered); i++)
        back(registered, &registered->ranges[i]);
    store_release32(&registered->count, 0);
}

bool registered_find(struct registered *registered, const void *ptr, size_t bytes, uint64_t *at,
                     size_t *lo, size_t *hi)
{
    uintptr_t from = (uintptr_t)ptr, to = from + bytes;
    size_t longest = 0;
    if (load_acquire32(&registered->count) == 0)
        return false;
    pthread_mutex_lock(&registered->table_lock);
    for (uint32_t i = first_behind(registered, from);
         i < count_of(registered) && registered->ranges[i].from < to; i++) {
        const struct range *r = &registered->ranges[i];
        uintptr_t begin = r->lo > from ? r->lo : from, end = r->hi < to ? r->hi : to;
        if (begin >= end || end - begin <= longest)
            continue;
        longest = end - begin;
        *lo = begin - from;
        *hi = end - from;
        *at = r->at + (begin - r->lo);
    }
    pthread_mutex_unlock(&registered->table_lock);
    return longest > 0;
}
