/* The buffers of an operation are lists of pieces, one for each block that this rank gives or gets;
 * even kinds have theirs in a row. In place, pieces of the one list are those of the other. */
#include "job.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int player_complain(struct player *player, const struct step *step, tutti_comm *comm,
                    const char *format, ...)
{
    uint32_t n = fetch_add32(&player->board->used, 1);
    if (n >= sizeof player->board->said / sizeof player->board->said[0])
        return 1;
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    struct text t = { player->board->said[n], sizeof player->board->said[n], 0 };
    text_add(&t, "rank %d, ", player->me);
    step_describe(step, &player->program, &t);
    text_add(&t, ": %s\n%s", what, comm ? tutti_explain(comm) : "");
    return 1;
}

static bool whole(enum kind kind)                    /* in place is: all of it, send == recv */
{
    return kind == KIND_REDUCE || kind == KIND_ALL_REDUCE || kind == KIND_SCAN
        || kind == KIND_EXSCAN || kind == KIND_ALL_TO_ALL || kind == KIND_ALL_TO_ALL_V
        || kind == KIND_ALL_REDUCE_MANY;
}

static bool takes_many(enum kind kind)
{
    return kind == KIND_ALL_GATHER || kind == KIND_ALL_GATHER_V || kind == KIND_GATHER
        || kind == KIND_GATHER_V || kind == KIND_ALL_TO_ALL || kind == KIND_ALL_TO_ALL_V
        || kind == KIND_ALL_REDUCE_MANY;
}

static void job_sides(struct job *j)
{
    const struct step *s = &j->step;
    const struct group *g = j->group;
    bool at_root = s->root == g->me,
         scatters = s->kind == KIND_SCATTER || s->kind == KIND_SCATTER_V;
    bool gathers = s->kind == KIND_GATHER || s->kind == KIND_GATHER_V || s->kind == KIND_REDUCE;
    int blocks = s->kind == KIND_ALL_REDUCE_MANY ? s->buffers : g->size;
    j->give_n = s->kind == KIND_BARRIER || s->kind == KIND_BROADCAST || (scatters && !at_root) ? 0
        : model_each(s->kind) ? blocks
                              : 1;
    j->get_n = s->kind == KIND_BARRIER || s->kind == KIND_SAME || (gathers && !at_root)
            || (s->kind == KIND_EXSCAN && g->me == 0)
        ? 0
        : takes_many(s->kind) ? blocks
                              : 1;
    for (int i = 0; i < j->give_n; i++)
        j->gives[i] = model_count(s, g, g->me, i);
    for (int i = 0; i < j->get_n; i++)
        j->gets[i] = scatters ? model_count(s, g, s->root, g->me)
            : s->kind == KIND_ALL_REDUCE_MANY ? j->gives[i]
            : model_count(s, g, i, g->me);
}

static size_t max(size_t a, size_t b) { return a > b ? a : b; }

static bool job_buffers(struct job *j)
{
    struct player *p = j->player;
    const struct step *s = &j->step;
    size_t width = s->kind == KIND_SAME ? 1 : model_width(s->type);
    bool listed = model_uneven(s->kind) || s->kind == KIND_ALL_REDUCE_MANY, all = whole(s->kind);
    bool small_recv = j->in_place && !all && j->give_n > 1,
         small_send = j->in_place && !all && !small_recv;
    for (int i = 0; i < j->give_n && !small_send && !(j->in_place && all); i++)
        pieces_add(&j->send, j->gives[i] * width, listed ? soak_below(&p->own, 80) : 0);
    for (int i = 0; i < j->get_n && !small_recv; i++)
        pieces_add(&j->recv,
                   (j->in_place && all ? max(j->gives[i], j->gets[i]) : j->gets[i]) * width,
                   listed ? soak_below(&p->own, 80) : 0);
    bool shared = soak_below(&p->own, 2), other = soak_below(&p->own, 4) ? shared : !shared;
    if (!pieces_take(&j->send, p->world, shared, soak_below(&p->own, 64))
        || !pieces_take(&j->recv, p->world, other, soak_below(&p->own, 64)))
        return false;
    for (int i = 0; i < j->get_n && !small_recv; i++)
        j->get[i] = pieces_piece(&j->recv, i);
    for (int i = 0; i < j->give_n; i++)
        j->give[i] = small_send ? j->get[j->group->me]
            : j->in_place && all ? j->get[i]
            : pieces_piece(&j->send, i);
    if (small_recv)
        j->get[0] = j->give[j->group->me];
    fetch_add64(&p->board->in_arena, j->send.shared || j->recv.shared);
    return true;
}

