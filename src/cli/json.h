/* Job: write a text as JSON has it.
 * Owns: nothing.
 * Never: makes a text safe for a terminal: it is escaped before. */
#ifndef TUTTI_CLI_JSON_H
#define TUTTI_CLI_JSON_H

#include <stdio.h>

/* With its quotes. "<" is written so that a page's script can hold it, too. */
void json_quote(FILE *out, const char *s);

#endif
