/* One file that shows itself: the operations as JSON in it, and a script that draws them. Texts
 * that many operations have in common stand in one list. */
#include "cli/json.h"
#include "cli/trace.h"
#include "cli/trace_page.h"

#include "base/error.h"
#include "coll/algorithms.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK_BACK = 512, TEXT_ROOM = 1024 };

/* at[0 … n): what has been written; a text that was written LOOK_BACK texts ago or more may come
 * again. */
struct texts { char **at; size_t n, room; };

static size_t number_of(struct texts *x, const char *s)
{
    for (size_t i = x->n; i > 0 && x->n - i < LOOK_BACK; i--)
        if (!strcmp(x->at[i - 1], s))
            return i - 1;
    if (x->n == x->room) {
        size_t room = x->room ? 2 * x->room : 256;
        char **more = realloc(x->at, room * sizeof *more);
        if (!more)
            return 0;
        x->at = more;
        x->room = room;
    }
    x->at[x->n] = strdup(s);
    return x->at[x->n] ? x->n++ : 0;
}

static long long since(const struct trace *t, uint64_t ns)
{
    return ns ? (long long)(ns > t->begin_ns ? ns - t->begin_ns : 0) : -1;
}

/* As the page's script names the places: rank, comm, number, name, site, algorithm, times of begin,
 * arrival, last arrival, the last rank, end, result. */
static void put_op(FILE *out, const struct trace *t, const struct trace_op *o, struct texts *x)
{
    const struct history *h = o->comm;
    struct history_op op = *o->op;
    char room[TEXT_ROOM];
    struct text text = TEXT_IN(room);
    uint64_t number = op.number;
    int last = op.last >= 0 && (uint32_t)op.last < h->size && h->rank[op.last].rank != RANK_NOBODY
        ? (int)h->rank[op.last].rank : -1;
    op.number = 0;                       /* the page adds it */
    text_clear(&text);
    trace_add_name(&text, &op);
    fprintf(out, "[%u,%td,%llu,%zu,", h->rank[o->member].rank, h - t->comm,
            (unsigned long long)number, number_of(x, room));
    text_clear(&text);
    trace_add_site(&text, t, &op);
    fprintf(out, "%zu,", number_of(x, room));
    if (op.algorithm)
        fprintf(out, "%zu,", number_of(x, algorithm_name(op.algorithm)));
    else
        fputs("-1,", out);
    fprintf(out, "%lld,%lld,%lld,%d,%lld,", since(t, op.began_ns), since(t, op.arrived_ns),
            last >= 0 ? since(t, op.last_ns) : -1, last, since(t, op.ended_ns));
    if (op.result < 0)
        fprintf(out, "%zu]", number_of(x, error_name(op.result)));
    else
        fputs("-1]", out);
}

static void put_rank(FILE *out, const struct rank_state *s)
{
    char room[TEXT_ROOM];
    struct text text = TEXT_IN(room);
    text_clear(&text);
    rank_states_add_state(&text, s);
    if (s->process.pid)
        fprintf(out, "[\"rank %u\",\"%d\",", s->rank, (int)s->process.pid);
    else
        fprintf(out, "[\"rank %u\",\"-\",", s->rank);
    json_quote(out, s->program);
    fputc(',', out);
    json_quote(out, rank_condition_name(s->condition));
    fputc(',', out);
    json_quote(out, room);
    fputc(']', out);
}

/* Lines that somebody else wrote. */
static void put_lines(FILE *out, const char *name, const char *lines)
{
    char room[TEXT_ROOM];
    struct text text = TEXT_IN(room);
    fprintf(out, ",\n\"%s\":[", name);
    for (const char *s = lines; s && *s;) {
        size_t n = strcspn(s, "\n");
        text_clear(&text);
        text_add_foreign(&text, s, n);
        json_quote(out, room);
        s += n + (s[n] == '\n');
        fputs(*s ? "," : "", out);
    }
    fputc(']', out);
}

static void put_data(FILE *out, const struct trace *t, const char *head, struct texts *x)
{
    char room[64];
    struct text text = TEXT_IN(room);
    fputs("{\"head\":", out);
    json_quote(out, head);
    fputs(",\"job\":", out);
    json_quote(out, t->states.job);
    fprintf(out, ",\"span\":%lld,\"uncertain\":%d", since(t, t->held->now.ns),
            HISTORY_UNCERTAIN_NS);
    put_lines(out, "report", t->held->box.report);
    put_lines(out, "host", t->held->box.host);
    fputs(",\n\"comms\":[", out);
    for (uint32_t i = 0; i < t->comms; i++) {
        text_clear(&text);
        trace_add_comm(&text, &t->comm[i]);
        fprintf(out, "%s\"%s\"", i ? "," : "", room);
    }
    fputs("],\"sizes\":[", out);
    for (uint32_t i = 0; i < t->comms; i++)
        fprintf(out, "%s%u", i ? "," : "", t->comm[i].size);
    fputs("],\n\"ranks\":[", out);
    for (uint32_t r = 0; r < t->states.size; r++) {
        fputs(r ? ",\n" : "", out);
        put_rank(out, &t->states.rank[r]);
    }
    fputs("],\n\"ops\":[", out);
    for (size_t i = 0; i < t->n; i++) {
        fputs(i ? ",\n" : "\n", out);
        put_op(out, t, &t->op[i], x);
    }
    fputs("],\n\"texts\":[", out);
    for (size_t i = 0; i < x->n; i++) {
        fputs(i ? ",\n" : "", out);
        json_quote(out, x->at[i]);
    }
    fputs("]}\n", out);
}

void trace_html(FILE *out, const struct trace *t, const char *head)
{
    struct texts x = { 0 };
    fputs("<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>tutti</title>\n"
          "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; "
          "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
          "<script type=application/json id=data>\n", out);
    put_data(out, t, head, &x);
    fputs("</script>\n", out);
    for (const char *const *line = trace_page; *line; line++)
        fputs(*line, out);
    for (size_t i = 0; i < x.n; i++)
        free(x.at[i]);
    free(x.at);
}
