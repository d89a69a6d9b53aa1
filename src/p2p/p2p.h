/* Job: messages from one rank of a comm to another: send, recv, probe. Matched by sender and tag,
 *      in posting order.
 * Owns: in the arena this rank's words of its channels (layout.h), its bell and listeners; in
 *       private memory messages that no receive has asked for yet.
 * Never: waits for a collective; fails all ranks for one message.
 *
 * A channel leads from one rank to one other. The sender makes it in its own span at its first send
 * there. A channel has a ring of letters. Bytes of a message:
 *   up to LETTER_TEXT   in the letter itself.
 *   up to SMALL         in the sender's store, a ring of bytes; the letter says where.
 *                       From OVERLAP_LEAST on the sender says how much is there already, and a
 *                       receiver that waits for it copies that out meanwhile (overlap.c). The
 *                       letter is sent when all is there: for all others there is no message
 *                       before.
 *   up to MEDIUM        in the store, if half of it has room now; not if the receiver can copy the
 *                       message from its place in the arena.
 *   HAND_LEAST on       from somebody who has a block in hand that changes hands with the receiver:
 *                       in that, which is the receiver's when it has read the message (hand.c).
 *                       Up to half a stage. Else as above and below.
 *   more                stay with the sender; the letter offers a deal, which the receiver grants.
 *                       The data then go through the channel's stage, piece by piece, in the order
 *                       of grants. If they lie in the arena, the receiver copies them from there.
 *                       From CMA_LEAST on it may read them out of the sender's memory (cma.c).
 * Ring and store begin small, without pages. When full they grow fourfold, to RING_MOST letters and
 * STORE_MOST bytes; only then a small send waits. A waiting receiver moves letters that no receive
 * asked for into private memory, so no message blocks a later one that a receive could take. A
 * receiver that does not wait leaves letters in the channel.
 *
 * A deadline ends a call only before its message is matched: the offer is withdrawn, the letter is
 * not written. After that only a death, an abort or an interrupt ends the transfer, on both sides.
 * A receive returns 0 only with the whole message.
 *
 * The comm's pages and those of its channels stay until all peers have let go of the comm: letters
 * are read after their sender has left or died.
 *
 * Locks: with work under way (`works`) `lock` guards all private state. Without work the comm's one
 * caller needs no lock.
 *
 * E35 letter: the sender writes message and envelope, then the letter's seq (release); the receiver
 *     loads seq (acquire), then those.
 * E36 taken: the receiver has read letter and store, then taken and freed (release); the sender
 *     loads them (acquire) and writes there again.
 * E37 deal: a side writes what belongs to a new state of the deal, then changes the state by CAS
 *     (release); the other side loads it (acquire).
 * E38 filled: the sender has written a piece into the stage, then filled (release); the receiver
 *     loads it (acquire), then the piece.
 * E39 drained: the receiver has read a piece, then drained (release); the sender loads it (acquire)
 *     and writes the next one there.
 * E40 bell: a rank changes a word that another may sleep for: full fence, then it loads that rank's
 *    listeners, and rings if there are some. The sleeper: listeners + 1, full fence, reads the
 *    bell, looks at everything once more, and sleeps on the bell as read.
 * E41 mail: the sender has cleared table and channel, then their offsets (release); the receiver
 *     loads them (acquire).
 * E86 begun: the sender has written `preview`, and a chunk of the message into the store, then
 *     begun (release); the receiver loads it (acquire), then those.
 * E134 waits: the receiver has read `preview` of an earlier letter, then stores waits (release);
 *     the sender loads it (acquire), then writes `preview`. */
#ifndef TUTTI_P2P_P2P_H
#define TUTTI_P2P_P2P_H

#include "base/copy.h"
#include "base/tiny.h"
#include "group/comm.h"
#include "watch/drive.h"

enum {
    SMALL = TINY(64 << 10, 64),
    MEDIUM = TINY(256 << 10, 128),
    STORE_FIRST = 64 << 10,
    STORE_MOST = 4 << 20,
    RING_FIRST = 30,
    RING_MOST = 7680
};
/* Fewer bytes go by the store, of which the next lines are prefetched for writing. */
enum { HAND_LEAST = TINY(512, 100) };
/* Pieces of a stage, bytes and numbers. With PIECES_MOST a line is written again only after it has
   left its reader's L2 cache, which makes it cheap to write. PIECES_ALL limits the sum over all
   peers. */
