/* Chrome's trace events, which Perfetto (https://ui.perfetto.dev) and chrome://tracing open: a track
 * a rank, a slice an operation, within it one for the wait for the last rank, and an arrow from the
 * last arrival to each rank that it let go. Work under way may overlap other operations, which
 * slices of one track cannot: those go to further tracks of the rank. */
#include "cli/json.h"
#include "cli/trace.h"

#include "base/error.h"
#include "coll/algorithms.h"

#include <stdlib.h>

enum { LANES = 16, TEXT_ROOM = 1024 };

struct event { const struct trace_op *o; uint32_t lane; };

static double since(const struct trace *t, uint64_t ns)
{
    return ns > t->begin_ns ? (double)(ns - t->begin_ns) / 1e3 : 0;
}

static uint32_t world_rank(const struct trace_op *o) { return o->comm->rank[o->member].rank; }
static uint32_t track(uint32_t rank, uint32_t lane) { return 1 + rank * LANES + lane; }

static void put_text(FILE *out, const char *name, const struct text *t)
{
    fprintf(out, ",\"%s\":", name);
    json_quote(out, t->at);
}

/* The beginning of a slice. */
static void put_times(FILE *out, const struct trace *t, const struct event *e, uint64_t from,
                      uint64_t to)
{
    fprintf(out, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f",
            track(world_rank(e->o), e->lane), since(t, from), (double)(to - from) / 1e3);
}

static void put_slice(FILE *out, const struct trace *t, const struct event *e)
{
    const struct history_op *op = e->o->op;
    char room[TEXT_ROOM];
    struct text text = TEXT_IN(room);
    text_clear(&text);
    trace_add_name(&text, op);
    put_times(out, t, e, op->began_ns, trace_end(t, op));
    fputs(",\"cat\":\"operation\"", out);
    put_text(out, "name", &text);
    text_clear(&text);
    trace_add_comm(&text, e->o->comm);
    fputs(",\"args\":{\"rank\":", out);
    fprintf(out, "%u", world_rank(e->o));
    put_text(out, "comm", &text);
    text_clear(&text);
    trace_add_site(&text, t, op);
    put_text(out, "called at", &text);
    if (op->algorithm)
        fprintf(out, ",\"algorithm\":\"%s\"", algorithm_name(op->algorithm));
    if (!op->ended_ns)
        fputs(",\"under way\":true", out);
    if (op->result < 0)
        fprintf(out, ",\"result\":\"%s\"", error_name(op->result));
    if (op->last >= 0 && (uint32_t)op->last < e->o->comm->size)
        fprintf(out, ",\"last rank\":%u", e->o->comm->rank[op->last].rank);
    fputs("}}", out);
}

/* It came, and waited for the last rank; false: it did not, or nobody knows. */
static bool waited(const struct trace *t, const struct trace_op *o, uint64_t *from, uint64_t *to)
{
    const struct history_op *op = o->op;
    uint64_t end = trace_end(t, op);
    *from = op->arrived_ns;
    *to = op->last_ns;
    if (op->last < 0 && !op->ended_ns)
        *to = t->held->now.ns;           /* it waits still */
    return op->arrived_ns >= op->began_ns && op->arrived_ns && op->last != (int)o->member
        && *to > *from + HISTORY_UNCERTAIN_NS && *to <= end;
}

static void put_wait(FILE *out, const struct trace *t, const struct event *e)
{
    uint64_t from, to;
    if (!waited(t, e->o, &from, &to))
        return;
    put_times(out, t, e, from, to);
    fputs(",\"cat\":\"wait\",\"name\":\"", out);
    if (e->o->op->last >= 0 && (uint32_t)e->o->op->last < e->o->comm->size)
        fprintf(out, "wait for rank %u\"}", e->o->comm->rank[e->o->op->last].rank);
    else
        fputs("wait\"}", out);
}

