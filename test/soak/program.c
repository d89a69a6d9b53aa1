/* The program: one stream of random numbers, the same on all ranks, drawn in the same order whoever
 * draws. So nothing in here may depend on the rank but `me` of a new group. */
#include "soak.h"

#include <string.h>

void program_open(struct program *p, uint64_t seed, int ranks, int me, tutti_comm *world)
{
    memset(p, 0, sizeof *p);
    p->seed = seed;
    p->ranks = ranks;
    struct group *g = &p->groups[0];
    *g = (struct group){ .used = true, .size = ranks, .me = me, .comm = world };
    for (int r = 0; r < ranks; r++)
        g->member[r] = r;
}

static int any_group(struct program *p)
{
    int n = 0, chosen = 0;
    for (int i = 0; i < SOAK_GROUPS; i++)
        if (p->groups[i].used && soak_below(&p->seed, (size_t)++n) == 0)
            chosen = i;
    return soak_below(&p->seed, 4) ? chosen : 0;     /* the world is the one where all meet */
}

static int free_group(const struct program *p, int after)
{
    for (int i = after; i < SOAK_GROUPS; i++)
        if (!p->groups[i].used)
            return i;
    return -1;
}

static void group_add(struct group *g, int world_rank, int me)
{
    if (world_rank == me)
        g->me = g->size;
    g->member[g->size++] = world_rank;
}

/* Most operations are small; some fill a slot; a few go several times round a ring. */
static size_t any_count(struct program *p, size_t width, size_t blocks)
{
    static const size_t most[] = {
        0, 1, 5, 40, 40, 300, 1000, 4096, 9000, 33000, 65536, 70000, 140000, 300000
    };
    size_t i = soak_below(&p->seed, sizeof most / sizeof *most), bytes = most[i];
    if (i == sizeof most / sizeof *most - 1 && soak_below(&p->seed, 4) == 0)
        bytes = 1500000;
    if (soak_below(&p->seed, 3))                     /* near a threshold, or anywhere below */
        bytes = (size_t)(soak_any(&p->seed) % (bytes + 1));
    size_t count = bytes / width / blocks + soak_below(&p->seed, 2);
    return most[i] ? count : 0;
}

static void any_collective(struct program *p, struct step *s, const struct group *g)
{
    static const tutti_type types[] = {
        TUTTI_U8, TUTTI_I16, TUTTI_I32, TUTTI_U32, TUTTI_U64, TUTTI_I64, TUTTI_F32, TUTTI_F64
    };
    s->kind = KIND_BARRIER + (enum kind)soak_below(&p->seed, KIND_SAME - KIND_BARRIER + 1);
    s->type = types[soak_below(&p->seed, sizeof types / sizeof *types)];
    s->root = (int)soak_below(&p->seed, (size_t)g->size);
    s->buffers = (int)soak_below(&p->seed, SOAK_MANY + 1);
    s->uneven = (int)soak_below(&p->seed, 8);
    s->alike = soak_below(&p->seed, 2);
    int user = (int)soak_below(&p->seed, 2 * SOAK_OPS), op = (int)soak_below(&p->seed, 7);
    bool floats = s->type == TUTTI_F32 || s->type == TUTTI_F64;
    s->op = op < 4 ? op : floats ? TUTTI_SUM : TUTTI_BAND + op - 4;
    if (soak_below(&p->seed, 8) == 0)
        s->op = TUTTI_PREMUL_SUM;
    else if (user < SOAK_OPS && g->op_made[user] && !floats && model_width(s->type) >= 4)
        s->op = -1 - user;
    bool gathers = s->kind == KIND_ALL_GATHER || s->kind == KIND_GATHER
        || s->kind == KIND_ALL_GATHER_V || s->kind == KIND_GATHER_V;
    bool blocks = gathers || model_each(s->kind);
    s->count = any_count(p, s->kind == KIND_SAME ? 1 : model_width(s->type),
                         blocks ? (size_t)g->size : 1);
}

