/* Job: the map of the arena. Every byte that two processes share is declared here and nowhere else.
 * Owns: no word itself; each field says who may write it, who reads it, by which edge, and
 *       who resets it.
 * Never: how a word is waited for (sync/, watch/), who gets which slot (group/).
 *
 *   [ header ]  [ join ]  [ seats: one per rank ]  [ sites ]  [ keys ]
 *   [ slots: one per comm ]  [ store ]  [ spans: one per rank ]
 *
 * Positions are offsets from the arena's first byte, never pointers: every process maps it
 * elsewhere. One writer per cache line; words that are spun on are 128 bytes apart, because the
 * adjacent-line prefetcher fetches pairs. All of it is zero at birth. */
#ifndef TUTTI_ARENA_LAYOUT_H
#define TUTTI_ARENA_LAYOUT_H

#include "base/atomic.h"
#include "base/clock.h"
#include "os/process.h"

#include <stddef.h>

enum {
    RANKS_MAX = 1024,
    LINE = 128,                       /* what is kept apart */
    SITES_MAX = 4096, SITE_TEXT = 120,
    KEYS_MAX = 4096, KEY_TEXT = 256,  /* with its final 0 */
    SLOTS_MAX = 1024,
    JOURNAL_RECORDS = 32,
    /* agreements of a comm that are remembered, besides the last that all voted for */
    DECISIONS = 8,
    PAYLOAD_WORDS = 11,               /* 88 bytes travel in the arrival line itself */
    COUNT_WORD = 4,                   /* of the payload */
    DEVICE_WORD = 6, CARD_WORD = 7,   /* of arrival.more */
    OUTCOME_WORD = 8,
    ABORT_TEXT = 120,
    /* lists of creations that a rank could not take part in and that may still be asked for */
    DECLINES = 16,
    RULES_TEXT = 1024,
    STORE_KEY_MOST = 255, STORE_VALUE_MOST = 1 << 20,
    STORE_GROUPS = 64, STORE_CLASSES = 288,
    LETTER_TEXT = 96,                 /* bytes of a message that travel in its letter */
    LOANS = 128,                      /* buffers of device memory that a rank lends at a time */
    THREADS_MAX = 8,                  /* threads of a rank that are told apart (watch/threads) */
    STORY_TEXT = 1024,
    REFUSALS = 8, REFUSAL_TEXT = 112  /* what is remembered of those who were not let in */
};

#define ARENA_MAGIC 0x31697474757431ull

/* ---- header: written by the creator, read-only once layout_hash is stored ---- */
struct arena_header {
    uint64_t magic;
    /* creator, stored last | every joiner | E10 born: header and seats are initialised */
    shared64 layout_hash;
    uint64_t bytes;                   /* of the whole arena */
    uint64_t birth;                   /* a nonce: which arena this is */
    uint32_t size;                    /* ranks of the world */
    uint32_t slots;                   /* comm slots there are */
    uint64_t seats_at, sites_at, keys_at, slots_at, slot_bytes, store_at, store_bytes, spans_at,
        span_bytes;
    /* ticks become time by this and a later pair; ns by the machine's clock, in `arena->header` by
     * this process's */
    struct clock_point origin;
    uint64_t first_seq;               /* number before a comm's first operation */
    uint32_t uid;                     /* whose arena it is */
    uint32_t verify;                  /* TUTTI_VERIFY of the creator holds for all */
    char job[128];
    char version[32];
    /* which algorithm when; everybody reads them here, never from its own environment */
    char rules[RULES_TEXT];
};

enum join_state { JOIN_GATHERING, JOIN_COMPLETE, JOIN_FAILED };

