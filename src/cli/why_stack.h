/* Job: ask a rank for its stack, and show what it answers.
 * Owns: nothing.
 * Never: asks unless the user wants it; waits longer than a moment; sends a signal that could end
 *        the process. */
#ifndef TUTTI_CLI_WHY_STACK_H
#define TUTTI_CLI_WHY_STACK_H

#include "cli/rank_states.h"

#include <stdio.h>

void why_stack(FILE *out, const struct rank_state *s);

#endif