/* lane: of the last rank's operation. */
static void put_arrow(FILE *out, const struct trace *t, const struct event *from,
                      const struct event *to, uint32_t *id)
{
    uint64_t begin, let_go;
    if (from == to || !waited(t, to->o, &begin, &let_go) || !to->o->op->ended_ns)
        return;
    fprintf(out, ",\n{\"ph\":\"s\",\"id\":%u,\"cat\":\"lets go\",\"name\":\"lets go\",\"pid\":1,"
            "\"tid\":%u,\"ts\":%.3f}", *id, track(world_rank(from->o), from->lane),
            since(t, to->o->op->last_ns));
    fprintf(out, ",\n{\"ph\":\"f\",\"bp\":\"e\",\"id\":%u,\"cat\":\"lets go\",\"name\":\"lets go\","
            "\"pid\":1,\"tid\":%u,\"ts\":%.3f}", (*id)++, track(world_rank(to->o), to->lane),
            since(t, let_go));
}

/* The first track of its rank on which no other slice stands there. `free`: [size][LANES], when a
 * track is free again. */
static uint32_t lane_of(const struct trace *t, const struct trace_op *o, uint64_t (*until)[LANES])
{
    uint64_t *lanes = until[world_rank(o)];
    uint32_t k = 0;
    while (k < LANES - 1 && lanes[k] > o->op->began_ns)
        k++;
    lanes[k] = trace_end(t, o->op);
    return k;
}

static void put_tracks(FILE *out, const struct trace *t, uint64_t (*until)[LANES])
{
    for (uint32_t r = 0; r < t->states.size; r++)
        for (uint32_t k = 0; k < LANES && (k == 0 || until[r][k]); k++) {
            fprintf(out, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_sort_index\","
                    "\"args\":{\"sort_index\":%u}}", track(r, k), track(r, k));
            fprintf(out, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\","
                    "\"args\":{\"name\":\"rank %u%s\"}}", track(r, k), r, k ? ", beside" : "");
        }
}

/* The event of an operation: those of a comm are found by where they stand in it. */
static void put_arrows(FILE *out, const struct trace *t, const struct event *events)
{
    uint32_t id = 1;
    for (uint32_t c = 0; c < t->comms; c++) {
        const struct history *h = &t->comm[c];
        const struct event **of = calloc(h->n + 1, sizeof *of);
        for (size_t i = 0; of && i < t->n; i++)
            if (events[i].o->comm == h)
                of[events[i].o->op - h->at] = &events[i];
        for (size_t i = 0; of && i < t->n; i++) {
            const struct history_op *op = events[i].o->op;
            if (events[i].o->comm != h || op->last < 0 || (uint32_t)op->last >= h->size)
                continue;
            const struct history_op *last = history_find(&h->rank[op->last], op->number);
            if (last && of[last - h->at])
                put_arrow(out, t, of[last - h->at], &events[i], &id);
        }
        free(of);
    }
}

void trace_perfetto(FILE *out, const struct trace *t, const char *head)
{
    struct event *events = calloc(t->n + 1, sizeof *events);
    uint64_t (*until)[LANES] = calloc(t->states.size, sizeof *until);
    fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"tutti\":", out);
    json_quote(out, t->states.version);
    fputs(",\"job\":", out);
    json_quote(out, head);
    fprintf(out, ",\"times are right to\":\"%d ns\"},\n\"traceEvents\":[\n", HISTORY_UNCERTAIN_NS);
    fputs("{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":", out);
    json_quote(out, t->states.job[0] ? t->states.job : "job");
    fputs("}}", out);
    for (size_t i = 0; events && until && i < t->n; i++) {
        events[i] = (struct event){ &t->op[i], lane_of(t, &t->op[i], until) };
        put_slice(out, t, &events[i]);
        put_wait(out, t, &events[i]);
    }
    if (events && until) {
        put_tracks(out, t, until);
        put_arrows(out, t, events);
    }
    fputs("\n]}\n", out);
    free(until);
    free(events);
}
