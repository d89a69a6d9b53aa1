/* Words as the ranks see them. In memory stand the values that are out; a store may wait in its
 * actor's buffer, oldest first, until a fence, a swap, a kernel call, or until it is let out. With
 * MEMORY_WEAK a relaxed store may overtake, and a relaxed load may give what stood there at any
 * moment since the reader's last acquire.
 *
 * An access is a point only if the word is used by two actors and written by one: all others
 * commute with everything. Which words those are is known from earlier runs; a search is made again
 * until it finds no new one. */
#include "explore/engine.h"

#include "watch/watch.h"

#include <stdio.h>
#include <string.h>

enum { TABLE = 1 << 16, HISTORY = 4096 };

/* version: of each half, which store it is of; of this run, if `run` is. */
static struct entry {
    uintptr_t key;
    uint16_t readers, writers;
    bool visible;
    int8_t writer;
    uint64_t run, version[2];
} table[TABLE];
static int shared_words, fresh;

/* a value, and at which write it was gone */
static struct { uintptr_t at; uint64_t value, over; int by; } history[HISTORY];
static int remembered;

bool explore_trace;

/* Where a word is, for people. */
void words_trace(const char *what, const void *word, uint64_t value)
{
    const struct tutti_comm *world = explore_world[0];
    const char *at = word, *slot = (const char *)world->watch.slot,
               *seats = (const char *)world->world->arena.seats;
    if (!explore_trace)
        return;
    printf("    actor %d %s ", engine.now_on, what);
    for (uint32_t p = 0; p < world->watch.size; p++) {
        const char *member = (const char *)&world->watch.members[p];
        if (at >= member && at < member + sizeof(struct member)) {
            printf("member %u + %d", p, (int)(at - member));
            at = NULL;
        }
    }
    if (at >= slot && at < slot + 4096)
        printf("slot + %d", (int)(at - slot));
    else if (at >= seats && at < seats + 4 * sizeof(struct seat))
        printf("seat %d + %d", (int)(at - seats) / (int)sizeof(struct seat),
               (int)((size_t)(at - seats) % sizeof(struct seat)));
    else if (at)
        printf("%p", (const void *)at);
    printf(" = %llx\n", (unsigned long long)value);
}

static struct entry *entry_of(const void *word)
{
    uintptr_t key = (uintptr_t)word >> 3;
    for (uint64_t i = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 48;; i = (i + 1) % TABLE) {
        struct entry *e = &table[i];
        if (e->key == key)
            return e;
        if (!e->key) {
            e->key = key;
            return e;
        }
    }
}

static bool entry_shared(const struct entry *e)
{
    unsigned users = e->readers | e->writers;
    return e->writers && (users & (users - 1));
}

bool words_visible(const void *word, int actor, bool write)
{
    struct entry *e = entry_of(word);
    uint16_t bit = (uint16_t)(1u << actor);
    if (!(e->readers & bit) || (write && !(e->writers & bit))) {
        e->readers |= bit;
        e->writers |= write ? bit : 0;
        fresh |= !e->visible && entry_shared(e);
    }
    return e->visible;
}

void words_declare(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8)
        *entry_of((const char *)at + i) = (struct entry){
            .key = ((uintptr_t)at + i) >> 3, .readers = 0x7fff, .writers = 0x7fff, .visible = true
        };
}

void words_begin(void) { remembered = 0; }

bool words_learn(void)
{
    bool had = fresh;
    for (int i = 0; had && i < TABLE; i++)
        if (!table[i].visible && entry_shared(&table[i])) {
            table[i].visible = true;
            shared_words++;
        }
    fresh = false;
    return had;
}

int words_shared(void) { return shared_words; }

int words_writer(const void *word)
{
    const struct entry *e = entry_of(word);
    return e->run == engine.runs + 1 ? e->writer : -1;
}

static struct entry *entry_of_run(const void *word)
{
    struct entry *e = entry_of(word);
    if (e->run != engine.runs + 1) {
        e->run = engine.runs + 1;
        e->version[0] = e->version[1] = 0;
        e->writer = -1;
    }
    return e;
}

