/* Rings, stores, stages and deals: the memory of messages under way. A letter of a small message is
 * one line that its receiver spins on: four bytes cost one transfer of a line, as a flag does.
 * A writer loads the reader's counters only when its ring or store seems full.
 * Cost: to grow takes memory from the span, three or four times in a channel's life. The old memory
 * stays until the comm is closed: a third of the size in use. */
#include "p2p/p2p.h"

#include "fold/fold.h"
#include "group/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEALS_A_PAGE = 4096 / sizeof(struct deal), STORE_ALIGN = 64 };
/* A store grows to the size of a stage when the bytes through it have earned those pages
   (base/fresh.h). In a small store a line is written again while it is in its reader's caches,
   which is slow. Measured, 2 ranks, 64 KiB both ways: 5.5 us through 1 MiB, 3.7 us through 2 MiB,
   4.8 us through 4 MiB. So a stage is 2 MiB. */
enum { PAGE = 4096, STORE_CHUNK = 16384 };
enum { LETTER_FIRST = CPU_LINE - offsetof(struct letter, envelope.text), OWN_MOST = 1024 };
enum { MOVES_MOST = 8 };                    /* a ring reaches RING_MOST in fewer moves */

static int table_open(struct p2p *p)
{
    int error = 0;
    size_t bytes = p->watch->size * sizeof(shared64);
    if (p->table)
        return 0;
    shared64 *table = comm_hold(p->comm, bytes, &error);
    if (!table)
        return error;
    memset((void *)table, 0, bytes);
    p->table = table;
    store_release64(&p->watch->mine->mail, p2p_offset(p, table));    /* E41 release */
    return 0;
}

int lane_open(struct p2p *p, struct lane *lane)
{
    if (lane->out)
        return 0;
    int error = table_open(p);
    if (error < 0)
        return error;
    struct channel *channel = comm_hold(p->comm, 4096, &error);
    if (!channel)
        return error;
    memset((void *)channel, 0, 4096);
    _Static_assert(sizeof(struct channel) + RING_FIRST * sizeof(struct letter) == 4096,
                   "a channel begins as one page");
    lane->out = channel;
    lane->write = (struct reel){ channel->letters, RING_FIRST, 0, 0 };
    store_release64(&p->table[lane_peer(p, lane)], p2p_offset(p, channel));     /* E41 release */
    return 0;
}

static void reel_on(struct reel *reel)
{
    if (++reel->index == reel->size)
        reel->index = 0;
}

/* True: one place is left. It is kept for the letter that says where the next ring is. */
static bool ring_full(const struct lane *lane)
{
    uint64_t taken = lane->taken > lane->write.begun ? lane->taken : lane->write.begun;
    return lane->sent - taken >= lane->write.size - 1;
}

static bool ring_grow(struct p2p *p, struct lane *lane)
{
    int error;
    uint32_t size = lane->write.size * 4;
    size_t bytes = size * sizeof(struct letter);
    struct letter *more = size <= RING_MOST ? comm_hold(p->comm, bytes, &error) : NULL;
    if (!more)
        return false;
    memset((void *)more, 0, bytes);
    struct letter *last = &lane->write.at[lane->write.index];
    last->envelope.mode = LETTER_MOVED;
    last->envelope.letters = size;
    last->envelope.rest.at = p2p_offset(p, more);
    store_release64(&last->seq, ++lane->sent);       /* E35 release */
    lane->write = (struct reel){ more, size, 0, lane->sent };
    return true;
}

struct letter *lane_letter(struct p2p *p, struct lane *lane)
{
    if (ring_full(lane)) {
        lane->taken = load_acquire64(&lane->out->taken);             /* E36 acquire */
        if (ring_full(lane) && !ring_grow(p, lane))
            return NULL;
    }
    return &lane->write.at[lane->write.index];
}

/* Prefetches for writing the lines of the next message of this size. As a rule its receiver has
   read the old content long ago. A store to a line that is not here delays the letter's seq behind
   it. Measured between CPUs far apart, both ways, 64 bytes: 624 ns without the letter's second
   line, 226 ns with it. */
