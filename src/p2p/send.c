/* The sender's half. Cost of a small message: a copy into the letter or the store, and one store
 * with a fence. A large message is copied into the stage by the sender and out of it by the
 * receiver, some pieces behind, so both copies run side by side in the caches. A message in the
 * arena is copied once, and so is one that its receiver reads out of its sender's memory.
 * Pieces are 32 KiB: 256 KiB both ways take 20 us so, 24 us by pieces of 64 KiB; from 1 MiB on both
 * take the same. */
#include "p2p/p2p.h"

#include "base/error.h"
#include "base/staged.h"
#include "group/place.h"

#include <errno.h>
#include <string.h>

/* True: the receiver can copy it from its place: it lies in the arena, or we send to ourselves. */
static bool send_direct(const struct p2p *p, const struct lane *lane, const struct post *post)
{
    struct place place = comm_place(p->comm, post->from, post->bytes);
    return lane_peer(p, lane) == p->watch->me || (place.lo == 0 && place.hi == post->bytes);
}

/* Writes an offer of a message that stays here. */
static int send_offer(struct p2p *p, struct lane *lane, struct post *post, struct envelope *e)
{
    uint64_t pieces = (post->bytes + PIECE - 1) / PIECE;
    int error = post->direct ? 0 : lane_stage(p, lane, pieces);
    struct offer *offer = error < 0 ? NULL : offer_take(p, lane, &error);
    if (!offer)
        return error;
    struct deal *deal = offer->deal;
    if (!post->direct)
        /* relaxed: the letter publishes it, E35 */
        store_relaxed64(&deal->stage, p2p_offset(p, lane->stage));
    /* relaxed: the letter publishes it, E35 */
    store_relaxed64(&deal->state, deal_word(offer->generation, DEAL_OFFERED));
    post->offer = offer;
    post->pieces = pieces;
    post->piece = 0;
    e->mode = LETTER_OFFERED;
    e->rest.at = post->direct ? p2p_offset(p, post->from) : NOT_IN_ARENA;
    if (!post->direct)
        cma_offer(p, post, e);
    e->rest.deal = p2p_offset(p, deal);
    e->rest.generation = offer->generation;
    return 0;
}

static inline void send_sign(struct envelope *e, size_t bytes, int tag, uint32_t site,
                             tutti_type type)
{
    e->bytes = bytes;
    e->tag = (uint32_t)tag;
    e->site = site;
    e->type = (uint16_t)type;
}

/* Copies a message into the letter or the store, and signs the letter. 0 or -errno; -EAGAIN: there
 * is no room now. A receiver spins on the letter's line, so a store there waits until the line is
 * here, and all later stores behind it: a message in the store is copied first. */
static inline int send_whole(struct p2p *p, struct lane *lane, const struct note *note,
                             const char *from, struct envelope *e)
{
    size_t bytes = note->bytes;
    uint64_t end = 0;
    uint32_t pages = 0;
    int error;
    if (bytes <= LETTER_TEXT) {
        e->mode = LETTER_WHOLE;
        if (bytes)
            memcpy(e->text, from, bytes);
        send_sign(e, bytes, note->tag, note->site, note->type);
        return 0;
    }
    char *at = hand_down(p, lane, bytes, &pages);
    bool block = at != NULL;
    error = -EAGAIN;
    if (!block && bytes <= MEDIUM)
        at = lane_store(p, lane, bytes, &end, &error);
    if (!at)
        return error;
    uint16_t mode = block ? LETTER_HANDED : LETTER_STORED;
    if (bytes >= OVERLAP_LEAST) {
        const struct envelope front = {
            .bytes = bytes, .tag = (uint32_t)note->tag, .type = (uint16_t)note->type,
            .mode = mode, .pages = pages, .rest.at = p2p_offset(p, at)
        };
        struct overlap chunks = overlap_begin(p, lane, at, from, bytes, block);
        overlap_end(p, lane, &chunks, &front);
    } else if (block) {
        e->pages = pages;              /* now, so that the letter's line comes during the copy */
        message_copy(bytes)(at, from, bytes);
    } else
        staged_copy(&p->staged, p->comm->world->staged_less, message_copy(bytes), at, from, bytes);
    e->mode = mode;
    e->pages = pages;
    e->rest.at = p2p_offset(p, at);
    e->rest.end = end;
    send_sign(e, bytes, note->tag, note->site, note->type);
    return 0;
}

/* An offer costs sender and receiver one more exchange. A message up to MEDIUM takes about as long
 * as that, so it is offered only if the store is full. */
static int send_large(struct p2p *p, struct lane *lane, struct post *post, const struct note *note,
                      struct envelope *e)
{
    post->direct = send_direct(p, lane, post);
    if (!post->direct)
        hand_turn(p, lane, post->bytes);
    if (!post->direct && send_whole(p, lane, note, post->from, e) == 0)
        return 0;
    send_sign(e, post->bytes, post->tag, post->site, post->type);
    return send_offer(p, lane, post, e);
}

int lane_send(struct p2p *p, struct lane *lane, struct post *post)
{
    int error = lane_open(p, lane);
    struct letter *letter = error < 0 ? NULL : lane_letter(p, lane);
    if (!letter)
        return error;
    struct envelope *e = &letter->envelope;
    const struct note note = {
        post->peer, post->tag, post->type, post->site, post->bytes, post->width
    };
    uint64_t began = hand_began(p, lane, post->bytes);
    error = post->bytes > SMALL ? send_large(p, lane, post, &note, e)
                                : send_whole(p, lane, &note, post->from, e);
    if (error < 0)
        return error == -EAGAIN ? 0 : error;
    bool offered = e->mode == LETTER_OFFERED;
    lane_publish(p, lane, letter, post->bytes);
    if (offered) {
        if (post->in)
            post_remove(post);
        post_append(&lane->offered, post);
        lane_wake(p, lane);
    } else {
        hand_learn(lane, post->bytes, began);
        post_over(p, post, 0);
    }
    return 1;
}

