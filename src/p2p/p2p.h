/* Job: messages from one rank of a comm to another: send, recv, probe, matched by sender and tag,
 *      in posting order.
 * Owns: in the arena the lines of its channels (layout.h: sender's and receiver's words apart), its
 *       own bell and listeners; in private memory what has come and nobody has asked for yet.
 * Never: collectives; nothing here stands behind one, and nothing here is all or none.
 *
 * A channel leads from one rank to one other; its sender makes it, in its own span, when it first
 * sends there. In it is a ring of letters.
 *   up to LETTER_TEXT bytes   travel in the letter itself
 *   up to SMALL bytes         lie in the sender's store, a ring of bytes; the letter says where
 *   up to MEDIUM bytes        likewise, if there is room now in half of it, and the receiver cannot
 *                             copy them from where they lie
 *   more                      stay with the sender: the letter offers a deal. Who receives it
 *                             grants it; then the data go through the channel's stage, piece by
 *                             piece (or the receiver copies them from where they lie in the arena),
 *                             in the order of grants. From CMA_LEAST on the receiver may also read
 *                             them out of the sender's memory (cma.c), which it grants first.
 * Rings and stores begin small, without the pages that nothing has lain in, and grow fourfold when
 * they are full: to STORE_MOST bytes and RING_MOST letters on their way from one rank to one other;
 * only then does a small send wait. A receiver that waits takes letters nobody asked for into
 * private memory, so no message stands in the way of another that a receive could take; one that
 * does not wait leaves them in the channel.
 *
 * A deadline ends a call whose message has not been matched: the offer is withdrawn, a letter that
 * was never written is not written. Once a receive has taken the message the deadline counts no
 * more: the transfer moves at the speed of memory, and is ended only by a death, an abort or an
 * interrupt, and then on both sides. A receive returns 0 only with the whole message.
 *
 * The comm's pages and those of its channels stay until all peers have let go of it: letters are
 * read after their sender has left or died.
 *
 * Locks: with work under way (`works`) everything private is under `lock`; without it a comm's one
 * caller needs none.
 *
 * E35 letter: the sender writes message and envelope, then the letter's seq (release); the receiver
 *     loads seq (acquire), then those.
 * E36 taken: the receiver has read letter and store, then taken and freed (release); the sender
 *     loads them (acquire) and writes there again.
 * E37 deal: whoever changes a deal's state does so by CAS (release) when what goes with it is
 *     written; the other loads it (acquire).
 * E38 filled: the sender has written a piece into the stage, then filled (release); the receiver
 *     loads it (acquire), then the piece.
 * E39 drained: the receiver has read a piece, then drained (release); the sender loads it (acquire)
 *     and writes the next one there.
 * E40 bell: whoever changed a word that another rank may sleep for: full fence, then it looks at
 *    that rank's listeners, and only then rings. Who sleeps: listeners + 1, full fence, reads the
 *    bell, looks at everything once more, and sleeps on the bell as read.
 * E41 mail: the sender has cleared table and channel, then their offsets (release); the receiver
 *     loads them (acquire). */
#ifndef TUTTI_P2P_P2P_H
#define TUTTI_P2P_P2P_H

#include "base/tiny.h"
#include "group/comm.h"
#include "watch/drive.h"

enum {
    SMALL = TINY(64 << 10, 64),
    MEDIUM = TINY(256 << 10, 64),
    STORE_FIRST = 64 << 10,
    STORE_MOST = 4 << 20,
    RING_FIRST = 30,
    RING_MOST = 7680
};
/* Of a stage. Its lines come round when the reader's second cache has forgotten them, or each has
   to be taken from there; what a comm of many ranks could come to is bounded. */
enum {
    PIECE = TINY(32 << 10, 64),
    PIECES_MOST = TINY(64, 2),
    PIECES_LEAST = TINY(8, 2),
    PIECES_ALL = TINY(128, 4)
};
/* envelope.rest.at of an offer whose data the receiver cannot reach; an address has CMA_BIT */
#define NOT_IN_ARENA UINT64_MAX
/* deal.start: the receiver reads where it lies, or says later where in the stage it begins */
#define START_FAR UINT64_MAX
/* fewer bytes go through store or stage; the explorer knows no process to read from */
enum { CMA_LEAST = TINY(256 << 10, 1 << 30) };

struct post_list { struct post *head, *tail; };

