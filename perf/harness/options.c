/* getopt_long, and sizes and numbers read by the same parser as the library's own settings, so that
 * 64k means the same in both. */
#include "harness/options.h"

#include "base/guess.h"
#include "base/text.h"
#include "cli/option.h"
#include "harness/foreign.h"
#include "harness/machine.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t MOST = (size_t)64 << 20;

static int ranks_most(const struct perf_program *p)
{
    return p->ranks_most ? p->ranks_most : PERF_RANKS_MAX;
}

/* How it was called: "barrier", or "tutti perf barrier" by the verb. */
static const char *called;

static void help(const struct perf_program *p, FILE *to)
{
    fprintf(to, "usage: %s [options]%s%s\n\n%s\n\n", called, p->words ? " " : "",
            p->words ? p->words : "", p->question);
    fprintf(to, "  -n, --ranks LIST numbers of ranks, 1 to %d; default %s\n", ranks_most(p),
            p->ranks ? p->ranks : "by CPUs");
    fprintf(to, "  --seconds S      time for each number of ranks; default %g\n", p->seconds);
    if (p->sizes) {
        fprintf(to, "  --most BYTES     largest message, as 64k or 16M; default %zuM\n",
                (p->most ? p->most : MOST) >> 20);
        fprintf(to,
                "  --hot            use the same buffers again and again, so that they stay "
                "cached\n");
    }
    if (p->works)
        fprintf(to,
                "  --work           also started and then waited for (tutti_call.work, "
                "MPI_I...)\n");
    if (p->peers)
        fprintf(to,
                "  --without LIST   leave out openmpi, mpich, openmpi5, mpich5, impi, gloo,\n"
                "                   torch, gomp, lomp, or all\n");
    if (p->resumes)
        fprintf(to,
                "  --rounds FILE    keep each round there; a later run adds to it, where there\n"
                "                   are fewest, and tells of all\n");
    if (p->launches)
        fprintf(to, "  --tutti FILE     the tutti command whose start-up is measured\n");
    fprintf(to,
            "  --csv            comma separated values on stdout in place of the tables\n"
            "  --json FILE      all figures, for programs\n"
            "  --html FILE      one page with plots, for people; needs nothing but a browser\n"
            "  --strict         exit status 1 if a promise is missed\n"
            "  --quick          tenths of a second; shows that it works, the figures mean nothing\n"
            "  -h, --help       this\n\nexamples:\n%s",
            p->examples);
}

void perf_refuse(const char *format, ...)
{
    char what[400];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    option_refuse(called, "%s", what);
    exit(2);
}

/* Found before minutes are spent on figures that nobody can keep. */
static const char *writable(const char *option, const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!strcmp(path, "-"))
        return path;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    bool there = access(path, F_OK) == 0;
    if (*path && access(there ? path : folder, W_OK) == 0 && (!slash || slash[1]))
        return path;
    int error = *path ? errno : ENOENT;
    perf_refuse("%s %.200s cannot be written: %s", option, *path ? path : "''", strerror(error));
}

/* Names of systems that are not there would leave nothing out, in silence. */
static const char *systems(const char *list)
{
    static const char *const known[] = {
        "openmpi", "mpich", "openmpi5", "mpich5", "impi", "gloo", "torch", "gomp", "lomp", "all"
    };
    char copy[256], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", list);
    for (char *s = strtok_r(copy, ",", &rest); s; s = strtok_r(NULL, ",", &rest)) {
        struct guess g;
        guess_begin(&g, s);
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            guess_add(&g, known[i]);
        if (g.best && !strcmp(g.best, s))
            continue;
        if (g.best)
            perf_refuse("--without: there is no system '%.40s'; did you mean %s?", s, g.best);
        perf_refuse("--without wants names of systems, or all, not '%.40s'", s);
    }
    return list;
}

static void ranks(struct perf_options *o, const struct perf_program *p, const char *list)
{
    char copy[256], *rest = NULL;
    o->lists = 0;
    if (snprintf(copy, sizeof copy, "%s", list) >= (int)sizeof copy)
        perf_refuse("-n has too many numbers");
    for (char *s = strtok_r(copy, ",", &rest); s; s = strtok_r(NULL, ",", &rest)) {
        int64_t n;
        if (text_parse_int(s, 1, ranks_most(p), &n) < 0) {
            perf_refuse("-n wants numbers from 1 to %d, as 2,4, not '%.40s'", ranks_most(p), s);
        }
        if (o->lists == PERF_LISTS_MAX)
            perf_refuse("-n takes 8 numbers at most");
        o->ranks[o->lists++] = (int)n;
    }
    if (!o->lists)
        perf_refuse("-n wants numbers of ranks, as 2,4");
}

