/* A black box whose sum is right, with whatever in it: it is refused in a sentence, or what its
 * journals say, and who was late, can be read; every number of that is bounded. */
#include "fuzz.h"

#include "base/clock.h"
#include "box/picture.h"
#include "watch/history.h"
#include "watch/journal.h"
#include "watch/lateness.h"

enum { RANKS = 3, RECORDS = 200 };

static char *good;
static size_t bytes;

/* Two comms whose ranks have gone through more operations than a journal holds. */
static void fill(const struct arena *arena)
{
    for (uint32_t index = 0; index < 2; index++) {
        struct slot *slot = arena_slot(arena, index);
        slot->size = RANKS;
        slot->birth = index + 1;
        slot->parent = index;
        for (uint32_t r = 0; r < RANKS; r++) {
            struct watch w = { .mine = arena_member(slot, r), .arena = arena, .name = "fuzz" };
            slot->world_rank[r] = r;
            for (uint64_t k = 1; k <= RECORDS; k++) {
                journal_begin(&w, k, fingerprint_make(KIND_BARRIER, 0, 0, 0, 0), 0, 1, 1000 * k);
                store_release64(&journal_hand(w.mine)->arrived, 1 + 100 * r);    /* E94 release */
                journal_end(&w, 0, 1000 * k + 500);
            }
        }
        store_relaxed32(&slot->state, SLOT_USED);    /* relaxed: nobody else is there */
    }
}

static void open_once(void)
{
    static char why_room[512];
    struct text why = TEXT_IN(why_room);
    const struct arena_plan plan = {
        .size = RANKS, .job = "fuzz", .span_bytes = 2 << 20, .rules = "", .store_bytes = 2 << 20
    };
    struct arena arena;
    struct picture picture;
    struct box_bytes b;
    if (good)
        return;
    FUZZ_MUST(arena_create(&arena, &plan, &why) == 0);
    fill(&arena);
    FUZZ_MUST(picture_take(&picture, &arena, &why) == 0);
    FUZZ_MUST(picture_develop(&b, &picture, "a report\n") == 0);
    picture_drop(&picture);
    arena_detach(&arena);
    good = b.at;
    bytes = b.n;
}

static void read_late(const struct arena *arena, uint32_t comm, struct clock_point now)
{
    struct lateness late = { 0 };
    struct history h;
    if (history_read(&h, arena, comm, now) != 0)
        return;
    for (uint32_t i = 0; i < h.n; i++) {
        const struct history_op *op = &h.at[i];
        FUZZ_MUST(op->began_ns <= now.ns && op->arrived_ns <= now.ns && op->ended_ns <= now.ns);
        FUZZ_MUST(op->last < (int)h.size && op->result <= 0);
    }
    FUZZ_MUST(lateness_add(&late, &h) == 0);
    lateness_sort(&late);
    for (uint32_t p = 0; p < late.size; p++) {
        struct late_rank own = lateness_of(&late, p);
        FUZZ_MUST(own.last <= late.compared && own.median_ns <= own.p99_ns);
    }
    lateness_drop(&late);
    history_drop(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why_room[512];
    struct text why = TEXT_IN(why_room);
    struct feed feed = { data, size };
    struct arena_copy copy;
    struct box box;
    open_once();
    struct box_bytes b = { malloc(bytes), bytes };
    FUZZ_MUST(b.at);
    memcpy(b.at, good, bytes);
    /* a record reaches 64 Ki words from where it begins: each quarter in its turn */
    size_t quarter = bytes / 4 / BOX_ALIGN * BOX_ALIGN;
    size_t from = sizeof(struct box_head) + feed_byte(&feed) % 4 * quarter;
    feed_scribble(&feed, b.at + from, bytes - from);
    struct box_head *head = (struct box_head *)(void *)b.at;
    head->sum = text_hash(b.at + sizeof *head, b.n - sizeof *head, BOX_VERSION);
    text_clear(&why);
    if (box_open(&box, &b, &why) != 0) {
        FUZZ_MUST(why.used);
        free(b.at);
        return 0;
    }
    struct arena_bytes from_box = box_arena(&box);
    struct clock_point now = { .tick = box.moment->tick, .ns = box.moment->ns };
    if (arena_copy_from(&copy, &from_box, ARENA_COPY_MOST, &why) == 0) {
        for (uint32_t i = 0; i < copy.comms; i++)
            read_late(&copy.arena, i, now);
        arena_copy_drop(&copy);
    }
    box_drop(&box);
    return 0;
}