enum {
    PIECE = TINY(32 << 10, 64),
    PIECES_MOST = TINY(64, 2),
    PIECES_LEAST = TINY(8, 2),
    PIECES_ALL = TINY(128, 4)
};
/* Messages that are copied out while they are copied in, and what is said at once. */
enum {
    OVERLAP_LEAST = TINY(16 << 10, 112),
    CHUNK_LEAST = TINY(4 << 10, 64),
    CHUNK_MOST = TINY(16 << 10, 64)
};
/* envelope.rest.at of an offer whose data the receiver cannot reach; an address has CMA_BIT */
#define NOT_IN_ARENA UINT64_MAX
/* deal.start: the receiver reads the sender's memory, or sets the piece of the stage later */
#define START_FAR UINT64_MAX
/* fewer bytes go through store or stage; in the explorer all: it has no process to read from */
enum { CMA_LEAST = TINY(256 << 10, 1 << 30) };

struct post_list { struct post *head, *tail; };

/* How a message is copied. One that goes in one piece: by a loop. On the Zen 5 a ping-pong of 6 to
 * 8 KiB between far CPUs takes 1.13 to 1.23 times as long by one instruction, and one of 32 KiB,
 * in chunks, 0.86. */
static inline copy_fn *message_copy(size_t bytes)
{
    return bytes < OVERLAP_LEAST ? copy_by_loop : copy_plain;
}

/* How a large message is stored where its receiver wants it: plainly, or past the caches. */
struct landing {
    copy_fn *plain;
    struct tuner *ways;                              /* NULL: plainly */
    uint64_t ticks;                                  /* spent so far */
    bool streamed;
};

/* One call under way: on its caller's stack, or in its handle. */
struct post {
    struct post *prev, *next;
    struct post_list *in;                            /* the list it is on; NULL: none */
    enum kind kind;
    int peer, tag;                                   /* recv and probe: may be TUTTI_ANY */
    tutti_type type;
    uint32_t site;
    const char *from;                               /* send */
    char *to;                                       /* recv */
    size_t bytes, width, count;                     /* bytes: of the message, or of the buffer */
    tutti_message *got;
    bool work, waited, over, moving;      /* moving: its message is matched, no deadline counts */
    bool direct;                          /* the receiver copies it from its place in the arena */
    bool keep, late;                      /* TUTTI_KEEP; its deadline has passed */
    bool gone;                            /* look.c: the rank it waits for was gone at that look */
    int result;
    uint32_t sender;                                 /* recv: of the matched message */
    struct offer *offer;                             /* send: its deal */
    struct deal *deal;                               /* recv: the sender's */
    const char *stage;                               /* recv: the stage, or the message if direct */
    uint64_t generation, start, pieces, piece;       /* piece: pieces that have gone through */
    struct tuner *ways;                              /* recv, by cma.c or stage; NULL: no choice */
    uint64_t granted_tick;                           /* with `ways`: when it was granted */
    struct landing landing;                          /* recv */
    int64_t timeout_ns;                              /* < 0: none */
    uint64_t began_ns;
};

/* A deal of this rank's, with one peer: made by the page and used again. A letter with a past
   generation means that the message was withdrawn. A deal stays with one peer, so that peer can
   check the generation before it writes `start`. */
struct offer { struct deal *deal; uint64_t generation; struct offer *next; };

/* A blocking call on the fast path. bytes: of the message, or of the buffer. */
struct note { int peer, tag; tutti_type type; uint32_t site; size_t bytes, width; };

struct offer_page { struct offer_page *next; struct offer *offers; };

/* begun: letters sent before this ring */
struct reel { struct letter *at; uint32_t size, index; uint64_t begun; };

/* This rank and one peer. */
struct lane {
    struct channel *out, *in;
    struct reel write, read;
    uint64_t sent, taken;               /* letters; taken: as loaded last */
    char *store;
    /* stored, freed: bytes since the channel began, as envelope.end */
    uint64_t store_bytes, store_at, store_begun, stored, freed;
    uint64_t store_there;               /* bytes of the store, from its beginning, with pages */
    struct fresh fresh;                 /* what a larger store has earned */
    char *stage;
    uint64_t filled;                    /* pieces */
    uint64_t offers_pieces;             /* pieces of the stage, from its beginning, with pages */
    struct offer *offers;               /* free ones */
    struct hand *hand;                  /* blocks that change hands (hand.c). NULL: none yet */
    struct post_list unsent, offered;   /* sends: not in the channel yet; offered, or moving */
    shared64 *table;                    /* the peer's table of channels */
    uint64_t got, got_end;              /* letters read; stored bytes read */
    struct envelope front;              /* checked copy of the letter in hand, safe from peers */
    int moves;                          /* rings begun in `in` */
    bool damaged;                       /* the peer's words cannot be true: nothing more is read */
    uint64_t drained, granted;          /* pieces read; pieces promised to receives */
    bool shut;                          /* the peer's memory cannot be read */
    struct post_list moving;                         /* receives, in the order of their grants */
    struct lane *next_active;
    bool active;
};

