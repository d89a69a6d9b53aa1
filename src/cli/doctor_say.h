/* Job: how doctor speaks: lines of 80 columns, and what is wrong, counted.
 * Owns: nothing.
 * Never: finds anything out. */
#ifndef TUTTI_CLI_DOCTOR_SAY_H
#define TUTTI_CLI_DOCTOR_SAY_H

#include <stdbool.h>

enum { DOCTOR_COLUMNS = 80, DOCTOR_ROOM = 2048 };

struct doctor { int wrong; };                        /* how many complaints so far */

/* A line; what does not fit goes on in further ones, `hang` columns in. */
__attribute__((format(printf, 2, 3))) void doctor_say(int hang, const char *format, ...);

/* A complaint, and below it what to do about it. */
__attribute__((format(printf, 3, 4))) void doctor_wrong(struct doctor *d, const char *remedy,
                                                        const char *format, ...);

/* The last line. The exit status. */
int doctor_end(const struct doctor *d);

#endif