/* One call under way: on its caller's stack, or in its handle. */
struct post {
    struct post *prev, *next;
    struct post_list *in;                            /* where it waits; NULL: nowhere */
    enum kind kind;
    int peer, tag;                                   /* may be TUTTI_ANY for recv and probe */
    tutti_type type;
    uint32_t site;
    const char *from;                               /* send */
    char *to;                                       /* recv */
    size_t bytes, width, count;                     /* bytes: how much there is, or how much fits */
    tutti_message *got;
    bool work, waited, over, moving;  /* moving: its message has been matched, no deadline counts */
    bool direct;                          /* … and is read where it lies */
    bool keep, late;                      /* TUTTI_KEEP, and its deadline has passed */
    bool gone;                            /* look.c: whom it waits for was gone at the last look */
    int result;
    uint32_t sender;                                 /* of what it receives */
    struct offer *offer;                             /* send: its deal */
    struct deal *deal;                               /* recv: the sender's */
    const char *stage;                               /* … or where it lies */
    uint64_t generation, start, pieces, piece;       /* piece: how many have gone through */
    /* recv of one that can be read where it lies: by the stage, or there; … begun at */
    struct tuner *ways;
    uint64_t granted_tick;
    /* recv of a large one: which stores it is written with, and what they take */
    struct tuner *streams;
    uint64_t ticks;
    bool streamed;
    int64_t timeout_ns;                              /* < 0: none */
    uint64_t began_ns;
};

/* A deal of this rank's, with one peer: made by the page and used again. A letter may speak of a
   generation that is past: then the message was withdrawn. Because a deal stays with one peer, that
   peer can look whether it is past before it writes `start`. */
struct offer { struct deal *deal; uint64_t generation; struct offer *next; };

/* A blocking call of which no more needs to be said: bytes are those there are, or that fit. */
struct note { int peer, tag; tutti_type type; uint32_t site; size_t bytes, width; };

struct offer_page { struct offer_page *next; struct offer *offers; };

/* begun: letters sent before this ring */
struct reel { struct letter *at; uint32_t size, index; uint64_t begun; };

/* This rank and one peer. */
struct lane {
    struct channel *out, *in;
    struct reel write, read;
    uint64_t sent, taken;                            /* letters; taken: when last looked */
    char *store;
    /* stored, freed: bytes ever, as envelope.end */
    uint64_t store_bytes, store_at, store_begun, stored, freed;
    uint64_t store_there;               /* bytes from the store's beginning whose pages are there */
    struct fresh fresh;                 /* … and what a larger store has earned */
    char *stage;
    uint64_t filled;                                 /* pieces */
    /* of all that was offered through the stage: so far its pages are there */
    uint64_t offers_pieces;
    struct offer *offers;                            /* free ones */
    /* sends: not in the channel yet; offered, or moving */
    struct post_list unsent, offered;
    shared64 *table;                                 /* the peer's table of channels */
    uint64_t got, got_end;                           /* letters read; stored bytes read */
    /* of the letter in hand: what has been looked at, whatever becomes of the one in the arena */
    struct envelope front;
    int moves;                                       /* rings begun in `in` */
    /* what the peer has left there cannot be true: nothing more is read */
    bool damaged;
    uint64_t drained, granted;                       /* pieces read; promised to receives */
    bool shut;                                       /* the peer's memory cannot be read */
    struct post_list moving;                         /* receives, in the order of their grants */
    struct lane *next_active;
    bool active;
};

/* A message nobody had asked for when it came. */
struct parcel { struct parcel *next; uint32_t from; struct envelope envelope; char data[]; };

struct p2p {
    struct tutti_comm *comm;
    struct watch *watch;
    pthread_mutex_t lock;
    shared32 attended;          /* threads of this rank that spin and pump here: nobody else need */
    shared32 works;             /* handles under way; changes under lock */
    uint32_t pieces;            /* of each stage, from and to all */
    shared64 *table;            /* this rank's own channels, in its span */
    struct lane *lanes;         /* [size] */
    struct tuner streams[TUNER_CLASSES];           /* for receives */
    struct tuner ways[TUNER_CLASSES];              /* likewise: cma.c */
    struct tuner staged;                        /* for sends: what goes through store and stage */
    struct lane *active;                             /* those with sends or transfers */
    /* recvs and probes without a message, in posting order */
    struct post_list posted;
    struct parcel *parcels, **parcels_end;           /* in the order in which they came */
    struct post *ended;                              /* works that are over, to be told (by next) */
    struct offer_page *pages;                        /* the books of all lanes' offers */
    uint32_t *seen;                                  /* [size] alive words at the last look */
    uint64_t verdict;                                /* likewise */
    uint32_t news;
    uint32_t turn;                        /* whom a receive from any asks first; moves on */
    bool calling;                         /* a thread is telling */
    int slices;                           /* of the progress thread's sleep since something moved */
};