/* ---- join: how the world came together ---- */
struct join_refusal {                 /* by whoever refused somebody (group/refused) */
    shared32 claim;                   /* 0 -> 1 by CAS of whoever fills it; never reset */
    shared32 ready;                   /* 1, stored last | all | E82: the rest is whole */
    int32_t rank, error;              /* what the refused one said it was, -1: nothing; -errno */
    char text[REFUSAL_TEXT];
};
struct arena_join {
    /* each joiner adds 1, once, after its seat is filled | all | E11 seated */
    _Alignas(LINE) shared32 joined;
    /* enum join_state; by CAS from GATHERING, the last joiner or whoever saw a failure | all,
     * futex | E12 */
    shared32 state;
    /* rank + 1 of who died or left, UINT32_MAX: the deadline; whoever failed it, before the
     * CAS | E12 */
    shared32 failed_rank;
    /* CPUs that all ranks together may use; the last joiner, before COMPLETE | E12 */
    shared32 cpus;
    /* robust: guards the directory of slots and the births; held for microseconds, never in
     * an operation */
    _Alignas(LINE) pthread_mutex_t lock;
    uint64_t births;                  /* under lock: slots ever made */
    /* slots from the front that were ever used; under lock, raised before the first use of one
     * | E80. Only grows */
    shared32 reached;
    struct join_refusal refusals[REFUSALS];
};

#define THREADS_MORE (UINT32_C(1) << 31)        /* more threads called than there are numbers */
enum seat_state { SEAT_EMPTY, SEAT_TAKEN, SEAT_JOINED, SEAT_ADRIFT, SEAT_LEFT };

/* What a thread of a rank waits for, once it has waited long (watch/cycle). A waiting thread alone
 * writes it, but for `doomed`. */
struct waiter {
    /* odd: it waits, as the fields below say. +1 at each begin and end | E60 */
    shared64 stamp;
    shared64 beats;                   /* looks at what it waits for that were in vain | E61 */
    /* a stamp: that wait can never end; by whoever found it, under join.lock | E63 */
    shared64 doomed;
    shared64 birth;                   /* of the comm in slot `slot` */
    shared64 seq;                     /* a collective's number */
    shared32 slot, rank;              /* rank: its own there */
    shared32 kind, site;              /* enum kind of the call */
    shared32 about;                   /* else: rank there + 1 that is waited for; 0: any */
    uint32_t spare;
};

/* ---- seats: who is who; one per rank, written by that rank unless said otherwise ---- */
struct seat {
    /* alive word: its rank's thread, and the kernel when that thread goes | all, futex | E5 */
    struct process_mark mark;
    /* enum seat_state. EMPTY -> TAKEN by CAS of the rank that comes (one rank, one seat); JOINED
     * when filled, E11; ADRIFT: the thread that joined has ended in good order, its process goes
     * on; LEFT before the mark is let go */
    _Alignas(64) shared32 state;
    /* by the launcher or the parent: wait status << 1 | 1, so never 0 once known */
    shared32 status;
    struct process_id id;
    uint32_t several;                 /* 1: one of several ranks of its process (threads) */
    uint32_t quota;                   /* CPUs by cgroup quota, 0: none */
    uint64_t cpu_mask[RANKS_MAX / 64];
    char program[32];
    /* which key this rank sleeps for, from 1; 0: none | whoever looks from outside */
    shared32 waits_key;
    /* a bit for each of `waiters` whose thread lives, THREADS_MORE; under world->lock | E62 */
    shared32 threads;
    /* works under way that will call `done`, which may do anything | E62 */
    shared32 promises;
    struct waiter waiters[THREADS_MAX];
    /* the last cycle of waits that this rank was in; by whoever found it, read and written
     * under join.lock */
    char story[STORY_TEXT];
};

/* ---- sites: call sites as text, interned once per process ---- */
struct site {
    /* 0 -> 1 by CAS of whoever fills it; never reset (a claimer that dies leaves a hole) */
    shared32 claim;
    shared32 hash;                    /* nonzero, stored last | E13: the text is whole */
    char text[SITE_TEXT];
};

/* ---- keys: once and first ---- */
#define KEY_DROPPED UINT64_MAX
struct key {
    /* birth of its comm, 0 never used, KEY_DROPPED free again; all changes under join.lock | E14 */
    shared64 owner;
    /* 1, stored by the adder after the text | E14: the text is whole */
    shared32 ready;
    uint32_t kind;                    /* once or first: two name spaces */
    uint64_t hash;
    /* version:49 | runner:14 | running:1; by CAS of ranks of the comm | futex on lo32 | E15 */
    _Alignas(LINE) shared64 state;
    /* rounds done; by the runner, before its state; read after a state | E15. Only grows */
    shared64 rounds;
    shared32 sleepers;                /* by the sleepers: +1 before, -1 after */
    char text[KEY_TEXT];
};

