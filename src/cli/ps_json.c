/* For programs. The names below are a promise: PS_SCHEMA is raised when one goes or changes its
 * meaning, not when one is added. */
#include "cli/json.h"
#include "cli/ps.h"

#include "fold/fold.h"

#include <string.h>

/* "name":"text", */
static void pair(FILE *out, const char *name, const char *s)
{
    fprintf(out, "\"%s\":", name);
    json_quote(out, s);
    fputc(',', out);
}

static unsigned long long number(uint64_t n) { return n; }

/* Bytes of one rank's buffer; false: the count is none of elements, or is not known. */
static bool operation_bytes(const struct op_record *d, uint64_t *bytes)
{
    size_t one = fold_type_size((tutti_type)fingerprint_type(d->descriptor));
    *bytes = d->count * one;
    return one && d->count && d->count <= UINT64_MAX / one
        && kind_data(fingerprint_kind(d->descriptor));
}

static void json_deed(FILE *out, const struct rank_state *s)
{
    const struct op_record *d = &s->doing.operation;
    enum kind kind = fingerprint_kind(d->descriptor);
    uint64_t bytes;
    pair(out, "kind", kind_name(kind));
    pair(out, "comm", s->comm[0] ? s->comm : "world");
    pair(out, "site", s->site);
    if (kind_collective(kind))
        fprintf(out, "\"number\":%llu,", number(d->number));
    if (operation_bytes(d, &bytes)) {
        pair(out, "type", fold_type_name((tutti_type)fingerprint_type(d->descriptor)));
        fprintf(out, "\"count\":%llu,\"bytes\":%llu,", number(d->count), number(bytes));
    }
    if (kind_reduces(kind))
        pair(out, "op", fold_op_name((tutti_op)fingerprint_op(d->descriptor)));
    if (!kind_collective(kind) && d->about)
        fprintf(out, "\"peer\":%u,", d->about - 1);
    fprintf(out, "\"under_way\":%s,\"work\":%s,\"seconds\":%.6f", s->doing.ended ? "false" : "true",
            s->work ? "true" : "false", (double)s->doing.age_ns / 1e9);
}

static void json_rank(FILE *out, const struct rank_state *s)
{
    fprintf(out, "{\"rank\":%u,\"pid\":", s->rank);
    if (s->process.pid)
        fprintf(out, "%d,", (int)s->process.pid);
    else
        fputs("null,", out);
    pair(out, "program", s->program);
    pair(out, "state", rank_condition_name(s->condition));
    fprintf(out, "\"waits\":%s,\"moved\":%s,\"cpu_seconds\":%.6f,",
            rank_state_waits(s) ? "true" : "false", s->moved ? "true" : "false",
            (double)s->process.cpu_ns / 1e9);
    if (s->percent >= 0)
        fprintf(out, "\"cpu_percent\":%d,", s->percent);
    if (s->condition == RANK_DEAD && s->status)
        fprintf(out, "\"wait_status\":%u,", s->status >> 1);
    fprintf(out, "\"operations\":%llu,\"bytes\":%llu,\"wait_seconds\":%.6f,\"operation\":",
            number(s->operations), number(s->bytes), (double)s->wait_ns / 1e9);
    if (s->doing.called) {
        fputc('{', out);
        json_deed(out, s);
        fputs("}}", out);
    } else
        fputs("null}", out);
}

static void json_job(FILE *out, const struct seen_job *job)
{
    const struct rank_states *m = &job->m;
    fprintf(out, "{\"pid\":%d,\"uid\":%u,", (int)job->pid, (unsigned)job->uid);
    if (job->why[0]) {
        char why[4 * sizeof job->why];
        struct text t = TEXT_IN(why);
        text_clear(&t);
        text_add_foreign(&t, job->why, sizeof job->why);
        fputs("\"error\":", out);
        json_quote(out, why);
        fputc('}', out);
        return;
    }
    pair(out, "job", m->job);
    pair(out, "tutti", m->version);
    pair(out, "state", job_status_name(m->status));
    pair(out, "failure", m->failed);
    fprintf(out, "\"size\":%u,\"comms\":%u,\"seconds\":%.6f,", m->size, m->comms,
            (double)m->age_ns / 1e9);
    fprintf(out, "\"oldest_wait_seconds\":%.6f,\"ranks\":[", (double)m->oldest_ns / 1e9);
    for (uint32_t r = 0; r < m->size; r++) {
        fputs(r ? ",\n  " : "\n  ", out);
        json_rank(out, &m->rank[r]);
    }
    fputs("]}", out);
}

