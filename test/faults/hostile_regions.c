/* The regions are found as the library finds them, through the handles of the rank that writes.
 * What the C library keeps in a lock is left out: whoever writes there can crash whoever unlocks it
 * (tutti(7), known limits). */
#include "hostile.h"

#include "arena/offsets.h"
#include "feed/feed.h"
#include "group/comm.h"
#include "p2p/p2p.h"

#include <string.h>

#define FIELDS(object, from,                                                                       \
               to) ((struct hostile_stretch){ (char *)(object) + offsetof(__typeof__(*(object)),   \
                                                                          from),                   \
    offsetof(__typeof__(*(object)), to) - offsetof(__typeof__(*(object)), from) })
#define REST(object,                                                                               \
             from) ((struct hostile_stretch){ (char *)(object) + offsetof(__typeof__(*(object)),   \
                                                                          from),                   \
    sizeof *(object) - offsetof(__typeof__(*(object)), from) })
#define NONE ((struct hostile_stretch){ NULL, 0 })

/* To the next rank. */
static struct lane *out_lane(tutti_comm *c)
{
    struct lane *lane = c->p2p ? &c->p2p->lanes[(c->watch.me + 1) % c->watch.size] : NULL;
    return lane && lane->out ? lane : NULL;
}

/* The channel that leads here: its receiver's words. */
static struct lane *in_lane(tutti_comm *c)
{
    for (uint32_t q = 0; c->p2p && q < c->watch.size; q++)
        if (q != c->watch.me && c->p2p->lanes[q].in)
            return &c->p2p->lanes[q];
    return NULL;
}

static struct seat *my_seat(tutti_comm *c) { return c->watch.seats[c->watch.me]; }

static struct hostile_stretch seat(tutti_comm *c) { return REST(my_seat(c), state); }
static struct hostile_stretch seat_id(tutti_comm *c) { return FIELDS(my_seat(c), id, several); }
static struct hostile_stretch seat_state(tutti_comm *c) { return FIELDS(my_seat(c), state, id); }

static struct hostile_stretch seat_mark(tutti_comm *c)
{
    return (struct hostile_stretch){ (char *)&my_seat(c)->mark, sizeof(uint32_t) };
}

static struct hostile_stretch lines(tutti_comm *c)
{
    return FIELDS(c->watch.mine, arrival, produced);
}

static struct hostile_stretch line_said(tutti_comm *c)
{
    return REST(&c->watch.mine->arrival[0], descriptor);
}

static struct hostile_stretch line_more(tutti_comm *c)
{
    return REST(&c->watch.mine->arrival[1], more);
}

static struct hostile_stretch line_payload(tutti_comm *c)
{
    return FIELDS(&c->watch.mine->arrival[1], payload, more);
}

static struct hostile_stretch produced(tutti_comm *c)
{
    return FIELDS(c->watch.mine, produced, consumed);
}

static struct hostile_stretch consumed(tutti_comm *c)
{
    return FIELDS(c->watch.mine, consumed, sleepers);
}

static struct hostile_stretch sleepers(tutti_comm *c)
{
    return FIELDS(c->watch.mine, sleepers, mail);
}

static struct hostile_stretch mail(tutti_comm *c) { return FIELDS(c->watch.mine, mail, quit); }
static struct hostile_stretch quit(tutti_comm *c) { return FIELDS(c->watch.mine, quit, vote); }
static struct hostile_stretch votes(tutti_comm *c) { return FIELDS(c->watch.mine, vote, head); }
static struct hostile_stretch journal(tutti_comm *c) { return REST(c->watch.mine, head); }

static struct hostile_stretch member(tutti_comm *c)
{
    return (struct hostile_stretch){ (char *)c->watch.mine, sizeof *c->watch.mine };
}

static struct hostile_stretch verdict(tutti_comm *c)
{
    return FIELDS(c->watch.slot, verdict, news);
}

static struct hostile_stretch devices(tutti_comm *c)
{
    return FIELDS(c->watch.slot, devices, counter);
}

static struct hostile_stretch ranks(tutti_comm *c)
{
    return (struct hostile_stretch){ (char *)c->watch.slot->world_rank,
                                     c->watch.size * sizeof c->watch.slot->world_rank[0] };
}
static struct hostile_stretch line_device(tutti_comm *c)
{
    struct arrival *a = &c->watch.mine->arrival[(c->seq + 1) & 1];
    return (struct hostile_stretch){ (char *)&a->more[DEVICE_WORD], 2 * sizeof a->more[0] };
}

