/* The receiver's half. Letters of one sender are looked at in the order in which they were sent. A
 * letter that no call asks for moves to private memory only while a call waits for one behind it.
 * Cost: the lists are walked from their front, a few entries in most programs; their order is the
 * posting order. */
#include "p2p/p2p.h"

#include "base/clock.h"
#include "base/error.h"
#include "fold/fold.h"
#include "group/place.h"
#include "watch/verdict.h"

#include <errno.h>
#include <stdlib.h>

enum { FAST_SPINS = 256, FAST_YIELDS = 8 };

static bool fits(const struct post *post, uint32_t from, uint32_t tag)
{
    return (post->peer == TUTTI_ANY || post->peer == (int)from)
        && (post->tag == TUTTI_ANY || post->tag == (int)tag);
}

bool deal_step(struct p2p *p, uint32_t from, struct deal *deal, uint64_t generation,
               enum deal_state is, enum deal_state to)
{
    uint64_t seen = deal_word(generation, is);
    if (!swap_if64(&deal->state, &seen, deal_word(generation, to)))  /* E37 release */
        return false;
    fence_full();                                                    /* E40 fence */
    p2p_ring(p, from);
    return true;
}

/* The sender gave up in the middle of the message: its comm has failed, and so has ours. */
void match_broken(struct p2p *p, struct post *post)
{
    verdict_quit(p->watch, QUIT_ALONE);
    comm_explain(p->comm,
                 "rank %u gave up in the middle of the message that is received here at %s: its "
                 "comm has failed",
                 post->sender, arena_site_text(p->watch->arena, post->site));
    post_over(p, post, -ECANCELED);
}

static int match_wrong(struct p2p *p, const struct post *post, uint32_t from,
                       const struct envelope *e)
{
    const struct arena *arena = p->watch->arena;
    char sent[128], here[128];
    struct text t = TEXT_IN(sent), h = TEXT_IN(here);
    size_t width = fold_type_size((tutti_type)e->type);
    text_clear(&t);
    text_clear(&h);
    fingerprint_add(&t, fingerprint_make(KIND_SEND, (tutti_type)e->type, 0, 0, e->bytes / width),
                    e->bytes / width);
    fingerprint_add(&h, fingerprint_make(KIND_RECV, post->type, 0, 0, post->count), post->count);
    comm_explain(p->comm,
                 "%s: %s at %s was answered by %s tag %u of rank %u at %s; the message is lost",
                 post->type != (tutti_type)e->type ? "the types differ"
                                                   : "the message is longer than the buffer",
                 here, arena_site_text(arena, post->site), sent, e->tag, from,
                 arena_site_text(arena, e->site));
    return post->type != (tutti_type)e->type ? -EPROTO : -EMSGSIZE;
}

/* The address of an offered message that is read in place. A message to ourselves may be anywhere:
   its address comes from our post, since others can write over the letter. NULL: there is no such
   offer of ours. */
static const char *match_direct(const struct p2p *p, uint32_t from, const struct envelope *e,
                                const struct deal *deal)
{
    if (from != p->watch->me)
        return p2p_at(p, e->rest.at);
    for (const struct post *post = p->lanes[from].offered.head; post; post = post->next)
        if (post->offer->deal == deal && post->offer->generation == e->rest.generation)
            return post->bytes == e->bytes ? post->from : NULL;
    return NULL;
}

struct landing landing_begin(struct p2p *p, size_t bytes)
{
    struct tuner *ways = COPY_STREAMS ? tuner_of(p->streams, bytes, STREAM_LEAST) : NULL;
    return (struct landing){ message_copy(bytes), ways, 0, ways && tuner_choose(ways, 1) };
}

void landing_copy(struct landing *landing, char *to, const char *from, size_t bytes)
{
    if (!landing->ways) {
        landing->plain(to, from, bytes);
        return;
    }
    uint64_t began = clock_tick();
    if (landing->streamed)
        copy_streaming(to, from, bytes);
    else
        landing->plain(to, from, bytes);
    landing->ticks += clock_tick() - began;
}

void landing_end(const struct landing *landing, size_t bytes)
{
    if (landing->ways)
        tuner_learn(landing->ways, landing->streamed, landing->ticks, bytes);
}

