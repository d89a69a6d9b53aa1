/* getopt_long, and sizes and numbers read by the same parser as the library's own settings, so that
 * 64k means the same in both. */
#include "harness/options.h"

#include "base/text.h"
#include "harness/foreign.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static _Noreturn void mistake(const struct perf_program *p, const char *what, const char *value)
{
    fprintf(stderr, "%s: %s%s%s; see %s --help\n", p->name, what, value ? ": " : "",
            value ? value : "", called);
    exit(2);
}

static void ranks(struct perf_options *o, const struct perf_program *p, const char *list)
{
    char copy[256], *rest = NULL;
    o->lists = 0;
    if (snprintf(copy, sizeof copy, "%s", list) >= (int)sizeof copy)
        mistake(p, "--ranks is too long", NULL);
    for (char *s = strtok_r(copy, ",", &rest); s; s = strtok_r(NULL, ",", &rest)) {
        int64_t n;
        if (text_parse_int(s, 1, ranks_most(p), &n) < 0) {
            char expected[64];
            snprintf(expected, sizeof expected, "--ranks: expected numbers from 1 to %d, as in 2,4",
                     ranks_most(p));
            mistake(p, expected, s);
        }
        if (o->lists == PERF_LISTS_MAX)
            mistake(p, "--ranks: at most 8 numbers", NULL);
        o->ranks[o->lists++] = (int)n;
    }
    if (!o->lists)
        mistake(p, "--ranks is empty", NULL);
}

static double seconds(const struct perf_program *p, const char *text)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !(s > 0 && s < 1e6))
        mistake(p, "--seconds: expected a number above 0", text);
    return s;
}

static size_t bytes(const struct perf_program *p, const char *text)
{
    uint64_t n;
    if (text_parse_bytes(text, &n) < 0 || n < 4 || n > (UINT64_C(1) << 32))
        mistake(p, "--most: expected a size from 4 to 4G, as 64k or 16M", text);
    return n;
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
    if (p->ranks)
        ranks(o, p, p->ranks);
    int c;
    while ((c = getopt_long(argc, argv, "hn:", longs, NULL)) != -1) {
        if ((!p->sizes && (c == 'm' || c == 'H')) || (!p->launches && c == 't')
            || (!p->peers && c == 'o') || (!p->works && c == 'W') || (!p->resumes && c == 'R'))
            mistake(p, "this program has no such option", argv[optind - 1]);
        switch (c) {
        case 'n': case 'r': ranks(o, p, optarg); break;
        case 'o': o->without = optarg; break;
        case 'W': o->work = true; break;
        case 'R': o->rounds = optarg; break;
        case 's': o->seconds = seconds(p, optarg); break;
        case 'm': o->most = bytes(p, optarg); o->most_given = true; break;
        case 'H': o->hot = true; break;
        case 't': o->tutti = optarg; break;
        case 'c': o->csv = true; break;
        case 'j': o->json = optarg; break;
        case 'w': o->html = optarg; break;
        case 'S': o->strict = true; break;
        case 'q': o->quick = true; break;
        case 'h': help(p, stdout); exit(0);
        default: fprintf(stderr, "see %s --help\n", called); exit(2);
        }
    }
    for (; p->words && optind < argc; optind++) {
        if (o->word_count == PERF_WORDS_MAX)
            mistake(p, "too many arguments", argv[optind]);
        o->words[o->word_count++] = argv[optind];
    }
    if (optind < argc)
        mistake(p, "takes no arguments", argv[optind]);
    if (o->quick)
        o->most = o->most < 1 << 20 ? o->most : 1 << 20;
}
