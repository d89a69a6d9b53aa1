/* Job: read the options of a command line, and refuse what is none, in one style.
 * Owns: getopt's variables.
 * Never: knows what an option means. */
#ifndef TUTTI_CLI_OPTION_H
#define TUTTI_CLI_OPTION_H

#include <getopt.h>

enum { OPTION_END = -1, OPTION_REFUSED = '?' };

/* who: how the command was called, "tutti run". letters: as of getopt, with ':' in front, so that a
 * missing value is told apart ("+:" where options end at the first other word). */
struct option_words {
    const char *who, *letters;
    const struct option *longs;
    int argc;
    char **argv;
};

/* The next option as getopt_long gives it (optarg, optind), or OPTION_END. OPTION_REFUSED: what is
 * wrong with it has been said, with the option that may be meant. */
int option_next(const struct option_words *words);

/* Prints what is wrong, in one line on stderr: "tutti run: …; try 'tutti run --help'". */
__attribute__((format(printf, 2, 3))) void option_refuse(const char *who, const char *format, ...);

#endif
