/* tutti ps: what the ranks of each job do, seen from another terminal. It looks twice, some
 * milliseconds apart, since the CPU time that a rank burns is a difference; with --watch it
 * compares with the picture before. */
#include "cli/option.h"
#include "cli/ps.h"
#include "cli/verb.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OPT_ALL = 256, OPT_JSON, OPT_PROMETHEUS, OPT_WATCH, OPT_STUCK, OPT_SAVE };
#define WATCH_NS UINT64_C(2000000000)
#define WATCH_LEAST_NS UINT64_C(50000000)

static const struct option options[] = {
    { "all", no_argument, NULL, OPT_ALL },
    { "json", no_argument, NULL, OPT_JSON },
    { "prometheus", no_argument, NULL, OPT_PROMETHEUS },
    { "watch", optional_argument, NULL, OPT_WATCH },
    { "stuck", required_argument, NULL, OPT_STUCK },
    { "save", no_argument, NULL, OPT_SAVE },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static const char help[] =
    "usage: tutti ps [JOB|BOX] [OPTION...]\n"
    "       tutti ps --save JOB [FILE]\n"
    "\n"
    "Shows your jobs on this machine, a line each; of JOB, or with --all, what the\n"
    "ranks do. It only reads. JOB is a job's name, or the pid of one of its\n"
    "processes; BOX the path of a black box. Root sees the jobs of all users.\n"
    "\n"
    "  --all             a line for each rank\n"
    "  --json            for programs: one object, \"version\" 1\n"
    "  --prometheus      for a text file collector: metrics tutti_...\n"
    "  --watch[=SECONDS] look again and again, every 2 seconds, and say what moves\n"
    "  --stuck SECONDS   from this age a wait counts as stuck; default: 30. Both\n"
    "                    may be 0.1, or have a unit: 500ms, 2min\n"
    "  --save            write a black box of JOB to FILE, or a new one in the folder\n"
    "                    TUTTI_BOX, or here, and print its path; the job goes on\n"
    "  -h, --help        this text\n"
    "\n"
    "Exit status, of the worst job shown: 0 all is well or there is no job; 1 a\n"
    "rank is stuck in a wait; 2 a rank is dead; 3 a comm has failed, by ranks that\n"
    "called different things or otherwise; 64 a wrong command line; 65 there is no\n"
    "such job; 66 a job could not be read; 70 nothing could be looked at.\n";

struct wish_ps {
    const char *job;
    bool all, json, prometheus, watch, save;
    uint64_t watch_ns, stuck_ns;
};

static int take_option(struct wish_ps *w, int option)
{
    switch (option) {
    case OPT_ALL: w->all = true; return 0;
    case OPT_JSON: w->json = true; return 0;
    case OPT_PROMETHEUS: w->prometheus = true; return 0;
    case OPT_SAVE: w->save = true; return 0;
    case OPT_WATCH:
        w->watch = true;
        if (!optarg || (ps_seconds(optarg, &w->watch_ns) == 0 && w->watch_ns >= WATCH_LEAST_NS))
            return 0;
        return verb_refuse("ps", "--watch wants seconds, 50ms or more, not '%.40s'", optarg);
    default:
        if (ps_seconds(optarg, &w->stuck_ns) == 0)
            return 0;
        return verb_refuse("ps", "--stuck wants seconds, not '%.40s'", optarg);
    }
}

static void say_movement(const struct seen_job *job, uint64_t passed_ns)
{
    char line[512];
    struct text t = TEXT_IN(line);
    uint32_t moved = 0;
    if (job->why[0] || !passed_ns)
        return;
    for (uint32_t r = 0; r < job->m.size; r++)
        moved += job->m.rank[r].moved;
    text_clear(&t);
    if (moved)
        text_add(&t, "%u of %u ranks have made progress within ", moved, job->m.size);
    else
        text_add(&t, "frozen: no rank has made progress within ");
    text_add_duration(&t, passed_ns);
    ps_wrap(stdout, line);
}

static void show(const struct wish_ps *w, const struct seen_jobs *j, uint64_t passed_ns)
{
    if (w->json) {
        ps_json(stdout, j);
        return;
    }
    if (w->prometheus) {
        ps_prometheus(stdout, j);
        return;
    }
    if (j->n == 0)
        ps_nothing(stdout, j, w->job);
    for (size_t i = 0; i < j->n; i++) {
        if (w->all)
            ps_every(stdout, &j->at[i]);
        else if (w->job || j->at[i].path)
            ps_classes(stdout, &j->at[i]);
        else
            ps_line(stdout, &j->at[i]);
        if (passed_ns)
            say_movement(&j->at[i], passed_ns);
    }
}

/* Until a signal ends it, or nobody reads what it prints. */
static int watch(const struct wish_ps *w)
{
    struct seen_jobs before = { 0 }, now;
    struct known_jobs known = { 0 };
    bool screen = isatty(STDOUT_FILENO) && !w->json && !w->prometheus;
    for (;;) {
        int error = jobs_look(&now, &known, w->job, w->stuck_ns);
        if (error)
            return ps_failed("ps", error);
        jobs_compare(&now, &before);
        if (screen)
            fputs("\033[H\033[J", stdout);
        show(w, &now, before.taken_ns ? now.taken_ns - before.taken_ns : 0);
        jobs_drop(&before);
        before = now;
        if (fflush(stdout) != 0)
            break;
        struct timespec pause = { (time_t)(w->watch_ns / 1000000000),
                                  (long)(w->watch_ns % 1000000000) };
        nanosleep(&pause, NULL);
    }
    jobs_drop(&before);
    proc_files_free(&known.files);
    return LOOK_FAILED;
}

int verb_ps(int argc, char **argv)
{
    struct wish_ps w = { .stuck_ns = PS_STUCK_NS, .watch_ns = WATCH_NS };
    struct seen_jobs j;
    const struct option_words line = { "tutti ps", ":h", options, argc, argv };
    int option;
    while ((option = option_next(&line)) != OPTION_END) {
        if (option == 'h') {
            fputs(help, stdout);
            return fflush(stdout) == 0 ? 0 : LOOK_FAILED;
        }
        if (option == OPTION_REFUSED)
            return LOOK_USAGE;
        if (take_option(&w, option) != 0)
            return LOOK_USAGE;
    }
    int words = argc - optind;
    const char *wrong = words > 1 + w.save ? "one job at a time"
        : w.save && words < 1              ? "--save wants a job"
        : w.json && w.prometheus           ? "only one of --json and --prometheus"
                                           : NULL;
    if (wrong) {
        verb_refuse("ps", "%s", wrong);
        return LOOK_USAGE;
    }
    w.job = argv[optind];
    if (w.save)
        return ps_save(w.job, words > 1 ? argv[optind + 1] : NULL);
    if (w.watch)
        return watch(&w);
    int error = jobs_look_twice(&j, w.job, w.stuck_ns);
    if (error)
        return ps_failed("ps", error);
    show(&w, &j, 0);
    int status = ps_end(&j, w.job);
    jobs_drop(&j);
    return status;
}