static void lane_own(const struct lane *lane, size_t bytes)
{
    const struct letter *next = &lane->write.at[lane->write.index];
    cpu_own_all(next, bytes > LETTER_FIRST && bytes <= LETTER_TEXT ? sizeof *next : CPU_LINE);
    if (bytes > LETTER_TEXT && bytes <= OWN_MOST && lane->store_at + bytes <= lane->store_bytes)
        cpu_own_all(lane->store + lane->store_at, bytes);
}

void lane_publish(struct p2p *p, struct lane *lane, struct letter *letter, size_t bytes)
{
    reel_on(&lane->write);
    store_fence64(&letter->seq, ++lane->sent);       /* E35 release, E40 fence */
    p2p_ring(p, lane_peer(p, lane));
    lane_own(lane, bytes);
}

/* Touches the store's pages up to `end`, in chunks. 0 or -ENOMEM. */
static int store_touch(struct lane *lane, uint64_t end)
{
    uint64_t whole = layout_round(end, STORE_CHUNK),
             there = whole < lane->store_bytes ? whole : lane->store_bytes;
    int r = end > lane->store_there
        ? comm_touch(lane->store + lane->store_there, there - lane->store_there, &lane->fresh)
        : 0;
    if (r == 0 && end > lane->store_there)
        lane->store_there = there;
    return r;
}

/* Room in the present store. NULL: *error; -EAGAIN: it is full. */
static char *store_fit(struct p2p *p, struct lane *lane, uint64_t bytes, uint64_t *end, int *error)
{
    uint64_t rest = lane->store_bytes - lane->store_at;
    bool round = rest < bytes;      /* from its beginning again; the rest at its end stays unused */
    uint64_t freed = lane->freed > lane->store_begun ? lane->freed : lane->store_begun;
    /* an empty store is free as a whole: the rest at its end does not count */
    uint64_t skip = round && lane->stored != freed ? rest : 0;
    *error = -EAGAIN;
    if (!lane->store || lane->stored - freed + skip + bytes > lane->store_bytes)
        return NULL;
    char *at = round ? lane->store : lane->store + lane->store_at;
    *error = store_touch(lane, (uint64_t)(at - lane->store) + bytes);
    if (*error < 0)
        return NULL;
    lane->store_at = (uint64_t)(at - lane->store) + bytes;
    lane->stored += skip + bytes;
    fresh_earn(&lane->fresh, comm_earns(p->comm, bytes));
    *end = lane->stored;
    return at;
}

char *lane_store(struct p2p *p, struct lane *lane, uint64_t bytes, uint64_t *end, int *error)
{
    *error = -EAGAIN;
    uint64_t whole = layout_round(bytes, STORE_ALIGN);
    uint64_t most = (uint64_t)PIECE * p->pieces;
    bool medium = bytes > SMALL;
    /* E36 acquire */
    if (medium && lane->stored - load_acquire64(&lane->out->freed) + whole > STORE_MOST / 2)
        return NULL;                                 /* the other half is for small messages */
    bool busy = lane->store && lane->store_bytes < most && fresh_may(&lane->fresh, most / PAGE);
    char *at = busy ? NULL : store_fit(p, lane, whole, end, error);
    if (at || *error == -ENOMEM)
        return at;
    /* E36 acquire: loaded before freed, so a wait on `taken` misses no letter read after this */
    lane->taken = load_acquire64(&lane->out->taken);
    lane->freed = load_acquire64(&lane->out->freed);                 /* E36 acquire */
    at = busy ? NULL : store_fit(p, lane, whole, end, error);
    uint64_t more = busy ? most
        : lane->store ? lane->store_bytes * 4
        : STORE_FIRST,
             room = busy || medium ? most : STORE_MOST;
    while (more < whole)
        more *= 4;
    if (more > room)
        more = room;
    if (at || *error == -ENOMEM || more <= lane->store_bytes)
        return at;
    int refused;
    char *store = comm_hold_bare(p->comm, more, &refused);
    if (!store && whole > lane->store_bytes)         /* no store will ever have room for it */
        *error = refused;
    if (!store && busy) {
        fresh_refused(&lane->fresh, most / PAGE);
        return store_fit(p, lane, whole, end, error);
    }
    if (!store)
        return NULL;
    lane->store = store;
    lane->store_bytes = more;
    lane->store_at = lane->store_there = 0;
    lane->store_begun = lane->stored;
    return store_fit(p, lane, whole, end, error);
}