void ps_json(FILE *out, const struct seen_jobs *j)
{
    fprintf(out, "{\"schema\":\"tutti-ps\",\"version\":%d,\"status\":%d,\"jobs\":[", PS_SCHEMA,
            ps_status(j));
    for (size_t i = 0; i < j->n; i++) {
        fputs(i ? ",\n " : "\n ", out);
        json_job(out, &j->at[i]);
    }
    fputs("]}\n", out);
}

/* ---- metrics ---- */

enum metric_of { OF_JOB, OF_RANK };
struct metric {
    const char *name, *type, *help;
    enum metric_of of;
    double (*value)(const struct rank_states *m, const struct rank_state *s);
};

static double state_of(const struct rank_states *m, const struct rank_state *s)
{
    (void)s;
    return m->status;
}
static double size_of(const struct rank_states *m, const struct rank_state *s)
{
    (void)s;
    return m->size;
}
static double oldest_of(const struct rank_states *m, const struct rank_state *s)
{
    (void)s;
    return (double)m->oldest_ns / 1e9;
}
static double alive_of(const struct rank_states *m, const struct rank_state *s)
{
    (void)m;
    return s->condition != RANK_DEAD && s->condition != RANK_LEFT && s->condition != RANK_ABSENT;
}
static double waiting_of(const struct rank_states *m, const struct rank_state *s)
{
    (void)m;
    return rank_state_waits(s) ? (double)s->doing.age_ns / 1e9 : 0;
}
static double cpu_of(const struct rank_states *m, const struct rank_state *s)
{
    (void)m;
    return (double)s->process.cpu_ns / 1e9;
}
static double operations_of(const struct rank_states *m, const struct rank_state *s)
{
    (void)m;
    return (double)s->operations;
}
static double bytes_of(const struct rank_states *m, const struct rank_state *s)
{
    (void)m;
    return (double)s->bytes;
}
static double wait_of(const struct rank_states *m, const struct rank_state *s)
{
    (void)m;
    return (double)s->wait_ns / 1e9;
}

static const struct metric metrics[] = {
    { "tutti_job_state", "gauge", "0 fine, 1 stuck, 2 a rank is dead, 3 failed", OF_JOB, state_of },
    { "tutti_job_ranks", "gauge", "Ranks of the job", OF_JOB, size_of },
    { "tutti_job_oldest_wait_seconds", "gauge", "Age of the oldest wait", OF_JOB, oldest_of },
    { "tutti_rank_alive", "gauge", "1 if the rank takes part", OF_RANK, alive_of },
    { "tutti_rank_waiting_seconds", "gauge", "Age of the wait it is in", OF_RANK, waiting_of },
    { "tutti_rank_cpu_seconds", "counter", "CPU time of its process", OF_RANK, cpu_of },
    { "tutti_rank_operations", "counter", "Operations on comms that are open", OF_RANK,
      operations_of },
    { "tutti_rank_bytes", "counter", "Bytes in these", OF_RANK, bytes_of },
    { "tutti_rank_wait_seconds", "counter", "Time waited in these", OF_RANK, wait_of },
};

static void metric_add(FILE *out, const struct metric *metric, const struct seen_job *job)
{
    for (uint32_t r = 0; r < (metric->of == OF_RANK ? job->m.size : 1); r++) {
        fprintf(out, "%s{job=", metric->name);
        json_quote(out, job->m.job);
        fprintf(out, ",inode=\"%llu\"", number(job->inode));
        if (metric->of == OF_RANK)
            fprintf(out, ",rank=\"%u\"", r);
        fprintf(out, "} %.15g\n", metric->value(&job->m, &job->m.rank[r]));
    }
}

void ps_prometheus(FILE *out, const struct seen_jobs *j)
{
    fprintf(out, "# HELP tutti_schema_version Version of these names\n"
                 "# TYPE tutti_schema_version gauge\ntutti_schema_version %d\n", PS_SCHEMA);
    fprintf(out, "# HELP tutti_status Exit status of tutti ps\n# TYPE tutti_status gauge\n"
                 "tutti_status %d\n", ps_status(j));
    for (size_t k = 0; k < sizeof metrics / sizeof metrics[0]; k++) {
        const struct metric *metric = &metrics[k];
        bool counter = !strcmp(metric->type, "counter");
        char name[64];
        struct metric named = *metric;
        snprintf(name, sizeof name, "%s%s", metric->name, counter ? "_total" : "");
        named.name = name;
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, metric->help, name, metric->type);
        for (size_t i = 0; i < j->n; i++)
            if (!j->at[i].why[0])
                metric_add(out, &named, &j->at[i]);
    }
}
