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
    LINE = 128,                       /* distance of words that are spun on */
    SITES_MAX = 4096, SITE_TEXT = 120,
    KEYS_MAX = 4096, KEY_TEXT = 256,  /* with its final 0 */
    SLOTS_MAX = 1024,
    JOURNAL_RECORDS = 128,
    DECISIONS = 8,                    /* last decisions of a comm; slot.kept is one more */
    PAYLOAD_WORDS = 11,               /* 88 bytes travel in the arrival line itself */
    COUNT_WORD = 4,                   /* index in arrival.payload */
    DEVICE_WORD = 6, CARD_WORD = 7,   /* indices in arrival.more */
    OUTCOME_WORD = 8,
    ABORT_TEXT = 120,
    DECLINES = 16,                    /* lists (comm_create) that a rank has declined at a time */
    RULES_TEXT = 1024,
    STORE_KEY_MOST = 255, STORE_VALUE_MOST = 1 << 20,
    STORE_GROUPS = 64, STORE_CLASSES = 288,
    LETTER_TEXT = 96,                 /* bytes of a message that travel in its letter */
    LOANS = 128,                      /* buffers of device memory that a rank lends at a time */
    THREADS_MAX = 8,                  /* threads of a rank with a number (watch/threads) */
    STORY_TEXT = 1024,
    AWAITED_TEXT = 64,
    REFUSALS = 8, REFUSAL_TEXT = 112  /* notes on refused ranks (group/refused) */
};

#define ARENA_MAGIC 0x31697474757431ull

/* ---- header: written by the creator, read-only once layout_hash is stored ---- */
struct arena_header {
    uint64_t magic;
    /* creator, stored last | every joiner | E10 born: header and seats are initialised */
    shared64 layout_hash;
    uint64_t bytes;                   /* of the whole arena */
    uint64_t birth;                   /* a nonce that identifies this arena */
    uint32_t size;                    /* ranks of the world */
    uint32_t slots;                   /* comm slots */
    uint64_t seats_at, sites_at, keys_at, slots_at, slot_bytes, store_at, store_bytes, spans_at,
        span_bytes;
    /* converts ticks to ns, with a later pair. ns: of the machine's clock; in the private copy
     * `arena->header` of this process's clock */
    struct clock_point origin;
    uint64_t first_seq;               /* number before a comm's first operation */
    uint32_t uid;                     /* owner of the arena */
    uint32_t verify;                  /* TUTTI_VERIFY of the creator; holds for all ranks */
    char job[128];
    char version[32];
    char rules[RULES_TEXT];           /* choice of algorithms; no rank reads its own environment */
};

enum join_state { JOIN_GATHERING, JOIN_COMPLETE, JOIN_FAILED };
#define BOXED_BY_LAUNCHER UINT32_MAX

/* ---- join: how the world came together ---- */
struct join_refusal {                 /* a note; by the rank that refused (group/refused) */
    shared32 claim;                   /* 0 -> 1 by CAS of the rank that fills it; never reset */
    shared32 ready;                   /* 1, stored last | all | E82: the rest is whole */
    int32_t rank, error;              /* the refused rank, -1: unknown; -errno */
    char text[REFUSAL_TEXT];
};
struct arena_join {
    /* each joiner adds 1, once, after its seat is filled | all | E11 seated */
    _Alignas(LINE) shared32 joined;
    /* enum join_state; the last joiner or the finder of a failure, by CAS from GATHERING | all,
     * futex | E12 */
    shared32 state;
    /* rank + 1 that died or left; UINT32_MAX: the deadline. The finder of the failure, before its
     * CAS on state | all | E12 */
    shared32 failed_rank;
    /* CPUs that all ranks together may use; the last joiner, before COMPLETE | all | E12 */
    shared32 cpus;
    /* seats that have been asked after so far; +n by the rank that asks after the next n. Any value
     * is right */
    shared32 probed;
    /* rank + 1 of who writes a black box, or BOXED_BY_LAUNCHER; by CAS from 0 or from a dead one */
    shared32 boxed;
    /* robust: guards the directory of slots, and births. Held for microseconds, never in an
     * operation */
    _Alignas(LINE) pthread_mutex_t lock;
    uint64_t births;                  /* slots made so far; under lock */
    /* slots from the front that were ever used; under lock, raised before the first use of one
     * | E80. Only grows */
    shared32 reached;
    /* kills for want of memory that are known: at first those before the arena; then +1 by a rank's
     * parent, after that rank's status. Only grows */
    shared64 oom_known;
    struct join_refusal refusals[REFUSALS];
};