/* A message that no receive had asked for when it came. */
struct parcel { struct parcel *next; uint32_t from; struct envelope envelope; char data[]; };

struct p2p {
    struct tutti_comm *comm;
    struct watch *watch;
    pthread_mutex_t lock;
    shared32 attended;          /* threads of this rank that spin and pump here; no other need to */
    shared32 works;             /* handles under way; changes under lock */
    uint32_t pieces;            /* of each stage, to and from all peers */
    shared64 *table;            /* this rank's own channels, in its span */
    struct lane *lanes;         /* [size] */
    struct tuner streams[TUNER_CLASSES];           /* receives: plain or streaming stores */
    struct tuner ways[TUNER_CLASSES];              /* receives: by stage or by cma.c */
    struct tuner staged;                           /* sends: copies into store and stage */
    struct lane *active;                             /* lanes with sends or transfers */
    struct post_list posted;                         /* recvs, probes to match, in posting order */
    struct parcel *parcels, **parcels_end;           /* in the order in which they came */
    struct post *ended;                              /* works over, not reported yet; by next */
    struct offer_page *pages;                        /* the books of all lanes' offers */
    uint32_t *seen;                                  /* [size] alive words at the last look */
    uint64_t verdict;                                /* the slot's at the last look */
    uint32_t news;                                   /* likewise */
    uint32_t turn;                        /* lane that the next receive from any reads first */
    bool calling;                         /* a thread reports the ended works */
    /* when the progress thread first looked since something moved; 0: it has not looked */
    uint64_t still_ns;
};

/* True: a send whose message is granted and goes through the stage. */
static inline bool post_staged(const struct post *post)
{
    return post->moving && !post->direct && post->start != START_FAR;
}

/* The rank that has to act next for it; TUTTI_ANY: any sender. */
static inline int post_other(const struct post *post)
{
    return post->kind != KIND_SEND && post->moving ? (int)post->sender : post->peer;
}

static inline struct lane *p2p_lane(struct p2p *p, uint32_t peer) { return &p->lanes[peer]; }

static inline uint32_t lane_peer(const struct p2p *p, const struct lane *lane)
{
    return (uint32_t)(lane - p->lanes);
}

/* The address of an offset that a peer has written. NULL: `bytes` there do not lie in that peer's
 * span; or not in the arena. */
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

/* True: the whole message is there, in the store or in a block that changes hands. */
static inline bool envelope_apart(const struct envelope *e)
{
    return e->mode == LETTER_STORED || e->mode == LETTER_HANDED;
}

static inline uint64_t deal_word(uint64_t generation, enum deal_state state)
{
    return generation << 2 | (uint64_t)state;
}

/* Wakes `peer` if it sleeps on its bell. The caller has executed a full fence. */
static inline void p2p_ring(struct p2p *p, uint32_t peer)
{
    struct member *m = &p->watch->members[peer];
    if (!load_relaxed32(&m->listeners))                     /* relaxed: E40, ordered by the fence */
        return;
    fetch_add32(&m->bell, 1);                        /* E40 release */
    p->watch->ways->wake(p->watch->ways->arg, &m->bell, INT32_MAX);
}

/* Fills in a call before its arguments are checked. Field by field: to clear the whole struct first
 * takes 10 ns. */
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
    post->landing.ways = NULL;
    post->timeout_ns = -1;
    post->began_ns = 0;
}

void post_append(struct post_list *list, struct post *post);
void post_remove(struct post *post);
/* Takes the post off its list; a work goes to `ended`. */
void post_over(struct p2p *p, struct post *post, int result);
/* Puts the lane on `active`: the pump advances it. */
void lane_wake(struct p2p *p, struct lane *lane);

/* ---- send.c: the sender's side ---- */
/* Puts the message into the lane's channel. 1: sent, or offered and on the lane's list; 0: no room;
 * -errno. */
