/* Five lines at most, continued where they are wider than a screen: the headline; who waits; for
 * whom; who keeps it, and what that one does; where that is, or how to look further. Cost: some
 * reads of /proc for one process. */
#include "cli/ps.h"
#include "cli/why_stack.h"

#include "os/proc_files.h"

#include <string.h>

enum { WHY_LINE = 2048, WHY_BELOW = 6 };

static void line_of(FILE *out, struct text *t, const char *what, const struct rank_states *m,
                    const int *ranks, int n)
{
    text_clear(t);
    text_add(t, "  %s", what);
    ps_add_class(t, m, ranks, n);
    ps_fold(out, t->at, WHY_BELOW);
}

/* The same of ranks that wait: with the first of their deadlines. */
static void waits_of(FILE *out, struct text *t, const char *what, const struct rank_states *m,
                     const int *ranks, int n)
{
    uint64_t left = UINT64_MAX;
    for (int i = 0; i < n; i++)
        if (m->rank[ranks[i]].left_ns && m->rank[ranks[i]].left_ns < left)
            left = m->rank[ranks[i]].left_ns;
    text_clear(t);
    text_add(t, "  %s", what);
    ps_add_class(t, m, ranks, n);
    if (left != UINT64_MAX) {
        text_add(t, "; deadline in ");
        text_add_duration(t, left - 1);
    }
    ps_fold(out, t->at, WHY_BELOW);
}

/* The keepers that do what most of them do: one sentence says it of all. */
static int alike_keepers(const struct rank_states *m, const struct blockers *k, int *ranks)
{
    struct classes c;
    int best = 0, found = 0;
    uint8_t keeps[RANKS_MAX] = { 0 };
    for (int i = 0; i < k->keepers_n; i++)
        keeps[k->keepers[i]] = 1;
    if (rank_states_classes(m, &c) != 0)
        return 0;
    for (int class = 0; class < c.n; class++) {
        int n = 0;
        for (int i = c.begin[class]; i < c.begin[class + 1]; i++)
            n += keeps[c.ranks[i]];
        if (n > found) {
            found = n;
            best = class;
        }
    }
    found = 0;
    for (int i = c.begin[best]; i < c.begin[best + 1]; i++)
        if (keeps[c.ranks[i]])
            ranks[found++] = c.ranks[i];
    classes_drop(&c);
    return found;
}

static bool any_moved(const struct rank_states *m)
{
    for (uint32_t r = 0; r < m->size; r++)
        if (m->rank[r].moved)
            return true;
    return false;
}

static void say_where(FILE *out, struct text *t, const struct rank_states *m,
                      const struct rank_state *s)
{
    text_clear(t);
    text_add(t, "  there: %s, pid %d, ", s->program[0] ? s->program : "?", (int)s->process.pid);
    size_t before = t->used;
    char room[256];
    struct text kernel = TEXT_IN(room);
    text_clear(&kernel);
    if (s->process.kernel)
        text_add(&kernel, "%s", s->process.kernel);
    else if (s->condition != RANK_STOPPED)
        proc_thread_wchan(&kernel, s->process.pid, s->process.tid);
    if (kernel.used)
        text_add_foreign(t, room, sizeof room);
    const char *state = s->condition == RANK_ABSENT && s->process.state
        ? s->process.state
        : rank_condition_name(s->condition);
    if (t->used == before)
        text_add(t, "%s", strcmp(state, "running") ? state : "in its own instructions");
    const char *pace = any_moved(m) ? "; ranks of the job make progress"
                                    : "; no rank makes progress now";
    text_add(t, "%s", s->process.kernel ? "" : pace);
    ps_fold(out, t->at, WHY_BELOW);
}

static void say_further(FILE *out, const struct rank_state *s)
{
    int pid = (int)s->process.pid;
    if (s->process.kernel)
        return;                          /* of a black box: the process is no more */
    if (s->condition == RANK_STOPPED)
        fprintf(out, "  to go on: kill -CONT %d\n", pid);
    else if (!strncmp(s->program, "python", 6))
        fprintf(out, "  look further: py-spy dump --pid %d; gdb -p %d\n", pid, pid);
    else
        fprintf(out, "  look further: gdb -p %d\n", pid);
}

