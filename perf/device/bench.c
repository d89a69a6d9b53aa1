/* Buffers on the device, their filling and checking. Before the samples every element is filled and
 * checked: the pattern has a length that divides nothing, so that a piece in the wrong place is
 * seen. Before each sample the owner rewrites its buffer with another byte, and after it three
 * elements are looked at. */
#include "device/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti_cuda.h>

/* PATTERN: floats; a prime. PIECE: of cuMemCreate, as large as PyTorch's */
enum { PATTERN = 262139, PIECE = 20 << 20 };

static float value(int rank, size_t i)
{
    return (float)((i * 7 + (size_t)rank * 13 + i / 1000) % 101) * 0.125f;
}

/* pattern[r]: of rank r; pattern[ranks]: the sum, exact in any order. */
static int make_patterns(struct bench *b)
{
    b->pattern = malloc(((size_t)b->ranks + 1) * PATTERN * sizeof *b->pattern);
    b->piece = malloc(PATTERN * sizeof *b->piece);
    if (!b->pattern || !b->piece)
        return -ENOMEM;
    float *sum = b->pattern + (size_t)b->ranks * PATTERN;
    for (size_t i = 0; i < PATTERN; i++) {
        sum[i] = 0;
        for (int r = 0; r < b->ranks; r++)
            sum[i] += b->pattern[(size_t)r * PATTERN + i] = value(r, i);
    }
    return 0;
}

static size_t whole(const struct bench *b, size_t bytes)
{
    return (bytes + b->piece_bytes - 1) / b->piece_bytes * b->piece_bytes;
}

/* Twice the addresses, so that the reservation is not the memory. What could not be mapped goes
 * with the process. */
static CUresult map_pieces(struct bench *b, CUdeviceptr *at, size_t bytes)
{
    const struct cuda_api *call = &b->driver->call;
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }
    };
    CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    b->piece_bytes = PIECE;
    size_t all = whole(b, bytes);
    CUresult error = call->cuMemAddressReserve(at, 2 * all, 0, 0, 0);
    for (size_t i = 0; i < all && !error; i += PIECE) {
        CUmemGenericAllocationHandle handle;
        error = call->cuMemCreate(&handle, PIECE, &prop, 0);
        if (error)
            break;
        error = call->cuMemMap(*at + i, PIECE, 0, handle, 0);
        if (!error)
            error = call->cuMemSetAccess(*at + i, PIECE, &access, 1);
        call->cuMemRelease(handle);
    }
    return error;
}

static void unmap_pieces(struct bench *b, CUdeviceptr at)
{
    size_t all = whole(b, b->room);
    for (size_t i = 0; i < all; i += PIECE)
        b->driver->call.cuMemUnmap(at + i, PIECE);
    b->driver->call.cuMemAddressFree(at, 2 * all);
}

static int room_of(struct bench *b, CUdeviceptr *at, size_t bytes)
{
    void *got = NULL;
    if (b->memory == MEMORY_PLAIN)
        return driver_error(b->driver->call.cuMemAlloc_v2(at, bytes));
    if (b->memory == MEMORY_VMM)
        return driver_error(map_pieces(b, at, bytes));
    int error = tutti_cuda_alloc(&got, bytes, 0, b->world);
    *at = (CUdeviceptr)(uintptr_t)got;
    return error;
}

/* All ranks have so much, or less for all: a GPU may be too small for eight times the largest. */
static int take_room(struct bench *b, size_t most)
{
    for (b->room = most; b->room >= 4096; b->room /= 4) {
        int all = 0, error = room_of(b, &b->send, b->room);
        if (!error)
            error = room_of(b, &b->recv, b->room);
        int mine = error ? 1 : 0;
        int met = tutti_all_reduce(&mine, &all, 1, TUTTI_I32, TUTTI_MAX, b->world, NULL);
        if (met < 0 || !all)
            return met;
        bench_close(b);
    }
    return -ENOMEM;
}

int bench_open(struct bench *b, tutti_comm *world, size_t most, enum memory memory, char *why,
               size_t room)
{
    struct text text = { why, room, 0 };
    *b = (struct bench){
        .world = world, .rank = tutti_rank(world), .ranks = tutti_size(world), .memory = memory
    };
    text_clear(&text);
    int error = driver_open(&b->driver, &text);
    if (error)
        return error;
    CUresult said = b->driver->call.cuDevicePrimaryCtxRetain(&b->context, 0);
    if (!said)
        said = b->driver->call.cuCtxSetCurrent(b->context);
    if (!said)
        said = b->driver->call.cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING);
    if (said)
        return driver_failed(&b->driver->call, "the GPU's context", said, &text);
    error = make_patterns(b);
    if (!error)
        error = take_room(b, most);
    if (error)
        text_add(&text, "no room for buffers: %s", tutti_strerror(error));
    return error;
}