int  lane_send(struct p2p *p, struct lane *lane, struct post *post);
bool lane_push(struct p2p *p, struct lane *lane);    /* advances its sends; true: something moved */
/* Fast path, with nothing else under way. True: the message is in the channel. False: nothing was
 * begun. */
bool send_now(struct p2p *p, const struct note *note, const void *from);

/* ---- channel.c: rings, stores and deals ---- */
int  lane_open(struct p2p *p, struct lane *lane);       /* makes the channel out. 0 or -errno */
/* The next letter to write; NULL: the ring is full. */
struct letter *lane_letter(struct p2p *p, struct lane *lane);
void lane_publish(struct p2p *p, struct lane *lane, struct letter *letter, size_t bytes);
/* Room for a message in the store. NULL: *error; -EAGAIN: it is full now. For more than SMALL bytes
   the store does not grow beyond the size of a stage. */
char *lane_store(struct p2p *p, struct lane *lane, uint64_t bytes, uint64_t *end, int *error);
/* Makes the stage, with pages for so many pieces more. 0 or -errno. */
int  lane_stage(struct p2p *p, struct lane *lane, uint64_t pieces);
struct offer *offer_take(struct p2p *p, struct lane *lane, int *error);
void offer_give(struct lane *lane, struct offer *offer);
/* The next letter that has come from the peer; NULL: none. */
const struct envelope *lane_next(struct p2p *p, struct lane *lane);
/* the letter has been read */
void lane_took(struct p2p *p, struct lane *lane, const struct envelope *envelope);
void lane_tell(struct p2p *p, struct lane *lane);                    /* publishes what was read */
/* The word, and its value, that a receiver spins on until the next letter comes. */
const shared64 *lane_word(struct p2p *p, struct lane *lane, uint64_t *value);

/* ---- hand.c: blocks that change hands: an answer is written where the message was read ---- */
/* A block for a message of so many bytes, which the letter then hands over with its pages. NULL:
   this rank has none in hand. */
char *hand_down(struct p2p *p, struct lane *lane, size_t bytes, uint32_t *pages);
/* True: what a letter that hands over a block says can be true. */
bool hand_sound(const struct p2p *p, const struct lane *lane, const struct envelope *e);
/* Its message has been read: from here on the block is this rank's. */
void hand_up(struct p2p *p, struct lane *lane, const struct envelope *e);
/* Around the sending or the reading of a message. 0: nothing is to be learned. */
uint64_t hand_began(const struct p2p *p, const struct lane *lane, size_t bytes);
void hand_learn(struct lane *lane, size_t bytes, uint64_t began);
/* Before the sending of a message above MEDIUM, that its receiver cannot read in place. */
void hand_turn(const struct p2p *p, const struct lane *lane, size_t bytes);

/* ---- overlap.c: a message that is copied out while its sender copies it in ---- */
struct overlap {
    char *to;
    const char *from;
    size_t bytes, done;
    uint64_t began;
    bool block, streamed;
};
/* Copies the first chunk into the store, or into a block that changes hands. overlap_end copies the
   rest; front: mode, place and what else of the envelope the preview says. */
struct overlap overlap_begin(struct p2p *p, struct lane *lane, char *to, const char *from,
                             size_t bytes, bool block);
void overlap_end(struct p2p *p, struct lane *lane, const struct overlap *chunks,
                 const struct envelope *front);
/* Tells the sender that this rank waits for its next letter: it goes by chunks then. */
static inline void overlap_wait(struct lane *lane)
{
    /* relaxed: our own word */
    if (lane->in && load_relaxed64(&lane->in->waits) != lane->got + 1)
        store_release64(&lane->in->waits, lane->got + 1);            /* E134 release */
}
/* True: the next letter is being written, and a chunk of its message is there. */
bool overlap_begun(const struct lane *lane);
/* Copies that message to `to`, of `room` bytes, if it is of that type and tag (TUTTI_ANY: any).
   Returns its envelope when all of it is there and the letter has been sent. NULL: there is none
   that fits, or its sender goes on too slowly: then some of it may be in `to`. */
const struct envelope *overlap_take(struct p2p *p, struct lane *lane, int tag, tutti_type type,
                                  char *to, size_t room);
/* The same for the first posted call that asks for it. True: it is over. */
bool overlap_match(struct p2p *p, struct lane *lane);

