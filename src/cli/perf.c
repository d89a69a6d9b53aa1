/* tutti perf: how fast it is here, beside other systems. The measuring programs are separate
 * programs (perf/), because they are larger than the command and need what is found where they are
 * built. This verb chooses the program for each word. */
#include "cli/perf.h"
#include "cli/verb.h"

#include "base/guess.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word that the user may give, and the program that measures it. */
static const struct question { const char *name, *program, *summary; } questions[] = {
    { "overview", "overview", "all of it, shortly: the default" },
    { "barrier", "barrier", "barriers: tutti's, the textbook's, those of MPI, OpenMP, pthreads" },
    { "collective", "collective", "several collectives, or all of them" },
    { "crowd", "crowd", "barriers of more and more ranks on the same CPUs" },
    { "versus", "versus", "is it behind any MPI? twenty minutes; takes names and sizes" },
    { "growth", "growth", "how time grows with ranks, 1 to 64, and bytes; where the kinks are" },
    { "wait", "wait", "CPU time burnt while waiting 100 ms" },
    { "start", "start", "from the start of a job to the end of its first barrier" },
    { "first", "first", "the first operations of a comm, while its memory is touched" },
    { "arena", "arena", "what an all_reduce gains when its buffers lie in the arena" },
    { "p2p", "p2p", "messages there and back" },
    { "disk", "disk", "one file to all ranks" },
    { "death", "death", "from SIGKILL to the survivors' return" },
    { "faults", "faults", "what becomes of the others when a rank fails, here and elsewhere" },
    { "device", "device", "collectives on GPU memory" },
    { "floor", "floor", "what the machine itself costs" },
    { "table", "table", "everything that is promised, and whether it is kept" },
    { "all_reduce", "collective", NULL }, { "broadcast", "collective", NULL },
    { "reduce", "collective", NULL }, { "reduce_scatter", "collective", NULL },
    { "all_gather", "collective", NULL }, { "gather", "collective", NULL },
    { "scatter", "collective", NULL }, { "all_to_all", "collective", NULL },
    { "scan", "collective", NULL }, { "exscan", "collective", NULL },
    { "sendrecv", "collective", NULL },
};
enum { QUESTIONS = sizeof questions / sizeof questions[0] };

static int help(void)
{
    printf("usage: tutti perf [WHAT] [OPTION...]\n"
           "\n"
           "Measures how fast it is here, in turns with the other systems that were found\n"
           "when this was built: Open MPI, MPICH, Intel MPI, Gloo, torch, OpenMP.\n\n");
    for (int i = 0; i < QUESTIONS; i++)
        if (questions[i].summary)
            printf("  %-11s %s\n", questions[i].name, questions[i].summary);
    printf("\n"
           "or a collective: all_reduce broadcast reduce reduce_scatter all_gather gather\n"
           "scatter all_to_all scan exscan sendrecv\n"
           "\n"
           "  -n LIST          numbers of ranks, as 2,4,8\n"
           "  --quick          tenths of a second: shows that it works, nothing else\n"
           "  --seconds S      how long to measure, for each number of ranks\n"
           "  --most BYTES     largest message, as 64k or 16M\n"
           "  --without LIST   leave out openmpi, mpich, openmpi5, mpich5, impi, gloo,\n"
           "                   torch, gomp, lomp, or all\n"
           "  --rounds FILE    versus: keep each round there; a later run adds to it\n"
           "  --html FILE      one page with plots that needs nothing but a browser\n"
           "  --csv            comma separated values on stdout in place of the tables\n"
           "  --json FILE      all figures, for programs\n"
           "  --strict         exit status 1 if a promise is missed\n"
           "  --table          the same as the word table\n"
           "  -h, --help       this text; tutti perf WHAT --help says more\n"
           "\nexamples:\n"
           "  tutti perf\n"
           "  tutti perf barrier -n 2 --html out.html\n"
           "  tutti perf all_reduce -n 2 --most 16M\n"
           "  tutti perf versus broadcast 64k 1M -n 2 --seconds 20\n");
    return fflush(stdout) == 0 ? 0 : 1;
}

static const struct question *named(const char *name)
{
    for (int i = 0; i < QUESTIONS; i++)
        if (!strcmp(questions[i].name, name))
            return &questions[i];
    return NULL;
}

static int unknown(const char *name)
{
    struct guess g;
    guess_begin(&g, name);
    for (int i = 0; i < QUESTIONS; i++)
        guess_add(&g, questions[i].name);
    if (g.best)
        return verb_refuse("perf", "there is nothing called '%.40s'; did you mean '%s'?", name,
                           g.best);
    return verb_refuse("perf", "there is nothing called '%.40s'", name);
}

int verb_perf(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "overview";
    bool given = argc > 1 && (word[0] != '-' || !strcmp(word, "--table"));
    char name[64];
    if (!strcmp(word, "--help") || !strcmp(word, "-h"))
        return help();
    const char *asked = !given ? "overview" : word[0] == '-' ? "table" : word;
    const struct question *q = named(asked);
    if (!q)
        return unknown(asked);
    /* A collective is an argument of its program; the others are the program itself. */
    bool operation = q->summary == NULL;
    char **args = calloc((size_t)argc + 3, sizeof *args);
    int n = 0;
    if (!args)
        return 1;
    snprintf(name, sizeof name, "tutti perf%s%s", given && !operation ? " " : "",
             given && !operation ? asked : "");
    args[n++] = name;
    for (int i = given && !operation ? 2 : 1; i < argc; i++)
        args[n++] = argv[i];
    int status = perf_exec(q->program, args);
    free(args);
    return status;
}