void match_learn(struct post *post)
{
    if (post->ways)
        tuner_learn(post->ways, post->start == START_FAR, clock_tick() - post->granted_tick,
                    post->bytes);
    landing_end(&post->landing, post->bytes);
}

/* Grants an offer: from here on the transfer runs. False: it was withdrawn. */
static bool match_grant(struct p2p *p, struct post *post, uint32_t from, const struct envelope *e)
{
    struct lane *lane = p2p_lane(p, from);
    struct deal *deal = (struct deal *)(void *)p2p_at(p, e->rest.deal);
    bool direct = from == p->watch->me || !cma_is(e->rest.at);
    post->ways = NULL;
    bool far = !direct && cma_choose(p, lane, post, e);
    uint64_t stage = load_relaxed64(&deal->stage);                   /* relaxed: after E35 */
    /* E37 acquire */
    if (load_acquire64(&deal->state) != deal_word(e->rest.generation, DEAL_OFFERED))
        return false;
    /* The address is taken before the grant: a granted deal may end, and serve another message,
       before we come to the data. If the offer is withdrawn now, deal_step refuses this generation
       below, before the next one can be granted. */
    post->stage = direct ? match_direct(p, from, e, deal)
                         : p2p_of_peer(p, from, stage, (uint64_t)PIECE * p->pieces);
    if (!post->stage) {
        lane->damaged = true;
        return false;
    }
    if (!direct)
        /* relaxed: the grant publishes it, E37 */
        store_relaxed64(&deal->start, far ? START_FAR : lane->granted);
    if (!deal_step(p, from, deal, e->rest.generation, DEAL_OFFERED, DEAL_GRANTED))
        return false;
    post->deal = deal;
    post->generation = e->rest.generation;
    post->moving = true;
    post->bytes = e->bytes;
    post->landing = landing_begin(p, far ? 0 : e->bytes);
    if (direct) {
        landing_copy(&post->landing, post->to, post->stage, e->bytes);
        match_learn(post);
        if (deal_step(p, from, deal, e->rest.generation, DEAL_GRANTED, DEAL_DONE))
            post_over(p, post, 0);
        else
            match_broken(p, post);
        return true;
    }
    post->start = START_FAR;
    if (far && cma_take(p, lane, post, e))
        return true;
    post->start = lane->granted;
    post->pieces = (e->bytes + PIECE - 1) / PIECE;
    post->piece = 0;
    lane->granted += post->pieces;
    if (post->in)
        post_remove(post);
    post_append(&lane->moving, post);
    lane_wake(p, lane);
    return true;
}

/* The post takes the message; a probe only sees it. False: the message was withdrawn. */
static bool match_deliver(struct p2p *p, struct post *post, uint32_t from, const struct envelope *e,
                          const char *data)
{
    struct deal *deal = e->mode == LETTER_OFFERED ? (struct deal *)(void *)p2p_at(p, e->rest.deal)
                                                  : NULL;
    bool wrong = post->kind == KIND_RECV
        && (post->type != (tutti_type)e->type || e->bytes > post->bytes);
    post->sender = from;
    /* E37 acquire */
    if (deal && post->kind == KIND_PROBE
        && load_acquire64(&deal->state) != deal_word(e->rest.generation, DEAL_OFFERED))
        return false;
    if (deal && wrong && !deal_step(p, from, deal, e->rest.generation, DEAL_OFFERED, DEAL_DONE))
        return false;
    if (post->got)
        *post->got = (tutti_message){ (int)from, (int)e->tag,
                                      e->bytes / fold_type_size((tutti_type)e->type) };
    if (wrong)
        post_over(p, post, match_wrong(p, post, from, e));
    else if (post->kind == KIND_PROBE)
        post_over(p, post, 0);
    else if (deal)
        return match_grant(p, post, from, e);
    else {
        struct landing landing = landing_begin(p, e->bytes);
        if (e->bytes)
            landing_copy(&landing, post->to, data, e->bytes);
        landing_end(&landing, e->bytes);
        post_over(p, post, 0);
    }
    return true;
}

void match_begin(struct p2p *p, struct post *post)
{
    for (struct parcel **at = &p->parcels; *at;) {
        struct parcel *parcel = *at;
        if (!fits(post, parcel->from, parcel->envelope.tag)) {
            at = &parcel->next;
            continue;
        }
        const struct envelope *e = &parcel->envelope;
        bool there = match_deliver(p, post, parcel->from, e,
                                   e->mode == LETTER_WHOLE ? e->text : parcel->data);
        if (there && post->kind == KIND_PROBE)
            return;
        *at = parcel->next;
        if (!*at)
            p->parcels_end = at;
        free(parcel);
        if (there)
            return;
    }
    post_append(&p->posted, post);
}