static struct hostile_stretch placed(tutti_comm *c)
{
    return FIELDS(c->watch.mine, placed, sleepers);
}

static struct hostile_stretch ended(tutti_comm *c) { return FIELDS(c->watch.mine, ended, journal); }
static struct hostile_stretch waits(tutti_comm *c) { return FIELDS(my_seat(c), waits_key, story); }
static struct hostile_stretch story(tutti_comm *c) { return REST(my_seat(c), story); }

static struct hostile_stretch gate(tutti_comm *c)
{
    return FIELDS(c->watch.slot, counter, decision);
}

static struct hostile_stretch decisions(tutti_comm *c)
{
    return FIELDS(c->watch.slot, decision, state);
}

static struct hostile_stretch slot_books(tutti_comm *c)
{
    char *from = (char *)&c->watch.slot->state;
    return (struct hostile_stretch){
        from, (size_t)((char *)&c->watch.slot->world_rank[c->watch.size] - from)
    };
}
static struct hostile_stretch table(tutti_comm *c)
{
    return c->p2p && c->p2p->table
        ? (struct hostile_stretch){ (char *)c->p2p->table, c->watch.size * sizeof(shared64) }
        : NONE;
}
static struct hostile_stretch channel(tutti_comm *c)
{
    struct lane *lane = out_lane(c);
    return lane ? (struct hostile_stretch){ (char *)lane->out, sizeof *lane->out } : NONE;
}
static struct hostile_stretch channel_in(tutti_comm *c)
{
    struct lane *lane = in_lane(c);
    return lane ? (struct hostile_stretch){ (char *)lane->in, sizeof *lane->in } : NONE;
}
static struct hostile_stretch letters(tutti_comm *c)
{
    struct lane *lane = out_lane(c);
    return lane ? (struct hostile_stretch){ (char *)lane->write.at,
                                            lane->write.size * sizeof(struct letter) }
                : NONE;
}
static struct hostile_stretch letter_next(tutti_comm *c)
{
    struct lane *lane = out_lane(c);
    return lane ? (struct hostile_stretch){ (char *)&lane->write.at[lane->write.index],
                                            sizeof(struct letter) }
                : NONE;
}
static struct hostile_stretch deals(tutti_comm *c)
{
    return c->p2p && c->p2p->pages
        ? (struct hostile_stretch){ (char *)((uintptr_t)c->p2p->pages->offers[0].deal
                                             & ~UINT64_C(4095)),
                                    512 }
        : NONE;
}
static struct hostile_stretch pipeline(tutti_comm *c)
{
    return c->stage.pipeline
        ? (struct hostile_stretch){ c->stage.pipeline, c->stage.pipeline_bytes }
        : NONE;
}
static struct hostile_stretch eager(tutti_comm *c)
{
    return c->stage.ring ? (struct hostile_stretch){ c->stage.ring, c->stage.ring_bytes }
        : c->stage.eager[0]
        ? (struct hostile_stretch){ c->stage.eager[0], c->stage.eager_bytes[0] }
        : NONE;
}
static char *base(tutti_comm *c) { return c->world->arena.base; }

static struct hostile_stretch header(tutti_comm *c)
{
    return (struct hostile_stretch){ base(c), sizeof(struct arena_header) };
}

static struct hostile_stretch join(tutti_comm *c)
{
    return (struct hostile_stretch){ base(c) + PLACES_JOIN, offsetof(struct arena_join, lock) };
}

static struct hostile_stretch births(tutti_comm *c)
{
    return FIELDS(c->world->arena.join, births, refusals);
}

static struct hostile_stretch sites(tutti_comm *c)
{
    return (struct hostile_stretch){ (char *)c->world->arena.sites,
                                     SITES_MAX * sizeof(struct site) };
}

static struct hostile_stretch keys(tutti_comm *c)
{
    return (struct hostile_stretch){ (char *)c->world->arena.keys, KEYS_MAX * sizeof(struct key) };
}

static struct hostile_stretch slots(tutti_comm *c)
{
    struct slot *next = arena_slot(&c->world->arena, 1);
    return (struct hostile_stretch){ (char *)next, 2 * layout_slot_bytes(c->watch.size) };
}

static struct hostile_stretch store_books(tutti_comm *c)
{
    return REST(c->world->arena.store, ready);
}

static struct hostile_stretch store_heads(tutti_comm *c)
{
    return (struct hostile_stretch){ (char *)c->world->arena.store + 4096, 8192 };
}

