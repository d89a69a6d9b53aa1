/* A message in the store is copied twice. One copy after the other, the receiver is idle while the
 * sender copies, and the reverse. So a sender says how much of it is there, and a receiver that
 * already waits for this message follows a chunk behind. What the receiver has to know first lies
 * beside that number, so that the letter's line stays with the sender until the last chunk.
 * Measured, 2 ranks on a Zen 4, half a round trip of 64 KiB: 3.3 us without chunks, 2.5 us with
 * them; CPUs far apart: 7.5 and 5.9 us.
 *
 * Nothing else sees it: the letter is sent when all of the message is there. Who probes, asks for
 * any rank's messages, sets messages aside or looks for a death finds no letter before that. If the
 * sender is killed in between, there never is one. A receiver that has copied a chunk then goes on
 * waiting for the letter: it ends as if it had seen nothing. Only its buffer is changed.
 * Cost: a fence and a store for each chunk: up to a tenth of the time of an exchange, in which
 * nobody waits. So a receiver says that it waits, and who sends to one that does not copies all at
 * once. Not where ranks share CPUs: the receiver has no CPU meanwhile. */
#include "p2p/p2p.h"

#include "base/clock.h"
#include "base/tuner.h"

#include <string.h>

enum { BEGUN_BITS = 16, CHUNKS = 4 };
/* without a chunk more: its sender has lost its CPU */
enum { OVERLAP_SPINS = TINY(256, 2) };

_Static_assert(MEDIUM / CHUNK_LEAST < 1 << BEGUN_BITS, "the chunks of a message are counted");

/* Bytes of a chunk. Both sides know it from the message's length. */
static size_t overlap_chunk(size_t bytes)
{
    size_t chunk = bytes / CHUNKS / 64 * 64;
    return chunk < CHUNK_LEAST ? CHUNK_LEAST : chunk > CHUNK_MOST ? CHUNK_MOST : chunk;
}

static void overlap_copy(char *to, const char *from, size_t bytes, bool streamed)
{
    if (streamed)
        copy_unordered(to, from, bytes);
    else
        copy_plain(to, from, bytes);
}

/* Whether the receiver waits is known after the first chunk at no cost: its line comes meanwhile.
 */
struct overlap overlap_begin(struct p2p *p, struct lane *lane, char *to, const char *from,
                             size_t bytes, bool block)
{
    cpu_fetch((const void *)&lane->out->waits);
    bool streamed = COPY_STREAMS && !block
        && tuner_choose_less(&p->staged, p->comm->world->staged_less);
    struct overlap chunks = { to, from, bytes, overlap_chunk(bytes), clock_tick(), block,
                              streamed };
    overlap_copy(to, from, chunks.done, streamed);
    return chunks;
}

static void overlap_preview(struct preview *out, const struct envelope *front)
{
    /* relaxed: begun publishes it, E86 */
    store_relaxed64(&out->at, front->rest.at);
    out->bytes = front->bytes;
    out->tag = front->tag;
    out->pages = front->pages;
    out->type = front->type;
    out->mode = front->mode;
}

void overlap_end(struct p2p *p, struct lane *lane, const struct overlap *chunks,
                 const struct envelope *front)
{
    uint64_t number = lane->sent + 1, count = 0;
    size_t bytes = chunks->bytes, done = chunks->done, n;
    /* E134 acquire */
    bool waits = !p->comm->crowded && load_acquire64(&lane->out->waits) == number;
    if (waits)
        overlap_preview(&lane->out->preview, front);
    for (; done < bytes; done += n) {
        if (waits) {
            if (chunks->streamed)
                copy_ordered();
            store_release64(&lane->out->begun, number << BEGUN_BITS | ++count);  /* E86 release */
        }
        n = waits && bytes - done > chunks->done ? chunks->done : bytes - done;
        if (waits && done + n == bytes)
            cpu_own(&lane->write.at[lane->write.index]);
        overlap_copy(chunks->to + done, chunks->from + done, n, chunks->streamed);
    }
    if (chunks->streamed)
        copy_ordered();
    if (!chunks->block)
        tuner_learn_mean(&p->staged, chunks->streamed, clock_tick() - chunks->began,
                         bytes);
}

/* How many chunks of the next letter's message are there. */
static size_t overlap_there(const struct lane *lane)
{
    uint64_t begun = load_acquire64(&lane->in->begun);               /* E86 acquire */
    return begun >> BEGUN_BITS == lane->got + 1 ? begun & ((1 << BEGUN_BITS) - 1) : 0;
}

bool overlap_begun(const struct lane *lane)
{
    return lane->in && !lane->damaged && overlap_there(lane) > 0;
}

/* A copy of what begins the envelope of the letter that is being written. */
static bool overlap_front(const struct p2p *p, struct lane *lane, struct envelope *e)
{
    const struct preview *in = &lane->in->preview;
    /* relaxed: after E86 */
    e->rest.at = load_relaxed64(&in->at);
    e->bytes = in->bytes;
    e->tag = in->tag;
    e->pages = in->pages;
    e->type = in->type;
    e->mode = in->mode;
    return (e->mode == LETTER_STORED
            && p2p_of_peer(p, lane_peer(p, lane), e->rest.at, e->bytes) != NULL)
        || (e->mode == LETTER_HANDED && hand_sound(p, lane, e));
}

const struct envelope *overlap_take(struct p2p *p, struct lane *lane, int tag, tutti_type type,
                                  char *to, size_t room)
{
    const struct letter *letter = &lane->read.at[lane->read.index];
    struct envelope begun;
    if (!overlap_front(p, lane, &begun) || begun.type != (uint16_t)type || begun.bytes > room
        || (tag != TUTTI_ANY && tag != (int)begun.tag))
        return NULL;
    const char *from = p2p_at(p, begun.rest.at);
    struct landing landing = landing_begin(p, begun.bytes);
    size_t done = 0, chunk = overlap_chunk(begun.bytes);
    for (int idle = 0; idle < OVERLAP_SPINS; idle++) {
        /* E35 acquire. Before the last chunk the letter's line stays with the sender */
        bool last = begun.bytes - done <= chunk,
             sent = last && load_acquire64(&letter->seq) > lane->got;
        size_t there = sent ? begun.bytes : last ? done : overlap_there(lane) * chunk;
        if (there > begun.bytes)
            there = begun.bytes;
        if (there > done) {
            landing_copy(&landing, to + done, from + done, there - done);
            done = there;
            idle = 0;
        }
        if (sent) {
            const struct envelope *e = lane_next(p, lane);
            if (e && (e->mode != begun.mode || e->bytes != begun.bytes
                      || e->rest.at != begun.rest.at || e->tag != begun.tag
                      || e->type != begun.type)) {
                lane->damaged = true;
                return NULL;
            }
            landing_end(&landing, begun.bytes);
            return e;
        }
        cpu_pause();
    }
    return NULL;
}

bool overlap_match(struct p2p *p, struct lane *lane)
{
    uint32_t from = lane_peer(p, lane);
    struct envelope begun;
    if (!overlap_begun(lane) || !overlap_front(p, lane, &begun))
        return false;
    struct post *post = match_first(p, from, begun.tag);
    if (!post || post->kind != KIND_RECV)
        return false;
    const struct envelope *e = overlap_take(p, lane, post->tag, post->type, post->to, post->bytes);
    if (!e)
        return false;
    post->sender = from;
    if (post->got)
        *post->got = (tutti_message){ (int)from, (int)e->tag, e->bytes / post->width };
    lane_took(p, lane, e);
    post_over(p, post, 0);
    return true;
}
