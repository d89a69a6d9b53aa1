/* The kernel marks the alive word of a rank whose thread ends, and wakes one sleeper: that takes
 * 0.1 ms. Other deaths are found by death_probe at the end of a slice. A word that is neither held
 * nor marked was released in good order. The seat then says whether the rank has left, or its
 * process runs without the thread that joined (ADRIFT), which is no death. */
#include "watch/death.h"

#include "base/probe.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { HANDLES_MAX = 128 };

static enum gone death_judge(struct seat *seat, uint32_t word)
{
    if (process_mark_held(word))
        return GONE_NO;
    uint32_t state = load_acquire32(&seat->state);                   /* E11 acquire */
    if (state == SEAT_LEFT)
        return GONE_LEFT;
    return process_mark_died(word) ? GONE_DIED : GONE_NO;
}

enum gone death_of(struct seat *seat)
{
    return death_judge(seat, load_acquire32(process_mark_word(&seat->mark)));       /* E5 acquire */
}

void death_look(struct watch *w)
{
    for (uint32_t p = 0; p < w->size; p++) {
        w->seen[p] = load_acquire32(process_mark_word(&w->seats[p]->mark));         /* E5 acquire */
        /* relaxed: sticky, and all who write it say the same */
        uint8_t lost = load_relaxed8(&w->lost[p]);
        uint8_t gone = lost ? lost : (uint8_t)death_judge(w->seats[p], w->seen[p]);
        if (gone == GONE_DIED && w->gone[p] != GONE_DIED)
            PROBE3(death, w->name, watch_world_rank(w, p), w->seats[p]->id.pid);
        w->gone[p] = gone;
    }
}

/* The handle is readable once the process is gone, whichever process reaps it. */
static bool death_handle_ready(int handle)
{
    struct pollfd poll_fd = { .fd = handle, .events = POLLIN };
    return poll(&poll_fd, 1, 0) > 0;
}

/* A process without its joining thread counts as alive while it has a thread: its pidfd becomes
 * readable when the last one is gone. */
static int death_adrift_alive(const struct seat *seat)
{
    int fd = process_pidfd(&seat->id);
    if (fd < 0)
        return fd == -ESRCH ? 0 : fd;
    bool ready = death_handle_ready(fd);
    close(fd);
    return !ready;
}

static struct kept *handle_at(uint64_t word) { return (struct kept *)(uintptr_t)word; }

/* A pidfd makes a check cheap (6 us instead of 50). It is opened at the first check and kept for
   the world's life; the program may have closed it. Not in very large worlds: the program needs
   descriptors, too. */
static int death_handle(struct watch *w, uint32_t p)
{
    if (w->arena->header->size > HANDLES_MAX)
        return -1;
    shared64 *handle = &w->handles[watch_world_rank(w, p)];
    uint64_t have = load_acquire64(handle);                          /* E85 acquire */
    if (have)
        return kept_fd(handle_at(have));
    int fd = process_pidfd(&w->seats[p]->id);
    if (fd < 0)
        return fd;
    struct kept *kept = malloc(sizeof *kept);
    if (kept)
        *kept = kept_of(fd);
    if (!kept || !swap_if64(handle, &have, (uint64_t)(uintptr_t)kept)) {        /* E85 release */
        free(kept);
        close(fd);                                   /* no memory, or another thread was first */
        return have ? kept_fd(handle_at(have)) : -ENOMEM;
    }
    return fd;
}

void death_handle_close(shared64 *handle)
{
    struct kept *kept = handle_at(load_acquire64(handle));          /* E85 acquire */
    store_release64(handle, 0);                      /* E85 release */
    if (kept)
        kept_close(kept);
    free(kept);
}

/* A quick question goes to descriptors that are open, and nobody asks whose they are: one that has
 * become another file is found by the next thorough question. -1: not open. */
static int death_handle_open(const struct watch *w, uint32_t p)
{
    if (w->arena->header->size > HANDLES_MAX)
        return -1;
    uint64_t have = load_acquire64(&w->handles[watch_world_rank(w, p)]);        /* E85 acquire */
    return have ? handle_at(have)->fd : -1;
}

/* 1: alive, as far as a quick question can tell. 0: gone without a mark. Negative: not known. */
static int death_ask(struct watch *w, uint32_t p, bool thorough)
{
    struct seat *seat = w->seats[p];
    if (load_acquire32(&seat->state) == SEAT_ADRIFT)                 /* E11 acquire */
        return death_adrift_alive(seat);
    if (!thorough) {
        int open = death_handle_open(w, p);
        if (open < 0 || !death_handle_ready(open))
            return 1;
    }
    int handle = death_handle(w, p);
    if (handle >= 0 && !thorough)
        return !death_handle_ready(handle);
    int alive = handle == -ESRCH ? 0 : process_alive(&seat->id, handle);
    /* It may have gone adrift in good order between the two looks. */
    if (alive == 0 && load_acquire32(&seat->state) == SEAT_ADRIFT)   /* E11 acquire */
        return death_adrift_alive(seat);
    return alive;
}

/* The kernel's mark is set in its place, so that all ranks, sleepers and comms learn of the death,
 * and what the dead one held is given back. */
static void death_note(struct watch *w, uint32_t p)
{
    struct process_mark *mark = &w->seats[p]->mark;
    if (death_of(w->seats[p]) == GONE_NO) {
        process_mark_set(mark);
        w->ways->wake(w->ways->arg, process_mark_word(mark), INT32_MAX);
    }
    /* relaxed: sticky, and all say the same */
    store_relaxed8(&w->lost[p], death_of(w->seats[p]) == GONE_LEFT ? GONE_LEFT : GONE_DIED);
}

bool death_without_mark(struct watch *w, uint32_t p, bool thorough)
{
    if (death_ask(w, p, thorough) != 0)
        return false;
    death_note(w, p);
    return true;
}

bool death_seek(struct watch *w)
{
    bool gone = false;
    for (uint32_t p = 0; p < w->size; p++)
        if (p != w->me)
            gone |= death_of(w->seats[p]) != GONE_NO || death_without_mark(w, p, true);
    return gone;
}

int death_probe_one(struct watch *w, uint32_t p, bool thorough)
{
    /* relaxed: sticky, and all who write it say the same */
    if (p == w->me || load_relaxed8(&w->lost[p]) || w->gone[p] != GONE_NO)
        return 0;
    int alive = death_ask(w, p, thorough);
    w->blind |= alive < 0;
    if (alive != 0)
        return 0;
    death_note(w, p);
    return 1;
}

/* One quick question for all. True: somebody may be gone. */
static bool death_any(const struct watch *w)
{
    struct pollfd handles[HANDLES_MAX];
    nfds_t n = 0;
    for (uint32_t p = 0; p < w->size; p++) {
        int open = p == w->me ? -1 : death_handle_open(w, p);
        if (load_acquire32(&w->seats[p]->state) == SEAT_ADRIFT)      /* E11 acquire */
            return true;
        if (open >= 0)
            handles[n++] = (struct pollfd){ .fd = open, .events = POLLIN };
    }
    return n && poll(handles, n, 0) > 0;
}

int death_probe(struct watch *w, bool thorough)
{
    int found = 0;
    w->blind = false;
    if (!thorough && !death_any(w))
        return 0;
    for (uint32_t p = 0; p < w->size; p++)
        found += death_probe_one(w, p, thorough);
    return found;
}