struct post *match_first(const struct p2p *p, uint32_t from, uint32_t tag)
{
    struct post *post = p->posted.head;
    while (post && !fits(post, from, tag))
        post = post->next;
    return post;
}

/* Offers a message to the posted calls, in their order. True: it is taken, or was withdrawn. */
static bool match_message(struct p2p *p, uint32_t from, const struct envelope *e, const char *data)
{
    for (struct post *post = p->posted.head, *next; post; post = next) {
        next = post->next;
        if (!fits(post, from, e->tag))
            continue;
        bool probe = post->kind == KIND_PROBE;
        if (!match_deliver(p, post, from, e, data) || !probe)
            return true;
    }
    return false;
}

static bool match_set_aside(struct p2p *p, uint32_t from, const struct envelope *e,
                            const char *data)
{
    size_t bytes = envelope_apart(e) ? e->bytes : 0;
    struct parcel *parcel = malloc(sizeof *parcel + bytes);
    if (!parcel)
        return false;
    parcel->next = NULL;
    parcel->from = from;
    parcel->envelope = *e;
    copy_plain(parcel->data, data, bytes);
    *p->parcels_end = parcel;
    p->parcels_end = &parcel->next;
    return true;
}

/* The first posted call that asks for this sender's messages. */
static struct post *match_asker(const struct p2p *p, uint32_t from)
{
    struct post *post = p->posted.head;
    while (post && post->peer != TUTTI_ANY && post->peer != (int)from)
        post = post->next;
    return post;
}

/* The channel is damaged: ends all calls that ask for this sender. True: there were some. */
static bool match_damaged(struct p2p *p, uint32_t from)
{
    bool any = false;
    for (struct post *asker; (asker = match_asker(p, from)) != NULL; any = true)
        p2p_expire(p, asker, DAMAGED);
    return any;
}

bool match_lane(struct p2p *p, struct lane *lane, bool force)
{
    uint32_t from = lane_peer(p, lane);
    const struct envelope *e;
    bool moved = false;
    if (lane->damaged)
        return match_damaged(p, from);
    while (force || match_asker(p, from)) {
        e = lane_next(p, lane);
        if (!e && overlap_match(p, lane)) {
            moved = true;
            continue;
        }
        if (!e)
            break;
        const char *data = envelope_apart(e) ? p2p_at(p, e->rest.at) : e->text;
        size_t bytes = e->bytes;
        uint64_t began = envelope_apart(e) ? hand_began(p, lane, bytes) : 0;
        if (!match_message(p, from, e, data) && !match_set_aside(p, from, e, data)) {
            struct post *asker = match_asker(p, from);
            if (asker)
                p2p_expire(p, asker, -ENOMEM);
            break;
        }
        lane_took(p, lane, e);
        hand_learn(lane, bytes, began);
        moved = true;
    }
    if (moved)
        lane_tell(p, lane);
    return lane->damaged ? match_damaged(p, from) || moved : moved;
}

bool match_posted(struct p2p *p)
{
    bool moved = false;
    int last = -2;
    for (struct post *post = p->posted.head; post;) {
        if (post->peer == TUTTI_ANY) {
            uint32_t size = p->watch->size, first = p->turn++;
            for (uint32_t i = 0; i < size && p->posted.head; i++)
                moved |= match_lane(p, p2p_lane(p, (first + i) % size), false);
            return moved;
        }
        bool matched = post->peer != last
            && match_lane(p, p2p_lane(p, (uint32_t)post->peer), false);
        last = post->peer;
        moved |= matched;
        post = matched ? p->posted.head : post->next;           /* the list may have changed */
    }
    return moved;
}