/* ---- slots: one per comm ---- */
enum slot_state { SLOT_FREE, SLOT_USED };

/* V: lo32 = state:2 | operation:30, hi32 = why:4 | by:14 | who:14 (ranks in comm). N: how much
 * there is to look at in `quit`. */
struct slot {
    /* any member, by CAS only (watch/verdict) | all, futex on lo32 | E6, E7, E8 */
    _Alignas(LINE) shared64 verdict;
    shared32 news;                    /* +1 by whoever changed a quit word | all, futex | E7 */
    /* 1 for ever once a member has come with device memory; by that member, before its arrival
     * | all, after the gate | E1 */
    shared32 devices;
    _Alignas(LINE) shared64 counter;  /* central gate: +1 by each arriver; never reset */
    /* central gate: the operation's number, by the last arriver or whoever saw that all are there
     * | E20, futex */
    _Alignas(LINE) shared64 sense;
    _Alignas(LINE) shared32 sense_sleepers;   /* by the sleepers: +1 before, -1 after */
    /* of agreement k in [k % DECISIONS]: value:32 | number:28 | outcome:4; any member, by CAS only
     * (group/agree) | all, futex on lo32 | E46 */
    _Alignas(LINE) shared64 decision[DECISIONS];
    /* the last decision for which all had voted, when its place is needed; any member, by CAS, only
     * to later ones | E46 */
    shared64 kept;
    _Alignas(LINE) shared32 state;    /* enum slot_state, under join.lock */
    /* members; from here on written under join.lock before the slot is USED */
    uint32_t size;
    uint64_t birth;                   /* unique in this arena, from 1 */
    uint64_t key_hash;                /* how comm_create and split find it */
    uint64_t parent, nth;             /* birth of the parent, which creation on it, and … */
    int32_t  color;                   /* … by split: the color; by create: -1 */
    /* not 0: there may be keys of `birth`. Under join.lock: raised before one is there, 0 when all
     * are forgotten | E81 */
    shared32 keys;
    uint32_t world_rank[];            /* [size] */
};

/* ---- store: keys and values of the job. All under its lock, but for the groups' words; see
   store.h and heap.h ----
   [ this page ]  [ heads of chains: store_buckets() words ]
   [ blocks, one behind the other, `grown` bytes of them ]
   A place is an offset from the store's first byte, 0 none. */
struct store_group {                  /* a share of the keys, by their hash: what is waited on */
    /* +1 when a key appears; whoever made it, under lock | waiters, futex on lo32 | E31 */
    shared64 version;
    shared32 sleepers;                /* by the sleepers: +1 before, -1 after */
    uint32_t spare;
};

struct store {
    pthread_mutex_t lock;             /* robust; held for a lookup, a copy, a change */
    shared32 ready;                   /* 1: the heads' pages are there */
    /* 1: a change is under way, so that its writer's death leaves books to be made anew | E32 */
    shared32 dirty;
    shared32 damaged;                 /* 1: somebody wrote over it; refused from then on */
    uint32_t spare;
    /* bytes of blocks; only grows, the new block's header before | E33 */
    shared64 grown;
    /* entries, and bytes of blocks in use. With all that follows, made anew from blocks and chains
     * by a repair */
    uint64_t keys, used;
    uint64_t last;                    /* the block that ends at `grown` */
    uint64_t classes[(STORE_CLASSES + 63) / 64];      /* a bit for each list that is not empty */
    uint64_t free[STORE_CLASSES];     /* lists of free blocks, by size */
    struct store_group group[STORE_GROUPS];
};

struct store_block {                  /* in front of every stretch */
    /* of the whole, a multiple of 32; | 1: in use. Leads to the next block, at every
     * moment | E33 */
    shared64 bytes;
    shared64 before;                  /* bytes of the block before it, 0: the first */
};

struct store_free { struct store_block block; shared64 next, prev; };

