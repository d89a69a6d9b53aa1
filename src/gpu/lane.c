/* The host learns of the end of copies by events, one behind each round, so that what peers are told has ended has ended. */
#include "gpu/lane.h"

#include "base/clock.h"
#include "base/seeded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SETTLE_NS = 1000000000, SETTLE_NAP_NS = 50000 };

static int lane_failed(struct lane *lane, const char *function, CUresult error)
{
    struct text why = TEXT_IN(lane->words);
    text_clear(&why);
    return gpu_failed(lane->gpu, function, error, &why);
}

static int lane_enter(struct lane *lane)
{
    struct text why = TEXT_IN(lane->words);
    text_clear(&why);
    return gpu_enter(lane->gpu, &why);
}

/* ---- open and close ---- */

static void lane_free(struct lane *lane)
{
    const struct cuda_api *call = gpu_api(lane->gpu);
    if (lane->given_up && gpu_enter_to_give(lane->gpu)) {         /* it may have ended by now */
        bool idle = call->cuStreamQuery(lane->side[LANE_IN].stream) != CUDA_ERROR_NOT_READY
                 && call->cuStreamQuery(lane->side[LANE_OUT].stream) != CUDA_ERROR_NOT_READY;
        gpu_leave(lane->gpu);
        if (!idle)
            return;                    /* what it touches stays registered and mapped: lost until the process ends */
    }
    for (uint32_t p = 0; lane->rings && p < lane->comm->watch.size; p++)
        staging_unpin(lane->rings[p]);
    free(lane->rings);
    for (int s = 0; s < 2; s++) {
        staging_bounce_free(&lane->bounce[s]);
        for (int i = 0; i < LANE_MARKS; i++)
            if (lane->side[s].mark[i])
                gpu_event_back(lane->gpu, lane->side[s].mark[i]);
        if (lane->side[s].stream && gpu_enter(lane->gpu, NULL) == 0) {
            call->cuStreamDestroy_v2(lane->side[s].stream);
            gpu_leave(lane->gpu);
        }
    }
    gpu_close(lane->gpu);
    free(lane);
}

static void lanes_close(struct tutti_comm *comm)
{
    while (comm->lanes) {
        struct lane *lane = comm->lanes;
        comm->lanes = lane->next;
        lane_free(lane);
    }
}

static int lane_begin(struct lane *lane)
{
    const struct cuda_api *call = gpu_api(lane->gpu);
    struct text why = TEXT_IN(lane->words);
    text_clear(&why);
    int r = gpu_enter(lane->gpu, &why);
    if (r < 0)
        return r;
    for (int s = 0; s < 2 && r == 0; s++) {
        CUresult error = call->cuStreamCreate(&lane->side[s].stream, CU_STREAM_NON_BLOCKING);
        if (error)
            r = gpu_failed(lane->gpu, "cuStreamCreate", error, &why);
        for (int i = 0; i < LANE_MARKS && r == 0; i++)
            r = gpu_event(lane->gpu, &lane->side[s].mark[i], &why);
    }
    gpu_leave(lane->gpu);
    return r;
}

int lane_of(struct tutti_comm *comm, struct gpu *gpu, struct lane **lane, struct text *why)
{
    struct lane *l = comm->lanes;
    while (l && l->gpu != gpu)
        l = l->next;
    if (!l) {
        l = calloc(1, sizeof *l);
        struct pin **rings = calloc(comm->watch.size, sizeof(struct pin *));
        if (!l || !rings) {
            free(l);
            free(rings);
            text_add(why, "no memory for the books of a device");
            return -ENOMEM;
        }
        l->gpu = gpu;
        l->comm = comm;
        l->rings = rings;
        gpu_hold(gpu);
        int r = lane_begin(l);
        if (r < 0) {
            text_add(why, "%s", l->words);
            lane_free(l);
            return r;
        }
        l->next = comm->lanes;
        comm->lanes = l;
        comm->lanes_close = lanes_close;
    }
    *lane = l;
    return 0;
}

/* ---- copies ---- */

