/* Texts were escaped when they were read from an arena, so that what is left to escape is the
 * quote, the backslash, and what could end a script in a page. */
#include "cli/json.h"

void json_quote(FILE *out, const char *s)
{
    fputc('"', out);
    for (; *s; s++) {
        if (*s == '<') {
            fputs("\\u003c", out);
            continue;
        }
        if (*s == '"' || *s == '\\')
            fputc('\\', out);
        fputc((unsigned char)*s < 0x20 ? ' ' : *s, out);
    }
    fputc('"', out);
}
