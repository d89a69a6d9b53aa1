/* tutti run: the command line of a job. Options end at the first word that is no option: the rest
 * is the program's command line. */
#include "cli/option.h"
#include "cli/ps.h"
#include "cli/verb.h"

#include "arena/layout.h"
#include "base/text.h"
#include "cli/run_mpi.h"
#include "cli/run_torchrun.h"
#include "launch/supervisor.h"
#include "os/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRACE_MS = 5000, RESTARTS_MOST = 1000000 };
enum {
    OPT_NPROC = 256,
    OPT_BIND,
    OPT_TIMEOUT,
    OPT_GRACE,
    OPT_RESTART,
    OPT_TAG,
    OPT_LOCAL_RANK,
    OPT_AS_GLOO,
    OPT_TTY,
    OPT_MPI
};

static const struct option options[] = {
    { "nproc-per-node", required_argument, NULL, OPT_NPROC },
    { "np", required_argument, NULL, OPT_NPROC },
    { "bind", required_argument, NULL, OPT_BIND },
    { "timeout", required_argument, NULL, OPT_TIMEOUT },
    { "grace", required_argument, NULL, OPT_GRACE },
    { "restart", required_argument, NULL, OPT_RESTART },
    { "max-restarts", required_argument, NULL, OPT_RESTART },
    { "tag", no_argument, NULL, OPT_TAG },
    { "tty", no_argument, NULL, OPT_TTY },
    { "local-rank-arg", no_argument, NULL, OPT_LOCAL_RANK },
    { "as-gloo", no_argument, NULL, OPT_AS_GLOO },
    { "mpi", no_argument, NULL, OPT_MPI },
    { "verbose", no_argument, NULL, 'v' },
    { "help", no_argument, NULL, 'h' },
    RUN_TORCHRUN_OPTIONS,
    { NULL, 0, NULL, 0 },
};

static const char help[] =
    "usage: tutti run [-n N] [OPTION...] PROGRAM [ARGUMENT...]\n"
    "\n"
    "Starts PROGRAM as N ranks of one job, brings their output together line by\n"
    "line, and ends the others when one rank fails.\n"
    "\n"
    "  -n N, --nproc_per_node N   how many ranks, 1 to 1024; auto, the default: one\n"
    "                             for each CPU that this process may use\n"
    "  --bind core|numa|none      each rank on a core or a NUMA node of its own;\n"
    "                             default: none\n"
    "  --timeout TIME             end the job when it has run for this long: 30s,\n"
    "                             500ms, 10min, 2h; default: never\n"
    "  --grace TIME               from the first failure, or a signal to end, to\n"
    "                             SIGKILL; default: 5s\n"
    "  --restart N                after a failure start the whole job again, at\n"
    "                             most N times; default: 0. Also: --max-restarts\n"
    "  --tag                      put \"[rank] \" before each line of output\n"
    "  --tty                      each rank writes to a terminal, both streams to one\n"
    "  --local-rank-arg           add --local_rank=R to each rank's arguments\n"
    "  --as-gloo                  PyTorch programs that ask for gloo get tutti\n"
    "                             (TUTTI_AS_GLOO=1 for each rank)\n"
    "  --mpi                      PROGRAM is an MPI program: its own mpirun starts\n"
    "                             it; its blocking collectives go through tutti\n"
    "  -v, --verbose              say what is set and what has no effect; with --mpi\n"
    "                             which mpirun, and why\n"
    "  -h, --help                 this text\n"
    "\n"
    "Each rank finds RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR\n"
    "and MASTER_PORT in its environment, and what torchrun sets besides; with two\n"
    "ranks or more OMP_NUM_THREADS=1, unless it is set. Rank 0 has our standard\n"
    "input. -np N is -n N. Options of torchrun are understood, or refused with what\n"
    "to write instead.\n"
    "\n"
    "Exit status: 0 if every rank's was 0, else that of the rank that failed\n"
    "first (128 + signal if it was killed); 124 after --timeout, 141 if nobody\n"
    "reads the output any more (| head), 126 or 127 if PROGRAM cannot be started,\n"
    "2 for a wrong command line.\n";

/* A number without a unit is refused: it would be milliseconds here, but its writer means
 * seconds. */
static int parse_time(const char *s, int64_t *ms)
{
    bool bare = *s && strspn(s, "0123456789") == strlen(s) && strcmp(s, "0") != 0;
    return bare ? -1 : text_parse_duration_ms(s, ms);
}

static int parse_bind(const char *s, enum job_bind *bind)
{
    static const char *const names[] = {
        [JOB_BIND_NONE] = "none", [JOB_BIND_CORE] = "core", [JOB_BIND_NUMA] = "numa"
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(s, names[i])) {
            *bind = (enum job_bind)i;
            return 0;
        }
    return -1;
}

/* As torchrun has it: a number, or auto or cpu. */
static int take_size(struct job *job, const char *s)
{
    int64_t n;
    job->size = 0;                       /* the last -n counts */
    if (!strcmp(s, "auto") || !strcmp(s, "cpu"))
        return 0;
    if (!strcmp(s, "gpu"))
        return verb_refuse("run", "-n gpu: GPUs are not counted here; write their number, "
                           "or -n auto for the CPUs");
    if (text_parse_int(s, 1, RANKS_MAX, &n) < 0)
        return verb_refuse("run", "-n wants a number from 1 to %d, or auto, not '%.40s'",
                           RANKS_MAX, s);
    job->size = (int)n;
    return 0;
}

