/* Memory in the arena: allocates it, registers the caller's, names it for peers. All functions are
 * local: no other rank takes part, nothing waits, no comm is entered. So they may run while another
 * thread is inside a collective. On a broken comm the functions that take memory (alloc, register)
 * are refused; those that give back or read still work.
 *
 * A handle is the offset in the arena, 48 bits, under 16 bits of a hash of it and of the arena's
 * birth: garbage and handles of other jobs are refused, except 1 in 65,536. */
#include "api/memory.h"

#include "engine/guard.h"
#include "engine/queue.h"
#include "arena/registered.h"
#include "arena/heap.h"
#include "arena/shared_map.h"
#include "base/error.h"
#include "disk/loaded.h"
#include "gpu/device_memory.h"
#include "group/place.h"
#include "os/caller.h"

#include <errno.h>
#include <stdio.h>

enum { HANDLE_BITS = 48 };
#define HANDLE_MASK ((UINT64_C(1) << HANDLE_BITS) - 1)

int memory_open(struct world *world)
{
    world->heap = heap_open(world->span, &world->arena, &world->lock);
    world->registered = registered_open(world->span, &world->arena, &world->lock);
    return world->heap && world->registered ? 0 : -ENOMEM;
}

void memory_close(struct world *world)
{
    if (world->registered)
        registered_all_out(world->registered);
    loaded_close(world);
    registered_close(world->registered);
    heap_close(world->heap);
    void *second = (void *)(uintptr_t)load_acquire64(&world->readonly_base);
    if (second)
        shared_map_give(second);
    world->registered = NULL;
    world->heap = NULL;
    store_release64(&world->readonly_base, 0);
}

int memory_enter(struct tutti_comm *comm, const char *name)
{
    if (!comm)
        return -EINVAL;
    if (*comm->fork_word == 1) {
        guard_aside(comm);
        return 0;
    }
    comm_explain(comm, "%s: this process is a fork of the rank, not the rank", name);
    return -ECHILD;
}

int memory_enter_whole(struct tutti_comm *comm, const char *name)
{
    int r = memory_enter(comm, name);
    if (r < 0 || !(load_acquire32(&comm->watch.attention) & ATTENTION_BROKEN))
        return r;
    comm_explain(comm,
                 "%s: the comm is broken by an earlier failure; take another comm of this world",
                 name);
    return -ECANCELED;
}

static void say_no_memory(struct tutti_comm *comm, size_t bytes, int error)
{
    char size[32], span[32];
    struct text s = TEXT_IN(size), room = TEXT_IN(span);
    text_add_bytes(&s, bytes);
    text_add_bytes(&room, comm->world->arena.header->span_bytes);
    if (error == -ENOSPC)
        comm_explain(comm,
                     "alloc: no place for %s in this rank's span of %s; raise TUTTI_SPAN_BYTES (or "
                     "options.span_bytes)",
                     size, span);
    else
        comm_explain(comm, "alloc: the system has no memory left for %s (RAM or cgroup limit)",
                     size);
}

void *tutti_alloc(size_t bytes, tutti_comm *comm)
{
    CALLER_KEPT;
    int error;
    if (memory_enter_whole(comm, "alloc") < 0)
        return NULL;
    void *at = loaded_room(comm->world, bytes, heap_alloc, &error);
    if (!at)
        say_no_memory(comm, bytes, error);
    return at;
}

int tutti_free(void *ptr, tutti_comm *comm)
{
    CALLER_KEPT;
    int r = memory_enter(comm, "free");
    if (r < 0)
        return r;
    r = heap_free(comm->world->heap, ptr);
    if (r < 0)
        r = loaded_free(comm->world, ptr);
    if (r < 0)
        comm_explain(comm,
                     "free: 0x%zx is not the beginning of memory that this rank has from "
                     "tutti_alloc or tutti_load and has not freed "
                     "yet",
                     (size_t)ptr);
    return r;
}