void words_wrote(const void *word, int actor) { entry_of_run(word)->writer = (int8_t)actor; }

uint64_t words_version(const void *word, int bytes)
{
    const struct entry *e = entry_of_run(word);
    return bytes == 8 ? seen_mix(e->version[0], e->version[1])
                      : e->version[(uintptr_t)word >> 2 & 1];
}

void words_became(const void *word, int bytes, uint64_t by)
{
    struct entry *e = entry_of_run(word);
    for (unsigned i = 0; i < 2; i++)
        if (bytes == 8 || i == ((uintptr_t)word >> 2 & 1)) {
            seen_memory(seen_mix(e->key * 2 + i, e->version[i]), seen_mix(e->key * 2 + i, by));
            e->version[i] = by;
        }
}

/* ---- memory ---- */

static uint64_t get(const void *word, int bytes)
{
    uint32_t half;
    uint64_t whole;
    if (bytes == 8) {
        memcpy(&whole, word, 8);
        return whole;
    }
    memcpy(&half, word, 4);
    return half;
}

static void put(void *word, uint64_t value, int bytes, int actor, uint64_t by)
{
    uint32_t half = (uint32_t)value;
    if (engine.scenario->memory == MEMORY_WEAK && remembered < HISTORY) {
        history[remembered].at = (uintptr_t)word;
        history[remembered].value = get(word, bytes);
        history[remembered].by = actor;
        history[remembered++].over = ++engine.writes;
    }
    if (bytes == 8)
        memcpy(word, &value, 8);
    else
        memcpy(word, &half, 4);
    words_wrote(word, actor);
    words_became(word, bytes, by);
}

/* ---- the buffer ---- */

static void out(struct actor *a, int i)
{
    struct buffered b = a->buffer[i];
    memmove(&a->buffer[i], &a->buffer[i + 1], (size_t)(a->stores - i - 1) * sizeof b);
    a->stores--;
    put(b.word, b.value, b.bytes, (int)(a - engine.actor), b.by);
}

void words_drain(struct actor *a)
{
    while (a->stores)
        out(a, 0);
}

static int buffered(const struct actor *a, const void *word)
{
    for (int i = a->stores - 1; i >= 0; i--)
        if (a->buffer[i].word == word)
            return i;
    return -1;
}

static void buffer(struct actor *a, void *word, uint64_t value, int bytes)
{
    if (a->stores == BUFFER_MOST)
        words_drain(a);
    a->buffer[a->stores++] = (struct buffered){ word, value, a->heard, bytes };
}

uint32_t words_kernel_load(const shared32 *word)
{
    const struct actor *a = &engine.actor[engine.now_on];
    int i = buffered(a, word);
    seen_heard(&engine.actor[engine.now_on], i >= 0 ? a->buffer[i].by : words_version(word, 4));
    return i >= 0 ? (uint32_t)a->buffer[i].value : (uint32_t)get(word, 4);
}

/* Plain stores are at once: where one follows a store to the same place, that comes out before. */
void explore_plainly(const void *at, size_t bytes)
{
    struct actor *a = &engine.actor[engine.now_on];
    const char *from = at;
    for (int i = 0; engine.running && i < a->stores; i++) {
        const char *word = a->buffer[i].word;
        if (word + a->buffer[i].bytes > from && word < from + bytes)
            words_drain(a);
    }
}

/* ---- the accesses ---- */

static struct actor *me(void) { return &engine.actor[engine.now_on]; }

/* Is there room for one oddity more? They count as preemptions do. */
static bool odd_room(void)
{
    return engine.preempted < (engine.events ? engine.limit_event : engine.limit);
}

static bool oddity(void)
{
    static const struct option two[2] = { { EVENT_GO, 0 }, { EVENT_FLUSH, 255 } };
    if (!odd_room() || choose(two, 2) == 0)
        return false;
    engine.preempted++;
    return true;
}

/* A relaxed load may have been done at any moment since the last acquire: the oldest value that is
 * not known to be gone. */
