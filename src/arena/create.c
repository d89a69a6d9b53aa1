/* The creator chooses the size, maps the arena, fills header, seats and lock, and stores the layout
 * hash last: with it the arena counts as whole.
 * A default span is halved until the address space has room for it, since that may be limited
 * (ulimit -v, a sanitizer, an emulator). A span size that the user gave is not changed.
 * Control pages, the store's first among them, are populated here: a lack of memory is an error now
 * and not a SIGBUS later.
 * Cost: some 100 us, nearly all of it for the pages in the kernel. */
#include "arena/cause.h"
#include "arena/offsets.h"
#include "arena/robust.h"
#include "arena/shared_map.h"

#include "base/error.h"
#include "os/memory.h"
#include "os/process.h"

#include <errno.h>
#include <string.h>
#include <tutti.h>
#include <unistd.h>

#define SPANS_TOTAL_MOST (UINT64_C(1) << 40)

/* Set by the build. */

_Static_assert(sizeof TUTTI_VERSION <= sizeof(((struct arena_header *)0)->version),
               "the version fits its field");

const char *arena_version(void) { return TUTTI_VERSION; }

static uint64_t span_default(uint32_t size)
{
    uint64_t span = memory_total() / 4, most = SPANS_TOTAL_MOST / size;
    span = span < most ? span : most;
    span = span / PLACES_SPAN_UNIT * PLACES_SPAN_UNIT;
    return span > PLACES_SPAN_LEAST ? span : PLACES_SPAN_LEAST;
}

struct wish {
    uint32_t size, slots;
    uint64_t store_bytes, span_bytes;
    bool span_asked, store_asked;
};

/* The system's text: ours for EPERM and EINVAL is about ranks and arguments. */
static void say_no_memory_file(int error, struct text *why)
{
    const char *remedy = "";
    if (error == -EAGAIN) {
        text_add(why,
                 "no arena could be mapped: the program locks all its memory (mlockall), up to its "
                 "limit: raise ulimit -l");
        return;
    }
    if (error == -EMFILE || error == -ENFILE)
        remedy = " (raise ulimit -n, or close some)";
    else if (error == -EPERM || error == -EACCES || error == -ENOSYS)
        remedy = " (a seccomp filter or container profile forbids it? allow memfd_create: tutti "
                 "cannot do without)";
    text_add(why, "no arena could be made: memfd_create: %s%s", error_system(-error), remedy);
}

static int try_map(struct arena *arena, const struct wish *wish)
{
    struct arena_places places;
    int error = arena_places(&places, wish->size, wish->slots, wish->store_bytes, wish->span_bytes);
    if (error)
        return error;
    int fd = memory_create(places.bytes);
    if (fd < 0)
        return fd;
    char *base = shared_map_take(fd, places.bytes, 0, &error);
    if (!base) {
        close(fd);
        return error;
    }
    *arena = (struct arena){ .base = base, .bytes = places.bytes, .fd = fd, .file = kept_of(fd) };
    return 0;
}

/* Halves the spans first, then the store, then, with very many ranks, the number of comms. */
static bool wish_less(struct wish *wish)
{
    if (!wish->span_asked && wish->span_bytes > PLACES_SPAN_LEAST) {
        uint64_t half = wish->span_bytes / 2 / PLACES_SPAN_UNIT * PLACES_SPAN_UNIT;
        wish->span_bytes = half > PLACES_SPAN_LEAST ? half : PLACES_SPAN_LEAST;
        return true;
    }
    if (!wish->store_asked && wish->store_bytes > PLACES_SPAN_UNIT) {
        wish->store_bytes /= 2;
        return true;
    }
    if (wish->slots > PLACES_SLOTS_LEAST) {
        wish->slots /= 2;
        return true;
    }
    return false;
}

static int map_by_wish(struct arena *arena, struct wish *wish, struct text *why)
{
    for (;;) {
        int error = try_map(arena, wish);
        if (error != -ENOMEM && error != -EFBIG && error != -ENOSPC) {
            if (error)
                say_no_memory_file(error, why);
            return error == -EAGAIN ? -ENOMEM : error;           /* callers retry on -EAGAIN */
        }
        if (!wish_less(wish)) {
            text_add(why, "no address space for an arena of %u ranks with ", wish->size);
            text_add_bytes(why, wish->span_bytes);
            text_add(why, " each%s",
                     error == -EFBIG ? " (the limit on file sizes, ulimit -f, counts here)"
                                     : " (ulimit -v?)");
            return error;
        }
    }
}

