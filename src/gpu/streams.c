/* The host sees the end of copies by marks, one after each round. So a rank tells peers that a copy
 * has ended only after it has. A mark is a number that the device writes into a word of host
 * memory: to look costs no call of the driver, whose lock the program's launches need. If nothing
 * comes, the driver is asked now and then whether the context lives. Where the driver cannot write
 * words, or such memory cannot be registered, marks are events.
 *
 * The streams have the greatest priority: what other ranks wait
 * for does not stand behind the program's kernels, which go on beside it (kernels.c). */
#include "gpu/streams.h"

#include "base/clock.h"
#include "gpu/calm.h"
#include "os/say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BACKOFF_NS = 1000000000, BACKOFF_NAP_NS = 50000, ASK_NS = 1000000 };
enum { WORD_APART = 128, WORDS_BYTES = 2 * WORD_APART };

static int streams_failed(struct device_streams *streams, const char *function, CUresult error)
{
    struct text why = TEXT_IN(streams->words);
    text_clear(&why);
    return gpu_failed(streams->gpu, function, error, &why);
}

static int streams_enter(struct device_streams *streams)
{
    struct text why = TEXT_IN(streams->words);
    text_clear(&why);
    return gpu_enter(streams->gpu, &why);
}

/* ---- open and close ---- */

static void streams_free(struct device_streams *streams)
{
    const struct cuda_api *call = gpu_api(streams->gpu);
    if (streams->given_up && gpu_enter_to_give(streams->gpu)) {     /* they may have ended by now */
        bool idle = call->cuStreamQuery(streams->side[STREAM_IN].stream) != CUDA_ERROR_NOT_READY
                 && call->cuStreamQuery(streams->side[STREAM_OUT].stream) != CUDA_ERROR_NOT_READY;
        gpu_leave(streams->gpu);
        if (!idle)
            return;   /* what it touches stays registered and mapped: lost until the process ends */
    }
    device_slots_close(&streams->slots, streams->comm);
    for (uint32_t p = 0; streams->pipelines && p < streams->comm->watch.size; p++)
        staging_unpin(streams->pipelines[p]);
    free(streams->pipelines);
    for (int s = 0; s < 2; s++) {
        staging_bounce_free(&streams->bounce[s]);
        for (int i = 0; i < STREAM_MARKS; i++)
            if (streams->side[s].mark[i])
                gpu_event_back(streams->gpu, streams->side[s].mark[i]);
        if (streams->side[s].stream && gpu_enter(streams->gpu, NULL) == 0) {
            call->cuStreamDestroy_v2(streams->side[s].stream);
            gpu_leave(streams->gpu);
        }
    }
    staging_bounce_free(&streams->words_of_marks);
    gpu_close(streams->gpu);
    free(streams);
}

static void vector_close(struct tutti_comm *comm)
{
    while (comm->gpu.streams) {
        struct device_streams *streams = comm->gpu.streams;
        comm->gpu.streams = streams->next;
        streams_free(streams);
    }
}

/* Tries whether the device can write words. 0: it can, or there are events instead. */
static int marks_begin(struct device_streams *streams, struct text *why)
{
    const struct cuda_api *call = gpu_api(streams->gpu);
    CUdeviceptr seen = 0;
    int r = call->cuStreamWriteValue32_v2
        ? staging_bounce(streams->gpu, &streams->words_of_marks, WORDS_BYTES, why)
        : -ENOTSUP;
    if (r == 0)
        r = staging_seen(streams->gpu, &streams->words_of_marks, &seen, why);
    for (int s = 0; s < 2 && r == 0; s++) {
        CUresult error = call->cuStreamWriteValue32_v2(streams->side[s].stream,
                                                       seen + (CUdeviceptr)s * WORD_APART, 0, 0);
        if (error)
            r = error == CUDA_ERROR_NOT_SUPPORTED || error == CUDA_ERROR_INVALID_VALUE
                ? -ENOTSUP
                : gpu_failed(streams->gpu, "cuStreamWriteValue32", error, why);
    }
    for (int s = 0; s < 2; s++) {
        struct streams_stream *stream = &streams->side[s];
        if (r == 0) {
            stream->word = (shared32 *)(void *)(streams->words_of_marks.at + s * WORD_APART);
            stream->word_seen = seen + (CUdeviceptr)s * WORD_APART;
        }
        for (int i = 0; i < STREAM_MARKS && r == -ENOTSUP; i++) {
            int made = gpu_event(streams->gpu, &stream->mark[i], why);
            r = made < 0 ? made : r;
        }
    }
    return r == -ENOTSUP ? 0 : r;
}

