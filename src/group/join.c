/* A rank gets the arena by a descriptor inherited from a launcher, or by a name under which the
 * ranks meet. Then both are the same: take the seat, wait for the others, leave nothing on failure.
 * A call leaves no state but what it returns. The name does not count the attempts of a rank, so
 * ranks in different attempts meet.
 * Cost: that of meet.c, or one map. */
#include "group/join.h"

#include "group/meet.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { TIMEOUT_DEFAULT_MS = 60000 };

static int check_request(const struct join_request *r, struct text *why)
{
    if (r->size < 1 || r->size > RANKS_MAX) {
        text_add(why, "a job of %d ranks: tutti has room for 1 to %d", r->size, RANKS_MAX);
        return -EINVAL;
    }
    if (r->rank < 0 || r->rank >= r->size) {
        text_add(why, "rank %d does not exist in a job of %d", r->rank, r->size);
        return -EINVAL;
    }
    if (r->fd < 0 && (!r->name || !r->name[0])) {
        text_add(why, "neither a name to meet under nor an inherited arena");
        return -EINVAL;
    }
    if (r->name && r->plan.size != r->size) {
        text_add(why, "the plan has %d ranks, the request %d", r->plan.size, r->size);
        return -EINVAL;
    }
    return 0;
}

/* -ESTALE: this rank cannot use the arena. An earlier program under the same launcher had the seat,
 * or the others have given up. */
static int check_seat(const struct meeting *m)
{
    const struct join_request *r = m->request;
    struct arena *arena = m->arena;
    struct text *why = m->why;
    if (arena->header->size != (uint32_t)r->size) {
        text_add(why, "this job has %u ranks, you said %d", arena->header->size, r->size);
        refused_size(arena, r->rank, (int)getpid(), r->size);
        return -EPROTO;
    }
    enum seat_use use = seat_use(&arena->seats[r->rank]);
    if (use == SEAT_UNUSED)
        return r->name && assemble_end(&m->gather) == -ETIMEDOUT ? -ESTALE : 0;
    seat_say_taken(arena, (uint32_t)r->rank, why);
    if (use == SEAT_PAST)
        return -ESTALE;
    refused_second(arena, r->rank, (int)getpid());
    return -EEXIST;
}

/* After a failure the caller keeps the descriptor, for a later program of the same launcher. */
static int leave_inherited(struct arena *arena, int error)
{
    arena->fd = -1;
    arena_detach(arena);
    return error;
}

static int join_inherited(struct meeting *m)
{
    const struct join_request *r = m->request;
    int error = arena_attach(m->arena, r->fd, m->why);
    if (error)
        return error;
    m->gather.arena = m->arena;
    error = check_seat(m);
    if (error == 0)
        error = seat_take(m->arena, (uint32_t)r->rank, &m->card, m->why);
    if (error)
        return leave_inherited(m->arena, error);
    assemble_seated(&m->gather);
    assemble_expect(&m->gather);
    int end = ASSEMBLE_GOING;
    while (end == ASSEMBLE_GOING)
        end = assemble_wait(&m->gather);
    if (r->name)
        end = meet_end(m, end);
    if (end != ASSEMBLE_DONE) {
        meet_leave(m, end);
        return leave_inherited(m->arena, end == -EAGAIN ? -ESTALE : end);
    }
    /* ours now: a child program must not keep the arena alive */
    fcntl(r->fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

int join_world(struct arena *arena, const struct join_request *request, int *host_fd,
               struct text *why)
{
    *host_fd = -1;
    *arena = (struct arena){ .fd = -1, .file = KEPT_NONE };
    int error = check_request(request, why);
    if (error)
        return error;
    int timeout_ms = request->timeout_ms ? request->timeout_ms : TIMEOUT_DEFAULT_MS;
    struct meeting m = { .request = request, .arena = arena, .why = why };
    m.gather = (struct assembly){
        .rank = (uint32_t)request->rank, .timeout_ms = timeout_ms, .end_ns = UINT64_MAX
    };
    if (timeout_ms > 0)
        m.gather.end_ns = clock_ns() + (uint64_t)timeout_ms * 1000000u;
    seat_card(&m.card, request->several);
    error = request->fd >= 0 ? join_inherited(&m) : -ESTALE;
    if (error != -ESTALE || !request->name)
        return error;
    text_clear(why);
    return meet_world(&m, host_fd);
}