int lane_copy(struct lane *lane, int side, void *to, bool to_device, const void *from, bool from_device, size_t bytes)
{
    const struct cuda_api *call = gpu_api(lane->gpu);
    CUstream stream = lane->side[side].stream;
    CUresult error;
    if (to == from || bytes == 0)
        return 0;
    if (!to_device && !from_device) {
        memcpy(to, from, bytes);
        return 0;
    }
    int r = lane_enter(lane);
    if (r < 0)
        return r;
    lane->busy = true;
    const char *function = "cuMemcpyDtoDAsync";
    if (to_device && from_device)
        error = call->cuMemcpyDtoDAsync_v2((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes, stream);
    else if (to_device) {
        function = "cuMemcpyHtoDAsync";
        error = call->cuMemcpyHtoDAsync_v2((CUdeviceptr)(uintptr_t)to, from, bytes, stream);
    } else {
        function = "cuMemcpyDtoHAsync";
        error = call->cuMemcpyDtoHAsync_v2(to, (CUdeviceptr)(uintptr_t)from, bytes, stream);
    }
    gpu_leave(lane->gpu);
    return error && !MISTAKE(error_ignored) ? lane_failed(lane, function, error) : 0;
}

bool lane_room(const struct lane *lane, int side) { return lane->side[side].marks - lane->side[side].passed < LANE_MARKS; }

int lane_mark(struct lane *lane, int side)
{
    struct lane_stream *s = &lane->side[side];
    int r = lane_enter(lane);
    if (r < 0)
        return r;
    CUresult error = gpu_api(lane->gpu)->cuEventRecord(s->mark[s->marks % LANE_MARKS], s->stream);
    gpu_leave(lane->gpu);
    if (error)
        return lane_failed(lane, "cuEventRecord", error);
    s->marks++;
    return 0;
}

int lane_passed(struct lane *lane, int side, uint64_t *passed)
{
    struct lane_stream *s = &lane->side[side];
    CUresult error = 0;
    if (s->passed < s->marks) {
        int r = lane_enter(lane);
        if (r < 0)
            return r;
        if (MISTAKE(end_not_awaited))
            s->passed = s->marks;
        while (s->passed < s->marks && (error = gpu_api(lane->gpu)->cuEventQuery(s->mark[s->passed % LANE_MARKS])) == 0)
            s->passed++;
        gpu_leave(lane->gpu);
    }
    *passed = s->passed;
    return error && error != CUDA_ERROR_NOT_READY ? lane_failed(lane, "cuEventQuery", error) : 0;
}

int lane_lives(struct lane *lane)
{
    int r = lane_enter(lane);
    if (r < 0)
        return r;
    CUresult error = gpu_api(lane->gpu)->cuStreamQuery(lane->side[LANE_OUT].stream);
    gpu_leave(lane->gpu);
    return error && error != CUDA_ERROR_NOT_READY ? lane_failed(lane, "cuStreamQuery", error) : 0;
}

/* ---- memory ---- */

int lane_ring(struct lane *lane, uint32_t p, void *at, size_t bytes, uint64_t number)
{
    if (staging_is(lane->rings[p], at, bytes, number))
        return 0;
    struct text why = TEXT_IN(lane->words);
    int r = lane_enter(lane);
    if (r < 0)
        return r;
    text_clear(&why);
    staging_unpin(lane->rings[p]);
    lane->rings[p] = NULL;
    r = staging_pin(lane->gpu, at, bytes, number, &lane->rings[p], &why);
    gpu_leave(lane->gpu);
    return r;
}

int lane_bounce(struct lane *lane, int side, size_t bytes)
{
    struct text why = TEXT_IN(lane->words);
    if (lane->bounce[side].bytes >= bytes)
        return 0;
    int r = lane_enter(lane);
    if (r < 0)
        return r;
    text_clear(&why);
    r = staging_bounce(lane->gpu, &lane->bounce[side], bytes, &why);
    gpu_leave(lane->gpu);
    return r;
}

/* Memory for a single large operation is not kept. */
static void lane_trim(struct lane *lane)
{
    for (int s = 0; s < 2; s++)
        if (lane->bounce[s].bytes > BOUNCE_PINNED_MOST)
            staging_bounce_free(&lane->bounce[s]);
}

void lane_ended(struct lane *lane)
{
    lane->busy = false;
    lane_trim(lane);
}

/* No word tells of a device's end, so this looks again and again. An answer that is neither yes nor not yet comes from a broken context,
   whose copies have ended, one way or the other. */
void lane_settle(struct lane *lane)
{
    const struct cuda_api *call = gpu_api(lane->gpu);
    uint64_t began = clock_ns();
    if (!lane->busy || lane->given_up || MISTAKE(failure_not_settled))
        return;
    if (gpu_enter(lane->gpu, NULL) < 0)
        return;
    for (int s = 0; s < 2;) {
        if (call->cuStreamQuery(lane->side[s].stream) != CUDA_ERROR_NOT_READY) {
            s++;
            continue;
        }
        if (clock_ns() - began >= SETTLE_NS) {
            lane->given_up = true;
            comm_ring_lose(lane->comm);
            break;
        }
        nanosleep(&(struct timespec){ 0, SETTLE_NAP_NS }, NULL);
    }
    gpu_leave(lane->gpu);
    lane->busy = lane->given_up;
}
