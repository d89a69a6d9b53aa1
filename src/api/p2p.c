/* send, recv, probe: check the arguments, write the journal, call p2p/. All checks are done before
 * anything is touched. Without sends and receives under way as work, a call goes straight through
 * p2p/, without a lock and with one read of the time stamp counter, unless it waits. */
#define TUTTI_NO_SITES
#include "api/device.h"
#include "engine/guard.h"
#include "engine/request.h"
#include "base/clock.h"
#include "fold/fold.h"
#include "os/caller.h"
#include "watch/journal.h"

#include <limits.h>

static int check_peer(struct tutti_comm *comm, const struct post *post)
{
    const char *name = post->kind == KIND_SEND ? "to" : "from";
    bool any = post->kind != KIND_SEND;
    if ((post->peer < 0 || (uint32_t)post->peer >= comm->watch.size)
        && !(any && post->peer == TUTTI_ANY))
        return guard_refuse(comm, post->kind, post->site, "%s is %d; there are 0 to %u%s", name,
                            post->peer, comm->watch.size - 1, any ? ", and TUTTI_ANY" : "");
    if (post->tag < 0 && !(any && post->tag == TUTTI_ANY))
        return guard_refuse(comm, post->kind, post->site, "tag %d is negative%s", post->tag,
                            any ? " and not TUTTI_ANY" : "");
    return 0;
}

static int check_buffer(struct tutti_comm *comm, struct post *post, const void *buf)
{
    post->width = fold_type_size(post->type);
    if (post->width == 0)
        return guard_refuse(comm, post->kind, post->site, "%d is no tutti_type", (int)post->type);
    if (post->count > PTRDIFF_MAX / post->width)
        return guard_refuse(comm, post->kind, post->site, "count %zu is too large", post->count);
    if (post->count && !buf)
        return guard_refuse(comm, post->kind, post->site, "the buffer is NULL with count %zu",
                            post->count);
    post->bytes = post->count * post->width;
    return device_refuse(comm, post->kind, post->site, "the buffer", buf, post->bytes);
}

static int call_check(struct tutti_comm *comm, struct post *post, const void *buf,
                      const tutti_call *call)
{
    int r = check_peer(comm, post);
    if (r == 0 && post->kind != KIND_PROBE)
        r = check_buffer(comm, post, buf);
    if (r == 0 && call && call->stream)
        r = guard_refuse(comm, post->kind, post->site,
                         "call.stream is for device buffers; this function takes host memory");
    return r < 0 || !call ? r : guard_call(comm, post->kind, post->site, call);
}

static int call_run(struct tutti_comm *comm, struct post *post, const tutti_call *call)
{
    int r = p2p_open(comm);
    if (r < 0)
        return guard_fail(comm, post->kind, post->site, r,
                          "no memory for sends and receives between %u ranks", comm->watch.size);
    r = p2p_check(comm->p2p, post);
    if (r < 0)
        return r;
    bool work = (call && call->work) || p2p_under_way(comm);
    return work ? request_start(comm, post, call) : p2p_run(comm->p2p, post);
}

/* Ends the call's record, and counts it. waited: since when; 0: it has not. */
static inline __attribute__((always_inline))
void call_recorded(struct watch *w, int result, size_t bytes, uint64_t waited, uint64_t tick)
{
    journal_end(w, result, tick);
    journal_count(w, FIGURE_OPERATIONS, 1);
    journal_count(w, FIGURE_BYTES, bytes);
    if (waited) {
        journal_count(w, FIGURE_WAITS, 1);
        journal_count(w, FIGURE_WAIT_TICKS, tick - waited);
    }
}

/* With a collective under way as work, the journal belongs to the thread that carries that on: this
 * call is then in no table. noted: when its record was begun; 0: it has none yet. */
static int call_letter(uint32_t site, struct post *post, const void *buf, tutti_comm *comm,
                       const tutti_call *call, uint64_t noted)
{
    CALLER_KEPT;
    struct watch *w = &comm->watch;
    post->site = site;
    int r = call_check(comm, post, buf, call);
    if (r == 0)
        r = guard_operation(comm, post->kind, post->site);
    if (r < 0) {
        if (noted)
            journal_end(w, r, clock_tick());
        return guard_leave(comm, r);
    }
    post->timeout_ns = guard_timeout(comm, call);
    bool journal = noted || !(load_acquire32(&w->attention) & ATTENTION_WORK);
    uint64_t tick = noted ? noted : clock_tick();
    if (journal && !noted)
        request_journal(w, post, tick);
    r = call_run(comm, post, call);
    if (journal) {
        call_recorded(w, r, post->bytes, post->waited ? tick : 0,
                      post->waited || r < 0 ? clock_tick() : tick);
    }
    return guard_leave(comm, r);
}

/* True: a small message takes the fast path, without a post. The comm is whole, nothing asks for
 * attention, no message is under way. */
static inline bool fast_letter(const struct tutti_comm *comm, const tutti_call *call)
{
    return !call && comm->p2p && !load_acquire32(&comm->watch.attention) && !p2p_under_way(comm);
}

