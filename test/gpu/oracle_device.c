/* A rank uses any of the devices, another one in each case. Its data are brought to the buffers by
 * copies that are still under way when the call comes, over what the CPU left there, which is
 * wrong; and when it has ended they are copied out by a stream of the caller's: the driver of this
 * folder ends the process if anything is not ordered behind what it must see. */
#include "oracle_device.h"

#include "case_device.h"
#include "group/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tutti_cuda.h>

enum {
    PATIENCE_S = 60,
    MIRROR = 2 << 20,
    SLAB = 1 << 20,
    GRANULE = 2 << 20,
    WRONG = 0x5a,
    APART_GUARD = 16
};

struct taken {
    enum oracle_source source;
    unsigned char *mem;
    size_t bytes;
    CUmemGenericAllocationHandle handle;
};

struct apart { void **pointer, *was; unsigned char *seen, *mem; size_t bytes; };

/* Of this rank, which may be one of several threads. */
static _Thread_local struct {
    tutti_comm *world, *comm;
    bool open;
    int devices;                                     /* as many as the driver has */
    CUcontext context[ORACLE_DEVICES];
    CUstream blocking[ORACLE_DEVICES], own[ORACLE_DEVICES];
    void *slab[ORACLE_DEVICES];
    unsigned char *mirror[2];                        /* of send, of recv */
    struct taken taken[2];
    int device;                                      /* of the case */
    struct apart apart[2 * ORACLE_RANKS];
    int aparts;
    uint64_t pulled;
} here;

static bool said(CUresult error, const char *what)
{
    if (error)
        fprintf(stderr, "the oracle: %s: %d\n", what, error);
    return !error;
}

#define WELL(call) said(cu.call, #call)

static bool here_open(void)
{
    int rank = tutti_rank(here.world);
    if (here.open)
        return true;
    if (!case_cuda())
        return false;
    here.open = true;
    here.devices = case_devices();
    void *at = mmap(NULL, (size_t)2 * MIRROR, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);
    if (at == MAP_FAILED
        || !WELL(cuMemHostRegister_v2(at, (size_t)2 * MIRROR,
                                      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)))
        return false;
    here.mirror[0] = at;
    here.mirror[1] = here.mirror[0] + MIRROR;
    for (int d = 0; d < here.devices; d++) {
        CUdeviceptr slab = 0;
        if (!WELL(cuDevicePrimaryCtxRetain(&here.context[d], d))
            || !WELL(cuCtxSetCurrent(here.context[d]))
            || !WELL(cuStreamCreate(&here.blocking[d], 0))
            || !WELL(cuStreamCreate(&here.own[d], CU_STREAM_NON_BLOCKING)))
            return false;
        if ((rank + d) % 2 ? tutti_cuda_alloc(&here.slab[d], SLAB, d, here.world) < 0
                           : !WELL(cuMemAlloc_v2(&slab, SLAB)))
            return false;
        if (slab)
            here.slab[d] = (void *)(uintptr_t)slab;
    }
    return WELL(cuDevicePrimaryCtxRelease_v2(0));    /* of case_cuda */
}

/* ---- a case's buffers ---- */

static uint64_t chance(const struct oracle_part *p, int what)
{
    uint64_t seed = p->c->salt ^ (uint64_t)(p->me * 64 + what + 1) * UINT64_C(0x8b72e3a1d4c59f07);
    return oracle_any(&seed);
}

static bool on(void *arg, const struct oracle_part *p, bool send)
{
    (void)arg;
    if (p->in_place)
        send = true;
    else if (p->c->kind == KIND_BROADCAST)
        send = p->me == oracle_root(p->c);
    switch (p->c->kind == KIND_BARRIER ? WHERES : p->c->v[DIM_WHERE]) {
    case WHERE_DEVICE: return true;
    case WHERE_SEND: return send;
    case WHERE_RECV: return !send;
    case WHERE_SOME: return ((uint64_t)p->me + p->c->salt / 2) % 2;
    case WHERE_MIXED: return chance(p, send) % 2;
    default: return false;
    }
}

