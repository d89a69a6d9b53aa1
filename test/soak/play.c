/* One rank's way through the program. Work under way on any comm stays behind for a while, and is
 * waited for in any order. */
#include "job.h"

#include "base/clock.h"
#include "group/comm.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { LEFT_MOST = 8 };

struct left { struct job *job[LEFT_MOST]; int n; };

static int left_end(struct left *left, int i)
{
    struct job *job = left->job[i];
    left->job[i] = left->job[--left->n];
    return job_end(job);
}

static int left_end_group(struct left *left, const struct group *g)
{
    int r = 0;
    for (int i = left->n - 1; i >= 0 && !r; i--)
        if (!g || left->job[i]->group == g)
            r = left_end(left, i);
    return r;
}

static void delay(struct player *p)
{
    size_t how = soak_below(&p->own, 16);
    uint64_t until = clock_ns() + soak_below(&p->own, how == 0 ? 2000000 : 60000);
    if (how < 3)
        while (clock_ns() < until) { }
    else if (how < 6)
        for (size_t i = soak_below(&p->own, 6); i; i--)
            sched_yield();
}

static int joined(struct player *p, const struct step *s, int to, tutti_comm *comm)
{
    struct group *g = &p->program.groups[to];
    int rank = comm ? tutti_rank(comm) : -1, size = comm ? tutti_size(comm) : -1;
    if (rank != g->me || size != g->size)
        return player_complain(p, s, comm, "the new comm has rank %d of %d, should be %d of %d",
                               rank, size, g->me, g->size);
    g->comm = comm;
    return 0;
}

static int play_split(struct player *p, const struct step *s, struct group *parent)
{
    tutti_comm *comm = NULL;
    int color = s->color[parent->me];
    int r = tutti_comm_split(parent->comm, color, s->key[parent->me], &comm);
    if (r < 0)
        return player_complain(p, s, parent->comm, "split: %d", r);
    if (color < 0)
        return comm ? player_complain(p, s, comm, "a comm without a color") : 0;
    return joined(p, s, s->to[color], comm);
}

static int play_create(struct player *p, const struct step *s, struct group *parent)
{
    tutti_comm *comm = NULL;
    if (p->program.groups[s->to[0]].me < 0)
        return 0;
    int r = tutti_comm_create(parent->comm, s->list, s->size, &comm);
    return r < 0 ? player_complain(p, s, parent->comm, "create: %d", r)
                 : joined(p, s, s->to[0], comm);
}

static int once_run(void *arg)
{
    fetch_add64(&((struct soak_board *)arg)->runs, 1);
    return 0;
}

static int play_key(struct player *p, const struct step *s, struct group *g)
{
    char key[32];
    snprintf(key, sizeof key, "key %d", s->which);
    if (s->doing == DO_ONCE) {
        int r = tutti_once(key, once_run, p->board, g->comm, NULL);
        return r < 0 ? player_complain(p, s, g->comm, "once: %d", r) : 0;
    }
    int r = tutti_first_begin(key, g->comm, NULL);
    if (r == 1) {
        delay(p);
        once_run(p->board);
        r = tutti_first_end(key, 0, g->comm);
    }
    return r < 0 ? player_complain(p, s, g->comm, "first: %d", r) : 0;
}

static int play_turn(struct player *p, const struct step *s, struct group *g)
{
    uint64_t birth = g->comm->birth;
    shared32 *inside = birth < SOAK_BIRTHS ? &p->board->inside[birth] : NULL;
    int r = tutti_turn_begin(g->comm, NULL);
    if (r < 0)
        return player_complain(p, s, g->comm, "turn_begin: %d", r);
    if (inside && fetch_add32(inside, 1) != 0)
        return player_complain(p, s, g->comm, "two ranks have a turn");
    delay(p);
    if (inside)
        fetch_sub32(inside, 1);
    r = tutti_turn_end(g->comm);
    return r < 0 ? player_complain(p, s, g->comm, "turn_end: %d", r) : 0;
}

