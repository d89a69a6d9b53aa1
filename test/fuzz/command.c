/* The command line, a word a line, up to the start of a job or a look at the machine's jobs. Both
 * are ours here: the start only looks at what it is given, the look finds that it cannot. */
#include "fuzz.h"

#include "arena/layout.h"
#include "cli/doctor.h"
#include "cli/doctor_tune.h"
#include "cli/perf.h"
#include "cli/ps.h"
#include "cli/run_mpi.h"
#include "cli/verb.h"
#include "launch/supervisor.h"

#include <errno.h>
#include <getopt.h>

enum { WORDS = 24 };

int command_main(int argc, char **argv);             /* cli/main.c */
int supervisor_run(const struct job *job);

int supervisor_run(const struct job *job)
{
    FUZZ_MUST(job->size >= 1 && job->size <= RANKS_MAX && job->argv && job->argv[0]);
    FUZZ_MUST(job->restarts >= 0 && job->bind >= JOB_BIND_NONE && job->bind <= JOB_BIND_NUMA);
    for (char **word = job->argv; *word; word++)
        FUZZ_MUST(strlen(*word) < 1 << 20);
    return 0;
}

void doctor_host(struct doctor *d) { (void)d; }

int doctor_tune(int seconds, bool dry)
{
    FUZZ_MUST(seconds >= 1 && seconds <= 3600);
    return dry;
}

int perf_exec(const char *program, char **args)
{
    FUZZ_MUST(program[0] && args[0]);
    for (char **word = args; *word; word++)
        FUZZ_MUST(strlen(*word) < 1 << 20);
    return 0;
}

int run_mpi(int size, bool verbose, char **argv)
{
    (void)verbose;
    FUZZ_MUST(size >= 1 && size <= RANKS_MAX && argv[0]);
    for (char **word = argv; *word; word++)
        FUZZ_MUST(strlen(*word) < 1 << 20);
    return 0;
}

int jobs_look(struct seen_jobs *j, struct known_jobs *known, const char *only, uint64_t stuck_ns)
{
    (void)known;
    *j = (struct seen_jobs){ 0 };
    FUZZ_MUST((!only || strlen(only) < 1 << 20) && stuck_ns > 0);
    return -EIO;
}

int jobs_look_twice(struct seen_jobs *j, const char *only, uint64_t stuck_ns)
{
    return jobs_look(j, NULL, only, stuck_ns);
}

int jobs_hold(struct held_job *held, const char *only)
{
    FUZZ_MUST(held && strlen(only) < 1 << 20);
    return -EIO;
}

void jobs_drop(struct seen_jobs *j) { FUZZ_MUST(j->n == 0); }

void jobs_compare(struct seen_jobs *j, const struct seen_jobs *before)
{
    FUZZ_MUST(j->n == 0 && before->n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    char *argv[WORDS + 2] = { (char *)(uintptr_t)"tutti" };
    int argc = 1;
    char *text = feed_text(&feed, feed.left);
    for (char *word = text; word && argc <= WORDS; argc++) {        /* empty words are words, too */
        char *end = strchr(word, '\n');
        if (end)
            *end = 0;
        argv[argc] = word;
        word = end ? end + 1 : NULL;
    }
    optind = 0;
    int r = command_main(argc, argv);
    FUZZ_MUST((r >= 0 && r <= VERB_USAGE) || r == LOOK_USAGE || r == LOOK_FAILED);
    free(text);
    return 0;
}
