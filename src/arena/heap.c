/* A piece of up to 3 KiB comes from a slab: 16 KiB, or a page where that is more, cut into places
 * of one of eleven sizes. A piece wastes less than half of its place, mostly less than a third. A
 * larger piece has pages of its own. One empty slab is kept, so a loop of alloc and free makes no
 * system call. All other freed pages go back to the system at once.
 * Cost: 50 ns for alloc and free of a small piece, 5 us for a page; 64 MiB take 8 ms in huge pages,
 *       20 ms without (os/memory_huge).
 *
 * Pages are populated and freed without the lock, while the books keep the piece from all others: a
 * comm's staging never waits for a gigabyte of pages. */
#include "arena/heap.h"

#include "os/memory.h"

#include <errno.h>
#include <stdlib.h>

enum { SLAB_LEAST = 16384, SLAB_MOST = 65536 };
enum { PLACE_LEAST = 64, WORDS = SLAB_MOST / PLACE_LEAST / 64 };

/* from this size on the system is asked first whether it has the memory */
#define ASK_FROM ((size_t)16 << 20)

static const uint16_t sizes[] = { 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072 };
enum { CLASSES = sizeof sizes / sizeof sizes[0], SMALL_MOST = 3072 };

struct slab {
    char *at;
    struct slab *next, *before;     /* slabs of its class with a free place; not linked when full */
    uint32_t class, places, used;
    uint64_t taken[WORDS];             /* a bit per place */
};

struct heap {
    struct span *span;
    struct arena arena;
    pthread_mutex_t *lock;
    struct slab *open[CLASSES];
    struct slab *empty;                /* one at most; of no class; NULL: none */
    struct heap_figures figures;
};

struct heap *heap_open(struct span *span, const struct arena *arena, pthread_mutex_t *lock)
{
    struct heap *heap = calloc(1, sizeof *heap);
    if (!heap)
        return NULL;
    heap->span = span;
    heap->arena = *arena;
    heap->lock = lock;
    return heap;
}

/* A full slab is on no list: only its pieces lead to it. */
void heap_close(struct heap *heap)
{
    if (!heap)
        return;
    struct span_piece piece;
    for (bool more = span_first(heap->span, &piece); more;
         more = span_find(heap->span, piece.at + piece.bytes, &piece))
        if (piece.use == SPAN_SLAB)
            free(piece.owner);
    free(heap);
}

/* Whole pages: a part of one does not go back to the system. */
static size_t slab_bytes(void)
{
    return memory_page() > SLAB_LEAST ? memory_page() : SLAB_LEAST;
}

static uint32_t class_of(size_t bytes)
{
    uint32_t class = 0;
    while (sizes[class] < bytes)
        class++;
    return class;
}

static void link_slab(struct heap *heap, struct slab *slab)
{
    slab->before = NULL;
    slab->next = heap->open[slab->class];
    if (slab->next)
        slab->next->before = slab;
    heap->open[slab->class] = slab;
}

static void unlink_slab(struct heap *heap, struct slab *slab)
{
    if (slab->next)
        slab->next->before = slab->before;
    if (slab->before)
        slab->before->next = slab->next;
    else
        heap->open[slab->class] = slab->next;
}

static void drop_empty(struct heap *heap)
{
    struct slab *slab = heap->empty;
    if (!slab)
        return;
    heap->empty = NULL;
    memory_release(arena_fd(&heap->arena), heap->arena.base, slab->at, slab_bytes());
    span_give(heap->span, slab->at);
    free(slab);
}

static struct slab *new_slab(struct heap *heap, uint32_t class, int *error)
{
    struct slab *slab = heap->empty;
    if (slab)
        heap->empty = NULL;
    else {
        *error = -ENOMEM;
        slab = malloc(sizeof *slab);
        char *at = slab ? span_reserve(heap->span, slab_bytes(), SPAN_SLAB, error) : NULL;
        if (at && (*error = memory_populate(at, slab_bytes())) < 0) {
            span_give(heap->span, at);
            at = NULL;
        }
        if (!at) {
            free(slab);
            return NULL;
        }
        span_mark(heap->span, at, SPAN_SLAB, slab);
        *slab = (struct slab){ .at = at };
    }
    slab->class = class;
    slab->places = (uint32_t)(slab_bytes() < SLAB_MOST ? slab_bytes() : SLAB_MOST) / sizes[class];
    link_slab(heap, slab);
    return slab;
}

static void *host_copy_alloc(struct heap *heap, size_t bytes, int *error)
{
    uint32_t class = class_of(bytes), word = 0;
    struct slab *slab = heap->open[class];
    if (!slab && !(slab = new_slab(heap, class, error)))
        return NULL;
    while (slab->taken[word] == UINT64_MAX)
        word++;
    uint32_t bit = (uint32_t)__builtin_ctzll(~slab->taken[word]);
    slab->taken[word] |= UINT64_C(1) << bit;
    if (++slab->used == slab->places)
        unlink_slab(heap, slab);
    return slab->at + (size_t)(word * 64 + bit) * sizes[class];
}