static int streams_begin(struct device_streams *streams)
{
    const struct cuda_api *call = gpu_api(streams->gpu);
    struct text why = TEXT_IN(streams->words);
    text_clear(&why);
    int r = gpu_enter(streams->gpu, &why), least = 0, greatest = 0;
    if (r < 0)
        return r;
    CUresult error = call->cuCtxGetStreamPriorityRange(&least, &greatest);
    if (error)
        r = gpu_failed(streams->gpu, "cuCtxGetStreamPriorityRange", error, &why);
    for (int s = 0; s < 2 && r == 0; s++) {
        error = call->cuStreamCreateWithPriority(&streams->side[s].stream, CU_STREAM_NON_BLOCKING,
                                                 greatest);
        if (error)
            r = gpu_failed(streams->gpu, "cuStreamCreateWithPriority", error, &why);
    }
    if (r == 0)
        r = marks_begin(streams, &why);
    gpu_leave(streams->gpu);
    return r;
}

int streams_of(struct tutti_comm *comm, struct gpu *gpu, struct device_streams **streams,
               struct text *why)
{
    struct device_streams *l = comm->gpu.streams;
    while (l && l->gpu != gpu)
        l = l->next;
    if (!l) {
        l = calloc(1, sizeof *l);
        struct pin **pipelines = calloc(comm->watch.size, sizeof(struct pin *));
        if (!l || !pipelines) {
            free(l);
            free(pipelines);
            text_add(why, "no memory for the books of a device");
            return -ENOMEM;
        }
        l->gpu = gpu;
        l->comm = comm;
        l->pipelines = pipelines;
        gpu_hold(gpu);
        int r = streams_begin(l);
        if (r < 0) {
            text_add(why, "%s", l->words);
            streams_free(l);
            return r;
        }
        l->next = comm->gpu.streams;
        comm->gpu.streams = l;
        comm->gpu.close = vector_close;
    }
    *streams = l;
    return 0;
}

/* ---- copies ---- */

/* The driver copies less than some 32 KiB to a device by the compute engine, which the processes of
 * a GPU share by time slices. Two rows it copies by a copy engine, which they share by the copy.
 * Measured on an H100 (driver 580), 2 and 4 processes at once, 1 KiB: 274 and 547 us as one row, 9
 * and 11 as two; 16 KiB of one process: 10.5 and 7.8 us. From 64 KiB on both take the same time. */
enum { ROWS = 2 };

static CUresult rows_to_device(const struct cuda_api *call, char *to, const char *from,
                               size_t bytes, CUstream stream)
{
    size_t row = bytes / ROWS;
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .srcPitch = row,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = (CUdeviceptr)(uintptr_t)to,
        .dstPitch = row, .WidthInBytes = row, .Height = ROWS
    };
    return call->cuMemcpy2DAsync_v2(&copy, stream);
}

static CUresult copy_to_device(const struct cuda_api *call, char *to, const char *from,
                               size_t bytes, CUstream stream, const char **function)
{
    *function = "cuMemcpyHtoDAsync";
    if (bytes < ROWS || bytes >= STREAM_ROWS_BELOW)
        return call->cuMemcpyHtoDAsync_v2((CUdeviceptr)(uintptr_t)to, from, bytes, stream);
    *function = "cuMemcpy2DAsync";
    CUresult error = rows_to_device(call, to, from, bytes, stream);
    size_t at = bytes - ROWS;           /* an odd number of bytes: the last two once more */
    return error || bytes % ROWS == 0
        ? error
        : rows_to_device(call, to + at, from + at, ROWS, stream);
}