static int device_of(const struct oracle_part *p)
{
    int devices = p->c->v[DIM_DEVICES] + 1 < here.devices ? p->c->v[DIM_DEVICES] + 1 : here.devices;
    return p->c->salt >> 33 & 1 ? (int)(chance(p, 3) % (uint64_t)devices) : p->me % devices;
}

static bool map(struct taken *t, size_t room, bool shareable)
{
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, here.device }
    };
    CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUdeviceptr at = 0;
    t->bytes = (room + GRANULE - 1) / GRANULE * GRANULE;
    bool well = WELL(cuMemCreate(&t->handle, t->bytes, &prop, 0))
        && WELL(cuMemAddressReserve(&at, t->bytes, 0, 0, 0))
        && WELL(cuMemMap(at, t->bytes, 0, t->handle, 0))
        && WELL(cuMemSetAccess(at, t->bytes, &access, 1));
    t->mem = (unsigned char *)(uintptr_t)at;
    return well;
}

/* Mostly a multiple of any element's size. */
static size_t inside(const struct oracle_part *p, size_t most)
{
    size_t at = chance(p, 4) % (most + 1);
    return chance(p, 8) % 8 ? at / ORACLE_WIDTH * ORACLE_WIDTH : at;
}

static enum oracle_source source_of(const struct oracle_case *c, int rank)
{
    return (enum oracle_source)((c->v[DIM_SOURCE] + (c->salt >> 34 & 3 ? 0 : rank)) % SOURCES);
}

static bool take_room(const struct oracle_part *p, struct taken *t, size_t room, bool send)
{
    CUdeviceptr at = 0;
    void *got = NULL;
    t->source = source_of(p->c, p->me);
    if (t->source == SOURCE_INSIDE && room > SLAB / 2)
        t->source = SOURCE_ALLOC;
    switch (t->source) {
    case SOURCE_TUTTI:
        if (tutti_cuda_alloc(&got, room, here.device, here.world) < 0)
            fprintf(stderr, "tutti_cuda_alloc: %s\n", tutti_explain(here.world));
        break;
    case SOURCE_INSIDE:
        got = (unsigned char *)here.slab[here.device] + (send ? 0 : SLAB / 2)
            + inside(p, SLAB / 2 - room);
        break;
    case SOURCE_SHAREABLE: case SOURCE_MAPPED: return map(t, room, t->source == SOURCE_SHAREABLE);
    default:
        if (!WELL(cuMemAlloc_v2(&at, room)))
            return false;
        got = (void *)(uintptr_t)at;
        if (t->source == SOURCE_REGISTERED && tutti_register(got, room, here.world) < 0) {
            fprintf(stderr, "tutti_register: %s\n", tutti_explain(here.world));
            return false;
        }
    }
    t->mem = got;
    t->bytes = room;
    return got;
}

static bool take(void *arg, const struct oracle_part *p, struct pieces *pieces, bool send,
                 size_t offset)
{
    (void)arg;
    struct taken *t = &here.taken[!send];
    if (!here_open())
        return false;
    here.device = device_of(p);
    if (!WELL(cuCtxSetCurrent(here.context[here.device])))
        return false;
    pieces->offset = offset;
    if (!take_room(p, t, pieces_room(pieces), send))
        return false;
    pieces->device = true;
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)t->mem;
    unsigned char *seen = case_real() ? malloc(pieces_room(pieces)) : fake.fakePeek(at);
    if (!seen)
        return false;
    pieces_fill(pieces, t->mem, seen, offset);
    return true;
}

/* A peer keeps it open until it frees or meets (left). On a loaded machine that can be late. */
static int unregister(void *at)
{
    int r = -EBUSY;
    for (int i = 0; i < PATIENCE_S && r == -EBUSY; i++)
        r = tutti_unregister(at, here.world);
    return r;
}

