/* Job: write values as Python's pickle (protocol 2) has them.
 * Owns: nothing.
 * Never: writes what would run code when it is read: texts, numbers, lists, dictionaries alone. */
#ifndef TUTTI_CLI_PICKLE_H
#define TUTTI_CLI_PICKLE_H

#include <stdint.h>
#include <stdio.h>

void pickle_begin(FILE *out);
void pickle_end(FILE *out);
void pickle_text(FILE *out, const char *s);
void pickle_int(FILE *out, int64_t n);
void pickle_bool(FILE *out, int yes);
void pickle_none(FILE *out);
/* Between begin and end of a dictionary: a text and a value, again and again; of a list: values. */
void pickle_dict(FILE *out);
void pickle_dict_end(FILE *out);
void pickle_list(FILE *out);
void pickle_list_end(FILE *out);
/* The last two values become one pair. */
void pickle_pair(FILE *out);

#endif
