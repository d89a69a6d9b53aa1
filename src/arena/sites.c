/* Call sites are strings of one process. Peers and tools read them as text in the arena, by a
 * number that an operation carries. A table with open addressing and no lock: an entry is claimed
 * by CAS, filled, and published by its hash.
 *
 *   claim 0, hash 0    free
 *   claim 1, hash 0    being filled, or a hole left by a filler that died
 *   claim 1, hash h    whole for ever
 *
 * A text gets two numbers only if its first filler is delayed for more than PATIENCE_NS between
 * claim and hash. That does no harm: numbers become text, and ranks never compare them.
 * Cost of a known site: one hash and one comparison of up to 119 characters; callers keep the
 * number. */
#include "arena/offsets.h"

#include "base/clock.h"

#include <string.h>

enum { PATIENCE_NS = 1000000 };

static uint32_t site_hash(const char *text, size_t n)
{
    uint64_t h = text_hash(text, n, 0);
    uint32_t folded = (uint32_t)(h ^ h >> 32);
    return folded ? folded : 1;
}

enum found { FOUND_FREE, FOUND_OTHER, FOUND_SAME, FOUND_UNFINISHED };

static enum found site_look(const struct site *site, uint32_t hash, const char *text, size_t n)
{
    uint32_t there = load_acquire32(&site->hash);                /* E13 acquire */
    if (there == 0)
        return load_acquire32(&site->claim) ? FOUND_UNFINISHED : FOUND_FREE;
    return there == hash && memcmp(site->text, text, n + 1) == 0 ? FOUND_SAME : FOUND_OTHER;
}

/* Waits PATIENCE_NS for a filler; after that the entry counts as a hole. */
static enum found site_look_patiently(const struct site *site, uint32_t hash, const char *text,
                                      size_t n)
{
    enum found found = site_look(site, hash, text, n);
    if (found != FOUND_UNFINISHED)
        return found;
    for (uint64_t end = clock_ns() + PATIENCE_NS; found == FOUND_UNFINISHED && clock_ns() < end;) {
        cpu_pause();
        found = site_look(site, hash, text, n);
    }
    return found;
}

/* The first pass does not wait: holes do not delay a site that is there. */
static uint32_t site_find(const struct site *sites, uint32_t hash, const char *text, size_t n)
{
    for (uint32_t i = 0; i < SITES_MAX; i++) {
        uint32_t at = (hash + i) % SITES_MAX;
        enum found found = site_look(&sites[at], hash, text, n);
        if (found == FOUND_SAME)
            return at + 1;
        if (found == FOUND_FREE)
            return 0;
    }
    return 0;
}

static uint32_t site_add(struct site *sites, uint32_t hash, const char *text, size_t n)
{
    for (uint32_t i = 0; i < SITES_MAX; i++) {
        uint32_t at = (hash + i) % SITES_MAX, free_claim = 0;
        struct site *site = &sites[at];
        enum found found = site_look_patiently(site, hash, text, n);
        if (found == FOUND_FREE && swap_if32(&site->claim, &free_claim, 1)) {
            memcpy(site->text, text, n + 1);
            store_release32(&site->hash, hash);                  /* E13 release */
            return at + 1;
        }
        if (found == FOUND_FREE)            /* another filler was faster, maybe with this text */
            found = site_look_patiently(site, hash, text, n);
        if (found == FOUND_SAME)
            return at + 1;
    }
    return 0;
}

uint32_t arena_site(const struct arena *arena, const char *site)
{
    char text[SITE_TEXT];
    if (!site)
        return 0;
    size_t whole = strlen(site), n = whole < SITE_TEXT ? whole : SITE_TEXT - 1;
    memcpy(text, site + whole - n, n);      /* the tail: the file's name and the line are there */
    text[n] = 0;
    uint32_t hash = site_hash(text, n);
    uint32_t number = site_find(arena->sites, hash, text, n);
    if (number || arena->readonly)
        return number;
    return site_add(arena->sites, hash, text, n);
}

const char *arena_site_text(const struct arena *arena, uint32_t number)
{
    if (number < 1 || number > SITES_MAX)
        return "?";
    const struct site *site = &arena->sites[number - 1];
    if (load_acquire32(&site->hash) == 0 || !memchr(site->text, 0, SITE_TEXT))     /* E13 acquire */
        return "?";
    return site->text;
}