static void give(void *arg, struct pieces *pieces)
{
    (void)arg;
    struct taken *t = &here.taken[pieces->mem != here.taken[0].mem];
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)t->mem;
    bool well = true;
    switch (t->source) {
    case SOURCE_TUTTI: well = tutti_cuda_free(t->mem, here.world) == 0; break;
    case SOURCE_INSIDE: break;
    case SOURCE_SHAREABLE: case SOURCE_MAPPED:
        well = WELL(cuMemUnmap(at, t->bytes)) && WELL(cuMemAddressFree(at, t->bytes))
            && WELL(cuMemRelease(t->handle));
        break;
    case SOURCE_REGISTERED: well = unregister(t->mem) == 0 && WELL(cuMemFree_v2(at)); break;
    default: well = WELL(cuMemFree_v2(at)); break;
    }
    if (!well) {
        fprintf(stderr, "rank %d: the oracle's memory of source %d cannot be given back: %s\n",
                tutti_rank(here.world), (int)t->source, tutti_explain(here.world));
        abort();
    }
    *t = (struct taken){ .source = SOURCE_ALLOC };
    if (case_real())
        free(pieces->seen);
    *pieces = (struct pieces){ 0 };
}

/* Who unregisters waits for those who have it open, and they have nothing to do but to go on. */
static bool left(void *arg, const struct oracle_part *p, tutti_comm *comm)
{
    (void)arg;
    bool some = false;
    for (int rank = 0; rank < oracle_ranks(p->c); rank++)
        some |= source_of(p->c, rank) == SOURCE_REGISTERED;
    return !some || case_meet(comm) == 0;
}

/* ---- a case's streams ---- */

static CUstream stream_of(const struct oracle_part *p)
{
    switch (p->c->v[DIM_STREAM]) {
    case STREAM_BEFORE_NULL: case STREAM_BLOCKING: return here.blocking[here.device];
    case STREAM_OWN: return here.own[here.device];
    default: return NULL;
    }
}

/* Does the call give or get anything on the device? Else a stream makes no sense. */
static bool takes_part(const struct oracle_part *p)
{
    for (int i = 0; i < p->give_n + p->get_n; i++) {
        bool gives = i < p->give_n;
        const void *at = gives ? p->give[i] : p->get[i - p->give_n];
        size_t count = gives ? p->gives[i] : p->gets[i - p->give_n];
        if (count
            && ((p->send.device && pieces_has(&p->send, at))
                || (p->recv.device && pieces_has(&p->recv, at))))
            return true;
    }
    return false;
}

/* Of lists that lie anywhere some pieces lie on the host after all: until the end of the call, then
 * they are put back for the judge. */
static bool apart_take(struct oracle_part *p)
{
    here.aparts = 0;
    for (int i = 0; oracle_uneven(p->c->kind) && p->c->v[DIM_WHERE] == WHERE_MIXED && !p->in_place
         && i < p->give_n + p->get_n;
         i++) {
        bool gives = i < p->give_n;
        void **at = gives ? &p->give[i] : &p->get[i - p->give_n];
        const struct pieces *pieces = gives ? &p->send : &p->recv;
        size_t bytes = (gives ? p->gives[i] : p->gets[i - p->give_n])
            * oracle_width(p->c->v[DIM_TYPE]);
        if (!pieces->device || !bytes || chance(p, 16 + i) % 3)
            continue;
        unsigned char *mem = malloc(bytes + APART_GUARD);
        if (!mem)
            return false;
        memcpy(mem, pieces_see(pieces, *at), bytes);
        memset(mem + bytes, PIECES_BYTE, APART_GUARD);
        here.apart[here.aparts++] = (struct apart){ at, *at, pieces_see(pieces, *at), mem, bytes };
        *at = mem;
    }
    return true;
}

static bool apart_give(void)
{
    bool whole = true;
    while (here.aparts) {
        const struct apart *a = &here.apart[--here.aparts];
        for (int i = 0; i < APART_GUARD; i++)
            whole &= a->mem[a->bytes + (size_t)i] == PIECES_BYTE;
        memcpy(a->seen, a->mem, a->bytes);
        *a->pointer = a->was;
        free(a->mem);
    }
    return whole;
}

static CUdeviceptr address_of(const struct pieces *pieces)
{
    return (CUdeviceptr)(uintptr_t)pieces->mem;
}

/* Where the CPU does not see the device's memory, what it has written is brought there, and what
 * is there is brought back when the call has ended. */
