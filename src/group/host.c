/* The host is a rank that hands the arena's descriptor to joiners while it waits itself. It sleeps
 * in poll. A joiner sends a byte when it sits, and closes its end when it has failed, so poll
 * returns for both. Slices of sleep cover the rest.
 *
 * A connection that ends before its rank takes a seat is no error: the rank may come again. One
 * that ends after that means a death. To tell these apart a seat is offered on one connection only.
 * Cost: one poll and two messages per joiner. */
#include "group/meet.h"

#include "arena/offsets.h"
#include "base/error.h"
#include "os/handover.h"
#include "os/own_file.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SILENCE_NS UINT64_C(5000000000)   /* a guest that says nothing for so long is dropped */

/* rank -1: has not said hello */
struct guest { int fd; int rank; int32_t pid; bool gone; uint64_t since_ns; };

struct host {
    struct meeting *m;
    int listener;       /* -1: it has been closed */
    const char *name;   /* of the listener */
    int end;            /* how it ended; ASSEMBLE_GOING before */
    bool deaf;          /* accept failed (no descriptors): leave the listener alone for one round */
    int shut_out;       /* accept's error, until an accept succeeds; 0: none */
    int guests, room;
    struct guest *guest;
    struct pollfd *poll;              /* [room + 1], the listener last */
};

static int refuse(struct meet_answer *answer, int status)
{
    answer->status = status;
    return status;
}

/* Reads the byte of a rank that sits. Any other message of a guest is ignored. */
static void swallow(struct guest *guest)
{
    char bytes[64];
    int none;
    int got = handover_recv(guest->fd, bytes, sizeof bytes, &none, 0);
    if (none >= 0)
        close(none);
    if (got < 0 && got != -EAGAIN && got != -EMSGSIZE)
        guest->gone = true;
}

/* The guest that has the offer of this seat and still has its connection. A rank that comes again
 * must not be taken for two. */
static const struct guest *same_rank(const struct host *h, int rank)
{
    for (int i = 0; i < h->guests; i++) {
        struct guest *guest = &h->guest[i];
        if (guest->rank == rank && !guest->gone)
            swallow(guest);
        if (guest->rank == rank && !guest->gone)
            return guest;
    }
    return NULL;
}

/* Is the seat free for this guest? -EAGAIN, the next meeting: its rank was here and is gone, or
   this meeting has ended. A living rank in SEAT_TAKEN has its connection open. */
static int judge_seat(const struct host *h, int rank, int pid, struct meet_answer *answer,
                      struct text *why)
{
    const struct arena *arena = h->m->arena;
    enum seat_use use = seat_use(&arena->seats[rank]);
    const struct guest *other = same_rank(h, rank);
    bool sitting = load_acquire32(&arena->seats[rank].state) == SEAT_TAKEN;     /* E11 acquire */
    if (use == SEAT_PAST || (use == SEAT_UNUSED && h->end) || (sitting && !other)) {
        text_add(why, "this meeting is over");
        return refuse(answer, -EAGAIN);
    }
    if (use == SEAT_LIVE && !sitting)
        seat_say_taken(arena, (uint32_t)rank, why);
    else if (other)
        text_add(why, "rank %d is joining already (pid %d)", rank, other->pid);
    else
        return 0;
    refused_second(arena, rank, pid);
    return refuse(answer, -EEXIST);
}

/* 0, or why the guest is refused, with a sentence for it in *answer. */
static int judge(const struct host *h, const struct meet_hello *hello, int got, int pid,
                 struct meet_answer *answer)
{
    struct text why = TEXT_IN(answer->text);
    const struct arena *arena = h->m->arena;
    if (got != (int)sizeof *hello || hello->magic != MEET_MAGIC || hello->bytes != sizeof *hello) {
        text_add(&why,
                 "the host, tutti %s, does not understand this greeting: another version of tutti?",
                 arena_version());
        refused_note(arena, -1, -EPROTO, "somebody (pid %d), who greets as no tutti %s does", pid,
                     arena_version());
        return refuse(answer, -EPROTO);
    }
    if (hello->layout_hash != layout_hash()
        || strncmp(hello->version, arena_version(), sizeof hello->version) != 0) {
        text_add(&why,
                 "two builds of tutti in one job: the host has %s (layout %016llx), rank %d has "
                 "%.*s (layout %016llx)",
                 arena_version(), (unsigned long long)layout_hash(), hello->rank,
                 (int)sizeof hello->version, hello->version,
                 (unsigned long long)hello->layout_hash);
        text_add(&why, "; the host has it from ");
        own_file(&why);
        refused_note(arena, hello->rank, -EPROTO,
                     "rank %d (pid %d), which has another build of tutti, %.*s", hello->rank, pid,
                     (int)sizeof hello->version, hello->version);
        return refuse(answer, -EPROTO);
    }
    if (hello->size != (int)arena->header->size) {
        text_add(&why, "this job has %u ranks, you said %d", arena->header->size, hello->size);
        refused_size(arena, hello->rank, pid, hello->size);
        return refuse(answer, -EPROTO);
    }
    if (hello->rank < 0 || hello->rank >= hello->size) {
        text_add(&why, "rank %d does not exist in a job of %d", hello->rank, hello->size);
        refused_note(arena, -1, -EINVAL, "rank %d (pid %d), which does not exist", hello->rank,
                     pid);
        return refuse(answer, -EINVAL);
    }
    if (h->end == -EOWNERDEAD) {
        assemble_explain(&h->m->gather, h->end, &why);
        return refuse(answer, h->end);
    }
    return judge_seat(h, hello->rank, pid, answer, &why);
}