void bench_close(struct bench *b)
{
    CUdeviceptr *all[] = { &b->send, &b->recv };
    for (int i = 0; i < 2; i++) {
        if (*all[i] && b->memory == MEMORY_KEPT)
            tutti_cuda_free((void *)(uintptr_t)*all[i], b->world);
        else if (*all[i] && b->memory == MEMORY_VMM)
            unmap_pieces(b, *all[i]);
        else if (*all[i])
            b->driver->call.cuMemFree_v2(*all[i]);
        *all[i] = 0;
    }
}

static int wait(struct bench *b, CUresult error)
{
    if (!error)
        error = b->driver->call.cuStreamSynchronize(b->stream);
    return driver_error(error);
}

/* What a rank gives, and where: of an all_gather its part; of a broadcast the root's,
 * rank 0 here. */
static size_t given(const struct bench *b, enum doing kind, size_t bytes)
{
    return kind == DO_ALL_GATHER ? bytes / (size_t)b->ranks / 4 * 4 : bytes;
}

static int put(struct bench *b, CUdeviceptr to, const float *pattern, size_t bytes)
{
    int error = 0;
    for (size_t at = 0; at < bytes && !error; at += PATTERN * sizeof(float)) {
        size_t n = bytes - at < PATTERN * sizeof(float) ? bytes - at : PATTERN * sizeof(float);
        error = wait(b, b->driver->call.cuMemcpyHtoDAsync_v2(to + at, pattern, n, b->stream));
    }
    return error;
}

int bench_fill(struct bench *b, enum doing kind, size_t bytes)
{
    const float *mine = b->pattern + (size_t)b->rank * PATTERN;
    int error = wait(b, b->driver->call.cuMemsetD8Async(b->recv, 0xff, bytes, b->stream));
    if (error || (kind == DO_BROADCAST && b->rank != 0))
        return error;
    return put(b, kind == DO_BROADCAST ? b->recv : b->send, mine, given(b, kind, bytes));
}

static int same(struct bench *b, CUdeviceptr from, const float *pattern, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PATTERN * sizeof(float)) {
        size_t n = bytes - at < PATTERN * sizeof(float) ? bytes - at : PATTERN * sizeof(float);
        int error = wait(b,
                         b->driver->call.cuMemcpyDtoHAsync_v2(b->piece, from + at, n, b->stream));
        if (error || memcmp(b->piece, pattern, n) != 0)
            return error ? error : -EBADMSG;
    }
    return 0;
}

int bench_check(struct bench *b, enum doing kind, size_t bytes)
{
    size_t part = given(b, kind, bytes);
    if (kind == DO_ALL_REDUCE)
        return same(b, b->recv, b->pattern + (size_t)b->ranks * PATTERN, bytes);
    if (kind == DO_BROADCAST)
        return same(b, b->recv, b->pattern, bytes);
    int error = 0;
    for (int r = 0; r < b->ranks && !error; r++)
        error = same(b, b->recv + (size_t)r * part, b->pattern + (size_t)r * PATTERN, part);
    return error;
}

static unsigned char stamp(int rank, int turn) /* four of them are a float between 6e-10 and 0.75 */
{
    return (unsigned char)(0x30 + ((rank * 5 + turn) & 15));
}

static float stamped(int rank, int turn)
{
    float f;
    memset(&f, stamp(rank, turn), sizeof f);
    return f;
}

int bench_stamp(struct bench *b, enum doing kind, size_t bytes, int turn)
{
    CUdeviceptr at = kind == DO_BROADCAST ? b->recv : b->send;
    return wait(b,
                b->driver->call.cuMemsetD8Async(at, stamp(b->rank, turn), given(b, kind, bytes),
                                                b->stream));
}

int bench_glance(struct bench *b, enum doing kind, size_t bytes, int turn)
{
    size_t part = given(b, kind, bytes),
           all = kind == DO_ALL_GATHER ? part * (size_t)b->ranks : bytes;
    size_t places[] = { 0, all / 8 * 4, all - 4 };
    float got[3] = { 0 }, wanted = stamped(0, turn);
    CUresult error = 0;
    for (int i = 0; i < 3 && !error; i++)
        error = b->driver->call.cuMemcpyDtoHAsync_v2(&got[i], b->recv + places[i], sizeof(float),
                                                     b->stream);
    int failed = wait(b, error);
    for (int r = 1; r < b->ranks && kind == DO_ALL_REDUCE; r++)
        wanted += stamped(r, turn);
    for (int i = 0; i < 3 && !failed; i++) {
        if (kind == DO_ALL_GATHER)
            wanted = stamped((int)(places[i] / part), turn);
        if (got[i] != wanted)
            failed = -EBADMSG;
    }
    return failed;
}
