/* tutti late: which ranks the others wait for: how often, by how much, and whether it is always the
 * same one. It reads journals alone; with --for it looks again and again, since a journal holds the
 * last operations only. Cost: some milliseconds a look. */
#include "cli/jobs.h"
#include "cli/json.h"
#include "cli/option.h"
#include "cli/ps.h"
#include "cli/verb.h"

#include "arena/layout.h"
#include "watch/lateness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OPT_FOR = 256, OPT_JSON };
enum { LATE_SCHEMA = 1, LATE_ROWS = 12, LATE_LINE = 1024, LATE_FEW = 5 };
#define LATE_PAUSE_NS 5000000

static const struct option options[] = {
    { "for", required_argument, NULL, OPT_FOR },
    { "json", no_argument, NULL, OPT_JSON },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static const char help[] =
    "usage: tutti late JOB|BOX [--for SECONDS] [--json]\n"
    "\n"
    "Says of each comm which ranks were the last to come to its collectives, so that\n"
    "all others waited: how often, by how much (since the middle one of the others\n"
    "came: median and 99th percentile), how long all others waited for it together,\n"
    "and whether it is the same rank every time. It only reads. JOB is a job's name\n"
    "or the pid of one of its processes, BOX the path of a black box.\n"
    "\n"
    "  --for SECONDS  look at a job again and again, so long; without it: at its\n"
    "                 last operations, up to 127 in each comm. May have a unit: 2min\n"
    "  --json         for programs: one object, \"version\" 1\n"
    "  -h, --help     this text\n"
    "\n"
    "Exit status: 0; 64 for a wrong command line, 65 if there is no such job, 66 if\n"
    "it could not be read, 70 if nothing could be looked at.\n";

struct wish_late { bool help, json; const char *job; uint64_t for_ns; };

/* by_rank[p]: of the comm's rank p. world: its rank in the world. */
struct late_comm { struct lateness l; struct late_rank *by_rank; uint32_t *world; bool whole; };

/* What was seen of one job. comm[slot]: as many as slots were in use. */
struct late {
    struct held_job held;             /* the last look */
    uint64_t birth;                   /* of its arena */
    uint32_t comms;
    struct late_comm *comm;
};

/* ---- looking ---- */

static int late_room(struct late *a, uint32_t comms)
{
    if (comms <= a->comms)
        return 0;
    struct late_comm *comm = realloc(a->comm, comms * sizeof *comm);
    if (!comm)
        return -ENOMEM;
    memset(comm + a->comms, 0, (comms - a->comms) * sizeof *comm);
    a->comm = comm;
    a->comms = comms;
    return 0;
}

static int late_comm_add(struct late_comm *c, const struct history *h)
{
    uint32_t *world = realloc(c->world, (h->size + 1) * sizeof *world);
    if (!world)
        return -ENOMEM;
    c->world = world;
    c->whole = !h->parent;
    for (uint32_t p = 0; p < h->size; p++)
        world[p] = h->rank[p].rank;
    return lateness_add(&c->l, h);
}

static int late_add(struct late *a)
{
    int error = late_room(a, a->held.copy.comms);
    for (uint32_t i = 0; i < a->held.copy.comms && !error; i++) {
        struct history h;
        error = history_read(&h, &a->held.copy.arena, i, a->held.now);
        if (error == -ENOENT) {
            error = 0;
            continue;
        }
        if (!error)
            error = late_comm_add(&a->comm[i], &h);
        history_drop(&h);
    }
    return error;
}

static int late_sort(struct late *a)
{
    for (uint32_t i = 0; i < a->comms; i++) {
        struct late_comm *c = &a->comm[i];
        c->by_rank = calloc(c->l.size + 1, sizeof *c->by_rank);
        if (!c->by_rank)
            return -ENOMEM;
        lateness_sort(&c->l);
        for (uint32_t p = 0; p < c->l.size; p++)
            c->by_rank[p] = lateness_of(&c->l, p);
    }
    return 0;
}

static void late_drop(struct late *a)
{
    for (uint32_t i = 0; i < a->comms; i++) {
        lateness_drop(&a->comm[i].l);
        free(a->comm[i].by_rank);
        free(a->comm[i].world);
    }
    free(a->comm);
    held_job_drop(&a->held);
}

/* Looks until the time is over, or the job. `held` is the first look. */
static int late_look(struct late *a, const struct wish_late *w)
{
    uint64_t until = clock_ns() + w->for_ns;
    a->birth = a->held.copy.arena.header->birth;
    for (;;) {
        int error = late_add(a);
        if (error || !w->for_ns || a->held.box.moment || clock_ns() >= until)
            return error ? error : late_sort(a);
        nanosleep(&(struct timespec){ 0, LATE_PAUSE_NS }, NULL);
        struct held_job next;
        int found = jobs_hold(&next, w->job);
        if (found < 0)
            return found;
        if (!found || next.why[0] || next.copy.arena.header->birth != a->birth) {
            if (found)
                held_job_drop(&next);
            return late_sort(a);
        }
        held_job_drop(&a->held);
        a->held = next;
    }
}

/* ---- what is shown ---- */

static void add_comm(struct text *t, const struct late_comm *c)
{
    if (c->whole)
        text_add(t, "world");
    else
        text_add(t, "comm %llu", (unsigned long long)c->l.birth);
}

static void add_rank(struct text *t, const struct late_comm *c, uint32_t p)
{
    if (c->world[p] == RANK_NOBODY)
        text_add(t, "rank ?");
    else
        text_add(t, "rank %u", c->world[p]);
}

/* The call at which p was late most often; NULL: it never was. */
static const struct late_once *most_often(const struct lateness *l, uint32_t p)
{
    uint32_t count[SITES_MAX + 1] = { 0 }, most = 0;
    const struct late_once *best = NULL;
    for (size_t i = 0; i < l->n; i++) {
        const struct late_once *o = &l->at[i];
        uint32_t site = o->site <= SITES_MAX ? o->site : 0;
        if (o->rank == p && ++count[site] > most) {
            most = count[site];
            best = o;
        }
    }
    return best;
}

static void add_call(struct text *t, const struct arena *arena, const struct late_once *o)
{
    char site[4 * SITE_TEXT];
    struct text s = TEXT_IN(site);
    text_clear(&s);
    text_add_foreign(&s, arena_site_text(arena, o->site), SITE_TEXT);
    phrase_name(t, o->descriptor, o->count, 0);
    text_add(t, " at %s", phrase_short(site));
}

static void say_row(const struct late_comm *c, uint32_t p)
{
    char line[LATE_LINE], cell[64];
    struct text t = TEXT_IN(line), s = TEXT_IN(cell);
    const struct late_rank *own = &c->by_rank[p];
    const uint64_t times[] = { own->median_ns, own->p99_ns, own->cost_ns };
    text_clear(&s);
    add_rank(&s, c, p);
    text_clear(&t);
    text_add(&t, "  ");
    text_add_padded(&t, cell, 12);
    snprintf(cell, sizeof cell, "%llu (%llu %%)", (unsigned long long)own->last,
             (unsigned long long)(own->last * 100 / c->l.n));
    text_add_padded(&t, cell, 16);
    for (int i = 0; i < 3; i++) {
        text_clear(&s);
        text_add_duration(&s, times[i]);
        text_add_padded(&t, cell, i < 2 ? 14 : 1);
    }
    while (t.used && line[t.used - 1] == ' ')
        line[--t.used] = 0;
    printf("%s\n", line);
}

/* Is it the same one every time? */
static void say_verdict(const struct late *a, const struct late_comm *c, uint32_t top)
{
    char line[LATE_LINE];
    struct text t = TEXT_IN(line);
    uint64_t n = c->by_rank[top].last, all = c->l.n;
    text_clear(&t);
    if (all < LATE_FEW)
        text_add(&t, "  too few to tell whether it is the same rank every time");
    else if (n * 2 < all || (c->l.size == 2 && n * 4 < all * 3))
        text_add(&t, "  not the same rank every time");
    else {
        text_add(&t, "  ");
        add_rank(&t, c, top);
        text_add(&t, n == all ? " every time" : n * 10 >= all * 9 ? " nearly every time"
                                                                   : " most of the time");
        text_add(&t, ", most often in ");
        add_call(&t, &a->held.copy.arena, most_often(&c->l, top));
    }
    ps_wrap(stdout, line);
}

/* The rank that was last most often among those that are not in `said`. */
static uint32_t next_rank(const struct late_comm *c, const uint8_t *said)
{
    uint32_t best = c->l.size;
    for (uint32_t p = 0; p < c->l.size; p++)
        if (!said[p] && c->by_rank[p].last
            && (best == c->l.size || c->by_rank[p].last > c->by_rank[best].last))
            best = p;
    return best;
}

static void say_comm(const struct late *a, const struct late_comm *c)
{
    char line[LATE_LINE];
    struct text t = TEXT_IN(line);
    uint8_t said[RANKS_MAX] = { 0 };
    uint64_t waited = c->l.n;
    text_clear(&t);
    add_comm(&t, c);
    text_add(&t, ": %llu collectives compared, in %llu of them ranks waited for the last one",
             (unsigned long long)c->l.compared, (unsigned long long)waited);
    ps_wrap(stdout, line);
    if (!waited)
        return;
    printf("  last        how often       median late   99 %% late     cost the others\n");
    uint32_t top = next_rank(c, said), p = top;
    for (int rows = 0; rows < LATE_ROWS && p < c->l.size; rows++) {
        say_row(c, p);
        waited -= c->by_rank[p].last;
        said[p] = 1;
        p = next_rank(c, said);
    }
    if (waited)
        printf("  others      %llu\n", (unsigned long long)waited);
    say_verdict(a, c, top);
}

static int say_text(const struct late *a, const char *head)
{
    uint32_t shown = 0;
    ps_wrap(stdout, head);
    for (uint32_t i = 0; i < a->comms; i++)
        if (a->comm[i].l.compared) {
            say_comm(a, &a->comm[i]);
            shown++;
        }
    if (!shown)
        printf("  no collective is known of all ranks of its comm\n");
    return fflush(stdout) == 0 ? 0 : LOOK_FAILED;
}

static void json_rank(const struct late *a, const struct late_comm *c, uint32_t p)
{
    const struct late_rank *own = &c->by_rank[p];
    const struct late_once *o = most_often(&c->l, p);
    char room[LATE_LINE];
    struct text t = TEXT_IN(room);
    text_clear(&t);
    printf("{\"rank\":%lld,\"last\":%llu,\"median_ns\":%llu,\"p99_ns\":%llu,\"cost_ns\":%llu",
           c->world[p] == RANK_NOBODY ? -1LL : (long long)c->world[p],
           (unsigned long long)own->last, (unsigned long long)own->median_ns,
           (unsigned long long)own->p99_ns, (unsigned long long)own->cost_ns);
    if (o) {
        printf(",\"kind\":\"%s\",\"site\":", kind_name(fingerprint_kind(o->descriptor)));
        text_add_foreign(&t, arena_site_text(&a->held.copy.arena, o->site), SITE_TEXT);
        json_quote(stdout, room);
    }
    printf("}");
}

static int say_json(const struct late *a, const char *job)
{
    const char *between = "";
    printf("{\"version\":%d,\"job\":", LATE_SCHEMA);
    json_quote(stdout, job);
    printf(",\"uncertain_ns\":%d,\"comms\":[", HISTORY_UNCERTAIN_NS);
    for (uint32_t i = 0; i < a->comms; i++) {
        const struct late_comm *c = &a->comm[i];
        char room[64];
        struct text t = TEXT_IN(room);
        if (!c->l.compared)
            continue;
        text_clear(&t);
        add_comm(&t, c);
        printf("%s\n{\"comm\":\"%s\",\"compared\":%llu,\"together\":%llu,\"ranks\":[", between,
               room, (unsigned long long)c->l.compared, (unsigned long long)c->l.together);
        for (uint32_t p = 0; p < c->l.size; p++) {
            printf(p ? ",\n " : "\n ");
            json_rank(a, c, p);
        }
        printf("]}");
        between = ",";
    }
    printf("]}\n");
    return fflush(stdout) == 0 ? 0 : LOOK_FAILED;
}

static int say(const struct late *a, const struct wish_late *w)
{
    char head[LATE_LINE];
    struct text t = TEXT_IN(head);
    struct seen_job job = { .pid = a->held.pid, .uid = a->held.uid,
                            .path = a->held.box.moment ? w->job : NULL, .box = a->held.box };
    int error = rank_states_fill(&job.m, &a->held.copy, a->held.process, a->held.now, PS_STUCK_NS);
    if (error)
        return ps_failed("late", error);
    text_clear(&t);
    ps_add_head(&t, &job);
    int status = w->json ? say_json(a, job.m.job) : say_text(a, head);
    rank_states_drop(&job.m);
    return status;
}

/* ---- the verb ---- */

static int take_options(struct wish_late *w, int argc, char **argv)
{
    const struct option_words words = { "tutti late", ":h", options, argc, argv };
    int option;
    while ((option = option_next(&words)) != OPTION_END) {
        if (option == 'h') {
            w->help = true;
            fputs(help, stdout);
            return fflush(stdout) == 0 ? 0 : LOOK_FAILED;
        }
        if (option == OPTION_REFUSED)
            return LOOK_USAGE;
        if (option == OPT_FOR && ps_seconds(optarg, &w->for_ns) != 0) {
            verb_refuse("late", "--for wants seconds, not '%.40s'", optarg);
            return LOOK_USAGE;
        }
        w->json |= option == OPT_JSON;
    }
    if (optind + 1 != argc) {
        verb_refuse("late", optind >= argc ? "which job, or which box?" : "one job at a time");
        return LOOK_USAGE;
    }
    w->job = argv[optind];
    return 0;
}

int verb_late(int argc, char **argv)
{
    struct wish_late w = { 0 };
    struct late a = { 0 };
    int status = take_options(&w, argc, argv);
    if (status || w.help)
        return status;
    int found = jobs_hold(&a.held, w.job);
    if (found < 0)
        return ps_failed("late", found);
    if (!found)
        return ps_no_job("late", w.job);
    if (a.held.why[0]) {
        char line[4 * sizeof a.held.why];
        struct text t = TEXT_IN(line);
        text_clear(&t);
        text_add_foreign(&t, a.held.why, sizeof a.held.why);
        fprintf(stderr, "tutti late: %.300s: %s\n", w.job, line);
        late_drop(&a);
        return LOOK_UNREADABLE;
    }
    int error = late_look(&a, &w);
    status = error ? ps_failed("late", error) : say(&a, &w);
    late_drop(&a);
    return status;
}