/* as it is from the moment a chain leads to it, but for `next` and a number's value */
struct store_entry {
    struct store_block block;
    shared64 next;                    /* of its chain | E30 */
    uint64_t hash;
    uint32_t value_bytes;
    uint16_t key_bytes;
    uint16_t number;              /* 1: made by add: the value is one word, changed by one store */
    char bytes[];                 /* value, then key */
};

/* The arrival line: what a rank says when it comes to operation seq. */
struct arrival {
    shared64 seq;                     /* owner, stored last | all, futex on lo32 | E1. Only grows */
    shared64 descriptor;              /* group/stamp: kind, type, operation, root, count */
    union {
        /* a small contribution; of a larger one [0] the staging, [2..3] the factor */
        shared64 payload[PAYLOAD_WORDS];
        struct {
            shared64 lead[5];  /* [COUNT_WORD] the count where the descriptor holds only its hash */
            /* of a large operation: [0 … 2] at, lo, hi of its send buffer in the arena, [3 … 5] of
             * the receive buffer; [8] outcomes so far | E1
             * [6] seq, if this rank's buffers are device memory: another number says that they are
             *     not; then [7] is where its card lies (gpu/), 0: it has none */
            shared64 more[9];
        };
    };
};

/* Beside a rank's pipelines, by parity of seq: what it gives to each rank in an operation of uneven
 * parts. By that rank, before it arrives | E1 */
struct part_row {
    uint64_t count;                   /* elements */
    /* bytes lo … hi of it lie in the arena, byte i at offset at + i; lo == hi: none */
    uint64_t at, lo, hi;
};

struct record {     /* journal: one operation; all fields by the owner, relaxed, head releases */
    shared64 seq, descriptor, count, began, ended;    /* ticks; ended 0: under way */
    shared32 site;
    shared32 result;                  /* -errno, as bits */
    shared32 about, tag;              /* sends and receives: peer + 1, tag + 1; 0: any */
    uint64_t room;
};

/* What a rank says in agreement `number`, by parity of the number, as arrivals are. */
struct vote {
    shared64 number;                /* owner, stored last | all, futex on lo32 | E45. Only grows */
    shared64 stance;                /* kind:6 | site:26 | value:32 */
};

/* Creations of one list of ranks (comm_create) that a rank could not take part in. */
struct decline {
    shared64 list;                    /* hash of the list; owner, while range is 0 */
    /* first:25 | last:25 | error:13 | held:1, 0 none; held: the owner had a hold on the slot and
     * has let go of it | E76 */
    shared64 range;
};

/* OVER: freed, and its owner writes nothing there any more: once that is so of all, the slot may be
   made anew. ALONE: this rank has met the death of a peer in a send, a receive or a turn. It takes
   part in none of these any more. */
enum {
    QUIT_ABORT = 1,
    QUIT_FREED = 2,
    QUIT_LEFT = 4,
    QUIT_INTERRUPT = 16,
    QUIT_OVER = 32,
    QUIT_DEVICE = 64,
    QUIT_ALONE = 128
};

/* One rank in one comm. Everything in it is written by that rank, but for `sleepers` and, in one
 * case, `quit`. */
