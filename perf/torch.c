/* Measures the backend of torch.distributed. perf/torch/ranks.py runs tutti's backend beside
 * torch's gloo, in Python, in the same processes and in turns. This program turns its lines into
 * figures, ratios by rounds, and promises. A single rank, which waits for no peer, shows what a
 * call from Python costs, and how much of that is torch's own path to any backend.
 *
 * Without torch (or the extension) there are only the figures of C, and a line says so. */
#include "harness/progress.h"
#include "harness/report.h"
#include "harness/stamp.h"

#include "tutti.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const struct perf_program program = {
    .name = "torch",
    .question =
        "How long do collectives and a training step of PyTorch take on tutti, beside its gloo, "
        "and what does a call from Python cost?",
    .ranks = "2",
    .seconds = 20,
    .sizes = true,
    .examples = "  torch --ranks 2,4\n  torch --most 1M --strict\n",
};

enum { TUTTI, GLOO, COUNT };
static const char *const names[COUNT] = { "tutti", "gloo" };

/* bare: over a backend that does nothing; engine: the library without torch. */
struct operation {
    const char *key, *what;
    double limit;
    struct series rounds[COUNT], single[COUNT], bare, engine;
};

/* limit: the most of tutti's time / gloo's; 0: none. The steps are of a transformer of four blocks
 * of 128. */