static void job_fill(struct job *j)
{
    const struct step *s = &j->step;
    unsigned char tile[SOAK_PERIOD * 8];
    size_t width = s->kind == KIND_SAME ? 1 : model_width(s->type);
    for (int i = 0; i < j->give_n; i++) {
        model_give(tile, s, s->kind == KIND_SAME ? 0 : j->group->me, i);
        tile_fill(j->give[i], j->gives[i] * width, tile, SOAK_PERIOD * width);
    }
    if (s->kind == KIND_BROADCAST && j->group->me == s->root) {
        model_give(tile, s, s->root, 0);
        tile_fill(j->get[0], j->gets[0] * width, tile, SOAK_PERIOD * width);
    }
    if (s->kind == KIND_SAME && !s->alike && s->count && j->group->me == s->root)
        j->give[0][s->salt % s->count] ^= 1;
}

static void job_done(int result, void *arg)
{
    struct job *j = arg;
    store_release32(&j->done_result, (uint32_t)result);
    fetch_add32(&j->done, 1);
}

static int job_call(struct job *j, const tutti_call *call)
{
    const struct step *s = &j->step;
    struct group *g = j->group;
    tutti_op op = s->op < 0 ? g->op[-1 - s->op] : (tutti_op)s->op;
    const void *send = j->give_n ? j->give[0] : NULL, *gives[SOAK_BLOCKS];
    void *recv = j->get_n ? j->get[0] : NULL, *gets[SOAK_BLOCKS];
    size_t give_counts[SOAK_BLOCKS], get_counts[SOAK_BLOCKS], n = s->count;
    tutti_comm *c = g->comm;
    for (int i = 0; i < SOAK_BLOCKS; i++) {          /* copies, gone when the call returns */
        gives[i] = j->give[i];
        gets[i] = j->get[i];
        give_counts[i] = j->gives[i];
        get_counts[i] = j->gets[i];
    }
    switch (s->kind) {
    case KIND_BARRIER: return tutti_barrier(c, call);
    case KIND_BROADCAST: return tutti_broadcast(recv, n, s->type, s->root, c, call);
    case KIND_REDUCE: return tutti_reduce(send, recv, n, s->type, op, s->root, c, call);
    case KIND_ALL_REDUCE: return tutti_all_reduce(send, recv, n, s->type, op, c, call);
    case KIND_ALL_REDUCE_MANY:
        return tutti_all_reduce_many(gives, gets, give_counts, s->buffers, s->type, op, c, call);
    case KIND_REDUCE_SCATTER: return tutti_reduce_scatter(send, recv, n, s->type, op, c, call);
    case KIND_ALL_GATHER: return tutti_all_gather(send, recv, n, s->type, c, call);
    case KIND_GATHER: return tutti_gather(send, recv, n, s->type, s->root, c, call);
    case KIND_SCATTER: return tutti_scatter(send, recv, n, s->type, s->root, c, call);
    case KIND_ALL_TO_ALL: return tutti_all_to_all(send, recv, n, s->type, c, call);
    case KIND_SCAN: return tutti_scan(send, recv, n, s->type, op, c, call);
    case KIND_EXSCAN: return tutti_exscan(send, recv, n, s->type, op, c, call);
    case KIND_REDUCE_SCATTER_V:
        return tutti_reduce_scatter_v(gives, give_counts, recv, s->type, op, c, call);
    case KIND_ALL_GATHER_V:
        return tutti_all_gather_v(send, give_counts[0], gets, get_counts, s->type, c, call);
    case KIND_GATHER_V:
        return tutti_gather_v(send, give_counts[0], j->get_n ? gets : NULL,
                              j->get_n ? get_counts : NULL, s->type, s->root, c, call);
    case KIND_SCATTER_V:
        return tutti_scatter_v(j->give_n ? gives : NULL, j->give_n ? give_counts : NULL, recv,
                               get_counts[0], s->type, s->root, c, call);
    case KIND_ALL_TO_ALL_V:
        return tutti_all_to_all_v(gives, give_counts, gets, get_counts, s->type, c, call);
    default: return tutti_same(send, n, c, call);
    }
}