#define THREADS_MORE (UINT32_C(1) << 31)        /* more threads called than there are numbers */
enum seat_state { SEAT_EMPTY, SEAT_TAKEN, SEAT_JOINED, SEAT_ADRIFT, SEAT_LEFT };

/* The wait of a thread of a rank, once it is long (watch/cycle). Written by the waiting thread, but
 * for `doomed`. */
struct waiter {
    /* odd: it waits, as the fields below say; +1 at each begin and end | E60 */
    shared64 stamp;
    shared64 beats;                   /* looks at the awaited word, in vain | E61 */
    /* the stamp of a wait that can never end; by the rank that found it, under join.lock | E63 */
    shared64 doomed;
    shared64 birth;                   /* of the comm in slot `slot` */
    shared64 seq;                     /* number of a collective; 0: none, see `about` */
    shared32 slot, rank;              /* the comm's slot; its own rank in the comm */
    shared32 kind, site;              /* enum kind and site of the call */
    shared32 about;                   /* without seq: awaited rank of the comm + 1; 0: any */
    uint32_t spare;
};

/* ---- seats: one per rank, written by that rank unless said otherwise ---- */
struct seat {
    /* alive word: its rank's thread, and the kernel when that thread ends | all, futex | E5 */
    struct process_mark mark;
    /* enum seat_state. EMPTY -> TAKEN by CAS of the joining rank (one rank, one seat). JOINED when
     * filled, E11. ADRIFT: the thread that joined has ended in good order, its process goes on.
     * LEFT: set before the mark is released */
    _Alignas(64) shared32 state;
    /* wait status << 1 | 1; 0: not known. By the launcher or the parent; before, by the rank itself
     * that leaves by exit */
    shared32 status;
    struct process_id id;
    uint32_t several;                 /* 1: one of several ranks of its process (threads) */
    uint32_t quota;                   /* CPUs by cgroup quota, 0: none */
    uint64_t cpu_mask[RANKS_MAX / 64];
    char program[32];
    shared32 waits_key;               /* index + 1 of the key it sleeps for; 0: none | tools */
    /* a bit for each of `waiters` whose thread lives; THREADS_MORE. Under world->lock | E62 */
    shared32 threads;
    shared32 promises;                /* works under way that will call `done` | E62 */
    struct waiter waiters[THREADS_MAX];
    /* the last cycle of waits that this rank was in; by the rank that found it, under join.lock */
    char story[STORY_TEXT];
};

/* ---- sites: call sites as text, interned once per process ---- */
struct site {
    /* 0 -> 1 by CAS of the rank that fills it; never reset (if it dies, a hole stays) */
    shared32 claim;
    shared32 hash;                    /* nonzero, stored last | E13: the text is whole */
    char text[SITE_TEXT];
};

/* ---- keys: once and first ---- */
#define KEY_DROPPED UINT64_MAX
struct key {
    /* birth of its comm; 0: never used; KEY_DROPPED: free again. Under join.lock | E14 */
    shared64 owner;
    shared32 ready;                   /* 1, the adder, after the text | all | E14: text is whole */
    uint32_t kind;                    /* once or first: two name spaces */
    uint64_t hash;
    /* version:49 | runner:14 | running:1; by CAS of ranks of the comm | futex on lo32 | E15 */
    _Alignas(LINE) shared64 state;
    shared64 rounds;                  /* done; the runner, before its state | E15. Only grows */
    shared32 sleepers;                /* by the sleepers: +1 before, -1 after */
    char text[KEY_TEXT];
};

/* ---- slots: one per comm ---- */
enum slot_state { SLOT_FREE, SLOT_USED };

