/* Classes of ranks and no list of ranks: a job of any size fits a screen, and the few that do
 * something else stand out. */
#include "cli/ps.h"

#include <pwd.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* PS_ROWS: classes in the one line of a job. PS_REPORT: lines of a box's writer */
enum { PS_LINE = 2048, PS_ROWS = 3, PS_REPORT = 6 };

int ps_fold(FILE *out, const char *s, int below)
{
    int lines = 0;
    for (int indent = 0;; indent = below) {
        size_t room = (size_t)(SCREEN_COLUMNS - indent), blank = 0;
        size_t n = strspn(s, " "), columns = n;
        for (; s[n] && columns <= room; n++) {
            if (s[n] == ' ' && columns <= room)
                blank = n;
            columns += ((unsigned char)s[n + 1] & 0xc0u) != 0x80u;
        }
        bool whole = !s[n] && columns <= room;
        n = whole ? n : blank ? blank : n - 1;
        if (out)
            fprintf(out, "%*s%.*s\n", indent, "", (int)n, s);
        lines++;
        if (whole)
            return lines;
        s += n;
        s += strspn(s, " ");
    }
}

int ps_wrap(FILE *out, const char *line) { return ps_fold(out, line, 2); }

/* One of many, each a line for grep and wc; at a terminal it is folded as all else. */
static void ps_row(FILE *out, const char *line)
{
    if (isatty(fileno(out)))
        ps_fold(out, line, 4);
    else
        fprintf(out, "%s\n", line);
}

/* "asleep", "2 spinning, 5 asleep"; in their own code: "running". */
static void add_states(struct text *t, const struct rank_states *m, const int *ranks, int n)
{
    const struct rank_state *first = &m->rank[ranks[0]];
    bool waits = rank_state_waits(first);
    int of[RANK_CONDITIONS] = { 0 }, kinds = 0;
    for (int i = 0; i < n; i++)
        kinds += of[m->rank[ranks[i]].condition]++ == 0;
    for (int k = 0; k < RANK_CONDITIONS; k++) {
        const char *name = waits && k == RANK_RUNNING ? "spinning"
            : waits && k == RANK_SLEEPING ? "asleep"
            : rank_condition_name((enum rank_condition)k);
        bool said = k == RANK_DEAD || k == RANK_LEFT || k == RANK_STOPPED || k == RANK_ABSENT;
        if (!of[k] || said)
            continue;
        text_add(t, ", ");
        if (kinds > 1)
            text_add(t, "%d ", of[k]);
        text_add(t, "%s", name);
    }
}

static void add_cpu(struct text *t, const struct rank_states *m, const int *ranks, int n)
{
    int sum = 0, known = 0;
    for (int i = 0; i < n; i++)
        if (m->rank[ranks[i]].percent >= 0 && m->rank[ranks[i]].condition < RANK_LEFT) {
            sum += m->rank[ranks[i]].percent;
            known++;
        }
    if (known)
        text_add(t, ", %d %% CPU%s", sum / known, known > 1 ? " each" : "");
}

void ps_add_class(struct text *t, const struct rank_states *m, const int *ranks, int n)
{
    struct rank_state shown = m->rank[ranks[0]];
    for (int i = 1; i < n; i++)
        if (m->rank[ranks[i]].doing.age_ns > shown.doing.age_ns)
            shown.doing.age_ns = m->rank[ranks[i]].doing.age_ns;
    shown.doing.operation.site = m->rank[ranks[0]].site;
    phrase_ranks(t, ranks, n);
    text_add(t, ": ");
    rank_states_add_state(t, &shown);
    add_states(t, m, ranks, n);
    add_cpu(t, m, ranks, n);
}

