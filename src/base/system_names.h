/* Job: name what the system counts: its errors and its signals.
 * Owns: nothing.
 * Never: says what an error means to a comm (base/error). */
#ifndef TUTTI_BASE_SYSTEM_NAMES_H
#define TUTTI_BASE_SYSTEM_NAMES_H

/* Of a positive errno: "ENOENT", "No such file or directory"; of a signal: "TERM". NULL: no such
 * number. */
const char *system_error_name(int code);
const char *system_error_text(int code);
const char *system_signal_name(int number);

#endif
