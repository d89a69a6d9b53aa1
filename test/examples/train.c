/* SPDX-License-Identifier: MIT */
/* Shows: data-parallel training. Every rank holds the same small language model and learns from
 * characters of its own choice of the same text; each step takes the mean of all ranks' gradients,
 * so the weights stay the same on all ranks, to the bit.
 *
 *     tutti run -n 2 train                       the licence texts that every Debian carries
 *     tutti run -n 4 train --steps 500 *.txt     your own texts
 *
 * Read run() at the end first: its calls are the story. Of tutti it shows tutti_broadcast (a path
 * that one rank made up), tutti_first_begin/end (one rank prepares, the others use the cache),
 * tutti_seed (other examples on every rank), tutti_turn_begin/end (printing in rank order),
 * tutti_all_reduce (gradients, mean of the loss, equal checksums), tutti_barrier, tutti_stats, and
 * tutti_comm_abort (to pass on an error that tutti cannot know of).
 *
 * Exit code: 0 the model has learnt, 1 it has not or something failed, 2 usage. */
#include "train/file.h"
#include "train/model.h"
#include "train/options.h"
#include "train/progress.h"
#include "train/text.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tutti.h>

/* Learnt means: the held-out loss is below this part of the unigram entropy, which is the loss of
 * one who knows how often each character occurs, and nothing of its neighbours. */
static const double learnt = 0.9;

struct job {
    tutti_comm    *world;
    int            rank, size;
    struct options options;
    char           directory[PATH_MAX];
    int            is_temporary;        /* the directory: to be removed at the end */
    int            has_prepared;        /* this rank made the data set */
    struct text    text;
    struct model   model;
    int            batch;               /* characters per step, of this rank */
    uint64_t       seed;                /* of this rank */
    double         seconds;             /* of training */
    /* nats per character: last tenth of the steps, held-out text */
    double         loss, held_loss;
    /* of the time: waiting for other ranks, folding and copying; mean of ranks */
    float          share[2];
    uint64_t       checksum;
};

/* For errors of our own. This rank says what it was; the others meet it as -ECANCELED in their next
 * call, and need not say it again. */
