/* getopt finds the options; what it cannot read is looked at here once more, since its own texts
 * name no remedy and know no typing errors. The measuring programs of perf/ are built with it. */
#include "cli/option.h"

#include "base/guess.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LETTER_MOST = 255, SHOWN = 40 };

void option_refuse(const char *who, const char *format, ...)
{
    va_list list;
    fprintf(stderr, "%s: ", who);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "; try '%s --help'\n", who);
}

/* Whether `word`, "--name" or "--name=value", is short for a long option of this value. */
static bool stands_for(const char *word, const struct option *o)
{
    size_t n = strcspn(word + 2, "=");
    return n && !strncmp(word + 2, o->name, n);
}

/* How many different options a word may stand for, and two of them. */
static int meanings(const struct option_words *w, const char *word, const struct option *two[2])
{
    int n = 0;
    for (const struct option *o = w->longs; o->name; o++)
        if (stands_for(word, o) && (n == 0 || o->val != two[0]->val)) {
            if (n < 2)
                two[n] = o;
            n++;
        }
    return n;
}

static const char *nearest(const struct option_words *w, const char *name)
{
    char typed[GUESS_MOST + 2];
    struct guess g;
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(name, "="), name);
    guess_begin(&g, typed);
    for (const struct option *o = w->longs; o->name; o++)
        guess_add(&g, o->name);
    return g.best;
}

static void refuse_unknown(const struct option_words *w, const char *shown, const char *name)
{
    const char *best = nearest(w, name);
    if (best)
        option_refuse(w->who, "%.*s is no option of ours; did you mean --%s?", SHOWN, shown, best);
    else
        option_refuse(w->who, "%.*s is no option of ours", SHOWN, shown);
}

static void refuse_long(const struct option_words *w, const char *word)
{
    const struct option *two[2] = { NULL, NULL };
    int n = meanings(w, word, two);
    if (n > 1)
        option_refuse(w->who, "%.*s may be --%s or --%s", SHOWN, word, two[0]->name, two[1]->name);
    else if (n == 1 && two[0]->has_arg == no_argument)
        option_refuse(w->who, "--%s takes no value: %.*s", two[0]->name, SHOWN, word);
    else
        refuse_unknown(w, word, word + 2);
}

/* -bind for --bind, -N for -n. */
static void refuse_letter(const struct option_words *w)
{
    char letter[] = { '-', (char)optopt, 0 };
    const char *word = w->argv[optind];
    int other = isupper(optopt) ? tolower(optopt) : toupper(optopt);
    if (word && word[0] == '-' && word[1] == optopt && word[2] && nearest(w, word + 1))
        refuse_unknown(w, word, word + 1);
    else if (isalpha(optopt) && strchr(w->letters, other))
        option_refuse(w->who, "%s is no option of ours; did you mean -%c?", letter, other);
    else
        option_refuse(w->who, "%s is no option of ours", letter);
}

/* getopt leaves behind it a long option that it could not read, and of letters the one. */
static bool is_long(const struct option_words *w, const char *word)
{
    if (strncmp(word, "--", 2) != 0)
        return false;
    for (const struct option *o = w->longs; optopt && o->name; o++)
        if (o->val == optopt && stands_for(word, o))
            return true;
    return optopt == 0;
}

int option_next(const struct option_words *w)
{
    opterr = 0;
    int option = getopt_long(w->argc, w->argv, w->letters, w->longs, NULL);
    if (option != '?' && option != ':')
        return option;
    const char *word = w->argv[optind - 1];
    char letter[] = { '-', optopt <= LETTER_MOST ? (char)optopt : 0, 0 };
    if (option == ':')
        option_refuse(w->who, "%.*s wants a value", SHOWN, is_long(w, word) ? word : letter);
    else if (is_long(w, word))
        refuse_long(w, word);
    else
        refuse_letter(w);
    return OPTION_REFUSED;
}
