/* Job: list every TUTTI_ variable in one table: its range, default and help.
 * Owns: nothing; values are read from the environment at the call and kept by the caller.
 * Never: uses a value. */
#ifndef TUTTI_BASE_KNOB_H
#define TUTTI_BASE_KNOB_H

#include <stdint.h>

enum knob_kind { KNOB_INT, KNOB_DURATION_MS, KNOB_BYTES, KNOB_TEXT, KNOB_FLAG };

enum knob_id {
    KNOB_JOB, KNOB_RANK, KNOB_SIZE, KNOB_TIMEOUT_MS, KNOB_JOIN_TIMEOUT_MS, KNOB_WARN_MS,
    KNOB_SPIN_US, KNOB_FLAGS, KNOB_SPAN_BYTES, KNOB_STORE_BYTES, KNOB_ALGORITHM, KNOB_ISA,
    KNOB_FAULT, KNOB_MEET, KNOB_ARENA, KNOB_FIRST_SEQ, KNOB_VERIFY, KNOB_URING, KNOB_TUNED,
    KNOB_PYTHON_PLAIN, KNOB_AS_GLOO, KNOB_AS_GLOO_QUIET, KNOB_VLLM, KNOB_CACHE, KNOB_BOX,
    KNOB_LINES,
    KNOB_COUNT
};

struct knob {
    const char *name;
    enum knob_kind kind;
    int64_t low, high;
    const char *fallback, *help;
};

const struct knob *knob_row(enum knob_id id);        /* for doctor, the man page and the tests */

/* 1 and *value: the variable is set and valid. 0: not set or empty. -EINVAL: set and wrong; the
   sentence is in why[room]: "TUTTI_SPIN_US=abc: expected an integer between 0 and 1000000". */
int knob_int(enum knob_id id, int64_t *value, char *why, int room);
/* 1 and *value (points into the environment). 0: not set. */
int knob_text(enum knob_id id, const char **value);

#endif
