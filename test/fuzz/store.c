/* A store over which somebody has written, with whatever is asked of it: an answer or an error,
 * never a crash, nor a search without end. */
#include "fuzz.h"

#include "arena/store_alloc.h"
#include "arena/store.h"

#include <errno.h>
#include <unistd.h>

enum { HEADS = 16 << 10, BLOCKS = 64 << 10, KEYS = 40 };

static struct arena arena;
static char *good;
static size_t bytes;
static uint64_t blocks_at;
static char why_room[256];
static struct text why = { why_room, sizeof why_room, 0 };

static struct store_key key(unsigned n)
{
    static char text[16];
    snprintf(text, sizeof text, "key %u", n % KEYS);
    return store_key(text, strlen(text));
}

/* A store in use: entries of many lengths, and holes between them. */
static void open_once(void)
{
    static char value[4000];
    const struct arena_plan plan = {
        .size = 1, .job = "fuzz", .span_bytes = 2 << 20, .rules = "", .store_bytes = 2 << 20
    };
    if (!good) {
        FUZZ_MUST(arena_create(&arena, &plan, &why) == 0);
        for (unsigned n = 0; n < KEYS; n++) {
            struct store_key k = key(n);
            int64_t now;
            FUZZ_MUST((n % 5 ? store_set(&arena, &k, value, n * n * 2, UINT64_MAX)
                             : store_add(&arena, &k, n, &now, UINT64_MAX))
                      == 0);
        }
        for (unsigned n = 1; n < KEYS; n += 3) {
            struct store_key k = key(n);
            FUZZ_MUST(store_delete(&arena, &k, UINT64_MAX) == 0);
        }
        blocks_at = store_blocks_at(arena.header->store_bytes);
        bytes = blocks_at
            + (BLOCKS < load_relaxed64(&arena.store->grown) ? BLOCKS
                                                            : load_relaxed64(&arena.store->grown));
        good = malloc(bytes);
        FUZZ_MUST(good);
        memcpy(good, (const void *)arena.store, bytes);
    }
    memcpy((void *)arena.store, good, bytes);
}

static void scribble(struct feed *feed, uint8_t where)
{
    char *base = (char *)arena.store;
    size_t books = offsetof(struct store, ready);               /* what is in front is the lock */
    struct feed part = { feed->at, feed->left < 200 ? feed->left / 2 : 100 };
    feed->at += part.left;
    feed->left -= part.left;
    if (where & 1)
        feed_scribble(&part, base + books, offsetof(struct store, group) - books);
    if (where & 2)
        feed_scribble(&part, base + 4096, 4096);
    if (where & 4)
        feed_scribble(&part, base + blocks_at, bytes - blocks_at);
    if (!(where & 8))
        store_release32(&arena.store->damaged, 0);
}

static void ask(struct feed *feed)
{
    static char value[6000];
    uint8_t what = feed_byte(feed);
    struct store_key k = key(feed_byte(feed));
    size_t n = (size_t)feed_half(feed) % sizeof value, room = n;
    int64_t now;
    uint64_t version;
    int r = 0;
    switch (what % 6) {
    case 0: r = store_set(&arena, &k, value, n, UINT64_MAX); break;
    case 1:
        r = store_get(&arena, &k, value, &room, &version, UINT64_MAX);
        FUZZ_MUST(r != 0 || room <= n);
        break;
    case 2: r = store_add(&arena, &k, 1, &now, UINT64_MAX); break;
    case 3: r = store_delete(&arena, &k, UINT64_MAX); break;
    case 4:
        r = store_compare_set(&arena, &k, (struct store_value){ value, n % 9 },
                              (struct store_value){ value, n }, UINT64_MAX);
        break;
    default: {                                       /* a holder has died in a change */
        struct store_alloc h = store_alloc_of(arena.store, arena.header->store_bytes);
        r = store_alloc_forget(&h);
        if (r == 0)
            store_alloc_keep(&h, feed_half(feed));
        if (r == 0)
            store_alloc_rebuild(&h);
        break;
    }
    }
    FUZZ_MUST(r == 0 || r == 1 || r == -ENOENT || r == -EIO || r == -EINVAL || r == -EMSGSIZE
              || r == -ENOSPC || r == -ENOMEM);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    open_once();
    scribble(&feed, feed_byte(&feed));
    for (int n = 0; feed.left && n < 200; n++)
        ask(&feed);
    return 0;
}
