/* Job: the command line that all programs of perf/ share.
 * Owns: nothing.
 * Never: what a program measures. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

enum { PERF_RANKS_MAX = 64, PERF_LISTS_MAX = 8, PERF_WORDS_MAX = 16 };

struct perf_options {
    int ranks[PERF_LISTS_MAX], lists;   /* --ranks 2,4,8 */
    double seconds;                     /* per number of ranks */
    bool hot;                           /* buffers stay where they are, in the caches */
    bool quick;                         /* a run of some tenths of a second: does it work at all? */
    bool strict, csv;
    size_t most;                           /* largest message, bytes */
    bool most_given;
    const char *json, *html, *tutti;
    /* keys of peers to leave out, separated by commas, or "all" */
    const char *without;
    /* operations are started and waited for, beside blocking ones */
    bool work;
    const char *rounds;                    /* where rounds are kept; NULL: nowhere */
    const char *words[PERF_WORDS_MAX];     /* arguments that are no options */
    int word_count;
    char command[256];                     /* the whole command line */
    /* share of the CPUs' time that others had before anything was measured; 0: not looked at */
    double busy;
};

struct perf_program {
    const char *name;                      /* "barrier" */
    const char *question;                  /* one sentence, a line of --help and of the page */
    /* the default of --ranks; NULL: none, the program has a rule of its own */
    const char *ranks;
    double seconds;
    bool sizes, launches;         /* it knows --hot and --most; it knows --tutti */
    const char *examples;         /* lines of --help */
    bool peers;                   /* it knows --without */
    bool works, resumes;          /* it knows --work; it knows --rounds */
    size_t most;                  /* the default of --most; 0: 64 MiB */
    int ranks_most;               /* of --ranks; 0: PERF_RANKS_MAX */
    /* refuses words that it does not know, before anything is measured; NULL: it takes none */
    void (*check)(const struct perf_options *options);
    const char *words;            /* what its arguments are, "OPERATION..."; NULL: it takes none */
};

/* Fills options in; on --help or a mistake it prints and ends the process (0 or 2). */
void perf_options(struct perf_options *options, const struct perf_program *program, int argc,
                  char **argv);
/* Says what is wrong with the command line, in the style of the tutti command, and ends. */
__attribute__((format(printf, 1, 2))) _Noreturn void perf_refuse(const char *format, ...);

#endif