static void fill_header(struct arena_header *h, const struct arena_plan *plan,
                        const struct wish *wish)
{
    struct arena_places p;
    arena_places(&p, wish->size, wish->slots, wish->store_bytes, wish->span_bytes);
    h->magic = ARENA_MAGIC;
    h->bytes = p.bytes;
    h->size = wish->size;
    h->slots = wish->slots;
    h->seats_at = p.seats_at;
    h->sites_at = p.sites_at;
    h->keys_at = p.keys_at;
    h->slots_at = p.slots_at;
    h->slot_bytes = p.slot_bytes;
    h->store_at = p.store_at;
    h->store_bytes = wish->store_bytes;
    h->spans_at = p.spans_at;
    h->span_bytes = wish->span_bytes;
    h->origin = clock_now();
    h->origin.ns -= (uint64_t)process_clock_ahead();
    h->first_seq = plan->first_seq;
    h->verify = (uint32_t)plan->verify;
    h->uid = (uint32_t)geteuid();
    struct text job = TEXT_IN(h->job), version = TEXT_IN(h->version), rules = TEXT_IN(h->rules);
    text_add(&job, "%s", plan->job ? plan->job : "");
    text_add(&version, "%s", arena_version());
    text_add(&rules, "%s", plan->rules ? plan->rules : "");
    /* Unique by time and process; it must only differ from the births of arenas that are
     * there now. */
    uint64_t seed[3] = { h->origin.tick, h->origin.ns, (uint64_t)getpid() };
    h->birth = text_hash(seed, sizeof seed, (uint64_t)(uintptr_t)h) | 1;
}

static int fill(struct arena *arena, const struct arena_plan *plan, const struct wish *wish)
{
    int error = memory_populate(arena->base,
                                layout_round(PLACES_SEATS + wish->size * sizeof(struct seat),
                                             4096));
    if (error)
        return error;
    struct arena_header *h = (struct arena_header *)(void *)arena->base;
    fill_header(h, plan, wish);
    arena_point(arena);
    error = robust_init(&arena->join->lock);
    if (!error)
        error = memory_populate((void *)arena->store, sizeof *arena->store);
    if (!error)
        error = robust_init(&arena->store->lock);
    for (uint32_t i = 0; i < wish->size && !error; i++)
        error = process_mark_init(&arena->seats[i].mark);
    if (error)
        return error;
    cause_begin(arena);
    arena_dump(arena);
    store_release64(&h->layout_hash, layout_hash());           /* E10 release */
    return arena_own(arena, h);
}

static int check_plan(const struct arena_plan *plan, struct text *why)
{
    if (plan->size < 1 || plan->size > RANKS_MAX) {
        text_add(why, "a job of %d ranks: tutti has room for 1 to %d", plan->size, RANKS_MAX);
        return -EINVAL;
    }
    if (plan->rules && strlen(plan->rules) >= RULES_TEXT) {
        text_add(why, "the rule string has %zu characters, %d are the most", strlen(plan->rules),
                 RULES_TEXT - 1);
        return -EINVAL;
    }
    if (plan->span_bytes > PLACES_SPAN_MOST) {
        text_add(why, "a span of ");
        text_add_bytes(why, plan->span_bytes);
        text_add(why, " is beyond all address space");
        return -EINVAL;
    }
    if (plan->store_bytes > PLACES_STORE_MOST) {
        text_add(why, "a store of ");
        text_add_bytes(why, plan->store_bytes);
        text_add(why, ": ");
        text_add_bytes(why, PLACES_STORE_MOST);
        text_add(why, " is the most");
        return -EINVAL;
    }
    return 0;
}

int arena_create(struct arena *arena, const struct arena_plan *plan, struct text *why)
{
    *arena = (struct arena){ .fd = -1, .file = KEPT_NONE };
    int error = check_plan(plan, why);
    if (error)
        return error;
    struct wish wish = {
        .size = (uint32_t)plan->size, .slots = SLOTS_MAX, .span_asked = plan->span_bytes,
        .store_asked = plan->store_bytes
    };
    wish.store_bytes = wish.store_asked ? layout_round(plan->store_bytes, PLACES_SPAN_UNIT)
                                        : PLACES_STORE;
    wish.span_bytes = wish.span_asked ? layout_round(plan->span_bytes, PLACES_SPAN_UNIT)
                                      : span_default(wish.size);
    error = map_by_wish(arena, &wish, why);
    if (error)
        return error;
    error = fill(arena, plan, &wish);
    if (error) {
        text_add(why, "no memory for the arena's control pages: %s", error_text(error));
        arena_detach(arena);
    }
    return error;
}
