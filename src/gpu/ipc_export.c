/* What is lent is found by CUDA's number of the buffer. So a handle is asked for once, and other
 * memory at the same address is not mistaken for it. If a peer still has a buffer open, its loan
 * cannot begin anew: the buffer is not lent for that moment, and its operation takes another road.
 * The loans are in the span from the first operation on: 32 KiB for the world. A search goes
 * through all of the table: 128 rows, for operations of megabytes. A rank that waits for borrowers
 * also returns what it has borrowed itself: else two ranks could wait for each other in vain. */
#include "gpu/ipc_export.h"

#include "base/clock.h"
#include "base/error.h"
#include "gpu/descriptors.h"
#include "gpu/ipc_import.h"
#include "gpu/lent_handle.h"
#include "gpu/loan.h"
#include "gpu/segment.h"
#include "os/futex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLICE_NS = 5000000 };

struct lending {
    uint64_t buffer, base, bytes, generation, used;
    bool taken;
    struct lent_handle handle;
};

/* Memory that may stay open at peers. gone: let go while a peer had it open. */
struct stretch { uint64_t at, bytes, buffer; bool ours, gone; struct stretch *next; };

struct ipc_export {
    pthread_mutex_t lock;
    struct world *world;
    struct ipc_import *handles;
    struct descriptors *descriptors;
    struct loan *loans;               /* [LOANS], in this rank's span */
    struct lending lendings[LOANS];
    uint64_t uses;
    struct stretch *stretches;
    char note[300];
};

/* A rank that waits, in any call, closes what peers have called back, where that waits for nothing.
 * So they need not wait for it. */
static void ipc_export_meanwhile(void *handles) { ipc_import_sweep_at_once(handles); }

static struct ipc_export *ipc_export_new(struct world *world, struct text *why)
{
    struct ipc_export *s = calloc(1, sizeof *s);
    int error = -ENOMEM;
    if (s)
        s->loans = span_take(world->span, LOANS * sizeof *s->loans, &error);
    if (s && s->loans)
        s->descriptors = descriptors_new(world->arena.header->birth, (uint32_t)world->rank);
    if (s && s->descriptors)
        s->handles = ipc_import_new(&world->arena, (uint32_t)world->rank, s->descriptors);
    if (!s || !s->loans || !s->handles) {
        if (s && s->loans)
            span_give(world->span, s->loans);
        if (s)
            descriptors_free(s->descriptors);
        free(s);
        text_add(why,
                 error == -ENOSPC ? "the span has no room for loans; raise TUTTI_SPAN_BYTES"
                                  : "no memory for loans");
        return NULL;
    }
    memset((void *)s->loans, 0, LOANS * sizeof *s->loans);
    s->world = world;
    pthread_mutex_init(&s->lock, NULL);
    world->meanwhile.run = ipc_export_meanwhile;
    world->meanwhile.arg = s->handles;
    store_release32(&world->meanwhile.on, 1);
    return s;
}

struct ipc_export *share_of(struct world *world, struct text *why)
{
    pthread_mutex_lock(&world->lock);
    if (!world->share)
        world->share = ipc_export_new(world, why);
    struct ipc_export *s = world->share;
    pthread_mutex_unlock(&world->lock);
    return s;
}

struct ipc_export *ipc_export_if(struct world *world)
{
    pthread_mutex_lock(&world->lock);
    struct ipc_export *s = world->share;
    pthread_mutex_unlock(&world->lock);
    return s;
}

struct ipc_import *ipc_export_handles(struct ipc_export *share) { return share->handles; }

void ipc_export_begin(struct ipc_export *share)
{
    ipc_import_sweep_at_once(share->handles);
    descriptors_gather(share->descriptors);
}

/* ---- loans: under the lock, except the waits ---- */

static struct loan *loan_of(const struct ipc_export *s, const struct lending *l)
{
    return &s->loans[l - s->lendings];
}

static bool loan_returned(const struct ipc_export *s, struct loan *loan)
{
    return loan_is_back(loan, s->world->arena.seats, (uint32_t)s->world->size);
}

typedef void sweep_of(struct ipc_import *handles);

/* Sleeps until the loan, which was called back, is returned, or the time is over. In slices, to see
 * deaths. Not under the lock, which those who return the loan may need. */
static bool loan_wait(struct ipc_export *s, struct loan *loan, sweep_of *sweep, uint64_t deadline)
{
    for (;;) {
        uint32_t seen = load_acquire32(&loan->returned);             /* E73 acquire */
        if (loan_returned(s, loan))
            return true;
        uint64_t now = clock_ns();
        if (now >= deadline)
            return false;
        sweep(s->handles);
        futex_wait(&loan->returned, seen, deadline - now < SLICE_NS ? deadline - now : SLICE_NS);
    }
}

