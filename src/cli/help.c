/* tutti help [VERB]. Each verb prints its own help. */
#include "cli/verb.h"

#include "base/guess.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int help_of(const char *name)
{
    char flag[] = "--help";
    for (const struct verb *v = verbs; v->name; v++)
        if (!strcmp(v->name, name) && v->run != verb_help) {
            char verb[32];
            snprintf(verb, sizeof verb, "%s", v->name);
            return v->run(2, (char *[]){ verb, flag, NULL });
        }
    struct guess g;
    guess_begin(&g, name);
    for (const struct verb *v = verbs; v->name; v++)
        guess_add(&g, v->name);
    if (g.best)
        return verb_refuse(NULL, "no help for '%.40s'; did you mean '%s'?", name, g.best);
    return verb_refuse(NULL, "no help for '%.40s'", name);
}

int verb_help(int argc, char **argv)
{
    bool flag = argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
    if (argc > 2)
        return verb_refuse("help", "one verb at most, not '%.40s', too", argv[2]);
    if (argc > 1 && !flag && strcmp(argv[1], "help") != 0)
        return help_of(argv[1]);
    printf(
        "tutti: the processes of one machine act together\n\nusage: tutti VERB [ARGUMENT...]\n\n");
    for (const struct verb *v = verbs; v->name; v++)
        printf("  %-9s %s\n", v->name, v->summary);
    printf("\n'tutti VERB --help' says more about one of them.\n");
    return fflush(stdout) == 0 ? 0 : 1;
}
