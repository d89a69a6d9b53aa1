/* A line that its reader has read is slow to write for its writer, since the reader has to give it
 * up; the reader itself writes it at a fraction of that (coll/swap.h has figures). So an answer
 * goes into the block that the message came in. A rank that sends twice without an answer has no
 * block in hand, and uses the store.
 * A rank makes its block at its first message to somebody who has sent to it: one way there is
 * nothing to hand back. Both sides' blocks are handed to and fro if both send at once.
 * A block has one holder. The letter says that its sender has put the block down; its receiver
 * picks it up when it has read the message. Both are ordered by E35, one way and the other. A rank
 * that dies keeps what it has in hand: no other waits for that.
 * The lower of the two ranks tries both ways in epochs for each class of sizes, since processors
 * differ: a block that it does not use stays in its hand, and so neither has one. Single messages
 * cannot be compared, since each finds the lines where the one before has left them.
 * What a peer writes leads no rank to write anywhere but into its own block, or one in the peer's
 * span, always the same.
 * Cost: a look at a few words of this rank's own. */
#include "p2p/p2p.h"

#include "base/clock.h"
#include "base/epochs.h"

#include <stdlib.h>

enum { PAGE = 4096 };
enum { OWN, THEIRS, BLOCKS };

/* What the lower rank knows of a class of sizes: by the store, by blocks that change hands. */
struct hand_way {
    struct epochs epochs;
    uint64_t last;                      /* when the last large one began */
};

struct hand {
    char *block[BLOCKS];                /* NULL: not known yet */
    size_t there[BLOCKS];               /* bytes that have pages, from its beginning */
    bool here[BLOCKS], refused;         /* here: in hand; refused: there is no memory for OWN */
    int last;                           /* the one that was read last */
    struct hand_way ways[TUNER_CLASSES];
};

static size_t hand_room(const struct p2p *p)
{
    return layout_round((size_t)PIECE * p->pieces / 2, PAGE);
}

static struct hand *hand_of(struct lane *lane)
{
    if (!lane->hand)
        lane->hand = calloc(1, sizeof *lane->hand);
    return lane->hand;
}

static struct hand_way *hand_way(struct hand *h, size_t bytes)
{
    int class = 63 - __builtin_clzll((unsigned long long)(bytes / HAND_LEAST | 1));
    class += bytes > MEDIUM;            /* whose times are others */
    return &h->ways[class < TUNER_CLASSES ? class : TUNER_CLASSES - 1];
}

static void hand_make(struct p2p *p, struct hand *h)
{
    int error;
    h->block[OWN] = comm_hold_bare(p->comm, hand_room(p), &error);
    h->here[OWN] = h->block[OWN] != NULL;
    h->refused = !h->block[OWN];
}

char *hand_down(struct p2p *p, struct lane *lane, size_t bytes, uint32_t *pages)
{
    if (bytes < HAND_LEAST || bytes > hand_room(p) || !lane->got
        || lane_peer(p, lane) == p->watch->me)
        return NULL;
    struct hand *h = hand_of(lane);
    if (!h || (p->watch->me < lane_peer(p, lane) && hand_way(h, bytes)->epochs.off))
        return NULL;
    if (!h->here[OWN] && !h->here[THEIRS] && !h->block[OWN] && !h->refused)
        hand_make(p, h);
    int which = h->here[h->last] ? h->last : !h->last;
    if (!h->here[which])
        return NULL;
    size_t more = layout_round(bytes, PAGE);
    if (h->there[which] < more) {
        if (comm_touch(h->block[which] + h->there[which], more - h->there[which], &lane->fresh))
            return NULL;
        h->there[which] = more;
    }
    h->here[which] = false;
    *pages = (uint32_t)(h->there[which] / PAGE);
    return h->block[which];
}

/* Which block it is; -1: none that the peer can have had in hand. */
static int hand_which(const struct p2p *p, const struct lane *lane, uint64_t at)
{
    const struct hand *h = lane->hand;
    uint32_t peer = lane_peer(p, lane);
    if (h && h->block[OWN] && at == p2p_offset(p, h->block[OWN]))
        return h->here[OWN] ? -1 : OWN;
    if (h && h->block[THEIRS])
        return at == p2p_offset(p, h->block[THEIRS]) && !h->here[THEIRS] ? THEIRS : -1;
    return peer != p->watch->me && p2p_of_peer(p, peer, at, hand_room(p)) ? THEIRS : -1;
}

bool hand_sound(const struct p2p *p, const struct lane *lane, const struct envelope *e)
{
    size_t there = (size_t)e->pages * PAGE;
    return e->bytes <= there && there <= hand_room(p) && hand_which(p, lane, e->rest.at) >= 0;
}

void hand_up(struct p2p *p, struct lane *lane, const struct envelope *e)
{
    struct hand *h = hand_of(lane);
    int which = hand_which(p, lane, e->rest.at);
    if (!h || which < 0)
        return;                         /* lost: no memory for its books */
    h->block[which] = p2p_at(p, e->rest.at);
    h->there[which] = (size_t)e->pages * PAGE;
    h->here[which] = true;
    h->last = which;
}

/* The clock is read in the first epochs and in two of TUNER_AGAIN: it costs a tenth of a small
   message. */
uint64_t hand_began(const struct p2p *p, const struct lane *lane, size_t bytes)
{
    if (bytes < HAND_LEAST || bytes > MEDIUM || !lane->hand
        || p->watch->me >= lane_peer(p, lane))
        return 0;
    const struct hand_way *way = hand_way(lane->hand, bytes);
    return tuner_asks(&way->epochs.ways) ? clock_tick() : 1;
}

void hand_learn(struct lane *lane, size_t bytes, uint64_t began)
{
    if (!began)
        return;
    struct epochs *epochs = &hand_way(lane->hand, bytes)->epochs;
    if (epochs_count(epochs) && began > 1) {
        epochs->ticks += clock_tick() - began;
        epochs->bytes += bytes;
    }
    epochs_turn(epochs);
}

/* Above MEDIUM the other way is an offer, whose send ends when the receiver has all of it. So not
 * sends are compared, but the times from one to the next; of an epoch the least, because a program
 * pauses. */
void hand_turn(const struct p2p *p, const struct lane *lane, size_t bytes)
{
    if (bytes <= MEDIUM || bytes > hand_room(p) || !lane->hand
        || p->watch->me >= lane_peer(p, lane))
        return;
    struct hand_way *way = hand_way(lane->hand, bytes);
    struct epochs *epochs = &way->epochs;
    uint64_t now = clock_tick(), ticks = now - way->last;
    if (epochs_count(epochs)
        && (!epochs->bytes
            || (double)ticks * (double)epochs->bytes < (double)epochs->ticks * (double)bytes)) {
        epochs->ticks = ticks;
        epochs->bytes = bytes;
    }
    way->last = now;
    epochs_turn(epochs);
}