struct slot {
    /* lo32 = state:2 | operation:30, hi32 = why:4 | by:14 | who:14 (ranks in comm). Any member, by
     * CAS only (watch/verdict) | all, futex on lo32 | E6, E7, E8 */
    _Alignas(LINE) shared64 verdict;
    shared32 news;                    /* +1 after each change of a `quit` | all, futex | E7 */
    /* 1 for ever once a member has come with device memory; that member, before its arrival | all,
     * after the gate | E1 */
    shared32 devices;
    _Alignas(LINE) shared64 counter;  /* central gate: +1 by each arriver; never reset */
    /* central gate: number of the operation; the last arriver, or a member that saw all arrivals
     * | all, futex | E20 */
    _Alignas(LINE) shared64 sense;
    _Alignas(LINE) shared32 sense_sleepers;   /* by the sleepers: +1 before, -1 after */
    /* of agreement k in [k % DECISIONS]: value:32 | number:28 | outcome:4; any member, by CAS only
     * (group/agree) | all, futex on lo32 | E46 */
    _Alignas(LINE) shared64 decision[DECISIONS];
    /* a decision for which all had voted, copied here before its place is used again; any member,
     * by CAS, only to a later one | all | E46 */
    shared64 kept;
    /* when a member last began to ask after all others, ns of its clock; by parity of the operation
     * that it waits in. Any member, by CAS, when it begins | all members. Any value is right */
    shared64 asked[2];
    _Alignas(LINE) shared32 state;    /* enum slot_state, under join.lock */
    /* members; from here on written under join.lock before the slot is USED */
    uint32_t size;
    uint64_t birth;                   /* unique in this arena, from 1 */
    uint64_t key_hash;                /* of the four below and world_rank: finds the slot */
    uint64_t parent, nth;             /* birth of the parent; number of the creation on it */
    int32_t  color;                   /* of split; of create -1 */
    /* 1: there may be keys of `birth`. Under join.lock: set before the first one is there, 0 when
     * all are dropped | E81 */
    shared32 keys;
    uint32_t world_rank[];            /* [size] */
};

/* ---- store: keys and values of the job. All under its lock, but for the groups' words; see
   store.h and store_alloc.h ----
   [ this page ]  [ heads of chains: store_buckets() words ]
   [ blocks, one behind the other, `grown` bytes of them ]
   A place is an offset from the store's first byte; 0: none. */
struct store_group {                  /* waits for keys whose hash belongs to it */
    /* +1 when a key appears; its maker, under lock | waiters, futex on lo32 | E31 */
    shared64 version;
    shared32 sleepers;                /* by the sleepers: +1 before, -1 after */
    uint32_t spare;
};

struct store {
    pthread_mutex_t lock;             /* robust; held for a lookup, a copy, a change */
    shared32 ready;                   /* 1: the heads' pages are there */
    /* 1: a change is under way; if its writer dies, the books are rebuilt | E32 */
    shared32 dirty;
    shared32 damaged;                 /* 1: the store was written over; all calls refuse it */
    uint32_t spare;
    /* bytes of blocks; raised after the new block's header is written | E33. Only grows */
    shared64 grown;
    /* entries; bytes of blocks in use. A repair rebuilds them and all fields below */
    uint64_t keys, used;
    uint64_t last;                    /* the block that ends at `grown` */
    uint64_t classes[(STORE_CLASSES + 63) / 64];      /* a bit for each list that is not empty */
    uint64_t free[STORE_CLASSES];     /* lists of free blocks, by size */
    struct store_group group[STORE_GROUPS];
};

struct store_block {                  /* header of every block */
    /* of the block, a multiple of 32; | 1: in use. Always leads to the next block | E33 */
    shared64 bytes;
    shared64 before;                  /* bytes of the block before it; 0: it is the first */
};

struct store_free { struct store_block block; shared64 next, prev; };

/* unchanged from the moment a chain leads to it, but for `next` and the value of a number */
struct store_entry {
    struct store_block block;
    shared64 next;                    /* of its chain | E30 */
    uint64_t hash;
    uint32_t value_bytes;
    uint16_t key_bytes;
    uint16_t number;              /* 1: made by add: the value is one word, changed by one store */
    char bytes[];                 /* value, then key */
};

/* The arrival line of a rank in operation seq. */
struct arrival {
    shared64 seq;                     /* owner, stored last | all, futex on lo32 | E1. Only grows */
    shared64 descriptor;              /* watch/fingerprint: kind, type, operation, root, count */
    union {
        /* a small contribution; of a larger one [0] the staging, [2..3] the factor */
        shared64 payload[PAYLOAD_WORDS];
        struct {
            shared64 lead[5];  /* [COUNT_WORD]: the count, if the descriptor holds only its hash */
            /* of a large operation: [0 … 2] at, lo, hi of the send buffer in the arena, [3 … 5] of
             * the receive buffer; [8] outcomes so far | E1
             * [6] == seq: this rank's buffers are device memory, and [7] is the place of its card
             *     (gpu/), 0: none. Any other number in [6]: they are host memory */
            shared64 more[9];
        };
    };
};

/* A rank's part for each rank in an operation of uneven parts; lies behind its pipeline, by parity
 * of seq. By that rank, before it arrives | E1 */
