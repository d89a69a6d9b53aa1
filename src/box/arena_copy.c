/* The copy lies in memory as the arena does, offset by offset, so that whatever reads an arena can
 * read the copy, too. The header passes the check of a joiner first: so every place is computed,
 * none is believed, and what stands at a place is bounded by whoever reads it (arena_slot_size and
 * the like). pread of a page that nobody has written allocates none in the arena; a mapping would.
 * A rank may write its journal meanwhile: its head is read before the records and after them, and
 * what was written over is blotted out (E94), so the copy holds whole records alone.
 * Cost: some 20 us for header, seats and sites, 11 KiB and three reads a rank and comm; of a
 * job with very many comms the newest are left out. */
#include "box/arena_copy.h"

#include "arena/offsets.h"
#include "base/error.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPARSE_BYTES = 64 << 10 };

/* What is missing at the file's end stays zero. */
static int arena_bytes_all(const struct arena_bytes *from, char *to, uint64_t at, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t got = pread(from->fd, to + done, bytes - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;
        done += (uint64_t)got;
    }
    return 0;
}

/* Of a large piece only what has ever been written: most of the table of call sites is holes, which
 * stay zero in a copy that is. */
static int arena_bytes_pread(const struct arena_bytes *from, char *to, uint64_t at, uint64_t bytes)
{
    uint64_t end = at + bytes, begin = at;
    int error = 0;
    while (bytes >= SPARSE_BYTES && begin < end && !error) {
        off_t data = lseek(from->fd, (off_t)begin, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return 0;
        off_t hole = data < 0 ? -1 : lseek(from->fd, data, SEEK_HOLE);
        if (hole < 0)                                    /* no holes in this kind of file */
            return arena_bytes_all(from, to, at, bytes);
        uint64_t first = (uint64_t)data < end ? (uint64_t)data : end;
        begin = (uint64_t)hole < end ? (uint64_t)hole : end;
        error = arena_bytes_all(from, to + (first - at), first, begin - first);
    }
    return bytes < SPARSE_BYTES ? arena_bytes_all(from, to, at, bytes) : error;
}

int arena_bytes_of(struct arena_bytes *from, int fd, struct text *why)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_size < 0) {
        text_add(why, "its size cannot be read: %s", error_system(-errno));
        return -EIO;
    }
    *from = (struct arena_bytes){ .read = arena_bytes_pread, .bytes = (uint64_t)st.st_size,
                                  .fd = fd };
    return 0;
}

static int arena_copy_header(struct arena_header *copy, const struct arena_bytes *from,
                             struct text *why)
{
    int error = from->read(from, (char *)copy, 0, sizeof *copy);
    if (error) {
        text_add(why, "its header cannot be read: %s", error_system(error));
        return error;
    }
    return arena_check(copy, from->bytes, why);
}

static int arena_copy_read(struct arena_copy *g, const struct arena_bytes *from, uint64_t at,
                           uint64_t bytes)
{
    return from->read(from, g->arena.base + at, at, bytes);
}

static int arena_copy_head(struct arena_copy *g, const struct arena_bytes *from, struct member *m,
                           uint64_t *head)
{
    int error = arena_copy_read(g, from, (uint64_t)((char *)&m->head - g->arena.base),
                                sizeof m->head);
    *head = load_relaxed64(&m->head);                /* relaxed: a private copy */
    fence_full();                                    /* E94: between two looks */
    return error;
}

/* A rank with the records that are whole. One that writes very fast is read again. */
static int arena_copy_member(struct arena_copy *g, const struct arena_bytes *from,
                             struct member *m)
{
    enum { TRIES = 8, MOST = JOURNAL_RECORDS - 2 };
    uint64_t at = (uint64_t)((char *)m - g->arena.base), before = 0, after = MOST + 1;
    int error = 0;
    for (int i = 0; i < TRIES && !error && after - before > MOST; i++) {
        error = arena_copy_head(g, from, m, &before);
        if (!error)
            error = arena_copy_read(g, from, at, sizeof *m);
        fence_full();                                /* E94: between two looks */
        if (!error)
            error = arena_copy_head(g, from, m, &after);
    }
    store_relaxed64(&m->head, before);               /* relaxed: a private copy */
    for (uint64_t back = 0; back < JOURNAL_RECORDS; back++)
        if (after - before + back > MOST)
            /* relaxed: a private copy */
            store_relaxed64(&m->journal[(before - back) % JOURNAL_RECORDS].descriptor, 0);
    return error;
}

/* A comm's head and its members. */
static int arena_copy_slot(struct arena_copy *g, const struct arena_bytes *from, uint32_t index,
                           uint64_t *left)
{
    struct slot *slot = arena_slot(&g->arena, index);
    uint64_t at = (uint64_t)((char *)slot - g->arena.base);
    int error = arena_copy_read(g, from, at, layout_slot_head(g->arena.header->size));
    /* relaxed: a private copy */
    if (error || load_relaxed32(&slot->state) != SLOT_USED)
        return error;
    uint32_t size = arena_slot_size(&g->arena, slot);
    if (size * sizeof(struct member) > *left) {
        g->left_out++;
        slot->size = 0;
        return 0;
    }
    *left -= size * sizeof(struct member);
    for (uint32_t p = 0; p < size && !error; p++)
        error = arena_copy_member(g, from, arena_member(slot, p));
    return error;
}

static int arena_copy_fill(struct arena_copy *g, const struct arena_bytes *from, uint64_t most)
{
    const struct arena_header *h = g->arena.header;
    uint64_t left = most;
    int error = arena_copy_read(g, from, PLACES_JOIN, h->keys_at - PLACES_JOIN);
    /* relaxed: a private copy */
    uint32_t reached = load_relaxed32(&g->arena.join->reached);
    g->comms = reached < h->slots ? reached : h->slots;
    for (uint32_t i = 0; i < g->comms && !error; i++)
        error = arena_copy_slot(g, from, i, &left);
    return error;
}

int arena_copy_from(struct arena_copy *g, const struct arena_bytes *from, uint64_t most,
                    struct text *why)
{
    struct arena_header copy = { 0 };
    *g = (struct arena_copy){ .arena = { .fd = -1, .readonly = 1, .file = KEPT_NONE } };
    int error = arena_copy_header(&copy, from, why);
    if (error)
        return error;
    g->bytes = copy.store_at;
    char *base = mmap(NULL, g->bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        text_add(why, "there is no memory here for a copy of it: %s", error_system(-errno));
        g->bytes = 0;
        return -ENOMEM;
    }
    g->arena.base = base;
    g->arena.bytes = copy.bytes;
    g->arena.header = (struct arena_header *)(void *)base;
    *g->arena.header = copy;
    arena_point(&g->arena);
    error = arena_own(&g->arena, &copy);
    if (!error)
        error = arena_copy_fill(g, from, most);
    if (error) {
        text_add(why, "it cannot be read: %s", error_system(error));
        arena_copy_drop(g);
    }
    return error;
}

int arena_copy_take(struct arena_copy *g, int fd, struct text *why)
{
    struct arena_bytes from;
    int error = arena_bytes_of(&from, fd, why);
    *g = (struct arena_copy){ .arena = { .fd = -1, .file = KEPT_NONE } };
    return error ? error : arena_copy_from(g, &from, ARENA_COPY_MOST, why);
}

void arena_copy_drop(struct arena_copy *g)
{
    if (g->arena.header)
        arena_disown(&g->arena);
    if (g->bytes)
        munmap(g->arena.base, g->bytes);
    *g = (struct arena_copy){ .arena = { .fd = -1, .file = KEPT_NONE } };
}