int streams_copy(struct device_streams *streams, int side, void *to, bool to_device,
                 const void *from, bool from_device, size_t bytes)
{
    const struct cuda_api *call = gpu_api(streams->gpu);
    CUstream stream = streams->side[side].stream;
    CUresult error;
    if (to == from || bytes == 0)
        return 0;
    if (!to_device && !from_device) {
        memcpy(to, from, bytes);
        return 0;
    }
    int r = streams_enter(streams);
    if (r < 0)
        return r;
    streams->busy = true;
    const char *function = "cuMemcpyDtoDAsync";
    if (to_device && from_device)
        error = call->cuMemcpyDtoDAsync_v2((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from,
                                           bytes, stream);
    else if (to_device)
        error = copy_to_device(call, to, from, bytes, stream, &function);
    else {
        function = "cuMemcpyDtoHAsync";
        error = call->cuMemcpyDtoHAsync_v2(to, (CUdeviceptr)(uintptr_t)from, bytes, stream);
    }
    gpu_leave(streams->gpu);
    return error ? streams_failed(streams, function, error) : 0;
}

bool streams_room(const struct device_streams *streams, int side)
{
    return streams->side[side].marks - streams->side[side].passed < STREAM_MARKS;
}

int streams_mark(struct device_streams *streams, int side)
{
    const struct cuda_api *call = gpu_api(streams->gpu);
    struct streams_stream *s = &streams->side[side];
    const char *function = s->word ? "cuStreamWriteValue32" : "cuEventRecord";
    int r = streams_enter(streams);
    if (r < 0)
        return r;
    CUresult error = s->word
        ? call->cuStreamWriteValue32_v2(s->stream, s->word_seen, (uint32_t)(s->marks + 1),
                                        0)                           /* E78 release */
        : call->cuEventRecord(s->mark[s->marks % STREAM_MARKS], s->stream);
    gpu_leave(streams->gpu);
    if (error)
        return streams_failed(streams, function, error);
    s->marks++;
    s->asked = clock_ns();
    return 0;
}

/* The driver's answer about a stream, or about the oldest mark that has not passed. No context need
 * be current for it. */
static int streams_ask(struct device_streams *streams, const struct streams_stream *s,
                       CUresult *answer)
{
    const struct cuda_api *call = gpu_api(streams->gpu);
    const char *function = "cuThreadExchangeStreamCaptureMode";
    *answer = calm_begin(call);
    if (!*answer) {
        function = s->word ? "cuStreamQuery" : "cuEventQuery";
        *answer = s->word ? call->cuStreamQuery(s->stream)
                          : call->cuEventQuery(s->mark[s->passed % STREAM_MARKS]);
        calm_end();
    }
    return *answer && *answer != CUDA_ERROR_NOT_READY ? streams_failed(streams, function, *answer)
                                                      : 0;
}

static int passed_words(struct device_streams *streams, struct streams_stream *s)
{
    CUresult answer;
    uint32_t seen = load_acquire32(s->word);                         /* E78 acquire */
    s->passed += seen - (uint32_t)s->passed;
    if (s->passed == s->marks || clock_ns() - s->asked < ASK_NS)
        return 0;
    s->asked = clock_ns();
    return streams_ask(streams, s, &answer);
}

static int passed_events(struct device_streams *streams, struct streams_stream *s)
{
    CUresult answer = CUDA_SUCCESS;
    int r = 0;
    while (s->passed < s->marks && (r = streams_ask(streams, s, &answer)) == 0 && !answer)
        s->passed++;
    return r;
}

int streams_passed(struct device_streams *streams, int side, uint64_t *passed)
{
    struct streams_stream *s = &streams->side[side];
    int r = 0;
    if (s->passed < s->marks)
        r = s->word ? passed_words(streams, s) : passed_events(streams, s);
    *passed = s->passed;
    return r;
}

int streams_lives(struct device_streams *streams)
{
    const struct cuda_api *call = gpu_api(streams->gpu);
    CUresult error = calm_begin(call);
    if (!error) {
        error = call->cuStreamQuery(streams->side[STREAM_OUT].stream);
        calm_end();
    }
    return error && error != CUDA_ERROR_NOT_READY ? streams_failed(streams, "cuStreamQuery", error)
                                                  : 0;
}

/* ---- memory ---- */

/* Host memory is not registered: on stderr, and for tutti_explain, once in a world. */
static void tell_plain(struct device_streams *streams, const struct pin *pin)
{
    struct world *world = streams->comm->world;
    char line[700];
    struct text t = TEXT_IN(line);
    if (!pin || staging_registered(pin))
        return;
    pthread_mutex_lock(&world->lock);
    bool told = world->told_plain;
    world->told_plain = true;
    pthread_mutex_unlock(&world->lock);
    if (told)
        return;
    text_clear(&t);
    text_add(&t,
             "tutti: rank %d, %s; copies between this GPU and host memory take several times as "
             "long, and no deadline ends one. A container, or the kernel, must let the driver pin "
             "shared memory; `tutti doctor` tries it\n",
             world->rank, streams->words);
    say(line, t.used);
    comm_explain(streams->comm, "%.*s", (int)(t.used - 1), line);
}

int streams_pipeline(struct device_streams *streams, uint32_t p, void *at, size_t bytes,
                     uint64_t number)
{
    if (staging_is(streams->pipelines[p], at, bytes, number))
        return 0;
    struct text why = TEXT_IN(streams->words);
    int r = streams_enter(streams);
    if (r < 0)
        return r;
    text_clear(&why);
    staging_unpin(streams->pipelines[p]);
    streams->pipelines[p] = NULL;
    if (p == streams->comm->watch.me)
        gpu_near(streams->gpu, at, bytes);
    r = staging_pin(streams->gpu, at, bytes, number, &streams->pipelines[p], &why);
    gpu_leave(streams->gpu);
    if (r == 0)
        tell_plain(streams, streams->pipelines[p]);
    return r;
}

int streams_bounce(struct device_streams *streams, int side, size_t bytes)
{
    struct text why = TEXT_IN(streams->words);
    if (streams->bounce[side].bytes >= bytes)
        return 0;
    int r = streams_enter(streams);
    if (r < 0)
        return r;
    text_clear(&why);
    r = staging_bounce(streams->gpu, &streams->bounce[side], bytes, &why);
    gpu_leave(streams->gpu);
    if (r == 0)
        tell_plain(streams, streams->bounce[side].pin);
    return r;
}

/* Memory for a single large operation is not kept. */
static void streams_trim(struct device_streams *streams)
{
    for (int s = 0; s < 2; s++)
        if (streams->bounce[s].bytes > BOUNCE_PINNED_MOST)
            staging_bounce_free(&streams->bounce[s]);
}

void streams_ended(struct device_streams *streams)
{
    streams->busy = false;
    streams_trim(streams);
}

/* No word tells when a device ends, so this looks again and again. An answer that is neither
 * success nor "not ready" comes from a broken context, whose copies have ended in any case. */
void streams_drain(struct device_streams *streams)
{
    const struct cuda_api *call = gpu_api(streams->gpu);
    uint64_t began = clock_ns();
    if (!streams->busy || streams->given_up)
        return;
    if (gpu_enter(streams->gpu, NULL) < 0)
        return;
    for (int s = 0; s < 2;) {
        if (call->cuStreamQuery(streams->side[s].stream) != CUDA_ERROR_NOT_READY) {
            s++;
            continue;
        }
        if (clock_ns() - began >= BACKOFF_NS) {
            streams->given_up = true;
            comm_pipeline_lose(streams->comm);
            break;
        }
        nanosleep(&(struct timespec){ 0, BACKOFF_NAP_NS }, NULL);
    }
    gpu_leave(streams->gpu);
    streams->busy = streams->given_up;
}