/* ---- match.c: the receiver's side ---- */
/* The first posted call for such a message; NULL: none. */
struct post *match_first(const struct p2p *p, uint32_t from, uint32_t tag);
/* Begins a recv or probe: matches a message that has come already, or appends it to `posted`. */
void match_begin(struct p2p *p, struct post *post);
/* Reads letters while posted calls ask for this lane; force: all letters. True: something moved. */
bool match_lane(struct p2p *p, struct lane *lane, bool force);
bool match_posted(struct p2p *p);                       /* all lanes that posted calls ask for */
bool lane_collect(struct p2p *p, struct lane *lane);    /* reads pieces of receives in `moving` */
/* Fast path, with nothing else under way. True: a message is in `to`; it was there or came soon. */
bool match_now(struct p2p *p, const struct note *note, void *to, tutti_message *got);
/* Behind match_now. match_none: the sender's next letter has not come. match_soon: yields a few
   times, since the sender may need this CPU. began: a tick. True: a letter is there. */
bool match_none(struct p2p *p, const struct note *note);
bool match_soon(struct p2p *p, const struct note *note, uint64_t began);

bool deal_step(struct p2p *p, uint32_t from, struct deal *deal, uint64_t generation,
               enum deal_state is, enum deal_state to);
void match_broken(struct p2p *p, struct post *post);
void match_learn(struct post *post);                    /* the message is here: tuners learn */
/* A message of that length is about to be copied out; a part of it is; all is. */
struct landing landing_begin(struct p2p *p, size_t bytes);
void landing_copy(struct landing *landing, char *to, const char *from, size_t bytes);
void landing_end(const struct landing *landing, size_t bytes);

/* ---- cma.c: reads out of the sender's memory ---- */
/* Writes the message's address into the envelope, if the receiver may read it there. */
void cma_offer(const struct p2p *p, const struct post *post, struct envelope *e);
/* True: read it there. */
bool cma_choose(struct p2p *p, struct lane *lane, struct post *post, const struct envelope *e);
/* Reads a granted message whose deal says START_FAR. True: the post is over. False: it cannot be
 * read; it goes through the stage, from piece lane->granted on. */
bool cma_take(struct p2p *p, struct lane *lane, struct post *post, const struct envelope *e);

/* ---- p2p.c ---- */
int  p2p_open(struct tutti_comm *comm);              /* makes comm->p2p. 0 or -ENOMEM */
void p2p_close(struct tutti_comm *comm);             /* before comm_close */
static inline bool p2p_under_way(const struct tutti_comm *comm)
{
    return comm->p2p && load_acquire32(&comm->p2p->works);
}

void p2p_begin(struct p2p *p, struct post *post);    /* starts it; with work under way under lock */
bool p2p_pump(struct p2p *p);           /* advances everything; true: something moved */
/* Runs the post to its end in this thread, without work under way. */
int  p2p_run(struct p2p *p, struct post *post);
/* True: the post waits for this rank itself, so it never ends. */
bool p2p_stuck(const struct p2p *p, const struct post *post);

/* ---- look.c: deaths, deadlines, failures ---- */
/* True: the comm is whole and the peer lives. peer: of a send, else TUTTI_ANY. */
bool p2p_well(struct p2p *p, int peer);
/* Before a call begins: 0, or why it cannot: the comm has failed, or the receiver is gone. */
int  p2p_check(struct p2p *p, const struct post *post);
/* The rank that it waits for is gone. slice: enum wait_slice of the next sleep. */
bool p2p_gone(struct p2p *p, const struct post *post, int slice);
/* Ends the post unless its message is matched. False: it is. */
bool p2p_withdraw(struct p2p *p, struct post *post, int result);
/* Ends the post in any case, and tells the other side. */
void p2p_abandon(struct p2p *p, struct post *post, int result);
/* Writes the report. A death sets QUIT_ALONE. Returns the call's. */
int  p2p_fail(struct p2p *p, const struct post *post, int error);
/* Withdraws the post if it can, with a report. */
void p2p_expire(struct p2p *p, struct post *post, int error);
/* Looks at all works and ends those that cannot go on, by a deadline at `now`. Returns the longest
 * next sleep, ns. */
uint64_t p2p_look(struct p2p *p, uint64_t now);
/* This process was stopped for `excess` ns, until now: deadlines of works do not count them. */
void p2p_excuse(struct p2p *p, uint64_t now, uint64_t excess);
/* Counts this rank as a listener and appends the words to sleep on; drive_retire takes the count
 * back. 0: something has moved, do not sleep. */
int  p2p_gather(struct p2p *p, struct futex_word *words, int room, struct drive_sleep *sleep);

const char *post_what(const struct post *post);      /* "to send", "for a message" */

#endif