/* ---- lending ---- */

static struct lending *lending_find(struct ipc_export *s, uint64_t buffer)
{
    for (int i = 0; i < LOANS; i++)
        if (s->lendings[i].taken && s->lendings[i].buffer == buffer)
            return &s->lendings[i];
    return NULL;
}

static void lending_drop(struct lending *l)
{
    if (l->taken)
        lent_handle_end(&l->handle);
    l->taken = false;
}

/* A free row, or the least recently used one that is open nowhere. What a peer has open is not
 * called back for this: until the peer closes it, nobody could open it. */
static struct lending *lending_room(struct ipc_export *s)
{
    bool tried[LOANS] = { false };
    for (;;) {
        struct lending *oldest = NULL;
        for (int i = 0; i < LOANS; i++) {
            struct lending *l = &s->lendings[i];
            if (!l->taken)
                return l;
            if (!tried[i] && (!oldest || l->used < oldest->used))
                oldest = l;
        }
        if (!oldest)
            return NULL;
        tried[oldest - s->lendings] = true;
        if (!loan_returned(s, loan_of(s, oldest)))
            continue;
        loan_call_back(loan_of(s, oldest), oldest->generation);
        if (!loan_returned(s, loan_of(s, oldest)))
            continue;                                /* a peer has just opened it */
        lending_drop(oldest);
        return oldest;
    }
}

/* Other buffers that were at these addresses have been freed. Calls them back: a peer that has one
 * open closes it at its next operation. */
static void lending_bury(struct ipc_export *s, const struct driver_pointer *p)
{
    for (int i = 0; i < LOANS; i++) {
        struct lending *l = &s->lendings[i];
        if (!l->taken || l->buffer == p->buffer || l->base >= p->base + p->bytes
            || p->base >= l->base + l->bytes)
            continue;
        loan_call_back(loan_of(s, l), l->generation);
        if (loan_returned(s, &s->loans[i]))
            lending_drop(l);
    }
}

static struct stretch *stretch_around(const struct ipc_export *s, uint64_t buffer, uint64_t at,
                                      size_t length)
{
    for (struct stretch *t = s->stretches; t; t = t->next)
        if (!t->gone && t->buffer == buffer && at >= t->at && at - t->at <= t->bytes
            && length <= t->bytes - (at - t->at))
            return t;
    return NULL;
}

static int lending_make(struct ipc_export *s, const struct cuda_api *call,
                        const struct driver_pointer *p, struct lending **made, struct text *why)
{
    lending_bury(s, p);
    struct lending *l = lending_room(s);
    if (!l) {
        text_add(why, "%d buffers are lent already, and peers have all of them open", LOANS);
        return -ENOSPC;
    }
    *l = (struct lending){
        .buffer = p->buffer, .base = p->base, .bytes = p->bytes, .generation = l->generation
    };
    int r = lent_handle_of(&l->handle, call, p, why);
    if (r < 0)
        return r;
    l->taken = true;
    loan_begin(loan_of(s, l), ++l->generation);
    *made = l;
    return 0;
}

static int lend(struct ipc_export *s, const struct cuda_api *call, const struct driver_pointer *p,
                size_t length, struct lent *lent, struct text *why)
{
    struct lending *l = lending_find(s, p->buffer);
    struct driver_pointer whole = *p;
    int r = l ? 0 : segment_around(call, &whole, why);
    if (r == 0 && !l)
        r = lending_make(s, call, &whole, &l, why);
    if (r == 0 && length > l->base + l->bytes - p->address) {
        text_add(why, "it is several pieces of cuMemCreate, and only one can be lent");
        r = -ENOTSUP;
    }
    if (r < 0)
        return r;
    struct loan *loan = &s->loans[l - s->lendings];
    if (loan_is_called_back(loan_of(s, l))) {
        if (!loan_returned(s, loan)) {
            text_add(why, "its loan was called back, and a peer has not closed it yet");
            return -EBUSY;
        }
        loan_begin(loan_of(s, l), ++l->generation);
    }
    l->used = ++s->uses;
    if (l->handle.how == LENT_NOT)
        text_add(why, "%s", l->handle.words);
    *lent = (struct lent){
        .buffer = l->buffer, .base = l->base, .bytes = l->bytes, .offset = p->address - l->base,
        .length = length, .loan = (uint64_t)((char *)loan - s->world->arena.base),
        .generation = l->generation, .how = l->handle.how,
        .keep = stretch_around(s, p->buffer, p->address, length) ? KEEP_OPEN : KEEP_NOT
    };
    memcpy(lent->handle, l->handle.legacy, sizeof lent->handle);
    memcpy(lent->device, l->handle.device, sizeof lent->device);
    return 0;
}