struct member {
    /* by parity of seq: a rank one ahead does not overwrite what a slow one still reads */
    struct arrival arrival[2];
    _Alignas(LINE) shared64 produced; /* pipeline: chunks put in, since the comm began | E16 */
    shared64 folded;                  /* pipeline: pieces folded | E17. Both only grow */
    /* pipeline: chunks read to the end: the licence to overwrite them | E18 */
    _Alignas(LINE) shared64 consumed;
    shared64 turns;                   /* turns ended | E19 */
    /* number of the last operation in which this rank has done its part | E22. Only of uneven
     * parts, files, direct (coll/cma.h), and buffers that may be lent (coll/coll.h) */
    shared64 given;
    /* number of the last operation with device memory whose result is in place at this rank | E70.
     * Only grows */
    shared64 placed;
    /* 2 * number + 1 if it could, of the last operation for which this rank has tried to open all
     * it needs of its peers' device memory | E71. Only grows */
    shared64 mapped;
    /* how many sleep on a word of this rank; +1/-1 by the sleeper only, never cleared by
     * the owner */
    _Alignas(LINE) shared32 sleepers;
    /* how many threads of this rank sleep on its bell; by them: +1 before, -1 after | whoever sends
     * to it | E40 */
    shared32 listeners;
    /* +1 by whoever has something for this rank and finds listeners | futex | E40 */
    shared32 bell;
    /* offset of this rank's table of channels, shared64 by receiver; 0 none yet; once, by the
     * owner | E41 */
    shared64 mail;
    shared32 letters[2];              /* sends, receives under way as work; this rank | E62 */
    /* in its operations up to that number this rank has no given deadline | E64 */
    shared64 patient;
    /* QUIT_ bits, by fetch_or only; sticky | E7. FREED with OVER also by a peer, where the owner
     * has said that it has no hold (group/shrink, split, create) */
    _Alignas(LINE) shared32 quit;
    /* the abort's text, or what its device said, before the bit */
    char why[ABORT_TEXT];
    _Alignas(LINE) struct vote vote[2];
    struct decline declines[DECLINES];
    /* shrink: the ranks that it proposes to go on with, a bit each; before its proposal | E46 */
    shared64 listed[RANKS_MAX / 64];
    /* journal: records ever begun; the last one is the operation in hand */
    _Alignas(LINE) shared64 head;
    /* owner: operations, bytes, wait ns, fold ns, came last, sleeps */
    shared64 figures[8];
    /* the last collective that this rank has left, whatever came of it | E74. Only grows */
    shared64 ended;
    /* number of the last operation left under way as work, or called behind such: it will arrive by
     * itself | E21 */
    shared64 queued;
    struct record journal[JOURNAL_RECORDS];
};

/* ---- letters: point to point. All of it lies in the sender's span, made when first used; the
 * sender clears it before it is published ---- */
enum letter_mode {
    LETTER_WHOLE,                     /* the message is in the letter */
    LETTER_STORED,                    /* it lies at `at` */
    /* it is with the sender: see `deal`; at: UINT64_MAX, or where it lies in the arena */
    LETTER_OFFERED,
    LETTER_MOVED                      /* no message: the next letters are at `at` */
};
struct envelope {                     /* by the sender, before seq */
    uint64_t bytes;
    uint32_t tag, site;
    uint16_t type, mode;              /* tutti_type, enum letter_mode */
    uint32_t letters;                 /* MOVED: how many there are at `at` */
    union {
        char text[LETTER_TEXT];
        /* end: STORED: the sender's count of bytes behind it, for `freed` */
        struct { uint64_t at, end, deal, generation; } rest;
    };
};
struct letter {
    /* how many letters were sent with this one; sender, stored last | receiver | E35. Only grows in
     * its place */
    shared64 seq;
    struct envelope envelope;
};
struct channel {                      /* from one rank to one rank of a comm */
    /* sender: pieces put into the stage, since the channel began | E38 */
    _Alignas(LINE) shared64 filled;
    /* receiver: letters read: the licence to write others there | E36 */
    _Alignas(LINE) shared64 taken;
    shared64 freed;                   /* receiver: stored bytes read, by the sender's count | E36 */
    shared64 drained;                 /* receiver: pieces read | E39 */
    _Alignas(LINE) struct letter letters[];
};
enum deal_state { DEAL_OFFERED, DEAL_GRANTED, DEAL_DONE, DEAL_DROPPED };
struct deal {       /* one message that does not fit a letter: sender and receiver come to terms */
    /* generation << 2 | enum deal_state; by CAS, the sender alone begins a generation | E37 */
    _Alignas(64) shared64 state;
    /* receiver, before GRANTED: the piece of the stage its data begin with | E37 */
    shared64 start;
    shared64 stage;                   /* sender, before OFFERED: where the stage is | E35 */
};

/* ---- files: the page behind the bytes of a loaded file (disk/loaded), in the span of whoever made
 * room for it ---- */
struct loaded {
    /* a bit for each rank of the world that may read it: set before anybody knows of it, taken out
     * by that rank | E75 */
    _Alignas(4096) shared32 held[RANKS_MAX / 32];
};