static int job_wrong(struct job *j, const char *what, int block, size_t byte)
{
    static const char *const where[] = { "private", "in the arena" };
    return player_complain(j->player, &j->step, NULL,
                           "%s block %d: byte %zu is wrong (step %zu, %s, send %s, recv %s, %s)",
                           what, block, byte, j->nth, j->in_place ? "in place" : "apart",
                           where[j->send.shared], where[j->recv.shared],
                           j->work ? "by work" : "blocking");
}

static int job_judge(struct job *j, int result)
{
    const struct step *s = &j->step;
    size_t width = s->kind == KIND_SAME ? 1 : model_width(s->type), at;
    unsigned char tile[SOAK_PERIOD * 8];
    int should = s->kind == KIND_SAME ? s->alike || !s->count || j->group->size == 1 : 0;
    if (result != should)
        return player_complain(j->player, s, j->group->comm,
                               "returned %d, should %d (step %zu, %s)", result, should, j->nth,
                               j->work ? "by work" : "blocking");
    for (int i = 0; i < j->get_n; i++) {
        model_get(tile, s, j->group, j->group->me, i);
        at = tile_differs(j->get[i], j->gets[i] * width, tile, SOAK_PERIOD * width);
        if (at != SIZE_MAX)
            return job_wrong(j, "recv", i, at);
    }
    for (int i = 0; i < j->give_n && s->kind != KIND_SAME; i++) {
        if (j->in_place && (whole(s->kind) || i == j->group->me || j->give_n == 1))
            continue;
        model_give(tile, s, j->group->me, i);
        at = tile_differs(j->give[i], j->gives[i] * width, tile, SOAK_PERIOD * width);
        if (at != SIZE_MAX)
            return job_wrong(j, "send", i, at);
    }
    return pieces_whole(&j->send) && pieces_whole(&j->recv) ? 0
                                                            : job_wrong(j, "bytes beside a", -1, 0);
}

static int job_over(struct job *j, int result)
{
    int r = job_judge(j, result);
    if (r == 0 && j->called
        && (load_acquire32(&j->done) != 1 || (int)load_acquire32(&j->done_result) != result))
        r = player_complain(j->player, &j->step, NULL,
                            "done was called %u times, with %d; the result is %d",
                            load_acquire32(&j->done), (int)load_acquire32(&j->done_result), result);
    pieces_give(&j->send, j->player->world);
    pieces_give(&j->recv, j->player->world);
    fetch_add64(&j->player->board->operations, 1);
    free(j);
    return r;
}

int job_end(struct job *j)
{
    int r = -EAGAIN;
    switch (soak_below(&j->player->own, 4)) {
    case 0:
        while (tutti_test(j->work) == -EAGAIN)
            sched_yield();
        break;
    case 1:
        while (r == -EAGAIN)
            r = tutti_wait(j->work, 1);
        break;
    default: break;
    }
    if (r == -EAGAIN)
        r = tutti_wait(j->work, -1);
    j->group->under_way--;
    return job_over(j, r);
}

int job_play(struct player *player, const struct step *step, struct job **left)
{
    struct job *j = calloc(1, sizeof *j);
    tutti_call call = { 0 };
    uint64_t factor;
    *left = NULL;
    if (!j)
        return player_complain(player, step, NULL, "no memory");
    *j = (struct job){
        .player = player, .step = *step, .group = &player->program.groups[step->group],
        .nth = player->program.steps_made
    };
    job_sides(j);
    bool can = j->give_n && j->get_n;
    j->in_place = can && soak_below(&player->own, 2);
    fetch_add64(&player->board->in_place, j->in_place);
    if (!job_buffers(j)) {
        free(j);
        return player_complain(player, step, NULL, "no memory");
    }
    job_fill(j);
    factor = model_factor(step, j->group->me);
    if (model_folds(step->kind) && step->op == TUTTI_PREMUL_SUM)
        call.factor = &factor;
    bool by_work = soak_below(&player->own, 2);
    if (by_work) {
        call.work = &j->work;
        if (soak_below(&player->own, 2)) {
            j->called = true;
            call.done = job_done;
            call.done_arg = j;
        }
        fetch_add64(&player->board->by_work, 1);
        j->group->under_way++;
    }
    int r = job_call(j, call.work || call.factor || soak_below(&player->own, 2) ? &call : NULL);
    factor = 0;
    if (!by_work)
        return job_over(j, r);
    if (r < 0)
        return player_complain(player, step, j->group->comm, "could not be started: %d", r);
    *left = j;
    return 0;
}