int tutti_register(void *ptr, size_t bytes, tutti_comm *comm)
{
    CALLER_KEPT;
    char said[256];
    struct text why = TEXT_IN(said);
    text_clear(&why);
    struct driver_pointer device;
    int r = memory_enter_whole(comm, "register");
    if (r < 0)
        return r;
    r = device_memory_is_device(ptr, &device, &why);
    if (r > 0)
        r = device_memory_register(comm->world, &device, bytes, &why);
    else if (r == 0)
        r = registered_in(comm->world->registered, ptr, bytes, &why);
    if (r < 0)
        comm_explain(comm, "register: %zu bytes at 0x%zx cannot become part of the arena: %s",
                     bytes, (size_t)ptr, said);
    return r;
}

static bool any_under_way(struct world *world)
{
    bool found = false;
    pthread_mutex_lock(&world->lock);
    for (struct tutti_comm *c = world->comms; c; c = c->next)
        found |= queue_under_way(c);
    pthread_mutex_unlock(&world->lock);
    return found;
}

int tutti_unregister(void *ptr, tutti_comm *comm)
{
    CALLER_KEPT;
    char said[256];
    struct text why = TEXT_IN(said);
    text_clear(&why);
    int r = memory_enter(comm, "unregister");
    if (r < 0)
        return r;
    if (any_under_way(comm->world)) {
        comm_explain(comm,
                     "unregister: work is under way on a comm of this world, which may use the "
                     "memory; wait for it first");
        return -EBUSY;
    }
    r = device_memory_is_registered(comm->world, ptr)
        ? device_memory_unregister(comm->world, ptr, &why)
        : registered_out(comm->world->registered, ptr, &why);
    if (r < 0)
        comm_explain(comm, "unregister: %s", said);
    return r;
}

/* ---- names ---- */

static uint64_t handle_make(const struct arena *arena, uint64_t offset)
{
    return offset | text_hash(&offset, sizeof offset, arena->header->birth) << HANDLE_BITS;
}

/* In this rank's own span, only memory that is handed out or registered may be named. For spans of
 * peers, this rank cannot check that. */
static bool is_named(struct world *world, uint64_t offset)
{
    char *at = world->arena.base + offset;
    struct span_piece piece;
    if (offset < world->arena.header->spans_at)
        return false;
    pthread_mutex_lock(&world->lock);
    bool own = span_find(world->span, at, &piece);
    pthread_mutex_unlock(&world->lock);
    return !own || piece.use == SPAN_ADOPTED || heap_holds(world->heap, at);
}

int tutti_handle(const void *ptr, uint64_t *handle, tutti_comm *comm)
{
    CALLER_KEPT;
    int r = memory_enter(comm, "handle");
    if (r < 0)
        return r;
    if (!handle) {
        comm_explain(comm, "handle: handle is NULL; give the address of a uint64_t");
        return -EINVAL;
    }
    struct place place = comm_place(comm, ptr, 1);
    if (place.lo == place.hi || !is_named(comm->world, place.at)) {
        comm_explain(comm,
                     "handle: 0x%zx is not in the arena: it is neither of tutti_alloc or "
                     "tutti_view, nor in the whole pages of registered memory",
                     (size_t)ptr);
        return -EINVAL;
    }
    *handle = handle_make(&comm->world->arena, place.at);
    return 0;
}

/* The offset. 0: refused, with a text. */
static uint64_t handle_open(struct tutti_comm *comm, uint64_t handle, const char *name)
{
    const struct arena *arena = &comm->world->arena;
    uint64_t offset = handle & HANDLE_MASK;
    if (offset >= arena->header->spans_at && offset < arena->bytes
        && handle == handle_make(arena, offset))
        return offset;
    comm_explain(comm, "%s: 0x%llx is no handle of this job", name, (unsigned long long)handle);
    return 0;
}

void *tutti_view(uint64_t handle, tutti_comm *comm)
{
    CALLER_KEPT;
    uint64_t offset = memory_enter(comm, "view") == 0 ? handle_open(comm, handle, "view") : 0;
    return offset ? comm->world->arena.base + offset : NULL;
}

const void *tutti_view_readonly(uint64_t handle, tutti_comm *comm)
{
    CALLER_KEPT;
    uint64_t offset = memory_enter(comm, "view_readonly") == 0
        ? handle_open(comm, handle, "view_readonly")
        : 0;
    int error = 0;
    const char *base = offset ? place_readonly(comm->world, &error) : NULL;
    if (offset && !base)
        comm_explain(comm, "view_readonly: the arena cannot be mapped a second time: %s",
                     error_text(error));
    return base ? base + offset : NULL;
}