/* True: the arguments except the tag are good, and no check is left that needs a text. */
static inline bool fast_plain(const struct tutti_comm *comm, struct note *note, const void *buf,
                              size_t count)
{
    note->width = fold_type_size(note->type);
    note->bytes = count * note->width;
    return (uint32_t)note->peer < comm->watch.size && note->width && count <= UINT32_MAX
        && (!count || (buf && (device_host_known(comm->world, buf) || !driver_loaded())));
}

/* Ends a call that went well. */
static inline int fast_done(struct tutti_comm *comm, enum kind kind, const struct note *note,
                            size_t count)
{
    struct watch *w = &comm->watch;
    uint64_t tick = clock_tick();
    comm->engine.calls[kind]++;
    request_journal_note(w, kind, note, count, tick);
    call_recorded(w, 0, note->bytes, 0, tick);
    return guard_leave(comm, 0);
}

static int send_slow(uint32_t site, const void *buf, size_t count, tutti_type type, int to, int tag,
                     tutti_comm *comm, const tutti_call *call)
{
    struct post post;
    post_describe(&post, KIND_SEND, to, tag, type, count);
    post.from = buf;
    return call_letter(site, &post, buf, comm, call, 0);
}

static int recv_slow(uint32_t site, void *buf, size_t count, tutti_type type, int from, int tag,
                     tutti_message *got, tutti_comm *comm, const tutti_call *call, uint64_t noted)
{
    struct post post;
    post_describe(&post, KIND_RECV, from, tag, type, count);
    post.to = buf;
    post.got = got;
    return call_letter(site, &post, buf, comm, call, noted);
}

/* Where ranks share CPUs: begins the record, and yields for a letter before the long way. It is not
   a part of the fast path: as one it cost a ping-pong of 4 bytes between two CPUs 8 %. */
static __attribute__((noinline)) int recv_soon(struct tutti_comm *comm, const struct note *note,
                                               void *buf, size_t count, tutti_message *got)
{
    struct watch *w = &comm->watch;
    uint64_t noted = 0;
    if (p2p_well(comm->p2p, TUTTI_ANY) && match_none(comm->p2p, note)) {
        noted = clock_tick();
        request_journal_note(w, KIND_RECV, note, count, noted);
        if (match_soon(comm->p2p, note, noted) && match_now(comm->p2p, note, buf, got)) {
            comm->engine.calls[KIND_RECV]++;
            call_recorded(w, 0, note->bytes, noted, clock_tick());
            return guard_leave(comm, 0);
        }
    }
    return recv_slow(note->site, buf, count, note->type, note->peer, note->tag, got, comm, NULL,
                     noted);
}

int tutti_send_at(const char *site, const void *buf, size_t count, tutti_type type, int to, int tag,
                  tutti_comm *comm, const tutti_call *call)
{
    guard_clear(call);
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    struct note note = { .peer = to, .tag = tag, .type = type, .site = guard_site(comm, site) };
    if (fast_letter(comm, call) && tag >= 0 && fast_plain(comm, &note, buf, count)
        && send_now(comm->p2p, &note, buf))
        return fast_done(comm, KIND_SEND, &note, count);
    return send_slow(note.site, buf, count, type, to, tag, comm, call);
}

int tutti_recv_at(const char *site, void *buf, size_t count, tutti_type type, int from, int tag,
                  tutti_message *got, tutti_comm *comm, const tutti_call *call)
{
    guard_clear(call);
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    struct note note = { .peer = from, .tag = tag, .type = type, .site = guard_site(comm, site) };
    bool fast = fast_letter(comm, call) && (tag >= 0 || tag == TUTTI_ANY)
        && fast_plain(comm, &note, buf, count);
    if (fast && p2p_well(comm->p2p, TUTTI_ANY) && match_now(comm->p2p, &note, buf, got))
        return fast_done(comm, KIND_RECV, &note, count);
    if (fast && !comm->watch.budget.spin_ticks)
        return recv_soon(comm, &note, buf, count, got);
    return recv_slow(note.site, buf, count, type, from, tag, got, comm, call, 0);
}

int tutti_probe_at(const char *site, int from, int tag, tutti_message *got, tutti_comm *comm,
                   const tutti_call *call)
{
    struct post post;
    guard_clear(call);
    int r = guard_enter(comm);
    if (r < 0)
        return r;
    post_describe(&post, KIND_PROBE, from, tag, TUTTI_U8, 0);
    post.got = got;
    return call_letter(guard_site(comm, site), &post, NULL, comm, call, 0);
}

int tutti_send(const void *buf, size_t count, tutti_type type, int to, int tag, tutti_comm *comm,
               const tutti_call *call)
{
    return tutti_send_at(NULL, buf, count, type, to, tag, comm, call);
}

int tutti_recv(void *buf, size_t count, tutti_type type, int from, int tag, tutti_message *got,
               tutti_comm *comm, const tutti_call *call)
{
    return tutti_recv_at(NULL, buf, count, type, from, tag, got, comm, call);
}

int tutti_probe(int from, int tag, tutti_message *got, tutti_comm *comm, const tutti_call *call)
{
    return tutti_probe_at(NULL, from, tag, got, comm, call);
}
