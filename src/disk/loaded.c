/* Holds are one bit per rank, so the hold of a dead rank is known and not waited for. The last rank
 * to give back is rarely the owner of the memory. The owner looks when it loads again, allocates in
 * vain, or gives back itself. If a load fails before a rank has come to it, that rank's hold stays
 * as long as it lives: it might still come.
 * Cost: a page a file; to give back takes the world's lock for microseconds. */
#include "disk/loaded.h"

#include "arena/heap.h"
#include "arena/nodes.h"
#include "os/memory.h"
#include "watch/death.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Entries of this rank: files that its caller has (data), and files in its own span (owned); of
 * these the memory policy before the load. */
struct loaded_file {
    struct loaded_file *next;
    const void *data;
    uint64_t at, bytes;
    bool owned;
    struct numa_policy before;
};

static uint64_t page_up(uint64_t bytes) { return layout_round(bytes, 4096); }
static uint64_t room_of(uint64_t bytes) { return page_up(bytes) + sizeof(struct loaded); }

static struct loaded *page_of(const struct world *world, uint64_t at, uint64_t bytes)
{
    return (struct loaded *)(void *)(world->arena.base + at + page_up(bytes));
}

struct loaded_file *loaded_book(void) { return calloc(1, sizeof(struct loaded_file)); }

static void list_add(struct world *world, struct loaded_file *new, struct loaded_file file)
{
    *new = file;
    pthread_mutex_lock(&world->lock);
    new->next = world->loaded;
    world->loaded = new;
    pthread_mutex_unlock(&world->lock);
}

static void give_back(struct world *world, const struct loaded_file *file)
{
    char *at = world->arena.base + file->at;
    nodes_unshare(at, room_of(file->bytes), &file->before);
    heap_free(world->heap, at);
}

void *loaded_room(struct world *world, size_t bytes, heap_take *take, int *error)
{
    void *at = take(world->heap, bytes, error);
    if (!at && loaded_reclaim(world))
        at = take(world->heap, bytes, error);
    if (!at && *error == -ENOSPC && death_seek(&world->whole->watch) && loaded_reclaim(world))
        at = take(world->heap, bytes, error);
    return at;
}

uint64_t loaded_make(struct tutti_comm *comm, uint64_t bytes, int *error)
{
    struct world *world = comm->world;
    char *at = loaded_room(world, room_of(bytes), heap_alloc_bare, error);
    if (!at)
        return 0;
    uint64_t offset = (uint64_t)(at - world->arena.base);
    struct loaded *page = page_of(world, offset, bytes);
    struct loaded_file file = { .at = offset, .bytes = bytes, .owned = true };
    nodes_share(&world->arena, at, room_of(bytes), &file.before);
    struct loaded_file *book = loaded_book();
    *error = book ? memory_populate(page, sizeof *page) : -ENOMEM;
    if (*error < 0) {
        free(book);
        give_back(world, &file);
        return 0;
    }
    memset((void *)page, 0, sizeof *page);           /* the span does not clear its pages */
    for (uint32_t p = 0; p < comm->watch.size; p++) {
        uint32_t rank = watch_world_rank(&comm->watch, p);
        fetch_or32(&page->held[rank / 32], UINT32_C(1) << rank % 32);   /* no peer knows it yet */
    }
    list_add(world, book, file);
    return offset;
}

bool loaded_there(const struct world *world, uint64_t at, uint64_t bytes)
{
    const struct arena *arena = &world->arena;
    if (at % 4096 || at < arena->header->spans_at || at >= arena->bytes || bytes > arena->bytes)
        return false;
    return room_of(bytes) <= arena->bytes - at;
}

void loaded_drop(struct world *world, uint64_t at, uint64_t bytes)
{
    struct loaded *page = page_of(world, at, bytes);
    /* E75 release */
    fetch_and32(&page->held[world->rank / 32], ~(UINT32_C(1) << world->rank % 32));
}

void loaded_give(struct world *world, struct loaded_file *book, const void *data, uint64_t at,
                 uint64_t bytes)
{
    list_add(world, book, (struct loaded_file){ .data = data, .at = at, .bytes = bytes });
}

/* Takes the entry out of the list. NULL: there is none. */
static struct loaded_file *list_take(struct world *world, const void *data)
{
    struct loaded_file **link = &world->loaded, *file;
    pthread_mutex_lock(&world->lock);
    while ((file = *link) != NULL && (file->owned || file->data != data))
        link = &file->next;
    if (file)
        *link = file->next;
    pthread_mutex_unlock(&world->lock);
    return file;
}

int loaded_free(struct world *world, const void *data)
{
    struct loaded_file *file = data ? list_take(world, data) : NULL;
    if (!file)
        return -EINVAL;
    loaded_drop(world, file->at, file->bytes);
    free(file);
    loaded_reclaim(world);
    return 0;
}

static bool is_held(const struct world *world, const struct loaded_file *file)
{
    const struct loaded *page = page_of(world, file->at, file->bytes);
    for (uint32_t rank = 0; rank < (uint32_t)world->size; rank++)
        if ((load_acquire32(&page->held[rank / 32]) >> rank % 32 & 1)           /* E75 acquire */
            && (rank == (uint32_t)world->rank || death_of(&world->arena.seats[rank]) == GONE_NO))
            return true;
    return false;
}

bool loaded_reclaim(struct world *world)
{
    struct loaded_file *given = NULL, **link = &world->loaded, *file;
    pthread_mutex_lock(&world->lock);
    while ((file = *link) != NULL)
        if (file->owned && !is_held(world, file)) {
            *link = file->next;
            file->next = given;
            given = file;
        } else
            link = &file->next;
    pthread_mutex_unlock(&world->lock);
    bool any = given;
    while ((file = given) != NULL) {
        given = file->next;
        give_back(world, file);
        free(file);
    }
    return any;
}

void loaded_close(struct world *world)
{
    struct loaded_file *file;
    while ((file = world->loaded) != NULL) {
        world->loaded = file->next;
        if (!file->owned)
            loaded_drop(world, file->at, file->bytes);
        free(file);
    }
}
