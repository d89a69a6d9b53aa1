/* Lines are broken at blanks, so that a terminal of 80 columns does not break them elsewhere. A
 * word that is longer than a line stays whole. */
#include "cli/doctor_say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How many bytes of s fit into `columns`: up to a blank, if there is one after the indentation. */
static size_t fitting(const char *s, size_t columns)
{
    size_t n = strlen(s), lead = strspn(s, " ");
    if (n <= columns)
        return n;
    for (size_t i = columns; i > lead; i--)
        if (s[i] == ' ')
            return i;
    return lead + strcspn(s + lead, " ");
}

static void say(int hang, const char *s)
{
    size_t n = fitting(s, DOCTOR_COLUMNS);
    printf("%.*s\n", (int)n, s);
    for (s += n; *(s += strspn(s, " ")); s += n) {
        n = fitting(s, (size_t)(DOCTOR_COLUMNS - hang));
        printf("%*s%.*s\n", hang, "", (int)n, s);
    }
}

void doctor_say(int hang, const char *format, ...)
{
    char line[DOCTOR_ROOM];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    say(hang, line);
}

void doctor_wrong(struct doctor *d, const char *remedy, const char *format, ...)
{
    char line[DOCTOR_ROOM];
    va_list list;
    int used = snprintf(line, sizeof line, "  wrong: ");
    va_start(list, format);
    vsnprintf(line + used, sizeof line - (size_t)used, format, list);
    va_end(list);
    say(4, line);
    doctor_say(4, "    %s", remedy);
    d->wrong++;
}

int doctor_end(const struct doctor *d)
{
    if (d->wrong)
        printf("%d thing%s wrong here\n", d->wrong, d->wrong == 1 ? " is" : "s are");
    else
        printf("nothing is wrong here\n");
    return fflush(stdout) != 0 || d->wrong != 0;
}