struct part_row {
    uint64_t count;                   /* elements */
    /* bytes lo … hi of it lie in the arena, byte i at offset at + i; lo == hi: none */
    uint64_t at, lo, hi;
};

/* One operation in the journal, by its owner. Record k, in place k % JOURNAL_RECORDS, is whole from
 * head >= k to head >= k + JOURNAL_RECORDS - 1 | everybody who reports | E94. In a copy of the
 * arena a record that may be torn has descriptor 0. */
struct record {
    /* of the arena's numbers; 0: the call became no operation; UINT64_MAX: no collective */
    shared64 seq;
    shared64 descriptor, count;
    shared64 began;                   /* tick. On the fast path of the arrival, else of the call */
    shared64 arrived;                 /* ticks since then + 1; 0: it has not arrived (yet) */
    /* ticks since then + 1:55 | exact:1 | errno:8; 0: under way. exact: the clock was read; else it
     * was estimated, without what the system took. errno 255: another error | E94 */
    shared64 ended;
    shared64 how;                     /* number of the algorithm + 1, 0: none:32 | site:32 */
    shared32 about, tag;              /* sends and receives: peer + 1, tag + 1; 0: any */
};

/* A rank's vote in agreement `number`; by parity of the number. */
struct vote {
    shared64 number;                /* owner, stored last | all, futex on lo32 | E45. Only grows */
    shared64 stance;                /* kind:6 | site:26 | value:32 */
};

/* Creations with one list of ranks (comm_create) that a rank has declined. */
struct decline {
    shared64 list;                    /* hash of the list; owner, while range is 0 */
    /* first:25 | last:25 | error:13 | held:1; 0: none. held: the owner had a hold on the slot and
     * has freed it | E76 */
    shared64 range;
};

/* OVER: this rank has freed the comm and writes nothing there any more. When all have it set, the
   slot may be made anew. ALONE: this rank has met the death of a peer in a send, a receive or a
   turn; it takes part in none of these any more. */
enum {
    QUIT_ABORT = 1,
    QUIT_FREED = 2,
    QUIT_LEFT = 4,
    QUIT_INTERRUPT = 16,
    QUIT_OVER = 32,
    QUIT_DEVICE = 64,
    QUIT_ALONE = 128
};

/* One rank in one comm. Written by that rank, but for `sleepers`, `bell` and in one case `quit`. */
struct member {
    /* by parity of seq: a rank one ahead does not overwrite what a slow one still reads */
    struct arrival arrival[2];
    _Alignas(LINE) shared64 produced; /* pipeline: chunks put in, since the comm began | E16 */
    shared64 folded;                  /* pipeline: pieces folded | E17. Both only grow */
    /* seq:48 | chunks:16 that are in this rank's slot, though it has not arrived yet; what it will
     * publish as its place; the operation's descriptor | the other one of 2 ranks | E122 */
    shared64 early, early_at, early_what;
    /* pipeline: chunks read to the end; their owner may overwrite them | E18 */
    _Alignas(LINE) shared64 consumed;
    shared64 turns;                   /* turns ended | E19 */
    /* number of the last operation in which this rank has done its part | E22. Only of uneven
     * parts, files, direct (coll/cma.h), and buffers that may be lent (coll/coll.h) */
    shared64 given;
    /* number of the last operation with device memory whose result is in place at this rank | E70.
     * Only grows */
    shared64 placed;
    /* 2 * number + ok of the last operation for which this rank has opened its peers' device
     * memory; ok 0: it could not | E71. Only grows */
    shared64 mapped;
    /* sleepers on a word of this rank; +1/-1 by each sleeper; the owner never clears it */
    _Alignas(LINE) shared32 sleepers;
    /* threads of this rank that sleep on its bell; they: +1 before, -1 after | senders | E40 */
    shared32 listeners;
    /* +1 by a peer that has something for this rank and finds listeners | this rank, futex | E40 */
    shared32 bell;
    /* offset of this rank's table of channels, shared64 by receiver; 0: none yet. Set once | E41 */
    shared64 mail;
    /* number up to which this rank's operations have no given deadline | E64 */
    shared64 patient;
    /* ns from the last look of the wait in hand to its deadline, + 1; 0: none. By the thread that
     * waits, plain: for onlookers, who read copies */
    uint64_t left;
    /* QUIT_ bits, by fetch_or only; sticky | E7. FREED with OVER also by a peer, if the owner has
     * said that it has no hold (group/shrink, split, create) */
    _Alignas(LINE) shared32 quit;
    shared32 cpu;                     /* where it runs, + 1, if ranks share CPUs; or 0. A hint */
    char why[ABORT_TEXT];             /* text of the abort or of its device; before the bit */
    char awaited[AWAITED_TEXT];       /* the key of the store that it waits for; "": none */
    _Alignas(LINE) struct vote vote[2];
    struct decline declines[DECLINES];
    /* shrink: a bit for each survivor that it proposes; before its proposal | all | E46 */
    shared64 listed[RANKS_MAX / 64];
    /* journal: records begun so far; the last one is the operation in hand | E94. Only grows */
    _Alignas(LINE) shared64 head;
    shared64 figures[8];              /* enum figure (watch/journal) */
    /* number of the last collective that this rank has left, with any result | E74. Only grows */
    shared64 ended;
    /* number of the last operation left under way as work, or queued behind work: it will arrive
     * without another call | E21 */
    shared64 queued;
    /* number of the operation for whose handle a thread of this rank sleeps, or slept last; 0: it
     * has given up. For onlookers */
    shared64 waited;
    shared32 letters[2];     /* sends, receives as work | E62. Not in the line of `listeners` */
    struct record journal[JOURNAL_RECORDS];
};

