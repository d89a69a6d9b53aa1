/* The openings are a list, because they are few and each stands for megabytes. The lock is held
 * while the driver opens and closes, so two threads never open the same memory at once. To close a
 * handle of cuIpcOpenMemHandle, the driver waits for all that the process has under way on the
 * device, the program's kernels among it. If one of those waits for what this rank does after its
 * operation, that wait never ends. So an operation closes such a handle only when it opens other
 * memory. cuMemUnmap waits for nothing.
 *
 * An old opening can be in the way of a new one: its owner has freed that memory, and something new
 * is at its addresses. Such openings are closed before. If the driver still finds one (208),
 * everything of that owner that is not taken is closed, and the driver is asked once more. The same
 * is done if the context of another of our devices has memory of that owner open (201).
 *
 * The numbers that an owner publishes are checked: the loan must be in its span, the call's part in
 * the buffer, and the buffer in what the driver has opened. Memory is used by its own address only
 * if the driver finds that very buffer there. */
#include "gpu/ipc_import.h"

#include "base/error.h"
#include "gpu/calm.h"
#include "gpu/descriptors.h"
#include "gpu/loan.h"
#include "gpu/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REFUSED_MOST = 32, REFUSED_TEXT = 200 };
enum opening { OPENING_OWN, OPENING_LEGACY, OPENING_DESCRIPTOR };

struct open {
    struct open *next;
    uint32_t owner;
    int taken;
    uint64_t buffer, base, bytes, generation, used;
    struct loan *loan;
    enum opening how;
    enum lent_keep keep;
    const struct cuda_api *call;
    CUcontext context;
    /* its primary context is held, so nothing is open in a context that is gone */
    CUdevice device;
    CUdeviceptr at;
};

/* way: the driver opens no memory in this manner, whichever buffer it is. */
struct refused_open { uint32_t owner; uint64_t buffer; bool way; char words[REFUSED_TEXT]; };

struct ipc_import {
    pthread_mutex_t lock;
    const struct arena *arena;
    struct descriptors *descriptors;
    uint32_t mine;
    uint64_t uses;
    struct open *open;
    struct refused_open refused[REFUSED_MOST];            /* the last ones, in a ring */
    uint32_t refusals;
};

struct ipc_import *ipc_import_new(const struct arena *arena, uint32_t mine,
                                  struct descriptors *descriptors)
{
    struct ipc_import *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    pthread_mutex_init(&h->lock, NULL);
    h->arena = arena;
    h->mine = mine;
    h->descriptors = descriptors;
    return h;
}

static struct loan *loan_of(const struct ipc_import *h, uint32_t owner, uint64_t at)
{
    const struct arena_header *header = h->arena->header;
    uint64_t from = header->spans_at + owner * header->span_bytes;
    if (at < from || at - from > header->span_bytes - sizeof(struct loan) || at % LINE)
        return NULL;
    return (struct loan *)(void *)(h->arena->base + at);
}

/* ---- what was refused ---- */

/* What stands for this buffer, or for all of its owner: two of them could not be opened in any
 * manner. */
static const struct refused_open *refused_find(const struct ipc_import *h, uint32_t owner,
                                               uint64_t buffer)
{
    const struct refused_open *way = NULL;
    for (uint32_t i = 0; i < h->refusals && i < REFUSED_MOST; i++) {
        const struct refused_open *n = &h->refused[i];
        if (n->owner == owner && (n->buffer == buffer || (way && n->way)))
            return n;
        way = n->owner == owner && n->way ? n : way;
    }
    return NULL;
}

/* True: another attempt would fail, too. False: memory is short at the moment, our context has
 * died, or only this message is wrong. */
static bool is_lasting(int r)
{
    return r != -ENOMEM && r != -EIO && r != DAMAGED && r != -EBUSY && r != -EAGAIN;
}

static void refuse(struct ipc_import *h, uint32_t owner, uint64_t buffer, bool way,
                   const char *words)
{
    struct refused_open *n = &h->refused[h->refusals++ % REFUSED_MOST];
    struct text t = TEXT_IN(n->words);
    *n = (struct refused_open){ .owner = owner, .buffer = buffer, .way = way };
    text_clear(&t);
    text_add(&t, "%s", words);
}

/* ---- opening and closing ---- */

/* The driver did not close it. Nobody here uses it any more, so the loan is returned all the same:
   else its owner would wait for ever. It is not opened again: each operation would leave one more
   open. */