bool send_now(struct p2p *p, const struct note *note, const void *from)
{
    struct lane *lane = p2p_lane(p, (uint32_t)note->peer);
    uint64_t began = hand_began(p, lane, note->bytes);
    if (note->bytes > SMALL || !lane->out || lane->unsent.head || !p2p_well(p, note->peer))
        return false;
    struct letter *letter = lane_letter(p, lane);
    if (!letter || send_whole(p, lane, note, from, &letter->envelope) < 0)
        return false;
    lane_publish(p, lane, letter, note->bytes);
    hand_learn(lane, note->bytes, began);
    return true;
}

/* True: the granted start can be true. Grants follow each other without a gap, so a start is at
 * most as far ahead as all offers together have pieces. */
static bool start_sound(const struct lane *lane, const struct post *post)
{
    uint64_t pieces = 0;
    for (const struct post *other = lane->offered.head; other; other = other->next)
        pieces += other->direct ? 0 : other->pieces;
    return post->direct || (post->start == START_FAR && post->bytes >= CMA_LEAST)
        || (post->start >= lane->filled && post->start - lane->filled < pieces);
}

/* Fills the stage with a granted message as far as there is room. True: something moved. */
static bool offered_push(struct p2p *p, struct lane *lane, struct post *post)
{
    struct deal *deal = post->offer->deal;
    uint64_t state = load_acquire64(&deal->state);                   /* E37 acquire */
    if (state == deal_word(post->offer->generation, DEAL_DONE)) {
        offer_give(lane, post->offer);
        post_over(p, post, 0);
        return true;
    }
    bool moved = !post->moving, begins = moved || (!post->direct && post->start == START_FAR);
    if (state == deal_word(post->offer->generation, DEAL_OFFERED) && moved)
        return false;
    if (begins)
        /* relaxed: after E37; a start stored later publishes nothing else */
        post->start = load_relaxed64(&deal->start);
    post->moving = true;
    bool sound = state == deal_word(post->offer->generation, DEAL_GRANTED)
        /* relaxed: an old value is only smaller, and no sound one is above `filled` */
        && load_relaxed64(&lane->out->drained) <= lane->filled;
    if (!sound || (begins && !start_sound(lane, post))) {
        p2p_abandon(p, post, p2p_fail(p, post, DAMAGED));
        return true;
    }
    if (!post_staged(post) || lane->filled != post->start + post->piece)
        return moved;
    /* E39 acquire */
    while (post->piece < post->pieces
           && lane->filled - load_acquire64(&lane->out->drained) < p->pieces) {
        size_t at = post->piece++ * PIECE, n = post->bytes - at < PIECE ? post->bytes - at : PIECE;
        staged_copy(&p->staged, p->comm->world->staged_less, copy_plain,
                    lane->stage + lane->filled % p->pieces * PIECE, post->from + at, n);
        store_fence64(&lane->out->filled, ++lane->filled);           /* E38 release, E40 fence */
        p2p_ring(p, lane_peer(p, lane));
        moved = true;
    }
    if (post->piece == post->pieces) {
        state = deal_word(post->offer->generation, DEAL_GRANTED);
        /* a receiver that then lacks a piece finds the message broken */
        /* E37 release */
        swap_if64(&deal->state, &state, deal_word(post->offer->generation, DEAL_DONE));
        offer_give(lane, post->offer);
        post_over(p, post, 0);
    }
    return moved;
}

static bool offered_push_all(struct p2p *p, struct lane *lane)
{
    bool moved = false;
    for (struct post *post = lane->offered.head, *next; post; post = next) {
        next = post->next;
        moved |= offered_push(p, lane, post);
    }
    return moved;
}

/* True: one of the messages through the stage has its turn, or there are none. */
static bool lane_has_turn(const struct lane *lane)
{
    bool any = false;
    for (const struct post *post = lane->offered.head; post; post = post->next) {
        bool staged = post_staged(post);
        if (staged && lane->filled == post->start + post->piece)
            return true;
        any |= staged;
    }
    return !any;
}

/* Fails all messages through the stage. A granted message begins where the ones granted before it
   end, and a second look sees their grants. If none has its turn then, a start was written over,
   and both sides would wait for ever. */
static void lane_stuck(struct p2p *p, struct lane *lane)
{
    for (struct post *post = lane->offered.head, *next; post; post = next) {
        next = post->next;
        if (post_staged(post))
            p2p_abandon(p, post, p2p_fail(p, post, DAMAGED));
    }
}

bool lane_push(struct p2p *p, struct lane *lane)
{
    bool moved = offered_push_all(p, lane);
    if (!lane_has_turn(lane)) {
        moved |= offered_push_all(p, lane);
        if (!lane_has_turn(lane)) {
            lane_stuck(p, lane);
            moved = true;
        }
    }
    for (struct post *post; (post = lane->unsent.head) != NULL;) {
        int r = lane_send(p, lane, post);
        if (r == 0)
            break;
        if (r < 0)
            p2p_expire(p, post, r);
        moved = true;
    }
    return moved;
}
