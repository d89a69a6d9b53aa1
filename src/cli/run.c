/* tutti run: the command line of a job. Options end at the first word that is no option: the rest
 * is the program's command line. */
#include "cli/ps.h"
#include "cli/verb.h"

#include "arena/layout.h"
#include "base/text.h"
#include "cli/run_mpi.h"
#include "launch/supervisor.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    { "nproc_per_node", required_argument, NULL, OPT_NPROC },
    { "nproc-per-node", required_argument, NULL, OPT_NPROC },
    { "bind", required_argument, NULL, OPT_BIND },
    { "timeout", required_argument, NULL, OPT_TIMEOUT },
    { "grace", required_argument, NULL, OPT_GRACE },
    { "restart", required_argument, NULL, OPT_RESTART },
    { "tag", no_argument, NULL, OPT_TAG },
    { "tty", no_argument, NULL, OPT_TTY },
    { "local-rank-arg", no_argument, NULL, OPT_LOCAL_RANK },
    { "as-gloo", no_argument, NULL, OPT_AS_GLOO },
    { "mpi", no_argument, NULL, OPT_MPI },
    { "verbose", no_argument, NULL, 'v' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static const char help[] =
    "usage: tutti run -n N [OPTION...] PROGRAM [ARGUMENT...]\n"
    "\n"
    "Starts PROGRAM as N ranks of one job, brings their output together line by\n"
    "line, and ends the others when one rank fails.\n"
    "\n"
    "  -n N, --nproc_per_node N   how many ranks, 1 to 1024\n"
    "  --bind core|numa|none      each rank on a core or a NUMA node of its own;\n"
    "                             default: none\n"
    "  --timeout TIME             end the job when it has run for this long: 30s,\n"
    "                             500ms, 10min, 2h; default: never\n"
    "  --grace TIME               from the first failure, or a signal to end, to\n"
    "                             SIGKILL; default: 5s\n"
    "  --restart N                after a failure start the whole job again, at\n"
    "                             most N times; default: 0\n"
    "  --tag                      put \"[rank] \" before each line of output\n"
    "  --tty                      each rank writes to a terminal, both streams to one\n"
    "  --local-rank-arg           add --local_rank=R to each rank's arguments\n"
    "  --as-gloo                  PyTorch programs that ask for gloo get tutti\n"
    "                             (TUTTI_AS_GLOO=1 for each rank)\n"
    "  --mpi                      PROGRAM is an MPI program: its own mpirun starts\n"
    "                             it; its blocking collectives go through tutti\n"
    "  -v, --verbose              with --mpi: say which mpirun, and why\n"
    "  -h, --help                 this text\n"
    "\n"
    "Each rank finds RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR\n"
    "and MASTER_PORT in its environment. Rank 0 has our standard input.\n"
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

static int take_size(struct job *job, const char *s)
{
    int64_t n;
    if (text_parse_int(s, 1, RANKS_MAX, &n) < 0)
        return verb_refuse("run", "-n wants a number from 1 to %d, not '%.40s'", RANKS_MAX, s);
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

/* getopt returns '?' for an unknown option and ':' for a missing argument. The word is the one
 * before optind. */
static int refuse_option(int option, char **argv)
{
    char letter[] = { '-', (char)optopt, 0 };
    const char *word = optopt > 0 && optopt < 256 ? letter : argv[optind - 1];
    if (option == ':')
        return verb_refuse("run", "%.40s wants a value", word);
    return verb_refuse("run", "%s is no option of ours", word);
}

static void say_why(FILE *out, pid_t launcher)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)launcher);
    if (why_write(out, pid, PS_STUCK_NS) < 0)
        fprintf(out, "the ranks cannot be looked at\n");
}

int verb_run(int argc, char **argv)
{
    struct job job = { .grace_ms = GRACE_MS, .why = say_why };
    bool mpi = false, verbose = false;
    const char *other = NULL;
    int option, r = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:n:vh", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return fflush(stdout) == 0 ? 0 : 1;
        }
        if (option == '?' || option == ':')
            return refuse_option(option, argv);
        mpi |= option == OPT_MPI;
        verbose |= option == 'v';
        if (option == OPT_MPI || option == 'v')
            continue;
        other = option == 'n' || option == OPT_NPROC ? other : argv[optind - 1];
        r = take_option(&job, option);
        if (r != 0)
            return r;
    }
    if (job.size == 0)
        return verb_refuse("run", "-n is missing: how many ranks?");
    if (optind >= argc)
        return verb_refuse("run", "no program to run");
    if (mpi && other)
        return verb_refuse("run", "with --mpi there are only -n and -v: mpirun starts the ranks");
    if (mpi)
        return run_mpi((int)job.size, verbose, argv + optind);
    job.argv = argv + optind;
    return supervisor_run(&job);
}