static void close_failed(struct ipc_import *h, const struct open *o, CUresult error)
{
    char words[REFUSED_TEXT];
    struct text why = TEXT_IN(words);
    text_clear(&why);
    text_add(&why, "it could not be closed the last time: ");
    driver_failed(o->call, o->how == OPENING_LEGACY ? "cuIpcCloseMemHandle" : "cuMemUnmap", error,
                  &why);
    refuse(h, o->owner, o->buffer, false, words);
}

static void close_one(struct ipc_import *h, struct open **at)
{
    struct open *o = *at;
    CUresult error = 0;
    *at = o->next;
    /* a context that cannot be entered is gone, and nothing is open in it */
    if (o->how != OPENING_OWN && calm_enter_to_give(o->call, o->context)) {
        if (o->how == OPENING_LEGACY)
            error = o->call->cuIpcCloseMemHandle(o->at);
        else if (o->how == OPENING_DESCRIPTOR)
            error = segment_unmap(o->call, o->at, (size_t)o->bytes);
        calm_leave(o->call);
        if (error)
            close_failed(h, o, error);
    }
    o->call->cuDevicePrimaryCtxRelease_v2(o->device);
    loan_return(o->loan, h->mine);
    free(o);
}

typedef bool open_test(const struct open *o, const void *what);

static void close_those(struct ipc_import *h, open_test *test, const void *what)
{
    for (struct open **at = &h->open; *at;)
        if (!(*at)->taken && test(*at, what))
            close_one(h, at);
        else
            at = &(*at)->next;
}

static bool is_below(const struct open *o, const void *keep)
{
    return o->keep < *(const enum lent_keep *)keep;
}

static bool is_called_back(const struct open *o, const void *what)
{
    return !what && !loan_stands(o->loan, o->generation);
}

/* The same, and to close it waits for nothing. */
static bool is_called_back_at_once(const struct open *o, const void *what)
{
    return o->how != OPENING_LEGACY && is_called_back(o, what);
}

static bool is_of(const struct open *o, const void *owner)
{
    return o->owner == *(const uint32_t *)owner;
}

struct claimed { uint32_t owner; uint64_t buffer, base, bytes; };
static bool is_in_the_way(const struct open *o, const void *what)
{
    const struct claimed *c = what;
    return o->owner == c->owner && o->buffer != c->buffer && o->base < c->base + c->bytes
        && c->base < o->base + o->bytes;
}

static void close_surplus(struct ipc_import *h)
{
    for (;;) {
        struct open **oldest = NULL;
        int n = 0;
        for (struct open **at = &h->open; *at; at = &(*at)->next) {
            bool may = !(*at)->taken && (*at)->keep != KEEP_STAGING;
            n += may;
            if (may && (!oldest || (*at)->used < (*oldest)->used))
                oldest = at;
        }
        if (n <= HANDLES_KEPT)
            return;
        close_one(h, oldest);
    }
}

/* Uses the memory by its own address, if that is the same buffer. Our device's context is
 * current. */
static int open_own(const struct ipc_import_at *where, const struct lent *lent, CUdeviceptr *at,
                    struct text *why)
{
    struct driver_pointer p;
    int r = driver_pointer((const void *)(uintptr_t)lent->base, &p, why);
    if (r < 0)
        return r;
    if ((p.memory != DRIVER_DEVICE && p.memory != DRIVER_MANAGED) || p.buffer != lent->buffer
        || p.base != lent->base || p.bytes != lent->bytes) {
        text_add(why, "no such buffer is in this process");
        return DAMAGED;
    }
    *at = p.base;
    if (p.device == where->device || p.memory == DRIVER_MANAGED)
        return 0;
    if (!p.context) {
        text_add(why, "memory of cuMemCreate on another GPU of this process");
        return -ENOTSUP;
    }
    CUresult error = where->call->cuCtxEnablePeerAccess(p.context, 0);
    return !error || error == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
        ? 0
        : driver_failed(where->call, "cuCtxEnablePeerAccess", error, why);
}

