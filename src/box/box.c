/* A file is made in memory and is small: the pages of an arena that say something are some hundred
 * KiB, and 16 MiB of comms are the most. What is zero is left out page by page.
 * Cost: a millisecond a MiB, most of it for the sum. */
#include "box/box.h"

#include "arena/offsets.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PARTS_MOST = 2 * BOX_MOST / PAGE };

/* ---- make ---- */

struct growing { char *at; size_t n, room; bool full; };

static char *grow(struct growing *g, size_t bytes)
{
    while (g->n + bytes > g->room && !g->full) {
        size_t room = g->room ? 2 * g->room : 1 << 18;
        char *more = room <= 2 * (size_t)BOX_MOST ? realloc(g->at, room) : NULL;
        g->full = !more;
        g->at = more ? more : g->at;
        g->room = more ? room : g->room;
    }
    if (g->full)
        return NULL;
    char *at = g->at + g->n;
    memset(at, 0, bytes);
    g->n += bytes;
    return at;
}

static void add_part(struct growing *g, enum box_kind kind, uint64_t place, const void *from,
                     size_t bytes)
{
    size_t whole = layout_round(bytes, BOX_ALIGN);
    char *at = grow(g, sizeof(struct box_part) + whole);
    if (!at)
        return;
    const struct box_part part = { .kind = kind, .bytes = whole, .place = place };
    memcpy(at, &part, sizeof part);
    memcpy(at + sizeof part, from, bytes);
}

static bool is_zero(const char *page)
{
    static const char zero[PAGE];
    return !memcmp(page, zero, PAGE);
}

/* Runs of pages that are not zero. from, bytes: whole pages. */
static void add_pages(struct growing *g, const char *base, uint64_t from, uint64_t bytes)
{
    for (uint64_t at = from, end = from + bytes; at < end;) {
        uint64_t first = at;
        while (at < end && !is_zero(base + at))
            at += PAGE;
        if (at > first)
            add_part(g, BOX_ARENA, first, base + first, at - first);
        else
            at += PAGE;
    }
}

static bool slot_used(const struct slot *slot)
{
    return load_relaxed32(&slot->state) == SLOT_USED;                /* relaxed: a private copy */
}

/* What a rank gives to others may stand in its arrival line. */
static void clear_payloads(const struct arena_copy *c)
{
    for (uint32_t i = 0; i < c->comms; i++) {
        struct slot *slot = arena_slot(&c->arena, i);
        uint32_t size = slot_used(slot) ? arena_slot_size(&c->arena, slot) : 0;
        for (uint32_t p = 0; p < 2 * size; p++) {
            struct arrival *a = &arena_member(slot, p / 2)->arrival[p % 2];
            for (int k = 0; k < PAYLOAD_WORDS; k++)
                store_relaxed64(&a->payload[k], 0);                  /* relaxed: as above */
        }
    }
}

/* Returns how many comms were left out. */
static uint32_t add_arena(struct growing *g, const struct arena_copy *c)
{
    const struct arena *arena = &c->arena;
    uint64_t left = BOX_COMMS;
    uint32_t left_out = c->left_out;
    clear_payloads(c);
    add_pages(g, arena->base, 0, arena->header->keys_at);
    for (uint32_t i = 0; i < c->comms; i++) {
        struct slot *slot = arena_slot(arena, i);
        uint32_t size = arena_slot_size(arena, slot);
        uint64_t at = (uint64_t)((char *)slot - arena->base), bytes = layout_slot_bytes(size);
        if (!slot_used(slot) || !size)
            continue;
        if (bytes > left) {
            left_out++;
            continue;
        }
        left -= bytes;
        add_pages(g, arena->base, at, bytes);
    }
    return left_out;
}

static void add_text(struct growing *g, enum box_kind kind, const char *s)
{
    add_part(g, kind, 0, s, strnlen(s, BOX_TEXT - 1) + 1);
}

int box_make(struct box_bytes *b, const struct box_contents *c)
{
    struct growing g = { 0 };
    struct box_head head = { .magic = BOX_MAGIC, .version = BOX_VERSION };
    *b = (struct box_bytes){ 0 };
    if (!grow(&g, sizeof head))
        return -ENOMEM;
    struct box_moment moment = c->moment;
    moment.left_out = add_arena(&g, c->copy);
    add_part(&g, BOX_MOMENT, 0, &moment, sizeof moment);
    add_part(&g, BOX_RANKS, 0, c->ranks, c->copy->arena.header->size * sizeof *c->ranks);
    add_text(&g, BOX_HOST, c->host);
    add_text(&g, BOX_REPORT, c->report);
    if (g.full) {
        free(g.at);
        return -ENOMEM;
    }
    head.bytes = g.n;
    head.sum = text_hash(g.at + sizeof head, g.n - sizeof head, BOX_VERSION);
    memcpy(g.at, &head, sizeof head);
    *b = (struct box_bytes){ g.at, g.n };
    return 0;
}

/* ---- read ---- */

static int damaged(struct text *why, const char *what)
{
    text_add(why, "it is damaged: %s", what);
    return -EINVAL;
}

static const struct box_part *part_at(const struct box *b, size_t at)
{
    return (const struct box_part *)(const void *)(b->bytes.at + at);
}

