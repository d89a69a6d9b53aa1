/* The command finds the verb in the table below. `tutti help` prints the same table. */
#include "cli/option.h"
#include "cli/verb.h"

#include "base/guess.h"

#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

const struct verb verbs[] = {
    { "run", "start a program as N ranks of one job", verb_run },
    { "ps", "what the ranks of each job do, seen from another terminal", verb_ps },
    { "why", "what a job waits for, and which rank keeps it waiting", verb_why },
    { "trace", "what its ranks did last, for Perfetto, a browser, torchfrtrace", verb_trace },
    { "late", "which ranks the others wait for, how often and by how much", verb_late },
    { "doctor", "what this machine has for ranks, and what is wrong with it", verb_doctor },
    { "perf", "how fast it is here, beside other systems", verb_perf },
    { "help", "this text, or that of a verb: tutti help run", verb_help },
    { "version", "print the version", verb_version },
    { NULL, NULL, NULL },
};

int verb_refuse(const char *verb, const char *format, ...)
{
    char who[32], what[512];
    va_list list;
    snprintf(who, sizeof who, "tutti%s%s", verb ? " " : "", verb ? verb : "");
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    option_refuse(who, "%s", what);
    return VERB_USAGE;
}

static int unknown(const char *name)
{
    struct guess g;
    guess_begin(&g, name);
    for (const struct verb *v = verbs; v->name; v++)
        guess_add(&g, v->name);
    if (g.best)
        return verb_refuse(NULL, "there is no verb '%.40s'; did you mean '%s'?", name, g.best);
    if (name[0] == '-')
        return verb_refuse(NULL, "%.40s is no option of ours; a verb comes first", name);
    if (strchr(name, '/') || strchr(name, '.'))
        return verb_refuse(NULL, "there is no verb '%.40s'; to start it: tutti run %.40s", name,
                           name);
    return verb_refuse(NULL, "there is no verb '%.40s'", name);
}

int main(int argc, char **argv)
{
    static const struct { const char *flag, *verb; } flags[] = {
        { "--help", "help" }, { "-h", "help" }, { "--version", "version" },
    };
    if (argc < 2)
        return verb_help(argc, argv);
    const char *name = argv[1];
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (!strcmp(name, flags[i].flag))
            name = flags[i].verb;
    for (const struct verb *v = verbs; v->name; v++)
        if (!strcmp(name, v->name)) {
            if (v->run != verb_run)
                /* else the ends of children could not be read; run handles that itself */
                signal(SIGCHLD, SIG_DFL);
            return v->run(argc - 1, argv + 1);
        }
    return unknown(name);
}