static int open_legacy(struct ipc_import *h, const struct ipc_import_at *where, uint32_t owner,
                       const struct lent *lent, CUdeviceptr *at, struct text *why)
{
    CUipcMemHandle handle;
    memcpy(handle.reserved, lent->handle, sizeof handle.reserved);
    CUresult error = where->call->cuIpcOpenMemHandle_v2(at, handle,
                                                        CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (error == CUDA_ERROR_ALREADY_MAPPED || error == CUDA_ERROR_INVALID_CONTEXT) {
        close_those(h, is_of, &owner);
        error = where->call->cuIpcOpenMemHandle_v2(at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    }
    if (error)
        return driver_failed(where->call, "cuIpcOpenMemHandle", error, why);
    CUdeviceptr base = 0;
    size_t bytes = 0;
    error = where->call->cuMemGetAddressRange_v2(&base, &bytes, *at);
    if (!error && *at >= base && lent->bytes <= bytes - (*at - base))
        return 0;
    where->call->cuIpcCloseMemHandle(*at);
    if (error)
        return driver_failed(where->call, "cuMemGetAddressRange", error, why);
    text_add(why, "its owner says it is longer than it is");
    return DAMAGED;
}

static int open_descriptor(struct ipc_import *h, const struct ipc_import_at *where, uint32_t owner,
                           const struct lent *lent, CUdeviceptr *at, struct text *why)
{
    CUmemGenericAllocationHandle memory;
    descriptors_gather(h->descriptors);
    int fd = descriptors_take(h->descriptors, owner, lent->buffer);
    if (fd < 0) {
        text_add(why, "its descriptor has not come");
        return -EAGAIN;
    }
    CUresult error =
        where->call->cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)fd,
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(fd);
    if (error)
        return driver_failed(where->call, "cuMemImportFromShareableHandle", error, why);
    int r = segment_map(where->call, where->device, memory, (size_t)lent->bytes, at, why);
    where->call->cuMemRelease(memory);               /* what is mapped stays */
    return r;
}

static int open_it(struct ipc_import *h, const struct ipc_import_at *where, uint32_t owner,
                   const struct lent *lent, struct open *o, struct text *why)
{
    int r = -ENOTSUP;
    CUcontext held = NULL;
    CUresult error = where->call->cuDeviceGet(&o->device, where->device);
    if (!error)
        error = where->call->cuDevicePrimaryCtxRetain(&held, o->device);
    if (error)
        return driver_failed(where->call, "cuDevicePrimaryCtxRetain", error, why);
    const char *function;
    error = calm_enter(where->call, where->context, &function);
    if (error) {
        where->call->cuDevicePrimaryCtxRelease_v2(o->device);
        return driver_failed(where->call, function, error, why);
    }
    if (arena_one_process(h->arena, h->mine, owner)) {
        o->how = OPENING_OWN;
        r = open_own(where, lent, &o->at, why);
    } else if (lent->how == LENT_LEGACY) {
        o->how = OPENING_LEGACY;
        r = open_legacy(h, where, owner, lent, &o->at, why);
    } else if (lent->how == LENT_DESCRIPTOR) {
        o->how = OPENING_DESCRIPTOR;
        r = open_descriptor(h, where, owner, lent, &o->at, why);
    } else
        text_add(why, "its memory has no handle for other processes");
    if (r == -EIO && !calm_died(where->call))
        r = -ENOTSUP;                   /* 205, 304, 711, 999, ... */
    calm_leave(where->call);
    if (r < 0)
        where->call->cuDevicePrimaryCtxRelease_v2(o->device);
    return r;
}

/* ---- taking and giving ---- */

static struct open **find(struct ipc_import *h, uint32_t owner, uint64_t buffer)
{
    for (struct open **at = &h->open; *at; at = &(*at)->next)
        if ((*at)->owner == owner && (*at)->buffer == buffer)
            return at;
    return NULL;
}

static int take_new(struct ipc_import *h, const struct ipc_import_at *where, uint32_t owner,
                    const struct lent *lent, struct loan *loan, struct open **taken,
                    struct text *why)
{
    char words[REFUSED_TEXT];
    struct text said = TEXT_IN(words);
    text_clear(&said);
    close_those(h, is_called_back, NULL);
    close_those(h, is_in_the_way,
                &(struct claimed){ owner, lent->buffer, lent->base, lent->bytes });
    struct open *o = calloc(1, sizeof *o);
    if (!o)
        return -ENOMEM;
    *o = (struct open){
        .owner = owner, .buffer = lent->buffer, .base = lent->base, .bytes = lent->bytes,
        .generation = lent->generation, .loan = loan, .call = where->call, .context = where->context
    };
    int r = -ECANCELED;
    if (loan_take(loan, h->mine, lent->generation)) {
        r = open_it(h, where, owner, lent, o, &said);
        if (r < 0)
            loan_return(loan, h->mine);
    } else
        text_add(&said, "its owner has called it back");
    text_add(why, "%s", words);
    if (r < 0) {
        if (r != -ECANCELED && is_lasting(r))
            refuse(h, owner, lent->buffer,
                   o->how == OPENING_LEGACY && (r == -ENOTSUP || r == -EPERM), words);
        free(o);
        return r != -ECANCELED && is_lasting(r) ? -ENOTSUP : r;
    }
    o->next = h->open;
    h->open = o;
    *taken = o;
    return 0;
}

static int take(struct ipc_import *h, const struct ipc_import_at *where, uint32_t owner,
                const struct lent *lent, CUdeviceptr *at, struct text *why)
{
    struct loan *loan = owner < h->arena->header->size ? loan_of(h, owner, lent->loan) : NULL;
    if (!loan || lent->offset > lent->bytes || lent->length > lent->bytes - lent->offset
        || lent->base + lent->bytes < lent->base) {
        text_add(why, "what is said of it cannot be true");
        return DAMAGED;
    }
    const struct refused_open *refused = refused_find(h, owner, lent->buffer);
    if (refused) {
        text_add(why, "%s", refused->words);
        return -ENOTSUP;
    }
    struct open **found = find(h, owner, lent->buffer), *o = found ? *found : NULL;
    bool fits = o && o->loan == loan && o->generation == lent->generation
        && o->context == where->context && o->bytes == lent->bytes
        && loan_stands(loan, lent->generation);
    if (o && !fits) {
        if (o->taken) {
            text_add(why, "it is in use here for another operation, in another manner");
            return -EBUSY;
        }
        close_one(h, found);
        o = NULL;
    }
    int r = o ? 0 : take_new(h, where, owner, lent, loan, &o, why);
    if (r < 0)
        return r;
    o->taken++;
    o->keep = lent->keep <= KEEP_STAGING ? (enum lent_keep)lent->keep : KEEP_NOT;
    o->used = ++h->uses;
    *at = o->at + lent->offset;
    return 0;
}

int ipc_import_take(struct ipc_import *handles, const struct ipc_import_at *where, uint32_t owner,
                    const struct lent *lent, CUdeviceptr *at, struct text *why)
{
    pthread_mutex_lock(&handles->lock);
    int r = take(handles, where, owner, lent, at, why);
    pthread_mutex_unlock(&handles->lock);
    return r;
}

void ipc_import_give(struct ipc_import *handles, uint32_t owner, uint64_t buffer)
{
    pthread_mutex_lock(&handles->lock);
    struct open **at = find(handles, owner, buffer);
    if (at && --(*at)->taken == 0 && (!(*at)->keep || is_called_back_at_once(*at, NULL)))
        close_one(handles, at);
    close_surplus(handles);
    pthread_mutex_unlock(&handles->lock);
}

void ipc_import_lose(struct ipc_import *handles, uint32_t owner, uint64_t buffer)
{
    pthread_mutex_lock(&handles->lock);
    struct open **at = find(handles, owner, buffer), *lost = *at;
    *at = lost->next;
    free(lost);                                      /* the mapping stays, and nobody asks for it */
    pthread_mutex_unlock(&handles->lock);
}

void ipc_import_sweep(struct ipc_import *handles)
{
    pthread_mutex_lock(&handles->lock);
    close_those(handles, is_called_back, NULL);
    pthread_mutex_unlock(&handles->lock);
}

/* Who has the lock may be in the driver, and wait there for what this rank does next. */
void ipc_import_sweep_at_once(struct ipc_import *handles)
{
    if (pthread_mutex_trylock(&handles->lock) != 0)
        return;
    close_those(handles, is_called_back_at_once, NULL);
    pthread_mutex_unlock(&handles->lock);
}

void ipc_import_close_idle(struct ipc_import *handles, bool staging)
{
    enum lent_keep below = staging ? KEEP_STAGING + 1 : KEEP_STAGING;
    pthread_mutex_lock(&handles->lock);
    close_those(handles, is_below, &below);
    pthread_mutex_unlock(&handles->lock);
}

void ipc_import_close(struct ipc_import *handles, uint32_t owner, uint64_t buffer)
{
    pthread_mutex_lock(&handles->lock);
    struct open **at = find(handles, owner, buffer);
    if (at && !(*at)->taken)
        close_one(handles, at);
    pthread_mutex_unlock(&handles->lock);
}

int ipc_import_open_count(struct ipc_import *handles)
{
    int n = 0;
    pthread_mutex_lock(&handles->lock);
    for (struct open *o = handles->open; o; o = o->next)
        n++;
    pthread_mutex_unlock(&handles->lock);
    return n;
}

void ipc_import_free(struct ipc_import *handles)
{
    if (!handles)
        return;
    while (handles->open)
        close_one(handles, &handles->open);
    pthread_mutex_destroy(&handles->lock);
    free(handles);
}