__attribute__((format(printf, 2, 3))) static int give_up(const struct job *job, const char *format,
                                                         ...)
{
    char why[TEXT_WHY + PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    fprintf(stderr, "train: %s\n", why);
    tutti_comm_abort(job->world, why);
    return -ECANCELED;
}

/* ---- the data set ---- */

/* Rank 0 chooses; the others could not guess the name of a temporary directory. */
static int share_directory(struct job *job)
{
    const char *given = job->options.cache, *temporary = getenv("TMPDIR");
    size_t room = sizeof job->directory;
    if (job->rank == 0 && given) {
        snprintf(job->directory, room, "%s", given);
        if (mkdir(given, 0777) < 0 && errno != EEXIST)
            return give_up(job, "%s: %s", given, strerror(errno));
    } else if (job->rank == 0) {
        snprintf(job->directory, room, "%s/tutti-train-XXXXXX", temporary ? temporary : "/tmp");
        if (!mkdtemp(job->directory))
            return give_up(job, "%s: %s", job->directory, strerror(errno));
        job->is_temporary = 1;
    }
    int error = tutti_broadcast(job->directory, room, TUTTI_U8, 0, job->world, NULL);
    if (error < 0) return error;
    job->is_temporary = !given;
    return 0;
}

/* The first rank to come here prepares the cache file, the others wait for it and need only the
 * cache. If the first one dies, the next takes over. */
static int share_text(struct job *job)
{
    char cache[PATH_MAX + 16], why[TEXT_WHY];
    snprintf(cache, sizeof cache, "%s/dataset", job->directory);
    int first = tutti_first_begin("dataset", job->world, NULL);
    if (first < 0) return first;
    if (first == 1) {
        int made = text_prepare(cache, job->options.file, job->options.files, why);
        /* Another rank would fail just so: end all, before the next one is let in. */
        if (made < 0) give_up(job, "%s", why);
        int error = tutti_first_end("dataset", made < 0 ? made : 0, job->world);
        if (made < 0) return -ECANCELED;
        if (error < 0) return error;
        job->has_prepared = made;
    }
    if (text_use(cache, &job->text, why) < 0) return give_up(job, "%s", why);
    return 0;
}

static int introduce_ranks(struct job *job)
{
    if (job->options.quiet) return 0;
    int error = tutti_turn_begin(job->world, NULL);
    if (error < 0) return error;
    if (job->rank == 0)
        printf("%d files, %zu characters to learn from, %zu held out, %d different\n",
               job->text.files, job->text.learn, job->text.held, job->text.vocabulary);
    printf("rank %d of %d: seed %016" PRIx64 ", batch %d, %s\n", job->rank, job->size, job->seed,
           job->batch, job->has_prepared ? "prepared the data set" : "used the cache");
    fflush(stdout);     /* within the turn, or it would be printed out of turn */
    return tutti_turn_end(job->world);
}

/* ---- training ---- */

static int step(struct job *job, size_t at[], uint64_t *random, float rate, float *loss)
{
    struct model *model = &job->model;
    for (int i = 0; i < job->batch; i++)
        at[i] = CONTEXT + random_next(random) % (job->text.learn - CONTEXT);
    *loss = model_learn(model, job->text.tokens, at, job->batch);
    int error = tutti_all_reduce(model->gradient, model->gradient, model->count, TUTTI_F32,
                                 TUTTI_AVG, job->world, NULL);
    if (error < 0) return error;
    model_update(model, rate);
    return 0;
}

static int take_steps(struct job *job, size_t at[])
{
    const int steps = job->options.steps, report = steps < 100 ? 1 : steps / 100,
              tail = (steps + 9) / 10;
    const float fastest = 0.005f;
    struct progress progress;
    double recent = 0, late = 0;
    uint64_t random = job->seed;
    progress_begin(&progress, steps, job->options.quiet || job->rank != 0, job->options.bar);
    for (int done = 0; done < steps;) {
        float loss, rate = fastest * (1 - 0.95f * (float)done / (float)steps);
        int error = step(job, at, &random, rate, &loss);
        if (error < 0) return error;
        recent += (double)loss;
        if (done++ >= steps - tail) late += (double)loss;
        /* Whether to call a collective must be decided by what all ranks know; never by,
         * say, isatty(). */
        if (done % report != 0 && done != steps) continue;
        float mean = (float)(recent / (done % report ? done % report : report));
        error = tutti_all_reduce(&mean, &mean, 1, TUTTI_F32, TUTTI_AVG, job->world, NULL);
        if (error < 0) return error;
        progress_show(&progress, done, (double)mean);
        recent = 0;
    }
    job->loss = late / tail;
    return tutti_all_reduce(&job->loss, &job->loss, 1, TUTTI_F64, TUTTI_AVG, job->world, NULL);
}

static int train(struct job *job)
{
    tutti_figures before, after;
    size_t *at = malloc((size_t)job->batch * sizeof *at);
    if (!at) return give_up(job, "out of memory");
    int error = tutti_barrier(job->world, NULL);    /* all set out together: now the time counts */
    if (error == 0) error = tutti_stats(job->world, &before);
    double begin = clock_seconds();
    if (error == 0) error = take_steps(job, at);
    free(at);
    if (error < 0) return error;
    job->seconds = clock_seconds() - begin;
    error = tutti_stats(job->world, &after);
    if (error < 0) return error;
    job->share[0] = (float)((double)(after.wait_ns - before.wait_ns) * 1e-9 / job->seconds);
    job->share[1] = (float)((double)(after.fold_ns - before.fold_ns) * 1e-9 / job->seconds);
    return tutti_all_reduce(job->share, job->share, 2, TUTTI_F32, TUTTI_AVG, job->world, NULL);
}

/* Rank 0 alone judges the model. The barrier before: all training is over, so the cores are its
 * own. The barrier after: nobody has gone on, and all learn the outcome. */
static int judge(struct job *job)
{
    int error = tutti_barrier(job->world, NULL);
    if (error < 0) return error;
    if (job->rank == 0)
        job->held_loss = model_judge(&job->model, job->text.tokens + job->text.learn,
                                     job->text.held);
    error = tutti_barrier(job->world, NULL);
    if (error < 0) return error;
    return tutti_broadcast(&job->held_loss, 1, TUTTI_F64, 0, job->world, NULL);
}

/* ---- what came of it ---- */

/* Rank 0 writes the weights, all read them back; every rank's own weights and what it has read must
 * be the same. */
static int check_weights(struct job *job)
{
    char in_directory[PATH_MAX + 16];
    const char *path = job->options.checkpoint;
    uint64_t sums[2], least[2], most[2];
    int error = 0;
    if (!path) {
        snprintf(in_directory, sizeof in_directory, "%s/checkpoint", job->directory);
        path = in_directory;
    }
    if (job->rank == 0) error = model_save(&job->model, path);
    if (error < 0) return give_up(job, "%s: %s", path, strerror(-error));
    error = tutti_barrier(job->world, NULL);        /* now it is there */
    if (error < 0) return error;
    sums[0] = model_checksum(&job->model);
    error = model_load(&job->model, path);
    if (error < 0) return give_up(job, "%s: %s", path, strerror(-error));
    sums[1] = job->checksum = model_checksum(&job->model);
    error = tutti_all_reduce(sums, least, 2, TUTTI_U64, TUTTI_MIN, job->world, NULL);
    if (error < 0) return error;
    error = tutti_all_reduce(sums, most, 2, TUTTI_U64, TUTTI_MAX, job->world, NULL);
    if (error < 0) return error;
    if (least[0] == most[0] && least[1] == most[1] && least[0] == least[1]) return 0;
    return job->rank == 0
        ? give_up(job, "the weights differ between the ranks, or from the checkpoint")
        : -ECANCELED;
}

static void print_sample(struct job *job)
{
    enum { COLUMNS = 76, LINES = 3 };
    unsigned char context[CONTEXT];
    uint64_t random = job->options.seed;
    int last = ' ';
    memcpy(context, job->text.tokens + job->text.learn, CONTEXT);
    fputs("sample:\n  ", stdout);
    for (int printed = 0; printed < LINES * COLUMNS;) {
        int token = model_draw(&job->model, context, &random), symbol = job->text.symbols[token];
        memmove(context, context + 1, CONTEXT - 1);
        context[CONTEXT - 1] = (unsigned char)token;
        if (!isgraph(symbol)) symbol = ' ';
        if (symbol == ' ' && last == ' ') continue;
        last = symbol;
        putchar(symbol);
        if (++printed % COLUMNS == 0) fputs(printed < LINES * COLUMNS ? "\n  " : "\n", stdout);
    }
}

static void print_results(struct job *job)
{
    double characters = (double)job->options.steps * job->batch * job->size;
    double waited = 100 * (double)job->share[0], folded = 100 * (double)job->share[1];
    if (!job->options.quiet) print_sample(job);
    printf("training loss    %6.3f nats per character (mean of the last tenth)\n", job->loss);
    printf("held-out loss    %6.3f nats per character\n", job->held_loss);
    printf("unigram entropy  %6.3f nats per character\n", job->text.unigram);
    printf("speed            %6.0f characters per second, all ranks together\n",
           characters / job->seconds);
    printf("time in tutti    %6.1f %%: waiting for others %.1f, folding and copying %.1f\n"
           "                        (by tutti_stats, mean of the ranks)\n",
           waited + folded, waited, folded);
    printf("weights          %016" PRIx64 " on %d of %d ranks and in the checkpoint\n",
           job->checksum, job->size, job->size);
}

static int run(struct job *job)
{
    int error = share_directory(job);
    if (error < 0) return error;
    error = share_text(job);
    if (error < 0) return error;
    /* The same first weights on all ranks, but other examples on each. */
    if (model_create(&job->model, job->text.vocabulary, job->options.seed) < 0)
        return give_up(job, "out of memory");
    job->seed = tutti_seed(job->options.seed, job->world);
    job->batch = (job->options.batch + job->size - 1) / job->size;
    error = introduce_ranks(job);
    if (error < 0) return error;
    error = train(job);
    if (error < 0) return error;
    error = judge(job);
    if (error < 0) return error;
    error = check_weights(job);
    if (error < 0) return error;
    if (job->rank == 0) print_results(job);
    if (job->held_loss < learnt * job->text.unigram) return 0;      /* not so for a NaN either */
    return job->rank == 0
        ? give_up(job, "not learnt: the held-out loss is not below %.1f unigram entropies", learnt)
        : -ECANCELED;
}

int main(int argc, char **argv)
{
    static struct job job;
    int error = tutti_init(&job.world, NULL);
    if (error < 0) {
        fprintf(stderr, "train: %s\n", tutti_explain(NULL));
        return 1;
    }
    job.rank = tutti_rank(job.world);
    job.size = tutti_size(job.world);
    opterr = job.rank == 0;     /* all ranks read the same arguments, one complains */
    int wanted = options_read(argc, argv, &job.options);
    if (wanted != 0) {
        if (job.rank == 0) fputs(options_help, wanted > 0 ? stdout : stderr);
        tutti_finalize(job.world);
        return wanted > 0 ? 0 : 2;
    }
    error = run(&job);
    if (error < 0 && error != -ECANCELED)
        fprintf(stderr, "train: rank %d: %s\n", job.rank, tutti_explain(job.world));
    /* After a failure every rank tidies up: rank 0 may be the one that died. */
    if (job.is_temporary && (job.rank == 0 || error < 0)) file_remove_directory(job.directory);
    model_free(&job.model);
    text_free(&job.text);
    tutti_finalize(job.world);
    return error < 0 ? 1 : 0;
}
