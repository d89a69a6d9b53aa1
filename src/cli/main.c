/* The command finds the verb in the table below. `tutti help` prints the same table. */
#include "cli/verb.h"

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
    va_list list;
    fprintf(stderr, "tutti%s%s: ", verb ? " " : "", verb ? verb : "");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "; try 'tutti %s%s--help'\n", verb ? verb : "", verb ? " " : "");
    return VERB_USAGE;
}

enum { NAME_MOST = 32 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t verb_distance(const char *a, const char *b)
{
    size_t row[NAME_MOST + 1], n = strlen(a), m = strlen(b);
    if (n > NAME_MOST || m > NAME_MOST)
        return NAME_MOST;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t above = row[j];
            row[j] = least(corner + (a[i - 1] != b[j - 1]), least(above, row[j - 1]) + 1);
            corner = above;
        }
    }
    return row[m];
}

static int unknown(const char *name)
{
    const char *nearest = NULL;
    size_t best = 3;                     /* a larger distance is no typing error */
    for (const struct verb *v = verbs; v->name; v++) {
        size_t d = verb_distance(name, v->name);
        if (d < best && d < strlen(v->name)) {
            best = d;
            nearest = v->name;
        }
    }
    if (nearest)
        return verb_refuse(NULL, "there is no verb '%s'; did you mean '%s'?", name, nearest);
    return verb_refuse(NULL, "there is no verb '%s'", name);
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