static int take_option(struct job *job, int option)
{
    switch (option) {
    case 'n':
    case OPT_NPROC:
        return take_size(job, optarg);
    case OPT_BIND:
        return parse_bind(optarg, &job->bind)
            ? verb_refuse("run", "--bind wants core, numa or none, not '%.40s'", optarg)
            : 0;
    case OPT_TIMEOUT:
        if (parse_time(optarg, &job->timeout_ms) == 0 && job->timeout_ms != 0)
            return 0;
        return verb_refuse("run",
                           "--timeout wants a time with its unit, as 30s or 5min, not '%.40s'",
                           optarg);
    case OPT_GRACE:
        if (parse_time(optarg, &job->grace_ms) == 0)
            return 0;
        return verb_refuse("run", "--grace wants a time with its unit, as 5s or 500ms, not '%.40s'",
                           optarg);
    case OPT_RESTART:
        return text_parse_int(optarg, 0, RESTARTS_MOST, &job->restarts)
            ? verb_refuse("run", "--restart wants a number from 0 to %d, not '%.40s'",
                          RESTARTS_MOST, optarg)
            : 0;
    case OPT_AS_GLOO:
        return setenv("TUTTI_AS_GLOO", "1", 1) == 0
            ? 0
            : verb_refuse("run", "--as-gloo: no memory for a variable");
    case OPT_TTY:
        job->tty = true;
        return 0;
    case OPT_TAG:
        job->tag = true;
        return 0;
    default:
        job->local_rank_arg = true;
        return 0;
    }
}

/* What people type: -np N of mpirun, and --nproc_per_node, of whose spellings only one is listed.
 * The word is an option only if it stands where getopt reads next. */
static void translate(char **word)
{
    static char n[] = "-n";
    if (!*word)
        return;
    if (!strcmp(*word, "-np"))
        *word = n;
    if (!strncmp(*word, "--", 2))
        for (char *c = *word; *c && *c != '='; c++)
            if (*c == '_')
                *c = '-';
}

/* torchrun sets it, too, and warns. At a terminal somebody reads it; a log has it with -v. */
static int set_threads(const struct job *job, bool verbose)
{
    if (job->size < 2 || getenv("OMP_NUM_THREADS"))
        return 0;
    if (setenv("OMP_NUM_THREADS", "1", 1) < 0)
        return verb_refuse("run", "no memory for a variable");
    if (verbose || isatty(STDERR_FILENO))
        fprintf(stderr, "tutti run: OMP_NUM_THREADS=1 for each rank, as torchrun has it; set it to "
                "choose otherwise\n");
    return 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && !strcmp(name + n - m, end);
}

/* torchrun starts a script by itself. */
static int refuse_script(const char *name)
{
    if (!ends_with(name, ".py") || access(name, R_OK) != 0 || access(name, X_OK) == 0)
        return 0;
    return verb_refuse("run", "%.200s is no program; write the interpreter, too: "
                       "tutti run python3 %.200s", name, name);
}

static void say_why(FILE *out, pid_t launcher)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)launcher);
    if (why_write(out, pid, PS_STUCK_NS) < 0)
        fprintf(out, "the ranks cannot be looked at\n");
}

enum { SILENT_MOST = 16 };

struct wish_run {
    struct job job;
    bool help, mpi, verbose;
    const char *other;                   /* an option that is not for --mpi */
    const char *silent[SILENT_MOST];     /* options that have no effect */
    int silent_count;
};

/* 0, or the status to exit with. */
static int take_options(struct wish_run *w, int argc, char **argv)
{
    const struct option_words words = { "tutti run", "+:n:vhm", options, argc, argv };
    for (;;) {
        const char *silent = NULL;
        int at = optind;
        translate(argv + at);
        int option = option_next(&words), status = 0;
        if (option == OPTION_END)
            return 0;
        if (option == OPTION_REFUSED)
            return VERB_USAGE;
        if (option == 'h') {
            w->help = true;
            return 0;
        }
        w->mpi |= option == OPT_MPI;
        w->verbose |= option == 'v';
        if (option == OPT_MPI || option == 'v')
            continue;
        if (option == 'm')
            option = OPT_TORCHRUN_MODULE;
        if (option >= OPT_TORCHRUN) {
            status = run_torchrun(&w->job, option, optarg, &silent);
        } else {
            w->other = option == 'n' || option == OPT_NPROC ? w->other : argv[at];
            status = take_option(&w->job, option);
        }
        if (silent && w->silent_count < SILENT_MOST)
            w->silent[w->silent_count++] = silent;
        if (status != 0)
            return status;
    }
}

static void say_choices(const struct wish_run *w, bool counted)
{
    if (counted)
        fprintf(stderr, "tutti run: %d rank%s, one for each CPU that this process may use\n",
                w->job.size, w->job.size == 1 ? "" : "s");
    for (int i = 0; i < w->silent_count; i++)
        fprintf(stderr, "tutti run: --%s has no effect: the ranks meet in memory\n", w->silent[i]);
}

int verb_run(int argc, char **argv)
{
    struct wish_run w = { .job = { .grace_ms = GRACE_MS, .why = say_why } };
    int status = take_options(&w, argc, argv);
    if (w.help) {
        fputs(help, stdout);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    if (status != 0)
        return status;
    if (optind >= argc)
        return verb_refuse("run", "no program to run");
    if (w.mpi && w.other)
        return verb_refuse("run", "with --mpi there are only -n and -v, not %.40s: mpirun starts "
                           "the ranks", w.other);
    bool counted = w.job.size == 0;
    if (counted)
        w.job.size = cpu_allowed() < RANKS_MAX ? cpu_allowed() : RANKS_MAX;
    if (w.verbose)
        say_choices(&w, counted);
    status = refuse_script(argv[optind]);
    if (status == 0)
        status = set_threads(&w.job, w.verbose);
    if (status != 0)
        return status;
    if (w.mpi)
        return run_mpi(w.job.size, w.verbose, argv + optind);
    w.job.argv = argv + optind;
    return supervisor_run(&w.job);
}