static void bring(const struct oracle_part *p, bool back)
{
    const struct pieces *both[] = { &p->send, &p->recv };
    for (int i = 0; i < 2 && case_real(); i++) {
        if (both[i]->device && back)
            case_get(both[i]->seen, address_of(both[i]), pieces_room(both[i]));
        else if (both[i]->device)
            case_put(address_of(both[i]), both[i]->seen, pieces_room(both[i]));
    }
}

static bool ready(void *arg, struct oracle_part *p, tutti_call *call)
{
    (void)arg;
    struct pieces *both[] = { &p->send, &p->recv };
    int stream = p->c->v[DIM_STREAM];
    if (!apart_take(p))
        return false;
    bring(p, false);
    if (!takes_part(p))
        return true;
    for (int i = 0; i < 2 && stream != STREAM_NOTHING; i++) {
        size_t room = pieces_room(both[i]);
        if (!both[i]->device || room > MIRROR)
            continue;
        memcpy(here.mirror[i], both[i]->seen, room);
        case_fill(address_of(both[i]), WRONG, room);
        if (!WELL(cuMemcpyHtoDAsync_v2(address_of(both[i]), here.mirror[i], room, stream_of(p))))
            return false;
    }
    if (stream == STREAM_BLOCKING || stream == STREAM_OWN)
        call->stream = stream_of(p);
    CUcontext other = chance(p, 5) % 3 ? here.context[here.device]
        : chance(p, 6) % 2 ? NULL
        : here.context[chance(p, 7) % (uint64_t)here.devices];
    return stream == STREAM_NULL || stream == STREAM_BEFORE_NULL || WELL(cuCtxSetCurrent(other));
}

static bool done(void *arg, struct oracle_part *p, struct text *why)
{
    (void)arg;
    struct pieces *both[] = { &p->send, &p->recv };
    /* relaxed: our own word */
    here.pulled += load_relaxed64(&here.comm->watch.mine->mapped) == 2 * here.comm->seq + 1;
    if (!p->send.device && !p->recv.device)
        return true;
    if (!WELL(cuCtxSetCurrent(here.context[here.device])))
        return false;
    for (int i = 0; i < 2; i++)
        if (both[i]->device && pieces_room(both[i]) <= MIRROR
            && !WELL(cuMemcpyDtoHAsync_v2(here.mirror[i], address_of(both[i]),
                                          pieces_room(both[i]), stream_of(p))))
            return false;
    if (!WELL(cuStreamSynchronize(stream_of(p))))
        return false;
    bring(p, true);
    for (int i = 0; i < 2; i++)
        if (both[i]->device && pieces_room(both[i]) <= MIRROR
            && memcmp(here.mirror[i], both[i]->seen, pieces_room(both[i])) != 0) {
            text_add(why, "the caller's stream saw something else than lies there now");
            return false;
        }
    if (!apart_give()) {
        text_add(why, "bytes beside a piece on the host were written");
        return false;
    }
    return true;
}

const struct oracle_device *oracle_device_of(tutti_comm *world, tutti_comm *comm)
{
    static const struct oracle_device device = { NULL, on, take, give, ready, done, left };
    here.world = world;
    here.comm = comm;
    return &device;
}

uint64_t oracle_device_pulled(void) { return here.pulled; }

bool oracle_device_end(tutti_comm *world)
{
    int rank = tutti_rank(world);
    bool well = true;
    for (int d = 0; d < here.devices; d++)
        if ((rank + d) % 2)
            well &= tutti_cuda_free(here.slab[d], world) == 0;
    well &= tutti_finalize(world) == 0;
    for (int d = 0; d < here.devices; d++) {
        well &= WELL(cuCtxSetCurrent(here.context[d])) && WELL(cuStreamDestroy_v2(here.blocking[d]))
            && WELL(cuStreamDestroy_v2(here.own[d]));
        if ((rank + d) % 2 == 0)
            well &= WELL(cuMemFree_v2((CUdeviceptr)(uintptr_t)here.slab[d]));
    }
    if (here.open)
        well &= WELL(cuMemHostUnregister(here.mirror[0]));
    for (int d = 0; d < here.devices; d++)
        well &= WELL(cuDevicePrimaryCtxRelease_v2(d));
    return well;
}
