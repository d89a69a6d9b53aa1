/* tutti trace: what a job's ranks did last, from its journals, as other tools read it. The job may
 * run, hang, or be in a black box. */
#include "cli/trace.h"

#include "base/error.h"
#include "cli/option.h"
#include "cli/ps.h"
#include "cli/verb.h"

#include <errno.h>
#include <string.h>

enum { OPT_PERFETTO = 256, OPT_HTML, OPT_FR, OPT_TEXT };

static const struct option options[] = {
    { "perfetto", no_argument, NULL, OPT_PERFETTO },
    { "html", no_argument, NULL, OPT_HTML },
    { "fr", required_argument, NULL, OPT_FR },
    { "text", no_argument, NULL, OPT_TEXT },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static const char help[] =
    "usage: tutti trace JOB|BOX [--perfetto | --html | --text] [-o FILE]\n"
    "       tutti trace JOB|BOX --fr DIR\n"
    "\n"
    "Writes the last operations of each rank, up to 126 in each comm: when it began,\n"
    "arrived and ended, who came last, where it was called. It only reads. JOB is a\n"
    "job's name or the pid of one of its processes, BOX the path of a black box.\n"
    "\n"
    "  --perfetto   for https://ui.perfetto.dev or chrome://tracing, a track a rank\n"
    "               and an arrow from each last arrival; the default\n"
    "  --html       a page that shows itself: timeline, late ranks, a list\n"
    "  --text       a line an operation\n"
    "  --fr DIR     files rank_0, ... for torchfrtrace DIR, PyTorch's analyzer of\n"
    "               flight recorders; DIR must be new or empty\n"
    "  -o FILE      default: standard output\n"
    "  -h, --help   this text\n"
    "\n"
    "Exit status: 0; 64 for a wrong command line, 65 if there is no such job, 66 if\n"
    "it could not be read, 70 if nothing could be written.\n";

struct wish_trace { bool help; int how; const char *file, *folder, *job; };

static int failed(const char *what, const char *why)
{
    fprintf(stderr, "tutti trace: %.300s: %s\n", what, why);
    return LOOK_FAILED;
}

/* 0, or the exit status. */
static int take_options(struct wish_trace *w, int argc, char **argv)
{
    const struct option_words words = { "tutti trace", ":ho:", options, argc, argv };
    int option;
    while ((option = option_next(&words)) != OPTION_END) {
        if (option == 'h') {
            w->help = true;
            fputs(help, stdout);
            return fflush(stdout) == 0 ? 0 : LOOK_FAILED;
        }
        if (option == OPTION_REFUSED)
            return LOOK_USAGE;
        if (option == 'o') {
            w->file = optarg;
            continue;
        }
        if (w->how && w->how != option) {
            verb_refuse("trace", "only one of --perfetto, --html, --text, --fr");
            return LOOK_USAGE;
        }
        w->how = option;
        w->folder = option == OPT_FR ? optarg : NULL;
    }
    const char *wrong = optind >= argc  ? "which job, or which box?"
        : optind + 1 < argc             ? "one job at a time"
        : w->file && w->how == OPT_FR   ? "-o is not for --fr, which writes several files"
                                        : NULL;
    if (wrong) {
        verb_refuse("trace", "%s", wrong);
        return LOOK_USAGE;
    }
    w->job = argv[optind];
    return 0;
}

static void add_head(struct text *t, const struct wish_trace *w, const struct trace *trace)
{
    const struct seen_job job = { .pid = trace->held->pid, .uid = trace->held->uid,
                                  .path = trace->held->box.moment ? w->job : NULL,
                                  .box = trace->held->box, .m = trace->states };
    ps_add_head(t, &job);
}

static int write_it(const struct wish_trace *w, const struct trace *trace)
{
    char head[1024];
    struct text t = TEXT_IN(head);
    if (w->how == OPT_FR)
        return trace_fr(w->folder, trace);
    FILE *out = w->file ? fopen(w->file, "we") : stdout;
    if (!out)
        return failed(w->file, error_system(errno));
    text_clear(&t);
    add_head(&t, w, trace);
    if (w->how == OPT_TEXT)
        trace_text(out, trace, head);
    else if (w->how == OPT_HTML)
        trace_html(out, trace, head);
    else
        trace_perfetto(out, trace, head);
    int error = fflush(out) != 0 || ferror(out) ? errno : 0;
    if (w->file && fclose(out) != 0 && !error)
        error = errno;
    return error ? failed(w->file ? w->file : "standard output", error_system(error)) : 0;
}

static int trace_held(const struct wish_trace *w, const struct held_job *held)
{
    struct trace trace;
    if (held->why[0]) {
        char line[4 * sizeof held->why];
        struct text t = TEXT_IN(line);
        text_clear(&t);
        text_add_foreign(&t, held->why, sizeof held->why);
        failed(w->job, line);
        return LOOK_UNREADABLE;
    }
    if (trace_gather(&trace, held) != 0)
        return failed(w->job, "there is no memory for it");
    int status = write_it(w, &trace);
    trace_drop(&trace);
    return status;
}

int verb_trace(int argc, char **argv)
{
    struct wish_trace w = { 0 };
    struct held_job held;
    int status = take_options(&w, argc, argv);
    if (status || w.help)
        return status;
    int found = jobs_hold(&held, w.job);
    if (found < 0)
        return ps_failed("trace", found);
    if (!found)
        return ps_no_job("trace", w.job);
    status = trace_held(&w, &held);
    held_job_drop(&held);
    return status;
}