static struct hostile_stretch store_blocks(tutti_comm *c)
{
    struct store *s = c->world->arena.store;
    size_t grown = load_relaxed64(&s->grown);
    return (struct hostile_stretch){ (char *)s
                                         + store_blocks_at(c->world->arena.header->store_bytes),
                                     grown < 65536 ? grown : 65536 };
}

static struct hostile_stretch queue_words(tutti_comm *c)
{
    (void)c;
    struct tutti_queue *q = hostile_queue();
    return (struct hostile_stretch){ (char *)q->head, feed_head_bytes(q->comm->watch.size) };
}

static struct hostile_stretch queue_ring(tutti_comm *c)
{
    (void)c;
    return (struct hostile_stretch){ hostile_queue()->ring, hostile_queue()->room };
}

/* What its next records are written over, or have just been. */
static struct hostile_stretch queue_record(tutti_comm *c)
{
    (void)c;
    struct tutti_queue *q = hostile_queue();
    return (struct hostile_stretch){ (char *)feed_record_at(q, q->at), FEED_STEP };
}

static const struct {
    const char *name;
    struct hostile_stretch (*find)(tutti_comm *c);
} regions[] = {
    { "seat", seat },
    { "seat's id", seat_id },
    { "seat's state", seat_state },
    { "seat's mark", seat_mark },
    { "arrival lines", lines },
    { "what a line says", line_said },
    { "places in a line", line_more },
    { "payload of a line", line_payload },
    { "produced and folded", produced },
    { "consumed, turns, given", consumed },
    { "sleepers and bell", sleepers },
    { "mail", mail },
    { "quit bits and text", quit },
    { "votes", votes },
    { "journal", journal },
    { "member", member },
    { "verdict", verdict },
    { "central gate", gate },
    { "decisions", decisions },
    { "slot's books", slot_books },
    { "table of channels", table },
    { "channel", channel },
    { "receiver's words", channel_in },
    { "letters", letters },
    { "next letter", letter_next },
    { "deals", deals },
    { "pipeline and rows", pipeline },
    { "eager slot", eager },
    { "header", header },
    { "join", join },
    { "births", births },
    { "sites", sites },
    { "keys", keys },
    { "other slots", slots },
    { "store's books", store_books },
    { "store's heads", store_heads },
    { "store's blocks", store_blocks },
    { "devices of a slot", devices },
    { "device of a line", line_device },
    { "placed and mapped", placed },
    { "ended and queued", ended },
    { "ranks of a slot", ranks },
    { "what a seat waits for", waits },
    { "story", story },
    { "queue's words", queue_words },
    { "queue's ring", queue_ring },
    { "queue's record", queue_record },
};
const int hostile_regions = sizeof regions / sizeof regions[0];

bool hostile_region_of_letters(int region)
{
    struct hostile_stretch (*find)(tutti_comm *c) = regions[region].find;
    return find == mail || find == table || find == channel || find == letters || find == deals;
}

const char *hostile_region_name(int region) { return regions[region].name; }

struct hostile_stretch hostile_region(int region, tutti_comm *world)
{
    return regions[region].find(world);
}

static uint64_t noise(uint64_t *random, uint64_t was)
{
    uint64_t r = team_random(random);
    switch (r >> 32 & 7) {
    case 0: return 0;
    case 1: return UINT64_MAX;
    case 2: return r & 0xff;
    case 3: return was ^ UINT64_C(1) << (r & 63);
    case 4: return was + (r & 1 ? 1 : UINT64_MAX);
    case 5: return (r & 0xfffffff) * 64;             /* an offset, perhaps */
    case 6: return was;
    default: return team_random(random);
    }
}

void hostile_scribble(struct hostile_stretch s, uint64_t *random)
{
    uint64_t how = team_random(random);
    size_t from = 0, to = s.bytes;
    if (how & 1) {                                   /* a part of it */
        from = team_random(random) % s.bytes & ~(size_t)7;
        to = from + 8 + team_random(random) % 256;
        to = to < s.bytes ? to : s.bytes;
    }
    for (size_t at = from; at < to; at += 8) {
        uint64_t word = 0;
        size_t n = to - at < 8 ? to - at : 8;
        memcpy(&word, s.at + at, n);
        switch (how >> 8 & 3) {
        case 0: word = 0; break;
        case 1: word = team_random(random); break;
        case 2: word = noise(random, word); break;
        /* most of it as it was */
        default: word = team_random(random) % 16 ? word : noise(random, word); break;
        }
        memcpy(s.at + at, &word, n);
    }
}