static int check_head(const struct box *b, struct text *why)
{
    struct box_head head;
    if (b->bytes.n < sizeof head.magic || memcmp(b->bytes.at, BOX_MAGIC, sizeof head.magic) != 0) {
        text_add(why, "it is no black box of tutti");
        return -EINVAL;
    }
    if (b->bytes.n < sizeof head)
        return damaged(why, "it has been cut off");
    memcpy(&head, b->bytes.at, sizeof head);
    if (head.version != BOX_VERSION) {
        text_add(why, "it is a black box of format %u, and this is tutti %s, which reads %d",
                 head.version, arena_version(), BOX_VERSION);
        return -EPROTO;
    }
    if (head.bytes != b->bytes.n)
        return damaged(why, head.bytes > b->bytes.n ? "it has been cut off" : "it is too long");
    if (head.sum != text_hash(b->bytes.at + sizeof head, b->bytes.n - sizeof head, BOX_VERSION))
        return damaged(why, "its sum is wrong");
    return 0;
}

/* A part's bytes lie behind it; false: it has no room for them, or is no part. */
static bool part_fits(const struct box *b, size_t at)
{
    if (b->bytes.n - at < sizeof(struct box_part))
        return false;
    const struct box_part *part = part_at(b, at);
    uint64_t unit = part->kind == BOX_ARENA ? PAGE : BOX_ALIGN;
    return part->bytes % unit == 0 && part->place % unit == 0
        && part->bytes <= b->bytes.n - at - sizeof *part;
}

static const char *part_text(const struct box_part *part)
{
    const char *s = (const char *)(part + 1);
    return memchr(s, 0, part->bytes) ? s : "";
}

static void take_part(struct box *b, const struct box_part *part)
{
    switch (part->kind) {
    case BOX_MOMENT:
        if (part->bytes >= sizeof *b->moment)
            b->moment = (const struct box_moment *)(const void *)(part + 1);
        break;
    case BOX_RANKS:
        b->ranks = (const struct box_rank *)(const void *)(part + 1);
        b->size = (uint32_t)(part->bytes / sizeof *b->ranks);
        break;
    case BOX_HOST: b->host = part_text(part); break;
    case BOX_REPORT: b->report = part_text(part); break;
    default: break;                      /* of the arena, or of a later tutti */
    }
}

int box_open(struct box *b, const struct box_bytes *bytes, struct text *why)
{
    *b = (struct box){ .bytes = *bytes, .host = "", .report = "" };
    int error = check_head(b, why), parts = 0;
    for (size_t at = sizeof(struct box_head); !error && at < b->bytes.n;) {
        if (++parts > PARTS_MOST || !part_fits(b, at))
            return damaged(why, "a part of it is none");
        take_part(b, part_at(b, at));
        at += sizeof(struct box_part) + part_at(b, at)->bytes;
    }
    if (!error && (!b->moment || !b->ranks))
        error = damaged(why, "its time or its ranks are missing");
    return error;
}

static int read_file(struct box_bytes *bytes, int fd, struct text *why)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (!S_ISREG(st.st_mode)) {
        text_add(why, "it is no file");
        return -EINVAL;
    }
    if (st.st_size > BOX_MOST) {
        text_add(why, "it is no black box of tutti: none has more than ");
        text_add_bytes(why, BOX_MOST);
        return -EFBIG;
    }
    bytes->at = malloc((size_t)st.st_size + 1);
    if (!bytes->at)
        return -ENOMEM;
    while (bytes->n < (size_t)st.st_size) {
        ssize_t got = read(fd, bytes->at + bytes->n, (size_t)st.st_size - bytes->n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;         /* shorter now: the head says so */
        bytes->n += (size_t)got;
    }
    return 0;
}

int box_read(struct box *b, const char *path, struct text *why)
{
    struct box_bytes bytes = { 0 };
    *b = (struct box){ .host = "", .report = "" };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int error = fd < 0 ? -errno : read_file(&bytes, fd, why);
    if (fd >= 0)
        close(fd);
    if (error && !why->used)
        text_add(why, "it cannot be read: %s", error_system(error));
    if (!error)
        error = box_open(b, &bytes, why);
    if (error) {
        free(bytes.at);
        *b = (struct box){ .host = "", .report = "" };
    }
    return error;
}

void box_drop(struct box *b)
{
    free(b->bytes.at);
    *b = (struct box){ .host = "", .report = "" };
}

static int read_arena(const struct arena_bytes *from, char *to, uint64_t at, uint64_t bytes)
{
    const struct box *b = from->held;
    memset(to, 0, bytes);
    for (size_t i = sizeof(struct box_head); i < b->bytes.n;) {
        const struct box_part *part = part_at(b, i);
        i += sizeof *part + part->bytes;
        if (part->kind != BOX_ARENA || part->place >= at + bytes
            || part->place + part->bytes <= at)
            continue;
        uint64_t first = part->place > at ? part->place : at;
        uint64_t end = part->place + part->bytes < at + bytes ? part->place + part->bytes
                                                              : at + bytes;
        memcpy(to + (first - at), (const char *)(part + 1) + (first - part->place), end - first);
    }
    return 0;
}

struct arena_bytes box_arena(const struct box *b)
{
    return (struct arena_bytes){ .read = read_arena, .bytes = b->moment->arena_bytes, .fd = -1,
                                 .held = b };
}