int ipc_export_lend(struct ipc_export *share, const struct cuda_api *call,
                    const struct driver_pointer *pointer, size_t length, struct lent *lent,
                    struct text *why)
{
    pthread_mutex_lock(&share->lock);
    int r = lend(share, call, pointer, length, lent, why);
    pthread_mutex_unlock(&share->lock);
    return r;
}

int ipc_export_hand_out(struct ipc_export *share, const struct lent *lent, const struct watch *w,
                        struct text *why)
{
    pthread_mutex_lock(&share->lock);
    struct lending *l = lending_find(share, lent->buffer);
    int r = l && l->handle.how == LENT_DESCRIPTOR ? 0 : -ENOENT;
    for (uint32_t p = 0; p < w->size && r == 0; p++) {
        uint32_t rank = watch_world_rank(w, p);
        /* who has it open needs none, and one that is not used would keep the memory */
        if (arena_one_process(&share->world->arena, rank, (uint32_t)share->world->rank)
            || loan_is_held(loan_of(share, l), rank))
            continue;
        int fd = kept_fd(&l->handle.file);
        r = fd < 0 ? fd : descriptors_put(share->descriptors, rank, lent->buffer, fd);
        if (r < 0)
            text_add(why, "the descriptor of its memory could not be handed to rank %u: %s", p,
                     error_text(r));
    }
    pthread_mutex_unlock(&share->lock);
    return r;
}

bool ipc_export_take_back(struct ipc_export *share, const struct lent *lent, uint64_t timeout_ns)
{
    uint64_t deadline = clock_ns() + timeout_ns;
    pthread_mutex_lock(&share->lock);
    struct lending *l = lending_find(share, lent->buffer);
    struct loan *loan = l && l->generation == lent->generation && !lent->keep
        ? &share->loans[l - share->lendings]
        : NULL;
    if (loan)
        loan_call_back(loan_of(share, l), l->generation);
    pthread_mutex_unlock(&share->lock);
    return !loan || loan_wait(share, loan, ipc_import_sweep_at_once, deadline);
}

/* ---- what is kept ---- */

int ipc_export_keep(struct ipc_export *share, uint64_t at, size_t bytes, uint64_t buffer, bool ours)
{
    struct stretch *t = malloc(sizeof *t);
    if (!t)
        return -ENOMEM;
    *t = (struct stretch){ at, bytes, buffer, ours, false, NULL };
    pthread_mutex_lock(&share->lock);
    for (struct stretch *o = share->stretches, *next; o; o = next) {
        next = o->next;
        if (o->at >= at + bytes || at >= o->at + o->bytes)
            continue;
        if (o->buffer == buffer) {
            pthread_mutex_unlock(&share->lock);
            free(t);
            return -EINVAL;
        }
        o->buffer = 0;              /* its memory has been freed, so it is not kept */
    }
    t->next = share->stretches;
    share->stretches = t;
    pthread_mutex_unlock(&share->lock);
    return 0;
}

static struct stretch **stretch_at(struct ipc_export *s, uint64_t at, bool ours)
{
    for (struct stretch **t = &s->stretches; *t; t = &(*t)->next)
        if ((*t)->at == at && (*t)->ours == ours && !(*t)->gone)
            return t;
    return NULL;
}

/* Under the lock: calls the buffer's loan back. True: the buffer can be freed now. */
static bool stretch_returned(struct ipc_export *s, uint64_t buffer, struct loan **loan)
{
    struct lending *l = lending_find(s, buffer);
    *loan = NULL;
    if (!l)
        return true;
    *loan = &s->loans[l - s->lendings];
    loan_call_back(loan_of(s, l), l->generation);
    if (!loan_returned(s, *loan))
        return false;
    lending_drop(l);
    return true;
}

