/* Job: declare a verb of the command: a name, a line of help, a function.
 * Owns: nothing.
 * Never: does a verb's work. A new verb is a file here and a row in main.c. */
#ifndef TUTTI_CLI_VERB_H
#define TUTTI_CLI_VERB_H

enum { VERB_USAGE = 2 };                    /* exit status for a wrong command line */

struct verb {
    const char *name, *summary;
    int (*run)(int argc, char **argv);               /* argv[0] is the verb; the exit status */
};

extern const struct verb verbs[];                    /* the last one has no name */

int verb_run(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_ps(int argc, char **argv);
int verb_why(int argc, char **argv);
int verb_trace(int argc, char **argv);
int verb_late(int argc, char **argv);
int verb_perf(int argc, char **argv);
int verb_help(int argc, char **argv);
int verb_version(int argc, char **argv);

/* Prints what is wrong, in one line on stderr: "tutti run: …; try 'tutti run --help'". Returns
 * VERB_USAGE. */
__attribute__((format(printf, 2, 3))) int verb_refuse(const char *verb, const char *format, ...);

#endif