static void say_blockers(FILE *out, struct text *t, const struct rank_states *m,
                         const struct blockers *k)
{
    int ranks[RANKS_MAX], n = alike_keepers(m, k, ranks);
    if (k->waiters_n)
        waits_of(out, t, "waiting: ", m, k->waiters, k->waiters_n);
    char what[STATE_KEY + 64];
    if (k->over_n) {
        snprintf(what, sizeof what, k->over_n == 1 ? "for: " : "for, over %d waits: ", k->over_n);
        waits_of(out, t, what, m, &k->over[k->over_n - 1], 1);
    }
    if (k->kind == BLOCKED_THERE && !n)
        fprintf(out, "  all ranks have come to it: it is being carried out\n");
    if (k->kind == BLOCKED_OPEN && !n)
        fprintf(out, "  whom it waits for is not known: nobody in particular\n");
    if (k->kind == BLOCKED_KEY && !n) {
        text_clear(t);
        text_add(t, "  kept by: key \"%s\", which no rank has set, and no other is free to set",
                 m->rank[k->key].key);
        ps_fold(out, t->at, WHY_BELOW);
    }
    if (!n)
        return;
    if (k->kind == BLOCKED_CIRCLE) {
        text_clear(t);
        text_add(t, "  a circle: that waits in its turn for ");
        phrase_ranks(t, k->keepers, k->keepers_n);
        ps_fold(out, t->at, WHY_BELOW);
        say_further(out, &m->rank[k->over_n ? k->over[k->over_n - 1] : ranks[0]]);
        return;
    }
    snprintf(what, sizeof what, "kept by: ");
    if (k->kind == BLOCKED_KEY)
        snprintf(what, sizeof what, "kept by: key \"%s\", which no rank has set; free to set it: ",
                 m->rank[k->key].key);
    else if (n < k->keepers_n)
        snprintf(what, sizeof what, "kept by %d ranks, among them ", k->keepers_n);
    line_of(out, t, what, m, ranks, n);
    const struct rank_state *s = &m->rank[ranks[0]];
    if (!s->process.pid)
        return;
    /* five lines with the headline */
    if (!k->over_n)
        say_where(out, t, m, s);
    say_further(out, s);
}

/* The rank whose stack tells most: who keeps the others, or else who waits. */
static const struct rank_state *say_whose(const struct rank_states *m, const struct blockers *k)
{
    int ranks[RANKS_MAX], n = alike_keepers(m, k, ranks);
    return n ? &m->rank[ranks[0]] : k->waiters_n ? &m->rank[k->waiters[0]] : NULL;
}

void why_job(FILE *out, const struct seen_job *job, bool stack)
{
    char line[WHY_LINE];
    struct text t = TEXT_IN(line);
    const struct rank_states *m = &job->m;
    text_clear(&t);
    if (job->why[0]) {
        ps_line(out, job);
        return;
    }
    text_add(&t, "job %s: %u ranks, %s", m->job[0] ? m->job : "without a name", m->size,
             job_status_name(m->status));
    if (m->failed[0])
        text_add(&t, " (%s)", m->failed);
    if (job->blockers.kind == BLOCKED_NONE)
        text_add(&t, ": nobody waits");
    if (job->blockers.kind == BLOCKED_JOIN) {
        text_add(&t, ": ranks wait in tutti_init for others to join, for ");
        text_add_duration(&t, m->age_ns);
    }
    ps_fold(out, line, 4);
    say_blockers(out, &t, m, &job->blockers);
    const struct rank_state *s = stack ? say_whose(m, &job->blockers) : NULL;
    if (s && s->process.pid)
        why_stack(out, s);
}

int why_write(FILE *out, const char *only, uint64_t stuck_ns)
{
    struct seen_jobs j;
    int error = jobs_look_twice(&j, only, stuck_ns);
    if (error)
        return error;
    for (size_t i = 0; i < j.n; i++)
        why_job(out, &j.at[i], false);
    jobs_drop(&j);
    return 0;
}