static void greet(struct host *h, struct guest *guest)
{
    struct meet_hello hello = { 0 };
    struct meet_answer answer = { .magic = MEET_MAGIC, .host_rank = h->m->request->rank };
    int none;
    int got = handover_recv(guest->fd, &hello, sizeof hello, &none, 0);
    if (got == -EAGAIN)
        return;
    if (none >= 0)
        close(none);
    if (got < 0 && got != -EMSGSIZE) {
        guest->gone = true;
        return;
    }
    int status = judge(h, &hello, got, (int)guest->pid, &answer);
    if (handover_send(guest->fd, &answer, sizeof answer, status == 0 ? h->m->arena->fd : -1, 0) < 0
        || status)
        guest->gone = true;
    else {
        guest->rank = hello.rank;
        guest->pid = hello.pid;
    }
}

static void accept_guests(struct host *h)
{
    struct handover_peer peer;
    while (h->guests < h->room) {
        int fd = handover_accept(h->listener);
        if (fd < 0) {
            h->deaf = fd != -EAGAIN;
            h->shut_out = h->deaf ? fd : h->shut_out;
            return;
        }
        h->shut_out = 0;
        int error = handover_peer(fd, &peer);
        if (error < 0 || peer.uid != geteuid()) {
            if (error == 0)
                refused_note(h->m->arena, -1, -EPERM, "user %u (pid %d), who is not user %u",
                             (unsigned)peer.uid, (int)peer.pid, (unsigned)geteuid());
            close(fd);
            continue;
        }
        h->guest[h->guests++] = (struct guest){ fd, -1, peer.pid, false, clock_ns() };
        greet(h, &h->guest[h->guests - 1]);          /* most have said hello by now */
    }
}

/* The guest's connection has ended: a death if its rank had taken the seat, else nothing. */
static int see_off(struct host *h, const struct guest *guest)
{
    if (guest->rank < 0)
        return ASSEMBLE_GOING;
    uint32_t state = load_acquire32(&h->m->arena->seats[guest->rank].state);    /* E11 acquire */
    return state == SEAT_EMPTY ? ASSEMBLE_GOING
                               : assemble_fail(&h->m->gather, (uint32_t)guest->rank);
}

static int sweep(struct host *h)
{
    int end = ASSEMBLE_GOING, kept = 0;
    for (int i = 0; i < h->guests; i++) {
        struct guest *guest = &h->guest[i];
        if (guest->rank < 0 && clock_ns() - guest->since_ns > SILENCE_NS)
            guest->gone = true;
        if (guest->gone) {
            close(guest->fd);
            int seen = see_off(h, guest);
            end = end == ASSEMBLE_GOING ? seen : end;
        } else
            h->guest[kept++] = *guest;
    }
    h->guests = kept;
    return end;
}

static int poll_guests(struct host *h)
{
    int slice_ms = (int)((assemble_slice(&h->m->gather) + 999999) / 1000000), n = h->guests;
    for (int i = 0; i < n; i++)
        h->poll[i] = (struct pollfd){ h->guest[i].fd, POLLIN, 0 };
    bool listening = n < h->room && !h->deaf;
    h->deaf = false;
    if (listening)
        h->poll[n] = (struct pollfd){ h->listener, POLLIN, 0 };
    if (poll(h->poll, (nfds_t)(n + listening), slice_ms) <= 0)
        return ASSEMBLE_GOING;
    /* closed connections first: a rank that comes again must find its seat free */
    for (int i = 0; i < n; i++)
        if (h->poll[i].revents && h->guest[i].rank >= 0)
            swallow(&h->guest[i]);
    int end = sweep(h);
    if (end != ASSEMBLE_GOING)
        return end;
    for (int i = 0; i < h->guests; i++)
        if (h->guest[i].rank < 0)
            greet(h, &h->guest[i]);
    if (listening && h->poll[n].revents)
        accept_guests(h);
    return ASSEMBLE_GOING;
}