static void add_moment(struct text *t, const struct box_moment *moment)
{
    struct tm utc;
    time_t seconds = (time_t)(moment->wall_ns / 1000000000);
    if (gmtime_r(&seconds, &utc))
        text_add(t, "black box of %04d-%02d-%02d %02d:%02d:%02d UTC", utc.tm_year + 1900,
                 utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

void ps_add_head(struct text *t, const struct seen_job *job)
{
    const struct rank_states *m = &job->m;
    text_add(t, "job %s (", m->job[0] ? m->job : "without a name");
    if (job->path)
        add_moment(t, job->box.moment);
    else
        text_add(t, "pid %d", (int)job->pid);
    if (job->uid != geteuid()) {
        const struct passwd *user = getpwuid(job->uid);
        text_add(t, " of ");
        if (user)
            text_add_foreign(t, user->pw_name, 32);
        else
            text_add(t, "user %u", (unsigned)job->uid);
    }
    text_add(t, "): %u rank%s, %s", m->size, m->size == 1 ? "" : "s", job_status_name(m->status));
    if (m->failed[0])
        text_add(t, " (%s)", m->failed);
}

static void add_unread(struct text *t, const struct seen_job *job)
{
    if (job->path) {
        text_add(t, "box ");
        text_add_foreign(t, job->path, 300);
        text_add(t, ": ");
    } else
        text_add(t, "job of pid %d: ", (int)job->pid);
    text_add_foreign(t, job->why, sizeof job->why);
}

void ps_line(FILE *out, const struct seen_job *job)
{
    char line[PS_LINE];
    struct text t = TEXT_IN(line);
    struct classes c;
    text_clear(&t);
    if (job->why[0] || rank_states_classes(&job->m, &c) != 0) {
        add_unread(&t, job);
        ps_row(out, line);
        return;
    }
    ps_add_head(&t, job);
    for (int k = 0; k < c.n && k < PS_ROWS; k++) {
        text_add(&t, k ? "; " : ": ");
        ps_add_class(&t, &job->m, &c.ranks[c.begin[k]], c.begin[k + 1] - c.begin[k]);
    }
    if (c.n > PS_ROWS)
        text_add(&t, "; and %d ranks in %d other states", (int)job->m.size - c.begin[PS_ROWS],
                 c.n - PS_ROWS);
    ps_row(out, line);
    classes_drop(&c);
}

/* What the writer of a box had to say. Returns how many lines. */
static int say_report(FILE *out, const struct seen_job *job)
{
    char line[PS_LINE];
    struct text t = TEXT_IN(line);
    int lines = 0;
    for (const char *s = job->path ? job->box.report : ""; *s && lines < PS_REPORT;) {
        size_t n = strcspn(s, "\n");
        text_clear(&t);
        text_add_foreign(&t, s, n);
        lines += ps_wrap(out, line);
        s += n + (s[n] == '\n');
    }
    return lines;
}

/* Once around: the head, classes while they fit, one line for the rest. */
void ps_classes(FILE *out, const struct seen_job *job)
{
    char line[2 * PS_LINE];
    struct text t = TEXT_IN(line);
    struct classes c;
    text_clear(&t);
    if (job->why[0] || rank_states_classes(&job->m, &c) != 0) {
        ps_line(out, job);
        return;
    }
    ps_add_head(&t, job);
    text_add(&t, ", since ");
    text_add_duration(&t, job->m.age_ns);
    if (job->m.left_out)
        text_add(&t, "; %u comms too many to look at", job->m.left_out);
    int used = ps_wrap(out, line), k = 0;
    used += say_report(out, job);
    for (; k < c.n; k++) {
        text_clear(&t);
        ps_add_class(&t, &job->m, &c.ranks[c.begin[k]], c.begin[k + 1] - c.begin[k]);
        int lines = ps_wrap(NULL, line);
        /* the prompt needs a line, and so does what is left */
        if (used + lines > SCREEN_LINES - (k + 1 < c.n ? 2 : 1))
            break;
        used += ps_wrap(out, line);
    }
    if (k < c.n)
        fprintf(out, "and %d ranks in %d other states (--all shows each)\n",
                (int)job->m.size - c.begin[k], c.n - k);
    classes_drop(&c);
}

void ps_every(FILE *out, const struct seen_job *job)
{
    char line[PS_LINE], cell[64];
    struct text t = TEXT_IN(line), time = TEXT_IN(cell);
    text_clear(&t);
    if (job->why[0]) {
        ps_line(out, job);
        return;
    }
    ps_add_head(&t, job);
    ps_row(out, line);
    say_report(out, job);
    fprintf(out, "  rank pid      state         CPU   %%    doing\n");
    for (uint32_t r = 0; r < job->m.size; r++) {
        const struct rank_state *s = &job->m.rank[r];
        text_clear(&t);
        text_clear(&time);
        text_add(&t, "  %-4u ", r);
        if (s->process.pid) {
            text_add(&t, "%-8d ", (int)s->process.pid);
            text_add_duration(&time, s->process.cpu_ns);
        } else
            text_add(&t, "%-8s ", "-");
        text_add_padded(&t, rank_condition_name(s->condition), 14);
        text_add_padded(&t, time.used ? cell : "-", 12);
        if (s->percent >= 0)
            text_add(&t, "%-3d ", s->percent);
        else
            text_add(&t, "-   ");
        rank_states_add_state(&t, s);
        ps_row(out, line);
    }
}

int ps_no_job(const char *verb, const char *only)
{
    fprintf(stderr, "tutti %s: ", verb);
    ps_nothing(stderr, &(struct seen_jobs){ 0 }, only);
    return LOOK_NO_JOB;
}

void ps_nothing(FILE *out, const struct seen_jobs *j, const char *only)
{
    char name[256];
    struct text t = TEXT_IN(name);
    text_clear(&t);
    if (only) {
        text_add_foreign(&t, only, 80);
        fprintf(out, "no job of the name or pid %s can be seen here", name);
    } else if (geteuid() == 0)
        fprintf(out, "no job is running here");
    else {
        const struct passwd *user = getpwuid(geteuid());
        text_add_foreign(&t, user ? user->pw_name : "this user", 80);
        fprintf(out, "no job of %s is running here; root sees those of others, too", name);
    }
    if (j->refused)
        fprintf(out, " (%zu processes may not be looked at: not dumpable)", j->refused);
    fputc('\n', out);
}