/* A send whose message has been granted, and goes through the stage. */
static inline bool post_staged(const struct post *post)
{
    return post->moving && !post->direct && post->start != START_FAR;
}

/* Who has to do something next for it; TUTTI_ANY: whoever sends. */
static inline int post_other(const struct post *post)
{
    return post->kind != KIND_SEND && post->moving ? (int)post->sender : post->peer;
}

static inline struct lane *p2p_lane(struct p2p *p, uint32_t peer) { return &p->lanes[peer]; }

static inline uint32_t lane_peer(const struct p2p *p, const struct lane *lane)
{
    return (uint32_t)(lane - p->lanes);
}

/* Offsets that a peer has written are looked at before they are used: `bytes` of its own span; or
 * of anybody's. NULL: it cannot be. */
char *p2p_of_peer(const struct p2p *p, uint32_t peer, uint64_t offset, uint64_t bytes);
char *p2p_of_arena(const struct p2p *p, uint64_t offset, uint64_t bytes);

static inline char *p2p_at(const struct p2p *p, uint64_t offset)
{
    return (char *)((uintptr_t)p->watch->arena->base + (uintptr_t)offset);
}

static inline uint64_t p2p_offset(const struct p2p *p, const void *at)
{
    return (uint64_t)((uintptr_t)at - (uintptr_t)p->watch->arena->base);
}

static inline uint64_t deal_word(uint64_t generation, enum deal_state state)
{
    return generation << 2 | (uint64_t)state;
}

/* After a full fence: something has changed that `peer` may sleep for. */
static inline void p2p_ring(struct p2p *p, uint32_t peer)
{
    struct member *m = &p->watch->members[peer];
    if (!load_relaxed32(&m->listeners))                     /* relaxed: E40, ordered by the fence */
        return;
    fetch_add32(&m->bell, 1);                        /* E40 release */
    p->watch->ways->wake(p->watch->ways->arg, &m->bell, INT32_MAX);
}

/* A call, before its peer, tag and buffer are known to be any good. Field by field: cleared all at
 * once it takes the processor 10 ns. */
static inline void post_describe(struct post *post, enum kind kind, int peer, int tag,
                                 tutti_type type, size_t count)
{
    post->prev = post->next = NULL;
    post->in = NULL;
    post->kind = kind;
    post->peer = peer;
    post->tag = tag;
    post->type = type;
    post->site = 0;
    post->from = NULL;
    post->to = NULL;
    post->bytes = 0;
    post->width = 1;
    post->count = count;
    post->got = NULL;
    post->work = post->waited = post->over = post->moving = post->direct = post->keep = post->late =
        post->gone = false;
    post->result = 0;
    post->sender = 0;
    post->offer = NULL;
    post->deal = NULL;
    post->stage = NULL;
    post->generation = post->start = post->pieces = post->piece = 0;
    post->ways = NULL;
    post->granted_tick = 0;
    post->streams = NULL;
    post->ticks = 0;
    post->streamed = false;
    post->timeout_ns = -1;
    post->began_ns = 0;
}

void post_append(struct post_list *list, struct post *post);
void post_remove(struct post *post);
/* off its list; a work is then to be told */
void post_over(struct p2p *p, struct post *post, int result);
/* it has something under way: the pump looks at it */
void lane_wake(struct p2p *p, struct lane *lane);

/* ---- send.c: the sender's side ---- */
/* The message into the lane's channel: 1 sent or offered (then the post is on its list), 0 no room,
 * or -errno. */
int  lane_send(struct p2p *p, struct lane *lane, struct post *post);
bool lane_push(struct p2p *p, struct lane *lane);    /* whatever can go on; true: something did */
/* The quick way, without anything else under way: the message is in the channel. False: it is not,
 * for whatever reason; nothing was begun. */
bool send_now(struct p2p *p, const struct note *note, const void *from);

/* ---- channel.c: rings, stores and deals ---- */
int  lane_open(struct p2p *p, struct lane *lane);       /* the channel to the peer. 0 or -errno */
/* the next one to be written; NULL: full */
struct letter *lane_letter(struct p2p *p, struct lane *lane);
void lane_publish(struct p2p *p, struct lane *lane, struct letter *letter, size_t bytes);
/* Room for a message. NULL: *error -EAGAIN, it is full, or why there never is any. For more than
   SMALL bytes it does not grow beyond a stage. */