/* Pieces are filled in turn, so pages are touched for as many pieces as were offered. */
int lane_stage(struct p2p *p, struct lane *lane, uint64_t pieces)
{
    int error = 0;
    uint64_t before = lane->offers_pieces,
             all = before + pieces < p->pieces ? before + pieces : p->pieces;
    if (!lane->stage)
        lane->stage = comm_hold_bare(p->comm, (size_t)PIECE * p->pieces, &error);
    if (!lane->stage)
        return error;
    if (before < all
        && (error = comm_touch(lane->stage + before * PIECE, (all - before) * PIECE, &lane->fresh))
            < 0)
        return error;
    lane->offers_pieces = all;
    return 0;
}

static int offers_more(struct p2p *p, struct lane *lane)
{
    int error;
    struct deal *page = comm_hold(p->comm, 4096, &error);
    struct offer *offers = page ? calloc(DEALS_A_PAGE, sizeof *offers) : NULL;
    struct offer_page *books = page ? malloc(sizeof *books) : NULL;
    if (!books || !offers) {
        free(books);
        free(offers);
        return page ? -ENOMEM : error;
    }
    *books = (struct offer_page){ p->pages, offers };
    p->pages = books;
    memset((void *)page, 0, 4096);
    for (size_t i = 0; i < DEALS_A_PAGE; i++) {
        offers[i].deal = &page[i];
        offer_give(lane, &offers[i]);
    }
    return 0;
}

struct offer *offer_take(struct p2p *p, struct lane *lane, int *error)
{
    *error = lane->offers ? 0 : offers_more(p, lane);
    struct offer *offer = lane->offers;
    if (*error < 0)
        return NULL;
    lane->offers = offer->next;
    offer->generation++;
    return offer;
}

void offer_give(struct lane *lane, struct offer *offer)
{
    offer->next = lane->offers;
    lane->offers = offer;
}

char *p2p_of_arena(const struct p2p *p, uint64_t offset, uint64_t bytes)
{
    const struct arena *arena = p->watch->arena;
    return offset <= arena->bytes && bytes <= arena->bytes - offset ? arena->base + offset : NULL;
}

char *p2p_of_peer(const struct p2p *p, uint32_t peer, uint64_t offset, uint64_t bytes)
{
    const struct arena_header *h = p->watch->arena->header;
    uint64_t from = h->spans_at + watch_world_rank(p->watch, peer) * h->span_bytes;
    bool there = offset >= from && offset - from <= h->span_bytes
        && bytes <= h->span_bytes - (offset - from) && offset % sizeof(struct deal) == 0;
    return there ? p->watch->arena->base + offset : NULL;
}

static bool lane_damaged(struct lane *lane)
{
    lane->damaged = true;
    return false;
}

/* Finds the channel from the peer. False: there is none yet, or it is damaged. */
static bool lane_find(struct p2p *p, struct lane *lane)
{
    uint32_t peer = lane_peer(p, lane);
    uint64_t at;
    if (lane->damaged)
        return false;
    if (!lane->table) {
        at = load_acquire64(&p->watch->members[peer].mail);          /* E41 acquire */
        if (!at)
            return false;
        lane->table = (shared64 *)(void *)p2p_of_peer(p, peer, at,
                                                      p->watch->size * sizeof(shared64));
        if (!lane->table)
            return lane_damaged(lane);
    }
    at = load_acquire64(&lane->table[p->watch->me]);                 /* E41 acquire */
    if (!at)
        return false;
    struct channel *in = (struct channel *)(void *)p2p_of_peer(p, peer, at, 4096);
    if (!in || at % _Alignof(struct channel))
        return lane_damaged(lane);
    lane->in = in;
    lane->read = (struct reel){ lane->in->letters, RING_FIRST, 0, 0 };
    return true;
}

