/* Job: name the kinds of failure: a name and a sentence for each.
 * Owns: nothing.
 * Never: knows a comm or a report. */
#ifndef TUTTI_BASE_ERROR_H
#define TUTTI_BASE_ERROR_H

/* The sentence of a negative (or positive) errno: "a rank died or left" …; unknown codes:
 * the system's own, or "unknown error". Immortal. */
const char *error_text(int error);
/* The system's own sentence, for a failure of a file or a device: "Operation not permitted".
 * Immortal. */
const char *error_system(int error);
const char *error_name(int error);   /* "EOWNERDEAD" …; "E?" if unknown */

#endif