/* ---- letters: point to point. All of it lies in the sender's span, made at its first use; the
 * sender clears it before it is published ---- */
enum letter_mode {
    LETTER_WHOLE,                     /* the message is in the letter */
    LETTER_STORED,                    /* the message is in the store, at `at` */
    LETTER_HANDED,                    /* it is in the block at `at`, which the receiver gets */
    /* the sender has the message: see `deal`. at: its place in the arena; UINT64_MAX: not there */
    LETTER_OFFERED,
    LETTER_MOVED                      /* no message: the next ring is at `at` */
};
struct envelope {                     /* by the sender, before seq */
    uint64_t bytes;
    uint32_t tag, site;
    uint16_t type, mode;              /* tutti_type, enum letter_mode */
    /* MOVED: size of the next ring. HANDED: pages of the block that are there */
    union { uint32_t letters, pages; };
    union {
        char text[LETTER_TEXT];
        /* end, if STORED: the sender's count of stored bytes, this message's included */
        struct { uint64_t at, end, deal, generation; } rest;
    };
};
struct letter {
    /* letters sent, this one included; sender, stored last | receiver | E35. Only grows */
    shared64 seq;
    struct envelope envelope;
};
struct preview { shared64 at; uint64_t bytes; uint32_t tag, pages; uint16_t type, mode; };
struct channel {                      /* from one rank to one rank of a comm */
    /* sender: pieces put into the stage, since the channel began | E38 */
    _Alignas(LINE) shared64 filled;
    /* sender: the number of the letter that it is writing << 16 | pieces of its message that are in
     * the store. The letter is not sent yet | E86. Only grows */
    shared64 begun;
    struct preview preview;           /* sender, before begun: of that letter's envelope | E86 */
    /* receiver: letters read; the sender may overwrite them | E36 */
    _Alignas(LINE) shared64 taken;
    shared64 freed;                   /* receiver: stored bytes read, by the sender's count | E36 */
    shared64 drained;                 /* receiver: pieces read | E39 */
    /* receiver: the number of the letter that it waits for with a large buffer; the sender may
     * write `preview` | E134. Who waits may give up */
    shared64 waits;
    _Alignas(LINE) struct letter letters[];
};
enum deal_state { DEAL_OFFERED, DEAL_GRANTED, DEAL_DONE, DEAL_DROPPED };
struct deal {       /* rendezvous of one large message */
    /* generation << 2 | enum deal_state; both sides by CAS; the sender begins a generation | E37 */
    _Alignas(64) shared64 state;
    /* receiver, before GRANTED: the piece of the stage where its data begin | E37 */
    shared64 start;
    shared64 stage;                   /* sender, before OFFERED: offset of the stage | E35 */
};

/* ---- files: the page behind the bytes of a loaded file (disk/loaded), in the span of the rank
 * that made room for it ---- */
struct loaded {
    /* a bit for each rank of the world that may read it. Set before any other rank knows of the
     * file; each rank clears its own | E75 */
    _Alignas(4096) shared32 held[RANKS_MAX / 32];
};

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

/* A hash of this layout. It changes with any offset, size, or the C library's mutex. */
uint64_t layout_hash(void);

#endif
