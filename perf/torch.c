/* The backend of torch.distributed: perf/torch/ranks.py measures, in Python, tutti's beside torch's gloo, in the same processes and in turns;
 * here its lines become figures, ratios by rounds, and promises. What a call from Python costs above one from C is told by ranks that are
 * alone, in one language and the other: they wait for nobody.
 *
 * Without torch (or the extension) only the figures of C are there, and a line says so. */
#include "harness/progress.h"
#include "harness/report.h"
#include "harness/stamp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct perf_program program = {
    .name = "torch",
    .question = "How long do collectives and a training step of PyTorch take on tutti, beside its gloo, and what does a call from Python cost?",
    .ranks = "2",
    .seconds = 20,
    .sizes = true,
    .examples = "  torch --ranks 2,4\n  torch --most 1M --strict\n",
};

enum { TUTTI, GLOO, COUNT };
static const char *const names[COUNT] = { "tutti", "gloo" };

struct operation { const char *key, *what; double limit; struct series rounds[COUNT], single[COUNT]; };

/* limit: of tutti's time by gloo's. */
static struct operation operations[] = {
    { .key = "barrier", .what = "barrier", .limit = 1.0 / 25 },
    { .key = "all_reduce_4", .what = "all_reduce 4 B", .limit = 1.0 / 25 },
    { .key = "all_reduce_1048576", .what = "all_reduce 1 MiB", .limit = 1.0 / 5 },
    { .key = "all_reduce_67108864", .what = "all_reduce 64 MiB", .limit = 1.0 / 3 },
    { .key = "DDP_step", .what = "DDP step, small MLP", .limit = 1.0 / 2 },
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* One rank: what the same call takes from Python and from C. */
static struct operation alone[] = { { .key = "alone_barrier", .what = "barrier" }, { .key = "alone_all_reduce_4", .what = "all_reduce 4 B" } };
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
    char *at = NULL, *key = strtok_r(line, " \n", &at), *who = key ? strtok_r(NULL, " \n", &at) : NULL;
    char *times = who ? strtok_r(NULL, " \n", &at) : NULL, *whole = times ? strtok_r(NULL, " \n", &at) : NULL;
    struct operation *o = whole ? find(key) : NULL;
    if (!o)
        return;
    int i = strcmp(who, names[GLOO]) == 0 ? GLOO : TUTTI;
    series_add(&o->rounds[i], strtod(whole, NULL) / strtod(times, NULL));
    for (char *each; (each = strtok_r(NULL, " \n", &at));)
        series_add(&o->single[i], strtod(each, NULL));
}

/* Whether the ranks ended well. */
static bool measure_python(const struct perf_options *o, int ranks)
{
    char command[1024], *line = NULL;
    size_t room = 0;
    snprintf(command, sizeof command, "PYTHONPATH='%s' '%s' -W ignore '%s' --ranks %d --seconds %g --most %zu", PERF_PACKAGE, PERF_PYTHON, PERF_SCRIPT,
             ranks, o->quick ? 0.2 : o->seconds, o->quick ? (size_t)1 << 20 : o->most);
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

static int run_c(tutti_comm *world, void *arg)
{
    double (*took)[ALONE][BATCH] = arg;
    float x = 1;
    for (int round = -3; round < 30; round++)
        for (int kind = 0; kind < ALONE; kind++) {
            uint64_t began = stamp_now();
            for (int i = 0; i < BATCH; i++)
                if (kind ? tutti_all_reduce(&x, &x, 1, TUTTI_F32, TUTTI_SUM, world, NULL) : tutti_barrier(world, NULL))
                    return 1;
            if (round >= 0)
                took[0][kind][round] = stamp_ns(stamp_now() - began) / BATCH;
        }
    return 0;
}
