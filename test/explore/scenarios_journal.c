/* The journal: whoever reads another rank's records while it writes them, or is dead in the middle
 * of one, gets whole records or none (E94). A ring that is written around is history_test's: here
 * are its first records, and every step between their stores. */
#include "explore/scenarios.h"

#include "group/comm.h"
#include "watch/history.h"
#include "watch/journal.h"

#define EVENTS (KILL | STOP | TIMER)

enum { RECORDS = 2, LOOKS = 2, COUNTS = 100 };

/* Record k has k in each of its fields. */
static void journal_write(struct tutti_comm *world)
{
    uint64_t first = world->watch.arena->header->first_seq;
    for (uint64_t k = 1; k <= RECORDS; k++) {
        journal_begin(&world->watch, first + k,
                      fingerprint_make(KIND_BROADCAST, TUTTI_I8, TUTTI_SUM, (int)k, COUNTS + k),
                      COUNTS + k, (uint32_t)k, k);
        journal_end_by(&world->watch, 0, 2 * k, true);
    }
}

/* The last record that was seen of rank 0; it may not go away again. */
static uint32_t journal_read(struct tutti_comm *world)
{
    struct history h;
    struct clock_point now = { .tick = 1000, .ns = UINT64_MAX / 2 };
    int r = history_read(&h, world->watch.arena, 0, now);
    if (r < 0) {
        explore_wrong("the history cannot be read: %d", r);
        return 0;
    }
    const struct history_rank *rank = &h.rank[0];
    for (uint32_t i = 0; i < rank->n; i++) {
        const struct history_op *op = &rank->op[i];
        uint64_t k = i + 1;
        if (op->number != k || fingerprint_kind(op->descriptor) != KIND_BROADCAST
            || fingerprint_root(op->descriptor) != (int)k || op->count != COUNTS + k
            || op->site != k || op->result != 0)
            explore_wrong("record %d is torn: number %d, root %d, count %d, site %d", (int)k,
                          (int)op->number, fingerprint_root(op->descriptor), (int)op->count,
                          (int)op->site);
    }
    uint32_t n = rank->n;
    history_drop(&h);
    return n;
}

static void journals(int rank, tutti_comm *world)
{
    if (rank == 0)
        journal_write(world);
    else
        for (uint32_t i = 0, seen = 0; i < LOOKS; i++) {
            uint32_t n = journal_read(world);
            if (n < seen || n > RECORDS)
                explore_wrong("%d records after %d", (int)n, (int)seen);
            seen = n;
        }
    explore_note(rank, 0, 0);
}

const struct scenario scenario_journal = {
    .name = "journal", .ranks = 2, .body = journals, .preemptions = 3, .memory = MEMORY_TSO,
    .own_ends = true
};
const struct scenario scenario_journal_weak = {
    .name = "journal_weak", .ranks = 2, .body = journals, .preemptions = 1, .memory = MEMORY_WEAK,
    .own_ends = true
};
const struct scenario scenario_journal_events = {
    .name = "journal_events", .ranks = 2, .body = journals, .preemptions = 2,
    .preemptions_event = 1, .events = EVENTS, .own_ends = true
};
