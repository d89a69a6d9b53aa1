/* The header is read by pread into private memory and checked there before the map: so a wrong
 * descriptor or a damaged arena does no harm. After the map the shared header must be the same.
 * From then on the checked copy is the header: a peer that writes over the shared one changes
 * nothing here.
 * Cost: a map; one more reference if a rank of this process has mapped the arena already. */
#include "arena/offsets.h"
#include "arena/shared_map.h"

#include "base/error.h"
#include "os/memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int read_header(int fd, struct arena_header *copy, uint64_t *bytes, struct text *why)
{
    if (memory_check(fd, bytes) < 0) {
        text_add(why, "the descriptor is no sealed memory of tutti");
        return -EINVAL;
    }
    ssize_t got = pread(fd, copy, sizeof *copy, 0);
    if (got != (ssize_t)sizeof *copy) {
        text_add(why,
                 got < 0 ? "the arena's header cannot be read: %s"
                         : "the arena is shorter than its header%s",
                 got < 0 ? error_text(-errno) : "");
        return -EINVAL;
    }
    return arena_check(copy, *bytes, why);
}

static int attach(struct arena *arena, int fd, int readonly, struct text *why)
{
    struct arena_header copy;
    uint64_t bytes;
    int error;
    *arena = (struct arena){ .fd = -1, .file = KEPT_NONE };
    error = read_header(fd, &copy, &bytes, why);
    if (error)
        return error;
    char *base = shared_map_take(fd, bytes, readonly, &error);
    if (!base) {
        text_add(why, "the arena of ");
        text_add_bytes(why, bytes);
        text_add(why, " cannot be mapped: %s%s", error_text(error),
                 error == -ENOMEM ? " (ulimit -v? a smaller TUTTI_SPAN_BYTES makes it smaller)"
                     : error == -EAGAIN ? " (the program locks all its memory, mlockall, up to its "
                                          "limit: raise ulimit -l)"
                                        : "");
        return error == -EAGAIN ? -ENOMEM : error;           /* callers retry on -EAGAIN */
    }
    struct arena_header *header = (struct arena_header *)(void *)base;
    /* E10 acquire */
    /* relaxed: a private copy, which arena_check has passed */
    if (load_acquire64(&header->layout_hash) != load_relaxed64(&copy.layout_hash)
        || memcmp(header, &copy, sizeof copy) != 0) {
        text_add(why, "the arena's header changes while it is read");
        shared_map_give(base);
        return -EINVAL;
    }
    *arena = (struct arena){
        .base = base, .bytes = bytes, .fd = fd, .file = kept_of(fd), .readonly = readonly
    };
    arena_point(arena);
    error = arena_own(arena, &copy);
    if (error) {
        text_add(why, "no memory for a copy of the arena's header");
        shared_map_give(base);
        *arena = (struct arena){ .fd = -1, .file = KEPT_NONE };
    }
    return error;
}

/* The creator has made the pages present. To populate them here, too, spares the first operation
 * page faults. */
int arena_attach(struct arena *arena, int fd, struct text *why)
{
    int error = attach(arena, fd, 0, why);
    if (error)
        return error;
    error = memory_populate(arena->base, arena->header->sites_at);
    if (error) {
        text_add(why, "no memory for the arena's control pages: %s", error_text(error));
        arena_disown(arena);
        shared_map_give(arena->base);
        *arena = (struct arena){ .fd = -1, .file = KEPT_NONE };
        return error;
    }
    arena_dump(arena);
    return 0;
}

int arena_attach_readonly(struct arena *arena, int fd, struct text *why)
{
    return attach(arena, fd, 1, why);
}

void arena_detach(struct arena *arena)
{
    arena_disown(arena);
    if (arena->base)
        shared_map_give(arena->base);
    if (arena->fd >= 0)
        kept_close(&arena->file);
    *arena = (struct arena){ .fd = -1, .file = KEPT_NONE };
}