bool lane_collect(struct p2p *p, struct lane *lane)
{
    bool moved = false;
    for (struct post *post; (post = lane->moving.head) != NULL;) {
        /* E38 acquire */
        while (post->piece < post->pieces
               && load_acquire64(&lane->in->filled) > post->start + post->piece) {
            size_t at = post->piece++ * PIECE,
                   n = post->bytes - at < PIECE ? post->bytes - at : PIECE;
            landing_copy(&post->landing, post->to + at,
                         post->stage + lane->drained % p->pieces * PIECE, n);
            store_fence64(&lane->in->drained, ++lane->drained);      /* E39 release, E40 fence */
            p2p_ring(p, lane_peer(p, lane));
            moved = true;
        }
        uint64_t state = load_acquire64(&post->deal->state);         /* E37 acquire */
        if (post->piece == post->pieces) {
            match_learn(post);
            post_over(p, post, 0);
        /* E38 acquire */
        } else if (state != deal_word(post->generation, DEAL_GRANTED)
                 && load_acquire64(&lane->in->filled) <= post->start + post->piece)
            match_broken(p, post);                      /* the deal is over, pieces are missing */
        else {
            /* Our own words, on the sender's pages: restored if they were written over, since both
             * sides would wait for ever. */
            if (load_relaxed64(&post->deal->start) != post->start)      /* relaxed: our own word */
                store_fence64(&post->deal->start, post->start);      /* E37 release, E40 fence */
            if (load_relaxed64(&lane->in->drained) != lane->drained)    /* relaxed: our own word */
                store_fence64(&lane->in->drained, lane->drained);    /* E39 release, E40 fence */
            break;
        }
        moved = true;
    }
    return moved;
}

bool match_now(struct p2p *p, const struct note *note, void *to, tutti_message *got)
{
    const struct watch *w = p->watch;
    if (note->peer == TUTTI_ANY || p->parcels || p->posted.head)
        return false;
    struct lane *lane = p2p_lane(p, (uint32_t)note->peer);
    const struct envelope *e = lane_next(p, lane), *chunks = NULL;
    if (!e && note->bytes >= OVERLAP_LEAST)
        overlap_wait(lane);
    uint64_t began = 0;
    for (int i = 0; !e && w->budget.spin_ticks && i < FAST_SPINS; i++) {
        cpu_pause();
        e = lane_next(p, lane);
        if (!e && note->bytes >= OVERLAP_LEAST && overlap_begun(lane)) {
            began = hand_began(p, lane, note->bytes);
            e = chunks = overlap_take(p, lane, note->tag, note->type, to, note->bytes);
            break;
        }
    }
    if (!e || e->mode == LETTER_OFFERED || (note->tag != TUTTI_ANY && note->tag != (int)e->tag)
        || e->type != (uint16_t)note->type || e->bytes > note->bytes)
        return false;   /* too large: the slow path reports it */
    if (!chunks)
        began = hand_began(p, lane, e->bytes);
    if (e->bytes >= STREAM_LEAST && !chunks) {
        struct landing landing = landing_begin(p, e->bytes);
        landing_copy(&landing, to, p2p_at(p, e->rest.at), e->bytes);
        landing_end(&landing, e->bytes);
    } else if (e->bytes && !chunks)
        message_copy(e->bytes)(to, envelope_apart(e) ? p2p_at(p, e->rest.at) : e->text, e->bytes);
    if (got)
        *got = (tutti_message){ note->peer, (int)e->tag, e->bytes / note->width };
    size_t bytes = e->bytes;
    lane_took(p, lane, e);
    lane_tell(p, lane);
    hand_learn(lane, bytes, began);
    return true;
}

bool match_none(struct p2p *p, const struct note *note)
{
    return !p->parcels && !p->posted.head && !lane_next(p, p2p_lane(p, (uint32_t)note->peer));
}

/* A switch leaves the caches cold, and the slow path has more to read: a ping-pong of 4 bytes, 4
 * ranks on 2 CPUs, 2.70 us, without these yields 3.16. Where waits are long, those of the slow path
 * are enough. */
bool match_soon(struct p2p *p, const struct note *note, uint64_t began)
{
    const struct watch *w = p->watch;
    struct lane *lane = p2p_lane(p, (uint32_t)note->peer);
    uint32_t yields = wait_long_lately(&w->budget) ? 0 : wait_yields(&w->budget);
    for (uint32_t i = 0; i < yields && i < FAST_YIELDS; i++) {
        w->ways->yield(w->ways->arg);
        if (lane_next(p, lane))
            return true;
        if (clock_tick() - began > w->budget.yield_ticks)
            break;
    }
    return false;
}
