/* Each field of a header is checked in a private copy: it may be damaged, or of another build. No
 * offset is trusted. All follow from four numbers, so they are computed again and compared: an
 * arena that passes has the layout that this library would have made.
 * Cost: a microsecond, once per joiner. */
#include "arena/offsets.h"

#include "os/own_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool ends(const char *s, size_t room) { return memchr(s, 0, room) != NULL; }

static int damaged(struct text *why, const char *what)
{
    text_add(why, "the arena is damaged: its header has a wrong %s", what);
    return -EINVAL;
}

static int check_places(const struct arena_header *h, uint64_t bytes, struct text *why)
{
    struct arena_places p;
    if (h->size < 1 || h->size > RANKS_MAX)
        return damaged(why, "number of ranks");
    if (arena_places(&p, h->size, h->slots, h->store_bytes, h->span_bytes) < 0)
        return damaged(why, "number of slots, store size or span size");
    if (h->seats_at != p.seats_at || h->sites_at != p.sites_at || h->keys_at != p.keys_at)
        return damaged(why, "place of the seats, sites or keys");
    if (h->slots_at != p.slots_at || h->slot_bytes != p.slot_bytes || h->store_at != p.store_at
        || h->spans_at != p.spans_at)
        return damaged(why, "place of the slots, store or spans");
    if (h->bytes != p.bytes || bytes != p.bytes)
        return damaged(why, "total size");
    return 0;
}

/* The command and the library of two installations: both are named. */
static int foreign(struct text *why)
{
    text_add(why, ": here it is ");
    own_file(why);
    text_add(why, ", and what started this process is ");
    program_file(why, getppid());
    text_add(why, "; let both be of one installation");
    return -EPROTO;
}

int arena_check(const struct arena_header *copy, uint64_t bytes, struct text *why)
{
    if (copy->magic != ARENA_MAGIC) {
        text_add(why, "the descriptor is no arena of tutti");
        return -EINVAL;
    }
    /* relaxed: a private copy; attach loads the shared word again by E10 */
    uint64_t hash = load_relaxed64(&copy->layout_hash);
    if (hash == 0) {
        text_add(why, "the arena was never finished by its creator");
        return -EINVAL;
    }
    if (hash != layout_hash()) {
        text_add(why,
                 "the arena was made by another build of tutti (layout %016llx, this one has "
                 "%016llx)",
                 (unsigned long long)hash, (unsigned long long)layout_hash());
        return foreign(why);
    }
    if (!ends(copy->version, sizeof copy->version))
        return damaged(why, "version");
    if (strcmp(copy->version, arena_version()) != 0) {
        text_add(why, "the arena was made by tutti %s, this is %s", copy->version, arena_version());
        return foreign(why);
    }
    if (!ends(copy->job, sizeof copy->job) || !ends(copy->rules, sizeof copy->rules))
        return damaged(why, "job name or rule string");
    return check_places(copy, bytes, why);
}
