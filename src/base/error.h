/* Job: name the kinds of failure: a name and a sentence for each.
 * Owns: nothing.
 * Never: knows a comm or a report. */
#ifndef TUTTI_BASE_ERROR_H
#define TUTTI_BASE_ERROR_H

#include <errno.h>

/* Inside the library: what another rank has left in the arena cannot be true, so somebody has
 * written over it. The call that meets it returns -EIO, and its report says so. It is no errno, so
 * no failure of a file, of a device or of the system is taken for it. */
enum { DAMAGED = -5000 };
static inline int error_told(int error) { return error == DAMAGED ? -EIO : error; }

/* The sentence of a negative (or positive) errno: "a rank died or left" …; unknown codes:
 * the system's own, or "unknown error". Immortal. */
const char *error_text(int error);
/* The system's own sentence, for a failure of a file or a device: "Operation not permitted".
 * Immortal. */
const char *error_system(int error);
const char *error_name(int error);   /* "EOWNERDEAD" …; "E?" if unknown */

#endif