static bool old_value(const struct actor *a, const void *word, uint64_t *value)
{
    uint64_t known = a->floor;
    int oldest = -1;
    for (int i = remembered - 1; i >= 0; i--) {
        if (history[i].at != (uintptr_t)word)
            continue;
        if (history[i].by == engine.now_on)
            break;                     /* our own store: what stood there before is gone for us */
        if (history[i].over <= known)
            break;
        oldest = i;
    }
    if (oldest < 0 || history[oldest].value == *value)
        return false;
    if (!oddity())
        return false;
    *value = history[oldest].value;
    return true;
}

uint64_t explore_load(const void *word, int bytes, enum explore_order order)
{
    if (!engine.running)
        return get(word, bytes);
    bool visible = words_visible(word, engine.now_on, false);
    if (visible)
        engine_point(word);
    struct actor *a = me();
    int i = a->stores ? buffered(a, word) : -1;
    if (visible)
        seen_heard(a, i >= 0 ? a->buffer[i].by : words_version(word, bytes));
    if (i >= 0)
        return a->buffer[i].value;
    uint64_t value = get(word, bytes);
    if (visible)
        words_trace("loads", word, value);
    if (engine.scenario->memory == MEMORY_WEAK) {
        if (order == EXPLORE_ORDERED)
            a->floor = engine.writes;
        else if (visible)
            old_value(a, word, &value);
    }
    return value;
}

void explore_store(void *word, uint64_t value, int bytes, enum explore_order order)
{
    if (!engine.running) {
        put(word, value, bytes, 0, 0);
        return;
    }
    bool visible = words_visible(word, engine.now_on, true);
    if (visible)
        engine_point(word);
    struct actor *a = me();
    enum memory memory = engine.scenario->memory;
    if (visible)
        words_trace("stores", word, value);
    bool overtakes = memory == MEMORY_WEAK && order == EXPLORE_RELAXED && a->stores
        && buffered(a, word) < 0;
    if (memory != MEMORY_PLAIN && !overtakes && (a->stores || (visible && oddity())))
        buffer(a, word, value, bytes);
    else
        put(word, value, bytes, engine.now_on, a->heard);
    if (visible && engine.scenario->after)
        engine_point(word);
}

/* What a change finds is learned; what it leaves is by it. */
static uint64_t learns(const void *word, int bytes)
{
    struct actor *a = me();
    if (engine.running)
        seen_heard(a, words_version(word, bytes));
    return engine.running ? a->heard : 0;
}

static void fence(struct actor *a)
{
    words_drain(a);
    a->floor = engine.writes;
}

uint64_t explore_change(void *word, uint64_t value, int bytes, enum explore_change how)
{
    if (engine.running && words_visible(word, engine.now_on, true))
        engine_point(word);
    if (engine.running)
        fence(me());
    uint64_t old = get(word, bytes), by = learns(word, bytes);
    if (engine.running)
        words_trace("changes", word, value);
    uint64_t next = how == EXPLORE_ADD ? old + value
        : how == EXPLORE_OR ? old | value
        : how == EXPLORE_AND ? old & value
        : value;
    put(word, next, bytes, engine.now_on, by);
    if (engine.running)
        me()->floor = engine.writes;
    return old;
}

int explore_swap(void *word, uint64_t *seen, uint64_t value, int bytes)
{
    if (engine.running && words_visible(word, engine.now_on, true))
        engine_point(word);
    if (engine.running)
        fence(me());
    uint64_t have = get(word, bytes), by = learns(word, bytes);
    if (engine.running)
        words_trace(have == *seen ? "swaps" : "fails to swap", word, value);
    if (have != *seen) {
        *seen = have;
        return 0;
    }
    put(word, value, bytes, engine.now_on, by);
    if (engine.running)
        me()->floor = engine.writes;
    return 1;
}

void explore_fence(void)
{
    if (!engine.running)
        return;
    if (me()->stores)
        engine_point(me());           /* the last moment before they are out */
    fence(me());
}

void explore_pause(void)
{
    if (engine.running)
        engine_yield();
}