/* ---- device memory lent to peers (gpu/ipc_export, gpu/ipc_import). Both lie in the lender's span:
 * cards for a comm, loans for the world ---- */
enum lent_how { LENT_NOT, LENT_LEGACY, LENT_DESCRIPTOR };
struct lent {                       /* one buffer of a call; by its rank, before it arrives | E1 */
    unsigned char device[16], handle[64];       /* the GPU's UUID; cuIpcGetMemHandle's, if LEGACY */
    /* CUDA's number of the memory in that process, which never comes again */
    uint64_t buffer;
    uint64_t base, bytes;             /* all of that memory, by that process's addresses */
    uint64_t offset, length;          /* the call's part of it */
    /* its loan: which of that rank's, and how often that was made anew */
    uint64_t loan, generation;
    uint32_t how, keep;               /* enum lent_how; 1: may stay open behind the operation */
};
struct card { shared64 number; struct lent send, recv; };  /* by parity of the operation's number */
struct loan {
    _Alignas(LINE) shared64 state;    /* generation << 1 | 1: called back; the lender | E72 */
    /* +1 by each borrower that gives back what was called back | the lender, futex | E73 */
    shared32 returned;
    /* a bit for each rank of the world that has it open: by that rank; of one that is gone, by the
     * lender | E72, E73 */
    shared32 held[RANKS_MAX / 32];
};

_Static_assert(sizeof(struct lent) == 144 && sizeof(struct loan) == 2 * LINE, "what is lent");
_Static_assert(sizeof(struct letter) == LINE && offsetof(struct envelope, text) == 24, "a letter");
_Static_assert(sizeof(struct channel) == 2 * LINE && sizeof(struct deal) == 64,
               "lines of a channel");
_Static_assert(sizeof(struct arrival) == LINE && offsetof(struct arrival, more) == 56,
               "what an arrival says is one cache line");
_Static_assert(offsetof(struct arrival, payload[PAYLOAD_WORDS])
                   == offsetof(struct arrival, more[DEVICE_WORD]),
               "a contribution ends before what all operations say");
_Static_assert(sizeof(struct vote) == 16 && DECISIONS * 8 < LINE, "agreements: a line each");
_Static_assert(sizeof(struct decline) == 16, "four in a line");
_Static_assert(sizeof(struct waiter) == 64, "a waiter is one cache line");
_Static_assert(sizeof(struct record) == 64, "a record is one cache line");
_Static_assert(offsetof(struct slot, counter) == LINE && offsetof(struct slot, sense) == 2 * LINE,
               "lines of a slot");
_Static_assert(offsetof(struct member, produced) == 2 * LINE
                   && offsetof(struct member, sleepers) == 4 * LINE,
               "lines of a member");
_Static_assert(sizeof(struct site) == 128, "a site");
_Static_assert(sizeof(struct store) <= 4096 && offsetof(struct store_entry, bytes) % 8 == 0,
               "the store's books are a page; a number is a word");
_Static_assert(sizeof(struct arena_header) <= 4096 && sizeof(struct arena_join) <= 4096,
               "a page each");

static inline size_t layout_round(size_t n, size_t to) { return (n + to - 1) / to * to; }
/* Header of a slot with its ranks, in whole pages: the members follow there. */
static inline size_t layout_slot_head(uint32_t size)
{
    return layout_round(sizeof(struct slot) + size * sizeof(uint32_t), 4096);
}

static inline size_t layout_slot_bytes(uint32_t size)
{
    return layout_slot_head(size) + layout_round(size * sizeof(struct member), 4096);
}

/* Chains of a store: a power of two, one for 2 to 4 KiB. */
static inline uint64_t store_buckets(uint64_t store_bytes)
{
    return UINT64_C(1) << (63 - __builtin_clzll(store_bytes / 2048 | 1));
}

static inline uint64_t store_blocks_at(uint64_t store_bytes)
{
    return 4096 + layout_round(store_buckets(store_bytes) * sizeof(shared64), 4096);
}

/* Of everything above: names no version, changes when any offset, size, or the C library's
 * mutex does. */
uint64_t layout_hash(void);

#endif