static double seconds(const char *text)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !(s > 0 && s < 1e6))
        perf_refuse("--seconds wants a number above 0, not '%.40s'", text);
    return s;
}

static size_t bytes(const char *text)
{
    uint64_t n;
    if (text_parse_bytes(text, &n) < 0 || n < 4 || n > (UINT64_C(1) << 32))
        perf_refuse("--most wants a size from 4 to 4G, as 64k or 16M, not '%.40s'", text);
    return n;
}

/* The command line as one would type it again. */
static void keep_command(struct perf_options *o, int argc, char **argv)
{
    size_t used = (size_t)snprintf(o->command, sizeof o->command, "%s", called);
    for (int i = 1; i < argc && used < sizeof o->command; i++)
        used += (size_t)snprintf(o->command + used, sizeof o->command - used, " %s", argv[i]);
}

static void warn_busy(struct perf_options *o)
{
    o->busy = machine_busy();
    if (o->busy >= MACHINE_BUSY)
        fprintf(stderr,
                "%s: this machine is busy: others have %.0f %% of the time of its CPUs, and the "
                "figures will be theirs, too; wait until it is idle\n",
                called, o->busy * 100);
}

void perf_options(struct perf_options *o, const struct perf_program *p, int argc, char **argv)
{
    static const struct option longs[] = {
        { "ranks", required_argument, NULL, 'r' }, { "seconds", required_argument, NULL, 's' },
        { "most", required_argument, NULL, 'm' }, { "hot", no_argument, NULL, 'H' },
        { "tutti", required_argument, NULL, 't' }, { "csv", no_argument, NULL, 'c' },
        { "without", required_argument, NULL, 'o' }, { "work", no_argument, NULL, 'W' },
        { "json", required_argument, NULL, 'j' }, { "html", required_argument, NULL, 'w' },
        { "strict", no_argument, NULL, 'S' }, { "quick", no_argument, NULL, 'q' },
        { "rounds", required_argument, NULL, 'R' },
        { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 }
    };
    *o = (struct perf_options){
        .seconds = p->seconds, .most = p->most ? p->most : MOST,
        .tutti = p->launches ? foreign_tutti() : NULL
    };
    called = !strncmp(argv[0], "tutti ", 6) ? argv[0] : p->name;
    const struct option_words words = { called, ":hn:", longs, argc, argv };
    keep_command(o, argc, argv);
    if (p->ranks)
        ranks(o, p, p->ranks);
    int c;
    while ((c = option_next(&words)) != OPTION_END) {
        if ((!p->sizes && (c == 'm' || c == 'H')) || (!p->launches && c == 't')
            || (!p->peers && c == 'o') || (!p->works && c == 'W') || (!p->resumes && c == 'R'))
            perf_refuse("%.40s means nothing for this one",
                        argv[optind - 1 - (optarg && argv[optind - 1] == optarg)]);
        switch (c) {
        case 'n': case 'r': ranks(o, p, optarg); break;
        case 'o': o->without = systems(optarg); break;
        case 'W': o->work = true; break;
        case 'R': o->rounds = writable("--rounds", optarg); break;
        case 's': o->seconds = seconds(optarg); break;
        case 'm': o->most = bytes(optarg); o->most_given = true; break;
        case 'H': o->hot = true; break;
        case 't': o->tutti = optarg; break;
        case 'c': o->csv = true; break;
        case 'j': o->json = writable("--json", optarg); break;
        case 'w': o->html = writable("--html", optarg); break;
        case 'S': o->strict = true; break;
        case 'q': o->quick = true; break;
        case 'h': help(p, stdout); exit(0);
        default: exit(2);
        }
    }
    for (; p->words && optind < argc; optind++) {
        if (o->word_count == PERF_WORDS_MAX)
            perf_refuse("%d words are all it takes, not '%.40s', too", PERF_WORDS_MAX,
                        argv[optind]);
        o->words[o->word_count++] = argv[optind];
    }
    if (optind < argc)
        perf_refuse("it takes no words, as '%.40s'", argv[optind]);
    if (p->check)
        p->check(o);
    if (!o->quick)
        warn_busy(o);
    if (o->quick)
        o->most = o->most < 1 << 20 ? o->most : 1 << 20;
}