/* True: half of the time is over. A missing rank may be waiting elsewhere; at the deadline it would
 * be too late to look, as it gives up then, too. */
static bool is_late(const struct assembly *g)
{
    return g->end_ns != UINT64_MAX && clock_ns() + (uint64_t)g->timeout_ms * 500000 >= g->end_ns;
}

static int serve(struct host *h)
{
    for (bool looked = false;;) {
        int end = assemble_look(&h->m->gather);
        if (end == ASSEMBLE_GOING && !looked && is_late(&h->m->gather)) {
            meet_look_elsewhere(h->m);
            looked = true;
        }
        if (end == ASSEMBLE_GOING)
            end = poll_guests(h);
        if (end != ASSEMBLE_GOING)
            return end;
    }
}

/* Tells all guests how the meeting ended: after a death the reason, after a deadline to look again,
   else that their seat is taken. After a deadline also guests without a hello, and the listener
   closes: this process may end at once, and they would take it for dead. */
static void say_end(struct host *h, int end)
{
    struct meet_answer again = {
        .magic = MEET_MAGIC, .status = -EAGAIN, .host_rank = h->m->request->rank,
        .text = "this meeting is over"
    };
    bool given_up = end == -EAGAIN || end == -ETIMEDOUT;
    h->end = end;
    if (given_up)
        handover_deafen(h->listener, h->name);
    accept_guests(h);
    for (int i = 0; i < h->guests; i++) {
        struct guest *guest = &h->guest[i];
        if (guest->rank < 0 && !guest->gone)
            greet(h, guest);
        if (guest->rank < 0 && !guest->gone && given_up)
            handover_send(guest->fd, &again, sizeof again, -1, 0);
    }
    if (given_up) {
        handover_close(h->listener, NULL);
        h->listener = -1;
    }
}

/* True: another rank of ours is host at another candidate, so this one gives way. Two may bind at
 * the same time if a stranger's name comes or goes meanwhile. The lower index stays, unless the
 * higher one already serves. */
static bool is_second(struct meeting *m, int at)
{
    for (int i = 0; i < m->candidates; i++) {
        int fd = i == at ? -1 : meet_try(m, m->name[i]);
        if (fd < 0)
            continue;
        struct pollfd p = { fd, POLLIN, 0 };
        if (i > at)
            poll(&p, 1, 100);               /* it looks, too, and closes its end when it sees us */
        close(fd);
        if (i < at || !(p.revents & POLLHUP))
            return true;
    }
    return false;
}

static int open_arena(struct meeting *m)
{
    char rules[RULES_TEXT];
    struct arena_plan plan = m->request->plan;
    if (m->request->lay) {
        m->request->lay(plan.rules, rules);
        plan.rules = rules;
    }
    int error = arena_create(m->arena, &plan, m->why);
    if (error)
        return error;
    m->gather.arena = m->arena;
    error = seat_take(m->arena, (uint32_t)m->request->rank, &m->card, m->why);
    if (error) {
        arena_detach(m->arena);
        return error;
    }
    assemble_seated(&m->gather);
    return 0;
}

/* *listener: -1 afterwards, where it has been closed. */
static int host_world(struct meeting *m, int *listener, const char *name)
{
    struct host h = {
        .m = m, .listener = *listener, .name = name, .room = 2 * m->request->size + 64
    };
    h.guest = calloc((size_t)h.room, sizeof *h.guest);
    h.poll = calloc((size_t)h.room + 1, sizeof *h.poll);
    int end = -ENOMEM;
    if (h.guest && h.poll) {
        end = meet_end(m, serve(&h));
        say_end(&h, end);
        *listener = h.listener;
    } else
        text_add(m->why, "no memory for the meeting");
    if (end != ASSEMBLE_DONE)
        meet_drop(m, end);
    if (end == -ETIMEDOUT && h.shut_out)
        text_add(m->why, "; somebody knocked here, where they meet, and could not be let in: %s%s",
                 error_text(h.shut_out), meet_remedy(h.shut_out));
    for (int i = 0; i < h.guests; i++)
        close(h.guest[i].fd);
    free(h.guest);
    free(h.poll);
    return end == ASSEMBLE_DONE ? 0 : end;
}

int meet_host(struct meeting *m, int listener, int at, int *host_fd)
{
    int error = is_second(m, at) ? -EAGAIN : open_arena(m);
    if (error == 0)
        error = host_world(m, &listener, m->name[at]);
    /* bound before the listener closes: a late rank always finds one of the two */
    if (error == 0 && m->marker[0]) {
        int marker = handover_listen(m->marker);
        *host_fd = marker >= 0 ? marker : -1;
    }
    handover_close(listener, listener >= 0 ? m->name[at] : NULL);
    return error;
}
