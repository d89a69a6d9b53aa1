/* tutti why: what a job waits for, who keeps it waiting, what that rank does instead, and how to
 * look further. All that it says is read: no signal is sent, but by --stack; no process is
 * stopped. */
#include "cli/option.h"
#include "cli/ps.h"
#include "cli/verb.h"

#include <string.h>

static const struct option options[] = {
    { "stuck", required_argument, NULL, 's' },
    { "stack", no_argument, NULL, 'k' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static const char help[] =
    "usage: tutti why [JOB|BOX] [--stuck SECONDS] [--stack]\n"
    "\n"
    "Says in at most five lines, continued where they are wide, what a job waits\n"
    "for, which ranks keep it waiting, what these do instead, and how to look\n"
    "further. It only reads. JOB is a job's name, or the pid of one of its processes,\n"
    "BOX the path of a black box; without it: each job of yours.\n"
    "\n"
    "  --stuck SECONDS   from this age a wait counts as stuck; default: 30\n"
    "  --stack           also the stack, of C and of Python, of the rank that keeps\n"
    "                    the others waiting. Asks it by SIGURG: a sleep of the\n"
    "                    program may end early by that\n"
    "  -h, --help        this text\n"
    "\n"
    "Exit status: as of tutti ps.\n";

int verb_why(int argc, char **argv)
{
    uint64_t stuck_ns = PS_STUCK_NS;
    bool stack = false;
    struct seen_jobs j;
    const struct option_words words = { "tutti why", ":h", options, argc, argv };
    int option;
    while ((option = option_next(&words)) != OPTION_END) {
        if (option == 'h') {
            fputs(help, stdout);
            return fflush(stdout) == 0 ? 0 : LOOK_FAILED;
        }
        if (option == 'k') {
            stack = true;
            continue;
        }
        if (option == OPTION_REFUSED)
            return LOOK_USAGE;
        if (ps_seconds(optarg, &stuck_ns) < 0) {
            verb_refuse("why", "--stuck wants seconds, not '%.40s'", optarg);
            return LOOK_USAGE;
        }
    }
    if (optind + 1 < argc) {
        verb_refuse("why", "one job at a time");
        return LOOK_USAGE;
    }
    const char *only = argv[optind];
    int error = jobs_look_twice(&j, only, stuck_ns);
    if (error)
        return ps_failed("why", error);
    if (j.n == 0)
        ps_nothing(stdout, &j, only);
    for (size_t i = 0; i < j.n; i++)
        why_job(stdout, &j.at[i], stack);
    int status = ps_end(&j, only);
    jobs_drop(&j);
    return status;
}
