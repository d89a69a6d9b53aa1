/* Job: the kinds of failure, each with its name and its sentence.
 * Owns: nothing.
 * Never: a comm, a report. */
#ifndef TUTTI_BASE_ERROR_H
#define TUTTI_BASE_ERROR_H

/* negative errno (or positive); "a rank died or left" …; immortal; unknown codes: strerrordesc_np
 * or "unknown error" */
const char *error_text(int error);
/* the system's own sentence, where a file or a device is the cause: "Operation not
 * permitted"; immortal */
const char *error_system(int error);
const char *error_name(int error);   /* "EOWNERDEAD" …; "E?" if unknown */

#endif