static int play_collective(struct player *p, const struct step *s, struct left *left)
{
    struct job *job;
    int r = left->n == LEFT_MOST ? left_end(left, (int)soak_below(&p->own, LEFT_MOST)) : 0;
    if (r == 0)
        r = job_play(p, s, &job);
    if (r == 0 && job)
        left->job[left->n++] = job;
    return r;
}

/* Through a comm of this rank alone, so that it waits for nobody: what staging it takes,
 * it fills. */
static int use_staging(struct player *p, const struct step *s)
{
    unsigned char junk[30000] = { 0 };               /* of nobody's data */
    tutti_comm *alone;
    int r = tutti_comm_create(p->world, &p->me, 1, &alone);
    if (r == 0)
        r = tutti_all_reduce(junk, junk, 1 + soak_below(&p->own, sizeof junk), TUTTI_U8, TUTTI_MAX,
                             alone, NULL);
    if (r == 0)
        r = tutti_comm_free(alone);
    return r < 0 ? player_complain(p, s, p->world, "a comm of one: %d", r) : 0;
}

/* The comm goes while slower peers may still read the last operation out of this rank's staging.
 * Whoever takes memory next must not get that. */
static int play_free(struct player *p, const struct step *s, struct group *g)
{
    struct job *job;
    int r = job_play(p, s, &job);
    if (r == 0 && job)
        r = job_end(job);
    if (r)
        return r;
    if ((r = tutti_comm_free(g->comm)) < 0)
        return player_complain(p, s, r == -EBUSY ? g->comm : NULL, "free: %d", r);
    return soak_below(&p->own, 4) ? use_staging(p, s) : 0;
}

static int play_other(struct player *p, const struct step *s, struct group *g, struct left *left)
{
    int r = 0;
    bool needs_rest = s->doing == DO_FREE || s->doing == DO_OP_FREE;
    if (needs_rest)
        r = left_end_group(left, g);
    if (r)
        return r;
    switch (s->doing) {
    case DO_SPLIT: return play_split(p, s, g);
    case DO_CREATE: return play_create(p, s, g);
    case DO_ONCE: case DO_FIRST: return play_key(p, s, g);
    case DO_TURN: return play_turn(p, s, g);
    case DO_FREE: return play_free(p, s, g);
    case DO_OP_CREATE:
        r = tutti_op_create(model_user, (int)soak_below(&p->own, 2), &g->op[s->which], g->comm);
        break;
    default: r = tutti_op_free(&g->op[s->which], g->comm); break;
    }
    return r < 0 ? player_complain(p, s, g->comm, "%d", r) : 0;
}

int soak_play(tutti_comm *world, uint64_t seed, size_t steps, struct soak_board *board)
{
    struct player p = {
        .world = world, .board = board, .me = tutti_rank(world),
        .own = seed * 7919 + (uint64_t)tutti_rank(world)
    };
    struct left left = { .n = 0 };
    int r = 0;
    program_open(&p.program, seed, tutti_size(world), p.me, world);
    for (size_t i = 0; i < steps && !r; i++) {
        struct step s = program_step(&p.program, p.me);
        struct group *g = &p.program.groups[s.group];
        if (g->me < 0)
            continue;
        delay(&p);
        while (left.n && !r && soak_below(&p.own, 3) == 0)
            r = left_end(&left, (int)soak_below(&p.own, (size_t)left.n));
        fetch_add64(&board->by_doing[s.doing], 1);
        if (!r)
            r = s.doing == DO_COLLECTIVE ? play_collective(&p, &s, &left)
                                         : play_other(&p, &s, g, &left);
    }
    if (!r)
        r = left_end_group(&left, NULL);
    if (p.me == 0)
        store_release64(&board->runs_due, p.program.runs);
    if (!r && (r = tutti_barrier(world, NULL)) < 0)
        r = player_complain(&p, &(struct step){ .doing = DO_COLLECTIVE, .kind = KIND_BARRIER },
                            world, "the last barrier: %d", r);
    return r;
}