/* Copies only the bytes in use: for most messages they lie in one cache line. */
static inline void front_copy(struct envelope *to, const struct envelope *from)
{
    enum { FIRST = offsetof(struct envelope, rest) + sizeof to->rest };
    memcpy(to, from, FIRST);
    if (to->mode == LETTER_WHOLE && to->bytes > FIRST - offsetof(struct envelope, text))
        memcpy((char *)to + FIRST, (const char *)from + FIRST, sizeof *to - FIRST);
}

/* True: the envelope in hand can be true. A rank may offer itself memory outside the arena. */
static bool front_sound(const struct p2p *p, const struct lane *lane)
{
    const struct envelope *e = &lane->front;
    uint32_t peer = lane_peer(p, lane);
    if (fold_type_size((tutti_type)e->type) == 0)
        return false;
    switch (e->mode) {
    case LETTER_WHOLE: return e->bytes <= LETTER_TEXT;
    case LETTER_STORED: return e->bytes <= MEDIUM && p2p_of_peer(p, peer, e->rest.at, e->bytes);
    case LETTER_HANDED: return hand_sound(p, lane, e);
    case LETTER_OFFERED:
        return p2p_of_peer(p, peer, e->rest.deal, sizeof(struct deal))
            && (e->rest.at == NOT_IN_ARENA || peer == p->watch->me
                || (cma_is(e->rest.at) ? e->bytes >= CMA_LEAST
                                       : p2p_of_arena(p, e->rest.at, e->bytes) != NULL));
    default: return false;
    }
}

/* Moves on to the next ring, as the letter in hand says. */
static bool front_moves(struct p2p *p, struct lane *lane)
{
    const struct envelope *e = &lane->front;
    struct letter *more = e->letters > RING_FIRST && e->letters <= RING_MOST
            && lane->moves < MOVES_MOST
        ? (struct letter *)(void *)p2p_of_peer(p, lane_peer(p, lane), e->rest.at,
                                               e->letters * sizeof(struct letter))
        : NULL;
    if (!more)
        return lane_damaged(lane);
    lane->moves++;
    lane->got++;
    lane->read = (struct reel){ more, e->letters, 0, lane->got };
    return true;
}

const struct envelope *lane_next(struct p2p *p, struct lane *lane)
{
    if (lane->damaged || (!lane->in && !lane_find(p, lane)))
        return NULL;
    do {
        const struct letter *letter = &lane->read.at[lane->read.index];
        uint64_t seq = load_acquire64(&letter->seq);                 /* E35 acquire */
        if (seq <= lane->got)
            return NULL;
        front_copy(&lane->front, &letter->envelope);
        if (seq == lane->got + 1 && lane->front.mode != LETTER_MOVED && front_sound(p, lane))
            return &lane->front;
        if (seq != lane->got + 1 || lane->front.mode != LETTER_MOVED)
            lane_damaged(lane);
    } while (!lane->damaged && front_moves(p, lane));
    return NULL;
}

void lane_took(struct p2p *p, struct lane *lane, const struct envelope *envelope)
{
    if (envelope->mode == LETTER_STORED)
        lane->got_end = envelope->rest.end;
    else if (envelope->mode == LETTER_HANDED)
        hand_up(p, lane, envelope);
    reel_on(&lane->read);
    lane->got++;
}

void lane_tell(struct p2p *p, struct lane *lane)
{
    store_release64(&lane->in->freed, lane->got_end);                /* E36 release */
    store_fence64(&lane->in->taken, lane->got);      /* E36 release, E40 fence */
    p2p_ring(p, lane_peer(p, lane));
}

const shared64 *lane_word(struct p2p *p, struct lane *lane, uint64_t *value)
{
    *value = 1;
    if (lane->in || lane_find(p, lane)) {
        *value = lane->got + 1;
        return &lane->read.at[lane->read.index].seq;
    }
    return lane->table ? &lane->table[p->watch->me] : &p->watch->members[lane_peer(p, lane)].mail;
}
