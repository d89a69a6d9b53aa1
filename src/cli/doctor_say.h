/* Job: print doctor's lines of 80 columns; count what is wrong.
 * Owns: nothing.
 * Never: examines the machine. */
#ifndef TUTTI_CLI_DOCTOR_SAY_H
#define TUTTI_CLI_DOCTOR_SAY_H

#include <stdbool.h>

enum { DOCTOR_COLUMNS = 80, DOCTOR_ROOM = 2048 };

struct doctor { int wrong; };                        /* number of complaints so far */

/* Prints a line. What does not fit continues in further lines, indented by `hang` columns. */
__attribute__((format(printf, 2, 3))) void doctor_say(int hang, const char *format, ...);

/* Prints a complaint, and below it the remedy. */
__attribute__((format(printf, 3, 4))) void doctor_wrong(struct doctor *d, const char *remedy,
                                                        const char *format, ...);

/* Prints the last line. Returns the exit status. */
int doctor_end(const struct doctor *d);

#endif