char *lane_store(struct p2p *p, struct lane *lane, uint64_t bytes, uint64_t *end, int *error);
/* … and for so many pieces more. 0 or -errno */
int  lane_stage(struct p2p *p, struct lane *lane, uint64_t pieces);
struct offer *offer_take(struct p2p *p, struct lane *lane, int *error);
void offer_give(struct lane *lane, struct offer *offer);
/* The next letter that has come from the peer; NULL: none. */
const struct envelope *lane_next(struct p2p *p, struct lane *lane);
void lane_took(struct lane *lane, const struct envelope *envelope);  /* it has been read */
void lane_tell(struct p2p *p, struct lane *lane);                    /* … and the sender may know */
/* what a receiver spins on until the next letter comes */
const shared64 *lane_word(struct p2p *p, struct lane *lane, uint64_t *value);

/* ---- match.c: the receiver's side ---- */
/* A recv or probe: what has come already, or a place among the posted. */
void match_begin(struct p2p *p, struct post *post);
/* reads what the posted ask for; force: all there is */
bool match_lane(struct p2p *p, struct lane *lane, bool force);
bool match_posted(struct p2p *p);                       /* of all lanes that the posted ask for */
bool lane_collect(struct p2p *p, struct lane *lane);                 /* what is moving */
/* The quick way, likewise: there is such a message, or is soon, it fits, and is in `to`. */
bool match_now(struct p2p *p, const struct note *note, void *to, tutti_message *got);

bool deal_step(struct p2p *p, uint32_t from, struct deal *deal, uint64_t generation,
               enum deal_state is, enum deal_state to);
void match_broken(struct p2p *p, struct post *post);
void match_learn(struct post *post);                                 /* it is here */

/* ---- cma.c: what is read out of the sender's memory ---- */
/* says where it lies, if that may help */
void cma_offer(const struct p2p *p, const struct post *post, struct envelope *e);
/* read it there? */
bool cma_choose(struct p2p *p, struct lane *lane, struct post *post, const struct envelope *e);
/* The granted post, whose deal says START_FAR. True: it is over. False: it goes through the stage
 * after all, as lane->granted says. */
bool cma_take(struct p2p *p, struct lane *lane, struct post *post, const struct envelope *e);

/* ---- p2p.c ---- */
int  p2p_open(struct tutti_comm *comm);              /* comm->p2p is there: 0, or -ENOMEM */
void p2p_close(struct tutti_comm *comm);             /* before comm_close */
static inline bool p2p_under_way(const struct tutti_comm *comm)
{
    return comm->p2p && load_acquire32(&comm->p2p->works);
}

void p2p_begin(struct p2p *p, struct post *post);    /* starts it; under lock where there is work */
bool p2p_pump(struct p2p *p);           /* everything as far as it goes; true: something moved */
/* to its end, in this thread, without work under way */
int  p2p_run(struct p2p *p, struct post *post);
/* it waits for its own caller: never */
bool p2p_stuck(const struct p2p *p, const struct post *post);

/* ---- look.c: deaths, deadlines, failures ---- */
/* nothing is to be said against a call; peer: of a send, else TUTTI_ANY */
bool p2p_well(struct p2p *p, int peer);
/* before anything begins: has the comm failed, is the receiver gone? 0 or the cause */
int  p2p_check(struct p2p *p, const struct post *post);
bool p2p_gone(struct p2p *p, const struct post *post, int slices);   /* the rank it waits for is */
/* ends it unless its message has been matched */
bool p2p_withdraw(struct p2p *p, struct post *post, int result);
/* ends it in any case; the other side is told */
void p2p_abandon(struct p2p *p, struct post *post, int result);
/* the report; the comm is broken by a death. Returns error */
int  p2p_fail(struct p2p *p, const struct post *post, int error);
/* withdraws it if it can, with a report */
void p2p_expire(struct p2p *p, struct post *post, int error);
/* One look at all works: ends those that cannot go on. Returns how long the next sleep
 * may be, ns. */
uint64_t p2p_look(struct p2p *p);
/* This process was stopped for `excess` ns, until now: no deadline of a work counts that. */
void p2p_excuse(struct p2p *p, uint64_t now, uint64_t excess);
/* Declares a listener and appends the words to sleep on (drive_retire takes that back). 0:
 * something has moved, do not sleep. */
int  p2p_gather(struct p2p *p, struct futex_word *words, int room, struct drive_sleep *sleep);

const char *post_what(const struct post *post);      /* "to send", "for a message" */

#endif