/* The place that ptr lies in, if it is taken; UINT32_MAX: none. */
static uint32_t place_of(const struct slab *slab, const void *ptr)
{
    uint32_t place = (uint32_t)((const char *)ptr - slab->at) / sizes[slab->class];
    return place < slab->places && (slab->taken[place / 64] >> place % 64 & 1) ? place : UINT32_MAX;
}

static int host_copy_free(struct heap *heap, struct slab *slab, const void *ptr)
{
    uint32_t place = place_of(slab, ptr);
    if (place == UINT32_MAX || slab->at + (size_t)place * sizes[slab->class] != ptr)
        return -EINVAL;
    slab->taken[place / 64] &= ~(UINT64_C(1) << place % 64);
    if (slab->used-- == slab->places)
        link_slab(heap, slab);
    if (slab->used > 0)
        return 0;
    unlink_slab(heap, slab);
    drop_empty(heap);
    heap->empty = slab;
    return 0;
}

static void *reserve(struct heap *heap, size_t bytes, int *error)
{
    void *at = span_reserve(heap->span, bytes, SPAN_GOING, error);
    if (!at && *error == -ENOSPC && heap->empty) {
        drop_empty(heap);
        at = span_reserve(heap->span, bytes, SPAN_GOING, error);
    }
    return at;
}

/* To populate more than there is would not fail: it would call the OOM killer. */
static int populate(void *at, size_t bytes, size_t *huge)
{
    *huge = 0;
    if (bytes >= ASK_FROM && bytes > memory_available())
        return -ENOMEM;
    return bytes >= MEMORY_HUGE_FROM ? memory_populate_huge(at, bytes, 0, huge)
                                     : memory_populate(at, bytes);
}

static void *pages_alloc(struct heap *heap, size_t bytes, bool bare, int *error)
{
    size_t huge = 0;
    pthread_mutex_lock(heap->lock);
    void *at = reserve(heap, bytes, error);
    pthread_mutex_unlock(heap->lock);
    if (!at)
        return NULL;
    int failed = !bare ? populate(at, bytes, &huge)
        : bytes >= ASK_FROM && bytes > memory_available() ? -ENOMEM
        : 0;
    if (failed)                                      /* some of it may be there */
        memory_release(arena_fd(&heap->arena), heap->arena.base, at,
                       layout_round(bytes, memory_page()));
    pthread_mutex_lock(heap->lock);
    if (failed)
        span_give(heap->span, at);
    else
        span_mark(heap->span, at, SPAN_CALLER, NULL);
    heap->figures.wished += !failed && !bare && bytes >= MEMORY_HUGE_FROM ? bytes : 0;
    heap->figures.huge += huge;
    pthread_mutex_unlock(heap->lock);
    *error = failed ? -ENOMEM : 0;
    return failed ? NULL : at;
}

void *heap_alloc(struct heap *heap, size_t bytes, int *error)
{
    *error = 0;
    if (bytes > SMALL_MOST)
        return pages_alloc(heap, bytes, false, error);
    pthread_mutex_lock(heap->lock);
    void *at = host_copy_alloc(heap, bytes, error);
    pthread_mutex_unlock(heap->lock);
    return at;
}

void *heap_alloc_bare(struct heap *heap, size_t bytes, int *error)
{
    *error = 0;
    return pages_alloc(heap, bytes, true, error);
}

int heap_free(struct heap *heap, void *ptr)
{
    struct span_piece piece;
    int error = -EINVAL;
    pthread_mutex_lock(heap->lock);
    bool found = span_find(heap->span, ptr, &piece);
    if (found && piece.use == SPAN_SLAB && piece.owner)
        error = host_copy_free(heap, piece.owner, ptr);
    bool whole = found && piece.use == SPAN_CALLER && piece.at == ptr;
    if (whole)
        span_mark(heap->span, ptr, SPAN_GOING, NULL);
    pthread_mutex_unlock(heap->lock);
    if (!whole)
        return error;
    memory_release(arena_fd(&heap->arena), heap->arena.base, ptr, piece.bytes);
    pthread_mutex_lock(heap->lock);
    span_give(heap->span, ptr);
    pthread_mutex_unlock(heap->lock);
    return 0;
}

bool heap_holds(struct heap *heap, const void *ptr)
{
    struct span_piece piece;
    pthread_mutex_lock(heap->lock);
    bool found = span_find(heap->span, ptr, &piece);
    found = found
        && (piece.use == SPAN_CALLER
            || (piece.use == SPAN_SLAB && piece.owner && place_of(piece.owner, ptr) != UINT32_MAX));
    pthread_mutex_unlock(heap->lock);
    return found;
}

struct heap_figures heap_figures(struct heap *heap)
{
    pthread_mutex_lock(heap->lock);
    struct heap_figures figures = heap->figures;
    pthread_mutex_unlock(heap->lock);
    return figures;
}