static struct operation operations[] = {
    { .key = "barrier", .what = "barrier", .limit = 1.0 / 60 },
    { .key = "all_reduce_4", .what = "all_reduce 4 B", .limit = 1.0 / 60 },
    { .key = "all_reduce_4096", .what = "all_reduce 4 KiB" },
    { .key = "async_4096", .what = "async 4 KiB" },
    { .key = "all_reduce_65536", .what = "all_reduce 64 KiB", .limit = 1.0 / 60 },
    { .key = "all_reduce_1048576", .what = "all_reduce 1 MiB", .limit = 1.0 / 12 },
    { .key = "all_reduce_67108864", .what = "all_reduce 64 MiB", .limit = 1.0 / 5 },
    { .key = "plain_step", .what = "step alone" },
    { .key = "DDP_step", .what = "DDP step", .limit = 1 / 1.3 },
    { .key = "FSDP2_step", .what = "FSDP2 step", .limit = 1 / 2.4 },
    { .key = "ZeRO3_step", .what = "ZeRO-3 step" },     /* of DeepSpeed, if it is installed */
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* One rank: the time of the same call from Python, on tutti and on a backend of torch that does
 * nothing, and from C. */
static struct operation alone[] = { { .key = "alone_barrier", .what = "barrier" },
                                    { .key = "alone_all_reduce_4", .what = "all_reduce 4 B" } };
enum { ALONE = sizeof alone / sizeof alone[0], BATCH = 500, PYTHON = 0, PLAIN_C = 1 };

static struct operation *find(const char *key)
{
    for (int i = 0; i < OPERATIONS + ALONE; i++) {
        struct operation *o = i < OPERATIONS ? &operations[i] : &alone[i - OPERATIONS];
        if (strcmp(o->key, key) == 0)
            return o;
    }
    return NULL;
}

/* "operation contender times whole each each each …" */
static void take_line(char *line)
{
    char *at = NULL, *key = strtok_r(line, " \n", &at),
         *who = key ? strtok_r(NULL, " \n", &at) : NULL;
    char *times = who ? strtok_r(NULL, " \n", &at) : NULL,
         *whole = times ? strtok_r(NULL, " \n", &at) : NULL;
    struct operation *o = whole ? find(key) : NULL;
    if (!o)
        return;
    struct series *floor = strcmp(who, "nothing") == 0 ? &o->bare
        : strcmp(who, "engine") == 0 ? &o->engine
        : NULL;
    if (floor) {
        series_add(floor, strtod(whole, NULL) / strtod(times, NULL));
        return;
    }
    int i = strcmp(who, names[GLOO]) == 0 ? GLOO : TUTTI;
    series_add(&o->rounds[i], strtod(whole, NULL) / strtod(times, NULL));
    for (char *each; (each = strtok_r(NULL, " \n", &at));)
        series_add(&o->single[i], strtod(each, NULL));
}

/* True: the ranks ended without an error. */
static bool measure_python(const struct perf_options *o, int ranks)
{
    char command[1024], *line = NULL;
    size_t room = 0;
    snprintf(command, sizeof command,
             "PYTHONPATH='%s' '%s' -W ignore '%s' --ranks %d --seconds %g --most %zu", PERF_PACKAGE,
             PERF_PYTHON, PERF_SCRIPT, ranks, o->quick ? 0.2 : o->seconds,
             o->quick ? (size_t)1 << 20 : o->most);
    double began = stamp_seconds();
    FILE *from = popen(command, "r");
    while (from && getline(&line, &room, from) > 0) {
        double share = (stamp_seconds() - began) / (o->seconds + 5);
        progress_show(share < 1 ? share : 1, "%d ranks of PyTorch", ranks);
        take_line(line);
    }
    free(line);
    return from && pclose(from) == 0;
}

enum { ROUNDS = 200 };

static int run_c(tutti_comm *world, void *arg)
{
    double (*took)[ROUNDS] = arg;
    float x = 1;
    for (int round = -3; round < ROUNDS; round++)
        for (int kind = 0; kind < ALONE; kind++) {
            uint64_t began = stamp_now();
            for (int i = 0; i < BATCH; i++)
                if (kind ? tutti_all_reduce(&x, &x, 1, TUTTI_F32, TUTTI_SUM, world, NULL)
                         : tutti_barrier(world, NULL))
                    return 1;
            if (round >= 0)
                took[kind][round] = stamp_ns(stamp_now() - began) / BATCH;
        }
    return 0;
}

static bool measure_c(void)
{
    double(*took)[ROUNDS] = mmap(NULL, sizeof(double[ALONE][ROUNDS]), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (took == MAP_FAILED || tutti_spawn(1, run_c, took, NULL, NULL) != 0)
        return false;
    for (int kind = 0; kind < ALONE; kind++)
        for (int i = 0; i < ROUNDS; i++) {
            series_add(&alone[kind].rounds[PLAIN_C], took[kind][i]);
            series_add(&alone[kind].single[PLAIN_C], took[kind][i]);
        }
    return munmap(took, sizeof(double[ALONE][ROUNDS])) == 0;
}

/* ---- the results ---- */

/* The share of a step's time that is not its computing. */
static void show_shares(struct report *report)
{
    static const char *const heads[] = { "", "tutti", "gloo" };
    static const int width[] = { -20, 10, 10 };
    struct table *t = report_table(report, 3, heads, width);
    snprintf(t->title, sizeof t->title, "share of communication in a step");
    snprintf(t->note, sizeof t->note,
             "one less the time of the same step without a process group by its time with one.");
    const struct operation *plain = find("plain_step");
    static const char *const steps[] = { "DDP_step", "FSDP2_step", "ZeRO3_step" };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        char text[COUNT][32];
        struct operation *o = find(steps[i]);
        if (!plain->rounds[TUTTI].n || !o->rounds[GLOO].n)
            continue;
        for (int who = 0; who < COUNT; who++)
            snprintf(text[who], sizeof text[who], "%.0f %%",
                     100
                         - 100 * series_median(&plain->rounds[TUTTI])
                             / series_median(&o->rounds[who]));
        const char *cells[] = { o->what, text[TUTTI], text[GLOO] };
        table_row(t, false, cells);
    }
}

/* The time of torch without any communication plus the time of the library without torch: no
 * backend of this library can be faster. 0: unknown. */
static double floor_of(const struct operation *o)
{
    return (o->bare.n ? series_median(&o->bare) : 0)
        + (o->engine.n ? series_median(&o->engine) : 0);
}

static void show(struct report *report, int ranks)
{
    static const char *const heads[] = {
        "", "tutti", "gloo", "gloo / tutti", "floor", "gloo / floor", "tutti p99"
    };
    static const int width[] = { -17, 8, 8, 13, 8, 13, 11 };
    char text[6][32], title[16];
    struct table *t = report_table(report, 7, heads, width);
    snprintf(t->title, sizeof t->title, "%s ranks, gloo of the same PyTorch",
             unit_text(title, sizeof title, UNIT_COUNT, ranks));
    snprintf(t->note, sizeof t->note,
             "an operation out of a batch, median of the rounds; p99 of operations measured one by "
             "one. floor: the same over a "
             "backend that does nothing (DDP: one rank), and the library's own call. Main threads "
             "have a CPU each, if there are as many; gloo's "
             "other threads run anywhere.");
    for (int i = 0; i < OPERATIONS; i++) {
        struct operation *o = &operations[i];
        if (o->rounds[TUTTI].n == 0 || o->rounds[GLOO].n == 0)
            continue;
        struct ratio ratio = series_ratio(&o->rounds[TUTTI], &o->rounds[GLOO]);
        double floor = floor_of(o);
        for (int who = 0; who < COUNT; who++) {
            struct figure *f = report_figure(report, o->what, names[who], UNIT_NS, ranks);
            figure_single(f, &o->single[who]);
            f->value = series_median(&o->rounds[who]);
            if (who == GLOO)
                continue;
            f->ratio = ratio;
            snprintf(f->against, sizeof f->against, "%s", names[GLOO]);
        }
        const char *cells[] = {
            o->what, unit_text(text[0], 32, UNIT_NS, series_median(&o->rounds[TUTTI])),
            unit_text(text[1], 32, UNIT_NS, series_median(&o->rounds[GLOO])),
            unit_text(text[2], 32, UNIT_RATIO, 1 / ratio.median),
            floor > 0 ? unit_text(text[3], 32, UNIT_NS, floor) : "",
            floor > 0 ? unit_text(text[4], 32, UNIT_RATIO, series_median(&o->rounds[GLOO]) / floor)
                : "",
            unit_text(text[5], 32, UNIT_NS, series_quantile(&o->single[TUTTI], 0.99))
        };
        table_row(t, false, cells);
        char what[80];
        snprintf(what, sizeof what, "%d ranks: %s, tutti / gloo", ranks, o->what);
        if (o->limit > 0)
            report_promise(report, what, ratio.median, o->limit, UNIT_RATIO);
    }
    struct operation *now = find("all_reduce_4096"), *later = find("async_4096");
    if (now->rounds[TUTTI].n && later->rounds[TUTTI].n)
        report_promise(report, "all_reduce 4 KiB: asynchronous / synchronous",
                       series_ratio(&later->rounds[TUTTI], &now->rounds[TUTTI]).median, 1.5,
                       UNIT_RATIO);
    show_shares(report);
}

static void show_alone(struct report *report)
{
    static const char *const heads[] = { "", "from Python", "torch alone", "difference", "from C" };
    static const int width[] = { -20, 13, 13, 13, 13 };
    char text[4][32];
    struct table *t = report_table(report, 5, heads, width);
    snprintf(t->title, sizeof t->title, "what a call costs, one rank");
    snprintf(t->note, sizeof t->note,
             "torch.distributed's function on tutti, the same on a backend of torch's that does "
             "nothing, and tutti.h's: one rank waits for "
             "nobody, so all of it is the call; of 200 batches the one that is slower than a "
             "tenth.");
    for (int i = 0; i < ALONE; i++) {
        double c = series_quantile(&alone[i].rounds[PLAIN_C], 0.1),
               python = series_quantile(&alone[i].rounds[PYTHON], 0.1);
        double bare = series_quantile(&alone[i].bare, 0.1);
        struct figure *f = report_figure(report, alone[i].what, "C alone", UNIT_NS, 1);
        figure_single(f, &alone[i].single[PLAIN_C]);
        f->value = c;
        if (alone[i].rounds[PYTHON].n && alone[i].bare.n) {
            f = report_figure(report, alone[i].what, "Python alone", UNIT_NS, 1);
            figure_single(f, &alone[i].single[PYTHON]);
            f->value = python;
            char what[80];
            snprintf(what, sizeof what, "%s: a call from Python, above torch's own", alone[i].what);
            report_promise(report, what, python - bare, 1000, UNIT_NS);
        }
        bool there = python > 0 && bare > 0;
        const char *cells[] = {
            alone[i].what, there ? unit_text(text[0], 32, UNIT_NS, python) : "",
            there ? unit_text(text[1], 32, UNIT_NS, bare) : "",
            there ? unit_text(text[2], 32, UNIT_NS, python - bare) : "",
            unit_text(text[3], 32, UNIT_NS, c)
        };
        table_row(t, false, cells);
    }
}

static void forget(struct operation *o)
{
    for (int who = 0; who < COUNT; who++) {
        series_free(&o->rounds[who]);
        series_free(&o->single[who]);
        o->rounds[who] = o->single[who] = (struct series){ 0 };
    }
    series_free(&o->bare);
    series_free(&o->engine);
    o->bare = o->engine = (struct series){ 0 };
}

int main(int argc, char **argv)
{
    struct perf_options options;
    struct report report;
    report_open(&report, &program, &options, argc, argv);
    bool there = *PERF_PYTHON && system("'" PERF_PYTHON "' -c 'import torch' 2>/dev/null") == 0;
    if (!there)
        fprintf(stderr,
                "torch: PyTorch is missing for '%s': C alone is measured (./bootstrap test makes "
                "build/venv, which has it)\n",
                PERF_PYTHON);
    for (int k = 0; there && k < options.lists; k++) {
        for (int i = 0; i < OPERATIONS; i++)
            forget(&operations[i]);
        if (!measure_python(&options, options.ranks[k])) {
            progress_clear();
            fprintf(stderr, "torch: %d ranks of %s failed\n", options.ranks[k], PERF_SCRIPT);
            return 1;
        }
        show(&report, options.ranks[k]);
    }
    if (!measure_c())
        return 1;
    show_alone(&report);
    return report_end(&report, &options);
}
