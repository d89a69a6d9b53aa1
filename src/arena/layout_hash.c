/* The hash mixes sizes, offsets and constants in the order in which layout.h declares them. A field
 * that is added, moved or widened changes it, and so does a C library with another mutex: then a
 * process of another build is refused with a sentence and does not crash. The list is written by
 * hand, because C cannot enumerate fields.
 * Cost: a microsecond: some 400 words at each call. */
#include "arena/feed_words.h"
#include "arena/layout.h"
#include "arena/lent.h"

#include "base/digest.h"

#ifdef __GLIBC__
enum { LIBC_KIND = 1 };
#else
enum { LIBC_KIND = 2 };
#endif

#define AT(type, field) offsetof(struct type, field), sizeof(((struct type *)0)->field)

static const size_t layout_words[] = {
    LIBC_KIND, sizeof(pthread_mutex_t), sizeof(void *), __BYTE_ORDER__,
    RANKS_MAX, LINE, SITES_MAX, SITE_TEXT, KEYS_MAX, KEY_TEXT, SLOTS_MAX, JOURNAL_RECORDS,
    DECISIONS, PAYLOAD_WORDS, COUNT_WORD, DEVICE_WORD, CARD_WORD, OUTCOME_WORD, ABORT_TEXT,
    RULES_TEXT, LETTER_TEXT, LOANS, THREADS_MAX, STORY_TEXT, AWAITED_TEXT, STORE_KEY_MOST,
    STORE_VALUE_MOST, STORE_GROUPS, STORE_CLASSES,

    sizeof(struct arena_header), AT(arena_header, magic), AT(arena_header, layout_hash),
    AT(arena_header, bytes), AT(arena_header, birth), AT(arena_header, size),
    AT(arena_header, slots), AT(arena_header, seats_at), AT(arena_header, sites_at),
    AT(arena_header, keys_at), AT(arena_header, slots_at), AT(arena_header, slot_bytes),
    AT(arena_header, store_at), AT(arena_header, store_bytes), AT(arena_header, spans_at),
    AT(arena_header, span_bytes), AT(arena_header, origin), AT(arena_header, first_seq),
    AT(arena_header, uid), AT(arena_header, verify), AT(arena_header, job),
    AT(arena_header, version), AT(arena_header, rules), AT(clock_point, tick), AT(clock_point, ns),

    JOIN_GATHERING, JOIN_COMPLETE, JOIN_FAILED,
    sizeof(struct arena_join), AT(arena_join, joined), AT(arena_join, state),
    AT(arena_join, failed_rank), AT(arena_join, cpus), AT(arena_join, probed),
    AT(arena_join, boxed), AT(arena_join, lock), AT(arena_join, births), AT(arena_join, reached),
    AT(arena_join, oom_known),
    AT(arena_join, refusals), REFUSALS, REFUSAL_TEXT,
    sizeof(struct join_refusal), AT(join_refusal, claim), AT(join_refusal, ready),
    AT(join_refusal, rank), AT(join_refusal, error), AT(join_refusal, text),

    SEAT_EMPTY, SEAT_TAKEN, SEAT_JOINED, SEAT_ADRIFT, SEAT_LEFT,
    sizeof(struct process_mark), sizeof(struct seat), AT(seat, mark), AT(seat, state),
    AT(seat, status), AT(seat, id), AT(seat, several), AT(seat, quota), AT(seat, cpu_mask),
    AT(seat, program), AT(seat, waits_key), AT(seat, threads), AT(seat, promises),
    AT(seat, waiters), AT(seat, story), sizeof(struct waiter), AT(waiter, stamp), AT(waiter, beats),
    AT(waiter, doomed), AT(waiter, birth), AT(waiter, seq), AT(waiter, slot), AT(waiter, rank),
    AT(waiter, kind), AT(waiter, site), AT(waiter, about), AT(process_id, pid), AT(process_id, tid),
    AT(process_id, start), AT(process_id, pid_namespace),

    sizeof(struct site), AT(site, claim), AT(site, hash), AT(site, text),

    sizeof(struct key), AT(key, owner), AT(key, ready), AT(key, kind), AT(key, hash),
    AT(key, state), AT(key, rounds), AT(key, sleepers), AT(key, text),

    SLOT_FREE, SLOT_USED,
    sizeof(struct slot), AT(slot, verdict), AT(slot, news), AT(slot, devices), AT(slot, counter),
    AT(slot, sense), AT(slot, sense_sleepers), AT(slot, decision), AT(slot, kept), AT(slot, asked),
    AT(slot, state), AT(slot, size), AT(slot, birth), AT(slot, key_hash), AT(slot, parent),
    AT(slot, nth), AT(slot, color), AT(slot, keys),
    offsetof(struct slot, world_rank),

    sizeof(struct store), AT(store, lock), AT(store, ready), AT(store, dirty), AT(store, damaged),
    AT(store, spare), AT(store, grown), AT(store, keys), AT(store, used), AT(store, last),
    AT(store, classes), AT(store, free), AT(store, group), sizeof(struct store_group),
    AT(store_group, version), AT(store_group, sleepers), AT(store_group, spare),
    sizeof(struct store_block), AT(store_block, bytes), AT(store_block, before),
    AT(store_free, next), AT(store_free, prev), sizeof(struct store_entry), AT(store_entry, next),
    AT(store_entry, hash), AT(store_entry, value_bytes), AT(store_entry, key_bytes),
    AT(store_entry, number), offsetof(struct store_entry, bytes),

    sizeof(struct arrival), AT(arrival, seq), AT(arrival, descriptor), AT(arrival, payload),
    AT(arrival, more),
    sizeof(struct part_row), AT(part_row, count), AT(part_row, at),
    AT(part_row, lo), AT(part_row, hi),

    sizeof(struct vote), AT(vote, number), AT(vote, stance),

    sizeof(struct record), AT(record, seq), AT(record, descriptor), AT(record, count),
    AT(record, began), AT(record, arrived), AT(record, ended), AT(record, how), AT(record, about),
    AT(record, tag),

    QUIT_ABORT, QUIT_FREED, QUIT_LEFT, QUIT_INTERRUPT, QUIT_OVER, QUIT_DEVICE, QUIT_ALONE,
    sizeof(struct member), AT(member, arrival), AT(member, produced), AT(member, folded),
    AT(member, consumed), AT(member, turns), AT(member, given), AT(member, placed),
    AT(member, mapped), AT(member, ended), AT(member, queued), AT(member, waited),
    AT(member, sleepers),
    AT(member, listeners), AT(member, bell), AT(member, mail), AT(member, letters),
    AT(member, patient), AT(member, left), AT(member, quit), AT(member, cpu),
    AT(member, why), AT(member, awaited),
    AT(member, vote), AT(member, declines),
    sizeof(struct decline), AT(decline, list), AT(decline, range), AT(member, listed),
    AT(member, head), AT(member, figures), AT(member, journal),

    LENT_NOT, LENT_LEGACY, LENT_DESCRIPTOR,
    sizeof(struct loaded), AT(loaded, held),
    sizeof(struct lent), AT(lent, device), AT(lent, handle), AT(lent, buffer), AT(lent, base),
    AT(lent, bytes), AT(lent, offset), AT(lent, length), AT(lent, loan), AT(lent, generation),
    AT(lent, how), AT(lent, keep), sizeof(struct card), AT(card, number), AT(card, ways),
    AT(card, nonce), AT(card, send), AT(card, recv), AT(card, staging), AT(card, proof), KEEP_NOT,
    KEEP_OPEN, KEEP_STAGING, CARD_PLACE, CARD_STAGING,
    sizeof(struct loan), AT(loan, state), AT(loan, returned), AT(loan, held),

    LETTER_WHOLE, LETTER_STORED, LETTER_HANDED, LETTER_OFFERED, LETTER_MOVED, DEAL_OFFERED,
    DEAL_GRANTED, DEAL_DONE, DEAL_DROPPED, sizeof(struct envelope), AT(envelope, bytes),
    AT(envelope, tag), AT(envelope, site), AT(envelope, type), AT(envelope, mode),
    AT(envelope, letters),
    AT(envelope, text), AT(envelope, rest.at), AT(envelope, rest.end), AT(envelope, rest.deal),
    AT(envelope, rest.generation), sizeof(struct letter), AT(letter, seq), AT(letter, envelope),
    sizeof(struct channel), AT(channel, filled), AT(channel, taken), AT(channel, freed),
    AT(channel, drained), offsetof(struct channel, letters), sizeof(struct deal), AT(deal, state),
    AT(deal, start), AT(deal, stage),

    FEED_WHOLE, FEED_FIRST, FEED_MORE, FEED_FILL, FEED_END, FEED_STEP, FEED_KIND_BITS,
    sizeof(struct feed_record), AT(feed_record, stamp), AT(feed_record, what),
    sizeof(struct feed_reader), AT(feed_reader, tail), AT(feed_reader, awaited),
    AT(feed_reader, full), AT(feed_reader, asleep), offsetof(struct feed_head, readers),
    AT(feed_head, head), AT(feed_head, woke),
};

uint64_t layout_hash(void)
{
    uint64_t hash = digest(layout_words, sizeof layout_words, ARENA_MAGIC);
    return hash ? hash : 1;                          /* 0 means: not born yet */
}