static void any_split(struct program *p, struct step *s, const struct group *parent, int me)
{
    int colors = 1 + (int)soak_below(&p->seed, 3), at = 0;
    for (int c = 0; c < colors; c++) {
        s->to[c] = free_group(p, at);
        if (s->to[c] < 0)
            colors = c;
        at = s->to[c] + 1;
    }
    for (int r = 0; r < parent->size; r++) {
        s->color[r] = (int)soak_below(&p->seed, (size_t)colors + 1) - 1;
        s->key[r] = (int)soak_below(&p->seed, 4) - 2;
    }
    for (int c = 0; c < colors; c++) {
        struct group g = { .me = -1 };
        for (int key = -2; key < 2; key++)
            for (int r = 0; r < parent->size; r++)
                if (s->color[r] == c && s->key[r] == key)
                    group_add(&g, parent->member[r], me);
        g.used = g.size > 0;
        p->groups[s->to[c]] = g;
    }
}

static void any_create(struct program *p, struct step *s, const struct group *parent, int me)
{
    int ranks[SOAK_RANKS], n = parent->size;
    s->size = 1 + (int)soak_below(&p->seed, (size_t)n);
    for (int i = 0; i < n; i++) {
        int j = (int)soak_below(&p->seed, (size_t)i + 1);
        ranks[i] = ranks[j];
        ranks[j] = i;
    }
    struct group g = { .used = true, .me = -1 };
    for (int i = 0; i < s->size; i++) {
        s->list[i] = ranks[i];
        group_add(&g, parent->member[ranks[i]], me);
    }
    s->to[0] = free_group(p, 0);
    p->groups[s->to[0]] = g;
}

/* Bookkeeping that all ranks do; the rest is the members'. */
static void key_used(struct program *p, struct step *s, struct group *g)
{
    s->which = (int)soak_below(&p->seed, SOAK_KEYS);
    if (s->doing == DO_FIRST || !(g->once_done >> s->which & 1))
        p->runs++;
    if (s->doing == DO_ONCE)
        g->once_done |= UINT64_C(1) << s->which;
}

struct step program_step(struct program *p, int me)
{
    static const unsigned char weights[DOINGS] = { 150, 5, 6, 9, 4, 2, 5, 5, 4 };
    struct step s = { .group = any_group(p), .salt = soak_any(&p->seed) };
    struct group *g = &p->groups[s.group];
    unsigned at = (unsigned)soak_below(&p->seed, 190);
    for (s.doing = 0; at >= weights[s.doing]; s.doing++)
        at -= weights[s.doing];
    s.which = (int)soak_below(&p->seed, SOAK_OPS);
    bool room = free_group(p, 0) >= 0;
    if (((s.doing == DO_SPLIT || s.doing == DO_CREATE) && !room)
        || (s.doing == DO_FREE && s.group == 0) || (s.doing == DO_OP_CREATE && g->op_made[s.which])
        || (s.doing == DO_OP_FREE && !g->op_made[s.which]))
        s.doing = DO_COLLECTIVE;
    p->steps_made++;
    switch (s.doing) {
    case DO_COLLECTIVE: any_collective(p, &s, g); break;
    case DO_SPLIT: any_split(p, &s, g, me); break;
    case DO_CREATE: any_create(p, &s, g, me); break;
    case DO_FREE: any_collective(p, &s, g); g->used = false; break;   /* a last one, right before */
    case DO_OP_CREATE: g->op_made[s.which] = true; break;
    case DO_OP_FREE: g->op_made[s.which] = false; break;
    case DO_ONCE: case DO_FIRST: key_used(p, &s, g); break;
    default: break;
    }
    return s;
}

void step_describe(const struct step *s, const struct program *p, struct text *t)
{
    static const char *const doings[] = {
        "collective", "split", "create", "free", "op_create", "op_free", "once", "first", "turn"
    };
    const struct group *g = &p->groups[s->group];
    text_add(t, "step %zu: ", p->steps_made);
    if (s->kind != KIND_NONE)
        fingerprint_add(t,
                        fingerprint_make(s->kind, s->type,
                                         (tutti_op)(s->op < 0 ? TUTTI_OP_USER : s->op), s->root,
                                         s->count),
                        s->count);
    if (s->doing != DO_COLLECTIVE)
        text_add(t, " %s", doings[s->doing]);
    text_add(t, " (manner %d, %d buffers) in group %d of", s->uneven, s->buffers, s->group);
    for (int r = 0; r < g->size; r++)
        text_add(t, " %d", g->member[r]);
}