int ipc_export_let_go(struct ipc_export *share, uint64_t at, bool ours, uint64_t timeout_ns,
                      struct text *why)
{
    uint64_t deadline = clock_ns() + timeout_ns;
    struct loan *loan;
    pthread_mutex_lock(&share->lock);
    struct stretch **t = stretch_at(share, at, ours);
    if (!t) {
        pthread_mutex_unlock(&share->lock);
        text_add(why, "0x%llx is not the beginning of such memory", (unsigned long long)at);
        return -EINVAL;
    }
    uint64_t buffer = (*t)->buffer;
    bool free_now = stretch_returned(share, buffer, &loan);
    pthread_mutex_unlock(&share->lock);
    if (!free_now)
        free_now = loan_wait(share, loan, ipc_import_sweep, deadline);
    pthread_mutex_lock(&share->lock);
    t = stretch_at(share, at, ours);        /* another thread may have done the same meanwhile */
    free_now = free_now && stretch_returned(share, buffer, &loan);
    int r = !t ? -EINVAL : free_now ? 0 : -EBUSY;
    if (r == 0) {
        struct stretch *gone = *t;
        *t = gone->next;
        free(gone);
    } else if (t && ours)
        (*t)->gone = true;
    pthread_mutex_unlock(&share->lock);
    if (r == -EBUSY)
        text_add(why,
                 "another rank still has it open, and closes it when it calls tutti_cuda_free "
                 "(NULL will do)");
    return r;
}

bool ipc_export_stays(struct ipc_export *share, const struct driver_pointer *pointer, size_t length)
{
    pthread_mutex_lock(&share->lock);
    bool stays = stretch_around(share, pointer->buffer, pointer->address, length) != NULL;
    pthread_mutex_unlock(&share->lock);
    return stays;
}

bool ipc_export_is_kept(struct ipc_export *share, uint64_t at, bool ours)
{
    pthread_mutex_lock(&share->lock);
    bool kept = stretch_at(share, at, ours) != NULL;
    pthread_mutex_unlock(&share->lock);
    return kept;
}

static uint64_t next_of(struct ipc_export *s, bool all)
{
    uint64_t at = 0;
    struct loan *loan;
    pthread_mutex_lock(&s->lock);
    for (struct stretch **t = &s->stretches; *t && !at; t = at ? t : &(*t)->next) {
        if (!(*t)->ours || (!all && !(*t)->gone) || !stretch_returned(s, (*t)->buffer, &loan))
            continue;
        struct stretch *gone = *t;
        at = gone->at;
        *t = gone->next;
        free(gone);
        break;
    }
    pthread_mutex_unlock(&s->lock);
    return at;
}

bool ipc_export_await_gone(struct ipc_export *share, uint64_t timeout_ns)
{
    uint64_t deadline = clock_ns() + timeout_ns;
    struct loan *loan = NULL;
    bool freed = false;
    pthread_mutex_lock(&share->lock);
    for (struct stretch *t = share->stretches; t && !loan && !freed; t = t->next)
        freed = t->ours && t->gone && stretch_returned(share, t->buffer, &loan);
    pthread_mutex_unlock(&share->lock);
    return freed || (loan && loan_wait(share, loan, ipc_import_sweep, deadline));
}

uint64_t ipc_export_next_returned(struct ipc_export *share) { return next_of(share, false); }
uint64_t ipc_export_next_ours(struct ipc_export *share) { return next_of(share, true); }

void ipc_export_note(struct ipc_export *share, const char *words)
{
    pthread_mutex_lock(&share->lock);
    snprintf(share->note, sizeof share->note, "%s", words);
    pthread_mutex_unlock(&share->lock);
}

void ipc_export_noted(struct ipc_export *share, char *words, size_t room)
{
    pthread_mutex_lock(&share->lock);
    snprintf(words, room, "%s", share->note);
    pthread_mutex_unlock(&share->lock);
}

/* ---- the end ---- */

void ipc_export_recall_all(struct ipc_export *share, uint64_t timeout_ns)
{
    uint64_t deadline = clock_ns() + timeout_ns;
    ipc_import_close_idle(share->handles, true);
    pthread_mutex_lock(&share->lock);
    for (int i = 0; i < LOANS; i++)
        if (share->lendings[i].taken)
            loan_call_back(loan_of(share, &share->lendings[i]), share->lendings[i].generation);
    pthread_mutex_unlock(&share->lock);
    for (int i = 0; i < LOANS; i++)
        if (share->lendings[i].taken
            && loan_wait(share, &share->loans[i], ipc_import_sweep, deadline))
            lending_drop(&share->lendings[i]);
}

void ipc_export_close(struct world *world)
{
    struct ipc_export *s = world->share;
    if (!s)
        return;
    store_release32(&world->meanwhile.on, 0);
    ipc_import_free(s->handles);
    descriptors_free(s->descriptors);
    for (int i = 0; i < LOANS; i++)
        lending_drop(&s->lendings[i]);
    for (struct stretch *t = s->stretches, *next; t; t = next) {
        next = t->next;
        free(t);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
    world->share = NULL;
}
